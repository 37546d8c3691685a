# SPDX-License-Identifier: Apache-2.0
#
# Models whose initializers, inputs and nodes bear names that emitted code must keep apart from its
# own: every identifier of the files given (of .cpp files of compiler/emit those in string
# literals), C++ keywords, the macros that the compiler knows of, and names that end comments,
# literals or lines. Each name has each of the three parts in turn.
#
#   hostile_names.py FOLDER NAMES_PER_PART SHARE FEWEST FILE...
#
# writes FOLDER/0.onnx, FOLDER/1.onnx, ...; of the identifiers every SHARE-th. Where these are fewer than FEWEST
# names, they come again as parts of longer ones that end literals and comments or differ from each other only in
# what no identifier may hold. FOLDER/run.onnx has weights and nodes with the worst names, and FOLDER/x.npy what to
# train it on. Standard library only.
import itertools
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from onnx_file import BOOL, FLOAT, graph, model, node, npy, tensor, value

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


SAMPLES = 4
KINDS = ["Tanh", "Softmax", "Where", "Exp", "ReduceMax", "Sin", "Erf", "Log", "ReduceMean"]
LONGER = ["{}_1", "d_{}", "{}.weight", "{}/weight", "{}-weight", "*/ {} /*", "{}\"", "\n{}", "{}??/", "\\{}", "{}\u00fc",
          "{} ", "kernels::{}", "#define {}", "{}(", "::{}", "{0}.{0}", "{0}_{0}", "{};", "%{}"]


def branch(i, size, weight, source, name):
    """A function of an input times a weight, and the mean of that: its nodes and initializers."""
    kind, product = KINDS[i % len(KINDS)], f"{i} product"
    initializers = [tensor(weight, [size], FLOAT, [0.5 + i / 1000] * size)]
    nodes = [node("Mul", [source, weight], [product])]
    inputs, attributes = [product], {}
    if kind == "Where":
        initializers.append(tensor(f"{i} mask", [size], BOOL, bytes(j % 3 != 0 for j in range(size))))
        inputs = [f"{i} mask", product, source]
    if kind.startswith("Reduce"):
        attributes = {"keepdims": 1}
    nodes.append(node(kind, inputs, [name], attributes, name))
    return nodes + [node("ReduceMean", [name], [f"{i} mean"], {"keepdims": 0})], initializers


def network(weights, sources, names):
    """With one source for all, or one of its own size for each: then each is a kernel of its own."""
    sizes = [i + 2 if len(sources) > 1 else 5 for i in range(len(names))]
    inputs = [value(name, [SAMPLES, sizes[i]]) for i, name in enumerate(sources)]
    nodes, initializers = [], []
    for i, parts in enumerate(zip(weights, sources * (len(names) // len(sources)), names)):
        more_nodes, more_initializers = branch(i, sizes[i], *parts)
        nodes += more_nodes
        initializers += more_initializers
    nodes.append(node("Sum", [f"{i} mean" for i in range(len(names))], ["the loss"]))
    return model(graph(nodes, inputs, [value("the loss", [])], initializers, "hostile"))


def main():
    folder, count, share, fewest = pathlib.Path(sys.argv[1]), *map(int, sys.argv[2:5])
    found = set().union(*(identifiers(pathlib.Path(file)) for file in sys.argv[5:]))
    names = HOSTILE + sorted(found - set(HOSTILE))[::share]
    longer = (form.format(name) for form, name in itertools.product(LONGER, names[:] if len(names) < fewest else []))
    taken = set(names)
    for name in longer:
        if len(names) >= fewest:
            break
        if name not in taken:
            taken.add(name)
            names.append(name)
    names += [f"filler {i}" for i in range(-len(names) % (3 * count))]
    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    for first in range(0, len(names), 3 * count):
        parts = [names[first + i * count : first + (i + 1) * count] for i in range(3)]
        for turn in range(3):
            (folder / f"{written}.onnx").write_bytes(network(*parts[turn:], *parts[:turn]))
            written += 1
    half = len(HOSTILE) // 2
    (folder / "run.onnx").write_bytes(network(HOSTILE[:half], ["x"], HOSTILE[half : 2 * half]))
    (folder / "x.npy").write_bytes(npy([2 * SAMPLES, 5], [1 + i / 10 for i in range(10 * SAMPLES)]))
    print(f"{len(names)} names, {written} models")


main()
