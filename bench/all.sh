#!/usr/bin/env bash
# Measures everything and rewrites bench/RESULTS.md. Needs target/release/yard and ../shared/data; leave the machine alone.
set -euo pipefail
cd "$(dirname "$0")/.."
run() { printf '\n```\n$ %s\n' "$*"; "$@"; printf '```\n'; }
{
    cat <<'TXT'
# Results

Written by `make bench`. CPU seconds are of whole processes, reading the trace included, where not said otherwise; the
machine and the commit are in the first line of each. For scale: the papers' Python simulators manage about 40 jobs per CPU
second.

## All 69 351 jobs of the Microsoft ITP trace

Each of the ten clusters as one run at a load of 0.9. Wanted: at most 2 s of CPU in all and 300 MiB.
TXT
    run bench/itp.py
    cat <<'TXT'

The same with devices left idle until the next round, as the papers' simulators do:
TXT
    run bench/itp.py tiresias 360s strict
    cat <<'TXT'

## A million jobs on 100 000 GPUs

Wanted: within two minutes.
TXT
    run bench/million.py
    cat <<'TXT'

## What a decision costs

The same stream of short jobs (about five arrive and five end between two decisions) beside a growing number of long ones,
half of them running and half waiting. Wanted: the cost follows what changed, not what is there. CPU of a run without the
short jobs is taken off, so the last digits are noise.
TXT
    run bench/rounds.py
    cat <<'TXT'

## What a plan costs

Max-min fair shares of random, capacity-bound markets (`yard bench market --help`), to a proven gap of a thousandth: the
best of three cold solves, with the CPU and the memory of the whole process, making the market included; then the same
market after one job in a hundred gave way to another (warm); then clarabel, a general interior-point solver, on the
same market to nine digits. Wanted: a million jobs on eight kinds within 2 s of CPU and 1 GiB. After the table: shares for
pairs of jobs on one device, and a whole simulation that plans by max-min fairness.

![Seconds per plan by number of jobs](market.svg)
TXT
    run bench/market.py
    cat <<'TXT'

## What learning a job's speed costs

A throughput model fitted to 50 points from nothing (`fit`) and again after one of them moved (`refit`), and the choice among
fifty batch sizes, in microseconds; beside them a pass over the points, which any search makes for each trial. Wanted: well
under a millisecond. Sia's artifact takes 70 to 590 ms for fits to 45 to 315 points.
TXT
    run target/release/yard bench fit
    cat <<'TXT'

## Sizes of elastic jobs

Pollux' fitness of our plans on twenty random clusters of 64 GPUs and 32 jobs, and of those of the paper's genetic
algorithm, with the CPU of one plan. Wanted: no worse on any of them, within 50 ms.
TXT
    run target/release/yard bench pollux
    cat <<'TXT'

Sia's assignment, each round with other jobs. Wanted: under 50 ms of CPU at 2 048 GPUs and 1 024 jobs without a heavy tail,
under 2 s at 100 000 GPUs and 50 000 jobs (the artifact, at the former: 0.7 to 46 s).
TXT
    run target/release/yard bench sia
    run target/release/yard bench sia --jobs 50000 --gpus 100000 --rounds 3
    cat <<'TXT'

The market beside the specialists, and what a whole run costs. Wanted: 160 jobs in under a second of CPU (the artifact:
minutes); the market ahead of each specialist on that one's own measure. docs/validation.md says where it is not.
TXT
    run bench/elastic.py all
    cat <<'TXT'

## Under abuse

A user with a submit token and a job floods a server and an agent for 60 s in each of six ways, while another user submits
jobs. Wanted: memory grows by at most 50 MiB, and 99 of 100 submissions of the other user take at most 100 ms.
TXT
    run target/release/yard bench abuse || true # What misses says so.
    cat <<'TXT'

## Beside a plain loop

The same schedule by a 20-line Python loop that sorts and places all jobs at each event, counts GPUs and does nothing else
(no devices, leases, costs, event log or invariants). The average completion times must agree, so it is a check as well.
TXT
    run bench/reference.py 05
    run bench/reference.py 09
} > bench/RESULTS.md.part
mv bench/RESULTS.md.part bench/RESULTS.md
# Puts its own part into the finished file.
bench/live.py --write
