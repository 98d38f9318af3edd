from __future__ import annotations

from pathlib import Path

import pytest

import switchyard

torch = pytest.importorskip("torch", reason="PyTorch is not installed; nothing else needs it")

from switchyard.torch import State, agree  # noqa: E402


def training(total: int, folder: Path, stop_after: int | None = None) -> tuple[list[float], object]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5)
    state = State(model=model, optimizer=optimizer, scheduler=scheduler)
    losses = []
    for step in switchyard.steps(total, save=state.save, load=state.load, directory=folder, every=1):
        loss = model(torch.randn(16, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
        if step == stop_after:
            break
    return losses, model.state_dict()


def test_a_training_that_was_interrupted_ends_as_one_that_was_not(tmp_path: Path) -> None:
    whole, model = training(10, tmp_path / "whole")
    first, _ = training(10, tmp_path / "parts", stop_after=4)
    second, resumed = training(10, tmp_path / "parts")
    assert first[:-1] + second == whole, "step 4 was not saved, so it is done again, with the same random numbers"
    assert all(torch.equal(a, b) for a, b in zip(model.values(), resumed.values()))  # type: ignore[attr-defined]


def test_a_wrapped_model_is_saved_as_what_is_inside(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 1)
    State(model=torch.nn.DataParallel(model)).save(tmp_path / "file")
    other = torch.nn.Linear(2, 1)
    State(model=other).load(tmp_path / "file")
    assert torch.equal(model.weight, other.weight)


def test_a_checkpoint_of_another_program_is_refused(tmp_path: Path) -> None:
    State(model=torch.nn.Linear(2, 1)).save(tmp_path / "file")
    with pytest.raises(ValueError, match="the same parts"):
        State(net=torch.nn.Linear(2, 1)).load(tmp_path / "file")
    with pytest.raises(TypeError, match="epoch"):
        State(epoch=3)


def test_alone_one_agrees_with_oneself() -> None:
    assert agree(True) and not agree(False)
