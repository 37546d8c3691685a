# SPDX-License-Identifier: Apache-2.0
#
# The expected results of tests whose numbers no other implementation gave, a second way: from the inputs
# in the test's file, by the formulas of ONNX's operators in plain loops. Differences are printed.
#
#   expected_numbers.py det.onnxtxt | roi_align.onnxtxt | max_unpool.onnxtxt
#
# Determinants are exact: sums over permutations would take long, so rows are eliminated in fractions.
import itertools
import math
import sys
from fractions import Fraction
from pathlib import Path


def numbers(lines, kind):
    """Of the lines `// check.KIND dense<[...]> : type`, as nested lists."""
    head = f"// check.{kind} dense<"
    return [eval(line[len(head):line.index(">")], {}) for line in lines if line.startswith(head)]


def flat(value):
    return [one for part in value for one in flat(part)] if isinstance(value, list) else [value]


def sizes(value):
    return [len(value), *sizes(value[0])] if isinstance(value, list) else []


def determinant(rows):
    rows, result = [[Fraction(x) for x in row] for row in rows], Fraction(1)
    for column in range(len(rows)):
        pivot = next((i for i in range(column, len(rows)) if rows[i][column]), None)
        if pivot is None:
            return Fraction(0)
        if pivot != column:
            rows[column], rows[pivot], result = rows[pivot], rows[column], -result
        result *= rows[column][column]
        for row in rows[column + 1:]:
            factor = row[column] / rows[column][column]
            for i in range(column, len(row)):
                row[i] -= factor * rows[column][i]
    return result


def determinants(value):
    return [determinant(value)] if len(sizes(value)) == 2 else [one for part in value for one in determinants(part)]


def det(inputs):
    return [determinants(value) for value in inputs]


def pool(x, kernel, stride):
    """The largest element of each window and its number in the tensor, the first of equal ones."""
    batch, channels, *space = sizes(x)
    elements, values, places = flat(x), [], []
    points = [(size - kernel) // stride + 1 for size in space]
    for lead in range(batch * channels):
        for point in itertools.product(*map(range, points)):
            window = []
            for tap in itertools.product(range(kernel), repeat=len(space)):
                place = lead
                for size, p, t in zip(space, point, tap):
                    place = place * size + p * stride + t
                window.append(place)
            best = max(window, key=lambda place: elements[place])
            values.append(elements[best])
            places.append(best)
    return values, places


def unpool(values, places, count):
    result = [0.0] * count
    for value, place in zip(values, places): # the last of several
        result[place] = value
    return result


def max_unpool(inputs):
    image, line, few, places, one = inputs
    corners = [5, 7, 13, 15]
    even = [[[row[:4] for row in channel[:4]] for channel in batch] for batch in image]
    # Indices count the smallest tensor, which zeros then make larger after its rows and columns.
    known = unpool(flat(few), corners, 16)
    padded = [known[row * 4 + column] if row < 4 and column < 4 else 0.0 for row in range(5) for column in range(6)]
    return [unpool(*pool(image, 2, 2), 50), unpool(*pool(line, 3, 1), 10), unpool(flat(few), flat(places), 16),
            known, padded, unpool(flat(one), [2], 3),
            unpool(*pool(even, 2, 2), 32)]


def sampled(plane, y, x):
    """The weighted corners around a point (He et al., "Mask R-CNN", 2017); points beyond the image have none."""
    height, width = len(plane), len(plane[0])
    if y < -1 or y > height or x < -1 or x > width:
        return [0.0]

    def around(at, size):
        low = min(int(max(at, 0.0)), size - 1)
        part = max(at, 0.0) - low if low < size - 1 else 0.0
        return (low, 1 - part), (min(low + 1, size - 1), part)

    return [plane[row][column] * a * b for row, a in around(y, height) for column, b in around(x, width)]


def align(x, boxes, images, rows, columns, samples, mode="avg", scale=1.0, half=True):
    result = []
    for box, image in zip(boxes, images):
        left, top, right, bottom = (at * scale - (0.5 if half else 0) for at in box)
        height, width = bottom - top, right - left
        if not half:
            height, width = max(height, 1.0), max(width, 1.0)
        tall, wide = samples or math.ceil(height / rows), samples or math.ceil(width / columns)
        for plane in x[image]:
            for row, column in itertools.product(range(rows), range(columns)):
                points = [sampled(plane, top + (row + (i + 0.5) / tall) * height / rows, left + (column + (j + 0.5) / wide) * width / columns)
                          for i in range(tall) for j in range(wide)]
                if mode == "avg":
                    result.append(math.fsum(map(math.fsum, points)) / max(len(points), 1))
                else: # of the corners, not of their sums: as ONNX's reference implementation has it
                    result.append(max((max(point) for point in points), default=0.0))
    return result


def roi_align(inputs):
    x, quarters, images, point = inputs
    coarse = [[at / 4 for at in box] for box in quarters]
    known, of = [[0.5, 0.25, 6.25, 4.0], [1.0, 1.0, 1.5, 1.25], [2.0, 2.0, 1.0, 1.0]], [0, 1, 1]
    turned = [[channel] for channel in point[0]]
    return [align(x, coarse, images, 2, 3, 2), align(x, coarse, images, 2, 2, 3, "max", 0.5, False), align(x, coarse, images, 1, 1, 1, half=False),
            align(x, known, of, 2, 2, 0), align(x, known, of, 2, 1, 0, "max", half=False), align(x, known, of, 1, 2, 0, "max"),
            align(turned, [[0.0, 0.0, 1.0, 1.0], [-0.5, 0.25, 0.5, 0.75]], [0, 1], 1, 1, 2)]


def main():
    path = Path(sys.argv[1])
    lines = path.read_text().splitlines()
    ours, theirs = {"det": det, "roi_align": roi_align, "max_unpool": max_unpool}[path.stem](numbers(lines, "inputs")), numbers(lines, "results")
    assert len(ours) == len(theirs) > 5, (len(ours), len(theirs))
    for number, (found, expected) in enumerate(zip(ours, theirs)):
        expected = flat(expected)
        assert len(found) == len(expected), (number, len(found), len(expected))
        # Some hundred roundings of numbers as large as the largest.
        bound = 200 * 2.0**-53 * max(map(abs, expected), default=0)
        for place, (a, b) in enumerate(zip(found, expected)):
            if not abs(a - Fraction(b)) <= bound:
                print(f"{path.name}: result {number}, element {place} is {b}, and by the formula {float(a)}")


main()
