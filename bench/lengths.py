#!/usr/bin/env python3
"""What it costs not to know how long jobs are: each policy with lengths known, up to three times off, predicted from jobs
of the same user, name and size that ended before, and unknown. Average and 99th percentile of completion times, as parts of
those of srtf that knows the lengths, on traces like Microsoft's Philly, on clusters of Microsoft's ITP trace and on Sia's
workloads; geometric means over the traces. The last block of each kind is of traces on which nothing was chosen.

Usage: bench/lengths.py [KIND [LENGTHS [POLICY[,POLICY…]]]]   (needs target/release/yard and ../shared/data)"""

import math
import pathlib
import sys
import tempfile

from common import YARD, machine, timed, yard

DATA = pathlib.Path("../shared/data")
POLICIES = ["market", "srtf", "gittins", "las", "tiresias", "backfill", "sia"]
LENGTHS = ["known", "noisy:3", "predicted", "unknown"]
LOAD = 0.9
# The last list of each is held out.
KINDS = {
    "philly": ([1, 2], [3, 4]),
    "itp": ([1, 2, 5, 6, 9, 10], [3, 4, 7, 8]),
    "sia": (["philly/workload-2", "saturn/workload-3"], ["philly/workload-5", "saturn/workload-6"]),
}


def main():
    asked = sys.argv[1:] + [None] * 3
    kinds = [asked[0]] if asked[0] else list(KINDS)
    lengths = asked[1].split(",") if asked[1] else LENGTHS
    policies = asked[2].split(",") if asked[2] else POLICIES
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            for held_out, names in enumerate(KINDS[kind]):
                table(kind, names, held_out, lengths, policies, pathlib.Path(folder))


def table(kind, names, held_out, lengths, policies, folder):
    traces = [ready(kind, name, folder) for name in names]
    base = [run(trace, "known", ["srtf"])["srtf"] for trace in traces]
    print(f"{kind}, {', '.join(map(str, names))}{' (held out)' if held_out else ''}: average and p99 completion, as parts of "
          "srtf's with known lengths; preemptions for each job")
    print(f"{'policy':12} " + " ".join(f"{name:>20}" for name in lengths))
    rows = {policy: [] for policy in policies}
    for told in lengths:
        runs = [run(trace, told, policies) for trace in traces]
        for policy in policies:
            own = [figures[policy] for figures in runs]
            parts = [ratio(own, base, key) for key in ["avg_jct_s", "p99_jct_s"]]
            stops = sum(figures["preemptions"] / figures["jobs"] for figures in own) / len(own)
            rows[policy].append(f"{parts[0]:7.3f} {parts[1]:7.3f} {stops:4.1f}")
    for policy, cells in rows.items():
        print(f"{policy:12} " + " ".join(f"{cell:>20}" for cell in cells), flush=True)
    for told in [told for told in lengths if told in ["predicted", "unknown"]]:
        averages = {policy: float(cells[lengths.index(told)].split()[0]) for policy, cells in rows.items()}
        for other in [other for other in ["gittins", "tiresias"] if other in averages and "market" in averages]:
            if averages["market"] > averages[other]:
                print(f"MISSED: lengths {told}: market {averages['market']:.3f}, {other} {averages[other]:.3f}")


def ready(kind, name, folder):
    """The options of a run of this trace."""
    if kind == "sia":
        return ["--trace", str(DATA / f"sia/workloads/{name}.csv"), "--cluster", "t4:6x4,rtx:3x8,a100:2x8",
                "--throughputs", str(DATA / "sia/profiles"), "--belief", "learned", "--round", "60s"]
    if kind == "itp":
        trace = f"{DATA}/traces/elasticflow/raw-traces.tar.gz#cluster{name:02}"
    else:
        trace = str(folder / f"{kind}-{name}.csv")
        out, _ = timed(YARD, "trace", "gen", "--jobs", "3000", "--rate", "40", "--preset", kind, "--seed", str(name))
        pathlib.Path(trace).write_text(out, encoding="utf-8")
        # Tails of weeks: a mean over the whole time would say little of how full it is.
        return ["--trace", trace, "--cluster", "gpu:12x8", "--round", "360s"]
    stats, _ = yard("trace", "show", trace)
    nodes = max(math.ceil(stats["mean_gpus_demanded"] / LOAD / 8), math.ceil(stats["gpus"]["max"] / 8))
    return ["--trace", trace, "--cluster", f"gpu:{nodes}x8", "--round", "360s"]


def run(options, told, policies):
    """The figures of each policy. Rounds of one length for all; backfill decides at events, as it always does."""
    result, _ = yard("sim", *options, "--lengths", told, "--policy", ",".join(policies))
    return dict(zip(policies, result["runs"]))


def ratio(ours, theirs, key):
    return math.exp(sum(math.log(a[key] / b[key]) for a, b in zip(ours, theirs)) / len(ours))


if __name__ == "__main__":
    main()
