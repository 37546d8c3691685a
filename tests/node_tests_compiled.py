#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the operator tests of the ONNX suite (package libonnx-testdata) through compiled programs:
`trainc --forward-only` and `predict`, outputs compared within the suite's own tolerances.

    tests/node_tests_compiled.py --trainc build/dev/bin/trainc              # all of them
    tests/node_tests_compiled.py --trainc build/dev/bin/trainc --sample 60  # a fixed choice; --seed 7: another
    tests/node_tests_compiled.py --trainc build/dev/bin/trainc relu add     # these

Old models are taken as of operator set 6, as in the interpreter's run; uint64 is int64 to programs. ONNX passes
everything as an input, but sizes and axes must be known when a model is compiled: where a model or its data is refused, trainc is asked again with the integer inputs written into the model as
constants, then with all of them. What passed is counted by what had to be known, what is refused still by the
message of the last try; other ends are failures.
"""
import argparse
import concurrent.futures
import hashlib
import json
import math
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile

import onnx_file

SUITE = "/usr/share/libonnx-testdata/data"
FOLDERS = ["node", "pytorch-converted", "pytorch-operator", "simple"]
RELATIVE, ABSOLUTE = 1e-3, 1e-7  # of the suite's own runner
UNSUPPORTED = {3, 4}  # exit codes of trainc: the model cannot be read, or is not supported

# Tests whose outputs are what NumPy's generator drew.
RANDOM = re.compile("bernoulli|training_dropout(?!_zero_ratio)")
OF_ANOTHER_EPSILON = "adam_multiple"  # its numbers are not those of its node (docs/node_tests.md)

AS_IT_IS = "as they are"
BAD_DATA = 3  # exit code of predict: data that programs do not take, such as negative indices

# ONNX element type: NumPy's name, struct's letter, safetensors' name
TYPES = {1: ("<f4", "f", "F32"), 2: ("|u1", "B", "U8"), 3: ("|i1", "b", "I8"), 4: ("<u2", "H", "U16"),
         5: ("<i2", "h", "I16"), 6: ("<i4", "i", "I32"), 7: ("<i8", "q", "I64"), 9: ("|b1", "?", "BOOL"),
         11: ("<f8", "d", "F64"), 12: ("<u4", "I", "U32"), 13: ("<i8", "q", "I64")}

OLDEST = 6  # operator set


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, wire type, value) of a protobuf message; value is bytes or an integer."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if wire == 2 else ((8 if wire == 1 else 4), at)
            value, at = data[at:at + size], at + size
        yield number, wire, value


def field(number, value):
    return onnx_file.number(number, value) if isinstance(value, int) else onnx_file.message(number, value)


def signed(value):
    return value - (1 << 64) if value >> 63 else value


def scalars(wire, value, letter):
    """Packed or single numbers of a repeated field."""
    if wire == 0:
        return [signed(value)]
    if wire == 2 and letter == "varint":
        result, at = [], 0
        while at < len(value):
            number, at = varint(value, at)
            result.append(signed(number))
        return result
    size = struct.calcsize(letter)
    return list(struct.unpack("<%d%s" % (len(value) // size, letter), value))


class Tensor:
    """A TensorProto of a .pb file."""

    def __init__(self, data):
        self.proto, self.shape, self.type, raw, values = data, [], 0, None, []
        for number, wire, value in fields(data):
            if number == 1:
                self.shape += scalars(wire, value, "varint")
            elif number == 2:
                self.type = value
            elif number == 9:
                raw = value
            elif number in (4, 10):
                values += scalars(wire, value, "f" if number == 4 else "d")
            elif number in (5, 7, 11):
                values += scalars(wire, value, "varint")
        self.known = self.type in TYPES
        if self.known:
            letter = TYPES[self.type][1]
            count = math.prod(self.shape)
            self.values = list(struct.unpack("<%d%s" % (count, letter), raw)) if raw is not None else values
            self.known = len(self.values) == count

    def write(self, path):
        name, letter, _ = TYPES[self.type]
        shape = self.shape or [1]
        header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s,), }" % (name, ", ".join(map(str, shape)))
        header += " " * (63 - (10 + len(header)) % 64) + "\n"
        with open(path, "wb") as file:
            file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
            file.write(struct.pack("<%d%s" % (len(self.values), letter), *self.values))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def names_of(graph, number, name=1):
    """Of the graph's values of a field, each by its own field `name`."""
    return [dict((n, v) for n, _, v in fields(value))[name].decode() for n, _, value in fields(graph) if n == number]


