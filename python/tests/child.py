"""Programs that tests run as processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parent.parent / "src"

_started: list[subprocess.Popen[str]] = []


def start(program: str | Path, *arguments: str, **env: Any) -> subprocess.Popen[str]:
    """Run a Python program, given as text or as a file."""
    what = [str(program)] if isinstance(program, Path) else ["-c", program]
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("YARD_", "SLURM_"))}
    process = subprocess.Popen(
        [sys.executable, *what, *arguments],
        env={**clean, "PYTHONPATH": str(SOURCE), **{name: str(value) for name, value in env.items()}},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _started.append(process)
    return process


def end_all() -> None:
    """Kill what a failed test left running."""
    for process in _started:
        process.kill()
        process.communicate()
    _started.clear()


def finish(process: subprocess.Popen[str], code: int = 0) -> str:
    """Wait for it and give back what it printed."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, f"exit code {process.returncode}, not {code}:\n{out}{err}"
    return out
