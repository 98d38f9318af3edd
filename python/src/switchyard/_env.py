"""What the environment says about this process. Switchyard, torchrun and Slurm are all understood."""

from __future__ import annotations

import os
from pathlib import Path


def rank() -> int:
    """Which of the job's processes this is, from 0."""
    return _number(("RANK", "SLURM_PROCID"), 0)


def agent_rank() -> int:
    """Which of the processes that the agent started this belongs to.

    A launcher such as torchrun starts more below it and gives them ranks of its own, but leaves this variable alone.
    """
    return _number(("SLURM_PROCID", "RANK"), 0)


def local_rank() -> int:
    """Which of the job's processes on this node this is, from 0."""
    return _number(("LOCAL_RANK", "SLURM_LOCALID"), 0)


def world_size() -> int:
    """How many processes the job has. An elastic job may have another number at each start."""
    return _number(("WORLD_SIZE", "SLURM_NTASKS"), 1)


def batch_size(default: int) -> int:
    """The batch size that the scheduler chose for this start, or `default` where it chose none."""
    return _number(("YARD_BATCH_SIZE",), default)


def accumulation() -> int:
    """How often gradients are kept and added up before the step that all agree on; 0: each step is one pass."""
    return _number(("YARD_ACCUMULATION",), 0)


def report_every(default: float) -> float:
    """Seconds from one report of progress to the next, at least. The agent of a guaranteed job wants to know soon."""
    try:
        return min(max(float(os.environ.get("YARD_REPORT_S", default)), 0.0), 60.0)
    except ValueError:
        return default


def instance() -> int:
    """Which start of the job this is; it grows with each. 0 outside Switchyard."""
    return _number(("YARD_INSTANCE",), 0)


def job_id() -> str | None:
    """The job's id; `None` where no scheduler set one."""
    return os.environ.get("YARD_JOB_ID") or os.environ.get("SLURM_JOB_ID") or None


def checkpoint_dir() -> Path | None:
    """The folder for this job's checkpoints; `None` outside Switchyard."""
    folder = os.environ.get("YARD_CHECKPOINT_DIR")
    return Path(folder) if folder else None


def socket_path() -> str | None:
    """Where the agent listens; `None` outside Switchyard."""
    return os.environ.get("YARD_SOCKET") or None


def stop_signal() -> str:
    """The name of the signal that asks the process to save and exit, such as `SIGTERM`."""
    name = os.environ.get("YARD_STOP_SIGNAL") or "SIGTERM"
    return name if name.startswith("SIG") or name.isdigit() else "SIG" + name


def _number(names: tuple[str, ...], default: int) -> int:
    for name in names:
        value = os.environ.get(name)
        if value:
            return _whole(name, value)
    return default


def _whole(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ValueError(f"{name}={value!r} is not a whole number; unset it or set one") from None
