# SPDX-License-Identifier: Apache-2.0
"""What adapters.test compares, from safetensors files: adapters.py COMMAND ARGUMENT...

forms                        writes a model whose weights stand in every place that a product has, and data for it
merged BASE MERGED ADAPTER   the merged state is W + (alpha / r) B A, in every other tensor that of the base
moved ADAPTER FOLDER SIGN    writes the adapter, moved by SIGN along the direction that `slope` has
slope GRADIENTS PLUS MINUS   the gradient along that direction is that of the losses in two logs
near A B TOLERANCE           two numbers
edited ADAPTER FOLDER WHAT   writes an adapter that does not fit
"""
import array
import json
import math
import os
import random
import shutil
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
from onnx_file import npy

STEP = 1e-5  # of the central difference: its own error is of its square, that of rounding 1e-16 over it
CODES = {"F32": "f", "F64": "d"}


FORMS = """<ir_version: 8, opset_import: ["" : 17]>
forms (float[2, 3, 4, 4] x) => (float[2, 7] y)
<float[5, 3, 3, 3] kernel = {%s}, float[6, 5] left = {%s}, float[9, 24] turned = {%s}, float[9, 9] shared = {%s},
 float[9] bias = {%s}, float[7, 9] last = {%s}>
{
  convolved = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (x, kernel)
  bent = Tanh (convolved)
  columns = Constant <value = int64[3] {2, 5, 4}> ()
  matrices = Reshape (bent, columns)
  before = MatMul (left, matrices)
  rows = Constant <value = int64[2] {2, 24}> ()
  flat = Reshape (before, rows)
  first = Gemm <transB = 1> (flat, turned, bias)
  second = Gemm (first, shared, bias)
  bent_again = Tanh (second)
  third = Gemm <alpha = 0.5> (bent_again, shared)
  upright = Transpose <perm = [1, 0]> (last)
  y = MatMul (third, upright)
}
"""


def forms():
    numbers = random.Random(1)

    def some(count):
        return [numbers.uniform(-1, 1) for _ in range(count)]
    with open("forms.onnxtxt", "w") as file:
        file.write(FORMS % tuple(", ".join(f"{x:.6f}" for x in some(count)) for count in (135, 30, 216, 81, 9, 63)))
    for name, shape in ("x", (2, 3, 4, 4)), ("labels", (2, 7)):
        with open(f"{name}.npy", "wb") as file:
            file.write(npy(shape, some(math.prod(shape))))


def read(path):
    """Name to (shape, values)."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            tensors[name] = entry["shape"], array.array(CODES[entry["dtype"]], data[begin:end])
    return tensors


def write(path, tensors):
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        part = array.array("d", values).tobytes()
        header[name] = {"dtype": "F64", "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def module_name(name):
    return name.removeprefix("base_model.model.")


def adapter_in(folder):
    return {module_name(name): tensor for name, tensor in read(folder + "/adapter_model.safetensors").items()}


def merged(base, merged, adapter):
    before, after, parts = read(base), read(merged), adapter_in(adapter)
    config = json.load(open(adapter + "/adapter_config.json"))
    assert before.keys() == after.keys(), before.keys() ^ after.keys()
    for name, (shape, weight) in before.items():
        layer = name.removesuffix(".weight")
        if layer + ".lora_A.weight" not in parts:
            assert after[name] == (shape, weight), name
            continue
        (rank, *_), a = parts.pop(layer + ".lora_A.weight")
        (outer, *_), b = parts.pop(layer + ".lora_B.weight")
        inner = len(a) // rank
        scale = config["alpha_pattern"].get(layer, config["lora_alpha"]) / config["rank_pattern"].get(layer, config["r"])
        assert rank == config["rank_pattern"].get(layer, config["r"]) and layer in config["target_modules"], name
        turned = shape == [inner, outer] and config["fan_in_fan_out"]
        assert turned or shape[0] == outer, name
        moved = 0
        for o in range(outer):
            for i in range(inner):
                at = i * outer + o if turned else o * inner + i
                exact = weight[at] + scale * sum(b[o * rank + k] * a[k * inner + i] for k in range(rank))
                assert abs(after[name][1][at] - exact) <= 2e-7 * max(abs(exact), 1e-3), name
                moved += exact != weight[at]
        assert moved > 0, name
    assert not parts, parts.keys()


def direction(name, count):
    numbers = random.Random(name)
    return [numbers.uniform(-1, 1) for _ in range(count)]


def moved(adapter, folder, sign):
    os.makedirs(folder)
    write(folder + "/adapter_model.safetensors", {
        name: (shape, [value + float(sign) * STEP * d for value, d in zip(values, direction(name, len(values)))])
        for name, (shape, values) in adapter_in(adapter).items()})


def first_loss(log):
    return json.loads(next(line for line in open(log) if '"loss"' in line))["loss"]


def slope(gradients, plus, minus):
    expected = (first_loss(plus) - first_loss(minus)) / (2 * STEP)
    found = read(gradients)
    assert all(".lora_" in name for name in found), found.keys()
    own = sum(g * d for name, (_, values) in found.items() for g, d in zip(values, direction(name, len(values))))
    print(f"gradient {own:.12g}, central difference {expected:.12g}")
    assert abs(own - expected) <= 1e-5 * abs(expected), (own, expected)


def near(one, other, tolerance):
    one, other = float(one), float(other)
    assert math.isfinite(one) and abs(one - other) <= float(tolerance) * abs(other), (one, other)


def edited(adapter, folder, what):
    shutil.copytree(adapter, folder)
    tensors, path = read(adapter + "/adapter_model.safetensors"), folder + "/adapter_config.json"
    name = next(iter(tensors))
    if what == "missing":
        del tensors[name]
    elif what == "other":
        tensors[name.replace("lora_A", "lora_C")] = tensors[name]
    elif what == "rank":
        shape, values = tensors[name]
        tensors[name] = [shape[0] * 2, shape[1]], list(values) * 2
    elif what == "alpha":
        config = json.load(open(path))
        config["lora_alpha"] *= 2
        json.dump(config, open(path, "w"))
    write(folder + "/adapter_model.safetensors", tensors)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
