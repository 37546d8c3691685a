# SPDX-License-Identifier: Apache-2.0
#
# Step times of one model in PyTorch eager, in torch.compile (--compile) and in a
# trainer of ours (--trainer), taken in turns so that all see the same machine: each
# round runs a few steps of each. AdamW with its defaults, no clipping. f32, or with
# --bf16 PyTorch's autocast, or parameters in bf16 without masters; the trainer is as it
# was compiled. With --recomputing, a trainer that recomputes its blocks, PyTorch does so,
# too (torch.utils.checkpoint of every block), and both slowdowns are printed.
import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import torch
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "models", "make"))
import families  # noqa: E402

VOCABULARY = 50257


class PyTorchRun:
    def __init__(self, name, arguments, compiled=False, recomputing=False):
        self.name = name
        self.autocast = arguments.bf16 == "autocast"
        # PyTorch's best form: the fused attention, whatever the exported graph has
        self.module = families.seed_weights(families.NanoGpt(
            vocabulary=VOCABULARY, width=768, heads=12, layers=arguments.layers, positions=1024,
            mask="sdpa", gelu="tanh"), 1).train()
        with torch.no_grad():  # norms at one, the others small: as trainc-fill starts
            for parameter in self.module.parameters():
                if parameter.dim() >= 2:
                    parameter.mul_(0.02 / 0.15)
        for block in self.module.h if recomputing else ():
            block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)
        if arguments.bf16 == "parameters":
            self.module.to(torch.bfloat16)
        self.optimizer = torch.optim.AdamW(self.module.parameters(), lr=1e-3, weight_decay=0.01)
        self.step_function = torch.compile(self.loss) if compiled else self.loss

    def loss(self, tokens, labels):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            return families.loss_of("cross_entropy", self.module(tokens), labels)

    def steps(self, tokens, labels, count, batch):
        times = []
        for step in range(count):
            rows = slice(step * batch, (step + 1) * batch)
            begin = time.perf_counter()
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.step_function(tokens[rows], labels[rows])
            loss.backward()
            self.optimizer.step()
            loss.item()
            times.append(1e3 * (time.perf_counter() - begin))
        return times


class TrainerRun:
    def __init__(self, name, trainer, arguments, folder):
        self.name, self.trainer, self.arguments, self.folder = name, trainer, arguments, folder

    def steps(self, tokens, labels, count, batch):
        ids, targets, run = (os.path.join(self.folder, n) for n in
                             ("ids.npy", "labels.npy", "run"))
        numpy.save(ids, tokens[: count * batch].numpy())
        numpy.save(targets, labels[: count * batch].numpy())
        command = [self.trainer, "train", "--data", f"input_ids={ids}", "--data",
                   f"labels={targets}", "--steps", str(count), "--learning-rate", "1e-3",
                   "--weight-decay", "0.01", "--no-shuffle", "--no-checkpoints",
                   "--overwrite", "--run", run]
        environment = dict(os.environ, OMP_NUM_THREADS=str(self.arguments.threads))
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        with open(os.path.join(run, "log.jsonl")) as lines:
            records = [json.loads(line) for line in lines]
        return [r["milliseconds"] for r in records if "milliseconds" in r and "step" in r]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--trainer", help="a compiled trainer of the same model")
    parser.add_argument("--recomputing", help="another one, made with --recompute or a budget")
    parser.add_argument("--compile", action="store_true", help="torch.compile too (a minute)")
    parser.add_argument("--bf16", choices=["autocast", "parameters"], help="how PyTorch has bf16")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5, help="of each per round")
    parser.add_argument("--bar", type=float, help="fail if trainc is not this much faster "
                        "than eager")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    generator = torch.Generator().manual_seed(3)
    shape = (arguments.steps * arguments.batch, arguments.sequence)
    tokens = torch.randint(0, VOCABULARY, shape, generator=generator)
    labels = torch.randint(0, VOCABULARY, shape, generator=generator)

    with tempfile.TemporaryDirectory() as folder:
        runs = [PyTorchRun("eager", arguments)]
        if arguments.compile:
            runs.append(PyTorchRun("compile", arguments, compiled=True))
        if arguments.trainer:
            runs.append(TrainerRun("trainc", arguments.trainer, arguments, folder))
        if arguments.recomputing:
            runs.append(PyTorchRun("checkpoint", arguments, recomputing=True))
            runs.append(TrainerRun("recompute", arguments.recomputing, arguments, folder))
        times = {run.name: [] for run in runs}
        for run in runs:  # warm up: allocation, compilation
            begin = time.perf_counter()
            run.steps(tokens, labels, 2, arguments.batch)
            print(f"{run.name:10} first two steps {time.perf_counter() - begin:7.1f} s", flush=True)
        for _ in range(arguments.rounds):
            for run in runs:
                # the first step of a round finds cold caches; a trainer's first also fresh memory
                times[run.name] += run.steps(tokens, labels, arguments.steps, arguments.batch)[1:]

    medians = {name: statistics.median(values) for name, values in times.items()}
    print(f"\nstep of batch {arguments.batch} x {arguments.sequence}, {arguments.layers} layers, "
          f"{arguments.threads} threads, milliseconds")
    print(f"{'':10} {'median':>9} {'best':>9} {'worst':>9}")
    for name, values in times.items():
        print(f"{name:10} {medians[name]:9.1f} {min(values):9.1f} {max(values):9.1f}")
    failed = False
    if arguments.trainer:
        for name in medians:
            if name in ("eager", "compile"):
                ratio = medians[name] / medians["trainc"]
                bar = ""
                if name == "eager" and arguments.bar:
                    failed = ratio < arguments.bar
                    bar = f"  bar {arguments.bar:.2f}: {'FAILED' if failed else 'ok'}"
                print(f"{name} / trainc = {ratio:.2f}{bar}")
    for plain, recomputing in (("eager", "checkpoint"), ("trainc", "recompute")):
        if {plain, recomputing} <= medians.keys():
            print(f"{recomputing} / {plain} = {medians[recomputing] / medians[plain]:.2f}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
