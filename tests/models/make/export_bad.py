# SPDX-License-Identifier: Apache-2.0
#
# Writes bad/<name>.onnx: models that the compiler must refuse with a message. Also
# scalar_loss.onnx, a model whose own output is the loss, and group_norm_script.onnx, which trains.
import logging
import os
import warnings

import numpy
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import families
from export_fixtures import scrub

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # tests/models


def weight(name, *shape):
    values = numpy.random.default_rng(len(name)).standard_normal(shape).astype(numpy.float32)
    return numpy_helper.from_array(values, name)


def save(name, nodes, initializers, inputs, outputs, opset=17, domains=()):
    graph = helper.make_graph(nodes, name, inputs, outputs, initializers)
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, 1) for d in domains]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    os.makedirs(os.path.join(HERE, "bad"), exist_ok=True)
    onnx.save(model, os.path.join(HERE, "bad", name + ".onnx"))


def floats(name, *shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def unsupported_operators():
    """Three operators that nothing supports, one from a foreign domain, in one model."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["hidden"], name="/first/MatMul"),
        helper.make_node("OptionalHasElement", ["hidden"], ["chosen"], name="/gate/OptionalHasElement"),
        helper.make_node("Wobble", ["chosen"], ["wobbled"], name="/odd/Wobble",
                         domain="com.example"),
        helper.make_node("StringNormalizer", ["squares"], ["determinants"], name="/det/StringNormalizer"),
        helper.make_node("Reshape", ["wobbled", "shape"], ["squares"], name="/det/Reshape"),
    ]
    nodes[3], nodes[4] = nodes[4], nodes[3]
    shape = numpy_helper.from_array(numpy.array([8, 2, 2], numpy.int64), "shape")
    save("unsupported_operators", nodes, [weight("w", 12, 4), shape], [floats("x", 8, 12)],
         [floats("determinants", 8)], domains=["com.example"])


def external(name, location, length):
    """A linear layer whose weights claim to lie at `location`."""
    tensor = weight("w", 12, 7)
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", "0"), ("length", str(length))):
        tensor.external_data.add(key=key, value=value)
    save(name, [helper.make_node("MatMul", ["x", "w"], ["logits"], name="/MatMul")], [tensor],
         [floats("x", 8, 12)], [floats("logits", 8, 7)])


def bad_axis():
    nodes = [helper.make_node("MatMul", ["x", "w"], ["hidden"], name="/MatMul"),
             helper.make_node("Softmax", ["hidden"], ["logits"], name="/attn/Softmax", axis=4)]
    save("bad_axis", nodes, [weight("w", 12, 7)], [floats("x", 8, 12)], [floats("logits", 8, 7)])


def bad_shapes():
    nodes = [helper.make_node("MatMul", ["x", "w"], ["hidden"], name="/first/MatMul"),
             helper.make_node("Add", ["hidden", "b"], ["logits"], name="/first/Add")]
    save("bad_shapes", nodes, [weight("w", 13, 7), weight("b", 6)], [floats("x", 8, 12)],
         [floats("logits", 8, 7)])


def scalar_loss():
    """The model computes its own loss, for --loss output."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["hidden"], name="/MatMul"),
             helper.make_node("Sub", ["hidden", "target"], ["apart"], name="/Sub"),
             helper.make_node("Mul", ["apart", "apart"], ["square"], name="/Mul"),
             helper.make_node("ReduceMean", ["square"], ["loss"], name="/ReduceMean", keepdims=0)]
    graph_inputs = [floats("x", 8, 12), floats("target", 8, 7)]
    save("scalar_loss", nodes, [weight("w", 12, 7)], graph_inputs, [floats("loss")])


class Scaled(nn.Module):
    """dynamo's optimizer computes `exp(scale) * weight` at export: no parameter is left."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(12, 7))
        self.scale = nn.Parameter(torch.randn(7))

    def forward(self, x):
        return x @ (self.weight * self.scale.exp())


class BareBatchNorm(nn.Module):
    """Batch norm folded into a layer without a bias: then no initializer keeps a kind."""

    def __init__(self, affine=True):
        super().__init__()
        self.first = nn.Linear(12, 7, bias=False)
        self.norm = nn.BatchNorm1d(7, affine=affine)

    def forward(self, x):
        return self.norm(self.first(x))


class ConvBatchNorm(nn.Module):
    """TorchScript folds batch norm into the filter, under a name that it invents."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(1, 3, 2)
        self.norm = nn.BatchNorm1d(3)
        self.head = nn.Linear(33, 7)

    def forward(self, x):
        return self.head(self.norm(self.first(x[:, None])).flatten(1))


