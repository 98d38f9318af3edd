"""Checkpoints that are whole or not there.

A checkpoint is a folder `step-N` with `data` (a file or a folder, as the caller's function wrote it) and
`manifest.json` (every file of it with size and SHA-256). It is written under another name, synced to the disk and
then renamed, so a crash at any moment leaves the previous one as it was. The previous one is kept until the next
is safe; where the newest turns out to be damaged, the one before it is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any, Callable, NamedTuple

from . import _env

_KEPT = 2
_VERSION = 1
_MANIFEST = "manifest.json"

Manifest = dict[str, Any]


class CheckpointError(Exception):
    """No checkpoint can be used, and beginning anew would silently lose work."""


class Saved(NamedTuple):
    """A checkpoint that is safe."""

    step: int
    seconds: float
    """How long it took to save."""


class Checkpoints:
    """The checkpoints in a folder.

    All ranks of a job read the same ones, and rank 0 alone writes them. With `per_rank` each rank has its own
    (shards of a model, say), and only a step that all ranks have saved is used.
    """

    def __init__(self, folder: str | Path, per_rank: bool = False) -> None:
        """Nothing is read or written yet."""
        self.folder = Path(folder)
        self.per_rank = per_rank
        self.writes = per_rank or _env.rank() == 0
        self._own = self.folder / f"rank-{_env.rank()}" if per_rank else self.folder

    def save(self, step: int, write: Callable[[Path], object]) -> Saved:
        """Keep what `write(path)` writes as the checkpoint after `step` steps.

        If it raises, so does this, and the checkpoints are as they were.
        """
        began = time.monotonic()
        self._own.mkdir(parents=True, exist_ok=True)
        draft = self._own / f".writing-{step}-{os.getpid()}"
        _remove(draft)
        try:
            draft.mkdir()
            _fill(draft, step, write, began)
            self._publish(draft, step)
        finally:
            _remove(draft)
        self._prune()
        return Saved(step, time.monotonic() - began)

    def load(self, read: Callable[[Path], object]) -> Saved | None:
        """Let `read(path)` read the newest whole checkpoint. `None`: there are none."""
        found = self.newest()
        if self.writes:
            self._discard(lambda step: found is None or step > found.step)
        if found is not None:
            read(_place(self._own, found.step) / "data")
        return found

    def newest(self) -> Saved | None:
        """The newest whole checkpoint."""
        steps = self._candidates()
        for step in steps:
            manifest = _verified(_place(self._own, step))
            if manifest is not None:
                return Saved(step, float(manifest.get("seconds", 0.0)))
            if self.per_rank:
                self._give_up_shard(step)
        if steps:
            raise CheckpointError(f"every checkpoint in {self._own} is damaged; remove them to begin anew")
        return None

    def wait_for(self, step: int, seconds: float) -> bool:
        """Whether the checkpoint after `step` steps, written by another rank, is there within the time."""
        until = time.monotonic() + seconds
        while not (_place(self._own, step) / _MANIFEST).is_file():
            if time.monotonic() >= until:
                return False
            time.sleep(0.02)
        return True

    def _publish(self, draft: Path, step: int) -> None:
        place = _place(self._own, step)
        if place.exists():  # left by a life of the job that went further than its last whole checkpoint
            _set_aside(place)
        draft.rename(place)
        _sync(self._own)

    def _prune(self) -> None:
        for step in _steps_in(self._own)[_KEPT:]:
            _remove(_place(self._own, step))

    def _discard(self, unwanted: Callable[[int], bool]) -> None:
        """Put out of the way what a former life left: drafts, and checkpoints that nobody will resume from."""
        for step in filter(unwanted, _steps_in(self._own)):
            _set_aside(_place(self._own, step))
        for draft in self._own.glob(".writing-*"):
            _remove(draft)

    def _candidates(self) -> list[int]:
        own = _steps_in(self._own)
        if not self.per_rank:
            return own
        world = len(list(self.folder.glob("rank-*")))
        if world not in (0, _env.world_size()):
            raise CheckpointError(
                f"{self.folder} holds checkpoints of {world} ranks and this run has {_env.world_size()}: "
                "checkpoints per rank cannot change their number; run with as many, or remove them to begin anew"
            )
        return self._common(own)

    def _common(self, own: list[int]) -> list[int]:
        others = [set(_steps_in(self.folder / f"rank-{rank}")) for rank in range(_env.world_size())]
        common = [step for step in own if all(step in other for other in others)]
        if not common and all(others):
            raise CheckpointError(f"no step in {self.folder} was saved by all ranks; remove it to begin anew")
        return common

    def _give_up_shard(self, step: int) -> None:
        """Other ranks have begun to load theirs, so this start is lost; at the next none will see this step."""
        _set_aside(_place(self._own, step))
        raise CheckpointError(
            f"{_place(self._own, step)} is damaged and was set aside; start again to resume all ranks before it"
        )


def _fill(draft: Path, step: int, write: Callable[[Path], object], began: float) -> None:
    write(draft / "data")
    if not (draft / "data").exists():
        raise CheckpointError("save(path) returned without writing anything at path; write a file or folder there")
    files = {str(file.relative_to(draft)): _digest(file, sync=True) for file in _files(draft / "data")}
    seconds = time.monotonic() - began
    manifest = {"version": _VERSION, "step": step, "seconds": round(seconds, 3), "files": files}
    with open(draft / _MANIFEST, "w", encoding="utf-8") as out:
        json.dump(manifest, out)
        out.flush()
        os.fsync(out.fileno())
    for folder in _folders(draft):
        _sync(folder)


def _verified(place: Path) -> Manifest | None:
    """The manifest, if everything is as it says."""
    try:
        manifest = json.loads((place / _MANIFEST).read_text(encoding="utf-8"))
        whole = all(_digest(place / name) == digest for name, digest in manifest["files"].items())
        return manifest if whole and manifest["step"] == _step_of(place) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _digest(file: Path, sync: bool = False) -> str:
    """Size and SHA-256 of a file, which is made durable on the way if asked."""
    digest, size = hashlib.sha256(), 0
    with open(file, "rb", buffering=0) as data:
        while chunk := data.read(1 << 20):
            digest.update(chunk)
            size += len(chunk)
        if sync:
            os.fsync(data.fileno())
    return f"{size}:{digest.hexdigest()}"


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())


def _folders(path: Path) -> list[Path]:
    """Deepest first, so that what a folder holds is safe before the folder is."""
    return [Path(folder) for folder, _, _ in os.walk(path, topdown=False)]


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _place(folder: Path, step: int) -> Path:
    return folder / f"step-{step}"


def _step_of(place: Path) -> int | None:
    word, _, number = place.name.partition("-")
    return int(number) if word == "step" and number.isdecimal() else None


def _steps_in(folder: Path) -> list[int]:
    """The steps that have a checkpoint, newest first; damaged ones as well."""
    try:
        found = [_step_of(place) for place in folder.iterdir()]
    except FileNotFoundError:
        return []
    return sorted((step for step in found if step is not None), reverse=True)


def _set_aside(place: Path) -> None:
    """Out of the way, but there for people to look at; the last one only."""
    aside = place.parent / "set-aside"
    _remove(aside)
    place.rename(aside)
    _sync(place.parent)


def _remove(path: Path) -> None:
    if path.exists():
        shutil.rmtree(path, ignore_errors=True)
