#!/usr/bin/env python3
"""The market beside the specialists, each on its own ground: Sia's workloads on 64 devices of three kinds (times and
restarts), rigid, strongly scaling and adaptive jobs with and without deadlines in one trace, rigid jobs only (fairness),
and ElasticFlow's and Chronus's traces (deadlines, promised and not; held out: the same jobs at each other's submission
times). Every row is one `yard sim` for each trace.

Usage: bench/elastic.py [all | cost]   (needs target/release/yard and ../shared/data)
  all   every workload of Sia's, those that were not in view while `market` was made also by themselves, and how far the
        deadlines that `market` meets hang on its parameters
  cost  only what a whole run costs"""

import csv
import math
import pathlib
import random
import sys
import tempfile

from common import YARD, machine, timed, yard

DATA = pathlib.Path("../shared/data")
SIA = DATA / "sia"
CLUSTER = "t4:6x4,rtx:3x8,a100:2x8"
ELASTIC = ["sia", "pollux", "max-min", "market"]
ALL = ELASTIC + ["elasticflow", "chronus", "edf"]
DEADLINE = ["fifo", "sia", "edf", "elasticflow", "chronus", "market"]
SEEDS = range(1, 7)
# Traces with deadlines, each with its simulator's settings.
DEADLINES = [
    ("elasticflow/elasticVpollux_e.csv", "t4:16x4",
     ["--compat", "elasticflow", "--throughputs", str(DATA / "traces/elasticflow/throughputs_T4")]),
    ("chronus/sub_SLO.csv", "gpu:16x8", ["--compat", "chronus"]),
    ("chronus/sub_MIX1.csv", "gpu:16x8", ["--compat", "chronus"]),
]
# The parameters of `market`, each moved to a neighbour.
NEIGHBOURS = ["short=0.05", "short=0.2", "lambda=1.05", "lambda=1.2", "patience=2.5", "patience=10", "gain=0.025", "gain=0.1",
              "gang=0.15", "gang=0.6"]
IN_VIEW = range(1, 4)
SHUFFLES = range(7, 13)
FEW = ["burst20/workload-1", "short40/workload-1", "philly/workload-2", "philly/workload-4", "saturn/workload-3", "saturn/workload-5"]


def main():
    print(machine())
    every = sorted(str(path.relative_to(SIA / "workloads").with_suffix("")) for path in SIA.glob("workloads/*/*.csv"))
    workloads = [name for name in every if not name.startswith("newtrace")] if "all" in sys.argv[1:] else FEW
    one()
    if "cost" in sys.argv[1:]:
        return
    sias(workloads)
    mixed()
    rigid()
    for promises in [[], ["--promises"]]:
        for trace, cluster, options in DEADLINES:
            deadlines(trace, cluster, [*options, *promises])
    if "all" in sys.argv[1:]:
        firm()


def run(trace, policies):
    """Learned speeds, rounds of a minute; the figures of each policy, and the CPU seconds of all."""
    result, cpu = yard("sim", "--trace", str(trace), "--cluster", CLUSTER, "--throughputs", str(SIA / "profiles"),
                       "--belief", "learned", "--round", "60s", "--policy", ",".join(policies))
    return result["runs"], cpu


def one():
    """What a whole run costs; the best of three, because others use the machine."""
    runs = [run(SIA / "workloads/philly/workload-2.csv", ["market"]) for _ in range(3)]
    print(f"philly/workload-2, {runs[0][0][0]['jobs']} jobs under market: {min(cpu for _, cpu in runs):.2f} s of CPU")


def sias(workloads):
    rows = {policy: [] for policy in ELASTIC}
    for name in workloads:
        add(rows, SIA / "workloads" / f"{name}.csv")
    print(f"Sia's workloads, {len(workloads)} of them: as parts of sia's; restarts for each job")
    table(rows)
    unseen = [at for at, name in enumerate(workloads) if not seen(name)]
    if unseen:
        print(f"Of them, {len(unseen)} that were not in view while market was made")
        table({policy: [runs[at] for at in unseen] for policy, runs in rows.items()})


def seen(name):
    """Whether the parameters of `market` were chosen with this workload in view: the few, and those of odd numbers."""
    return name in FEW or int(name.rsplit("-", 1)[1]) % 2 == 1


def mixed():
    rows = {policy: [] for policy in ALL}
    with tempfile.TemporaryDirectory() as folder:
        for seed in SEEDS:
            add(rows, made(folder, "mixed", 160, 20, seed))
    print(f"Mixed traces of 160 jobs, seeds {SEEDS[0]} to {SEEDS[-1]}: as parts of sia's; restarts for each job; deadlines met")
    table(rows)
    print(f"Of them, seeds {IN_VIEW[-1] + 1} to {SEEDS[-1]}, which were not in view while market was made")
    table({policy: runs[len(IN_VIEW):] for policy, runs in rows.items()})


