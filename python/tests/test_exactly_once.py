"""Whatever happens to the process, each step is in its checkpointed log exactly once."""

from __future__ import annotations

import json
import random
import signal
import time
from pathlib import Path

import pytest
from child import finish, start
from fake_agent import FakeAgent

import switchyard

TOTAL = 400

PROGRAM = """
import json, sys, time, switchyard
log = []
def load(path):
    log[:] = json.loads(path.read_text())
for step in switchyard.steps(400, save=lambda path: path.write_text(json.dumps(log)), load=load, every=7):
    log.append(step)
    time.sleep(0.002)
sys.exit(0)
"""


def log_in(folder: Path) -> list[int]:
    log: list[int] = []
    switchyard.Checkpoints(folder).load(lambda path: log.extend(json.loads(path.read_text())))
    return log


@pytest.mark.parametrize("seed", range(3))
def test_each_step_is_seen_exactly_once(tmp_path: Path, seed: int) -> None:
    rng, starts = random.Random(seed), 0
    while len(log_in(tmp_path)) < TOTAL:
        starts += 1
        assert starts < 200, "it gets nowhere"
        disturb(tmp_path, rng, starts)
        log = log_in(tmp_path)
        assert log == list(range(len(log)))
    assert log_in(tmp_path) == list(range(TOTAL))
    assert starts > 3, "it was disturbed"


def disturb(folder: Path, rng: random.Random, instance: int) -> None:
    """One start of the job, ended in one of the ways in which starts end."""
    agent = FakeAgent()
    child = start(PROGRAM, YARD_SOCKET=agent.path, YARD_CHECKPOINT_DIR=folder, YARD_INSTANCE=instance)
    agent.wait_for("hello")
    time.sleep(rng.random() * 0.15)
    how = rng.choice(["kill", "kill", "stop", "signal", "stop, then kill"])
    if how.startswith("stop"):
        agent.stop()
    if how.endswith("kill"):
        time.sleep(rng.random() * 0.01)
        child.kill()
        child.communicate()
    else:
        if how == "signal":
            child.send_signal(signal.SIGTERM)
        finish(child)
        steps = [one["step"] for one in agent.said("checkpointed")]
        agent.wait(lambda: len(log_in(folder)) in [one["step"] for one in agent.said("checkpointed")])
        assert steps == sorted(steps)
    agent.close()
