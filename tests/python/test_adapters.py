# SPDX-License-Identifier: Apache-2.0
"""trainc --lora beside the PEFT library: losses of 20 steps, adapters of the trainer in PEFT, adapters of PEFT in the trainer."""
import copy
import json
import os
import subprocess

import numpy
import pytest
import torch
import trainc
import transformers
from safetensors.torch import load_file
from test_train_step import BERT, GPT2, LLAMA, Logits, batches, relative, torch_step
from torch import nn
from trainc.compiler import find_program

peft = pytest.importorskip("peft")

STEPS, RANK, ALPHA, RATE = 20, 4, 16, 1e-3


def convolutions():
    return nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 1), nn.Tanh(), nn.Flatten(), nn.Linear(128, 10))


def language_model(config, make):
    return lambda: Logits(make(config))


# name: module, pattern of the weights, PEFT's target_modules
CASES = {
    "gpt2": (language_model(GPT2, transformers.GPT2LMHeadModel), r".*\.(c_attn|c_proj|c_fc)\.weight", ["c_attn", "c_proj", "c_fc"]),
    "bert": (language_model(BERT, transformers.BertForMaskedLM), r".*\.(query|value|dense)\.weight", ["query", "value", "dense"]),
    "llama": (language_model(LLAMA, transformers.LlamaForCausalLM), r".*_proj\.weight", r".*_proj"),
    "convolutions": (convolutions, r".\.weight", ["0", "2", "5"]),
}


def data(name):
    torch.manual_seed(1)
    if name == "convolutions":
        return torch.randn(4, 3, 8, 8), torch.randint(0, 10, (4,))
    return torch.randint(0, 101, (2, 16)), torch.randint(0, 101, (2, 16))


def beside(module, targets):
    """PEFT's model of the same module, with its own first values."""
    return peft.get_peft_model(copy.deepcopy(module), peft.LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=targets))


def steps(model, pairs):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=RATE, weight_decay=0.01)
    wide = next(model.parameters()).dtype == torch.float64
    return [torch_step(model, optimizer, x.double() if wide and x.is_floating_point() else x, y) for x, y in pairs]


def run(*words):
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


class Trainer:
    """A trainer of the module's export, and the batches that PyTorch has, as files."""

    def __init__(self, module, pattern, example, folder):
        self.folder, self.pairs = folder, list(batches(*example, STEPS))
        trainc.export(module, example[0], folder / "model.onnx", dynamic=False, input_names=["x"])
        run(find_program(), folder / "model.onnx", "--lora", pattern, "--lora-rank", RANK, "--lora-alpha", ALPHA, "--quiet", "-o", folder / "out")
        self.x, y = (torch.cat(parts) for parts in zip(*self.pairs))
        for name, values in (("x", self.x), ("labels", y)):
            numpy.save(folder / f"{name}.npy", values.numpy())

    def data(self, *names):
        return [word for name in names for word in ("--data", f"{name}={self.folder / name}.npy")]

    def train(self, *words, name="run"):
        run(self.folder / "out/trainer", "train", *self.data("x", "labels"), "--steps", STEPS, "--learning-rate", RATE, "--weight-decay", 0.01, "--no-shuffle",
            "--no-progress", "--run", self.folder / name, *words)
        lines = [json.loads(line) for line in open(self.folder / name / "log.jsonl")]
        return [line["loss"] for line in lines if "loss" in line]

    def export(self, *words):
        run(self.folder / "out/trainer", "export", *words)

    def predict(self, name="run"):
        path = self.folder / "outputs.safetensors"
        run(self.folder / "out/trainer", "predict", *self.data("x"), "--run", self.folder / name, "-o", path)
        return next(iter(load_file(path).values()))


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    make, pattern, targets = CASES[request.param]
    torch.manual_seed(0)
    module = make().eval()
    return request.param, module, Trainer(module, pattern, data(request.param), tmp_path), targets


def largest_difference(one, other):
    return ((one - other).abs().max() / other.abs().max()).item()


def test_beside_peft(case, tmp_path):
    name, module, trainer, targets = case
    theirs = beside(module, targets)
    theirs.save_pretrained(tmp_path / "first")
    double = copy.deepcopy(theirs).double()
    ours = trainer.train("--initialise", tmp_path / "first")
    of_torch, exact = steps(theirs, trainer.pairs), steps(double, trainer.pairs)
    own_error = relative(of_torch, exact)
    print(f"\n{name}: {relative(ours, exact):.2e}, PyTorch's own {own_error:.2e}")
    assert relative(ours, exact) < max(2e-5, 4 * own_error)

    # what the trainer writes is what PEFT loads
    trainer.export("--run", tmp_path / "run", "--adapter", tmp_path / "adapter", "-o", tmp_path / "merged.onnx", "--state-dict", tmp_path / "merged.safetensors")
    loaded = peft.PeftModel.from_pretrained(copy.deepcopy(module), tmp_path / "adapter")
    with torch.no_grad():
        outputs, base = loaded(trainer.x), module(trainer.x)
        predicted = trainer.predict()
        print(f"{name}: the adapter in PEFT {largest_difference(outputs, predicted):.2e}, without it {largest_difference(base, predicted):.2e}")
        assert largest_difference(outputs, predicted) < 1e-5 < largest_difference(base, predicted)
        merged = copy.deepcopy(module)
        merged.load_state_dict(load_file(tmp_path / "merged.safetensors"), strict=False)
        print(f"{name}: the merged state {largest_difference(merged(trainer.x), predicted):.2e}")
        assert largest_difference(merged(trainer.x), predicted) < 1e-5
    import onnxruntime
    session = onnxruntime.InferenceSession(tmp_path / "merged.onnx", providers=["CPUExecutionProvider"])
    of_file = torch.cat([torch.from_numpy(session.run(None, {"x": x.numpy()})[0]) for x, _ in trainer.pairs])
    print(f"{name}: the merged file {largest_difference(of_file, predicted):.2e}")
    assert largest_difference(of_file, predicted) < 1e-5

    # what PEFT has trained goes on in the trainer
    theirs.save_pretrained(tmp_path / "trained")
    ours, of_torch, exact = trainer.train("--initialise", tmp_path / "trained", name="on"), steps(theirs, trainer.pairs), steps(double, trainer.pairs)
    own_error = relative(of_torch, exact)
    print(f"{name}: goes on {relative(ours, exact):.2e}, PyTorch's own {own_error:.2e}")
    assert relative(ours, exact) < max(2e-5, 4 * own_error)


def test_first_values_are_peft_s(case, tmp_path):
    """Their range and shapes; the numbers are ours."""
    _, module, trainer, targets = case
    theirs = beside(module, targets)
    theirs.save_pretrained(tmp_path / "first")
    trainer.export("--checkpoint", "initial", "--adapter", tmp_path / "adapter")
    ours, expected = load_file(tmp_path / "adapter/adapter_model.safetensors"), load_file(tmp_path / "first/adapter_model.safetensors")
    assert {name: value.shape for name, value in ours.items()} == {name: value.shape for name, value in expected.items()}
    for name, value in ours.items():
        bound = value[0].numel() ** -0.5 if "lora_A" in name else 0
        assert value.abs().max() <= bound and (not bound or value.abs().max() > 0.8 * bound)
    assert os.path.exists(tmp_path / "adapter/adapter_config.json")
