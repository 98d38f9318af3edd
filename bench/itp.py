#!/usr/bin/env python3
"""All 69 351 jobs of the Microsoft ITP trace: each of the ten clusters as one run, sized so that load is 0.9.

Usage: bench/itp.py [POLICY [ROUND [strict]]]   (default: tiresias 360s; strict: nothing is given out between rounds)
One row a cluster, and the sum of the CPU seconds of the whole processes, reading the trace included.
Needs target/release/yard and ../shared/data."""

import math
import sys

from common import machine, yard

TRACE = "../shared/data/traces/elasticflow/raw-traces.tar.gz"
POLICY = sys.argv[1] if len(sys.argv) > 1 else "tiresias"
ROUND = sys.argv[2] if len(sys.argv) > 2 else "360s"
STRICT = ["--strict-rounds"] if sys.argv[3:] == ["strict"] else []


def nodes_for(trace):
    """Nodes of eight GPUs so that mean demand is 0.9 of them, and the largest gang fits."""
    stats, _ = yard("trace", "show", trace)
    return max(math.ceil(stats["mean_gpus_demanded"] / 0.9 / 8), math.ceil(stats["gpus"]["max"] / 8))


def main():
    total = peak = jobs = 0
    print(machine())
    print(f"{'cluster':9} {'jobs':>6} {'gpus':>6} {'avg JCT h':>10} {'util':>6} {'preempt':>8} {'rounds':>7} {'cpu s':>6} {'MiB':>5}")
    for number in range(1, 11):
        trace = f"{TRACE}#cluster{number:02}"
        nodes = nodes_for(trace)
        result, cpu = yard("sim", "--trace", trace, "--cluster", f"gpu:{nodes}x8", "--policy", POLICY, "--round", ROUND, *STRICT)
        run = result["runs"][0]
        total, peak, jobs = total + cpu, max(peak, run["peak_rss_mib"]), jobs + run["finished"]
        print(f"{number:9} {run['jobs']:6} {nodes * 8:6} {run['avg_jct_s'] / 3600:10.2f} {run['utilization']:6.3f} "
              f"{run['preemptions']:8} {run['rounds']:7} {cpu:6.2f} {run['peak_rss_mib']:5.0f}")
    print(f"{POLICY}, rounds of {ROUND}{', strict' if STRICT else ''}: {jobs} jobs, {total:.2f} s of CPU in all, "
          f"{jobs / total:.0f} jobs per CPU second, peak {peak:.0f} MiB")


main()
