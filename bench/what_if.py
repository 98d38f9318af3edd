#!/usr/bin/env python3
"""What a question costs: how long the first answer to a what-if takes, beside what is wanted of it, then the answers with
other ways to ask and with intervals, in plans of the same policy.

Usage: bench/what_if.py [OPTION of yard bench what-if …]   ($YARD names another binary than target/release/yard)"""

import sys

from common import machine, yard

WANTED_MS = 200.0


def main():
    if "-h" in sys.argv or "--help" in sys.argv:
        return print(__doc__)
    print(machine())
    figures, _ = yard("bench", "what-if", *sys.argv[1:])
    print(f"{'policy':10} {'answer':14} {'p50 ms':>8} {'max ms':>8} {'in plans':>8} {'cut':>4}")
    for row in figures["policies"]:
        for key, words in [("first", "first"), ("ways", "all ways"), ("all", "with intervals")]:
            print(line(row, row[key], words, key == "first"))
    paces(figures["policies"])


def line(row, waits, words, judged):
    plans = waits["p50_ms"] / row["plan_ms"] if row["plan_ms"] else float("nan")
    verdict = f"  wanted < {WANTED_MS:.0f}: {'met' if waits['p50_ms'] < WANTED_MS else 'MISSED'}" if judged else ""
    return f"{row['policy']:10} {words:14} {waits['p50_ms']:8.1f} {waits['max_ms']:8.1f} {plans:8.0f} {waits['cut']:4}{verdict}"


def paces(rows):
    """Scheduling alone and beside ten who ask, where that was measured (--load)."""
    rows = [row for row in rows if row["scheduling"]]
    if rows:
        print(f"{'policy':10} {'':8} {'submit p50':>10} {'p99 ms':>8} {'plan ms':>8} {'round ms':>8} {'answers':>8}")
    for row in rows:
        for words, pace in zip(["alone", "ten ask"], row["scheduling"]):
            times = [pace["submit_p50_ms"], pace["submit_p99_ms"], pace["plan_mean_ms"], pace["round_mean_ms"]]
            shown = " ".join("       –" if value is None else f"{value:8.1f}" for value in times)
            print(f"{row['policy']:10} {words:8}   {shown} {pace['answers']:8}")


main()
