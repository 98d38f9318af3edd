#!/usr/bin/env python3
"""Time per plan from a hundred to a million jobs: the market solver beside clarabel, through changes, packed, and inside
a whole simulation. Writes the table to stdout and the plot to bench/market.svg.

Usage: bench/market.py   (needs target/release/yard and target/release/examples/packed)"""

import math
import subprocess
import tempfile

from common import YARD, machine, timed, yard

SIZES = [(100, 4), (1_000, 4), (10_000, 4), (100_000, 4), (1_000_000, 4), (1_000_000, 8)]

# Beyond this clarabel takes minutes.
LP_JOBS_MAX = 100_000

PACKED = "target/release/examples/packed"


def main():
    print(machine())
    rows = [measure(jobs, kinds) for jobs, kinds in SIZES]
    table(rows)
    with open("bench/market.svg", "w", encoding="utf-8") as file:
        file.write(plot([row for row in rows if row["kinds"] == 4]))
    print()
    packed()
    print()
    simulation()


def measure(jobs, kinds):
    """All figures of one size. Times and memory of the plain solve come from a process that does nothing else."""
    size = ["bench", "market", "--jobs", str(jobs), "--kinds", str(kinds)]
    runs = [yard(*size) for _ in range(3)]
    figures, process_cpu = min(runs, key=lambda run: run[0]["wall_s"])
    more = ["--warm"] + (["--against", "lp"] if jobs <= LP_JOBS_MAX else [])
    other, _ = yard(*size, *more)
    return {**other, **figures, "process_cpu_s": process_cpu}


def table(rows):
    head = ["jobs", "kinds", "ms", "gap", "passes", "CPU s", "MiB", "warm ms", "warm gap", "clarabel ms", "ratio", "optimum is"]
    print(("{:>8} {:>5} {:>9} {:>8} {:>6} {:>6} {:>5} {:>8} {:>8} {:>11} {:>6}  {}").format(*head))
    for row in rows:
        lp = row.get("lp_wall_s")
        inside = lp and row["objective"] <= row["lp_objective"] * (1 + 1e-6) and row["lp_objective"] <= row["upper_bound"] * (1 + 1e-6)
        print(f"{row['jobs']:8} {row['kinds']:5} {row['wall_s'] * 1e3:9.2f} {row['gap']:8.1e} {row['rounds']:6} "
              f"{row['process_cpu_s']:6.2f} {row['peak_rss_mib']:5.0f} {row['warm_wall_s'] * 1e3:8.2f} {row['warm_gap']:8.1e} "
              + (f"{lp * 1e3:11.1f} {lp / row['wall_s']:6.0f}  {'inside' if inside else 'OUTSIDE'}" if lp else f"{'-':>11} {'-':>6}  -"))


