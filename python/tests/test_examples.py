"""The examples run, alone and under an agent that stops them, and end as if nothing had happened."""

from __future__ import annotations

import importlib.util
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from child import finish, start
from fake_agent import FakeAgent

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"


def stopped_and_resumed(program: str, *arguments: str, folder: Path) -> tuple[str, str]:
    """What its first and its second start printed."""
    agent = FakeAgent()
    child = start(EXAMPLES / program, *arguments, YARD_SOCKET=agent.path, YARD_CHECKPOINT_DIR=folder, YARD_INSTANCE=1)
    agent.wait(lambda: any(one["step"] >= 10 for one in agent.said("progress")))
    agent.stop(why="moved")
    first = finish(child)
    second = finish(start(EXAMPLES / program, *arguments, YARD_CHECKPOINT_DIR=folder, YARD_INSTANCE=2))
    agent.close()
    return first, second


def test_count_counts_each_step_once(tmp_path: Path) -> None:
    first, second = stopped_and_resumed("count.py", "--steps", "100", "--step-s", "0.01", folder=tmp_path)
    assert re.search(r"stopped after \d+ steps: moved\n$", first)
    assert second.endswith("done: each of 100 steps once, on here\n")
    steps = re.findall(r"step (\d+) of", first + second)
    assert steps == [str(step) for step in range(1, 101)]


def losses(text: str) -> list[str]:
    return re.findall(r"step \d+ of \d+: loss [\d.]+", text)


def test_train_learns_the_same_whether_or_not_it_was_stopped(tmp_path: Path) -> None:
    options = ("--steps", "60", "--batch-size", "8", "--step-s", "0.01")
    whole = losses(finish(start(EXAMPLES / "train.py", *options)))
    first, second = stopped_and_resumed("train.py", *options, folder=tmp_path)
    assert losses(first) + losses(second) == whole
    assert float(whole[-1].split()[-1]) < float(whole[0].split()[-1])


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
def test_ranks_of_pytorch_stop_together_and_resume_as_fewer(tmp_path: Path) -> None:
    agent = FakeAgent()
    options = ("--steps", "100000", "--step-s", "0.01")
    env: dict[str, object] = {"YARD_SOCKET": agent.path, "YARD_CHECKPOINT_DIR": tmp_path, "WORLD_SIZE": 2}
    env.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port(), CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS=1)
    ranks = [start(EXAMPLES / "train_torch.py", *options, RANK=rank, **env) for rank in (0, 1)]
    agent.wait(lambda: any(one["step"] >= 10 for one in agent.said("progress")))
    agent.tell({"hold": {}})
    agent.wait_for("boundary", 2)
    at = max(one["step"] for one in agent.said("boundary"))
    agent.stop(at=at)
    for rank in ranks:
        finish(rank)
    assert {one["step"] for one in agent.said("checkpointed")} == {at}
    alone = start(EXAMPLES / "train_torch.py", "--steps", str(at + 5), YARD_CHECKPOINT_DIR=tmp_path)
    assert f"step {at + 5} of {at + 5}" in finish(alone)
    agent.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def demo(yard: Path) -> subprocess.CompletedProcess[str]:
    env = {"YARD": str(yard), "PYTHON": sys.executable, "PATH": "/usr/bin:/bin"}
    return subprocess.run([EXAMPLES / "demo.sh"], env=env, text=True, capture_output=True)


def test_demo_submits_through_the_binary(tmp_path: Path) -> None:
    yard, calls = tmp_path / "yard", tmp_path / "calls"
    yard.write_text(f'#!/bin/sh\necho "$@" >> {calls}\ngrep -c . {calls}\n')
    yard.chmod(0o755)
    done = demo(yard)
    assert done.returncode == 0, done.stderr
    assert len(calls.read_text().splitlines()) == 8 and "8  count-d: 1 of h100|v100" in done.stdout


def test_demo_without_a_binary_says_what_to_do(tmp_path: Path) -> None:
    done = demo(tmp_path / "none")
    assert done.returncode == 2 and "make build" in done.stderr
