# SPDX-License-Identifier: Apache-2.0
#
# Writes legal and malformed ONNX files, gives each to trainc and checks the answer: the exit code of docs/trainc.md, for
# what is refused one message with the text expected, nothing left behind; at most 10 s, and three times the file and 200
# MB of memory. With --run legal ones are compiled and trained for a step, else their source is emitted. Standard library only.
#
#   model_files.py TRAINC SCRATCH [--share N] [--first K] [--run] [--jobs N] [--names REGEX]
#   model_files.py write FOLDER [--share N]
#
# --share N takes every Nth file, from the Kth on. The second form writes the files.
import argparse
import concurrent.futures
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent.parent))
from onnx_file import (BOOL, DOUBLE, FLOAT, FLOAT16, INT8, INT32, INT64, STRING, UINT8, attribute, function, graph, message,
                       model, node, npy, number, opset, packed, tensor, tensor_type, value, varint)

OLDEST, NEWEST = 6, 28
USAGE, UNREADABLE, UNSUPPORTED = 2, 3, 4
SECONDS, MEMORY, TIMES_THE_FILE = 10, 200 << 20, 3
LEGAL, MALFORMED = [], []  # functions that yield cases


class Case:
    """What trainc should say to a file: 0 and nothing, or a code and one message."""

    def __init__(self, name, content, code=0, says="", options=(), beside=None, inputs=None):
        self.name, self.content, self.code, self.says, self.options = name, content, code, says, list(options)
        self.beside = beside or {}  # other files, by name
        self.inputs = inputs or [("x", [4, 3], FLOAT)]  # what a legal one is trained on


def legal(generator):
    LEGAL.append(generator)
    return generator


def malformed(generator):
    MALFORMED.append(generator)
    return generator


# ---- a model around whatever a case is about

X = value("x", [4, 3])
W = tensor("layer.w", [3, 6])
SCALE = tensor("layer.scale", [1], FLOAT, [0.5])
LAYER = node("MatMul", ["x", "layer.w"], ["h"])


def around(nodes, result="t", initializers=(), inputs=(X,), version=17, cast=False, output=(None,), **more):
    """h = x w, the nodes make `result` of it, y is that times a parameter of one element."""
    nodes = [LAYER, *nodes]
    if cast:
        nodes.append(node("Cast", [result], ["as floats"], {"to": FLOAT}))
        result = "as floats"
    nodes.append(node("Mul" if version >= 7 else "MatMul", [result, "layer.scale"], ["y"]))
    return model(graph(nodes, inputs, [value("y", output)], [W, SCALE, *initializers]), version, **more)


def plain(initializers=(W,), nodes=None, inputs=(X,), outputs=(value("h", [4, 6]),), version=17, extra=b"", **more):
    return model(graph(nodes or [LAYER], inputs, outputs, initializers, extra=extra), version, **more)


# ---- operators: name, versions, inputs beside h, attributes, whether the result is not a float, initializers

SHAPE = tensor("shape", [2], INT64, [6, 4])
AXES = tensor("axes", [1], INT64, [1])


class Operator:
    def __init__(self, kind, since, inputs=(), attributes=None, cast=False, initializers=(), until=NEWEST, outputs=1):
        self.kind, self.since, self.until, self.inputs = kind, since, until, ["h", *inputs]
        self.attributes, self.cast, self.initializers, self.outputs = attributes or {}, cast, initializers, outputs

    def versions(self):
        middle = (max(self.since, 7) + self.until) // 2
        return sorted({max(self.since, 7), middle, self.until})

    def node(self, inputs=None, attributes=None, outputs=None, extra=b""):
        results = ["t"] + [f"t{i}" for i in range(1, self.outputs)]
        return node(self.kind, self.inputs if inputs is None else inputs, outputs or results,
                    self.attributes if attributes is None else attributes, "the node", extra=extra)

    def model(self, version, **changes):
        return around([self.node(**changes)], "t", self.initializers, cast=self.cast, version=version)


UNARY = {"Abs": 6, "Acos": 7, "Asin": 7, "Asinh": 9, "Atan": 7, "Ceil": 6, "Cos": 7, "Cosh": 9, "Elu": 6, "Erf": 9, "Exp": 6,
         "Floor": 6, "HardSigmoid": 6, "HardSwish": 14, "Identity": 1, "LeakyRelu": 6, "LogSoftmax": 1, "Mish": 18, "Neg": 6,
         "Reciprocal": 6, "Relu": 6, "Round": 11, "Selu": 6, "Sigmoid": 6, "Sign": 9, "Sin": 7, "Sinh": 9, "Softmax": 1,
         "Softplus": 1, "Softsign": 1, "Tan": 7, "Tanh": 6, "Gelu": 20, "Flatten": 1, "Transpose": 1}
OPERATORS = [Operator(kind, since) for kind, since in UNARY.items()] + [
    Operator("Add", 7, ["h"]), Operator("Sub", 7, ["layer.scale"]), Operator("Mul", 7, ["h"]), Operator("Div", 7, ["layer.scale"]),
    Operator("Pow", 7, ["two"], initializers=[tensor("two", [1], FLOAT, [2.0])]), Operator("Max", 8, ["layer.scale"]), Operator("Min", 8, ["h", "layer.scale"]),
    Operator("Sum", 6, ["h"]), Operator("Mean", 8, ["h", "h"]), Operator("PRelu", 7, ["layer.scale"]),
    Operator("Equal", 7, ["h"], cast=True), Operator("Greater", 7, ["layer.scale"], cast=True),
    Operator("Less", 7, ["layer.scale"], cast=True), Operator("LessOrEqual", 12, ["h"], cast=True),
    Operator("Cast", 6, attributes={"to": INT64}, cast=True), Operator("CastLike", 15, ["shape"], cast=True, initializers=[SHAPE]),
    Operator("Clip", 6, attributes={"min": -0.5, "max": 0.5}, until=10), Operator("Clip", 11, ["", "layer.scale"]),
    Operator("Concat", 4, ["h"], {"axis": 1}), Operator("Reshape", 5, ["shape"], initializers=[SHAPE]),
    Operator("Gather", 1, ["axes"], {"axis": 1}, initializers=[AXES]),
    Operator("ReduceMean", 1, attributes={"axes": [1], "keepdims": 1}, until=17),
    Operator("ReduceMean", 18, ["axes"], {"keepdims": 0}, initializers=[AXES]),
    Operator("ReduceSum", 13, ["axes"], {"noop_with_empty_axes": 1}, initializers=[AXES]),
    Operator("ReduceMax", 18, ["axes"], initializers=[AXES]), Operator("ReduceL2", 1, attributes={"axes": [0]}, until=17),
    Operator("Squeeze", 13), Operator("Unsqueeze", 13, ["axes"], initializers=[AXES]),
    Operator("Unsqueeze", 1, attributes={"axes": [0, 3]}, until=12), Operator("ArgMax", 1, attributes={"axis": -1}, cast=True),
    Operator("Shape", 1, cast=True), Operator("Size", 1, cast=True), Operator("Slice", 1, attributes={"starts": [1], "ends": [3]}, until=9),
    Operator("Slice", 10, ["axes", "shape1"], initializers=[AXES, tensor("shape1", [1], INT64, [4])]),
    Operator("Split", 13, attributes={"axis": 1}, outputs=2, until=17), Operator("Split", 18, attributes={"axis": 1, "num_outputs": 2}, outputs=2),
    Operator("Expand", 8, ["large"], initializers=[tensor("large", [3], INT64, [2, 4, 6])]),
    Operator("Tile", 6, ["shape"], initializers=[SHAPE]), Operator("Trilu", 14, attributes={"upper": 0}),
    Operator("Where", 9, ["h", "layer.scale"], initializers=[tensor("mask", [6], BOOL)]),
    Operator("Pad", 11, ["pads"], {"mode": "constant"}, initializers=[tensor("pads", [4], INT64, [0, 1, 0, 1])]),
    Operator("LayerNormalization", 17, ["layer.scale"], {"axis": -1, "epsilon": 1e-5}),
    Operator("Gemm", 7, ["right", "layer.scale"], {"alpha": 0.5, "beta": 1.0, "transB": 0}, initializers=[tensor("right", [6, 5])]),
    Operator("MatMul", 1, ["right"], initializers=[tensor("right", [6, 5])]),
    Operator("CumSum", 11, ["axis"], initializers=[tensor("axis", [], INT64, [1])]), Operator("Einsum", 12, ["h"], {"equation": "ij,kj->ik"}),
    Operator("TopK", 11, ["k"], {"axis": 1}, initializers=[tensor("k", [1], INT64, [2])]), Operator("Dropout", 12),
    Operator("IsNaN", 9, cast=True), Operator("ThresholdedRelu", 10, attributes={"alpha": 0.25}), Operator("Hardmax", 13, cast=True),
]
OPERATORS[[o.kind for o in OPERATORS].index("Where")].inputs = ["mask", "h", "layer.scale"]


@legal
def operators():
    for operator in OPERATORS:
        for version in operator.versions():
            yield Case(f"{operator.kind} {version}", operator.model(version))


def recurrent(kind, version, inputs=("r", "layer.w2", "layer.r2"), hidden=5, sizes=None, **attributes):
    """A layer on two steps of two sequences."""
    blocks = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    w, r = sizes or ([1, blocks * 5, 6], [1, blocks * 5, 5])
    return around([node("Reshape", ["h", "steps"], ["r"]), node(kind, list(inputs), ["t"], {"hidden_size": hidden, **attributes}, "the node")],
                  initializers=[tensor("steps", [3], INT64, [2, 2, 6]), tensor("layer.w2", w), tensor("layer.r2", r)], version=version)


@legal
def recurrent_layers():
    for kind in ("LSTM", "GRU", "RNN"):
        for version in (7, 14, 22):
            yield Case(f"{kind} {version}", recurrent(kind, version))


