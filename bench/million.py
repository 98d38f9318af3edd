#!/usr/bin/env python3
"""A million generated jobs on 100 000 GPUs at a load of 0.9.

Usage: bench/million.py [POLICY …]   (default: fifo-fit backfill tiresias)"""

import sys
import tempfile

from common import YARD, machine, timed, yard

POLICIES = sys.argv[1:] or ["fifo-fit", "backfill", "tiresias"]


def main():
    print(machine())
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        text, cpu = timed(YARD, "trace", "gen", "--preset", "philly", "--jobs", "1000000", "--rate", "7600", "--seed", "1")
        file.write(text)
        file.flush()
        print(f"trace gen: {cpu:.1f} s of CPU")
        for policy in POLICIES:
            result, cpu = yard("sim", "--trace", file.name, "--cluster", "gpu:12500x8", "--policy", policy)
            run = result["runs"][0]
            print(f"{policy}: {run['finished']} jobs, simulated in {run['wall_s']:.1f} s, {cpu:.1f} s of CPU with reading "
                  f"the trace, {run['finished'] / cpu:.0f} jobs per CPU second, {run['rounds']} rounds, "
                  f"{run['preemptions']} preemptions, avg JCT {run['avg_jct_s'] / 3600:.2f} h, "
                  f"peak {run['peak_rss_mib']:.0f} MiB")


main()
