#!/usr/bin/env python3
"""The training step of training_step.cpp in PyTorch on a CUDA device, as fast as its users can have
it: sentences of one length, so that nothing is padded, scaled_dot_product_attention without masks,
fused AdamW, TF32 or autocast to bfloat16 over float32 weights. The batch is on the device already,
and no loss is read. Prints a JSON line for each model, precision and mode:

eager     operation by operation
graph     layers and loss compiled, and the whole step, optimizer included, as one CUDA graph
compile   all of the model and the loss compiled, with CUDA graphs (reduce-overhead); takes minutes
"""

import argparse
import gc
import json
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

from pytorch_training import BOS, CAUSAL, CONFIGS, EOS, Transformer


class Unpadded(Transformer):
    def forward(self, source, target, label):
        x, y = self.embed(source), self.embed(target)
        for layer in self.encoder:
            x = layer(x, None)
        for layer in self.decoder:
            y = layer(y, CAUSAL, x, None)
        return self.loss(y, label)

    def loss(self, y, label):
        logits = F.linear(y, self.table.weight, self.bias).flatten(0, 1)
        return F.cross_entropy(logits, label.flatten(), label_smoothing=0.1)

    # Layers of one kind share what is compiled: seconds instead of minutes.
    def compile_parts(self):
        for layer in [*self.encoder, *self.decoder]:
            layer.compile()
        self.embed, self.loss = torch.compile(self.embed), torch.compile(self.loss)


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
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        self.data, self.bfloat16, self.device = data, precision == "bfloat16", device
        self.model = Unpadded(*config).to(device)
        fused = device.type == "cuda"
        self.adam = torch.optim.AdamW(self.model.parameters(), 1e-4, betas=(0.9, 0.98), eps=1e-9,
                                      fused=fused, capturable=fused)
        if mode == "graph":
            self.model.compile_parts()
        elif mode == "compile":
            self.model.compile(mode="reduce-overhead")
        self.step = self.eager_step
        self.last = None
        if mode == "graph" and device.type == "cuda":
            self.capture()

    def eager_step(self):
        self.adam.zero_grad(set_to_none=True)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.bfloat16):
            loss = self.model(*self.data)
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
    tokens = arguments.tiny_tokens if name == "tiny10k" else arguments.tokens
    data = batch(CONFIGS[name][5], tokens, arguments.length, device)
    trainer = Trainer(CONFIGS[name], mode, precision, device, data)
    for _ in range(arguments.warm_up):
        trainer.step()
    wait()
    times = []  # seconds a step, of each group
    for _ in range(max(1, arguments.steps // arguments.at_once)):
        start = time.perf_counter()
        for _ in range(arguments.at_once):
            trainer.step()
        wait()
        times.append((time.perf_counter() - start) / arguments.at_once)
    return {
        "target_tokens_per_second": round(data[2].numel() / statistics.mean(times)),
        "tokens_per_step": data[2].numel(),
        "step_ms_median": 1e3 * statistics.median(times),
        "loss": trainer.last.item(),
        "peak_arrays_mb": torch.cuda.max_memory_allocated() >> 20 if device.type == "cuda" else 0,
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--models", nargs="+", default=["tiny10k", "base", "big"], choices=CONFIGS)
    parser.add_argument("--precisions", nargs="+", default=["bfloat16", "tf32", "float32"],
                        choices=["float32", "tf32", "bfloat16"])
    parser.add_argument("--modes", nargs="+", default=["eager", "graph", "compile"],
                        choices=["eager", "graph", "compile"])
    parser.add_argument("--tokens", type=int, default=25000, help="of each side")
    parser.add_argument("--tiny-tokens", type=int, default=4096, help="the same for tiny10k")
    parser.add_argument("--length", type=int, default=32, help="of each sentence")
    parser.add_argument("--warm-up", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--at-once", type=int, default=5, help="of these, timed together")
    arguments = parser.parse_args()
    if arguments.device == "cuda" and not torch.cuda.is_available():
        sys.exit(f"pytorch_device_training: torch {torch.__version__} sees no CUDA device; use --device cpu")
    failed = False
    for mode in arguments.modes:
        for precision in arguments.precisions:
            for name in arguments.models:
                line = {"part": "training", "framework": f"pytorch {mode}", "model": name,
                        "version": torch.__version__, "precision": precision}
                try:
                    line |= measure(arguments, name, precision, mode)
                except Exception as error:  # the next may well run
                    line["error"] = f"{type(error).__name__}: {str(error)[:300]}"
                    failed = True
                print(json.dumps(line), flush=True)
                torch._dynamo.reset()
                gc.collect()  # the model, its step and its graph know each other
                if arguments.device == "cuda":
                    torch.cuda.empty_cache()
                    torch.cuda.reset_peak_memory_stats()
    sys.exit(failed)


if __name__ == "__main__":
    main()