@malformed
def recurrent_misuse():
    yield Case("LSTM of hidden size 2^62", recurrent("LSTM", 14, hidden=1 << 62), UNSUPPORTED, "hidden_size")
    yield Case("LSTM of other weights", recurrent("LSTM", 14, sizes=([1, 20, 7], [1, 20, 5])), UNSUPPORTED, "'W' is 1x20x7, expected 1x20x6")
    yield Case("GRU of flat weights", recurrent("GRU", 14, sizes=([15, 6], [15, 5])), UNSUPPORTED, "'R' has rank 2, expected 3")
    yield Case("GRU of no hidden elements", recurrent("GRU", 14, sizes=([1, 0, 6], [1, 0, 0])), UNSUPPORTED, "no elements|hidden size of 0")
    yield Case("RNN in a direction of its own", recurrent("RNN", 14, direction="down"), UNSUPPORTED, "direction")
    yield Case("RNN of a layout 2^40", recurrent("RNN", 14, layout=1 << 40), UNSUPPORTED, "layout")
    yield Case("RNN of too many activations", recurrent("RNN", 14, activations=["Tanh"] * 9), UNSUPPORTED, "activations")
    yield Case("RNN of no weight", recurrent("RNN", 14, inputs=["r", "layer.w2"]), UNREADABLE, "RNN")


@legal
def operator_sets():
    for version in range(OLDEST, NEWEST + 1):
        yield Case(f"operator set {version}", plain(nodes=[LAYER, node("Relu", ["h"], ["t"]), node("Identity", ["t"], ["y"])],
                                                    outputs=[value("y", [4, 6])], version=version))
    for ir in range(3, 15):
        yield Case(f"format {ir}", plain(ir=ir))
    yield Case("domain written out", model(graph([LAYER], [X], [value("h", [4, 6])], [W]), 17)[:-6] + message(8, opset(17, "ai.onnx")))
    yield Case("domains that no node uses", plain(imports=[opset(1, "com.example"), opset(3, "ai.onnx.ml")]))
    yield Case("operator set 6 sums", plain(nodes=[LAYER, node("Sum", ["h", "h"], ["y"])], outputs=[value("y", [4, 6])], version=6))


@legal
def values():
    numbers = [(i - 9) / 8 for i in range(18)]

    def weight(content, **more):
        return plain([number(1, 3) + number(1, 6) + number(2, FLOAT) + message(8, "layer.w") + content], **more)

    single = b"".join(varint(4 << 3 | 5) + packed([x]) for x in numbers)
    yield Case("packed floats", weight(message(4, packed(numbers))))
    yield Case("floats one by one", weight(single))
    yield Case("floats in two pieces", weight(message(4, packed(numbers[:5])) + message(4, packed(numbers[5:]))))
    yield Case("floats in both forms", weight(message(4, packed(numbers[:17])) + varint(4 << 3 | 5) + packed(numbers[17:])))
    yield Case("sizes in one field", plain([message(1, varint(3) + varint(6)) + number(2, FLOAT) + message(8, "layer.w") +
                                            message(9, packed(numbers))]))
    yield Case("an initializer that is an input", plain(inputs=[X, value("layer.w", [3, 6])], ir=3))
    yield Case("an input of the same name with unknown sizes", plain(inputs=[X, value("layer.w", ["a", None])]))

    def shape(content, kind=INT64):
        return around([node("Reshape", ["h", "s"], ["t"])], initializers=[number(1, 2) + number(2, kind) + message(8, "s") + content])

    yield Case("integers packed", shape(message(7, varint(6) + varint(-1))))
    yield Case("integers one by one", shape(number(7, 6) + number(7, 4)))
    yield Case("integers in both forms", shape(number(7, 6) + message(7, varint(4))))
    yield Case("integers raw", shape(message(9, packed([-1, 4], INT64))))
    for kind, field in ((INT8, 5), (UINT8, 5), (INT32, 5), (4, 5), (5, 5), (12, 11), (13, 11)):
        yield Case(f"numbers of type {kind}",
                   around([node("Cast", ["i"], ["f"], {"to": FLOAT}), node("Mul", ["h", "f"], ["t"])],
                          initializers=[number(1, 6) + number(2, kind) + message(8, "i") + message(field, bytes(range(6)))]))
    yield Case("booleans as integers", around([node("Where", ["m", "h", "layer.scale"], ["t"])],
                                              initializers=[number(1, 6) + number(2, BOOL) + message(8, "m") + message(5, bytes([1, 0, 1, 0, 1, 1]))]))
    yield Case("no elements", around([node("Reshape", ["h2", "none"], ["r"]), node("Add", ["h", "r"], ["t"]),
                                      node("ReduceMean", ["h"], ["h2"], {"keepdims": 0})],
                                     initializers=[tensor("none", [0], INT64, [])]))
    yield Case("no elements beside others", around([node("Concat", ["cache", "h"], ["t"], {"axis": 0})], initializers=[tensor("cache", [0, 6])]))
    yield Case("no scales but sizes", around([node("Unsqueeze", ["h", "axes"], ["i"]), node("Resize", ["i", "none", "none", "sizes"], ["u"]),
                                              node("ReduceMean", ["u"], ["t"], {"axes": [0, 1]})], version=13, initializers=[
        tensor("axes", [2], INT64, [0, 1]), tensor("none", [0]), tensor("sizes", [4], INT64, [1, 1, 8, 12])]))
    yield Case("scales under a name with a dot", around([node("Unsqueeze", ["h", "axes"], ["i"]), node("Resize", ["i", "helper.crop", "helper.scales"], ["u"]),
                                                         node("ReduceMean", ["u"], ["t"], {"axes": [0, 1]})], version=13, initializers=[
        tensor("axes", [2], INT64, [0, 1]), tensor("helper.crop", [0]), tensor("helper.scales", [4], FLOAT, [1.0, 1.0, 2.0, 2.0])]))
    where = [message(13, message(1, key) + message(2, text)) for key, text in
             (("location", "weights.bin"), ("offset", "8"), ("length", "72"))]
    outside = number(1, 3) + number(1, 6) + number(2, FLOAT) + message(8, "layer.w") + number(14, 1)
    yield Case("values in a file", plain([outside + b"".join(where)]), beside={"weights.bin": bytes(8) + packed(numbers)})
    yield Case("values in a file without a length", plain([outside + where[0]]), beside={"weights.bin": packed(numbers)})
    yield Case("values in a folder", plain([outside + message(13, message(1, "location") + message(2, "sub/w.bin"))]),
               beside={"sub/w.bin": packed(numbers)})
    yield Case("unknown fields", plain(extra=message(900, "of a later version") + number(901, 7)))
    yield Case("texts of producers", plain(extra=message(10, "doc")) + message(2, "maker") + message(3, "1.0") + message(4, "org") +
               number(5, 3) + message(6, "text") + message(14, message(1, "key") + message(2, "value")))
    yield Case("a second graph field", plain() + message(7, message(10, "more text")))
    for label, content in (("f", 0.5), ("i", 1)):
        head = message(1, "alpha" if label == "f" else "axis") + attribute("a", content)[3:]
        kind = "Elu" if label == "f" else "Softmax"
        yield Case(f"an attribute of {kind} without its type",
                   around([message(1, "h") + message(2, "t") + message(4, kind) + message(5, head[:-3])]))


@legal
def dimensions():
    def sized(first, second=3, more=()):
        return plain(inputs=[value("x", [first, second]), *more], outputs=[value("h", [None, None])])

    yield Case("a name", sized("batch"), options=["--dim", "batch=4"])
    yield Case("no name", sized(None), options=["--dim", "x[0]=4"])
    yield Case("an empty name", sized(""), options=["--dim", "x[0]=4"])
    yield Case("a question mark", sized("?"), options=["--dim", "x[0]=4"])
    yield Case("two question marks", sized("?", "?"), options=["--dim", "x[0]=4", "--dim", "x[1]=3"])
    yield Case("by position", sized("batch"), options=["--dim", "x[0]=4"])
    yield Case("an equals sign", sized("a=b"), options=["--dim", "a=b=4"])
    yield Case("a sum", sized("past + 1"), options=["--dim", "past + 1=4"])
    yield Case("zero", sized(0), options=["--dim", "x[0]=4"])
    yield Case("minus one", sized(-1), options=["--dim", "x[0]=4"])
    yield Case("a fixed size said again", sized(4), options=["--dim", "x[0]=4"])
    ids = value("i", ["batch", 2], INT64)
    yield Case("two inputs of one size", model(graph(
        [LAYER, node("Cast", ["i"], ["f"], {"to": FLOAT}), node("Concat", ["h", "f"], ["y"], {"axis": 1})],
        [value("x", ["batch", 3]), ids], [value("y", [None, None])], [W])), options=["--dim", "batch=4"],
        inputs=[("x", [4, 3], FLOAT), ("i", [4, 2], INT64)])


NAMES = ["labels", "loss", "m", "NULL", "forward_backward_1", "a.b", "a/b", "a b", "'", '"', "*/", "\\", "$(true)", "\u5c42", "%n",
         "-o", "a=b", "x" * 3000, "\x1b[31m", "a\nb", "\u202e", "", "."]


@legal
def names():
    for i, name in enumerate(NAMES):
        called = name if name else " "
        yield Case(f"weight {i}", plain([tensor(called, [3, 6])], [node("MatMul", ["x", called], ["h"])]))
        yield Case(f"node {i}", plain(nodes=[node("MatMul", ["x", "layer.w"], ["h"], name=name)]))
        yield Case(f"input and output {i}", plain(nodes=[node("MatMul", [called, "layer.w"], [called + "."])], inputs=[value(called, [4, 3])],
                                                  outputs=[value(called + ".", [4, 6])]), inputs=[(called, [4, 3], FLOAT)])


