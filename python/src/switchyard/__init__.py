"""The training side of Switchyard.

    for step in switchyard.steps(1000, save=save, load=load):
        train(step)

resumes where the last checkpoint was, reports progress, and saves and stops when the scheduler wants the devices
back. Outside Switchyard the same program runs as it is: there is nobody to report to, and SIGTERM asks to stop.
"""

from __future__ import annotations

from . import _session
from ._checkpoint import CheckpointError, Checkpoints, Saved
from ._env import accumulation, batch_size, checkpoint_dir, instance, job_id, local_rank, rank, world_size
from ._steps import steps
from ._training import Batch

__all__ = [
    "Batch",
    "CheckpointError",
    "Checkpoints",
    "Saved",
    "accumulation",
    "batch",
    "batch_size",
    "checkpoint_dir",
    "checkpointed",
    "instance",
    "job_id",
    "local_rank",
    "progress",
    "rank",
    "report",
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
    """Why it should stop: `preempted`, `moved`, `held`, `requeued`, `cancelled`, `drained`, `expired`, `signal`."""
    told = _session.current().gate.told()
    return None if told is None else told.why


def throughput() -> float | None:
    """Steps a second of late, from the progress that was told; `None` in the first moments."""
    return _session.current().throughput()


def batch(default: int) -> Batch:
    """What the next step should be made of on each device: `size` examples at once, and `accumulation` passes before
    the one after which all devices agree. `default` examples where no scheduler chose.

    It may change while the job runs. Call it in one rank and share the answer, so that all ranks change together.
    """
    return _session.current().training.batch(default)


def report(
    size: int,
    step_s: float,
    grad_s: float | None = None,
    grad_sqr: float | None = None,
    grad_var: float | None = None,
    loss: float | None = None,
) -> None:
    """Tell how long a step without accumulation took with `size` examples on this device: `step_s` seconds, of which
    `grad_s` to compute the gradient (all of them where nothing is said: one device has nobody to agree with).

    `grad_sqr` and `grad_var` are the square of the mean gradient's norm and the trace of its covariance, at the batch
    size the job was submitted with; `loss` is the training loss, from which a scheduler may see when the job will have
    converged. Call it as often as you like, in rank 0: the means are told now and then, and the last loss with them.
    """
    noise = None if grad_sqr is None or grad_var is None else (float(grad_sqr), float(grad_var))
    seconds = float(step_s)
    grad = seconds if grad_s is None else float(grad_s)
    _session.current().training.report(int(size), seconds, grad, noise, None if loss is None else float(loss))
