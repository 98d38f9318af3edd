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
import re
import shutil
import time
from pathlib import Path
from typing import Any, Callable, NamedTuple, NoReturn

from . import _env

_KEPT = 2
_VERSION = 1
_MANIFEST = "manifest.json"
_NAME = re.compile(r"step-(\d+)(?:\.(\d+))?")

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
        _make(self._own)
        draft = self._own / f".writing-{step}-{os.getpid()}"
        _remove(draft)
        try:
            draft.mkdir()
            _fill(draft, step, _env.world_size() if self.per_rank else None, write, began)
            draft.rename(_free_place(self._own, step))
            _sync(self._own)
        finally:
            _remove(draft)
        self._clear(lambda other: other > step)  # a program that did not load is at it again from an earlier step
        self._prune()
        return Saved(step, time.monotonic() - began)

    def load(self, read: Callable[[Path], object]) -> Saved | None:
        """Let `read(path)` read the newest whole checkpoint. `None`: there are none."""
        place, found = self._newest()
        if self.writes:
            self._clear(lambda step: found is None or step > found.step)
        if place is not None:
            read(place / "data")
        return found

    def newest(self) -> Saved | None:
        """The newest whole checkpoint."""
        return self._newest()[1]

    def wait_for(self, step: int, seconds: float) -> bool:
        """Whether the checkpoint after `step` steps, written by another rank, is there within the time."""
        until = time.monotonic() + seconds
        while all(_name_of(place)[0] != step for place in _places(self._own)):
            if time.monotonic() >= until:
                return False
            time.sleep(0.02)
        return True

    def _newest(self) -> tuple[Path | None, Saved | None]:
        places = self._candidates()
        for place in places:
            manifest = _verified(place)
            if manifest is not None:
                return place, Saved(manifest["step"], float(manifest.get("seconds", 0.0)))
            if self.per_rank:
                _give_up_shard(place)
        if places:
            raise CheckpointError(f"every checkpoint in {self._own} is damaged; remove them to begin anew")
        return None, None

    def _prune(self) -> None:
        """Keep the last two steps, each as it was saved last."""
        kept: list[int] = []
        for place in _places(self._own):
            step = _name_of(place)[0]
            if step in kept or len(kept) == _KEPT:
                _remove(place)
            else:
                kept.append(step)

    def _clear(self, unwanted: Callable[[int], bool]) -> None:
        """Put out of the way what a former life left: drafts, and checkpoints that nobody will resume from."""
        for place in _places(self._own):
            if unwanted(_name_of(place)[0]):
                _set_aside(place)
        for draft in self._own.glob(".writing-*"):
            _remove(draft)

    def _candidates(self) -> list[Path]:
        own = _places(self._own)
        if not self.per_rank:
            return own
        self._refuse_other_sizes()
        ranks = [self.folder / f"rank-{rank}" for rank in range(_env.world_size())]
        others = [{_name_of(place)[0] for place in _places(folder)} for folder in ranks]
        common = [place for place in own if all(_name_of(place)[0] in steps for steps in others)]
        if not common and all(others):
            raise CheckpointError(f"no step in {self.folder} was saved by all ranks; remove it to begin anew")
        return common

    def _refuse_other_sizes(self) -> None:
        """Shards of four ranks are no good to two, nor to eight."""
        for place in self.folder.glob("rank-*/step-*"):
            saved_by = _read_manifest(place).get("world", _env.world_size())
            if saved_by != _env.world_size():
                raise CheckpointError(
                    f"{place} was saved by {saved_by} ranks and this run has {_env.world_size()}; "
                    "checkpoints per rank cannot change their number: run with as many, or remove them to begin anew"
                )


def _give_up_shard(place: Path) -> NoReturn:
    """Other ranks have begun to load theirs, so this start is lost; at the next, none will see this step."""
    _set_aside(place)
    raise CheckpointError(f"{place} is damaged and was set aside; start again to resume all ranks before it")


def _fill(draft: Path, step: int, world: int | None, write: Callable[[Path], object], began: float) -> None:
    write(draft / "data")
    if not (draft / "data").exists():
        raise CheckpointError("save(path) returned without writing anything at path; write a file or folder there")
    files = {str(file.relative_to(draft)): _digest(file, sync=True) for file in _files(draft / "data")}
    seconds = time.monotonic() - began
    manifest: Manifest = {"version": _VERSION, "step": step, "seconds": round(seconds, 3), "files": files}
    if world is not None:
        manifest["world"] = world
    with open(draft / _MANIFEST, "w", encoding="utf-8") as out:
        json.dump(manifest, out)
        out.flush()
        os.fsync(out.fileno())
    for folder in _folders(draft):
        _sync(folder)


def _verified(place: Path) -> Manifest | None:
    """The manifest, if everything is as it says."""
    manifest = _read_manifest(place)
    try:
        whole = all(_digest(place / name) == digest for name, digest in manifest["files"].items())
        return manifest if whole and manifest["step"] == _name_of(place)[0] else None
    except (OSError, KeyError, TypeError, AttributeError):
        return None


def _read_manifest(place: Path) -> Manifest:
    """What it says; nothing where it is damaged."""
    try:
        manifest = json.loads((place / _MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


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


def _make(folder: Path) -> None:
    """Make a folder and those above it, so that they are still there after a power cut."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for one in missing:
        _sync(one.parent)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _free_place(folder: Path, step: int) -> Path:
    """A name that is free: the same step may be saved again, and the first is not removed before the second is safe."""
    taken = [_name_of(place)[1] for place in _places(folder) if _name_of(place)[0] == step]
    return folder / (f"step-{step}.{max(taken) + 1}" if taken else f"step-{step}")


def _places(folder: Path) -> list[Path]:
    """The checkpoints there, newest first; damaged ones as well."""
    return sorted((place for place in folder.glob("step-*") if _NAME.fullmatch(place.name)), key=_name_of, reverse=True)


def _name_of(place: Path) -> tuple[int, int]:
    """The step, and how often it had been saved before."""
    step, again = _NAME.fullmatch(place.name).groups("0")  # type: ignore[union-attr]  # only such are asked about
    return int(step), int(again)


def _set_aside(place: Path) -> None:
    """Out of the way, but there for people to look at; the last one only."""
    aside = place.parent / "set-aside"
    _remove(aside)
    place.rename(aside)
    _sync(place.parent)


def _remove(path: Path) -> None:
    if path.exists():
        shutil.rmtree(path, ignore_errors=True)
