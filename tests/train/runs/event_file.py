# SPDX-License-Identifier: Apache-2.0
#
# Reads event files of a run without a package: checksums, steps and values.
#
#   event_file.py FOLDER FIRST LAST [NAME=COUNT...]
#
# Ends with 1 where a record is damaged, or where a scalar of training has not each of the steps FIRST to LAST once.
# COUNT is how many values the tag of that name must have.
import collections
import pathlib
import struct
import sys

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def masked(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def records(data):
    at = 0
    while at < len(data):
        length, of_length = struct.unpack_from("<QI", data, at)
        assert of_length == masked(data[at:at + 8]), f"the length at {at} is damaged"
        event = data[at + 12:at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(event), f"the record at {at} is damaged"
        yield event
        at += 16 + length


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(message):
    """Number and value of each field; what has several bytes is bytes."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        if key & 7 == 0:
            value, at = varint(message, at)
        else:
            size, at = {1: (8, at), 5: (4, at)}.get(key & 7) or varint(message, at)
            value, at = message[at:at + size], at + size
        yield key >> 3, value


def histogram(message):
    """Least and largest number, how many, their sum, that of squares, limits of buckets, counts."""
    found = dict(fields(message))
    numbers = [struct.unpack("<d", found[field])[0] for field in range(1, 6)]
    return numbers + [struct.unpack(f"<{len(found[field]) // 8}d", found[field]) for field in (6, 7)]


def values(folder):
    """Step, tag and number, text or histogram of all values."""
    for path in sorted(pathlib.Path(folder).iterdir()):
        for event in records(path.read_bytes()):
            found = dict(fields(event))
            for _, value in fields(found.get(5, b"")):
                value = dict(fields(value))
                number = struct.unpack("<f", value[2])[0] if 2 in value else None
                text = dict(fields(value[8])).get(8, b"").decode() if 8 in value else None
                shown = histogram(value[5]) if 5 in value else number if text is None else text
                yield found.get(2, 0), value[1].decode(), shown


def main():
    folder, first, last, *counts = sys.argv[1:]
    found = collections.defaultdict(list)
    for step, tag, value in values(folder):
        found[tag].append((step, value))
    wanted = list(range(int(first), int(last) + 1))
    for tag in ["train/loss", "train/gradient_norm", "train/learning_rate", "train/skipped_steps", "speed/milliseconds",
                "speed/samples_per_second", "memory/resident_bytes"]:
        got = [step for step, _ in found[tag]]
        assert got == wanted, f"{tag} has the steps {got}"
    assert all(value > 1 << 20 for _, value in found["memory/resident_bytes"]), found["memory/resident_bytes"]
    assert "| --learning-rate | `" in found["configuration"][0][1], found["configuration"]
    for tag, places in found.items():
        steps_of = [step for step, _ in places]
        assert len(steps_of) == len(set(steps_of)), f"{tag} has a step twice: {steps_of}"
    for count in counts:
        tag, number = count.split("=")
        assert len(found[tag]) == int(number), f"{tag}: {found[tag]}"


if __name__ == "__main__":
    main()
