# SPDX-License-Identifier: Apache-2.0
#
# Writes ONNX files field by field, legal ones and others: protobuf's wire format with the numbers of
# onnx.proto. Everything returns the bytes of its message, without the field that it goes into.
# Standard library only.
import struct

FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE = range(1, 12)
LETTERS = {FLOAT: "f", UINT8: "B", INT8: "b", UINT16: "H", INT16: "h", INT32: "i", INT64: "q", BOOL: "?", DOUBLE: "d"}
NPY = {FLOAT: "<f4", INT32: "<i4", INT64: "<i8", BOOL: "|b1", DOUBLE: "<f8"}


def varint(value):
    value %= 1 << 64
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


def packed(values, kind=FLOAT):
    return struct.pack(f"<{len(values)}{LETTERS[kind]}", *values)


def tensor(name, sizes, kind=FLOAT, values=None, extra=b""):
    """With `values` None, numbers that differ; else bytes of raw_data, or numbers."""
    if values is None:
        count = 1
        for size in sizes:
            count *= size
        values = [(i * 7 % 5 - 2) / 4 + 0.125 if kind in (FLOAT, DOUBLE) else i % 2 for i in range(count)]
    if not isinstance(values, bytes):
        values = packed(values, kind)
    return b"".join(number(1, size) for size in sizes) + number(2, kind) + message(8, name) + message(9, values) + extra


def tensor_type(kind, sizes):
    """Sizes are numbers, names, or None for what the file does not say."""
    dimensions = b""
    for size in sizes:
        one = b"" if size is None else message(2, size) if isinstance(size, str) else number(1, size)
        dimensions += message(1, one)
    return message(1, number(1, kind) + message(2, dimensions))


def value(name, sizes, kind=FLOAT):
    return message(1, name) + message(2, tensor_type(kind, sizes))


def attribute(name, content):
    """An int, float, str, bytes (a tensor's message), a graph wrapped in a tuple, or a list of the first three."""
    head = message(1, name)
    if isinstance(content, tuple):
        return head + message(6, content[0]) + number(20, 5)
    if isinstance(content, list):
        if content and isinstance(content[0], float):
            return head + b"".join(varint(7 << 3 | 5) + struct.pack("<f", item) for item in content) + number(20, 6)
        if content and isinstance(content[0], str):
            return head + b"".join(message(9, item) for item in content) + number(20, 8)
        return head + b"".join(number(8, item) for item in content) + number(20, 7)
    if isinstance(content, bytes):
        return head + message(5, content) + number(20, 4)
    if isinstance(content, float):
        return head + varint(2 << 3 | 5) + struct.pack("<f", content) + number(20, 1)
    if isinstance(content, str):
        return head + message(4, content) + number(20, 3)
    return head + number(3, content) + number(20, 2)


def node(kind, inputs, outputs, attributes=None, name="", domain="", extra=b""):
    text = b"".join(message(1, i) for i in inputs) + b"".join(message(2, o) for o in outputs)
    text += message(3, name) if name else b""
    text += message(4, kind)
    for key, content in (attributes or {}).items():
        text += message(5, attribute(key, content))
    return text + (message(7, domain) if domain else b"") + extra


def graph(nodes, inputs=(), outputs=(), initializers=(), name="g", extra=b""):
    return (b"".join(message(1, n) for n in nodes) + message(2, name) + b"".join(message(5, t) for t in initializers) +
            b"".join(message(11, v) for v in inputs) + b"".join(message(12, v) for v in outputs) + extra)


def opset(version, domain=""):
    return message(1, domain) + number(2, version)


def model(content, version=17, ir=8, imports=(), extra=b""):
    return (number(1, ir) + message(7, content) + message(8, opset(version)) +
            b"".join(message(8, entry) for entry in imports) + extra)


def function(name, inputs, outputs, nodes, domain="local", attributes=(), version=17, extra=b""):
    return (message(1, name) + b"".join(message(4, i) for i in inputs) + b"".join(message(5, o) for o in outputs) +
            b"".join(message(6, a) for a in attributes) + b"".join(message(7, n) for n in nodes) +
            message(9, opset(version)) + message(10, domain) + extra)


def npy(sizes, values, kind=FLOAT):
    """A NumPy file."""
    header = f"{{'descr': '{NPY[kind]}', 'fortran_order': False, 'shape': {tuple(sizes)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + packed(values, kind)
