"""Where a process may stop: the decision alone, without sockets.

The training thread passes the gate before each step. The reader thread may close it (`hold`), which at once
names the first step that this process could still leave out, and later open it with the step that all ranks
agreed on (`stop`). So ranks that wait for each other inside a step are never asked to stop in the middle of it:
whoever has not begun a step that another is in goes on and does it.
"""

from __future__ import annotations

import threading
import time
from typing import Callable, NamedTuple

# How long a held process waits after its agent went away. An agent that restarts is back in seconds and holds it
# anew; one that does not come back, or has forgotten, must not hold a job for ever.
PATIENCE_S = 30.0

# How often a held process looks whether a signal came: a signal handler must not take the lock.
_LOOK_S = 0.05


class Stop(NamedTuple):
    """That the process was told to stop."""

    at: int | None
    """The step not to begin; `None`: whichever is next."""
    why: str
    grace_s: float | None
    """How long it has to save before it is killed, where that is known."""


class Gate:
    """Whether the next step may begin. `answer` is called with the boundary when a hold can be answered."""

    def __init__(self, answer: Callable[[int], None]) -> None:
        """Open."""
        self._answer = answer
        self._changed = threading.Condition(threading.Lock())
        self._step: int | None = None
        self._inside = False
        self._held = False
        self._owes_answer = False
        self._stop: Stop | None = None
        self._over = False
        self._lost_at: float | None = None
        self._signal: str | None = None

    # The training thread.

    def arrive(self, step: int) -> bool:
        """Whether to stop instead of beginning `step`. Waits while the gate is held."""
        with self._changed:
            if self._over:
                return True
            self._step, self._inside = step, False
            self._answer_if_owed(step)
            while self._waits():
                self._changed.wait(_LOOK_S)
            self._held = False
            self._over = self._ends_before(step)
            self._inside = not self._over
            return self._over

    def finish(self, step: int) -> None:
        """There are no more steps: `step` are done."""
        with self._changed:
            self._step, self._inside = step, False
            self._answer_if_owed(step)

    def end(self, why: str) -> None:
        """Stop here and now, whatever was agreed: the ranks agreed in another way."""
        with self._changed:
            self._stop, self._over, self._inside = self._stop or Stop(None, why, None), True, False

    def is_over(self) -> bool:
        """Whether the process was told to stop and did."""
        return self._over

    def told(self) -> Stop | None:
        """What it was told, if it was told to stop."""
        if self._stop is None and self._signal is not None:
            return Stop(None, self._signal, None)
        return self._stop

    # The reader thread.

    def hold(self) -> None:
        """Begin no step until told to stop, and answer where that could be."""
        with self._changed:
            self._held, self._lost_at = not self._over, None
            boundary = self._boundary()
            self._owes_answer = boundary is None
            if boundary is not None:
                self._answer(boundary)

    def stop(self, told: Stop) -> None:
        """Do not begin step `told.at`; steps before it are still to be done."""
        with self._changed:
            self._stop, self._held, self._lost_at = told, False, None
            self._changed.notify_all()

    def lost(self) -> None:
        """The agent is away."""
        with self._changed:
            self._lost_at = time.monotonic()

    # A signal handler, which interrupts the training thread anywhere: no lock.

    def signalled(self, why: str) -> None:
        """A signal asked to stop."""
        self._signal = why

    def _waits(self) -> bool:
        given_up = self._lost_at is not None and time.monotonic() - self._lost_at > PATIENCE_S
        return self._held and self._signal is None and not given_up

    def _ends_before(self, step: int) -> bool:
        if self._signal is not None:
            return True
        return self._stop is not None and (self._stop.at is None or step >= self._stop.at)

    def _boundary(self) -> int | None:
        """The first step that need not be begun. `None` while it is not known where the loop resumes."""
        if self._step is None:
            return None
        first = self._step + 1 if self._inside else self._step
        agreed = self._stop.at if self._stop is not None and not self._over else None
        return first if agreed is None else max(first, agreed)

    def _answer_if_owed(self, step: int) -> None:
        if self._owes_answer:
            self._owes_answer = False
            self._answer(step)
