from __future__ import annotations

import json
import os
import signal
import threading
from pathlib import Path

import pytest
from fake_agent import FakeAgent

import switchyard


class Log:
    """A training whose whole state is the list of the steps it saw."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.saves = 0

    def save(self, path: Path) -> None:
        self.saves += 1
        path.write_text(json.dumps(self.seen))

    def load(self, path: Path) -> None:
        self.seen = json.loads(path.read_text())


def run(log: Log, total: int | None, **options):  # type: ignore[no-untyped-def]
    for step in switchyard.steps(total, save=log.save, load=log.load, **options):
        log.seen.append(step)
        yield step


def test_outside_it_is_a_loop() -> None:
    log = Log()
    assert list(run(log, 3)) == [0, 1, 2]
    assert log.saves == 0 and not switchyard.stopped() and not switchyard.should_stop()
    switchyard.progress(1, 3)
    switchyard.checkpointed(1)
    assert switchyard.rank() == 0 and switchyard.world_size() == 1 and switchyard.instance() == 0
    assert switchyard.checkpoint_dir() is None and switchyard.batch_size(32) == 32 and switchyard.job_id() is None


def test_it_resumes_where_the_last_checkpoint_was(tmp_path: Path) -> None:
    first = Log()
    for step in run(first, 10, directory=tmp_path, every=3):
        if step == 7:
            break  # as good as a crash: steps 6 and 7 are lost
    second = Log()
    assert list(run(second, 10, directory=tmp_path)) == [6, 7, 8, 9]
    assert second.seen == list(range(10))
    assert list(run(Log(), 10, directory=tmp_path)) == [], "what is done is done"
    assert list(run(Log(), None, directory=tmp_path).__next__() for _ in range(1)) == [10], "a longer run goes on"


def test_by_time(tmp_path: Path) -> None:
    log = Log()
    list(run(log, 5, directory=tmp_path, every_s=0.0))
    assert log.saves == 5


def test_only_rank_0_saves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    shared, own = Log(), Log()
    list(run(shared, 4, directory=tmp_path / "shared", every=1))
    list(run(own, 4, directory=tmp_path / "own", every=1, per_rank=True))
    assert (shared.saves, own.saves) == (0, 4)


@pytest.mark.parametrize(
    "options",
    [{"total": -1}, {"total": 1, "every": 0}, {"total": 1, "every_s": 1.0, "per_rank": True}],
)
def test_nonsense_is_refused_at_once(options) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError):
        switchyard.steps(save=print, load=print, **options)
    with pytest.raises(ValueError, match="both"):
        switchyard.steps(1, save=print)


def test_errors_of_save_reach_the_program(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        list(switchyard.steps(3, save=fail, load=lambda path: None, directory=tmp_path))


def test_errors_of_load_do_not_lose_the_checkpoint(tmp_path: Path) -> None:
    list(run(Log(), 3, directory=tmp_path))

    def fail(path: Path) -> None:
        raise KeyError("a layer that is not there any more")

    with pytest.raises(KeyError):
        list(switchyard.steps(3, save=print, load=fail, directory=tmp_path))
    assert list(run(Log(), 4, directory=tmp_path)) == [3]


def test_a_signal_saves_and_stops(tmp_path: Path) -> None:
    log = Log()
    for step in run(log, 100, directory=tmp_path):
        if step == 4:
            os.kill(os.getpid(), signal.SIGTERM)
    assert switchyard.stopped() and switchyard.stop_reason() == "signal"
    assert log.seen == [0, 1, 2, 3, 4] and log.saves == 1
    assert switchyard.Checkpoints(tmp_path).newest().step == 5  # type: ignore[union-attr]


def test_the_signal_can_be_chosen_and_the_programs_own_handler_is_called_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARD_STOP_SIGNAL", "USR1")
    called: list[int] = []
    signal.signal(signal.SIGUSR1, lambda number, frame: called.append(number))
    assert not switchyard.should_stop()
    os.kill(os.getpid(), signal.SIGUSR1)
    assert switchyard.should_stop() and called == [signal.SIGUSR1]
    signal.signal(signal.SIGUSR1, signal.SIG_DFL)


def test_ranks_outside_agree_through_the_program() -> None:
    wishes: list[bool] = []

    def agree(stop: bool) -> bool:
        wishes.append(stop)
        return len(wishes) == 4  # another rank has the signal

    assert list(switchyard.steps(10, agree=agree)) == [0, 1, 2]
    assert wishes == [False] * 4 and switchyard.stopped()


def test_the_agent_hears_of_it_all(agent: FakeAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("YARD_CHECKPOINT_DIR", str(tmp_path))
    monkeypatch.setenv("RANK", "0")
    assert list(run(Log(), 1000)) == list(range(1000))
    agent.wait(lambda: {"step": 1000, "total": 1000} in agent.said("progress"))
    agent.wait_for("checkpointed")
    assert agent.heard[0] == (0, {"hello": {"rank": 0, "pid": os.getpid()}})
    assert agent.said("progress")[0] == {"step": 0, "total": 1000}
    assert len(agent.said("progress")) < 1000, "short steps are not told one by one"
    assert agent.said("checkpointed")[0]["step"] == 1000 and agent.said("checkpointed")[0]["seconds"] > 0


@pytest.mark.parametrize(("wish", "fewest", "most"), [("0", 200, 202), ("60", 2, 2), ("soon", 2, 199)])
def test_it_tells_as_often_as_the_agent_wants(
    agent: FakeAgent, monkeypatch: pytest.MonkeyPatch, wish: str, fewest: int, most: int
) -> None:
    monkeypatch.setenv("YARD_REPORT_S", wish)
    assert len(list(switchyard.steps(200))) == 200
    agent.wait(lambda: {"step": 200, "total": 200} in agent.said("progress"))
    assert fewest <= len(agent.said("progress")) <= most


def test_below_a_launcher_the_agent_hears_the_rank_it_gave(agent: FakeAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_PROCID", "1")  # from the agent: the second node
    monkeypatch.setenv("RANK", "11")  # from torchrun: the fourth of eight processes there
    switchyard.progress(1)
    agent.wait_for("hello")
    assert agent.said("hello")[0]["rank"] == 1 and switchyard.rank() == 11


def test_told_to_stop_it_saves_and_stops(agent: FakeAgent, tmp_path: Path) -> None:
    log = Log()
    for step in run(log, None, directory=tmp_path):
        if step == 5:
            agent.stop(why="moved", grace_s=10.0)
            while switchyard.stop_reason() is None:
                threading.Event().wait(0.001)
    assert log.seen == list(range(6)) and switchyard.stopped() and switchyard.stop_reason() == "moved"
    agent.wait_for("checkpointed")
    assert agent.said("checkpointed")[0]["step"] == 6
    assert agent.said("progress")[-1] == {"step": 6, "total": None}, "the last progress is always told"


def test_a_checkpoint_that_is_there_already_is_told_and_not_written_again(agent: FakeAgent, tmp_path: Path) -> None:
    list(run(Log(), 3, directory=tmp_path))
    log = Log()
    switchyard.should_stop()
    agent.stop()
    agent.wait(lambda: switchyard.stop_reason() is not None)
    assert list(run(log, 10, directory=tmp_path)) == [] and log.saves == 0
    agent.wait_for("checkpointed", 2)
    assert [one["step"] for one in agent.said("checkpointed")] == [3, 3]


def test_a_rank_that_does_not_write_says_saved_when_it_is_so(
    agent: FakeAgent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    ended = threading.Event()

    def follow() -> None:
        for _ in run(Log(), None, directory=tmp_path):
            agent.stop()
            agent.wait(lambda: switchyard.stop_reason() is not None)
        ended.set()

    threading.Thread(target=follow, daemon=True).start()
    assert not ended.wait(0.3) and agent.said("checkpointed") == []
    monkeypatch.setenv("RANK", "0")
    switchyard.Checkpoints(tmp_path).save(1, Log().save)
    agent.wait_for("checkpointed")
    assert agent.said("checkpointed") == [{"step": 1, "seconds": 0.0}] and ended.wait(30)


def test_a_loop_of_ones_own(agent: FakeAgent) -> None:
    done = 0
    while not switchyard.should_stop():
        done += 1
        switchyard.progress(done, 100)
        if done == 3:
            agent.stop()
            agent.wait(lambda: switchyard.stop_reason() is not None)
    switchyard.checkpointed(done, 0.5)
    agent.wait_for("checkpointed")
    assert done == 3 and agent.said("checkpointed") == [{"step": 3, "seconds": 0.5}]
