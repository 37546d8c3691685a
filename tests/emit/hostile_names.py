# SPDX-License-Identifier: Apache-2.0
#
# Models whose initializers, inputs and nodes bear names that emitted code must keep apart from its
# own: every identifier of the files given (of .cpp files of compiler/emit those in string
# literals), C++ keywords, the macros that the compiler knows of, and names that end comments,
# literals or lines. Each name has each of the three parts in turn.
#
#   hostile_names.py FOLDER NAMES_PER_PART SHARE FILE...
#
# writes FOLDER/0.onnx, FOLDER/1.onnx, ...; of the identifiers every SHARE-th. FOLDER/run.onnx has
# weights and nodes with the worst names, and FOLDER/x.npy what to train it on. Standard library only.
import pathlib
import re
import struct
import sys

HOSTILE = [
    "m", "at", "NULL", "EOF", "assert", "linux", "unix", "signbit", "isnan", "main", "std", "errno",
    "memory", "kernels", "shared", "trainc", "constants", "table", "constant_tables", "arena_count",
    "forward_backward", "forward_backward_1", "evaluate_1", "update_1", "product_4x2x3", "int64_t",
    'say "no"', "end */ /* begin", "line // rest", "why ??/", "a\nb", "\x1b[31m red", "tab\there",
    "\x7f", "back\\slash", "%s%n", "$(touch pwned)", "`touch pwned`", "../../up", "--option",
    "\u5c42.\u6743\u91cd", "\u00e9t\u00e9", "\U0001f600", "x" * 65536, " ", "_", "__x__", "9 lives", "a.b",
    "a/b", "a_b", "R\"(raw)\"", "'", ",", "{}", "[[likely]]", "#include <x>", "_Pragma(\"x\")",
]


def identifiers(path):
    text = path.read_text()
    if path.suffix == ".inc" or "compiler" in path.parts:
        text = "\n".join(re.findall(r'"((?:[^"\\\n]|\\.)*)"', text))
    else:
        text = re.sub(r"//.*", "", text)
    return set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", text))


# ---- protobuf, as onnx.proto numbers its fields


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def message(field, content):
    if isinstance(content, str):
        content = content.encode()
    return varint(field << 3 | 2) + varint(len(content)) + content


def tensor(name, sizes, kind, data):
    return message(5, b"".join(number(1, size) for size in sizes) + number(2, kind) +
                   message(8, name) + message(9, data))


def value(field, name, sizes):
    shape = b"".join(message(1, number(1, size)) for size in sizes)
    return message(field, message(1, name) + message(2, message(1, number(1, 1) + message(2, shape))))


def node(kind, name, inputs, outputs, attributes=()):
    text = b"".join(message(1, i) for i in inputs) + b"".join(message(2, o) for o in outputs)
    for key, integer in attributes:
        text += message(5, message(1, key) + number(3, integer) + number(20, 2))
    return message(1, text + message(3, name) + message(4, kind))


FLOAT, BOOL, SAMPLES = 1, 9, 4
KINDS = ["Tanh", "Softmax", "Where", "Exp", "ReduceMax", "Sin", "Erf", "Log", "ReduceMean"]


def branch(i, size, weight, source, name):
    """A function of an input times a weight, and the mean of that."""
    kind, product = KINDS[i % len(KINDS)], f"{i} product"
    graph = tensor(weight, [size], FLOAT, struct.pack("<f", 0.5 + i / 1000) * size)
    graph += node("Mul", "", [source, weight], [product])
    inputs, attributes = [product], []
    if kind == "Where":
        graph += tensor(f"{i} mask", [size], BOOL, bytes(j % 3 != 0 for j in range(size)))
        inputs = [f"{i} mask", product, source]
    if kind.startswith("Reduce"):
        attributes = [("keepdims", 1)]
    graph += node(kind, name, inputs, [name], attributes)
    return graph + node("ReduceMean", "", [name], [f"{i} mean"], [("keepdims", 0)])


def model(weights, sources, nodes):
    """With one source for all, or one of its own size for each: then each is a kernel of its own."""
    sizes = [i + 2 if len(sources) > 1 else 5 for i in range(len(nodes))]
    graph = b"".join(value(11, name, [SAMPLES, sizes[i]]) for i, name in enumerate(sources))
    for i, names in enumerate(zip(weights, sources * (len(nodes) // len(sources)), nodes)):
        graph += branch(i, sizes[i], *names)
    graph += node("Sum", "", [f"{i} mean" for i in range(len(nodes))], ["the loss"])
    graph += message(2, "hostile") + value(12, "the loss", [])
    return number(1, 8) + message(7, graph) + message(8, message(1, "") + number(2, 17))


def array(sizes, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(sizes)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
            struct.pack(f"<{len(values)}f", *values))


def main():
    folder, count, share = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    found = set().union(*(identifiers(pathlib.Path(file)) for file in sys.argv[4:]))
    names = HOSTILE + sorted(found - set(HOSTILE))[::share]
    names += [f"filler {i}" for i in range(-len(names) % (3 * count))]
    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    for first in range(0, len(names), 3 * count):
        parts = [names[first + i * count : first + (i + 1) * count] for i in range(3)]
        for turn in range(3):
            (folder / f"{written}.onnx").write_bytes(model(*parts[turn:], *parts[:turn]))
            written += 1
    half = len(HOSTILE) // 2
    (folder / "run.onnx").write_bytes(model(HOSTILE[:half], ["x"], HOSTILE[half : 2 * half]))
    (folder / "x.npy").write_bytes(array([2 * SAMPLES, 5], [1 + i / 10 for i in range(10 * SAMPLES)]))
    print(f"{len(names)} names, {written} models")


main()
