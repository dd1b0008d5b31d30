#!/usr/bin/env python3
"""Makes tables of the JSON lines that device_rates, training_step, pytorch_device_training.py and
run_suites.py print.

usage: tools/benchmark/device_table.py FILE...
"""

import json
import sys

PRECISIONS = ["float32", "tf32", "bfloat16"]


def read(paths):
    lines = []
    for path in paths:
        with open(path, errors="replace") as file:
            for line in file:
                if line.startswith("{"):
                    try:
                        lines.append(json.loads(line))
                    except json.JSONDecodeError:  # cut off by a time limit
                        pass
    return lines


def short(error):
    return "failed: " + " ".join(error.split())[:90]


def kernel_table(lines):
    print(f"{'kernel':44} {'shape':30} {'type':9} {'time':>10} {'GB/s':>7} {'TFLOP/s':>8} {'of limit':>8}")
    for line in lines:
        head = f"{line['kernel']:44} {line['shape']:30} {line['type']:9}"
        if "error" in line:
            print(f"{head} {short(line['error'])}")
            continue
        flops = f"{line['tflops']:8.1f}" if "tflops" in line else f"{'':8}"
        print(f"{head} {line['microseconds']:7.1f} us {line['gigabytes_per_second']:7.0f} {flops}"
              f" {100 * line['share_of_limit']:6.0f} % {line['bound']}")


def cell(line):
    if line is None:
        return "-"
    if "error" in line:
        return "failed"
    return f"{line['step_ms_median']:.2f} ms {line['target_tokens_per_second'] / 1e3:.0f}k/s"


def training_table(lines):
    found = {(line["model"], line["framework"], line["precision"]): line for line in lines}
    models = list(dict.fromkeys(line["model"] for line in lines))
    frameworks = list(dict.fromkeys(line["framework"] for line in lines))
    print(f"{'model':7} {'framework':25}" + "".join(f"{p:>20}" for p in PRECISIONS)
          + "   median step, target tokens/s")
    for model in models:
        for framework in frameworks:
            cells = [cell(found.get((model, framework, p))) for p in PRECISIONS]
            print(f"{model:7} {framework:25}" + "".join(f"{c:>20}" for c in cells))
        for precision in PRECISIONS:
            times = sorted((line["step_ms_median"], f) for (m, f, p), line in found.items()
                           if (m, p) == (model, precision) and "error" not in line)
            ours = [time for time in times if time[1].startswith("gradstone")]
            theirs = [time for time in times if time not in ours]
            if ours and theirs:
                print(f"{model:7} {precision}: {ours[0][1]} has {theirs[0][0] / ours[0][0]:.2f}x the speed of"
                      f" {theirs[0][1]}")
    for line in lines:
        name = f"{line['model']} {line['framework']} {line['precision']}"
        if "error" in line:
            print(f"{name}: {short(line['error'])}")
        elif line.get("replayed_steps") == 0:
            print(f"{name}: its steps were not recorded; see the log")


def test_table(lines):
    for line in lines:
        counts = ", ".join(f"{n} {how}" for how, n in line.items() if how not in ("part", "program"))
        print(f"{line['part']}: {counts}")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    lines = read(sys.argv[1:])
    parts = {"kernel": kernel_table, "training": training_table}
    for part, table in parts.items():
        chosen = [line for line in lines if line.get("part") == part]
        if chosen:
            table(chosen)
            print()
    rest = [line for line in lines if line.get("part") not in parts]
    test_table(rest)
    if not lines:
        print("nothing was measured")


if __name__ == "__main__":
    main()