def dimensions_of(value_info, shape):
    """NAME=SIZE of the symbolic dimensions of an input that has this shape."""
    at = value_info
    for number in (2, 1, 2):  # type, tensor type, shape
        at = next((v for n, _, v in fields(at) if n == number), b"")
    dimensions = [dict((n, v) for n, _, v in fields(value)) for n, _, value in fields(at) if n == 1]
    return {d[2].decode(): size for d, size in zip(dimensions, shape) if 2 in d}


def element_type_of(value_info):
    at = value_info
    for number in (2, 1):  # type, tensor type
        at = next((v for n, _, v in fields(at) if n == number), b"")
    return next((v for n, _, v in fields(at) if n == 1), 0)


def with_constants(model, known):
    """The model with these inputs (name: TensorProto) as constants."""
    result = b""
    for number, _, value in fields(model):
        if number == 7:
            graph = b""
            for name, proto in known.items():
                graph += field(1, onnx_file.node("Constant", [], [name], {"value": proto}))
            for inner, _, part in fields(value):
                if not (inner == 11 and dict((n, v) for n, _, v in fields(part))[1].decode() in known):
                    graph += field(inner, part)
            value = graph
        result += field(number, value)
    return result


def brought_up(model):
    """The model, of OLDEST at least."""
    result = b""
    for number, _, value in fields(model):
        if number == 8:
            entry = dict((n, v) for n, _, v in fields(value))
            if not entry.get(1):
                value = onnx_file.opset(max(entry.get(2, 1), OLDEST))
        result += field(number, value)
    return result


def outputs_of(path):
    data = read(path)
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"], data[8 + size:][slice(*entry["data_offsets"])])
            for name, entry in header.items()}


