#!/usr/bin/env python3
"""Trains the same two translation Transformers with Gradstone and with PyTorch, on the same batches
with the same number of threads, in turns, and prints the ratios.

    cmake --preset release -DGS_BUILD_BENCHMARKS=ON && cmake --build --preset release
    python3 -m venv peer && peer/bin/pip install torch
    tools/benchmark/compare_training.py --peer peer/bin/python

Figures are medians over the rounds; the machine should have nothing else to do.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def commands(arguments, model):
    """(name, command) of each contender."""
    common = ["--model", model, "--threads", str(arguments.threads)]
    common += ["--steps", str(arguments.steps), "--warm-up", str(arguments.warm_up)]
    yield "gradstone", [arguments.program, "--device", "cpu", *common]
    for mode in arguments.modes:
        script = str(HERE / "pytorch_training.py")
        yield f"pytorch {mode}", [arguments.peer, script, "--mode", mode, *common]


def run(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        sys.exit(f"compare_training: cannot run {command[0]}: {error.strerror}; see --help")
    if done.returncode != 0:
        sys.exit(f"compare_training: {' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def median(results, key):
    return statistics.median(result[key] for result in results)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True, help="a Python with PyTorch")
    parser.add_argument("--program", default=str(HERE.parents[1] / "build/release/bin/training_step"))
    parser.add_argument("--models", nargs="+", default=["tiny", "small"])
    parser.add_argument("--modes", nargs="+", default=["eager", "compile"], help="of PyTorch")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm-up", type=int, default=30, help="steps that are not timed; 15 see every batch")
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--json", type=Path, help="where to write every result")
    arguments = parser.parse_args()
    rows = []
    print(f"{'model':6} {'':16} {'tokens/s':>9} {'ms/step':>8} {'peak MB':>8} {'speed':>7} {'memory':>7}")
    for model in arguments.models:
        results = {}
        for _ in range(arguments.rounds):
            for name, command in commands(arguments, model):
                results.setdefault(name, []).append(run(command))
        ours = results["gradstone"]
        for name, theirs in results.items():
            speed = median(ours, "target_tokens_per_second") / median(theirs, "target_tokens_per_second")
            memory = median(ours, "peak_memory_mb") / median(theirs, "peak_memory_mb")
            rows.append({"model": model, "contender": name, "speed_ratio": speed,
                         "memory_ratio": memory, "rounds": theirs})
            print(f"{model:6} {name:16} {median(theirs, 'target_tokens_per_second'):9.0f}"
                  f" {median(theirs, 'step_ms_median'):8.1f} {median(theirs, 'peak_memory_mb'):8.0f}"
                  f" {speed:6.2f}x {memory:6.2f}x", flush=True)
        print(f"{model:6} gradstone reaches {median(ours, 'model_gflops'):.0f} GFLOP/s,"
              f" {100 * median(ours, 'share_of_limit'):.0f} % of the product limit", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
