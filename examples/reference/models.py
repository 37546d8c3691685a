# SPDX-License-Identifier: Apache-2.0
"""The reference models: writes NAME.onnx, as PyTorch's TorchScript exporter writes it in training mode with its large weights left out, and
NAME.json, the losses that PyTorch has from the weights that trainc-fill puts in: in f32, and the first in f64 (`exact`). The graph of
gpt2 is that of tests/models, whose module it takes, too.

    python examples/reference/models.py export [NAME...]
    python examples/reference/models.py record FOLDER NAME       # after run.sh NAME with WORK=FOLDER

Needs torch, torchvision, onnx and numpy. run.sh needs none of it.
"""
import copy
import json
import pathlib
import sys

import numpy
import onnx
import torch
import torchvision
from onnx import numpy_helper
from torch import nn
from torch.nn import functional

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "tests/models/make"))
import families  # noqa: E402

EXACT = {"gpt2": 3}  # steps in f64, else 20
TEXT = {"lstm": (16, 64), "gpt2": (4, 64)}  # models of text: samples of a batch, tokens of a sample
LARGE = 64  # elements; smaller initializers, and those of one axis, keep their values


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first, self.first_norm = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.second, self.second_norm = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.short = nn.Conv2d(inputs, outputs, 1, stride, bias=False) if stride > 1 else nn.Identity()

    def forward(self, x):
        y = functional.relu(self.first_norm(self.first(x)))
        return functional.relu(self.second_norm(self.second(y)) + self.short(x))


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.blocks = nn.Sequential(Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2))
        self.head = nn.Linear(64, 4)

    def forward(self, x):
        return self.head(self.blocks(functional.relu(self.norm(self.stem(x)))).mean((2, 3)))


class Unet(nn.Module):
    """Each pixel's class; two skips from the way down to the way up."""

    def __init__(self):
        super().__init__()
        def pair(inputs, outputs):
            return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
                                 nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())
        self.first, self.second, self.third = pair(3, 16), pair(16, 32), pair(32, 64)
        self.up_second, self.up_first = nn.ConvTranspose2d(64, 32, 2, 2), nn.ConvTranspose2d(32, 16, 2, 2)
        self.back_second, self.back_first, self.head = pair(64, 32), pair(32, 16), nn.Conv2d(16, 5, 1)

    def forward(self, x):
        a = self.first(x)
        b = self.second(functional.max_pool2d(a, 2))
        y = self.back_second(torch.cat([self.up_second(self.third(functional.max_pool2d(b, 2))), b], 1))
        return self.head(self.back_first(torch.cat([self.up_first(y), a], 1)))


class CharacterLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.lstm, self.head = nn.Embedding(256, 64), nn.LSTM(64, 128, num_layers=2, batch_first=True), nn.Linear(128, 256)

    def forward(self, ids):
        return self.head(self.lstm(self.embedding(ids))[0])


def squeezenet():
    model = torchvision.models.squeezenet1_1(num_classes=4, dropout=0.0)
    nn.init.constant_(model.classifier[1].bias, 1.0)  # its last activation is a ReLU, which begins alive
    return model


def vit():
    model = torchvision.models.VisionTransformer(image_size=32, patch_size=8, num_layers=4, num_heads=4, hidden_dim=64, mlp_dim=128, num_classes=4)
    return nn.Sequential(model)  # whose head begins with zeros


def gpt2():
    return families.NanoGpt(vocabulary=50257, width=768, heads=12, layers=12, positions=1024, mask="tril", gelu="tanh")


IMAGE, IDS = torch.zeros(2, 3, 32, 32), torch.zeros(2, 64, dtype=torch.long)
MODELS = {"resnet": (ResNet, IMAGE), "squeezenet": (squeezenet, IMAGE), "vit": (vit, IMAGE), "unet": (Unet, IMAGE), "lstm": (CharacterLstm, IDS)}


def export(name):
    make, example = MODELS[name]
    torch.manual_seed(1)
    path = HERE / (name + ".onnx")
    word = "ids" if example.dtype == torch.long else "images"
    torch.onnx.export(make().train(), (example,), path, input_names=[word], output_names=["logits"], opset_version=17, dynamo=False,
                      training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False, dynamic_axes={word: {0: "batch"}, "logits": {0: "batch"}})
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.dims) > 1 and numpy.prod(tensor.dims) >= LARGE:
            tensor.ClearField("raw_data")
    for node in model.graph.node:
        node.ClearField("doc_string")
    onnx.save(model, path)
    print(name, path.stat().st_size, "bytes")


def record(folder, name):
    folder = pathlib.Path(folder)
    options = json.loads((folder / "run/configuration.json").read_text())["options"]
    module = (gpt2 if name == "gpt2" else MODELS[name][0])().train()
    graph = onnx.load(folder / "model.onnx").graph
    filled = {tensor.name: torch.tensor(numpy_helper.to_array(tensor)) for tensor in graph.initializer}
    if name == "gpt2":
        name_products(graph, module, filled)
    state = module.state_dict()
    module.load_state_dict({key: filled.get(key, value) for key, value in state.items()})
    missing = [key for key, value in module.named_parameters() if key not in filled]
    assert not missing, missing
    if name in TEXT:
        text, length = numpy.fromfile(folder / "text.bin", dtype=numpy.uint8).astype(numpy.int64), TEXT[name][1]
        count = (len(text) - 1) // length
        inputs, labels = text[: count * length].reshape(-1, length), text[1 : count * length + 1].reshape(-1, length)
    else:
        inputs, labels = numpy.load(folder / "images.npy"), numpy.load(folder / ("masks.npy" if name == "unet" else "classes.npy"))
    rate, exact = float(options["learning-rate"]), copy.deepcopy(module).double()
    runs = {"losses": train(name, module, inputs, labels, int(options["steps"]), rate), "exact": train(name, exact, inputs, labels, EXACT.get(name, 20), rate)}
    (HERE / (name + ".json")).write_text(json.dumps(runs) + "\n")
    print(name, runs["losses"][0], runs["losses"][-1])


def name_products(graph, module, filled):
    """Matrices of gpt2, which its exporter transposed and named by number: by their order."""
    filled["wte.weight"] = filled["lm_head.weight"]
    products = iter([node.input[1] for node in graph.node if node.op_type == "MatMul" and node.input[1] in filled])
    for key, value in module.named_parameters():
        if key not in filled and value.dim() == 2:
            filled[key] = filled[next(products)].T.contiguous()


def train(name, module, inputs, labels, steps, rate):
    decayed = [p for p in module.parameters() if p.dim() >= 2]
    others = [p for p in module.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decayed}, {"params": others, "weight_decay": 0.0}], lr=rate, weight_decay=0.01)
    batch, losses = TEXT.get(name, (16,))[0], []
    for step in range(steps):
        rows = slice(step * batch, (step + 1) * batch)
        optimizer.zero_grad()
        given, wanted = torch.from_numpy(inputs[rows]), torch.from_numpy(labels[rows])
        logits = module(given.to(decayed[0].dtype) if given.is_floating_point() else given)
        loss = functional.cross_entropy(logits.flatten(0, 1), wanted.flatten()) if name in TEXT else functional.cross_entropy(logits, wanted)
        loss.backward()
        optimizer.step()
        losses.append(round(loss.item(), 6))
    return losses


if __name__ == "__main__":
    if sys.argv[1] == "record":
        record(sys.argv[2], sys.argv[3])
    else:
        for name in sys.argv[2:] or MODELS:
            export(name)
