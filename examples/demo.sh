#!/bin/sh
# Submits eight small jobs to a running server with devices of two kinds, and says what to watch. They want more than
# there is, so they take turns: each is paused, resumed and perhaps moved, and none does a step twice.
#   $YARD        the binary (default: target/release/yard)
#   $FAST $SLOW  the two kinds (default: h100 and v100)
#   $PYTHON      a Python of at least 3.9 (default: python3)
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
YARD=${YARD:-$root/target/release/yard}
FAST=${FAST:-h100}
SLOW=${SLOW:-v100}
PYTHON=$(command -v "${PYTHON:-python3}") || { echo "no python3 found; set PYTHON to one" >&2; exit 2; }
if [ ! -x "$(command -v "$YARD")" ]; then
    echo "there is no $YARD; run make build first, or set YARD" >&2
    exit 2
fi

# submit NAME DEVICES KINDS PROGRAM ARGUMENTS…
submit() {
    name=$1 devices=$2 kinds=$3 program=$4
    shift 4
    id=$("$YARD" submit --parsable --name "$name" --gpus "$devices" --kind "$kinds" \
        --env "PYTHONPATH=$root/python/src" -- "$PYTHON" "$here/$program" "$@")
    echo "  $id  $name: $devices of $kinds"
}

echo "Submitted:"
submit count-a 1 "$FAST" count.py --steps 120 --step-s 0.25
submit count-b 1 "$SLOW" count.py --steps 100 --step-s 0.25
submit count-c 2 "$FAST|$SLOW" count.py --steps 100 --step-s 0.2
submit line-a 1 "$FAST|$SLOW" train.py --steps 300 --step-s 0.1
submit line-b 2 "$FAST" train.py --steps 250 --step-s 0.1
submit line-c 1 "$SLOW|$FAST" train.py --steps 400 --step-s 0.1
submit line-d 2 "$SLOW" train.py --steps 200 --step-s 0.1
submit count-d 1 "$FAST|$SLOW" count.py --steps 200 --step-s 0.25

echo
echo "What to watch:"
echo "  $YARD jobs --watch      who runs, who is suspended, how far each is"
echo "  $YARD top               nodes and devices as they change hands"
echo "  $YARD explain last      why the last job waits, and what would start it sooner"
echo "  $YARD logs -f last      its output, over all its starts"
