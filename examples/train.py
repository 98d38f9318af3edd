#!/usr/bin/env python3
"""A real training of a tiny model: a line through noisy points in many dimensions, by stochastic gradient descent.

It uses numpy where that is installed and plain Python where not. A run that was stopped and resumed prints the same
losses as one that was not, because the state of the random numbers is part of the checkpoint.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import time
from pathlib import Path
from typing import Any

import switchyard

numpy: Any = importlib.import_module("numpy") if importlib.util.find_spec("numpy") else None

FEATURES = 32
TRUTH = [(-1) ** i / (1 + i) for i in range(FEATURES)]


def main() -> None:
    """Train."""
    options = read_options()
    model = Model(rate=0.05)
    batch = switchyard.batch_size(options.batch_size)
    for step in switchyard.steps(options.steps, save=model.save, load=model.load, every_s=options.every_s):
        loss = model.step(batch)
        time.sleep(options.step_s)
        if (step + 1) % 10 == 0 or step + 1 == options.steps:
            print(f"step {step + 1} of {options.steps}: loss {loss:.5f}{speed()}", flush=True)
    if switchyard.stopped():
        print(f"saved and stopped: {switchyard.stop_reason()}", flush=True)


class Model:
    """Weights, and the random numbers that examples are drawn with."""

    def __init__(self, rate: float) -> None:
        """Nothing learned yet."""
        self.rate = rate
        self.weights = [0.0] * FEATURES
        self.random = random.Random(1)

    def step(self, batch: int) -> float:
        """Learn from a batch of examples; the mean squared error before that."""
        inputs = [[self.random.gauss(0, 1) for _ in range(FEATURES)] for _ in range(batch)]
        targets = [dot(TRUTH, x) + self.random.gauss(0, 0.1) for x in inputs]
        errors, gradient = gradient_of(self.weights, inputs, targets)
        self.weights = [w - self.rate * g for w, g in zip(self.weights, gradient)]
        return sum(error * error for error in errors) / batch

    def save(self, path: Path) -> None:
        """Write all that the next steps depend on."""
        path.write_text(json.dumps({"weights": self.weights, "random": self.random.getstate()}))

    def load(self, path: Path) -> None:
        """Read it."""
        state = json.loads(path.read_text())
        version, numbers, gauss = state["random"]
        self.weights = state["weights"]
        self.random.setstate((version, tuple(numbers), gauss))


def gradient_of(
    weights: list[float], inputs: list[list[float]], targets: list[float]
) -> tuple[list[float], list[float]]:
    """The error of each example, and the gradient of their mean square."""
    if numpy is not None:
        matrix = numpy.array(inputs)
        error = matrix @ numpy.array(weights) - numpy.array(targets)
        return error.tolist(), (2 / len(inputs) * (matrix.T @ error)).tolist()
    errors = [dot(weights, x) - y for x, y in zip(inputs, targets)]
    return errors, [2 / len(inputs) * dot(errors, column) for column in zip(*inputs)]


def dot(a: list[float], b: list[float] | tuple[float, ...]) -> float:
    """The inner product."""
    return sum(x * y for x, y in zip(a, b))


def speed() -> str:
    """Steps a second, where that is known yet."""
    rate = switchyard.throughput()
    return "" if rate is None else f", {rate:.1f} steps/s"


def read_options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description="Train a tiny model, with checkpoints.")
    parser.add_argument("--steps", type=int, default=300, help="steps to train (default: 300)")
    parser.add_argument("--batch-size", type=int, default=64, help="examples a step (default: 64)")
    parser.add_argument("--step-s", type=float, default=0.1, help="seconds to wait in each step (default: 0.1)")
    parser.add_argument("--every-s", type=float, help="also save after every so many seconds")
    return parser.parse_args()


if __name__ == "__main__":
    main()
