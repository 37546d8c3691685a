#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws pictures of shapes: a disc, a square, a triangle or a cross of any colour, size and place on noise. Standard library only.

    shapes.py FOLDER COUNT [SEED]     images.npy [COUNT, 3, 32, 32], classes.npy [COUNT], masks.npy [COUNT, 32, 32]

Masks are 0 outside of the shape, else 1 more than its class.
"""
import array
import random
import sys

SIDE, CHANNELS = 32, 3


def inside(kind, x, y, size):
    if kind == 0:
        return x * x + y * y <= size * size
    if kind == 1:
        return abs(x) <= size * 0.85 and abs(y) <= size * 0.85
    if kind == 2:
        return -size <= y <= size * 0.8 and abs(x) <= (y + size) * 0.6
    return (abs(x) <= size * 0.35 and abs(y) <= size) or (abs(y) <= size * 0.35 and abs(x) <= size)


def draw(kind, numbers):
    """Three planes of numbers about 0, and the shape's place."""
    size = numbers.uniform(5, 11)
    left, top = numbers.uniform(size, SIDE - size), numbers.uniform(size, SIDE - size)
    ground = [numbers.uniform(-1, 1) for _ in range(CHANNELS)]
    colour = [level + numbers.uniform(1, 2) for level in ground]
    places = [inside(kind, x - left, y - top, size) for y in range(SIDE) for x in range(SIDE)]
    planes = [numbers.gauss(colour[c] if place else ground[c], 0.1) for c in range(CHANNELS) for place in places]
    return planes, places


def save(path, values, kind, shape):
    header = "{'descr': '<%s', 'fortran_order': False, 'shape': (%s), }" % (kind, "".join("%d, " % size for size in shape))
    header = header.ljust(64 * (len(header) // 64 + 1) + 53) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode())
        values.tofile(file)


def main(folder, count, seed):
    numbers = random.Random(seed)
    images, classes, masks = array.array("f"), array.array("q"), array.array("q")
    for _ in range(count):
        kind = numbers.randrange(4)
        planes, places = draw(kind, numbers)
        images.extend(planes)
        classes.append(kind)
        masks.extend((kind + 1) * place for place in places)
    save(folder + "/images.npy", images, "f4", (count, CHANNELS, SIDE, SIDE))
    save(folder + "/classes.npy", classes, "i8", (count,))
    save(folder + "/masks.npy", masks, "i8", (count, SIDE, SIDE))


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
