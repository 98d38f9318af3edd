"""The training loop: it resumes, reports, saves and stops, and its body is called once for each step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

from . import _env, _session
from ._checkpoint import Checkpoints, Saved

# How long a rank that does not write waits for the one that does: most of the time there is, since it must still
# get to exit by itself, or this where nobody said how long there is.
_WAIT_S = 30.0
_WAIT_PART = 0.8


def steps(
    total: int | None,
    *,
    save: Callable[[Path], object] | None = None,
    load: Callable[[Path], object] | None = None,
    every: int | None = None,
    every_s: float | None = None,
    directory: str | Path | None = None,
    per_rank: bool = False,
    agree: Callable[[bool], bool] | None = None,
) -> Iterator[int]:
    """Count the steps that are still to be done, up to `total` (`None`: without end).

    `save(path)` writes all that the next steps depend on to `path`, as a file or a folder; `load(path)` reads it.
    Checkpoints are taken when the job is told to stop, at the end, and also every `every` steps or `every_s`
    seconds. They lie in `directory`, else where Switchyard says; where there is neither, none are taken.

    Rank 0 saves for all ranks; with `per_rank` each saves its own. `agree` is for gangs outside Switchyard, where
    a signal may reach ranks between different steps: it is called before each step with whether this rank wants
    to stop, and returns whether any does (`switchyard.torch.agree`). Switchyard itself sees to it that ranks agree.

    When the loop ends early, `switchyard.stopped()` is true, and the program should exit with 0.
    """
    if total is not None and total < 0:
        raise ValueError(f"total is {total}; give the number of steps, or None for a loop without end")
    if (save is None) != (load is None):
        raise ValueError("save and load belong together; give both or neither")
    if every is not None and every < 1:
        raise ValueError(f"every is {every}; give a number of steps above 0, or None")
    if per_rank and every_s is not None:
        raise ValueError("ranks that save their own must do so at the same steps; give every instead of every_s")
    folder = Path(directory) if directory is not None else _env.checkpoint_dir()
    saver = None
    if save is not None and load is not None and folder is not None:
        saver = _Saver(Checkpoints(folder, per_rank), save, load, every, every_s)
    return _run(total, saver, agree)


def _run(total: int | None, saver: _Saver | None, agree: Callable[[bool], bool] | None) -> Iterator[int]:
    session = _session.current()
    session.catch_signal()
    done = saver.resume() if saver else 0
    session.progress(done, total, now=True)
    while total is None or done < total:
        if _stops(session, done, agree):
            session.progress(done, total, now=True)
            if saver:
                saver.last(done)
            return
        yield done
        done += 1
        session.progress(done, total)
        if saver and done != total:
            saver.maybe(done)
    session.gate.finish(done)
    if saver:
        saver.end(done)


def _stops(session: _session.Session, step: int, agree: Callable[[bool], bool] | None) -> bool:
    if agree is None or _env.socket_path() is not None:
        return session.gate.arrive(step)
    if agree(session.gate.told() is not None):
        session.gate.end("signal")
        return True
    return False


class _Saver:
    """When and what to save."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        save: Callable[[Path], object],
        load: Callable[[Path], object],
        every: int | None,
        every_s: float | None,
    ) -> None:
        self._checkpoints = checkpoints
        self._save = save
        self._load = load
        self._every = every
        self._every_s = every_s
        self._last: Saved | None = None
        self._last_at = time.monotonic()

    def resume(self) -> int:
        """How many steps were done and are safe."""
        self._last = self._checkpoints.load(self._load)
        self._last_at = time.monotonic()
        return self._last.step if self._last else 0

    def maybe(self, step: int) -> None:
        """Save if it is time."""
        by_steps = self._every is not None and step % self._every == 0
        by_time = self._every_s is not None and time.monotonic() - self._last_at >= self._every_s
        if by_steps or by_time:
            self._write(step)

    def end(self, step: int) -> None:
        """Save, for all steps are done."""
        self._write(step)

    def last(self, step: int) -> None:
        """Save, for the job stops here. A rank that does not write says so too, once it is true."""
        if self._checkpoints.writes:
            self._write(step)
            return
        told = _session.current().gate.told()
        wait_s = _WAIT_PART * told.grace_s if told is not None and told.grace_s is not None else _WAIT_S
        if self._checkpoints.wait_for(step, wait_s):
            _session.current().checkpointed(step, 0.0)

    def _write(self, step: int) -> None:
        if not self._checkpoints.writes:
            return
        if self._last is None or self._last.step != step:
            self._last = self._checkpoints.save(step, self._save)
            self._last_at = time.monotonic()
        _session.current().checkpointed(step, self._last.seconds)
