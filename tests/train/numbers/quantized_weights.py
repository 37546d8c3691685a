# SPDX-License-Identifier: Apache-2.0
"""Two ONNX files of one model: weights as integers with scales in every form that is read, and as floats.

    quantized_weights.py FOLDER    # writes quantized.onnx, floats.onnx, ids.npy, target.npy
    quantized_weights.py near A B BOUND
    quantized_weights.py same A.safetensors B.safetensors BOUND    # tensors that both have
    quantized_weights.py moved A.safetensors B.safetensors NAME    # the same with one number of a tensor changed a little
"""
import json
import math
import pathlib
import random
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2]))
from onnx_file import FLOAT, INT8, INT64, UINT8, graph, model, node, npy, opset, tensor, value

UINT4, INT4 = 21, 22
ROWS, WIDTH, HIDDEN = 50, 64, 96
SIGNED, BITS = {INT8, INT4}, {INT8: 8, UINT8: 8, INT4: 4, UINT4: 4}
numbers = random.Random(5)


def rounded(number):
    return struct.unpack("<f", struct.pack("<f", number))[0]


def product(sizes):
    return math.prod(sizes)


def packed_integers(integers, bits, row=None):
    """Two of four bits to a byte; rows of their own where `row` gives their length."""
    if bits == 8:
        return bytes(integer & 255 for integer in integers)
    out = b""
    for begin in range(0, len(integers), row or len(integers)):
        of_row = [integer & 15 for integer in integers[begin:begin + (row or len(integers))]]
        of_row += [0] * (len(of_row) % 2)
        out += bytes(low | high << 4 for low, high in zip(of_row[::2], of_row[1::2]))
    return out


def without_bits(name):
    return name.removesuffix("_Q4").removesuffix("_Q8")


