#!/usr/bin/env python3
"""The same trace by a plain loop, as the papers' simulators work: at each event all jobs are sorted and placed
anew. Run beside yard on one ITP cluster, it gives a ratio that does not depend on the machine, and a check: the
average completion times must agree.

Usage: bench/reference.py [CLUSTER_NUMBER]   (default: 06)"""

import csv
import math
import sys
import tempfile
import time

from common import YARD, machine, timed, yard

NUMBER = sys.argv[1] if len(sys.argv) > 1 else "06"
TRACE = f"../shared/data/traces/elasticflow/raw-traces.tar.gz#cluster{NUMBER}"


def srtf(jobs, gpus):
    """Shortest remaining time first, preemptive, GPUs counted; average completion time."""
    now, at, active, done = 0.0, 0, [], []
    while at < len(jobs) or active:
        arrival = jobs[at]["submit"] if at < len(jobs) else math.inf
        end = min((now + job["left"] for job in active if job["runs"]), default=math.inf)
        then = min(arrival, end)
        for job in active:
            if job["runs"]:
                job["left"] -= then - now
        now = then
        done += [now - job["submit"] for job in active if job["left"] <= 1e-9]
        active = [job for job in active if job["left"] > 1e-9]
        while at < len(jobs) and jobs[at]["submit"] <= now:
            active.append(jobs[at])
            at += 1
        active.sort(key=lambda job: (job["left"], job["id"]))
        free = gpus
        for job in active:
            job["runs"] = job["gpus"] <= free
            free -= job["gpus"] if job["runs"] else 0
    return sum(done) / len(done)


def main():
    print(machine())
    stats, _ = yard("trace", "show", TRACE)
    nodes = max(math.ceil(stats["mean_gpus_demanded"] / 0.9 / 8), math.ceil(stats["gpus"]["max"] / 8))
    text, _ = timed(YARD, "trace", "convert", TRACE)
    rows = csv.DictReader(line for line in text.splitlines() if not line.startswith("#"))
    jobs = [{"id": at, "submit": float(row["submit_s"]), "gpus": int(row["gpus"]), "left": float(row["duration_s"]),
             "runs": False} for at, row in enumerate(rows)]
    before = time.process_time()
    plain = srtf(jobs, nodes * 8)
    loop = time.process_time() - before
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write(text)
        file.flush()
        result, _ = yard("sim", "--trace", file.name, "--cluster", f"gpu:{nodes}x8", "--policy", "srtf", "--round", "0",
                         "--overheads", "none", "--placer", "count")
    run = result["runs"][0]
    print(f"cluster {NUMBER}, {len(jobs)} jobs on {nodes * 8} GPUs, srtf by event, no costs")
    print(f"plain loop: {loop:.2f} s of CPU, avg JCT {plain:.3f} s")
    print(f"yard:       {run['cpu_s']:.3f} s of CPU, avg JCT {run['avg_jct_s']:.3f} s")
    print(f"ratio:      {loop / run['cpu_s']:.0f}")
    assert abs(plain - run["avg_jct_s"]) < 1e-3 * plain, "the two disagree"


main()
