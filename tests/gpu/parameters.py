# SPDX-License-Identifier: Apache-2.0
#
# Parameters of GPT-2 without their bytes, for a machine that they do not travel to.
#
#   parameters.py header FILE.safetensors   FILE.header has its names and shapes, no checksums; FILE goes
#   parameters.py fill FILE.safetensors     makes FILE again, with seeded values
#
# As trainc-fill: weights of norms are 1, other vectors 0, all else is normal with deviation 0.02. The values of a
# block repeat: Python alone is slow, and its length, a prime, keeps rows apart.
import array
import json
import pathlib
import random
import struct
import sys

BLOCK = 1_000_003  # values
DEVIATION = 0.02


def header(path):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        tensors = json.loads(file.read(size))
    checksums = [name for name in tensors["__metadata__"] if name.startswith("crc32c:")]
    for name in checksums:
        del tensors["__metadata__"][name]
    text = json.dumps(tensors).encode()
    path.with_suffix(".header").write_bytes(text + b" " * (-len(text) % 8))
    path.unlink()


def values_of(name, shape, block, offset):
    """The bytes of a tensor of f32."""
    count = 1
    for size in shape:
        count *= size
    if len([size for size in shape if size > 1]) < 2:
        return array.array("f", [1.0 if name.endswith("weight") else 0.0]).tobytes() * count
    begin = offset % BLOCK
    repeats = (begin + count) // BLOCK + 1
    return (block * repeats)[4 * begin : 4 * (begin + count)]


def fill(path):
    text = path.with_suffix(".header").read_bytes()
    tensors = {name: entry for name, entry in json.loads(text).items() if name != "__metadata__"}
    generator = random.Random(1)
    block = array.array("f", (generator.gauss(0, DEVIATION) for _ in range(BLOCK))).tobytes()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        begin = file.tell()
        for name, entry in tensors.items():
            assert entry["dtype"] == "F32", (name, entry)
            file.seek(begin + entry["data_offsets"][0])
            file.write(values_of(name, entry["shape"], block, entry["data_offsets"][0] // 4))


if __name__ == "__main__":
    {"header": header, "fill": fill}[sys.argv[1]](pathlib.Path(sys.argv[2]))