class GroupNorm(nn.Module):
    """A norm's scale and bias as TorchScript writes them: [channels, 1], without a name."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(1, 4, 3, padding=1)
        self.norm = nn.GroupNorm(2, 4)
        self.head = nn.Linear(48, 7)
        nn.init.normal_(self.norm.weight)
        nn.init.normal_(self.norm.bias)

    def forward(self, x):
        return self.head(self.norm(self.first(x[:, None])).flatten(1))


class EqualNorms(nn.Module):
    """Two norms of the same input start equal: dynamo's optimizer keeps one operation of two."""

    def __init__(self):
        super().__init__()
        self.left = nn.LayerNorm(12)
        self.right = nn.LayerNorm(12)
        self.first = nn.Linear(12, 7)
        self.second = nn.Linear(12, 7)

    def forward(self, x):
        return self.first(self.left(x)) * self.second(self.right(x))


class TokenTypes(nn.Module):
    """All tokens are of type 0: the exporter repeats that row, and training would untie the copies."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(32, 12)
        self.types = nn.Embedding(2, 12)

    def forward(self, ids):
        return self.words(ids) + self.types(torch.zeros_like(ids))


class Sinusoids(nn.Module):
    """Pegasus' position table: a parameter with requires_grad=False, which no file records."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(32, 12)
        angles = torch.arange(16.0)[:, None] * 10000 ** (-torch.arange(0, 12, 2) / 12)
        table = torch.cat([angles.sin(), angles.cos()], dim=1)
        self.positions = nn.Parameter(table, requires_grad=False)

    def forward(self, ids):
        return self.words(ids) + self.positions


class EqualViews(nn.Module):
    """Two equal parameters, one of which is only used by rows, or chosen by an index."""

    def __init__(self, view):
        super().__init__()
        self.left, self.right = nn.Parameter(torch.zeros(12)), nn.Parameter(torch.zeros(12))
        self.linear, self.view = nn.Linear(12, 12), view

    def forward(self, x):
        hidden = (self.linear(x) + self.left).tanh()
        return self.view(hidden, self.right)


def split(hidden, parameter):
    front, back = parameter.split([5, 7])
    return torch.cat([hidden[:, :5] + front, hidden[:, 5:] * 2 + back], 1)


def halves(hidden, parameter):
    return torch.cat([hidden[:, :6] + parameter[:6], hidden[:, 6:] * 2 + parameter[6:]], 1)


def chosen(hidden, parameter):
    return hidden + parameter[torch.arange(12).flip(0)]


class CrossAttention(nn.Module):
    """Both attentions have zeros as their biases; the second is used in parts."""

    def __init__(self):
        super().__init__()
        self.first, self.second = (nn.MultiheadAttention(12, 2, batch_first=True) for _ in range(2))

    def forward(self, x):
        x = x[None] + self.first(x[None], x[None], x[None])[0]
        return self.second(x, x * 2, x * 2)[0][0]


def exported(name, module, example, dynamo=True):
    torch.manual_seed(1)
    path = os.path.join(HERE, "bad", name + ".onnx")
    options = dict(verbose=False, external_data=False) if dynamo else {}
    torch.onnx.export(module().eval(), (example,), path, input_names=["x"],
                      output_names=["logits"], opset_version=20 if dynamo else 17, dynamo=dynamo,
                      **options)
    scrub(path, {})


def main():
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    unsupported_operators()
    external("external_outside", "../outside.bin", 12 * 7 * 4)
    external("external_absolute", "/etc/hostname", 12 * 7 * 4)
    external("external_missing", "not_there.bin", 12 * 7 * 4)
    external("external_short", "external_short.bin", 12 * 7 * 4)
    with open(os.path.join(HERE, "bad", "external_short.bin"), "wb") as file:
        file.write(bytes(100))
    bad_axis()
    bad_shapes()
    scalar_loss()
    exported("folded_parameter", Scaled, torch.zeros(8, 12))
    exported("folded_batch_norm", families.BatchNormMlp, torch.zeros(8, 12))
    exported("bare_batch_norm", BareBatchNorm, torch.zeros(8, 12))
    exported("plain_batch_norm", lambda: BareBatchNorm(affine=False), torch.zeros(8, 12))
    exported("conv_batch_norm_script", ConvBatchNorm, torch.zeros(8, 12), dynamo=False)
    exported("group_norm_script", GroupNorm, torch.zeros(8, 12), dynamo=False)
    exported("split_parameter", lambda: EqualViews(split), torch.zeros(8, 12))
    exported("halved_parameter", lambda: EqualViews(halves), torch.zeros(8, 12))
    exported("chosen_parameter", lambda: EqualViews(chosen), torch.zeros(8, 12))
    exported("cross_attention", CrossAttention, torch.zeros(8, 12))
    exported("equal_norms", EqualNorms, torch.zeros(8, 12))
    exported("token_types", TokenTypes, torch.zeros(8, 16, dtype=torch.int64))
    exported("sinusoids", Sinusoids, torch.zeros(8, 16, dtype=torch.int64))
    exported("sinusoids_script", Sinusoids, torch.zeros(8, 16, dtype=torch.int64), dynamo=False)


if __name__ == "__main__":
    main()
