#!/usr/bin/env bash
# Measures everything and rewrites bench/RESULTS.md. Needs target/release/yard and ../shared/data; leave the machine alone.
set -euo pipefail
cd "$(dirname "$0")/.."
. bench/of_one_commit.sh
of_one_commit bench/RESULTS.md
run() { printf '\n```\n$ %s\n' "${*/#target\/release\//}"; "$@"; printf '```\n'; }
say() { echo "bench: $1" >&2; printf '\n## %s\n\n' "$1"; cat; }
{
    cat <<'TXT'
# Results

Written by `make bench`, all of it from one commit in one go. CPU seconds are of whole processes, reading the trace included,
where not said otherwise. What is wanted and not had says MISSED.

TXT
    python3 -c 'import sys; sys.path.insert(0, "bench"); from common import machine; print(machine())'

    say 'All 69 351 jobs of the Microsoft ITP trace' <<'TXT'
Each of the ten clusters as one run at a load of 0.9. Wanted: at most 2 s of CPU in all and 300 MiB.
TXT
    run bench/itp.py
    cat <<'TXT'

The same with devices left idle until the next round, as the papers' simulators do:
TXT
    run bench/itp.py tiresias 360s strict

    say 'A million jobs on 100 000 GPUs' <<'TXT'
Wanted: within two minutes.
TXT
    run bench/million.py

    say 'What a decision costs' <<'TXT'
The same stream of short jobs (about five arrive and five end between two decisions) beside a growing number of long ones,
half of them running and half waiting. Wanted: the cost follows what changed, not what is there. CPU of a run without the
short jobs is taken off, so the last digits are noise.
TXT
    run bench/rounds.py

    say 'What a plan costs' <<'TXT'
Max-min fair shares of random, capacity-bound markets (`yard bench market --help`), to a proven gap of a thousandth: the
best of three cold solves, with the CPU and the memory of the whole process, making the market included; then the same
market after one job in a hundred gave way to another (warm); then clarabel, a general interior-point solver, on the
same market to nine digits. Wanted: a million jobs on eight kinds within 2 s of CPU and 1 GiB. After the table: shares for
pairs of jobs on one device, and a whole simulation that plans by max-min fairness, in rounds as Gavel's and in our own. Most
of its time goes to jobs that change hands (stops): in rounds of shares most of those that run do, round after round.

![Seconds per plan by number of jobs](market.svg)
TXT
    run bench/market.py

    say "What learning a job's speed costs" <<'TXT'
A throughput model fitted to 50 points from nothing (`fit`) and again after one of them moved (`refit`), and the choice among
fifty batch sizes, in microseconds; beside them a pass over the points, which any search makes for each trial. Wanted: well
under a millisecond. Sia's artifact takes 70 to 590 ms for fits to 45 to 315 points.
TXT
    run target/release/yard bench fit

    say 'Sizes of elastic jobs' <<'TXT'
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

What a whole run costs. Wanted: 160 jobs in under a second of CPU (the artifact: minutes). How good the market is beside the
specialists is in docs/validation.md.
TXT
    run bench/elastic.py cost

    say 'When lengths are not known' <<'TXT'
The same policies told the lengths, up to three times off, predicted from the past, and not at all (`--lengths`). Wanted: the
market's average no worse than that of gittins and tiresias where lengths are predicted or unknown, on each kind of trace.
TXT
    run bench/lengths.py

    say 'Under abuse' <<'TXT'
A user with a submit token and a job floods a server and an agent for 60 s in each of six ways, while another user submits
jobs. Wanted: memory grows by at most 50 MiB, and 99 of 100 submissions of the other user take at most 100 ms.
TXT
    run target/release/yard bench abuse || true # What misses says so.

    say 'Beside a plain loop' <<'TXT'
The same schedule by a 20-line Python loop that sorts and places all jobs at each event, counts GPUs and does nothing else
(no devices, leases, costs, event log or invariants). The average completion times must agree, so it is a check as well.
TXT
    run bench/reference.py 05
    run bench/reference.py 09

    say 'Splits of large models' <<'TXT'
`yard bench shapes`: GPT 6.7B and 175B on 8 kinds and every count of devices from 1 to 1024, all splits of each. Wanted: 0.1 s
a model. Beside it one split alone, in microseconds.
TXT
    run target/release/yard bench shapes

    say 'The live cluster' <<'TXT'
One real server with 1 000 connected agents of 8 pretend devices each and 10 000 jobs of one device, submitted by 16
clients that wait for each answer (the job is on disk then); then rounds in which the jobs take turns, as the agents see
them; then `true`, 3 000 times, on one real agent with eight slots. Agents, clients and server share the machine's cores,
the disk decides how often anything can be durable, and the system how fast processes start, so their own figures stand
beside.
TXT
    run bench/live.py

    say 'A policy that is a program' <<'TXT'
The policies of examples/policies, which are Python programs asked in JSON lines (`--policy exec:`), beside the same policies
built in: thousands of decisions of each. Wanted: 10 000 decisions in under a minute, and the same events.
TXT
    run bench/exec_policy.py

    say 'What a question costs' <<'TXT'
A real server with 64 pretend nodes of 8 devices of two kinds and 1 000 jobs, rounds of 60 s; each of 25 questions is asked for
its first answer (where, start, finish, whom it hits), with the other ways to ask, and with intervals. `cut` counts answers in
which 4 s of a processor were not enough for all intervals.
TXT
    run bench/what_if.py
    cat <<'TXT'

Submissions, plans and rounds while jobs come and go, alone and while ten people ask all the time, by turns, on cores that the
ten share with the server:
TXT
    run bench/what_if.py --policy market --policy max-min --round 5 --load 30
} > bench/RESULTS.md.part
mv bench/RESULTS.md.part bench/RESULTS.md
