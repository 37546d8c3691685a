# SPDX-License-Identifier: Apache-2.0
"""What a graph of --write-gradient-graph is fed with, and its results by the names that trainers use.

    gradient_graph.py feed GRAPH.onnx FOLDER NAME=FILE.npy|NUMBER...   words for trainc-run; the first samples of a file
    gradient_graph.py split RESULTS.safetensors CHECKPOINT.safetensors
        gradients.got.safetensors, and updates.got.safetensors with those of the checkpoint in updates.safetensors
    gradient_graph.py operators GRAPH.onnx                             each operator with its number of nodes
"""
import collections
import json
import math
import pathlib
import struct
import sys

TYPES = {1: "<f4", 6: "<i4", 7: "<i8", 11: "<f8"}
LETTERS = {"<f4": "f", "<f8": "d", "<i4": "i", "<i8": "q"}


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    """Of a message: number and contents."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size, at = ({5: 4, 1: 8}[key & 7], at) if key & 7 != 2 else varint(data, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def all_of(data, *path):
    for number, value in fields(data):
        if number == path[0]:
            if len(path) == 1:
                yield value
            else:
                yield from all_of(value, *path[1:])


def npy(path, kind, shape, values):
    sizes = "(" + "".join("%d, " % size for size in shape) + ")"
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, sizes)
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values)


def samples(path):
    """The numbers of an array."""
    data = pathlib.Path(path).read_bytes()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    kind = data[10:start].decode().split("'descr': '")[1][:3]
    return [number for number, in struct.iter_unpack("<" + LETTERS[kind], data[start:])]


def feed(graph, folder, given):
    folder = pathlib.Path(folder)
    folder.mkdir(exist_ok=True)
    model = pathlib.Path(graph).read_bytes()
    known = {name.decode() for name in all_of(model, 7, 5, 8)}
    for number, entry in enumerate(all_of(model, 7, 11)):
        name = next(all_of(entry, 1)).decode()
        if name in known and name not in given:
            continue
        kind = TYPES[next(all_of(entry, 2, 1, 1))]
        shape = list(all_of(entry, 2, 1, 2, 1, 1))
        count = math.prod(shape)
        value = given.pop(name, "0" if name.startswith("optimizer/") else None)
        if value is None:
            sys.exit("nothing is given for " + name)
        convert = int if kind[1] == "i" else float
        numbers = samples(value)[:count] if value.endswith(".npy") else [convert(value)] * count
        values = struct.pack("<%d%s" % (count, LETTERS[kind]), *numbers)
        file = folder / ("%d.npy" % number)
        npy(file, kind, shape, values)
        print("--input=%s=%s" % (name, file))
    if given:
        sys.exit("the graph has no inputs %s" % sorted(given))


def read(path):
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            yield name, (entry["dtype"], entry["shape"], data[8 + size + begin:8 + size + end])


def write(path, tensors):
    header, content = {}, b""
    for name, (kind, shape, values) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(content), len(content) + len(values)]}
        content += values
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + content)


def split(results, checkpoint):
    results, checkpoint = dict(read(results)), dict(read(checkpoint))
    for prefix, path in ("gradient of ", "gradients.got.safetensors"), ("updated ", "updates.got.safetensors"):
        chosen = {name[len(prefix):]: value for name, value in results.items() if name.startswith(prefix)}
        write(path, chosen)
    missing = sorted(name for name in checkpoint if name.startswith("optimizer/") and name not in chosen)
    if missing or not chosen:
        sys.exit("the graph does not update %s" % missing)
    write("updates.safetensors", {name: checkpoint[name] for name in chosen})


if sys.argv[1] == "feed":
    feed(sys.argv[2], sys.argv[3], dict(word.split("=", 1) for word in sys.argv[4:]))
elif sys.argv[1] == "split":
    split(*sys.argv[2:])
else:
    counts = collections.Counter(name.decode() for name in all_of(pathlib.Path(sys.argv[2]).read_bytes(), 7, 1, 4))
    for name, count in sorted(counts.items()):
        print(name, count)
