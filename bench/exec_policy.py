#!/usr/bin/env python3
"""What a decision costs that a Python program makes (`--policy exec:`), beside the same policy built in: 10 000
decisions or more of each example, on a cluster where hundreds of jobs wait.

Usage: bench/exec_policy.py [--wanted SECONDS]"""

import argparse
import os
import pathlib
import tempfile

from common import YARD, machine, timed, yard

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples" / "policies"

# A policy that is asked at each event has two decisions a job; the others one a round.
CASES = [("fifo", "5500", "60", "0s"), ("srtf", "5500", "60", "0s"), ("las", "800", "60", "60s"), ("isolated", "5500", "60", "60s")]


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--wanted", type=float, default=60.0, help="seconds that 10 000 decisions may take [60]")
    wanted = options.parse_args().wanted
    os.environ["PYTHONPATH"] = str(ROOT / "python" / "src")
    print(machine())
    print(f"{'policy':10} {'decisions':>10} {'seconds':>8} {'per 10 000':>11} {'built in':>9}  same events")
    for policy, jobs, rate, round_ in CASES:
        row(policy, jobs, rate, round_, wanted)


def row(policy, jobs, rate, round_, wanted):
    """One policy, as a program and built in."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        file.write(timed(YARD, "trace", "gen", "--preset", "philly", "--jobs", jobs, "--rate", rate, "--seed", "3")[0])
        file.flush()
        where = ("--trace", file.name, "--cluster", "gpu:16x8", "--round", round_)
        ours = yard("sim", *where, "--policy", f"exec:{EXAMPLES / policy}.py")[0]["runs"][0]
        built_in = yard("sim", *where, "--policy", policy)[0]["runs"][0]
    each = ours["plan_s"] / ours["plans"] * 10_000
    missed = "" if each <= wanted else f"  MISSED: {wanted:.0f} s wanted"
    same = "yes" if ours["events_sha256"] == built_in["events_sha256"] else "NO"
    print(f"{policy:10} {ours['plans']:10} {ours['plan_s']:8.1f} {each:9.1f} s {built_in['plan_s']:7.2f} s  {same}{missed}")


main()
