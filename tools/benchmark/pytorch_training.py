#!/usr/bin/env python3
"""The training step of training_step.cpp in PyTorch, written as its users write it: padded batches,
one product for q, k and v, scaled_dot_product_attention, fused Adam. Prints one JSON line.

Needs a current PyTorch: python3 -m venv peer && peer/bin/pip install torch
"""

import argparse
import json
import math
import resource
import statistics
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

CONFIGS = {  # width, feed-forward, heads, encoder layers, decoder layers, vocabulary
    "tiny": (128, 256, 4, 4, 4, 6000),
    "tiny10k": (128, 512, 4, 4, 4, 10000),
    "small": (256, 1024, 8, 3, 3, 8000),
    "base": (512, 2048, 8, 6, 6, 37000),
    "big": (1024, 4096, 16, 6, 6, 33000),
}
PAD, BOS, EOS = 0, 1, 2
CAUSAL = "causal"  # in place of a mask


class Attention(nn.Module):
    def __init__(self, width, heads, cross):
        super().__init__()
        self.heads, self.cross = heads, cross
        self.q = nn.Linear(width, width if cross else 3 * width)
        self.kv = nn.Linear(width, 2 * width) if cross else None
        self.out = nn.Linear(width, width)

    def forward(self, x, memory, allowed):
        if self.cross:
            q, (k, v) = self.q(x), self.kv(memory).chunk(2, -1)
        else:
            q, k, v = self.q(x).chunk(3, -1)
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (q, k, v))  # (B, H, T, D)
        causal = allowed is CAUSAL
        y = F.scaled_dot_product_attention(q, k, v, None if causal else allowed, is_causal=causal)
        return self.out(y.transpose(1, 2).flatten(-2))


class Layer(nn.Module):
    def __init__(self, width, inner, heads, decoder, dropout):
        super().__init__()
        self.attention = Attention(width, heads, False)
        self.cross = Attention(width, heads, True) if decoder else None
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3 if decoder else 2))
        self.drop = nn.Dropout(dropout)

    def forward(self, x, own, memory=None, theirs=None):
        x = self.norms[0](x + self.drop(self.attention(x, x, own)))
        if self.cross is not None:
            x = self.norms[1](x + self.drop(self.cross(x, memory, theirs)))
        return self.norms[-1](x + self.drop(self.down(F.relu(self.up(x)))))


class Transformer(nn.Module):
    def __init__(self, width, inner, heads, encoders, decoders, vocabulary, dropout=0.1):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width, padding_idx=PAD)
        nn.init.normal_(self.table.weight, 0, width**-0.5)
        frequencies = torch.exp(torch.arange(0, width, 2) * (-math.log(1e4) / width))
        angles = torch.arange(256).unsqueeze(1) * frequencies
        self.register_buffer("positions", torch.stack([angles.sin(), angles.cos()], -1).flatten(1))
        self.encoder = nn.ModuleList(Layer(width, inner, heads, False, dropout) for _ in range(encoders))
        self.decoder = nn.ModuleList(Layer(width, inner, heads, True, dropout) for _ in range(decoders))
        self.scale, self.drop = math.sqrt(width), nn.Dropout(dropout)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def embed(self, ids):
        return self.drop(self.table(ids) * self.scale + self.positions[: ids.size(1)])

    def forward(self, source, target):
        source_ok = (source != PAD)[:, None, None, :]
        causal = torch.ones(target.size(1), target.size(1), dtype=torch.bool).tril()
        x, y = self.embed(source), self.embed(target)
        for layer in self.encoder:
            x = layer(x, source_ok)
        for layer in self.decoder:
            y = layer(y, causal, x, source_ok)
        return F.linear(y, self.table.weight, self.bias)


def batches(path, vocabulary):
    generator = torch.Generator().manual_seed(1)
    for lengths in json.loads(path.read_text()):
        sources, targets = (max(column) for column in zip(*lengths))
        source, target, label = (torch.full((len(lengths), n), PAD) for n in (sources, targets, targets))
        for i, (s, t) in enumerate(lengths):
            source[i, :s] = torch.randint(3, vocabulary, (s,), generator=generator)
            words = torch.randint(3, vocabulary, (t - 1,), generator=generator)
            target[i, 0], target[i, 1:t] = BOS, words
            label[i, : t - 1], label[i, t - 1] = words, EOS
        yield source, target, label, sum(t for _, t in lengths)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="tiny", choices=CONFIGS)
    parser.add_argument("--mode", default="eager", choices=["eager", "compile"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warm-up", type=int, default=15)
    parser.add_argument("--steps", type=int, default=15)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    config = CONFIGS[arguments.model]
    model = Transformer(*config)
    adam = torch.optim.Adam(model.parameters(), 1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    run = model if arguments.mode == "eager" else torch.compile(model, dynamic=True)

    def step(source, target, label):
        logits = run(source, target).flatten(0, 1)
        loss = F.cross_entropy(logits, label.flatten(), ignore_index=PAD, label_smoothing=0.1)
        adam.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        return loss.item()

    data = list(batches(Path(__file__).parent / "lengths.json", config[5]))
    times, tokens = [], 0
    for i in range(arguments.warm_up + arguments.steps):
        source, target, label, count = data[i % len(data)]
        start = time.perf_counter()
        loss = step(source, target, label)
        if i >= arguments.warm_up:
            times.append(time.perf_counter() - start)
            tokens += count
    print(json.dumps({
        "framework": f"pytorch {torch.__version__} {arguments.mode}",
        "model": arguments.model,
        "threads": arguments.threads,
        "target_tokens_per_second": round(tokens / sum(times)),
        "step_ms_median": 1e3 * statistics.median(times),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "loss": loss,
    }))


if __name__ == "__main__":
    main()
