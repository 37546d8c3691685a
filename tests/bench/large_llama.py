# SPDX-License-Identifier: Apache-2.0
"""A language model of Qwen2.5's shapes as an ONNX graph without weights, which trainc-fill gives.

    python3 tests/bench/large_llama.py [--zeros | --int4] FILE.onnx [LAYERS HIDDEN INNER HEADS KEY_HEADS VOCABULARY LENGTH]

The defaults are the shapes of 1.5 billion parameters, and 256 tokens: 28 1536 8960 12 2 151936 256. With --zeros all
weights are zeros in FILE.onnx.data, which has holes in their place: a large file that takes no room. With --int4 they
are random integers of four bits in blocks of 32, with scales, as ONNX Runtime's tools write them: 7 billion parameters
are 32 4096 14336 32 8 32000 256.
"""
import math
import pathlib
import random
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from onnx_file import FLOAT, INT64, UINT8, graph, message, model, node, number, opset, tensor, value

BASE = 1e6  # of the rotations


BLOCK = 32  # elements that share a scale


class Places:
    """Places of weights in a file of their own, and the kinds of their numbers."""

    def __init__(self, name):
        self.name, self.bytes, self.kinds = name, 0, []

    def place(self, sizes, kind=FLOAT):
        length = (4 if kind == FLOAT else 1) * math.prod(sizes)
        self.kinds.append((kind, length))
        entries = {"location": self.name, "offset": self.bytes, "length": length}
        self.bytes += length
        return b"".join(message(13, message(1, key) + message(2, str(entry))) for key, entry in entries.items()) + number(14, 1)

    def write_random(self, stream):
        """Numbers that repeat by the megabyte: they are as good as others for times and sizes."""
        numbers = random.Random(1)
        pieces = {UINT8: numbers.randbytes(1 << 20),
                  FLOAT: struct.pack("<262144f", *(numbers.uniform(0.002, 0.006) for _ in range(1 << 18)))}
        for i, (kind, length) in enumerate(self.kinds):
            piece = pieces[kind][4 * i:] + pieces[kind][:4 * i]  # no two weights are equal
            for begin in range(0, length, 1 << 20):
                stream.write(piece[:length - begin])


def build(layers, hidden, inner, heads, key_heads, vocabulary, length, places=None, in_four_bits=False):
    size = hidden // heads
    weights, nodes = [], []

    def weight(name, *sizes, kind=FLOAT):
        place = places.place(sizes, kind) if places else b""
        weights.append(b"".join(number(1, each) for each in sizes) + number(2, kind) + message(8, name) + place)

    def blocks(name, outputs, inputs, *of_block):
        weight(name, outputs, *of_block, kind=UINT8)
        weight(name + ".scales", outputs, inputs // BLOCK)
        return [name, name + ".scales"]

    def add(kind, inputs, output, attributes=None):
        nodes.append(node(kind, inputs, [output], attributes, name=output))
        return output

    def linear(x, name, inputs, outputs, bias=False):
        if in_four_bits:
            return add_of_microsoft("MatMulNBits", [x, *blocks(name + ".weight", outputs, inputs, inputs // BLOCK, BLOCK // 2)],
                                    name, {"K": inputs, "N": outputs, "bits": 4, "block_size": BLOCK})
        weight(name + ".weight", inputs, outputs)
        product = add("MatMul", [x, name + ".weight"], name + ".product")
        if not bias:
            return product
        weight(name + ".bias", outputs)
        return add("Add", [product, name + ".bias"], name)

    def add_of_microsoft(kind, inputs, output, attributes):
        nodes.append(node(kind, inputs, [output], attributes, name=output, domain="com.microsoft"))
        return output

    def norm(x, name):
        weight(name + ".weight", hidden)
        return add("RMSNormalization", [x, name + ".weight"], name, {"epsilon": 1e-6})

    angles = [place * BASE ** (-2 * i / size) for place in range(length) for i in range(size // 2)]
    for name, of in (("cos", math.cos), ("sin", math.sin)):
        table = tensor("", [1, length, size // 2], values=struct.pack(f"<{len(angles)}f", *map(of, angles)))
        nodes.append(node("Constant", [], [name], {"value": table}))
    if in_four_bits:
        table, scales = blocks("embed.weight", vocabulary, hidden, hidden // 2)
        x = add_of_microsoft("GatherBlockQuantized", [table, "tokens", scales], "embed", {"bits": 4, "block_size": BLOCK})
    else:
        weight("embed.weight", vocabulary, hidden)
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
    if in_four_bits:
        linear(x, "logits", hidden, vocabulary)
    else:
        nodes.append(node("Transpose", ["embed.weight"], ["head"], {"perm": [1, 0]}))
        nodes.append(node("MatMul", [x, "head"], ["logits"], name="logits"))
    return model(graph(nodes, [value("tokens", [1, length], INT64)], [value("logits", [1, length, vocabulary])], weights),
                 version=23, ir=10, imports=[opset(1, "com.microsoft")] if in_four_bits else [])


def main():
    words = sys.argv[1:]
    values = words[0] if words[0].startswith("--") else ""
    file, *sizes = words[1 if values else 0:]
    data = pathlib.Path(file + ".data")
    places = Places(data.name) if values else None
    sizes = [int(word) for word in sizes] or [28, 1536, 8960, 12, 2, 151936, 256]
    pathlib.Path(file).write_bytes(build(*sizes, places, in_four_bits=values == "--int4"))
    if not places:
        return
    with open(data, "wb") as stream:
        if values == "--int4":
            places.write_random(stream)
        else:
            stream.truncate(places.bytes)


main()
