#!/usr/bin/env python3
"""Measures what a training step of GPT models takes on one GPU, as CSV for `yard bench kind --steps`.

    bench/h200/steps.py > steps.csv
    yard bench kind --steps steps.csv --kind h200

As Megatron trains: weights in bf16, gradients and Adam in fp32, fused attention, blocks compiled. Each row is the median of
five steps after three. Sizes that do not fit in the GPU's memory are left out, and said so."""

import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

VOCAB = 51200

# hidden, layers, heads, tokens of a sample, samples of a micro-batch, micro-batches, what is computed again
CASES = [
    (1024, 24, 16, 1024, 4, 2, "none"),
    (1024, 24, 16, 1024, 16, 1, "none"),
    (1024, 24, 16, 2048, 8, 2, "none"),
    (2048, 24, 16, 2048, 1, 4, "none"),
    (2048, 24, 16, 2048, 4, 2, "none"),
    (2048, 24, 16, 2048, 8, 2, "none"),
    (2048, 24, 16, 2048, 8, 2, "full"),
    (2560, 32, 32, 2048, 4, 2, "none"),
    (4096, 16, 32, 2048, 2, 2, "none"),
    (4096, 16, 32, 2048, 8, 1, "full"),
]


class Block(nn.Module):
    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, hidden = x.shape
        parts = self.qkv(self.first(x)).view(batch, tokens, 3, self.heads, hidden // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, tokens, hidden))
        return x + self.down(functional.gelu(self.up(self.second(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, hidden: int, layers: int, heads: int, tokens: int, recompute: str) -> None:
        super().__init__()
        self.recompute = recompute
        self.words, self.places = nn.Embedding(VOCAB, hidden), nn.Embedding(tokens, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.last = nn.LayerNorm(hidden)

    def forward(self, text: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
        x = self.words(text) + self.places.weight[: text.shape[1]]
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.recompute == "full" else block(x)
        logits = functional.linear(self.last(x), self.words.weight)
        return functional.cross_entropy(logits.float().view(-1, VOCAB), wanted.view(-1))


def measure(hidden: int, layers: int, heads: int, tokens: int, micro: int, micro_batches: int, recompute: str) -> float:
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = Gpt(hidden, layers, heads, tokens, recompute).bfloat16()
    for block in model.blocks:
        block.compile()
    exact = [weight.detach().float() for weight in model.parameters()]
    for weight in exact:
        weight.grad = torch.zeros_like(weight)
    adam = torch.optim.AdamW(exact, lr=1e-4, fused=True)
    text = torch.randint(VOCAB, (micro, tokens), device="cuda")
    weights = list(model.parameters())

    def step() -> None:
        for weight in exact:
            weight.grad.zero_()
        for _ in range(micro_batches):
            model(text, text).backward()
            torch._foreach_add_([weight.grad for weight in exact], [weight.grad for weight in weights])
            for weight in weights:
                weight.grad = None
        adam.step()
        with torch.no_grad():
            torch._foreach_copy_(weights, exact)

    times = []
    for _ in range(8):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[3:])


def main() -> None:
    print("hidden,layers,heads,seq,vocab,micro_batch,micro_batches,recompute,step_s")
    for case in CASES:
        hidden, layers, heads, tokens, micro, micro_batches, recompute = case
        try:
            seconds = measure(*case)
        except torch.cuda.OutOfMemoryError:
            print(f"left out, does not fit: {case}", file=sys.stderr)
            continue
        finally:
            torch._dynamo.reset()
            torch.cuda.empty_cache()
        print(f"{hidden},{layers},{heads},{tokens},{VOCAB},{micro},{micro_batches},{recompute},{seconds:.5f}", flush=True)


if __name__ == "__main__":
    main()
