"""What a step is made of, and how long it takes: told by the scheduler, and told to it."""

from __future__ import annotations

import math
import threading
import time
from typing import Any, Callable, NamedTuple

from . import _env

# Times are told at most this often, as means since they were last told: each makes the scheduler think.
_TRAINED_S = 5.0


class Batch(NamedTuple):
    """What one step is made of on each device."""

    size: int
    """Examples at once."""
    accumulation: int
    """Times that gradients are kept and added up before the pass after which all devices agree on them."""


class Training:
    """The batch in force, and the means of what was measured with it."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        """Tell what is measured by `send`."""
        self._send = send
        self._lock = threading.Lock()
        self._told: Batch | None = None
        self._sums = (0.0, 0.0, 0)
        self._size: int | None = None
        self._noise: tuple[float, float] | None = None
        self._loss: float | None = None
        self._at = float("-inf")

    def batch(self, default: int) -> Batch:
        """The batch for the next step."""
        with self._lock:
            return self._told or Batch(_env.batch_size(default), _env.accumulation())

    def tune(self, body: dict[str, Any]) -> None:
        """The scheduler chose another batch."""
        local, extra = body.get("local"), body.get("extra")
        if isinstance(local, int) and isinstance(extra, int) and local > 0 and extra >= 0:
            with self._lock:
                self._told = Batch(local, extra)

    def report(
        self, size: int, step_s: float, grad_s: float, noise: tuple[float, float] | None, loss: float | None = None
    ) -> None:
        """Take one step's times into the means, and tell them now and then. What is no number is passed over."""
        if not (0 < grad_s < math.inf and 0 < step_s < math.inf):
            return
        with self._lock:
            if size != self._size:
                self._size, self._sums = size, (0.0, 0.0, 0)
            grads, steps, count = self._sums
            self._sums = (grads + grad_s, steps + max(step_s, grad_s), count + 1)
            if noise is not None and all(0 <= part < math.inf for part in noise):
                self._noise = noise
            if loss is not None and 0 <= loss < math.inf:
                self._loss = loss
            said = self._due()
        if said is not None:
            self._send({"trained": said})

    def _due(self) -> dict[str, Any] | None:
        moment = time.monotonic()
        if moment - self._at < _TRAINED_S:
            return None
        (grads, steps, count), self._at = self._sums, moment
        self._sums = (0.0, 0.0, 0)
        said = {"local": self._size, "grad_s": grads / count, "step_s": steps / count, "noise": self._noise}
        loss, self._loss = self._loss, None
        return said if loss is None else {**said, "loss": loss}
