#!/bin/sh
# yard submit -f examples/job.sh        (from the top of the repository)
#SBATCH --job-name=line
#SBATCH --gpus=1
#SBATCH --time=00:10:00
#SBATCH --signal=TERM@20

export PYTHONPATH=python/src
# `exec`, so that signals reach the program and not a shell that waits for it.
exec python3 examples/train.py --steps 400 --step-s 0.1