def difference(found, expected):
    """Empty where an output is as expected."""
    kind, shape, raw = found
    _, letter, name = TYPES[expected.type]
    if kind != name or shape != expected.shape:
        return "%s %s, expected %s %s" % (kind, shape, name, expected.shape)
    values = struct.unpack("<%d%s" % (len(raw) // struct.calcsize(letter), letter), raw)
    for i, (value, wanted) in enumerate(zip(values, expected.values)):
        if letter in "fd" and math.isnan(wanted) and math.isnan(value):
            continue
        close = value == wanted
        if letter in "fd" and not close and math.isfinite(wanted):
            close = abs(value - wanted) <= ABSOLUTE + RELATIVE * abs(wanted)
        if not close:
            return "[%d] is %s, expected %s" % (i, value, wanted)
    return ""


class Runner:
    def __init__(self, trainc, scratch):
        self.trainc, self.scratch = os.path.abspath(trainc), scratch

    def compile(self, folder, model, known, dimensions):
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(with_constants(model, known) if known else model)
        command = [self.trainc, path, "--forward-only", "--march", "x86-64-v3", "--quiet", "-o",
                   os.path.join(folder, "out")]
        for name, size in dimensions.items():
            command += ["--dim", "%s=%d" % (name, size)]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)

    def test(self, name):
        """(verdict, text): passed, and with which constants; refused, failed, and why."""
        if RANDOM.match(name):
            return "refused", "its numbers are those of NumPy's generator"
        if name == OF_ANOTHER_EPSILON:
            return "refused", "its numbers are those of another epsilon"
        of, _, test = name.rpartition("/")
        source = os.path.join(SUITE, of or FOLDERS[0], "test_" + test)
        model = read(os.path.join(source, "model.onnx"))
        graph = next(value for number, _, value in fields(model) if number == 7)
        sets = os.path.join(source, "test_data_set_0")
        inputs, outputs = {}, {}
        for values, number, prefix in ((inputs, 11, "input"), (outputs, 12, "output")):
            weights = names_of(graph, 5, name=8) # which old models have among the inputs, too, without data
            for i, value in enumerate(name for name in names_of(graph, number) if name not in weights):
                path = os.path.join(sets, "%s_%d.pb" % (prefix, i))
                if not os.path.exists(path):
                    return "refused", "a value is absent or is not a tensor"
                try:
                    values[value] = Tensor(read(path))
                except (struct.error, IndexError, TypeError):
                    return "refused", "a value is not a tensor"
        model = brought_up(model)
        if not all(value.known for value in outputs.values()):
            return "refused", "an output is of a type that programs do not have"
        folder = os.path.join(self.scratch, name)
        os.makedirs(folder)
        infos = {dict((n, v) for n, _, v in fields(value))[1].decode(): value
                 for number, _, value in fields(graph) if number == 11}
        if any(element_type_of(infos[name]) != value.type for name, value in inputs.items()):
            return "refused", "a value is bfloat16, which the suite keeps as uint16"
        dimensions = {name: dimensions_of(infos[name], value.shape) for name, value in inputs.items()}
        try:
            return self.run(folder, model, inputs, outputs, dimensions)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def run(self, folder, model, inputs, outputs, dimensions):
        integers = {n: t.proto for n, t in inputs.items() if t.type not in (1, 11)}
        everything = {n: t.proto for n, t in inputs.items()}
        tried = []
        for known, how in ({}, AS_IT_IS), (integers, "with known integers"), (everything, "with everything known"):
            if known in tried:
                continue
            tried.append(known)
            if not all(t.known or n in known for n, t in inputs.items()):
                refusal = "an input is of a type that programs do not have"
                continue
            data = {n: t for n, t in inputs.items() if n not in known}
            if any(0 in t.shape for t in data.values()):
                refusal = "an input has no elements"
                continue
            compiled = self.compile(folder, model, known, {k: v for n in data for k, v in dimensions[n].items()})
            if compiled.returncode == 0:
                verdict, text = self.predict(folder, data, outputs)
                if verdict != "refused":
                    return verdict, text or how
                refusal = text
                continue
            if compiled.returncode not in UNSUPPORTED:
                return "failed", "trainc ends with %d: %s" % (compiled.returncode, compiled.stdout.strip())
            refusal = compiled.stdout.strip().split("\n")[0].split("model.onnx: ")[-1].split("): ")[-1]
        return "refused", refusal

    def predict(self, folder, inputs, outputs):
        command = [os.path.join(folder, "out", "trainer"), "predict", "--threads", "1", "--checkpoint", "initial",
                   "-o", os.path.join(folder, "outputs.safetensors")]
        for i, (name, value) in enumerate(inputs.items()):
            path = os.path.join(folder, "%d.npy" % i)
            value.write(path)
            command += ["--data", "%s=%s" % (name, path)]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        if done.returncode == BAD_DATA:
            return "refused", done.stdout.strip().split(": ", 1)[-1]
        if done.returncode:
            return "failed", "predict ends with %d: %s" % (done.returncode, done.stdout.strip())
        found = outputs_of(command[command.index("-o") + 1])
        for name, expected in outputs.items():
            wrong = difference(found[name], expected) if name in found else "is missing"
            if wrong:
                return "failed", "output '%s' %s" % (name, wrong)
        return "passed", ""


def every_test():
    """The names; of others than single operators with their folder."""
    return [("" if of == FOLDERS[0] else of + "/") + name[5:] for of in FOLDERS for name in sorted(os.listdir(os.path.join(SUITE, of)))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainc", required=True)
    parser.add_argument("--sample", type=int, help="stop when so many tests have run")
    parser.add_argument("--seed", default="", help="of the choice")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    if not os.path.isdir(SUITE):
        sys.exit("%s is not there; tools/setup.sh installs it" % SUITE)
    names = options.names or every_test()
    if options.sample: # a choice that stays the same when tests are added
        names.sort(key=lambda name: hashlib.sha256((options.seed + name).encode()).digest())
    passed, failed, refused = {AS_IT_IS: []}, [], {}
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        runner = Runner(options.trainc, scratch)
        step = options.jobs if options.sample else len(names)
        for begin in range(0, len(names), max(1, step)):
            chosen = names[begin:begin + step]
            for name, (verdict, text) in zip(chosen, pool.map(runner.test, chosen)):
                if verdict == "passed":
                    passed.setdefault(text, []).append(name)
                elif verdict == "failed":
                    failed.append(name)
                    print("FAILED: %s: %s" % (name, text), flush=True)
                else:
                    refused.setdefault(text, []).append(name)
            if options.sample and sum(map(len, passed.values())) + len(failed) >= options.sample:
                break
    for reason, tests in sorted(refused.items(), key=lambda entry: -len(entry[1])):
        if not options.sample:
            print("%4d  %s: %s" % (len(tests), reason, " ".join(tests)))
    print("passed: " + ", ".join("%d %s" % (len(tests), how) for how, tests in passed.items()))
    print("%d passed, %d failed, %d not compiled" % tuple(sum(map(len, group)) for group in (passed.values(), [failed], refused.values())))
    return 1 if failed or not passed[AS_IT_IS] else 0


sys.exit(main())
