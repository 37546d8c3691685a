# SPDX-License-Identifier: Apache-2.0
"""Statistics of tensors beside PyTorch's, and seeded faults that the comparison must find.

    python tests/models/compare/watch_torch.py --trainc build/dev/bin/trainc FOLDER           # agreement, then faults
    python tests/models/compare/watch_torch.py --trainc build/dev/bin/trainc FOLDER agreement # of fixtures alone

Needs torch, numpy and, for the U-Net, which is exported here, onnxscript. Agreement: three AdamW steps of each
fixture and of the U-Net in f32 on both sides; nothing may be beyond the tolerance. Faults: a module of PyTorch's side is changed; the first tensor named must be one of that module.
"""
import argparse
import pathlib
import random
import re
import subprocess
import sys

import numpy
import torch
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/models/make"), str(ROOT / "python")]
import families  # noqa: E402
import train_reference  # noqa: E402
import trainc  # noqa: E402
from unet import UNet  # noqa: E402
from trainc.statistics import Statistics  # noqa: E402

FIXTURES = {  # those of one family each
    "nanogpt_dynamo20_static": "nanogpt", "nanogpt_sdpa_dynamo20": "nanogpt_sdpa", "gpt2_dynamo20": "gpt2",
    "cnn_script11": "cnn", "resnet_dynamo20_raw": "resnet", "lstm_dynamo20_raw": "lstm", "gru_dynamo20": "gru",
    "mlp_gelu_dynamo20": "mlp_gelu", "fresh_norm_mlp_dynamo20": "fresh_norm_mlp",
}
STEPS = 3


def run(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    return result.returncode, result.stdout + result.stderr


def recipe_of(fixture):
    """What the tests train a fixture with: `recipe` of tests/train/harness.sh."""
    script = (f'. {ROOT}/tests/train/harness.sh; recipe {fixture}; printf "%s\\n" "$loss" "$labels" "${{inputs[*]}}" '
              f'"${{dimensions[*]}}"; printf "%s\\n" "${{frozen[@]}}"')
    lines = subprocess.run(["bash", "-c", script, "x"], capture_output=True, text=True, cwd="/tmp").stdout.split("\n")
    return lines[0], lines[1], lines[2].split(), lines[3].split(), [line for line in lines[4:] if line]


def ours(trainc, fixture, folder):
    loss, labels, inputs, dimensions, frozen = recipe_of(fixture)
    data = ROOT / "tests/models/data"
    code, text = run(trainc, ROOT / f"tests/models/{fixture}.onnx", *dimensions, *frozen, "--loss", loss, "--decay", ".*weight",
                     "--keep", ".*", "-o", folder / "out")
    assert code == 0, text
    code, text = run(folder / "out/trainer", "train", *inputs, "--data", f"labels={data}/{labels}", "--steps", 9, "--no-shuffle",
                     "--no-progress", "--dry-run", "--dry-run-steps", STEPS, "--watch", ".*", "--watch-folder", folder / "ours",
                     "--learning-rate", "1e-3", "--weight-decay", "0")
    assert code == 0, text
    return folder / "ours"


def theirs(family, path, change=lambda module: None):
    module, recipe = families.make(family)
    module.to(torch.float32).train(families.trains_batch_norm(family))
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=0)
    change(module)
    watch = Statistics(module, optimizer, path)
    data = families.make_data()
    inputs = torch.from_numpy(data[next(iter(recipe["inputs"].values()))])
    labels = torch.from_numpy(data[recipe["labels"]])
    for step in range(STEPS):
        rows = slice(step * recipe["batch"], (step + 1) * recipe["batch"])
        optimizer.zero_grad()
        families.loss_of(recipe["loss"], module(inputs[rows]), labels[rows]).backward()
        optimizer.step()
    watch.close()
    return path


