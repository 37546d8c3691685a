# SPDX-License-Identifier: Apache-2.0
"""trainc --lora beside the PEFT library: losses of 20 steps, adapters of the trainer in PEFT, adapters of PEFT in the trainer."""
import copy
import os
import subprocess

import numpy
import pytest
import torch
import trainc
import transformers
from safetensors.torch import load_file
from test_train_step import BERT, GPT2, LLAMA, Logits, batches, relative, torch_step
from trainc.compiler import find_program

peft = pytest.importorskip("peft")

STEPS, RANK, ALPHA, RATE = 20, 4, 16, 1e-3
# name: configuration, class, pattern of the weights, PEFT's target_modules
CASES = {
    "gpt2": (GPT2, transformers.GPT2LMHeadModel, r".*\.(c_attn|c_proj|c_fc)\.weight", ["c_attn", "c_proj", "c_fc"]),
    "bert": (BERT, transformers.BertForMaskedLM, r".*\.(query|value|dense)\.weight", ["query", "value", "dense"]),
    "llama": (LLAMA, transformers.LlamaForCausalLM, r".*_proj\.weight", r".*_proj"),
}


def data():
    torch.manual_seed(1)
    return torch.randint(0, 101, (2, 16)), torch.randint(0, 101, (2, 16))


def beside(module, targets, **settings):
    """PEFT's model of the same module, with its own first values."""
    config = peft.LoraConfig(r=RANK, lora_alpha=ALPHA, target_modules=targets, **settings)
    return peft.get_peft_model(copy.deepcopy(module), config)


def steps(model, rate=RATE):
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=rate, weight_decay=0.01)
    kind = next(model.parameters()).dtype
    return [torch_step(model, optimizer, x, y) for x, y in batches(*data(), STEPS)], kind


def run(*words):
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


class Trainer:
    """A trainer of the module's export, and the batches that PyTorch has, as files."""

    def __init__(self, module, pattern, folder):
        self.folder = folder
        trainc.export(module, data()[0], folder / "model.onnx", dynamic=False, input_names=["input_ids"])
        run(find_program(), folder / "model.onnx", "--lora", pattern, "--lora-rank", RANK, "--lora-alpha", ALPHA, "--quiet", "-o", folder / "out")
        pairs = list(batches(*data(), STEPS))
        for name, which in (("input_ids", 0), ("labels", 1)):
            numpy.save(folder / f"{name}.npy", torch.cat([pair[which] for pair in pairs]).numpy())

    def data(self, labels=True):
        return [word for name in ["input_ids", "labels"][:1 + labels] for word in ("--data", f"{name}={self.folder / name}.npy")]

    def train(self, *words, name="run"):
        run(self.folder / "out/trainer", "train", *self.data(), "--steps", STEPS, "--learning-rate", RATE, "--weight-decay", 0.01, "--no-shuffle",
            "--no-progress", "--run", self.folder / name, *words)
        import json
        lines = [json.loads(line) for line in open(self.folder / name / "log.jsonl")]
        return [line["loss"] for line in lines if "loss" in line]

    def export(self, *words, which=("--run", "run")):
        if which[0] == "--run":
            which = ("--run", self.folder / which[1])
        run(self.folder / "out/trainer", "export", *which, *words)

    def predict(self, name="run"):
        path = self.folder / "outputs.safetensors"
        run(self.folder / "out/trainer", "predict", *self.data(labels=False), "--run", self.folder / name, "-o", path)
        return next(iter(load_file(path).values()))


@pytest.fixture(params=CASES)
def case(request, tmp_path):
    config, make, pattern, targets = CASES[request.param]
    torch.manual_seed(0)
    module = Logits(make(config)).eval()
    return request.param, module, Trainer(module, pattern, tmp_path), targets


def largest_difference(one, other):
    return ((one - other).abs().max() / other.abs().max()).item()


def test_beside_peft(case, tmp_path):
    name, module, trainer, targets = case
    theirs = beside(module, targets)
    theirs.save_pretrained(tmp_path / "first")
    double = copy.deepcopy(theirs).double()
    ours = trainer.train("--initialise", tmp_path / "first")
    of_torch, exact = steps(theirs)[0], steps(double)[0]
    own_error = relative(of_torch, exact)
    print(f"\n{name}: {relative(ours, exact):.2e}, PyTorch's own {own_error:.2e}")
    assert relative(ours, exact) < max(2e-5, 4 * own_error)

    # what the trainer writes is what PEFT loads
    trainer.export("--adapter", tmp_path / "adapter", "-o", tmp_path / "merged.onnx", "--state-dict", tmp_path / "merged.safetensors")
    loaded = peft.PeftModel.from_pretrained(copy.deepcopy(module), tmp_path / "adapter")
    ids = torch.from_numpy(numpy.load(tmp_path / "input_ids.npy"))
    with torch.no_grad():
        outputs, base = loaded(ids), module(ids)
        predicted = trainer.predict()
        print(f"{name}: the adapter in PEFT {largest_difference(outputs, predicted):.2e}, without it {largest_difference(base, predicted):.2e}")
        assert largest_difference(outputs, predicted) < 1e-5 < largest_difference(base, predicted)
        merged = copy.deepcopy(module)
        merged.load_state_dict(load_file(tmp_path / "merged.safetensors"), strict=False)
        print(f"{name}: the merged state {largest_difference(merged(ids), predicted):.2e}")
        assert largest_difference(merged(ids), predicted) < 1e-5
    import onnxruntime
    session = onnxruntime.InferenceSession(tmp_path / "merged.onnx", providers=["CPUExecutionProvider"])
    of_file = torch.cat([torch.from_numpy(session.run(None, {"input_ids": part.numpy()})[0]) for part in ids.split(2)])
    print(f"{name}: the merged file {largest_difference(of_file, predicted):.2e}")
    assert largest_difference(of_file, predicted) < 1e-5

    # what PEFT has trained goes on in the trainer
    theirs.save_pretrained(tmp_path / "trained")
    ours, of_torch, exact = trainer.train("--initialise", tmp_path / "trained", name="on"), steps(theirs)[0], steps(double)[0]
    own_error = relative(of_torch, exact)
    print(f"{name}: goes on {relative(ours, exact):.2e}, PyTorch's own {own_error:.2e}")
    assert relative(ours, exact) < max(2e-5, 4 * own_error)


def test_first_values_are_peft_s(case, tmp_path):
    """Their range and shapes; the numbers are ours."""
    _, module, trainer, targets = case
    theirs = beside(module, targets)
    theirs.save_pretrained(tmp_path / "first")
    trainer.export("--adapter", tmp_path / "adapter", which=("--checkpoint", "initial"))
    ours, expected = load_file(tmp_path / "adapter/adapter_model.safetensors"), load_file(tmp_path / "first/adapter_model.safetensors")
    assert {name: value.shape for name, value in ours.items()} == {name: value.shape for name, value in expected.items()}
    for name, value in ours.items():
        bound = value.shape[1] ** -0.5 if "lora_A" in name else 0
        assert value.abs().max() <= bound and (not bound or value.abs().max() > 0.8 * bound)
    assert os.path.exists(tmp_path / "adapter/adapter_config.json")
