#!/usr/bin/env python3
"""The market beside the specialists, each on its own ground: Sia's workloads on 64 devices of three kinds (times and
restarts), ElasticFlow's and Chronus's traces (deadlines). Every row is one `yard sim`.

Usage: bench/elastic.py [all]   (needs target/release/yard and ../shared/data; all: every workload of Sia's)"""

import math
import pathlib
import sys

from common import machine, yard

DATA = pathlib.Path("../shared/data")
SIA = DATA / "sia"
CLUSTER = "t4:6x4,rtx:3x8,a100:2x8"
ELASTIC = ["sia", "pollux", "max-min", "market"]
FEW = ["burst20/workload-1", "short40/workload-1", "philly/workload-2", "philly/workload-4", "saturn/workload-3", "saturn/workload-5"]


def main():
    print(machine())
    every = sorted(str(path.relative_to(SIA / "workloads").with_suffix("")) for path in SIA.glob("workloads/*/*.csv"))
    workloads = [name for name in every if not name.startswith("newtrace")] if "all" in sys.argv[1:] else FEW
    sias(workloads)
    deadlines("elasticflow/elasticVpollux_e.csv", "t4:16x4", ["edf", "elasticflow", "market"],
              ["--compat", "elasticflow", "--throughputs", str(DATA / "traces/elasticflow/throughputs_T4")])
    for name in ["sub_SLO", "sub_MIX1"]:
        deadlines(f"chronus/{name}.csv", "gpu:16x8", ["edf", "chronus", "market"], ["--compat", "chronus"])


def sias(workloads):
    """Learned speeds, rounds of a minute; ratios are geometric means over the workloads."""
    rows = {policy: [] for policy in ELASTIC}
    for name in workloads:
        trace = SIA / "workloads" / f"{name}.csv"
        result, _ = yard("sim", "--trace", str(trace), "--cluster", CLUSTER, "--throughputs", str(SIA / "profiles"),
                         "--belief", "learned", "--round", "60s", "--policy", ",".join(ELASTIC))
        for policy, figures in zip(ELASTIC, result["runs"]):
            rows[policy].append(figures)
    print(f"Sia's workloads, {len(workloads)} of them: as parts of sia's; restarts for each job")
    print(f"{'policy':12} {'avg JCT':>8} {'p99 JCT':>8} {'makespan':>8} {'restarts':>8}")
    for policy in ELASTIC:
        parts = [ratio(rows[policy], rows["sia"], key) for key in ["avg_jct_s", "p99_jct_s", "makespan_s"]]
        restarts = sum(row["restarts"] / row["jobs"] for row in rows[policy]) / len(rows[policy])
        print(f"{policy:12} " + " ".join(f"{part:8.3f}" for part in parts) + f" {restarts:8.2f}")


def ratio(ours, theirs, key):
    return math.exp(sum(math.log(a[key] / b[key]) for a, b in zip(ours, theirs)) / len(ours))


def deadlines(trace, cluster, policies, options):
    """Deadlines met, whoever had them."""
    result, _ = yard("sim", "--trace", str(DATA / "traces" / trace), "--cluster", cluster, *options,
                     "--policy", ",".join(policies))
    print(f"{trace}: deadlines met, average completion in hours")
    for policy, figures in zip(policies, result["runs"]):
        print(f"{policy:12} {figures['deadline_met']:5} of {figures['deadline_total']:5} {figures['avg_jct_s'] / 3600:9.3f}")


if __name__ == "__main__":
    main()
