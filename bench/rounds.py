#!/usr/bin/env python3
"""Does a round cost what changed, or what is there? The same 60 000 short jobs pass through clusters that hold
from a thousand to a hundred thousand long ones, half of them waiting. CPU per decision, set-up taken off.

Usage: bench/rounds.py"""

import tempfile

from common import machine, yard

SHORT = 60_000


def trace(file, long_jobs, short_jobs):
    """Long jobs at the start, then a short one every two seconds."""
    file.write("job_id,submit_s,gpus,duration_s\n")
    for job in range(long_jobs):
        file.write(f"long{job},0,1,400000\n")
    for job in range(short_jobs):
        file.write(f"short{job},{10 + 2 * job},1,20\n")
    file.flush()


def least(policy, long_jobs, short_jobs):
    """The least CPU of three runs: what else the machine does only ever adds."""
    return min(cpu(policy, long_jobs, short_jobs) for _ in range(3))


def cpu(policy, long_jobs, short_jobs):
    """CPU seconds and decisions of one run. Half of the long jobs fit."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        trace(file, long_jobs, short_jobs)
        cluster = f"gpu:{max(1, long_jobs // 2 // 8)}x8"
        result, _ = yard("sim", "--trace", file.name, "--cluster", cluster, "--policy", policy, "--round", "10s", "--overheads", "none")
        run = result["runs"][0]
        return run["cpu_s"], run["rounds"]


def main():
    print(machine())
    print(f"{'policy':10} {'long jobs':>10} {'decisions':>10} {'us each':>8}")
    for policy in ["fifo-fit", "sjf", "tiresias"]:
        for long_jobs in [1_000, 10_000, 100_000]:
            bare, few = least(policy, long_jobs, 0)
            full, many = least(policy, long_jobs, SHORT)
            decisions = many - few
            print(f"{policy:10} {long_jobs:10} {decisions:10} {(full - bare) / max(decisions, 1) * 1e6:8.1f}")


main()
