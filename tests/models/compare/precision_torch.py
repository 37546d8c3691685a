# SPDX-License-Identifier: Apache-2.0
"""Training in 16 bits beside f32, and its gradients beside PyTorch's autocast.

    python tests/models/compare/precision_torch.py TRAINC FOLDER [--precision bf16] [MODEL...]

For each model: the mean loss of the last 50 of 200 AdamW steps in f32 and in 16 bits, which differ by less than 1 %;
the relative distance of all gradients of the first batch from those in f64, here and with autocast; ours is at most 1.5
times as far. A ReLU that a rounding turns off makes a gradient jump: look at several seeds. Needs torch, torchvision,
transformers, onnxscript and safetensors.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys

import numpy
import torch
import torchvision
import transformers
from safetensors.numpy import load_file
from torch import nn

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests/models/compare"), str(ROOT / "python")]
import trainc  # noqa: E402
from unet import UNet  # noqa: E402

STEPS, LAST, BATCHES, WORDS, TOKENS, CLASSES, PIXELS = 200, 50, 20, 101, 24, 10, 32


class Logits(nn.Module):
    """What a model of transformers makes of its one input."""

    def __init__(self, model, name="input_ids", twice=None, **arguments):
        super().__init__()
        self.model, self.name, self.twice, self.arguments = model, name, twice, arguments

    def forward(self, x):
        inputs = {self.name: x} if self.twice is None else {self.name: x, self.twice: x}
        return self.model(**inputs, **self.arguments).logits


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.layer, self.head = nn.Embedding(WORDS, 48), nn.LSTM(48, 64, batch_first=True), nn.Linear(64, WORDS)

    def forward(self, x):
        return self.head(self.layer(self.words(x))[0])


def language(kind, **settings):
    return getattr(transformers, kind + "Config")(vocab_size=WORDS, attn_implementation="eager", **settings)


def gpt2():
    return Logits(transformers.GPT2LMHeadModel(language("GPT2", n_embd=64, n_layer=2, n_head=4, n_positions=TOKENS, resid_pdrop=0,
                                                        embd_pdrop=0, attn_pdrop=0)), use_cache=False)


def bert():
    return Logits(transformers.BertForMaskedLM(language("Bert", hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                                        intermediate_size=128, hidden_dropout_prob=0, attention_probs_dropout_prob=0)))


def llama():
    return Logits(transformers.LlamaForCausalLM(language("Llama", hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                                         num_key_value_heads=2, intermediate_size=128)), use_cache=False)


def t5():
    return Logits(transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=WORDS, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, dropout_rate=0,
        attn_implementation="eager")), twice="decoder_input_ids", use_cache=False)


def vit():
    return Logits(transformers.ViTForImageClassification(transformers.ViTConfig(
        hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, image_size=PIXELS, patch_size=8,
        num_labels=CLASSES, hidden_dropout_prob=0, attention_probs_dropout_prob=0, attn_implementation="eager")), name="pixel_values")


MODELS = {"gpt2": gpt2, "bert": bert, "llama": llama, "t5": t5, "lstm": Lstm, "vit": vit, "unet": UNet,
          "resnet": lambda: torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=CLASSES)}


def batch_of(name):
    return 32 if name == "resnet" else 4  # statistics of a few images differ much after a rounding


def rate_of(name):
    """At 1e-3 the loss of the ResNet moves by 5 % where the rate does by 0.01 %, in f32."""
    return 1e-4 if name == "resnet" else 1e-3


def data_of(name):
    """All batches, and the loss."""
    count = batch_of(name) * BATCHES
    if name == "resnet":  # no image twice: what it learns by heart has no loss to compare
        x = torch.randn(batch_of(name) * STEPS, 3, PIXELS, PIXELS)
        x += nn.functional.interpolate(torch.randn(len(x), 3, 2, 2), PIXELS)
        coarse = nn.functional.avg_pool2d(x, PIXELS // 2).flatten(1)
        return x, (coarse @ torch.randn(coarse.shape[1], CLASSES)).argmax(1), "cross_entropy"
    if name == "vit":
        return torch.randn(count, 3, PIXELS, PIXELS), torch.randint(0, CLASSES, (count,)), "cross_entropy"
    if name == "unet":
        return torch.randn(count, 3, PIXELS, PIXELS), torch.randn(count, 1, PIXELS, PIXELS), "mse"
    x = torch.randint(0, WORDS, (count, TOKENS))
    return x, (3 * x + 7) % WORDS, "cross_entropy"


def run(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout[-2000:]}{result.stderr[-2000:]}")


def distance(gradients, exact):
    """Relative, of all gradients as one vector."""
    squares = sum(float(((gradients[name].astype("f8") - exact[name].astype("f8")) ** 2).sum()) for name in exact)
    return math.sqrt(squares / sum(float((exact[name].astype("f8") ** 2).sum()) for name in exact))


def gradients_of_torch(module, x, labels, loss, autocast):
    with torch.autocast("cpu", autocast or torch.bfloat16, enabled=autocast is not None):
        y = module(x)
        value = (nn.functional.mse_loss(y, labels) if loss == "mse" else
                 nn.functional.cross_entropy(y.reshape(-1, y.shape[-1]), labels.reshape(-1)))
    module.zero_grad()
    value.backward()
    return {name: parameter.grad.to(torch.float64).numpy() for name, parameter in module.named_parameters()}


def final_loss(path):
    losses = [record["loss"] for record in map(json.loads, open(path / "log.jsonl")) if "loss" in record]
    return sum(losses[-LAST:]) / LAST


def check(program, folder, name, precision, seed):
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    module = MODELS[name]().train()
    x, labels, loss = data_of(name)
    batch = slice(batch_of(name))
    numpy.save(folder / "x.npy", x.numpy())
    numpy.save(folder / "labels.npy", labels.numpy())
    trainc.export(module, (x[batch],), folder / "model.onnx", input_names=["x"], dynamic=False)
    data = ["--data", f"x={folder}/x.npy", "--data", f"labels={folder}/labels.npy"]
    found = {}
    for kind in ("f32", "f64", precision):
        run(program, folder / "model.onnx", "--loss", loss, "--optimizer", "adamw", "--precision", kind, "-o", folder / kind)
        run(folder / kind / "trainer", "gradients", *data, "--checkpoint", "initial", "-o", folder / f"{kind}.safetensors")
        found[kind] = load_file(folder / f"{kind}.safetensors")
        if kind != "f64":
            run(folder / kind / "trainer", "train", *data, "--steps", STEPS, "--learning-rate", rate_of(name), "--no-checkpoints",
                "--no-progress", "--run", folder / f"run-{kind}", "--overwrite")
    ours = distance(found[precision], found["f64"])
    losses = final_loss(folder / "run-f32"), final_loss(folder / f"run-{precision}")
    apart = abs(losses[1] / losses[0] - 1)
    text = f"{name:8} loss f32 {losses[0]:.5f}, {precision} {losses[1]:.5f}, {100 * apart:.2f} % apart; gradients {ours:.5f}, autocast "
    if name == "lstm" and precision == "fp16":
        print(text + "has none on a CPU", flush=True)
        return apart <= 0.01
    autocast = gradients_of_torch(module, x[batch], labels[batch], loss, torch.bfloat16 if precision == "bf16" else torch.float16)
    wide = x[batch].double() if x.is_floating_point() else x[batch]
    exact = gradients_of_torch(module.double(), wide, labels[batch].double() if loss == "mse" else labels[batch], loss, None)
    theirs = distance(autocast, exact)
    print(f"{text}{theirs:.5f}, ratio {ours / theirs:.2f}", flush=True)
    return apart <= 0.01 and ours <= 1.5 * theirs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trainc")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--precision", default="bf16", choices=["bf16", "fp16"])
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    missed = [name for name in arguments.models or MODELS
              if not check(arguments.trainc, arguments.folder / name, name, arguments.precision,
                           arguments.seed)]
    print("beyond the bars: " + ", ".join(missed) if missed else "all within the bars")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
