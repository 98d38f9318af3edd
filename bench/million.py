#!/usr/bin/env python3
"""A million generated jobs on 100 000 GPUs: spread over five days at a load of 0.9, then all within 17 hours, so
that hundreds of thousands wait.

Usage: bench/million.py [POLICY …]   (default: fifo-fit backfill tiresias)"""

import sys
import tempfile

from common import YARD, machine, timed, yard

POLICIES = sys.argv[1:] or ["fifo-fit", "backfill", "tiresias"]


def main():
    print(machine())
    for rate in ["7600", "60000"]:
        million(rate)


def million(rate):
    """A million jobs at so many an hour."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        text, cpu = timed(YARD, "trace", "gen", "--preset", "philly", "--jobs", "1000000", "--rate", rate, "--seed", "1")
        file.write(text)
        file.flush()
        print(f"{rate} jobs an hour; trace gen: {cpu:.1f} s of CPU")
        for policy in POLICIES:
            result, cpu = yard("sim", "--trace", file.name, "--cluster", "gpu:12500x8", "--policy", policy)
            run = result["runs"][0]
            print(f"{policy}: {run['finished']} jobs, simulated in {run['wall_s']:.1f} s, {cpu:.1f} s of CPU with reading "
                  f"the trace, {run['finished'] / cpu:.0f} jobs per CPU second, {run['rounds']} rounds, "
                  f"{run['preemptions']} preemptions, avg JCT {run['avg_jct_s'] / 3600:.2f} h, "
                  f"peak {run['peak_rss_mib']:.0f} MiB")


main()
