#!/usr/bin/env python3
"""The training step of training_step.cpp in PyTorch on a CUDA device, as fast as its users can have
it: sentences of one length, so that nothing is padded, scaled_dot_product_attention without masks,
fused AdamW, TF32 or autocast to bfloat16. Prints a JSON line for each model, precision and mode:

eager     operation by operation
compile   torch.compile with its CUDA graphs (reduce-overhead)
graph     torch.compile, and the whole step, optimizer included, as one CUDA graph
"""

import argparse
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

from pytorch_training import BOS, CAUSAL, CONFIGS, EOS, Transformer


class Unpadded(Transformer):
    def forward(self, source, target):
        x, y = self.embed(source), self.embed(target)
        for layer in self.encoder:
            x = layer(x, None)
        for layer in self.decoder:
            y = layer(y, CAUSAL, x, None)
        return F.linear(y, self.table.weight, self.bias)


def batch(vocabulary, tokens, length, device):
    count = max(1, tokens // length)
    generator = torch.Generator().manual_seed(1)
    source, words = (torch.randint(3, vocabulary, (count, length), generator=generator) for _ in range(2))
    target = torch.cat([torch.full((count, 1), BOS), words[:, 1:]], 1)
    label = torch.cat([words[:, 1:], torch.full((count, 1), EOS)], 1)
    return source.to(device), target.to(device), label.to(device)


class Trainer:
    def __init__(self, config, mode, precision, device, data):
        torch.manual_seed(0)
        torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
        self.data, self.bfloat16, self.device = data, precision == "bfloat16", device
        self.model = Unpadded(*config).to(device)
        fused = device.type == "cuda"
        self.adam = torch.optim.AdamW(self.model.parameters(), 1e-4, betas=(0.9, 0.98), eps=1e-9,
                                      fused=fused, capturable=fused)
        modes = {"compile": "reduce-overhead", "graph": "default"}
        self.forward = self.loss if mode == "eager" else torch.compile(self.loss, mode=modes[mode])
        self.step = self.eager_step
        self.last = None
        if mode == "graph":
            self.capture()

    def loss(self, source, target, label):
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bfloat16):
            logits = self.model(source, target).flatten(0, 1)
            return F.cross_entropy(logits, label.flatten(), label_smoothing=0.1)

    def eager_step(self):
        self.adam.zero_grad(set_to_none=True)
        loss = self.forward(*self.data)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.adam.step()
        self.last = loss.detach()

    def capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.eager_step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.eager_step()
        self.step = graph.replay


def measure(arguments, name, precision, mode):
    device = torch.device(arguments.device)
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    data = batch(CONFIGS[name][5], arguments.tokens, arguments.length, device)
    trainer = Trainer(CONFIGS[name], mode, precision, device, data)
    times = []
    for i in range(arguments.warm_up + arguments.steps):
        wait()
        start = time.perf_counter()
        trainer.step()
        wait()
        if i >= arguments.warm_up:
            times.append(time.perf_counter() - start)
    tokens = data[2].numel()
    return {
        "target_tokens_per_second": round(tokens / statistics.mean(times)),
        "tokens_per_step": tokens,
        "step_ms_median": 1e3 * statistics.median(times),
        "loss": trainer.last.item(),
        "peak_arrays_mb": torch.cuda.max_memory_allocated() >> 20 if device.type == "cuda" else 0,
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--models", nargs="+", default=["tiny", "base", "big"], choices=CONFIGS)
    parser.add_argument("--precisions", nargs="+", default=["float32", "tf32", "bfloat16"],
                        choices=["float32", "tf32", "bfloat16"])
    parser.add_argument("--modes", nargs="+", default=["eager", "compile", "graph"],
                        choices=["eager", "compile", "graph"])
    parser.add_argument("--tokens", type=int, default=25000, help="of each side")
    parser.add_argument("--tiny-tokens", type=int, default=4096, help="the same for tiny")
    parser.add_argument("--length", type=int, default=32, help="of each sentence")
    parser.add_argument("--warm-up", type=int, default=5)
    parser.add_argument("--steps", type=int, default=15)
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        sys.exit(f"pytorch_device_training: torch {torch.__version__} sees no CUDA device; use --device cpu")
    failed = False
    tokens = arguments.tokens
    for mode in arguments.modes:
        for name in arguments.models:
            for precision in arguments.precisions:
                line = {"part": "training", "framework": f"pytorch {mode}", "model": name,
                        "version": torch.__version__, "precision": precision}
                arguments.tokens = arguments.tiny_tokens if name == "tiny" else tokens
                try:
                    line |= measure(arguments, name, precision, mode)
                except Exception as error:  # the next may well run
                    line["error"] = f"{type(error).__name__}: {str(error).splitlines()[0][:300] if str(error) else ''}"
                    failed = True
                print(json.dumps(line), flush=True)
                torch._dynamo.reset()
                if arguments.device == "cuda":
                    torch.cuda.empty_cache()
                    torch.cuda.reset_peak_memory_stats()
    sys.exit(failed)


if __name__ == "__main__":
    main()