class Files:
    def __init__(self):
        self.initializers = {"quantized": [], "floats": []}
        self.nodes = {"quantized": [], "floats": []}

    def both(self, kind, inputs, output, attributes=None):
        for nodes in self.nodes.values():
            nodes.append(node(kind, inputs, [output], attributes, name=output))
        return output

    def weight(self, name, sizes, values):
        for initializers in self.initializers.values():
            initializers.append(tensor(name, sizes, values=struct.pack(f"<{len(values)}f", *values)))

    def draw(self, kind, count):
        low = -(1 << (BITS[kind] - 1)) if kind in SIGNED else 0
        return [numbers.randrange(low, low + (1 << BITS[kind])) for _ in range(count)]

    def scales(self, kind, count):
        size = 0.3 / (1 << (BITS[kind] - 1))
        return [rounded(numbers.uniform(0.4 * size, size)) for _ in range(count)]

    def dequantized(self, name, sizes, integers, scale_of, zero_of):
        """Floats as f32 has them: integers and their difference are exact there."""
        values = []
        for i, integer in enumerate(integers):
            place, at = [], i
            for size in reversed(sizes):
                place.insert(0, at % size)
                at //= size
            values.append(rounded(rounded(integer - zero_of(place)) * scale_of(place)))
        self.initializers["floats"].append(tensor(name, sizes, values=struct.pack(f"<{len(values)}f", *values)))

    def dequantize_linear(self, x, name, sizes, kind, axis=None, block=0, zeros=False, turned=False, output=None):
        """A weight behind DequantizeLinear, and its product."""
        attributes = {} if axis is None else {"axis": axis, **({"block_size": block} if block else {})}
        axis = None if axis is None else axis % len(sizes)
        of_scales = [] if axis is None else [sizes[axis]] if not block else [
            -(-size // block) if i == axis else size for i, size in enumerate(sizes)]

        def index(place):
            if axis is None:
                return 0
            if not block:
                return place[axis]
            at = 0
            for i, (one, size) in enumerate(zip(place, of_scales)):
                at = at * size + (one // block if i == axis else one)
            return at

        count = product(of_scales)
        integers, scales = self.draw(kind, product(sizes)), self.scales(kind, count)
        points = [numbers.randrange(*((-3, 4) if kind in SIGNED else (5, 11))) for _ in range(count)]
        inputs = [name + "_quantized", name + ".scale"]
        own = self.initializers["quantized"]
        own.append(tensor(inputs[0], sizes, kind, packed_integers(integers, BITS[kind])))
        own.append(tensor(inputs[1], of_scales, values=struct.pack(f"<{count}f", *scales)))
        if zeros:
            inputs.append(name + ".zero")
            own.append(tensor(inputs[2], of_scales, kind, packed_integers(points, BITS[kind])))
        self.nodes["quantized"].append(node("DequantizeLinear", inputs, [name], attributes, name=name))
        self.dequantized(name, sizes, integers, lambda place: scales[index(place)],
                         lambda place: points[index(place)] if zeros else 0)
        if turned:
            name = self.both("Transpose", [name], name + ".turned", {"perm": [1, 0]})
        return self.both("Tanh", [self.both("MatMul", [x, name], output + ".product")], output)

    def blocks(self, name, rows, length, block, bits, zeros):
        """Rows of whole blocks, as ONNX Runtime's operators have them."""
        kind, count = UINT4 if bits == 4 else UINT8, -(-length // block)
        integers, scales = self.draw(kind, rows * count * block), self.scales(kind, rows * count)
        points = [numbers.randrange(5, 11) for _ in range(rows * count)]
        if zeros == "floats":
            points = [rounded(point + numbers.uniform(0, 1)) for point in points]
        own, inputs = self.initializers["quantized"], [name, name + ".scale"]
        own.append((integers, scales, points))
        place_of = lambda place: place[0] * count + place[1] // block
        kept = [integers[row * count * block + column] for row in range(rows) for column in range(length)]
        self.dequantized(without_bits(name), [rows, length], kept, lambda place: scales[place_of(place)],
                         lambda place: points[place_of(place)] if zeros else 1 << (bits - 1))
        own.pop()
        own.append(tensor(inputs[1], [rows, count], values=struct.pack(f"<{rows * count}f", *scales)))
        if zeros == "floats":
            own.append(tensor(name + ".zero", [rows, count], values=struct.pack(f"<{rows * count}f", *points)))
        elif zeros:
            each = -(-count * bits // 8)
            own.append(tensor(name + ".zero", [rows, each], UINT8, packed_integers(points, bits, count)))
        return inputs + ([name + ".zero"] if zeros else []), packed_integers(integers, bits), count

    def of_microsoft(self, kind, inputs, output, attributes):
        self.nodes["quantized"].append(node(kind, inputs, [output], attributes, name=output, domain="com.microsoft"))

    def gathered(self, ids, name, output):
        inputs, integers, _ = self.blocks(name, ROWS, WIDTH, 32, 4, "packed")
        self.initializers["quantized"].append(tensor(name, [ROWS, WIDTH // 2], UINT8, integers))
        self.of_microsoft("GatherBlockQuantized", [inputs[0], ids, *inputs[1:]], output, {"bits": 4, "block_size": 32})
        self.nodes["floats"].append(node("Gather", [without_bits(name), ids], [output], name=output))
        return output

    def matmul(self, x, name, outputs, inputs, block, bits, output, zeros=""):
        names, integers, count = self.blocks(name, outputs, inputs, block, bits, zeros)
        own = self.initializers["quantized"]
        own.append(tensor(name, [outputs, count, block * bits // 8], UINT8, integers))
        self.weight(name + ".bias", [outputs], [rounded(numbers.uniform(-1, 1)) for _ in range(outputs)])
        self.of_microsoft("MatMulNBits", [x, *names, *[""] * (5 - 1 - len(names)), name + ".bias"], output + ".sum",
                          {"K": inputs, "N": outputs, "bits": bits, "block_size": block})
        bias, name, turned = name + ".bias", without_bits(name), name + ".turned"
        floats = self.nodes["floats"]
        floats.append(node("Transpose", [name], [turned], {"perm": [1, 0]}, name=turned))
        floats.append(node("MatMul", [x, turned], [output + ".product"], name=output + ".product"))
        floats.append(node("Add", [output + ".product", bias], [output + ".sum"], name=output + ".sum"))
        return self.both("Tanh", [output + ".sum"], output)

    def write(self, folder, output):
        for name, nodes in self.nodes.items():
            content = graph(nodes, [value("ids", [2, 7], INT64)], [value(output, [2, 7, ROWS])], self.initializers[name])
            imports = [opset(1, "com.microsoft")] if name == "quantized" else []
            (folder / (name + ".onnx")).write_bytes(model(content, version=21, ir=10, imports=imports))


def write(folder):
    files = Files()
    x = files.gathered("ids", "embed.weight", "x")
    x = files.dequantize_linear(x, "one", [WIDTH, HIDDEN], INT8, output="x1")
    x = files.dequantize_linear(x, "columns", [HIDDEN, WIDTH], UINT8, axis=1, zeros=True, output="x2")
    x = files.dequantize_linear(x, "rows", [HIDDEN, WIDTH], INT8, axis=0, turned=True, output="x3")
    x = files.dequantize_linear(x, "across", [HIDDEN, WIDTH], INT4, axis=0, block=32, output="x4")
    x = files.dequantize_linear(x, "along", [WIDTH, HIDDEN], UINT4, axis=1, block=32, zeros=True, output="x5")
    x = files.dequantize_linear(x, "bytes", [HIDDEN, WIDTH], INT8, axis=-2, block=16, zeros=True, output="x6")
    x = files.matmul(x, "layers.0.weight_Q4", HIDDEN, WIDTH, 32, 4, "x7")
    x = files.matmul(x, "layers.1.weight_Q4", WIDTH, HIDDEN, 32, 4, "x8", "packed")
    x = files.matmul(x, "layers.2.weight_Q4", HIDDEN, WIDTH, 16, 4, "x9", "floats")
    x = files.matmul(x, "layers.3.weight_Q8", WIDTH, HIDDEN, 64, 8, "x10")
    files.weight("head", [WIDTH, ROWS], [rounded(numbers.uniform(-0.3, 0.3)) for _ in range(WIDTH * ROWS)])
    files.both("MatMul", [x, "head"], "y")
    files.write(folder, "y")
    ids = [numbers.randrange(ROWS) for _ in range(8 * 7)]
    (folder / "ids.npy").write_bytes(npy([8, 7], ids, INT64))
    (folder / "labels.npy").write_bytes(npy([8, 7, ROWS], [numbers.uniform(-1, 1) for _ in range(8 * 7 * ROWS)]))


def near(a, b, bound):
    a, b = float(a), float(b)
    assert abs(a - b) <= float(bound) * max(abs(a), abs(b)), f"{a} and {b}"


def tensors(path):
    content = pathlib.Path(path).read_bytes()
    size = 8 + struct.unpack("<Q", content[:8])[0]
    out = {}
    for name, entry in json.loads(content[8:size]).items():
        if name != "__metadata__" and entry["dtype"] in ("F32", "F64"):
            letter = {"F32": "f", "F64": "d"}[entry["dtype"]]
            raw = content[size + entry["data_offsets"][0]:size + entry["data_offsets"][1]]
            out[name] = struct.unpack(f"<{len(raw) // struct.calcsize(letter)}{letter}", raw)
    return out


def same(a, b, bound):
    a, b = tensors(a), tensors(b)
    names = a.keys() & b.keys()
    assert names, (a.keys(), b.keys())
    for name in names:
        largest = max(map(abs, b[name]))
        worst = max(abs(x - y) for x, y in zip(a[name], b[name]))
        assert worst <= float(bound) * largest, f"{name}: {worst} of {largest}"


def moved(path, to, name):
    content = bytearray(pathlib.Path(path).read_bytes())
    size = 8 + struct.unpack("<Q", content[:8])[0]
    at = size + json.loads(content[8:size])[name]["data_offsets"][0]
    number, = struct.unpack("<f", content[at:at + 4])
    content[at:at + 4] = struct.pack("<f", number + 0.3)
    pathlib.Path(to).write_bytes(content)


if len(sys.argv) == 2:
    write(pathlib.Path(sys.argv[1]))
else:
    globals()[sys.argv[1]](*sys.argv[2:])
