"""The one session of this process: its link to the agent, its gate and its signal handler.

It begins when it is first used, not at import, so that a program that only imports the package is left alone.
A forked child (a data loader's worker) has no session: it is not a rank.
"""

from __future__ import annotations

import atexit
import collections
import os
import signal
import threading
import time
from types import FrameType
from typing import Any, Callable, Optional, Union

from . import _env
from ._gate import Gate, Stop
from ._link import Link, Message
from ._training import Training

# Progress is told at most this often unless the agent says otherwise, so that short steps cost nothing.
_PROGRESS_S = 0.2

Handler = Union[Callable[[int, Optional[FrameType]], Any], int, None]


class Session:
    """What this process has to do with a scheduler."""

    def __init__(self, path: str | None) -> None:
        """Connect to the agent at `path`, if there is one."""
        self.gate = Gate(self._answer)
        self.training = Training(self._send)
        self._progress: Message | None = None
        self._progress_at = float("-inf")
        self._every_s = _env.report_every(_PROGRESS_S)
        self._samples: collections.deque[tuple[float, int]] = collections.deque(maxlen=64)
        self._passed = 0
        self._previous: tuple[int, Handler] | None = None
        self._link: Link | None = None
        if path is not None:
            self._link = Link(path, self._greet, self._hear)

    def catch_signal(self) -> None:
        """From now on the stop signal means `should_stop`. Python lets only the main thread decide this."""
        if self._previous is not None or threading.current_thread() is not threading.main_thread():
            return
        number = _signal_number(_env.stop_signal())
        self._previous = (number, signal.signal(number, self._on_signal))

    def progress(self, step: int, total: int | None, now: bool = False) -> None:
        """Tell how far it is: at most a few times a second unless `now`."""
        self._progress = {"progress": {"step": step, "total": total}}
        moment = time.monotonic()
        if not now and step != total and moment - self._progress_at < self._every_s:
            return
        self._progress_at = moment
        self._samples.append((moment, step))
        self._send(self._progress)

    def checkpointed(self, step: int, seconds: float) -> None:
        """Tell that `step` steps are safe."""
        self._send({"checkpointed": {"step": step, "seconds": seconds}})

    def throughput(self) -> float | None:
        """Steps a second of late."""
        if len(self._samples) < 2:
            return None
        (since, first), (until, last) = self._samples[0], self._samples[-1]
        return (last - first) / (until - since) if until > since else None

    def next_pass(self) -> int:
        """How often a loop without step numbers has come by. The same in all ranks of a gang."""
        self._passed += 1
        return self._passed - 1

    def close(self) -> None:
        """At exit."""
        if self._link is not None:
            self._link.close()

    def abandon(self) -> None:
        """In a forked child."""
        if self._link is not None:
            self._link.abandon()
        if self._previous is not None:
            number, handler = self._previous
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def _send(self, message: Message) -> None:
        if self._link is not None:
            self._link.send(message)

    def _answer(self, step: int) -> None:
        self._send({"boundary": {"step": step}})

    def _greet(self) -> list[Message]:
        hello: Message = {"hello": {"rank": _env.agent_rank(), "pid": os.getpid()}}
        return [hello] if self._progress is None else [hello, self._progress]

    def _hear(self, message: Message | None) -> None:
        if message is None:
            self.gate.lost()
        elif "hold" in message:
            self.gate.hold()
        elif isinstance(message.get("batch"), dict):
            self.training.tune(message["batch"])
        elif isinstance(message.get("stop"), dict):
            self.gate.stop(_read_stop(message["stop"]))

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self.gate.signalled("signal")
        handler = self._previous[1] if self._previous is not None else None
        if callable(handler) and handler is not signal.default_int_handler:
            handler(number, frame)


def current() -> Session:
    """The session of this process."""
    global _session
    with _beginning:
        if _session is None:
            _session = Session(_env.socket_path())
        return _session


def _read_stop(body: dict[str, Any]) -> Stop:
    at, grace_s = body.get("at"), body.get("grace_s")
    return Stop(
        at if isinstance(at, int) else None,
        str(body.get("why") or "preempted"),
        float(grace_s) if isinstance(grace_s, (int, float)) else None,
    )


def _signal_number(name: str) -> int:
    try:
        return int(name) if name.isdigit() else int(signal.Signals[name])
    except KeyError:
        raise ValueError(f"YARD_STOP_SIGNAL={name!r} is no signal; set a name such as TERM or USR1") from None


def _close() -> None:
    if _session is not None:
        _session.close()


def _after_fork_in_child() -> None:
    global _session, _beginning
    _beginning = threading.Lock()
    if _session is not None:
        _session.abandon()
        _session = Session(None)


_session: Session | None = None
_beginning = threading.Lock()
atexit.register(_close)
os.register_at_fork(after_in_child=_after_fork_in_child)
