# SPDX-License-Identifier: Apache-2.0
#
# A training step of torchvision's image models, 64 x 64 pixels, batch 16, SGD with momentum, against the best of PyTorch
# (eager, channels last, compiled), in turns in one run on two threads; with --bf16 PyTorch's autocast beside
# `--precision bf16`. Needs torch, torchvision and onnx.
#
#   bench_vision.py TRAINC FOLDER [--bf16] [MODEL...]
import json
import os
import subprocess
import sys
import time

import numpy
import torch
import torchvision
from torch import nn

THREADS, BATCH, PIXELS, CLASSES, UPDATES, TURNS = 2, 16, 64, 10, 12, 3
MODELS = ["resnet18", "mobilenet_v2", "squeezenet1_1", "mobilenet_v3_small", "efficientnet_b0"]
WAYS = ["eager", "channels last", "compiled"]


def make(name):
    torch.manual_seed(0)
    model = getattr(torchvision.models, name)(num_classes=CLASSES)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if isinstance(module, torchvision.ops.StochasticDepth):
            module.p = 0.0
    return model.train()


def peer(model, images, labels, way, bf16):
    """Milliseconds of each step."""
    channels_last = way == "channels last"
    if channels_last:
        model, images = model.to(memory_format=torch.channels_last), images.contiguous(memory_format=torch.channels_last)
    run = torch.compile(model) if way == "compiled" else model
    optimizer, taken = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), []
    for update in range(UPDATES):
        rows = slice(update * BATCH, (update + 1) * BATCH)
        begin = time.perf_counter()
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            loss = nn.functional.cross_entropy(run(images[rows]), labels[rows])
        loss.backward()
        optimizer.step()
        taken.append(1e3 * (time.perf_counter() - begin))
    return taken[2:]


def ours(name):
    subprocess.run([f"{name}/trainer", "train", "--data", "images=images.npy", "--data", "labels=labels.npy", "--steps", str(UPDATES),
                    "--learning-rate", "0.01", "--momentum", "0.9", "--no-checkpoints", "--run", "run", "--overwrite", "--no-progress"],
                   check=True, capture_output=True, env={**os.environ, "OMP_NUM_THREADS": str(THREADS)})
    with open("run/log.jsonl") as log:
        return [record["milliseconds"] for record in map(json.loads, log) if "milliseconds" in record][2:]


def main(trainc, folder, names, bf16):
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)
    torch.set_num_threads(THREADS)
    images, labels = torch.randn(BATCH * UPDATES, 3, PIXELS, PIXELS), torch.randint(0, CLASSES, (BATCH * UPDATES,))
    numpy.save("images.npy", images.numpy())
    numpy.save("labels.npy", labels.numpy())
    for name in names:
        torch.onnx.export(make(name), (images[:BATCH],), f"{name}.onnx", dynamo=False, opset_version=17, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.TRAINING, input_names=["images"], output_names=["logits"])
        subprocess.run([trainc, f"{name}.onnx", "--loss", "cross_entropy", "--optimizer", "sgd", "--precision", "bf16" if bf16 else "f32",
                        "-o", name], check=True, capture_output=True)
        best = {}
        for _ in range(TURNS):
            for way in WAYS:
                best.setdefault(way, []).extend(peer(make(name), images, labels, way, bf16))
            best.setdefault("trainc", []).extend(ours(name))
        least = {way: sorted(taken)[len(taken) // 4] for way, taken in best.items()}
        fastest = min(WAYS, key=least.get)
        print(f"{name:20} " + "  ".join(f"{way} {milliseconds:6.1f} ms" for way, milliseconds in least.items()) +
              f"  {least[fastest] / least['trainc']:.2f} times as fast as {fastest}", flush=True)


if __name__ == "__main__":
    wanted = [word for word in sys.argv[3:] if word != "--bf16"]
    main(os.path.abspath(sys.argv[1]), sys.argv[2], wanted or MODELS, "--bf16" in sys.argv)