@legal
def functions():
    body = [node("Relu", ["a"], ["r"]), node("Add", ["r", "a"], ["b"])]
    imports = [opset(1, "local")]

    def calling(functions, call=None, **more):
        return around([call or node("Twice", ["h"], ["t"], domain="local")], imports=imports,
                      extra=b"".join(message(25, f) for f in functions), **more)

    yield Case("a function", calling([function("Twice", ["a"], ["b"], body)]))
    yield Case("functions in functions", calling([
        function("Twice", ["a"], ["b"], [node("Once", ["a"], ["c"], domain="local"), node("Once", ["c"], ["b"], domain="local")]),
        function("Once", ["a"], ["b"], body)]))
    referring = message(1, "axis") + message(21, "along") + number(20, 2)
    soft = node("Softmax", ["a"], ["b"], extra=message(5, referring))
    yield Case("an attribute of a function", calling([function("Soft", ["a"], ["b"], [soft], attributes=["along"])],
                                                     node("Soft", ["h"], ["t"], {"along": 0}, domain="local")))
    yield Case("an attribute that is not given", calling([function("Soft", ["a"], ["b"], [soft], attributes=["along"])],
                                                         node("Soft", ["h"], ["t"], domain="local")))
    yield Case("an attribute with a default", calling([function("Soft", ["a"], ["b"], [soft], extra=message(11, attribute("along", 0)))],
                                                      node("Soft", ["h"], ["t"], domain="local")))
    yield Case("an input that is left out", calling([function("Twice", ["a", "c"], ["b"], [node("Clip", ["a", "", "c"], ["b"])])],
                                                    node("Twice", ["h"], ["t"], domain="local")))
    yield Case("two overloads", calling([function("Twice", ["a"], ["b"], body, extra=message(13, "one")),
                                         function("Twice", ["a"], ["b"], [node("Tanh", ["a"], ["b"])], extra=message(13, "two"))],
                                        node("Twice", ["h"], ["t"], domain="local", extra=message(8, "two"))))
    yield Case("a function that is never called", plain(extra=b"", imports=imports) + message(25, function("Lost", ["a"], ["b"], [
        node("Wobble", ["a"], ["b"])])))
    for label, inner, version in (("Relu", node("Relu", ["a"], ["b"]), 11), ("Clip", node("Clip", ["a"], ["b"]), 7), ("Pad", node("Pad", ["a", "p"], ["b"]), 18),
                                  ("Reshape", node("Reshape", ["a", "p"], ["b"]), 7), ("Cast", node("Cast", ["a"], ["b"], {"to": FLOAT}), 20)):
        pads = node("Constant", [], ["p"], {"value": tensor("", [4], INT64, [0] * 4) if label == "Pad" else tensor("", [2], INT64, [0, -1])})
        yield Case(f"another operator set in a function: {label}", calling([function("Twice", ["a"], ["b"], [pads, inner], version=version)]))


@legal
def conditions():
    def branch(nodes, result="b", initializers=()):
        return (graph(nodes, [], [value(result, [None])], initializers, "branch"),)

    relu, tanh = branch([node("Relu", ["h"], ["b"])]), branch([node("Tanh", ["h"], ["b"])])
    wrong = branch([node("Wobble", ["h"], ["b"]), node("MatMul", ["h", "h"], ["z"])])

    def choosing(yes, no, nodes=(), condition="c", initializers=(), **more):
        return around([*nodes, node("If", [condition], ["t"], {"then_branch": yes, "else_branch": no}, "the if")],
                      initializers=initializers, **more)

    true, false = tensor("c", [], BOOL, [True]), tensor("c", [1], BOOL, [False])
    yield Case("a condition that is an initializer", choosing(relu, tanh, initializers=[true]))
    yield Case("a condition that is false", choosing(wrong, tanh, initializers=[false]))
    yield Case("a condition that is a Constant", choosing(relu, wrong, [node("Constant", [], ["c"], {"value": tensor("", [], BOOL, [True])})]))
    shape = [node("Shape", ["h"], ["s"]), node("Gather", ["s", "zero"], ["rows"], {"axis": 0}), node("Equal", ["rows", "four"], ["c"])]
    numbers = [tensor("zero", [], INT64, [0]), tensor("four", [], INT64, [4])]
    yield Case("a condition on a shape", choosing(relu, wrong, shape, initializers=numbers))
    yield Case("a condition on a size that is given", choosing(relu, wrong, shape, initializers=numbers, inputs=[value("x", ["batch", 3])]),
               options=["--dim", "batch=4"])
    inner = branch([node("Identity", ["h"], ["k"]), node("If", ["c"], ["b"], {"then_branch": branch([node("Relu", ["k"], ["d"])], "d"),
                                                                              "else_branch": wrong})])
    deep = relu
    for i in range(12):
        deep = branch([node("If", ["c"], ["b"], {"then_branch": deep, "else_branch": wrong})])
    yield Case("an If in an If", choosing(inner, wrong, initializers=[true]))
    yield Case("an If whose condition is made in an If", choosing(branch([node("Not", ["c"], ["d"]), node("If", ["d"], ["b"], {
        "then_branch": wrong, "else_branch": tanh})]), wrong, initializers=[true]))
    yield Case("12 of them", choosing(deep, wrong, initializers=[true]))
    chain = []
    for i in range(300):
        last, size = f"v{i}" if i else "h", f"size{i}"
        chain += [node("Shape", [last], [f"shape{i}"]), node("Gather", [f"shape{i}", "zero"], [size]), node("Equal", [size, "four"], [f"c{i}"]),
                  node("If", [f"c{i}"], [f"v{i + 1}"], {"then_branch": branch([node("Neg", [last], ["b"])]), "else_branch": wrong})]
    yield Case("300 of them, each on the size of what the last made", around(chain, "v300", numbers))
    yield Case("a branch that gives on a value from around it", choosing(branch([], "h"), wrong, initializers=[true]))
    yield Case("a branch that gives on an input", choosing(branch([node("Identity", ["x"], ["z"])], "h"), wrong, initializers=[true]))
    yield Case("weights in a branch", choosing(branch([node("MatMul", ["h", "inner.w"], ["b"])], initializers=[tensor("inner.w", [6, 5])]),
                                               wrong, initializers=[true]))
    yield Case("weights of one name in both branches", choosing(*(branch([node("MatMul", ["h", "inner.w"], ["b"])], initializers=[
        tensor("inner.w", [6, 5], FLOAT, [i / 8] * 30)]) for i in (1, 2)), initializers=[true]))
    yield Case("two outputs", around([node("If", ["c"], ["t", "u"], {"then_branch": (graph(
        [node("Split", ["h"], ["p", "q"], {"axis": 1})], [], [value("p", [None]), value("q", [None])]),),
                                                                   "else_branch": (graph([node("Wobble", ["h"], ["p", "q"])], [], [value("p", [None]), value("q", [None])]),)})], initializers=[true]))
    body = [node("If", ["k"], ["b"], {"then_branch": (graph([node("Relu", ["a"], ["r"])], [], [value("r", [None])]),),
                                      "else_branch": (graph([node("Wobble", ["a"], ["r"])], [], [value("r", [None])]),)})]
    yield Case("an If in a function", around([node("Choose", ["h", "c"], ["t"], domain="local")], initializers=[true], imports=[opset(1, "local")],
                                             extra=message(25, function("Choose", ["a", "k"], ["b"], body))))
    flag = value("flag", [], BOOL)
    for text in ("true", "1"):
        yield Case(f"a condition that is an input, {text}", choosing(relu, wrong, condition="flag", inputs=[X, flag]), options=["--constant", f"flag={text}"])
    yield Case("a condition on an input", choosing(wrong, tanh, [node("Greater", ["rate", "limit"], ["c"])], inputs=[X, value("rate", [], INT64)],
                                                   initializers=[tensor("limit", [], INT64, [8000])]), options=["--constant", "rate=8000"])


@legal
def fixed_inputs():
    shape = value("shape", [2], INT64)

    def fixed(text, nodes, inputs, beside=None, initializers=()):
        return Case(f"--constant {text}", around(nodes, inputs=[X, *inputs], initializers=initializers), options=["--constant", text], beside=beside)

    reshape = [node("Reshape", ["h", "shape"], ["t"])]
    yield fixed("shape=6,4", reshape, [shape])
    yield fixed("shape=[-1, 4]", reshape, [value("shape", ["n"], INT64)])
    yield fixed("shape=model/s.npy", reshape, [shape], {"s.npy": npy([2], [6, 4], INT64)})
    yield fixed("s=h=4,6", [node("Reshape", ["h", "s=h"], ["t"])], [value("s=h", [2], INT64)])
    yield fixed("scale=0.5", [node("Mul", ["h", "scale"], ["t"])], [value("scale", [])])
    yield fixed("scale=0.5,1,2e0,-1,.25,3", [node("Mul", ["h", "scale"], ["t"])], [value("scale", [1, 6])])
    yield fixed("scale=model/s.npy", [node("Mul", ["h", "scale"], ["t"])], [value("scale", [4, 6])], {"s.npy": npy([4, 6], [0.5] * 24)})
    yield fixed("axis=0x1", [node("CumSum", ["h", "axis"], ["t"])], [value("axis", [], INT32)])
    yield fixed("mask=true,false,1,0,true,true", [node("Where", ["mask", "h", "layer.scale"], ["t"])], [value("mask", [6], BOOL)])
    yield fixed("shape=24,1", reshape, [shape], initializers=[tensor("shape", [2], INT64, [6, 4])])


# ---- what is wrong

