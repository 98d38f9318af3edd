from __future__ import annotations

from pathlib import Path

import pytest

from switchyard import CheckpointError, Checkpoints
from switchyard._checkpoint import _steps_in


def writer(text: str):  # type: ignore[no-untyped-def]
    return lambda path: path.write_text(text)


def read_back(checkpoints: Checkpoints) -> tuple[int, str] | None:
    texts: list[str] = []
    found = checkpoints.load(lambda path: texts.append(path.read_text()))
    return None if found is None else (found.step, texts[0])


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "not" / "there" / "yet")
    assert read_back(checkpoints) is None
    checkpoints.save(3, writer("three"))
    assert read_back(checkpoints) == (3, "three")


def test_the_previous_one_is_kept_and_older_ones_are_not(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    for step in (2, 9, 10, 11):
        checkpoints.save(step, writer(str(step)))
    assert _steps_in(tmp_path) == [11, 10]


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
def test_a_damaged_one_falls_back_to_the_one_before(tmp_path: Path, damage) -> None:  # type: ignore[no-untyped-def]
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
    assert _steps_in(tmp_path / "rank-0") == [10]


def test_ranks_with_their_own_cannot_change_their_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in (0, 1):
        shards(tmp_path, monkeypatch, rank).save(10, writer("x"))
    with pytest.raises(CheckpointError, match="2 ranks and this run has 4"):
        read_back(shards(tmp_path, monkeypatch, 0, world=4))


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
