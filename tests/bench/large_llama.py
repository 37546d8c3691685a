# SPDX-License-Identifier: Apache-2.0
"""A language model of Qwen2.5's shapes as an ONNX graph without weights, which trainc-fill gives.

    python3 tests/bench/large_llama.py [--zeros] FILE.onnx [LAYERS HIDDEN INNER HEADS KEY_HEADS VOCABULARY LENGTH]

The defaults are the shapes of 1.5 billion parameters, and 256 tokens: 28 1536 8960 12 2 151936 256. With --zeros all
weights are zeros in FILE.onnx.data, which has holes in their place: a large file that takes no room.
"""
import math
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from onnx_file import FLOAT, INT64, graph, message, model, node, number, tensor, value

BASE = 1e6  # of the rotations


class Zeros:
    """Places of weights in a file of their own."""

    def __init__(self, name):
        self.name, self.bytes = name, 0

    def place(self, sizes):
        length = 4 * math.prod(sizes)
        entries = {"location": self.name, "offset": self.bytes, "length": length}
        self.bytes += length
        return b"".join(message(13, message(1, key) + message(2, str(entry))) for key, entry in entries.items()) + number(14, 1)


def build(layers, hidden, inner, heads, key_heads, vocabulary, length, zeros=None):
    size = hidden // heads

    def weight(name, *sizes):
        place = zeros.place(sizes) if zeros else b""
        return b"".join(number(1, each) for each in sizes) + number(2, FLOAT) + message(8, name) + place

    weights, nodes = [weight("embed.weight", vocabulary, hidden)], []

    def add(kind, inputs, output, attributes=None):
        nodes.append(node(kind, inputs, [output], attributes, name=output))
        return output

    def linear(x, name, inputs, outputs, bias=False):
        weights.append(weight(name + ".weight", inputs, outputs))
        product = add("MatMul", [x, name + ".weight"], name + ".product")
        if not bias:
            return product
        weights.append(weight(name + ".bias", outputs))
        return add("Add", [product, name + ".bias"], name)

    def norm(x, name):
        weights.append(weight(name + ".weight", hidden))
        return add("RMSNormalization", [x, name + ".weight"], name, {"epsilon": 1e-6})

    angles = [place * BASE ** (-2 * i / size) for place in range(length) for i in range(size // 2)]
    for name, of in (("cos", math.cos), ("sin", math.sin)):
        table = tensor("", [1, length, size // 2], values=struct.pack(f"<{len(angles)}f", *map(of, angles)))
        nodes.append(node("Constant", [], [name], {"value": table}))
    x = add("Gather", ["embed.weight", "tokens"], "embed")
    for layer in range(layers):
        at = f"layers.{layer}."
        y = norm(x, at + "norm_1")
        q, k, v = (linear(y, at + name, hidden, count * size, bias=True)
                   for name, count in (("q", heads), ("k", key_heads), ("v", key_heads)))
        q = add("RotaryEmbedding", [q, "cos", "sin"], at + "rotated_q", {"num_heads": heads})
        k = add("RotaryEmbedding", [k, "cos", "sin"], at + "rotated_k", {"num_heads": key_heads})
        y = add("Attention", [q, k, v], at + "attention", {"is_causal": 1, "q_num_heads": heads, "kv_num_heads": key_heads})
        x = add("Add", [x, linear(y, at + "o", hidden, hidden)], at + "between")
        y = norm(x, at + "norm_2")
        gate = linear(y, at + "gate", hidden, inner)
        y = add("Mul", [gate, add("Sigmoid", [gate], at + "sigmoid")], at + "silu")
        y = add("Mul", [y, linear(at + "norm_2", at + "up", hidden, inner)], at + "gated")
        x = add("Add", [x, linear(y, at + "down", inner, hidden)], at + "out")
    x = norm(x, "norm")
    nodes.append(node("Transpose", ["embed.weight"], ["head"], {"perm": [1, 0]}))
    nodes.append(node("MatMul", [x, "head"], ["logits"], name="logits"))
    return model(graph(nodes, [value("tokens", [1, length], INT64)], [value("logits", [1, length, vocabulary])], weights),
                 version=23, ir=10)


def main():
    words = sys.argv[1:]
    has_zeros = words[:1] == ["--zeros"]
    file, *sizes = words[has_zeros:]
    data = pathlib.Path(file + ".data")
    zeros = Zeros(data.name) if has_zeros else None
    sizes = [int(word) for word in sizes] or [28, 1536, 8960, 12, 2, 151936, 256]
    pathlib.Path(file).write_bytes(build(*sizes, zeros))
    if zeros:
        with open(data, "wb") as stream:
            stream.truncate(zeros.bytes)


main()