@malformed
def bytes_of_files():
    whole = plain()
    for length in (0, 1, 2, 3, 7, len(whole) // 3, len(whole) // 2, len(whole) - 40, len(whole) - 9, len(whole) - 1):
        yield Case(f"cut at {length}", whole[:length], UNREADABLE, "not an ONNX model")
    for label, content in (("group", whole + varint(8 << 3 | 3)), ("field 0", whole + b"\x00\x01"), ("a varint of 11 bytes", whole + b"\x08" + b"\xff" * 11),
                           ("a length beyond the end", whole + varint(20 << 3 | 2) + varint(1 << 40)),
                           ("a length of 2^64 - 1", whole + varint(20 << 3 | 2) + varint(-1)), ("wire type 7", whole + b"\x0f"),
                           ("zeros", bytes(200)), ("a text", b"This is a note, not a model.\n"), ("an image", b"\x89PNG\r\n\x1a\n" + bytes(40)),
                           ("an archive", b"PK\x03\x04" + bytes(60)), ("JSON", b'{"ir_version": 8}')):
        yield Case(label, content, UNREADABLE, "not an ONNX model")
    yield Case("text that is not a model", b"<ir_version: 7>\n", UNREADABLE, "not an ONNX model")
    nested = b""
    for _ in range(300):
        nested = graph([node("If", ["c"], ["d"], {"then_branch": (nested,)})])
    yield Case("graphs nested 300 times", model(nested), UNREADABLE, "not an ONNX model|nested")
    yield Case("no graph", number(1, 8) + message(8, opset(17)), UNREADABLE, "no graph")
    yield Case("no operator set", number(1, 8) + message(7, graph([LAYER], [X], [value("h", [4, 6])], [W])), UNREADABLE, "operator-set")
    yield Case("no format", plain()[2:], UNSUPPORTED, "IR version 0")
    yield Case("format 99", plain(ir=99), UNSUPPORTED, "IR version 99")
    yield Case("format -1", plain(ir=-1), UNSUPPORTED, "IR version")
    for version in (-1, 0, OLDEST - 1, NEWEST + 1, 1 << 40):
        yield Case(f"operator set {version}", plain(version=version), UNSUPPORTED, "operator set")
    yield Case("two operator sets", plain(imports=[opset(13)]), UNREADABLE, "two versions of the operator set")
    yield Case("two operator sets of a domain", plain(imports=[opset(1, "a"), opset(2, "a")]), UNREADABLE, "two versions of the operator set 'a'")
    yield Case("one operator set twice", plain(imports=[opset(17, "ai.onnx")]), 0)


@malformed
def graphs():
    def chain(*nodes, output="y", **more):
        return around(nodes, output, **more)

    yield Case("no outputs", plain(outputs=[]), UNREADABLE, "no outputs")
    yield Case("no nodes", model(graph([], [X], [value("h", [4, 6])], [W])), UNREADABLE, "'h' is not defined")
    yield Case("an output without a name", plain(outputs=[value("", [1])]), UNREADABLE, "output 0 has no name")
    yield Case("a value that is described otherwise", plain(nodes=[LAYER, node("Relu", ["h"], ["t"])], outputs=[value("t", [4, 6])], extra=message(13, value("h", [4, 6], INT64))), UNREADABLE,
               "value 'h': is described as int64, but its node makes float")
    yield Case("an output twice", plain(outputs=[value("h", [4, 6])] * 2), UNSUPPORTED, "output 'h' is listed twice, which is not supported")
    yield Case("an output that nothing makes", plain(outputs=[value("z", [1])]), UNREADABLE, "'z' is not defined")
    yield Case("an input of a node that nothing makes", chain(node("Add", ["h", "z"], ["t"]), output="t"), UNREADABLE, "'z' is not defined")
    yield Case("a value twice", chain(node("Relu", ["h"], ["t"]), node("Tanh", ["h"], ["t"]), output="t"), UNREADABLE, "'t' is defined twice")
    yield Case("a value that is an input", chain(node("Relu", ["h"], ["x"]), node("Relu", ["x"], ["t"]), output="t"), UNREADABLE, "defined twice")
    yield Case("a value that is an initializer", chain(node("Relu", ["h"], ["layer.w"]), node("Relu", ["h"], ["t"]), output="t"),
               UNREADABLE, "defined twice")
    yield Case("one result twice", chain(node("Split", ["h"], ["t", "t"], {"axis": 1}), output="t"), UNREADABLE, "defined twice")
    yield Case("a circle", chain(node("Add", ["h", "u"], ["t"]), node("Relu", ["t"], ["u"]), output="t"), UNREADABLE, "its own result")
    yield Case("a node that needs itself", chain(node("Add", ["h", "t"], ["t"]), output="t"), UNREADABLE, "its own result")
    yield Case("an input twice", plain(inputs=[X, X]), UNREADABLE, "input 'x' is listed twice")
    yield Case("an input without a name", plain(inputs=[X, value("", [1])]), UNREADABLE, "input 1 has no name")
    yield Case("an initializer twice", plain([W, W]), UNREADABLE, "initializer 'layer.w' is there twice")
    yield Case("an initializer without a name", plain([W, tensor("", [1])]), UNREADABLE, "initializer 1 has no name")
    yield Case("an initializer of other sizes than its input", plain(inputs=[X, value("layer.w", [3, 7])]), UNREADABLE,
               "'layer.w' is \\[3, 6\\], but the input of that name \\[3, 7\\]")
    yield Case("an initializer of another rank than its input", plain(inputs=[X, value("layer.w", [3])]), UNREADABLE, "the input of that name")
    yield Case("an initializer of another type than its input", plain(inputs=[X, value("layer.w", [3, 6], DOUBLE)]), UNREADABLE,
               "is float, but the input of that name double")
    yield Case("a node without an operator", chain(message(1, "h") + message(2, "t"), output="t"), UNREADABLE, "names no operator")
    yield Case("an operator that ONNX lacks", chain(node("Wobble", ["h"], ["t"]), output="t"), UNREADABLE, "no operator 'Wobble'")
    yield Case("an operator of another domain", chain(node("Wobble", ["h"], ["t"], domain="com.example"), output="t",
                                                      imports=[opset(1, "com.example")]), UNSUPPORTED, "unsupported operator")
    yield Case("an operator that came later", chain(node("Gelu", ["h"], ["t"]), output="t"), UNSUPPORTED, "from opset 20 on")
    yield Case("an operator of a later operator set", chain(node("BitCast", ["h"], ["t"], {"to": 6}), output="t"), UNREADABLE,
               "'BitCast' before operator set 26")
    yield Case("an operator that ended", chain(node("Scatter", ["h", "layer.w", "h"], ["t"]), output="t"), UNREADABLE,
               "no operator 'Scatter' from operator set 11 on")
    yield Case("an operator that came later than exporters know", chain(node("Swish", ["h"], ["t"]), output="t"), UNSUPPORTED, "supported from opset 24 on")
    yield Case("an operator that is not there yet", chain(node("StringNormalizer", ["h"], ["t"]), output="t"), UNSUPPORTED, "unsupported operator")
    for kind in ("StringNormalizer", "ConvInteger", "OptionalHasElement"):
        yield Case(f"{kind} many times", chain(*(node(kind, ["h"], [f"{kind}{i}"]) for i in range(40)), node("Sum", [f"{kind}{i}" for i in range(40)], ["t"]),
                                               output="t"), UNSUPPORTED, f"and 38 others \\({kind}")
    yield Case("text as an input", plain(inputs=[value("x", [4, 3], STRING)]), UNSUPPORTED, "elements of type string")
    yield Case("element type 77 of an input", plain(inputs=[value("x", [4, 3], 77)]), UNSUPPORTED, "elements of type number 77")
    yield Case("an input without a type", plain(inputs=[message(1, "x")]), UNSUPPORTED, "not a tensor with a known rank")
    yield Case("an input without a rank", plain(inputs=[message(1, "x") + message(2, message(1, number(1, FLOAT)))]), UNSUPPORTED, "known rank")
    yield Case("a sequence as an input", plain(inputs=[message(1, "x") + message(2, message(4, message(1, tensor_type(FLOAT, [1]))))]),
               UNSUPPORTED, "not a tensor with a known rank")
    yield Case("an input of rank 9", around([node("ReduceMean", ["h"], ["t"], {"axes": list(range(7)), "keepdims": 0})], inputs=[value("x", [1] * 8 + [3])]), UNSUPPORTED, "rank 9")
    yield Case("an input of 2^40 rows", plain(inputs=[value("x", [1 << 40, 3])]), UNSUPPORTED, "has an axis of 1099511627776")
    yield Case("an input of 2^60 elements", plain(inputs=[value("x", [1 << 30, 1 << 30])]), UNSUPPORTED, "2\\^40 elements")
    yield Case("a size that is missing", plain(inputs=[value("x", ["batch", 3])]), USAGE, "dimensions without a size: 'batch' \\(x\\[0\\]\\)")
    yield Case("a size that no input has", plain(), USAGE, "no input has a dimension 'batch'", ["--dim", "batch=4"])
    yield Case("a fixed size said otherwise", plain(), USAGE, "'x\\[0\\]' is 4 in the model, not 5", ["--dim", "x[0]=5"])
    yield Case("a size of an axis that is not there", plain(inputs=[value("x", ["batch", 3])]), USAGE, "no input has a dimension 'x\\[5\\]'", ["--dim", "x[5]=4"])
    yield Case("a size said in two ways", plain(inputs=[value("x", ["batch", 3])]), USAGE, "'batch' is 4 by one --dim and 5 by another",
               ["--dim", "batch=4", "--dim", "x[0]=5"])
    yield Case("sizes that do not fit", plain(inputs=[value("x", [4, 5])]), UNSUPPORTED, "MatMul")
    yield Case("a circle that no output needs", plain(nodes=[LAYER, node("Add", ["back", "layer.w"], ["there"]), node("Tanh", ["there"], ["back"]), node("Relu", ["back"], ["end"])]),
               UNREADABLE, "the node needs its own result, through 1 other node")
    yield Case("sparse initializers", plain(extra=message(15, message(1, tensor("s", [1])))), UNSUPPORTED, "initializer 's' is sparse")
    yield Case("no parameters", model(graph([node("Relu", ["x"], ["h"])], [X], [value("h", [4, 3])])), UNSUPPORTED, "no initializer is a parameter")
    for label, name in (("reserved", "__metadata__"), ("with a zero", "a\0b"), ("not UTF-8", b"caf\xe9"), ("cut UTF-8", b"\xe5\xb1"),
                        ("a surrogate", b"\xed\xa0\x80"), ("overlong", b"\xc0\xaf")):
        head = number(1, 3) + number(1, 6) + number(2, FLOAT) + message(8, name) + message(9, packed([0.5] * 18))
        raw = message(1, "x") + message(1, name) + message(2, "h") + message(4, "MatMul")
        yield Case(f"a parameter's name that is {label}", plain([head], [raw]), UNSUPPORTED, "cannot be stored")
    calling = [LAYER, node("F", ["h"], ["t"], domain="local")]

    def with_functions(*functions, nodes=None):
        return model(graph(nodes or calling, [X], [value("t", [None])], [W]), imports=[opset(1, "local")]) + b"".join(message(25, f) for f in functions)

    relu = [node("Relu", ["a"], ["b"])]
    one = function("F", ["a"], ["b"], relu)
    for label, declared, says in (("integers", value("h", [4, 6], INT64), "is declared int64, but its node makes float"),
                                  ("doubles", value("h", [4, 6], DOUBLE), "is declared double"),
                                  ("a sequence", message(1, "h") + message(2, message(4, message(1, tensor_type(FLOAT, [4, 6])))), "is a tensor, but is declared to be none")):
        yield Case(f"an output declared to be {label}", plain(outputs=[declared]), UNREADABLE, f"output 'h': {says}")
    yield Case("a function twice", with_functions(one, one), UNREADABLE, "function 'F' of domain 'local' is there twice")
    for label, inner, version in (("Softmax", node("Softmax", ["a"], ["b"]), 11), ("axes", node("Unsqueeze", ["a"], ["b"], {"axes": [0]}), 12),
                                  ("Resize", node("Resize", ["a", "s"], ["b"], {"mode": "nearest"}), 10)):
        scales = node("Constant", [], ["s"], {"value": tensor("", [2], FLOAT, [1.0, 1.0])})
        yield Case(f"another operator set in a function: {label}", with_functions(function("F", ["a"], ["b"], [scales, inner], version=version)),
                   UNREADABLE, f"function 'F' imports operator set {version} and the model 17")
    yield Case("a function in the place of an operator", model(graph([LAYER, node("Relu", ["h"], ["t"])], [X], [value("t", [None])], [W])) +
               message(25, function("Relu", ["a"], ["b"], [node("Tanh", ["a"], ["b"])], domain="")),
               UNREADABLE, "function 'Relu' has the name of one of ONNX's operators")
    yield Case("a function with more inputs than it has", with_functions(one, nodes=[LAYER, node("F", ["h", "x"], ["t"], domain="local")]),
               UNREADABLE, "has 2 inputs, but function 'F' takes at most 1")
    yield Case("a function with more outputs than it has", with_functions(one, nodes=[LAYER, node("F", ["h"], ["t", "u"], domain="local")]),
               UNREADABLE, "has 2 outputs, but function 'F' makes at most 1")
    yield Case("a function of a domain that nothing imports", model(graph(calling, [X], [value("t", [None])], [W])) + message(25, one),
               UNREADABLE, "calls function 'F' of domain 'local', of which the file imports no operator set")
    yield Case("a function that calls itself", with_functions(function("F", ["a"], ["b"], [node("F", ["a"], ["b"], domain="local")])),
               UNREADABLE, "nested too deeply or call themselves")
    yield Case("two functions that call each other", with_functions(
        function("F", ["a"], ["b"], [node("G", ["a"], ["b"], domain="local")]), function("G", ["a"], ["b"], [node("F", ["a"], ["b"], domain="local")])),
        UNREADABLE, "nested too deeply or call themselves")
    yield Case("a function whose output nothing makes", with_functions(function("F", ["a"], ["c"], relu)), UNREADABLE, "is not defined")
    doubling = [function(f"F{i}", ["a"], ["b"], [node(f"F{i + 1}", ["a"], ["c"], domain="local"), node(f"F{i + 1}", ["c"], ["b"], domain="local")])
                for i in range(40)] + [function("F40", ["a"], ["b"], relu)]
    yield Case("functions that double 40 times", with_functions(*doubling, nodes=[LAYER, node("F0", ["h"], ["t"], domain="local")]),
               UNSUPPORTED, "make more than")
    reference = message(1, "alpha") + message(21, "slope") + number(20, 1)
    yield Case("an attribute of a function outside of one", chain(node("Elu", ["h"], ["t"], extra=message(5, reference)), output="t"),
               UNREADABLE, "attribute 'alpha' is that of a function")


@malformed
def initializers():
    def weight(content, name="layer.w"):
        return plain([number(1, 3) + number(1, 6) + number(2, FLOAT) + message(8, name) + content])

    numbers = [0.5] * 18
    few = "has 68 bytes of values, but its shape needs 72"
    yield Case("too few values", weight(message(9, packed(numbers[:17]))), UNREADABLE, few)
    yield Case("too few floats", weight(message(4, packed(numbers[:17]))), UNREADABLE, few)
    yield Case("too many values", weight(message(9, packed(numbers + [1.0]))), UNREADABLE, "has 76 bytes")
    yield Case("a broken value", weight(message(9, packed(numbers)[:-1])), UNREADABLE, "has 71 bytes")
    yield Case("no values", weight(b""), UNREADABLE, "has 0 bytes")
    yield Case("values in two fields", weight(message(9, packed(numbers)) + message(4, packed(numbers))), UNREADABLE, "values in two fields")
    yield Case("values in two typed fields", weight(message(4, packed(numbers)) + message(7, bytes(18))), UNREADABLE, "values in two fields")
    yield Case("values here and in a file", weight(message(9, packed(numbers)) + number(14, 1) + message(13, message(1, "location") + message(2, "w.bin"))),
               UNREADABLE, "values in two fields", beside={"w.bin": packed(numbers)})
    yield Case("floats as integers", weight(message(5, bytes(18))), UNREADABLE, "does not suit its element type")
    yield Case("floats as integers one by one", weight(b"".join(number(5, 1) for _ in range(18))), UNREADABLE, "does not suit its element type")
    yield Case("floats as doubles", weight(message(10, packed(numbers, DOUBLE))), UNREADABLE, "does not suit its element type")
    yield Case("floats as text", weight(message(6, "one")), UNREADABLE, "does not suit its element type")
    yield Case("int64 as int32", around([node("Reshape", ["h", "s"], ["t"])], initializers=[
        number(1, 2) + number(2, INT64) + message(8, "s") + message(5, bytes([6, 4]))]), UNREADABLE, "does not suit its element type")
    yield Case("a varint that ends early", around([node("Reshape", ["h", "s"], ["t"])], initializers=[
        number(1, 2) + number(2, INT64) + message(8, "s") + message(7, b"\x06\x84")]), UNREADABLE, "does not suit its element type")
    for label, sizes in (("a negative size", [-3, 6]), ("2^62 by 2^62", [1 << 62, 1 << 62]), ("2^63 - 1", [(1 << 63) - 1]), ("2^32 by 2^31", [1 << 32, 1 << 31])):
        head = b"".join(number(1, size) for size in sizes) + number(2, FLOAT) + message(8, "layer.w") + message(9, packed(numbers))
        yield Case(f"{label}", plain([head]), UNREADABLE, "impossible size|but its shape needs")
    for kind, label in ((STRING, "string"), (17, "float8e4m3fn"), (0, "undefined"), (14, "complex64"), (22, "int4"), (24, "float8e8m0"), (26, "int2"), (99, "number 99")):
        head = number(1, 3) + number(1, 6) + number(2, kind) + message(8, "layer.w") + message(9, bytes(36))
        yield Case(f"elements of type {label}", plain([head]), UNSUPPORTED, f"has elements of type {label}, which")
    def outside(*entries, beside=None, **more):
        keys = b"".join(message(13, message(1, key) + message(2, text)) for key, text in entries)
        return weight(keys + number(14, 1), **more)

    files = {"w.bin": packed(numbers), "sub/w.bin": packed(numbers)}
    for label, entries, says in (
            ("no location", [], "outside|location"), ("an empty location", [("location", "")], "outside|location"),
            ("a parent", [("location", "../w.bin")], "outside"), ("a parent within", [("location", "sub/../../w.bin")], "outside"),
            ("a parent that stays inside", [("location", "sub/../w.bin")], "has '..' in it, which is not allowed"),
            ("an absolute location", [("location", "/etc/passwd")], "outside"), ("a zero in the location", [("location", "w.bin\0x")], "outside"),
            ("a file that is not there", [("location", "v.bin")], "does not exist"), ("a folder", [("location", "sub")], "not a regular file"),
            ("the model's folder", [("location", ".")], "is the model's folder"),
            ("an offset beyond the end", [("location", "w.bin"), ("offset", "80")], "shorter than"),
            ("an offset of 2^63 - 1", [("location", "w.bin"), ("offset", str((1 << 63) - 1))], "shorter than"),
            ("a negative offset", [("location", "w.bin"), ("offset", "-4")], "is not a size"),
            ("an offset that is not a number", [("location", "w.bin"), ("offset", "4x")], "is not a size"),
            ("an offset of 2^70", [("location", "w.bin"), ("offset", str(1 << 70))], "is not a size"),
            ("a short length", [("location", "w.bin"), ("length", "71")], "but its shape needs"),
            ("a length beyond the end", [("location", "w.bin"), ("offset", "4"), ("length", "72")], "shorter than")):
        yield Case(f"values outside: {label}", outside(*entries), UNREADABLE, says, beside=files)


@legal
def unread():
    for kind, field in ((FLOAT16, message(9, bytes(6))), (STRING, message(6, "one") + message(6, "two") + message(6, "")), (22, message(9, bytes(2))), (17, message(5, b"\1\2\3"))):
        other = number(1, 3) + number(2, kind) + message(8, "other") + field
        yield Case(f"an initializer of type {kind} that nothing reads", plain([other, W, tensor("layer.scale", [1])], [LAYER, node("Mul", ["h", "layer.scale"], ["y"])], outputs=(value("y", [4, 6]),)))


@malformed
def constants():
    def constant(attributes, extra=b""):
        return around([node("Constant", [], ["c"], attributes, extra=extra), node("Mul", ["h", "c"], ["t"])])

    yield Case("a constant without a value", constant({}), UNREADABLE, "its value is exactly one")
    yield Case("a constant with two values", constant({"value_float": 1.0, "value_int": 1}), UNREADABLE, "its value is exactly one")
    yield Case("a constant with too few values", constant({"value": tensor("v", [6], FLOAT, [1.0])}), UNREADABLE, "but its shape needs")
    yield Case("a constant with too large a size", constant({"value": number(1, 1 << 62) + number(1, 1 << 62) + number(2, FLOAT)}), UNREADABLE, "impossible size")
    yield Case("a constant of text", constant({"value_string": "abc"}), UNSUPPORTED, "is text or a sparse tensor")
    yield Case("a constant of halves", constant({"value": tensor("v", [1], FLOAT, b"\0\0")[:0] + number(1, 1) + number(2, FLOAT16) + message(9, b"\0\x3c")}), 0)
    yield Case("a constant with values outside", constant({"value": number(1, 1) + number(2, FLOAT) + number(14, 1) + message(13, message(1, "location") + message(2, "w"))}),
               UNSUPPORTED, "external values")
    yield Case("a tensor that is cut off", constant({"value": tensor("v", [6])[:-2] + b"\x0f"}), UNREADABLE, "not an ONNX model|cannot be read")
    yield Case("a sparse constant", constant({}, message(5, message(1, "sparse_value") + message(22, message(1, tensor("v", [1]))) + number(20, 11))),
               UNSUPPORTED, "sparse")
    integer = {"value": tensor("v", [1], INT64, [1])}

    def sized(nodes, *initializers):
        return around(nodes, initializers=initializers)

    big = tensor("big", [2], INT64, [1 << 40, 1])
    huge = tensor("huge", [2], INT64, [1 << 62, 1 << 62])
    wraps = tensor("wraps", [3], INT64, [1 << 32, 1 << 32, 24])
    too_large = "2\\^40|above the largest|more than|out of range|elements|overflow|impossible|do not fit|cannot"
    for label, nodes, initializer in (
            ("Tile by 2^40", [node("Tile", ["h", "big"], ["t"])], big), ("Tile by 2^62", [node("Tile", ["h", "huge"], ["t"])], huge),
            ("Expand to 2^62", [node("Expand", ["h", "huge"], ["t"])], huge),
            ("ConstantOfShape of 2^62", [node("ConstantOfShape", ["huge"], ["c"]), node("Mul", ["h", "c"], ["t"])], huge),
            ("Reshape whose product wraps", [node("Reshape", ["h", "wraps"], ["t"])], wraps),
            ("Pad by 2^62", [node("Pad", ["h", "pads"], ["t"])], tensor("pads", [4], INT64, [1 << 62] * 4)),
            ("Slice with a step of 0", [node("Slice", ["h", "zero", "one", "zero", "zero"], ["t"])], tensor("zero", [1], INT64, [0])),
            ("Range with a step of 0", [node("Range", ["a", "b", "a"], ["c"]), node("Add", ["h", "c"], ["t"])], tensor("a", [], INT64, [0])),
            ("Range of 2^62", [node("Range", ["a", "c", "b"], ["r"]), node("Add", ["h", "r"], ["t"])], tensor("c", [], INT64, [1 << 62])),
            ("a division by zero", [node("Div", ["one", "zero"], ["s"]), node("Concat", ["s", "one"], ["u"], {"axis": 0}), node("Reshape", ["h", "u"], ["t"])],
             tensor("zero", [1], INT64, [0])),
            ("Gather outside", [node("Gather", ["h", "a"], ["t"], {"axis": 1})], tensor("a", [1], INT64, [6])),
            ("Split into sizes that do not sum", [node("Split", ["h", "s"], ["t", "u"], {"axis": 1})], tensor("s", [2], INT64, [3, 4])),
            ("Split into negative sizes", [node("Split", ["h", "s"], ["t", "u"], {"axis": 1})], tensor("s", [2], INT64, [7, -1])),
            ("Squeeze of an axis of 4", [node("Squeeze", ["h", "a"], ["t"])], tensor("a", [1], INT64, [0])),
            ("Unsqueeze of an axis twice", [node("Unsqueeze", ["h", "a"], ["t"])], tensor("a", [2], INT64, [1, 1])),
            ("ReduceSum of an axis beyond", [node("ReduceSum", ["h", "a"], ["t"])], tensor("a", [1], INT64, [2])),
            ("ReduceSum of an axis of -2^63", [node("ReduceSum", ["h", "a"], ["t"])], tensor("a", [1], INT64, [-(1 << 63)]))):
        more = [tensor("one", [1], INT64, [1]), tensor("b", [], INT64, [1])]
        if b"zero" not in initializer and label != "Range of 2^62":
            more.append(tensor("zero", [1], INT64, [0]))
        if label == "Range of 2^62":
            more.append(tensor("a", [], INT64, [0]))
        yield Case(label, sized(nodes, initializer, *more), None, "the node|node '")
    yield Case("Softmax of axis 2^63 - 1", around([node("Softmax", ["h"], ["t"], {"axis": (1 << 63) - 1})]), UNSUPPORTED, "out of range for rank 2")
    yield Case("Concat of axis -2^63", around([node("Concat", ["h", "h"], ["t"], {"axis": -(1 << 63)})]), UNSUPPORTED, "out of range for rank 2")
    yield Case("Transpose by an axis twice", around([node("Transpose", ["h"], ["t"], {"perm": [0, 0]})]), UNSUPPORTED, "perm|permutation")
    yield Case("Transpose by too many axes", around([node("Transpose", ["h"], ["t"], {"perm": [0, 1, 2]})]), UNSUPPORTED, "perm|permutation")
    yield Case("Flatten of axis 7", around([node("Flatten", ["h"], ["t"], {"axis": 7})]), UNSUPPORTED, "axis 7")
    yield Case("Einsum of no equation", around([node("Einsum", ["h"], ["t"], {"equation": "i->>"})]), UNSUPPORTED, "equation|Einsum")
    yield Case("a cast to text", around([node("Cast", ["h"], ["t"], {"to": STRING})]), UNSUPPORTED, "string|type 8")
    yield Case("a cast to type 99", around([node("Cast", ["h"], ["t"], {"to": 99})]), UNSUPPORTED, "type 99")


CHANGED = ["Elu", "Softmax", "Gemm", "LayerNormalization", "Concat", "ReduceMean", "Transpose", "Flatten", "Clip", "Trilu", "LeakyRelu", "Cast", "TopK",
           "Einsum", "Dropout", "Split", "CumSum", "Where", "Reshape", "Pad", "Relu", "Erf", "Unsqueeze", "Tile", "HardSigmoid"]
WRONG_KINDS = {"Elu": ("alpha", 1), "Softmax": ("axis", 1.0), "Gemm": ("alpha", 1), "LayerNormalization": ("epsilon", 1), "Concat": ("axis", [1]),
               "Transpose": ("perm", 1), "Flatten": ("axis", "1"), "Trilu": ("upper", 1.0), "LeakyRelu": ("alpha", "0.1"), "Cast": ("to", 1.0),
               "TopK": ("axis", [1]), "Einsum": ("equation", 1), "Dropout": ("seed", 1.0), "Split": ("axis", 1.0), "CumSum": ("exclusive", 0.0),
               "Pad": ("mode", 1), "HardSigmoid": ("beta", [1.0])}
VARIADIC = {"Concat", "Einsum", "Sum", "Mean", "Max", "Min"}


@malformed
def schemas():
    seen = set()
    for operator in reversed(OPERATORS):
        kind = operator.kind
        if kind not in CHANGED or kind in seen:
            continue
        seen.add(kind)
        for version in sorted({max(operator.since, 7), operator.until}):

            def changed(label, says, code=UNREADABLE, **changes):
                return Case(f"{kind} {version} {label}", operator.model(version, **changes), code, says)

            yield changed("with an unknown attribute", f"{kind} of operator set {version} has no attribute 'wobble'",
                          attributes={**operator.attributes, "wobble": 1})
            if kind in WRONG_KINDS:
                name, content = WRONG_KINDS[kind]
                yield changed("with an attribute of another kind", f"attribute '{name}' is .*, expected",
                              attributes={**operator.attributes, name: content})
            if operator.attributes:
                name, content = next(iter(operator.attributes.items()))
                yield changed("with an attribute twice", f"attribute '{name}' is given twice", extra=message(5, attribute(name, content)))
                yield changed("with an attribute of two kinds", f"attribute '{name}' holds",
                              attributes={k: v for k, v in operator.attributes.items() if k != name},
                              extra=message(5, attribute(name, content) + (number(3, 1) if not isinstance(content, int) else message(4, "1"))))
            yield changed("without inputs", "input 0 is missing", inputs=[])
            if kind not in VARIADIC:
                yield changed("with too many inputs", "has 9 inputs, but .* at most", inputs=["h"] * 9)
            if kind != "Split":
                yield changed("with too many outputs", "has 9 outputs, but .* at most", outputs=["t"] + [f"more{i}" for i in range(8)])
            yield changed("with an empty input", "input 0 is missing", inputs=["", *operator.inputs[1:]])
    for kind, name in (("Concat", "axis"), ("Cast", "to"), ("Einsum", "equation")):
        operator = next(o for o in OPERATORS if o.kind == kind)
        yield Case(f"{kind} without {name}", operator.model(17, attributes={}), UNREADABLE, f"attribute '{name}' is missing")
@legal
def batches():
    """Files of one sample on a batch of eight."""
    x, eight = value("x", [1, 4, 3]), [("x", [8, 4, 3], FLOAT)]
    w = node("MatMul", ["x", "layer.w"], ["h"])

    def of(nodes, initializers=(), inputs=(x,), data=None, options=("--batch", "8")):
        scaled = [node("Mul", ["t", "layer.scale"], ["y"])]
        content = graph([w, *nodes, *scaled], inputs, [value("y", [None])], [W, SCALE, *initializers])
        return dict(content=model(content, 17), options=options, inputs=data or eight)

    def shape(name, *sizes):
        return tensor(name, [len(sizes)], INT64, sizes)

    yield Case("--batch", **of([node("Relu", ["h"], ["t"])]))
    yield Case("--batch of one", **of([node("Relu", ["h"], ["t"])], options=("--batch", "1"), data=[("x", [1, 4, 3], FLOAT)]))
    yield Case("--batch and heads", **of([node("Reshape", ["h", "s"], ["a"]), node("Transpose", ["a"], ["b"], {"perm": [0, 2, 1, 3]}),
                                          node("Transpose", ["b"], ["c"], {"perm": [0, 1, 3, 2]}), node("MatMul", ["b", "c"], ["d"]),
                                          node("Softmax", ["d"], ["e"], {"axis": -1}), node("MatMul", ["e", "b"], ["f"]),
                                          node("Transpose", ["f"], ["g"], {"perm": [0, 2, 1, 3]}), node("Reshape", ["g", "z"], ["t"])],
                                         [shape("s", 1, 4, 2, 3), shape("z", 1, 4, 6)]))
    yield Case("--batch in rows", **of([node("Reshape", ["h", "s"], ["a"]), node("Softmax", ["a"], ["b"], {"axis": 1}), node("Reshape", ["b", "z"], ["t"])],
                                       [shape("s", 4, 6), shape("z", 1, -1, 6)]))
    yield Case("--batch behind another axis", **of([node("Transpose", ["h"], ["a"], {"perm": [1, 0, 2]}), node("Reshape", ["a", "s"], ["b"]),
                                                    node("ReduceSum", ["b", "axis"], ["t"], {"keepdims": 0})],
                                                   [shape("s", 4, 1, 6), shape("axis", 0)]))
    yield Case("--batch beside a token of its own", **of([node("Concat", ["token", "h"], ["t"], {"axis": 1})], [tensor("token", [1, 1, 6])]))
    yield Case("--batch and a shape that follows it", **of([node("Shape", ["h"], ["all"]), node("Gather", ["all", "zero"], ["n"]), node("Unsqueeze", ["n", "zero"], ["m"]),
                                                            node("Concat", ["m", "open"], ["s"], {"axis": 0}), node("Reshape", ["h", "s"], ["r"]),
                                                            node("Softmax", ["r"], ["e"]), node("MatMul", ["e", "w24"], ["t"])],
                                                           [tensor("zero", [], INT64, [0]), shape("open", -1), tensor("w24", [24, 2])]))
    yield Case("--batch of all but one input", **of([node("Gather", ["h", "ids"], ["t"], {"axis": 1})], inputs=(x, value("ids", [2], INT64)),
                                                    data=[*eight, ("ids", [2], INT64)]))


@malformed
def batches_mixed():
    """--batch where a sample would be made of others."""
    x = value("x", [1, 4, 3])
    w = node("MatMul", ["x", "layer.w"], ["h"])

    def of(nodes, initializers=(), inputs=(x,)):
        content = graph([w, *nodes, node("Mul", ["t", "layer.scale"], ["y"])], inputs, [value("y", [None])], [W, SCALE, *initializers])
        return model(content, 17)

    def mixed(name, *nodes, initializers=()):
        return Case(f"--batch, {name}", of(nodes, initializers), UNSUPPORTED, "computes one sample of a batch from another", ["--batch", "8"])

    yield mixed("a softmax over samples", node("Softmax", ["h"], ["t"], {"axis": 0}))
    yield mixed("a sum over samples", node("ReduceMean", ["h"], ["t"], {"axes": [0]}))
    yield mixed("a sum over all", node("ReduceMean", ["h"], ["t"], {"keepdims": 0}))
    yield mixed("a product over samples", node("Reshape", ["h", "s"], ["a"]), node("Transpose", ["a"], ["b"]), node("MatMul", ["b", "a"], ["t"]),
                initializers=[tensor("s", [2], INT64, [4, 6])])
    yield mixed("a part of the samples", node("Slice", ["h", "zero", "one", "zero"], ["t"]),
                initializers=[tensor("zero", [1], INT64, [0]), tensor("one", [1], INT64, [1])])
    yield mixed("a chosen sample", node("Gather", ["h", "zero"], ["t"]), initializers=[tensor("zero", [1], INT64, [0])])
    yield mixed("samples joined", node("Concat", ["h", "h"], ["t"], {"axis": 0}))
    yield mixed("samples added up", node("CumSum", ["h", "axis"], ["t"]), initializers=[tensor("axis", [], INT64, [0])])
    yield mixed("a row of a parameter for each", node("Add", ["h", "rows"], ["t"]), initializers=[tensor("rows", [8, 4, 6])])
    yield mixed("a matrix of a parameter for each", node("MatMul", ["h", "matrices"], ["t"]), initializers=[tensor("matrices", [8, 6, 5])])
    yield mixed("a mask of a row for each", node("Where", ["mask", "h", "layer.scale"], ["t"]),
                initializers=[tensor("mask", [8, 1, 1], BOOL, [1, 0, 1, 0, 1, 1, 0, 1])])
    yield mixed("several of a sample", node("Expand", ["h", "s"], ["t"]), initializers=[tensor("s", [3], INT64, [8, 4, 6])])
    yield mixed("a triangle over the samples", node("Reshape", ["h", "s"], ["a"]), node("Trilu", ["a"], ["t"]), initializers=[tensor("s", [2], INT64, [1, 24])])
    yield mixed("a slice of a sequence", node("SplitToSequence", ["h"], ["q"], {"axis": 0}), node("SequenceAt", ["q", "i"], ["t"]),
                initializers=[tensor("i", [], INT64, [0])])
    yield Case("--batch in the last axis of the output", of([node("Transpose", ["h"], ["t"], {"perm": [1, 2, 0]})]), UNSUPPORTED,
               "does not have the samples of --batch along its first axis", ["--batch", "8"])
    other = of([node("Add", ["h", "o"], ["t"])], inputs=(x, value("o", [8, 4, 6])))
    yield Case("--batch, an input of a row for each", other, UNSUPPORTED, "computes one sample of a batch from another", ["--batch", "8"])
    for sizes, says in (([0, 1, 1], "no elements"), ([1 << 60, 1, 1], "above the largest")):
        yield Case(f"--batch, tiles {sizes[0]}", of([node("Tile", ["h", "s"], ["t"])], [tensor("s", [3], INT64, sizes)]), UNSUPPORTED, says, ["--batch", "8"])
    yield Case("--batch, a shape beyond 64 bits", of([node("Reshape", ["h", "s"], ["t"])], [tensor("s", [2], INT64, [(1 << 62) + 6, 4])]), UNSUPPORTED,
               "above the largest", ["--batch", "8"])
    relu = [node("Relu", ["h"], ["t"])]
    yield Case("--batch of a symbolic one", of(relu, inputs=(value("x", ["n", 4, 3]),)), USAGE, "fixes the first axis of no input", ["--batch", "8", "--dim", "n=8"])
    yield Case("--batch of several", of([node("Add", ["h", "o"], ["t"])], inputs=(value("x", [2, 4, 3]), value("o", [4, 6]))), USAGE,
               "none of them 1", ["--batch", "8"])
    for text in ("0", "-1", "many"):
        yield Case(f"--batch {text}", of(relu), USAGE, "--batch: expects a positive number", ["--batch", text])
    yield Case("--batch beyond the largest", of(relu), USAGE, "is above the largest size", ["--batch", str(1 << 40)])


@malformed
def conditions_unknown():
    def branch(nodes, results=("b",)):
        return (graph(nodes, [], [value(result, [None]) for result in results]),)

    relu = branch([node("Relu", ["h"], ["b"])])

    def choosing(yes=relu, no=relu, condition="flag", nodes=(), **more):
        return around([*nodes, node("If", [condition], ["t"], {"then_branch": yes, "else_branch": no}, "the if")], **more)

    flag = [X, value("flag", [], BOOL)]
    yield Case("a condition that is an input", choosing(inputs=flag), UNSUPPORTED, "depends on the values of input 'flag'")
    yield Case("a condition on the input", choosing(condition="c", nodes=[node("ReduceMax", ["x"], ["m"], {"keepdims": 0}), node("Greater", ["m", "layer.scale"], ["c"])]),
               UNSUPPORTED, "depends on the values of input 'x'")
    yield Case("a condition on a parameter", choosing(condition="c", nodes=[node("ReduceMax", ["layer.w"], ["m"], {"keepdims": 0}), node("Cast", ["m"], ["c"], {"to": BOOL})]),
               UNSUPPORTED, "depends on parameter 'layer.w'")
    yield Case("a condition without a size", choosing(inputs=[value("x", ["batch", 3]), flag[1]]), USAGE, "dimensions without a size: 'batch'")
    chain = []
    for i in range(300):
        last = f"v{i}" if i else "h"
        chain += [node("ReduceSum", [last], [f"sum{i}"], {"keepdims": 0}), node("Greater", [f"sum{i}", "layer.scale"], [f"c{i}"]),
                  node("If", [f"c{i}"], [f"v{i + 1}"], {"then_branch": (graph([node("Neg", [last], ["b"])], [], [value("b", [None])]),), "else_branch": relu})]
    yield Case("300 Ifs on what is computed", around(chain, "v300"), UNSUPPORTED, "depends on the values of input 'x'")
    yield Case("an If without branches", around([node("If", ["flag"], ["t"])], inputs=flag), UNREADABLE, "attribute 'else_branch' is missing")
    for what, empty in (("", message(1, "else_branch")), (" of kind graph", message(1, "else_branch") + number(20, 5))):
        hollow = node("If", ["c"], ["t"], {"then_branch": relu}, extra=message(5, empty))
        yield Case(f"an empty branch{what}", around([hollow], initializers=[tensor("c", [], BOOL, b"\1")]), UNREADABLE,
                   "attribute 'else_branch' holds nothing, expected a graph")
    yield Case("an empty constant", around([node("Constant", [], ["c"], extra=message(5, message(1, "value"))), node("Add", ["h", "c"], ["t"])]),
               UNREADABLE, "attribute 'value' holds nothing, expected a tensor")
    for kind, word in ((BOOL, "bools"), (INT64, "integers")):
        yield Case(f"Tanh of {word}", around([node("Tanh", ["i"], ["f"]), node("Cast", ["f"], ["g"], {"to": FLOAT}), node("Mul", ["h", "g"], ["t"])],
                                             initializers=[tensor("i", [6], kind)]), UNSUPPORTED, f"computes on real numbers, found {word}")
    yield Case("a sum of no elements beside others", around([node("Add", ["none", "layer.scale"], ["n"]), node("Mul", ["h", "n"], ["t"])],
                                                            initializers=[tensor("none", [4, 0])]), UNSUPPORTED, "do not broadcast")
    yield Case("an If without a condition", choosing(condition=""), UNREADABLE, "input 0 is missing")
    yield Case("branches of other counts", choosing(branch([node("Split", ["h"], ["b", "e"], {"axis": 1})], ("b", "e")), inputs=flag), UNREADABLE,
               "has 1 outputs, but one of its branches 2")
    yield Case("a branch whose output nothing makes", choosing(branch([], ["z"]), relu, inputs=flag), UNREADABLE, "'z' is not defined")
    for name, made in {"a value": "h", "an initializer": "layer.w", "an input": "x"}.items():
        body = graph([node("Identity", ["c"], ["go"]), node("Relu", ["s"], [made])], [value("i", [], INT64), value("c", [], BOOL), value("s", [4, 6])],
                     [value("go", [], BOOL), value(made, [4, 6])])
        yield Case(f"a Loop that defines {name} of the graph around", around([node("Loop", ["count", "", "h"], ["t"], {"body": (body,)})], initializers=[tensor("count", [], INT64, [2])]), UNREADABLE,
                   f"defines value '{made}', which the graph around it has already")
    nameless = graph([node("Less", ["i", "two"], ["go"]), node("Relu", ["s"], ["n"])], [value("i", [], INT64), value("c", [], BOOL), value("s", [4, 6])],
                     [value("", [], BOOL), value("n", [4, 6])])
    yield Case("a Loop whose body's condition has no name", around([node("Loop", ["", "", "h"], ["t"], {"body": (nameless,)})], initializers=[tensor("two", [], INT64, [2])]), UNREADABLE,
               "output 0 of its body has no name")
    nowhere = graph([node("Relu", ["s"], ["n"])], [value("i", [], INT64), value("c", [], BOOL), value("s", [4, 6])], [value("lost", [], BOOL), value("n", [4, 6])])
    yield Case("a Loop whose condition nothing makes", around([node("Loop", ["", "", "h"], ["t"], {"body": (nowhere,)})]), UNSUPPORTED,
               "its body cannot be written out: .*value 'lost' is not defined anywhere")
    pair = node("SequenceConstruct", ["h", "h"], ["q"])
    yield Case("a sequence of sequences", around([pair, node("SequenceConstruct", ["q"], ["qq"]), node("SequenceAt", ["qq", "zero"], ["r"]), node("ConcatFromSequence", ["r"], ["t"], {"axis": 0})],
                                                 initializers=[tensor("zero", [], INT64, [0])]), UNSUPPORTED, "its input 0 is a sequence, not a tensor")
    yield Case("new_axis beyond 1", around([pair, node("ConcatFromSequence", ["q"], ["t"], {"axis": 0, "new_axis": 2})]), UNREADABLE, "new_axis is 2, which is neither 0 nor 1")
    yield Case("a Loop whose body takes nothing", around([node("Loop", ["", "flag"], ["t"], {"body": relu})], inputs=flag), UNREADABLE, "its body has 0 inputs and 1 outputs, which do not fit")
    yield Case("a missing operator in the branch that is taken", choosing(branch([node("StringNormalizer", ["h"], ["b"])]), inputs=flag), UNSUPPORTED,
               "StringNormalizer", ["--constant", "flag=true"])
    for text, says in (("flag", "no input is given a value"), ("other=1", "no input is given a value"), ("flag=maybe", "is not a value of input 'flag', which is bool"), ("x=1e999", "'1e999' is not a value of input 'x'"), ("x=nan", "'nan' is not a value"),
                       ("flag=1,0", "is not of 2 elements"), ("flag=nowhere.npy", "nowhere.npy"), ("x=1,2", "is not of 2 elements"), ("flag=", "is not a value")):
        yield Case(f"--constant {text}", choosing(inputs=flag), USAGE, says, ["--constant", text])


# ---- running them

class Runner:
    def __init__(self, trainc, scratch, trains):
        self.sanitized = b"__asan_init" in pathlib.Path(trainc).read_bytes()  # which takes memory of its own
        self.trainc, self.scratch, self.trains = os.path.abspath(trainc), pathlib.Path(scratch).absolute(), trains

    def folder(self, index, case):
        folder = self.scratch / str(index)
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "model").mkdir(parents=True)
        (folder / "tmp").mkdir()
        for name, content in [("m.onnx", case.content), *case.beside.items()]:
            path = folder / "model" / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        return folder

    def run(self, command, folder):
        """Exit code, output, seconds and bytes of memory at most."""
        started = time.monotonic()
        with open(folder / "output", "wb") as log:
            child = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, "TMPDIR": str(folder / "tmp")})
        timer = concurrent.futures.thread.threading.Timer(120, child.kill)
        timer.start()
        _, status, usage = os.wait4(child.pid, 0)
        timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        text = (folder / "output").read_bytes().decode(errors="backslashreplace")
        (folder / "output").unlink()
        return child.returncode, text, time.monotonic() - started, usage.ru_maxrss << 10

    def check(self, index, case):
        """Everything that is not as it should be."""
        folder = self.folder(index, case)
        before = sorted(folder.rglob("*"))
        command = [self.trainc, "model/m.onnx", "--quiet", "--march", "x86-64-v3", "--loss", "mse", *case.options, "-o", "out"]
        trains = self.trains and case.code == 0
        code, text, seconds, memory = self.run(command + ([] if trains else ["--source-only"]), folder)
        wrong = []
        expected = (UNREADABLE, UNSUPPORTED) if case.code is None else (case.code,)
        if code not in expected:
            wrong.append(f"exit code {code}, expected {case.code}")
        problems = [line for line in text.split("\n") if line and not line.startswith("  try: ") and ": warning: " not in line]
        if case.code == 0 and problems:
            wrong.append("a message where none is due")
        if case.code != 0 and (len(problems) != 1 or not re.search(case.says, problems[0])):
            wrong.append(f"expected one message with {case.says!r}")
        if any(ord(c) < 32 and c != "\n" or ord(c) == 127 for c in text):
            wrong.append("control characters in a message")
        if case.code != 0 and sorted(folder.rglob("*")) != before:
            wrong.append(f"left behind: {sorted(path.name for path in set(folder.iterdir()) - set(before))}")
        if not trains and seconds > SECONDS:
            wrong.append(f"{seconds:.1f} s")
        size = len(case.content) + sum(map(len, case.beside.values()))
        if not trains and not self.sanitized and memory > TIMES_THE_FILE * size + MEMORY:
            wrong.append(f"{memory >> 20} MB of memory for a file of {size} bytes")
        if trains and not wrong:
            wrong += self.train(folder, case)
        shutil.rmtree(folder, ignore_errors=True)
        return [f"{case.name}: {', '.join(wrong)}\n{text}"] if wrong else []

    def train(self, folder, case):
        code, text, _, _ = self.run(["out/trainer", "info"], folder)
        command = ["out/trainer", "train", "--steps", "1", "--no-progress", "--run", "run"]
        for i, (name, sizes, kind) in enumerate(case.inputs):
            count = 1
            for size in sizes:
                count *= size
            values = [(j * 5 % 7 - 3) / 4 if kind == FLOAT else j % 2 for j in range(count)]
            (folder / f"{i}.npy").write_bytes(npy(sizes, values, kind))
            command += ["--data", f"{name}={i}.npy"]
        name = "loss_labels" if re.search(r"\bloss_labels\b", text) else "labels"
        return self.labelled(folder, command, name, re.findall(rf"\b{name}\b.*?\[([0-9, ]*)\]", text))

    def labelled(self, folder, command, name, shapes):
        sizes = [int(size) for size in shapes[0].split(",") if size.strip()] if shapes else []
        count = 1
        for size in sizes:
            count *= size
        (folder / "labels.npy").write_bytes(npy(sizes or [1], [0.25] * count))
        code, text, _, _ = self.run(command + ["--data", f"{name}=labels.npy"], folder)
        return [] if code == 0 else [f"the trainer ends with {code}: {text}"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trainc")
    parser.add_argument("scratch")
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--names", default="")
    parser.add_argument("--run", action="store_true")
    options = parser.parse_args()
    cases = [case for generator in LEGAL + MALFORMED for case in generator()]
    legal_count = sum(case.code == 0 for case in cases)
    if options.trainc == "write":
        for i, case in list(enumerate(cases))[:: options.share]:
            (pathlib.Path(options.scratch) / f"{i}.onnx").write_bytes(case.content)
        return
    chosen = [(i, case) for i, case in enumerate(cases) if i % options.share == options.first and re.search(options.names, case.name)]
    runner, started = Runner(options.trainc, options.scratch, options.run), time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        wrong = [text for texts in pool.map(lambda pair: runner.check(*pair), chosen) for text in texts]
    for text in wrong:
        print("FAILED: " + text)
    print(f"{len(cases)} files, {legal_count} of them legal; {len(chosen)} tried in {time.monotonic() - started:.0f} s, {len(wrong)} answered wrongly")
    sys.exit(1 if wrong or not chosen else 0)


main()
