"""The training side of Switchyard.

    for step in switchyard.steps(1000, save=save, load=load):
        train(step)

resumes where the last checkpoint was, reports progress, and saves and stops when the scheduler wants the devices
back. Outside Switchyard the same program runs as it is: there is nobody to report to, and SIGTERM asks to stop.
"""

from __future__ import annotations

from . import _session
from ._checkpoint import CheckpointError, Checkpoints, Saved
from ._env import batch_size, checkpoint_dir, instance, job_id, local_rank, rank, world_size
from ._steps import steps

__all__ = [
    "CheckpointError",
    "Checkpoints",
    "Saved",
    "batch_size",
    "checkpoint_dir",
    "checkpointed",
    "instance",
    "job_id",
    "local_rank",
    "progress",
    "rank",
    "should_stop",
    "steps",
    "stop_reason",
    "stopped",
    "throughput",
    "world_size",
]


def should_stop(step: int | None = None) -> bool:
    """Whether to save and exit instead of beginning the next step.

    For loops of one's own: call it once before each step, in all ranks alike; the ranks of a gang are then told to
    stop before the same step. `step` is the one about to begin; without it, the calls are counted.
    """
    session = _session.current()
    session.catch_signal()
    passed = session.next_pass()
    return session.gate.arrive(passed if step is None else step)


def progress(step: int, total: int | None = None) -> None:
    """Tell the scheduler that `step` steps are done, of `total` where that is known. Call it as often as you like."""
    _session.current().progress(step, total)


def checkpointed(step: int, seconds: float = 0.0) -> None:
    """Tell the scheduler that the first `step` steps are safe, and how long saving took."""
    _session.current().checkpointed(step, seconds)


def stopped() -> bool:
    """Whether the loop ended because the job was told to stop. Exit with 0 then: the job will go on later."""
    return _session.current().gate.is_over()


def stop_reason() -> str | None:
    """Why the job was told to stop: `preempted`, `moved`, `cancelled`, `drained`, `expired` or `signal`."""
    told = _session.current().gate.told()
    return None if told is None else told.why


def throughput() -> float | None:
    """Steps a second of late, from the progress that was told; `None` in the first moments."""
    return _session.current().throughput()