def rigid():
    """Jobs that do not grow, as in Gavel's evaluation; figures of the middle half."""
    policies = ["max-min", "finish-time", "market"]
    with tempfile.TemporaryDirectory() as folder:
        for seed in [1, 2, 3]:
            result, _ = yard("sim", "--trace", str(made(folder, "gavel", 600, 5, seed)), "--cluster", "v100:24,p100:24,k80:24",
                             "--throughputs", str(DATA / "gavel/simulation_throughputs.json"), "--round", "360s",
                             "--jobs", "200..500", "--policy", ",".join(policies))
            print(f"600 rigid jobs, seed {seed}: completion in hours; finish-time fairness, mean and worst")
            print(f"{'policy':12} {'avg JCT':>8} {'p99 JCT':>8} {'avg rho':>8} {'max rho':>8} {'restarts':>8}")
            for policy, row in zip(policies, result["runs"]):
                times = [row["avg_jct_s"] / 3600, row["p99_jct_s"] / 3600]
                fairness = [row["avg_rho"], row["max_rho"]]
                print(f"{policy:12} " + " ".join(f"{x:8.2f}" for x in times) + " "
                      + " ".join(f"{x:8.3f}" for x in fairness) + f" {row['restarts']:8}")


def made(folder, preset, jobs, rate, seed):
    """A generated trace, by its path."""
    trace = pathlib.Path(folder) / f"{preset}-{seed}.csv"
    out, _ = timed(YARD, "trace", "gen", "--jobs", str(jobs), "--rate", str(rate), "--preset", preset, "--seed", str(seed))
    trace.write_text(out, encoding="utf-8")
    return trace


def add(rows, trace):
    for policy, figures in zip(rows, run(trace, list(rows))[0]):
        rows[policy].append(figures)


def table(rows):
    """Ratios are geometric means over the traces."""
    print(f"{'policy':12} {'avg JCT':>8} {'p99 JCT':>8} {'makespan':>8} {'restarts':>8}")
    for policy, runs in rows.items():
        parts = [ratio(runs, rows["sia"], key) for key in ["avg_jct_s", "p99_jct_s", "makespan_s"]]
        restarts = sum(row["restarts"] / row["jobs"] for row in runs) / len(runs)
        met, total = (sum(row[key] for row in runs) for key in ["deadline_met", "deadline_total"])
        line = f"{policy:12} " + " ".join(f"{part:8.3f}" for part in parts) + f" {restarts:8.2f}"
        print(line + (f" {met:5} of {total}" if total else ""))


def ratio(ours, theirs, key):
    return math.exp(sum(math.log(a[key] / b[key]) for a, b in zip(ours, theirs)) / len(ours))


def deadlines(trace, cluster, options):
    """Deadlines met, whoever had them: on the trace itself, and on others with the same jobs."""
    path = DATA / "traces" / trace
    with tempfile.TemporaryDirectory() as folder:
        held_out = [shuffled(folder, path, seed) for seed in SHUFFLES]
        columns = [list(totals(traces, cluster, options)) for traces in ([path], held_out)]
    promised = ", with promises" if "--promises" in options else ""
    print(f"{trace}{promised}: deadlines met, average completion in hours; and shuffled, seeds {SHUFFLES[0]} to {SHUFFLES[-1]}")
    for policy, *cells in zip(DEADLINE, *columns):
        print(f"{policy:12} " + "   ".join(f"{kept:5} of {total:5} {hours:9.3f}" for kept, total, hours in cells))


def totals(traces, cluster, options):
    """Of each policy over these traces: deadlines met, deadlines, and the mean hours of completion."""
    runs = [met(trace, cluster, DEADLINE, options) for trace in traces]
    for figures in zip(*runs):
        kept, total = (sum(row[key] for row in figures) for key in ["deadline_met", "deadline_total"])
        yield kept, total, sum(row["avg_jct_s"] for row in figures) / len(figures) / 3600


def met(trace, cluster, policies, options):
    """The figures of each policy. A promise that is not kept is an error."""
    result, _ = yard("sim", "--trace", str(trace), "--cluster", cluster, *options, "--policy", ",".join(policies))
    for policy, row in zip(policies, result["runs"]):
        assert row["promises_kept"] == row["promised"], f"{policy} broke a promise on {trace}"
    return result["runs"]


def shuffled(folder, trace, seed):
    """The jobs of a trace at each other's submission times, each with as much time as it had; the path."""
    with open(trace, encoding="utf-8", newline="") as file:
        jobs = list(csv.DictReader(file))
    times = [job["submit_time"] for job in jobs]
    random.Random(seed).shuffle(jobs)
    for at, (job, time) in enumerate(zip(jobs, times)):
        if "ddl" in job:
            job["ddl"] = int(job["ddl"]) - int(job["submit_time"]) + int(time)
        job["submit_time"], job["job_id"] = time, at
    path = pathlib.Path(folder) / f"{seed}-{trace.name}"
    with open(path, "w", encoding="utf-8", newline="") as file:
        rows = csv.DictWriter(file, jobs[0].keys(), lineterminator="\n")
        rows.writeheader()
        rows.writerows(jobs)
    return path


def firm():
    """How firm the deadline figures are."""
    print(f"Deadlines that market meets with one parameter moved to a neighbour ({len(NEIGHBOURS)} ways): least, as it is, most")
    policies = ["market"] + [f"market:{moved}" for moved in NEIGHBOURS]
    for promises in [[], ["--promises"]]:
        for trace, cluster, options in DEADLINES:
            runs = met(DATA / "traces" / trace, cluster, policies, [*options, *promises])
            count = [figures["deadline_met"] for figures in runs]
            print(f"{trace + (', with promises' if promises else ''):48} {min(count):5} {count[0]:5} {max(count):5}")


if __name__ == "__main__":
    main()
