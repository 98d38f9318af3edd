#!/usr/bin/env python3
"""The live cluster: durable submissions, rounds, trivial jobs, and memory, each beside what is wanted of it.

Usage: bench/live.py [--json] [OPTION of yard bench live …]
  --json   print the figures as JSON instead of a table
$YARD names another binary than target/release/yard."""

import json
import os
import subprocess
import sys
import time

from common import YARD, machine

# What is shown: key, words, unit, and what is wanted, at least (>) or at most (<).
ROWS = [
    ("submissions_per_s", "durable submissions", "/s", "> 2000"),
    ("submit_p50_ms", "answer to a submission, median", "ms", ""),
    ("submit_p99_ms", "answer to a submission, 99 of 100", "ms", ""),
    ("fsyncs_per_s", "fsyncs of the same disk, one after the other", "/s", ""),
    ("submissions_per_fsync", "submissions for each such fsync", "", ""),
    ("grants_per_round", "grants in a round", "", ""),
    ("round_to_last_grant_ms", "first order of a round to its last grant, longest", "ms", ""),
    ("round_mean_ms", "the server's own time for a round", "ms", ""),
    ("plan_mean_ms", "the policy's time for a plan", "ms", ""),
    ("commit_mean_ms", "a commit of the journal", "ms", ""),
    ("ended_per_s", "jobs ended over all agents", "/s", ""),
    ("server_rss_mib", "memory of the server", "MiB", "< 500"),
    ("server_peak_rss_mib", "memory of the server, at most", "MiB", "< 500"),
    ("trivial_per_s", "trivial jobs run to the end on one agent", "/s", "> 1000"),
    ("spawns_per_s", "the same processes, started by a bare loop", "/s", ""),
    ("agent_rss_mib", "memory of an idle agent", "MiB", "< 20"),
    ("keeper_rss_mib", "memory of its keeper", "MiB", ""),
]


def spawns_per_s(slots, seconds=2.0):
    """How many processes that do nothing this machine runs in a second, so many at a time: what no scheduler beats."""
    begun, running, ended = time.monotonic(), 0, 0
    while time.monotonic() - begun < seconds:
        while running < slots:
            os.posix_spawn("/bin/true", ["true"], {})
            running += 1
        os.wait()
        running, ended = running - 1, ended + 1
    took = time.monotonic() - begun
    for _ in range(running):
        os.wait()
    return ended / took


def verdict(value, wanted):
    """Whether a figure is as wanted; empty where nothing is wanted."""
    if not wanted or value is None:
        return ""
    sign, bound = wanted.split()
    met = value > float(bound) if sign == ">" else value < float(bound)
    return "met" if met else "MISSED"


def table(figures):
    """The figures for people."""
    lines = [machine()]
    lines.append(f"{figures['agents']} agents, {figures['devices']} devices, {figures['jobs']} jobs, {figures['clients']} clients")
    lines.append(f"{'':50} {'':>9} {'':4} {'wanted':>8}")
    for key, words, unit, wanted in ROWS:
        value = figures[key]
        shown = "–" if value is None else f"{value:.1f}"
        lines.append(f"{words:50} {shown:>9} {unit:4} {wanted:>8} {verdict(value, wanted)}".rstrip())
    return "\n".join(lines)


def main():
    if "-h" in sys.argv or "--help" in sys.argv:
        print(__doc__)
        return
    options = [option for option in sys.argv[1:] if option != "--json"]
    command = [os.environ.get("YARD", YARD), "bench", "live", *options, "-o", "json"]
    figures = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    figures["spawns_per_s"] = spawns_per_s(figures["trivial_slots"])
    print(json.dumps(figures, indent=2) if "--json" in sys.argv else table(figures))


main()
