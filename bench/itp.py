#!/usr/bin/env python3
"""All 69 351 jobs of the Microsoft ITP trace: each of the ten clusters as one run, sized so that load is 0.9.

Usage: bench/itp.py [POLICY [ROUND]]   (default: tiresias 360s)
Prints one row a cluster and the sums of CPU seconds; needs target/release/yard and ../shared/data."""

import json
import math
import resource
import subprocess
import sys

TRACE = "../shared/data/traces/elasticflow/raw-traces.tar.gz"
YARD = "target/release/yard"
POLICY = sys.argv[1] if len(sys.argv) > 1 else "tiresias"
ROUND = sys.argv[2:3] and ["--round", sys.argv[2]] or ["--round", "360s"]


def yard(*args):
    """Runs yard and returns its JSON and the CPU seconds of the whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run([YARD, *args, "-o", "json"], check=True, capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return json.loads(out), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    total = peak = jobs = 0
    print(f"{'cluster':9} {'jobs':>6} {'gpus':>6} {'avg JCT h':>10} {'util':>6} {'preempt':>8} {'rounds':>7} {'cpu s':>6} {'MiB':>5}")
    for number in range(1, 11):
        trace = f"{TRACE}#cluster{number:02}"
        stats, _ = yard("trace", "show", trace)
        largest = int(stats["gpus"]["max"])
        nodes = max(math.ceil(stats["mean_gpus_demanded"] / 0.9 / 8), math.ceil(largest / 8))
        result, cpu = yard("sim", "--trace", trace, "--cluster", f"gpu:{nodes}x8", "--policy", POLICY, *ROUND)
        run = result["runs"][0]
        total, peak, jobs = total + cpu, max(peak, run["peak_rss_mib"]), jobs + run["finished"]
        print(f"{number:9} {run['jobs']:6} {nodes * 8:6} {run['avg_jct_s'] / 3600:10.2f} {run['utilization']:6.3f} "
              f"{run['preemptions']:8} {run['rounds']:7} {cpu:6.2f} {run['peak_rss_mib']:5.0f}")
    print(f"{POLICY}: {jobs} jobs, {total:.2f} s of CPU in all, {jobs / total:.0f} jobs per CPU second, peak {peak:.0f} MiB")


main()
