"""Ranks as processes that wait for each other inside each step, as an all-reduce makes them, and an agent that
agrees with them on where to stop."""

from __future__ import annotations

import multiprocessing as mp
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest
from fake_agent import FakeAgent

RANKS = 4


def rank_main(rank: int, path: str, folder: str, barrier: Any, ends: Any, slow_s: float) -> None:
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(RANKS), YARD_SOCKET=path, YARD_CHECKPOINT_DIR=folder)
    import switchyard

    done = [0]
    for step in switchyard.steps(
        100_000, save=lambda p: p.write_text(str(done[0])), load=lambda p: done.__setitem__(0, int(p.read_text()))
    ):
        time.sleep(slow_s if rank == RANKS - 1 else 0.0005)
        barrier.wait(120)
        done[0] = step + 1
    ends.put((rank, done[0], switchyard.stopped()))


def one_start(folder: Path, rng: random.Random, slow_s: float) -> int:
    """Start the gang, stop it some time later, and give back the step at which all ranks stopped."""
    context, agent = mp.get_context("spawn"), FakeAgent()
    barrier, ends = context.Barrier(RANKS), context.Queue()
    ranks = [
        context.Process(target=rank_main, args=(rank, agent.path, str(folder), barrier, ends, slow_s))
        for rank in range(RANKS)
    ]
    for rank in ranks:
        rank.start()
    agent.wait_for("hello", RANKS)
    time.sleep(rng.random() * 0.3)  # also while some are still loading
    for number in rng.sample(range(RANKS), RANKS):
        agent.tell({"hold": {}}, number)
        time.sleep(rng.random() * 0.01)
    agent.wait_for("boundary", RANKS)
    at: int = max(answer["step"] for answer in agent.said("boundary"))
    agent.stop(at=at)
    for rank in ranks:
        rank.join(120)
    assert [rank.exitcode for rank in ranks] == [0] * RANKS
    assert sorted(ends.get(timeout=120) for _ in ranks) == [(rank, at, True) for rank in range(RANKS)]
    agent.wait(lambda: all(agent.said("checkpointed", rank) for rank in range(RANKS)))
    assert {one["step"] for one in agent.said("checkpointed")} == {at}
    agent.close()
    return at


@pytest.mark.parametrize("slow_s", [0.0005, 0.05])
def test_all_ranks_stop_before_the_same_step_and_resume_there(tmp_path: Path, slow_s: float) -> None:
    rng = random.Random(4)
    first = one_start(tmp_path, rng, slow_s)
    assert one_start(tmp_path, rng, slow_s) >= first
