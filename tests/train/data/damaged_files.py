# SPDX-License-Identifier: Apache-2.0
#
# Files that the tools are given by mistake or after an accident, for damaged_files.test.
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
import onnx_file  # noqa: E402


def write(name, data):
    with open(name, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def tensors(name, header, data=b"\0" * 16):
    header = header if isinstance(header, bytes) else header.encode()
    write(name, struct.pack("<Q", len(header)) + header + data)


def matrix(shape="[2,2]", offsets="[0,16]", dtype='"F32"'):
    return '{"dtype":%s,"shape":%s,"data_offsets":%s}' % (dtype, shape, offsets)


DEEP = b"[" * 1000000 + b"]" * 1000000

tensors("good.safetensors", '{"w":%s}' % matrix())
os.mkdir("tensors")
for name, header in {
    "deep": b'{"w":' + DEEP + b"}", "open": b"[" * 1000000, "list": "[1]", "text": '"x"', "nothing": "null", "number": '{"w":5}',
    "not_utf8": b'{"\xff":' + matrix().encode() + b"}", "twice": '{"w":%s,"w":%s}' % (matrix(), matrix()),
    "outside": '{"w":%s}' % matrix(offsets="[8,24]"), "backwards": '{"w":%s}' % matrix(offsets="[16,0]"),
    "negative_offset": '{"w":%s}' % matrix(offsets="[-1,15]"), "fraction": '{"w":%s}' % matrix(offsets="[0.5,16.5]"),
    "huge_offset": '{"w":%s}' % matrix(offsets="[0,1e999]"), "short": '{"w":%s}' % matrix(offsets="[0,12]"),
    "larger_than_its_bytes": '{"w":%s}' % matrix(shape="[2000000,2000000]"), "negative": '{"w":%s}' % matrix(shape="[-2,-2]"),
    "overflow": '{"w":%s}' % matrix(shape="[4611686018427387904,4]"), "one_offset": '{"w":%s}' % matrix(offsets="[0]"),
    "no_type": '{"w":{"shape":[2,2],"data_offsets":[0,16]}}', "unknown_type": '{"w":%s}' % matrix(dtype='"F33"'),
    "wrong_type": '{"w":%s}' % matrix(dtype="7"),
}.items():
    tensors("tensors/%s.safetensors" % name, header)
write("tensors/length.safetensors", b"\xff" * 8 + b"{}")
write("tensors/empty.safetensors", b"")

write("good.jsonl", '{"step":1,"loss":1.5,"gradient_norm":2}\n')
os.mkdir("logs")
for name, line in {
    "deep": b'{"step":1,"loss":' + DEEP + b"}", "list": b"[1,2]", "text": b'"x"', "huge": b'{"step":1,"loss":1e999}',
    "not_utf8": b'{"step":1,"loss":"\xff"}', "zeros": b"\0\0\0\0", "cut": b'{"step":1,"lo', "none": b"",
}.items():
    write("logs/%s.jsonl" % name, line)

os.mkdir("fixtures")
for name, text in {
    "deep": DEEP, "list": b"[1]", "cut": b'{"runs":', "text": b'{"runs":{"adamw":{"f64":{"losses":"x"}}}}',
    "texts": b'{"runs":{"adamw":{"f64":{"losses":["x"]}}}}', "number": b'{"runs":{"adamw":{"f64":3}}}',
    "no_file": b'{"gradients":5}', "no_parameters": b'{"gradients":"../good.safetensors"}',
    "device": b'{"gradients":"/dev/zero","parameters":[]}', "loop": b'{"gradients":"loop.json","parameters":[]}',
}.items():
    write("fixtures/%s.json" % name, text)
tensors("fixtures/vector.tensors", '{"w":%s}' % matrix(shape="[4]"))
for name, (file, what) in {
    "vector": ("vector.tensors", '"transposed":true'), "rows_of_vector": ("vector.tensors", '"rows":2'),
    "negative_rows": ("../good.safetensors", '"rows":-1'), "more_rows": ("../good.safetensors", '"rows":99999999999999'),
    "text_rows": ("../good.safetensors", '"rows":"x"'),
}.items():
    write("fixtures/%s.json" % name, '{"gradients":"%s","parameters":[{"torch":"w","onnx":"w",%s}]}' % (file, what))

os.mkdir("models")
for name, sizes, note in (("negative", [-5, 3], ""), ("zero_by_negative", [0, -3], ""), ("overflow", [1 << 40, 1 << 40], ""),
                          ("tie_to_nothing", [2, 2], "transpose of nothing"), ("tie_of_three", [2, 2, 2], "transpose of w")):
    empty = b"".join(onnx_file.number(1, size) for size in sizes) + onnx_file.number(2, onnx_file.FLOAT)
    empty += onnx_file.message(8, "w") + (onnx_file.message(12, note) if note else b"")
    write("models/%s.onnx" % name, onnx_file.model(onnx_file.graph([], initializers=[empty])))
write("models/text.onnx", "no model")
write("models/empty.onnx", b"")
write("models/cut.onnx", b"\x3a\xff\xff\xff\x7f")

def plan(*tensor):  # its offset, bytes, first and last step
    members = b'"tensor": "a", "arena": "activations", "offset": %s, "bytes": %s, "first_step": %s, "last_step": %s' % tensor
    entry = (b'{"entry": "f", "flops": 0, "bytes": 0, "least_bytes": 0, "kernels": [], "steps": [], "tensors": [{%s, '
             b'"type": "f32", "shape": [], "argument": true, "at_peak": true, "used_by": []}]}' % members)
    program = b", ".join(b'"%s": ""' % name for name in (b"model", b"fingerprint", b"graph", b"objective", b"optimizer", b"precision"))
    return (b'{"version": 2, "program": {%s}, "memory": {"arenas": [], "of_ranks": []}, "entries": [%s], "nodes": [], '
            b'"parameters": [], "parameter_table": []}' % (program, entry))
huge = b"9223372036854775807"
for name, text in {
    "deep": DEEP, "list": b"[1]", "cut": plan(b"0", b"1", b"0", b"0")[:-9], "empty": b"", "bytes": bytes(range(256)) * 100,
    "huge": plan(huge, huge, b"0", b"0"), "huger": plan(b"99999999999999999999", b"1", b"0", b"0"), "text": plan(b'"b"', b"1", b"0", b"0"),
    "negative": plan(b"0", b"10", b"-5", b"0"), "never": plan(b"0", b"10", b"0", b"7"), "version": b'{"version": 1}',
}.items():
    os.makedirs("plans/%s/plan" % name)
    write("plans/%s/plan/plan.json" % name, text)
os.makedirs("whole/plan")
write("whole/plan/plan.json", plan(b"0", b"10", b"0", b"0"))

os.mkdir("vocabularies")
for name, text in {
    "deep": DEEP, "deep_id": b'{"a":' + DEEP + b"}", "list": b"[1]", "huge": b'{"a":1e999}', "large": b'{"a":4294967296}',
    "negative": b'{"a":-1}', "fraction": b'{"a":0.5}', "text": b'{"a":"b"}', "not_utf8": b'{"\xff":1}', "cut": b'{"a":', "empty": b"",
}.items():
    write("vocabularies/%s.json" % name, text)
write("merges.txt", "#version: 0.2\n")
write("book.txt", "a book")
os.mkdir("manifests")
for name, text in {"deep": DEEP, "list": b"[1]", "huge": b'{"bytes":1e999}', "not_utf8": b'{"\xff":1}', "cut": b'{"a":', "empty": b"", "plain": b"{}"}.items():
    write("manifests/%s.bin" % name, b"\0" * 64)
    write("manifests/%s.bin.json" % name, text)
