"""An ordinary PyTorch training job: knows nothing of any scheduler, saves nothing, and prints its loss.

Everything is seeded and deterministic, so that its last loss tells whether it ran undisturbed. With --talk it says how
far it is through the package `switchyard`, as a job does whose speed is to be guaranteed.
"""

import argparse
import json
import os
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import torch
from torch import nn


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(256, 512, num_layers=2, batch_first=True)
        self.head = nn.Linear(512, 256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0])


class Conv(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        sizes = [3, width, width, 2 * width, 2 * width]
        pairs = zip(sizes, sizes[1:])
        self.body = nn.Sequential(*[nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU()) for a, b in pairs])
        self.head = nn.Conv2d(2 * width, 3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))


class Encoder(nn.Module):
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True)
        self.body = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)


def mlp(width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))


# Model and a batch for it: from small kernels that leave most of the card idle to large ones that fill it.
MODELS = {
    "mlp": lambda: (mlp(512), (64, 512)),
    "lstm": lambda: (Lstm(), (64, 64, 256)),
    "conv": lambda: (Conv(32), (32, 3, 64, 64)),
    "encoder": lambda: (Encoder(256, 4), (16, 128, 256)),
    "wide": lambda: (mlp(4096), (2048, 4096)),
    "large": lambda: (Encoder(1024, 8), (16, 512, 1024)),
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("--seconds", type=float, help="measure how many steps take so long, print it and end")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--gib", type=float, default=0.0, help="further memory that it holds on the card")
    parser.add_argument("--talk", action="store_true")
    parser.add_argument("--times", help="a file for the time of each step")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    model, shape = MODELS[args.model]()
    model = model.cuda()
    held = torch.ones(int(args.gib * 2**28), device="cuda")
    batch = torch.randn(shape, device="cuda")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    times: list[float] = []

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        loss = (model(batch) - batch).pow(2).mean()
        loss.backward()
        optimizer.step()
        value = loss.item()
        times.append(time.time())
        return value

    if args.seconds:
        for _ in range(10):
            step()
        begin, count = time.time(), 0
        while time.time() - begin < args.seconds:
            step()
            count += 1
        print(json.dumps({"steps_per_s": count / (time.time() - begin)}), flush=True)
        return
    numbers = range(args.steps)
    if args.talk:
        import switchyard

        numbers = switchyard.steps(args.steps)
    loss = float("nan")
    for number in numbers:
        loss = step()
        if number % 50 == 0:
            print(f"step {number} loss {loss:.6f}", flush=True)
    whole = bool((held == 1).all().item())
    if args.times:
        with open(args.times, "w") as file:
            json.dump(times, file)
    print(json.dumps({"loss": loss, "steps": args.steps, "memory_whole": whole}), flush=True)


if __name__ == "__main__":
    main()
