"""Checkpoints of a PyTorch training, and agreement among its ranks. PyTorch is imported when it is first needed."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

from . import _env


class State:
    """All that a training depends on: anything with `state_dict` and `load_state_dict`, and the random numbers.

        state = State(model=model, optimizer=optimizer, scheduler=scheduler)
        for step in switchyard.steps(1000, save=state.save, load=state.load):

    A model wrapped in `DataParallel` or `DistributedDataParallel` is saved as what is inside, so that it can be
    read by a run of another size. Random numbers go on where they were in the rank that saved; other ranks seed
    theirs as at any start. Files are read without running code from them.
    """

    def __init__(self, **parts: Any) -> None:
        """The parts, by the names they have in the file."""
        lacking = [name for name, part in parts.items() if not hasattr(part, "load_state_dict")]
        if lacking or "random" in parts:
            raise TypeError(
                f"{', '.join(lacking) or 'random'}: parts need state_dict and load_state_dict, and 'random' is taken"
            )
        self._parts = parts

    def save(self, path: Path) -> None:
        """Write everything to a file."""
        import torch

        content = {name: _inside(part).state_dict() for name, part in self._parts.items()}
        torch.save({**content, "random": {"rank": _env.rank(), **_random_state()}}, path)

    def load(self, path: Path) -> None:
        """Read everything from a file."""
        import torch

        content = torch.load(path, map_location="cpu", weights_only=True)
        saved_random = content.pop("random")
        if set(content) != set(self._parts):
            raise ValueError(
                f"{path} holds {sorted(content)} and the program has {sorted(self._parts)}; "
                "give State the same parts, or remove the checkpoint to begin anew"
            )
        for name, part in self._parts.items():
            _inside(part).load_state_dict(content[name])
        if saved_random["rank"] == _env.rank():
            _set_random_state(saved_random)


def agree(stop: bool) -> bool:
    """Whether any rank wants to stop: `steps(…, agree=switchyard.torch.agree)`, for gangs outside Switchyard."""
    import torch

    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return stop
    device = "cuda" if torch.distributed.get_backend() == "nccl" else "cpu"
    flag = torch.tensor([int(stop)], device=device)
    torch.distributed.all_reduce(flag, op=torch.distributed.ReduceOp.MAX)
    return bool(flag.item())


def _inside(part: Any) -> Any:
    from torch.nn import DataParallel
    from torch.nn.parallel import DistributedDataParallel

    return part.module if isinstance(part, (DataParallel, DistributedDataParallel)) else part


def _random_state() -> dict[str, Any]:
    import torch

    state = {"torch": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state_all()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        name, keys, *rest = numpy.random.get_state()
        state["numpy"] = (name, keys.tolist(), *rest)
    return state


def _set_random_state(state: dict[str, Any]) -> None:
    import torch

    torch.set_rng_state(state["torch"])
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    if torch.cuda.is_available() and len(state.get("cuda", ())) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all(state["cuda"])
    numpy = sys.modules.get("numpy")
    if numpy is not None and "numpy" in state:
        numpy.random.set_state(tuple(state["numpy"]))