def packed():
    """Pairs of jobs on one device: 65 536 jobs of 26 models on three kinds."""
    print(subprocess.run([PACKED, "65536", "26", "3"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip())


# Jobs per CPU second of Gavel's own simulator on these jobs, and what is wanted: a thousand times as
# many, ten thousand at the least.
GAVEL = 39
WANTED = [1_000 * GAVEL, 10_000]


def simulation():
    """A point of Gavel's Fig. 8, all of it by max-min fairness solved anew as jobs come and go."""
    with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
        trace, _ = timed(YARD, "trace", "gen", "--preset", "gavel", "--jobs", "9000", "--rate", "5.6", "--seed", "0")
        file.write(singles(trace))
        file.flush()
        for name, rounds in [("rounds as Gavel's", ["--compat", "gavel"]), ("our own rounds", [])]:
            result, cpu = yard("sim", "--trace", file.name, "--cluster", "v100:36,p100:36,k80:36", *rounds, "--policy", "max-min")
            speed(name, result["runs"][0], cpu)


def speed(name, run, cpu):
    """A whole simulation beside what is wanted of it."""
    rate = run["finished"] / cpu
    print(f"whole simulation, {name}: {run['finished']} jobs, {run['rounds']} rounds, {run['plans']} plans, "
          f"{run['migrations'] + run['preemptions']} stops, avg JCT {run['avg_jct_s'] / 3600:.2f} h, {cpu:.2f} s of CPU, "
          f"{run['plan_s']:.2f} s in plans")
    print(f"  {rate:.0f} jobs per CPU second, {rate / GAVEL:.0f} times the original's {GAVEL}; "
          + ", ".join(f"wanted > {wanted}: {'met' if rate > wanted else 'MISSED'}" for wanted in WANTED))


def singles(trace):
    """The same jobs on one device each, as in that figure."""
    lines = trace.splitlines()
    start = next(at for at, line in enumerate(lines) if not line.startswith("#"))
    gpus = lines[start].split(",").index("gpus")
    rows = [line.split(",") for line in lines[start + 1:]]
    for row in rows:
        row[gpus] = "1"
    return "\n".join(lines[:start + 1] + [",".join(row) for row in rows]) + "\n"


# The plot: both axes logarithmic. Colours are read in light and dark.

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 400, 72, 120, 24, 52

STYLE = """text { font: 13px system-ui, sans-serif; fill: #333 }
.grid { stroke: #8886; stroke-width: 1 }
.line { fill: none; stroke-width: 2.5 }
.a { stroke: #0b6bcb } .a-dot, .a-text { fill: #0b6bcb } .b { stroke: #c2410c } .b-dot, .b-text { fill: #c2410c }
.c { stroke: #15803d } .c-dot, .c-text { fill: #15803d }
@media (prefers-color-scheme: dark) { text { fill: #ddd } .a { stroke: #6cb4ff } .a-dot, .a-text { fill: #6cb4ff }
.b { stroke: #ff9d66 } .b-dot, .b-text { fill: #ff9d66 } .c { stroke: #6ddb93 } .c-dot, .c-text { fill: #6ddb93 } }"""


def plot(rows):
    """Seconds by jobs, one line a solver."""
    lines = [("b", "clarabel", [(row["jobs"], row["lp_wall_s"]) for row in rows if "lp_wall_s" in row]),
             ("a", "yard", [(row["jobs"], row["wall_s"]) for row in rows]),
             ("c", "yard, 1 % new", [(row["jobs"], row["warm_wall_s"]) for row in rows])]
    seconds = [value for _, _, points in lines for _, value in points]
    low, high = math.floor(math.log10(min(seconds))), math.ceil(math.log10(max(seconds)))

    def x(jobs):
        return LEFT + (math.log10(jobs) - 2) / 4 * (WIDTH - LEFT - RIGHT)

    def y(value):
        return HEIGHT - BOTTOM - (math.log10(value) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
             f'aria-label="Seconds per plan by number of jobs">', f"<style>{STYLE}</style>"]
    for power in range(low, high + 1):
        at = y(10 ** power)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'
                     f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{named(power)}</text>')
    for power in range(2, 7):
        at = x(10 ** power)
        parts.append(f'<line class="grid" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
                     f'<text x="{at:.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{f"{10 ** power:,}".replace(",", " ")}</text>')
    for name, label, points in lines:
        path = " ".join(f"{x(jobs):.1f},{y(value):.1f}" for jobs, value in points)
        parts.append(f'<polyline class="line {name}" points="{path}"/>')
        parts += [f'<circle class="{name}-dot" cx="{x(jobs):.1f}" cy="{y(value):.1f}" r="4"/>' for jobs, value in points]
        jobs, value = points[-1]
        parts.append(f'<text class="{name}-text" x="{x(jobs) + 10:.1f}" y="{y(value) + 4:.1f}">{label}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">jobs (four kinds of devices)</text>')
    return "\n".join(parts) + "\n</svg>\n"


def named(power):
    """A power of ten of seconds as people say it."""
    unit, shift = ("s", 0) if power >= 0 else ("ms", 3) if power >= -3 else ("µs", 6)
    return f"{10 ** (power + shift)} {unit}"


main()
