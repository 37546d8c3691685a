#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# What a step should take on a GPU, from its plan alone: for each family of kernels launches, bytes, operations and
# predicted milliseconds; docs/cuda.md has the table of GPT-2 124M. A launch takes the longer of two times, that of its
# bytes and that of its operations at the rates below, and a gap before the next. tests/gpu.sh measures the same.
#
#   predict_gpu.py OUTPUT [--gpu h100|h200]...      OUTPUT: a folder of trainc --target cuda
#
# Bytes are those that kernels ask for; what the device's cache saves is not taken off.
import argparse
import json
import pathlib
import re

# Memory: the vendor's figure for the SXM module times what a copy reaches of it. Products of 16 bits: what large ones
# reach of 989 TFLOP/s. Attention: what FlashAttention-2 reaches on this architecture with causal heads of 64 numbers and
# 1024 keys, forward and backward; the plan counts five products of a gradient, the kernels have seven. f32: outside of
# tensor cores.
COPY = 0.92
RATES = {"products": 700e12, "attention": 250e12, "attention_gradient": 200e12 * 5 / 7, "f32": 50e12}
MEMORY = {"h100": 3.35e12 * COPY, "h200": 4.8e12 * COPY}
GAP = 1.2e-6  # seconds from one kernel of a graph to the next
LAUNCHES = {"attention_gradient": 3}  # of a step of the plan that has several; a reduction in parts has two
FAMILIES = ("head and loss", "attention", "products of the body", "norms, columns, pointwise", "update")


def family(entry, kernel, vocabulary):
    text = kernel["kernel"]
    if entry != "forward_backward":
        return "update"
    sizes = [int(size) for size in re.findall(r"\d+", text)] if kernel["form"] == "library" else []
    if vocabulary in sizes or text.startswith("loss"):
        return "head and loss"
    if text.startswith("attention"):
        return "attention"
    return "products of the body" if text.startswith("matmul") else "norms, columns, pointwise"


def rate(kernel, precision):
    text = kernel["kernel"]
    kind = text.split()[0].rstrip(",")
    of_cores = {"matmul": "products", "attention": "attention", "attention_gradient": "attention_gradient"}
    return RATES[of_cores.get(kind, "f32") if precision in ("bf16", "fp16") else "f32"]


def launches_of(kernel):
    of_form = 2 if kernel["form"] in ("column", "full") else 1
    return LAUNCHES.get(kernel["kernel"].split()[0], of_form)


def rows(plan, bandwidth):
    """{family: [launches, bytes, operations, seconds]}"""
    found = {name: [0, 0, 0, 0.0] for name in FAMILIES}
    products = [kernel for entry in plan["entries"] for kernel in entry["kernels"] if "matmul" in kernel["kernel"]]
    vocabulary = max((int(size) for kernel in products for size in re.findall(r"\d+", kernel["kernel"])), default=0)
    for entry in plan["entries"]:
        if entry["entry"] not in ("forward_backward", "update"):
            continue
        for kernel in entry["kernels"]:
            times, launches = kernel["times"], launches_of(kernel)
            seconds = max(kernel["bytes_each"] / bandwidth,
                          kernel["flops_each"] / rate(kernel, plan["program"]["precision"]))
            row = found[family(entry["entry"], kernel, vocabulary)]
            row[0] += times * launches
            row[1] += times * kernel["bytes_each"]
            row[2] += times * kernel["flops_each"]
            row[3] += times * (seconds + launches * GAP)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("output", type=pathlib.Path, help="what trainc --target cuda wrote")
    parser.add_argument("--gpu", choices=MEMORY, action="append")
    options = parser.parse_args()
    gpus = options.gpu or list(MEMORY)
    path = options.output / "plan/plan.json"
    if not path.exists():
        parser.error(f"{path} is not there\n  try: the folder that trainc --target cuda wrote")
    plan = json.loads(path.read_text())
    if all(entry["entry"] != "forward_backward" for entry in plan["entries"]):
        parser.error(f"{options.output} is a step in stages\n  try: an output without --stages")
    tables = {gpu: rows(plan, MEMORY[gpu]) for gpu in gpus}
    print("| kernels | launches | GB | TFLOP |" + "".join(f" ms, {gpu.upper()} |" for gpu in gpus))
    print("|---|---|---|---|" + "---|" * len(gpus))

    def line(name, launches, moved, operations, seconds):
        print(f"| {name} | {launches} | {moved / 1e9:.1f} | {operations / 1e12:.2f} |" +
              "".join(f" {1000 * of_gpu:.1f} |" for of_gpu in seconds))

    for name in FAMILIES:
        row = tables[gpus[0]][name]
        line(name, *row[:3], [tables[gpu][name][3] for gpu in gpus])
    total = [sum(column) for column in zip(*tables[gpus[0]].values())]
    line("a step", *total[:3], [sum(row[3] for row in tables[gpu].values()) for gpu in gpus])


if __name__ == "__main__":
    main()
