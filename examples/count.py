#!/usr/bin/env python3
"""The smallest job there is: it counts, and can be stopped and moved at any moment without losing its place.

Its checkpoint holds a line for each step, with the start and the node that did it. At the end it checks that each
step is there exactly once, and fails if not.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import switchyard

log: list[dict[str, object]] = []


def main() -> int:
    """Count."""
    options = read_options()
    node = os.environ.get("YARD_NODE", "here")
    for step in switchyard.steps(options.steps, save=save, load=load, every=options.every):
        time.sleep(options.step_s)
        log.append({"step": step, "instance": switchyard.instance(), "node": node})
        print(f"step {step + 1} of {options.steps} (start {switchyard.instance()}, {node})", flush=True)
    if switchyard.stopped():
        print(f"stopped after {len(log)} steps: {switchyard.stop_reason()}", flush=True)
        return 0
    return 0 if each_step_once(options.steps) else 1


def each_step_once(steps: int) -> bool:
    """Say whether nothing was lost or done twice."""
    whole = [entry["step"] for entry in log] == list(range(steps))
    places = sorted({str(entry["node"]) for entry in log})
    print(f"done: each of {steps} steps once, on {', '.join(places)}" if whole else "a step is missing or twice there")
    return whole


def save(path: Path) -> None:
    """Write all that the next steps depend on."""
    path.write_text(json.dumps(log))


def load(path: Path) -> None:
    """Read it."""
    log[:] = json.loads(path.read_text())


def read_options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description="Count, with checkpoints.")
    parser.add_argument("--steps", type=int, default=100, help="how far to count (default: 100)")
    parser.add_argument("--step-s", type=float, default=0.2, help="seconds a step takes (default: 0.2)")
    parser.add_argument("--every", type=int, help="also save after every so many steps")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
