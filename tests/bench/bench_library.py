# SPDX-License-Identifier: Apache-2.0
#
# A step through the C interface, through Python and through TrainStep, beside the trainer's, in turns in one run on two
# threads: a GPT-2 of 4 layers and ResNet-18. Needs numpy, torch, torchvision and transformers.
#
#   PYTHONPATH=python bench_library.py FOLDER [--turns N] [--steps N] [MODEL...]
import argparse
import json
import os
import statistics
import subprocess
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "2"
import numpy
import torch
import torchvision
import transformers
import trainc
from torch import nn
from trainc.compiler import find_program, library_of

TREE = Path(__file__).resolve().parents[2]


class Logits(nn.Module):

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return self.model(input_ids=input_ids, use_cache=False).logits


def gpt2():
    config = transformers.GPT2Config(vocab_size=256, n_positions=128, n_embd=256, n_layer=4, n_head=4, resid_pdrop=0, embd_pdrop=0,
                                     attn_pdrop=0)
    return Logits(transformers.GPT2LMHeadModel(config)), torch.randint(0, 256, (8, 128)), torch.randint(0, 256, (8, 128))


def resnet18():
    return torchvision.models.resnet18(num_classes=10), torch.randn(16, 3, 64, 64), torch.randint(0, 10, (16,))


def median_of(step, count):
    taken = []
    for _ in range(count):
        begin = time.perf_counter()
        step()
        taken.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(taken)


def compare(name, make, turns, steps):
    torch.manual_seed(0)
    module, x, y = make()
    module.train()
    folder = Path(name).resolve()
    folder.mkdir(exist_ok=True)
    trainc.export(module, (x,), folder / f"{name}.onnx", dynamic=False, check=False)
    library_of(folder / f"{name}.onnx", loss="cross_entropy", decay=".*", output=folder / "out")
    numpy.save(folder / "x.npy", x.numpy())
    numpy.save(folder / "y.npy", y.numpy())
    subprocess.run(["cc", "-O1", "-I", TREE, "-o", folder / "caller", TREE / "tests/train/library/caller.c", "-ldl"], check=True)
    model = trainc.Model(folder / "out")
    names = list(model.inputs)
    batch = {names[0]: x.numpy(), names[1]: y.numpy()}
    step = trainc.torch.TrainStep(module, "cross_entropy", example=(x, y))

    def by_trainer():
        subprocess.run([folder / "out/trainer", "train", "--data", f"{names[0]}={folder}/x.npy", "--data", f"labels={folder}/y.npy", "--steps",
                        str(steps), "--no-checkpoints", "--run", folder / "run", "--overwrite", "--no-progress"], check=True, capture_output=True)
        rows = [json.loads(line) for line in open(folder / "run/log.jsonl")]
        return statistics.median([row["milliseconds"] for row in rows if "milliseconds" in row])

    def by_c():
        done = subprocess.run([folder / "caller", next((folder / "out/library").glob("lib*.so")), name, "create=0,0,1",
                               f"data:{names[0]}={folder}/x.npy", f"data:labels={folder}/y.npy", f"time={steps}"], check=True,
                              capture_output=True, text=True)
        return float(done.stdout.split()[1])

    ways = {"trainer": by_trainer, "C": by_c, "Model": lambda: median_of(lambda: model.step(batch), steps),
            "TrainStep": lambda: median_of(lambda: step(x, y), steps)}
    taken = {way: [] for way in ways}
    for _ in range(turns):
        for way, run in ways.items():
            taken[way].append(run())
    least = {way: min(times) for way, times in taken.items()}
    print(f"{name}: " + ", ".join(f"{way} {ms:.2f} ms ({ms / least['trainer'] - 1:+.1%})" for way, ms in least.items()), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder")
    parser.add_argument("models", nargs="*", default=["gpt2", "resnet18"])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--steps", type=int, default=30)
    arguments = parser.parse_args()
    os.makedirs(arguments.folder, exist_ok=True)
    os.environ["TRAINC_CACHE"] = os.path.join(os.path.abspath(arguments.folder), "cache")
    os.chdir(arguments.folder)
    find_program()
    for each in arguments.models:
        compare(each, {"gpt2": gpt2, "resnet18": resnet18}[each], arguments.turns, arguments.steps)
