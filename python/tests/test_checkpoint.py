from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Any, Callable

import pytest

from switchyard import CheckpointError, Checkpoints


def writer(text: str) -> Callable[[Path], int]:
    return lambda path: path.write_text(text)


def read_back(checkpoints: Checkpoints) -> tuple[int, str] | None:
    texts: list[str] = []
    found = checkpoints.load(lambda path: texts.append(path.read_text()))
    return None if found is None else (found.step, texts[0])


def names(folder: Path) -> list[str]:
    return sorted(place.name for place in folder.glob("step-*"))


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "not" / "there" / "yet")
    assert read_back(checkpoints) is None
    checkpoints.save(3, writer("three"))
    assert read_back(checkpoints) == (3, "three")


def test_the_previous_one_is_kept_and_older_ones_are_not(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    for step in (2, 9, 10, 11):
        checkpoints.save(step, writer(str(step)))
    assert names(tmp_path) == ["step-10", "step-11"]


def test_a_step_can_be_saved_again(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, writer("one"))
    checkpoints.save(1, writer("one again"))
    assert read_back(checkpoints) == (1, "one again") and names(tmp_path) == ["step-1.1"]
    checkpoints.save(1, writer("and again"))
    assert read_back(checkpoints) == (1, "and again") and names(tmp_path) == ["step-1.2"]


def test_a_program_that_begins_anew_without_loading_leaves_the_old_run_behind(tmp_path: Path) -> None:
    for step in (100, 101):
        Checkpoints(tmp_path).save(step, writer("old"))
    Checkpoints(tmp_path).save(5, writer("new"))
    assert read_back(Checkpoints(tmp_path)) == (5, "new")


def test_a_folder_can_be_a_checkpoint(tmp_path: Path) -> None:
    def write(path: Path) -> None:
        (path / "deep").mkdir(parents=True)
        (path / "deep" / "a").write_text("a")
        (path / "b").write_text("b")

    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, write)
    seen: list[str] = []
    checkpoints.load(lambda path: seen.extend(sorted(p.name for p in path.rglob("*"))))
    assert seen == ["a", "b", "deep"]
    (tmp_path / "step-1" / "data" / "deep" / "a").unlink()
    with pytest.raises(CheckpointError, match="damaged"):
        checkpoints.newest()


@pytest.mark.parametrize(
    "damage",
    [
        lambda place: (place / "data").write_text("elevem"),  # as long as before
        lambda place: (place / "data").write_text(""),
        lambda place: (place / "data").unlink(),
        lambda place: (place / "manifest.json").write_text('{"version": 1, "st'),
        lambda place: (place / "manifest.json").write_text("[]"),
        lambda place: (place / "manifest.json").unlink(),
    ],
)
def test_a_damaged_one_falls_back_to_the_one_before(tmp_path: Path, damage: Callable[[Path], Any]) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(10, writer("ten"))
    checkpoints.save(11, writer("eleven"))
    damage(tmp_path / "step-11")
    assert read_back(checkpoints) == (10, "ten")
    checkpoints.save(11, writer("eleven again"))
    assert read_back(checkpoints) == (11, "eleven again")


def test_if_all_are_damaged_nobody_begins_anew_by_accident(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(10, writer("ten"))
    (tmp_path / "step-10" / "data").write_text("tem")
    with pytest.raises(CheckpointError, match="begin anew"):
        read_back(checkpoints)


def test_a_save_that_fails_leaves_everything_as_it_was(tmp_path: Path) -> None:
    def fail(path: Path) -> None:
        path.write_text("half of")
        raise OSError("No space left on device")

    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, writer("one"))
    with pytest.raises(OSError, match="No space"):
        checkpoints.save(2, fail)
    with pytest.raises(CheckpointError, match="without writing"):
        checkpoints.save(2, lambda path: None)
    assert [place.name for place in tmp_path.iterdir()] == ["step-1"]
    assert read_back(checkpoints) == (1, "one")


def test_a_save_that_dies_at_any_moment_leaves_a_whole_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call that changes names or removes files is one where the process may die."""

    class Died(BaseException):
        pass

    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, writer("one"))
    for calls_left in range(12):
        budget = [calls_left]

        def dying(call: Any, budget: list[int] = budget) -> Any:
            def wrapped(*arguments: Any, **options: Any) -> Any:
                budget[0] -= 1
                if budget[0] < 0:
                    raise Died
                return call(*arguments, **options)

            return wrapped

        with monkeypatch.context() as patch, contextlib.suppress(Died):
            patch.setattr(Path, "rename", dying(Path.rename))
            patch.setattr(os, "fsync", dying(os.fsync))
            patch.setattr(shutil, "rmtree", dying(shutil.rmtree))
            checkpoints.save(1, writer("again"))
        assert read_back(checkpoints) in [(1, "one"), (1, "again")]
    assert budget[0] >= 0, "the last save was not disturbed any more"


def test_drafts_of_a_killed_process_are_cleared_away(tmp_path: Path) -> None:
    draft = tmp_path / ".writing-5-1"
    draft.mkdir()
    (draft / "data").write_text("half of")
    assert read_back(Checkpoints(tmp_path)) is None
    assert not draft.exists()


def shards(folder: Path, monkeypatch: pytest.MonkeyPatch, rank: int, world: int = 2) -> Checkpoints:
    monkeypatch.setenv("RANK", str(rank))
    monkeypatch.setenv("WORLD_SIZE", str(world))
    return Checkpoints(folder, per_rank=True)


def test_ranks_with_their_own_use_the_newest_that_all_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank, steps in ((0, (10, 20)), (1, (10,))):
        for step in steps:
            shards(tmp_path, monkeypatch, rank).save(step, writer(f"{rank} at {step}"))
    for rank in (0, 1):
        assert read_back(shards(tmp_path, monkeypatch, rank)) == (10, f"{rank} at 10")
    # What only one rank had is out of the way, so it cannot push out what both have.
    assert names(tmp_path / "rank-0") == ["step-10"]


def test_if_a_rank_never_saved_all_begin_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shards(tmp_path, monkeypatch, 0).save(10, writer("x"))
    for rank in (1, 0):
        assert read_back(shards(tmp_path, monkeypatch, rank)) is None


def test_ranks_with_their_own_cannot_change_their_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in (0, 1):
        shards(tmp_path, monkeypatch, rank).save(10, writer("x"))
    for rank in (0, 3):
        with pytest.raises(CheckpointError, match="2 ranks and this run has 4"):
            read_back(shards(tmp_path, monkeypatch, rank, world=4))
    with pytest.raises(CheckpointError, match="2 ranks and this run has 1"):
        read_back(shards(tmp_path, monkeypatch, 0, world=1))


def test_a_damaged_shard_costs_one_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in (10, 20):
        for rank in (0, 1):
            shards(tmp_path, monkeypatch, rank).save(step, writer(f"{rank} at {step}"))
    (tmp_path / "rank-1" / "step-20" / "data").write_text("?")
    assert read_back(shards(tmp_path, monkeypatch, 0)) == (20, "0 at 20")
    with pytest.raises(CheckpointError, match="start again"):
        read_back(shards(tmp_path, monkeypatch, 1))
    for rank in (0, 1):
        assert read_back(shards(tmp_path, monkeypatch, rank)) == (10, f"{rank} at 10")