def unet(trainc_path, folder):
    """Statistics of both sides."""
    torch.manual_seed(1)
    module, batch = UNet().train(), 2
    x, labels = torch.randn(STEPS * batch, 3, 32, 32), torch.randn(STEPS * batch, 1, 32, 32)
    for name, values in (("x", x), ("labels", labels)):
        numpy.save(folder / f"{name}.npy", values.numpy())
    trainc.export(module, (x[:batch],), folder / "unet.onnx", input_names=["x"], dynamic=False)
    code, text = run(trainc_path, folder / "unet.onnx", "--loss", "mse", "--decay", ".*weight", "--keep", ".*", "-o", folder / "out")
    assert code == 0, text
    code, text = run(folder / "out/trainer", "train", "--data", f"x={folder}/x.npy", "--data", f"labels={folder}/labels.npy",
                     "--steps", 9, "--no-shuffle", "--no-progress", "--dry-run", "--dry-run-steps", STEPS, "--watch", ".*",
                     "--watch-folder", folder / "ours", "--learning-rate", "1e-3", "--weight-decay", "0")
    assert code == 0, text
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=0)
    watch = Statistics(module, optimizer, folder / "theirs.jsonl")
    for step in range(STEPS):
        rows = slice(step * batch, (step + 1) * batch)
        optimizer.zero_grad()
        nn.functional.mse_loss(module(x[rows]), labels[rows]).backward()
        optimizer.step()
    watch.close()
    return folder / "ours", folder / "theirs.jsonl"


def compare(program, one, other):
    return run(pathlib.Path(program).parent / "trainc-compare", "statistics", one, other)


def shares_weight(family, one, other):
    """A tied weight is used first where its other module is."""
    modules = dict(families.make(family)[0].named_modules())
    weights = [getattr(modules.get(name), "weight", None) for name in (one, other)]
    return weights[0] is not None and weights[0] is weights[1]


def one_weight(module, name, rng):
    with torch.no_grad():
        weight = dict(module.named_modules())[name].weight
        weight.view(-1)[rng.randrange(weight.numel())] += 0.1


def permuted(module, name, rng):
    with torch.no_grad():
        weight = dict(module.named_modules())[name].weight
        weight.copy_(weight[torch.roll(torch.arange(weight.shape[0]), weight.shape[0] // 4)])


def tf32(module, name, rng):
    with torch.no_grad():
        weight = dict(module.named_modules())[name].weight
        weight.copy_((weight.view(torch.int32) + 0x1000 & ~0x1FFF).view(torch.float32))


def epsilon(module, name, rng):
    dict(module.named_modules())[name].eps *= 10


def dropped(module, name, rng):
    dict(module.named_modules())[name].register_forward_hook(lambda m, i, o: nn.functional.dropout(o, 0.1))


CHANGES = {"one weight": (one_weight, (nn.Linear, nn.Conv2d, nn.Embedding)), "permuted": (permuted, (nn.Linear, nn.Conv2d)),
           "tf32": (tf32, (nn.Linear, nn.Conv2d)), "epsilon": (epsilon, (nn.LayerNorm, nn.BatchNorm2d)),
           "dropout": (dropped, (nn.Linear,))}


def faults(trainc, folder, count):
    rng, found = random.Random(1), 0
    for number in range(count):
        what = list(CHANGES)[number % len(CHANGES)]
        change, kinds = CHANGES[what]
        while True:
            fixture = rng.choice(list(FIXTURES))
            module, _ = families.make(FIXTURES[fixture])
            names = [name for name, one in module.named_modules() if isinstance(one, kinds)]
            if names:
                break
        name = rng.choice(names)
        path = theirs(FIXTURES[fixture], folder / "fault.jsonl", lambda module: change(module, name, rng))
        code, text = compare(trainc, folder / fixture / "ours", path)
        first = re.search(r"^the runs part at step (\d+): (.*)$", text, re.M)
        named = re.sub(r"^gradient of ", "", first[2]) if first else "nothing"
        is_right = named == name or shares_weight(FIXTURES[fixture], named, name)
        found += is_right
        print(" | ".join((fixture, what, name, named, "right" if is_right else "WRONG")), flush=True)
    print(f"{found} of {count} faults named", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainc", required=True)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("part", nargs="?", choices=["agreement", "faults"])
    parser.add_argument("--faults", type=int, default=40)
    options = parser.parse_args()
    for fixture, family in [*FIXTURES.items(), ("unet", None)]:
        folder = options.folder / fixture
        folder.mkdir(parents=True, exist_ok=True)
        if family:
            one, other = ours(options.trainc, fixture, folder), theirs(family, folder / "theirs.jsonl")
        else:
            one, other = unet(options.trainc, folder)
        code, text = compare(options.trainc, one, other)
        print(fixture, "agrees" if code == 0 else "DIFFERS", text.split("\n")[0], flush=True)
        if code:
            print("\n".join(text.split("\n")[:16]))
    if options.part != "agreement":
        faults(options.trainc, options.folder, options.faults)


main()
