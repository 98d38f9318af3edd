#!/usr/bin/env python3
"""PyTorch on one processor, one card or many: a small network learns to tell two spirals apart.

With more than one rank (WORLD_SIZE, RANK, MASTER_ADDR and MASTER_PORT, as Switchyard, torchrun and Slurm set them)
it trains with DistributedDataParallel. It resumes with another number of ranks as well.
"""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn

import switchyard
from switchyard.torch import State, agree


def main() -> None:
    """Train."""
    options = read_options()
    device = choose_device()
    gang = switchyard.world_size() > 1
    if gang:
        torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    torch.manual_seed(switchyard.rank())
    model: nn.Module = nn.Sequential(nn.Linear(2, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    model = model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    state = State(model=model, optimizer=optimizer)
    trained = nn.parallel.DistributedDataParallel(model) if gang else model
    batch = max(1, switchyard.batch_size(options.batch_size) // switchyard.world_size())
    train(options, state, trained, optimizer, batch, device)
    if gang:
        torch.distributed.destroy_process_group()


def train(
    options: argparse.Namespace,
    state: State,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: int,
    device: torch.device,
) -> None:
    """All steps that are still to be done."""
    loop = switchyard.steps(options.steps, save=state.save, load=state.load, every=options.every, agree=agree)
    for step in loop:
        points, labels = spirals(batch, device)
        loss = nn.functional.binary_cross_entropy_with_logits(model(points).squeeze(1), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(options.step_s)
        if switchyard.rank() == 0 and ((step + 1) % 20 == 0 or step + 1 == options.steps):
            print(f"step {step + 1} of {options.steps}: loss {loss.item():.4f} on {device}", flush=True)
    if switchyard.stopped():
        print(f"rank {switchyard.rank()} stopped: {switchyard.stop_reason()}", flush=True)


def spirals(count: int, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Points on two spirals, and which of the two each is on."""
    labels = torch.randint(0, 2, (count,)).float()
    turn = torch.rand(count) * 6
    angle = turn + labels * torch.pi
    points = torch.stack([turn * angle.cos(), turn * angle.sin()], 1) / 3 + torch.randn(count, 2) * 0.03
    return points.to(device), labels.to(device)


def choose_device() -> torch.device:
    """The card of this rank, whether it sees all of the node's or only its own; else the processor."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", switchyard.local_rank() % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def read_options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(description="Train a small network with PyTorch, with checkpoints.")
    parser.add_argument("--steps", type=int, default=600, help="steps to train (default: 600)")
    parser.add_argument("--batch-size", type=int, default=256, help="examples a step, over all ranks (default: 256)")
    parser.add_argument("--step-s", type=float, default=0.0, help="seconds to wait in each step (default: 0)")
    parser.add_argument("--every", type=int, default=200, help="also save after every so many steps (default: 200)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
