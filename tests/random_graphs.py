#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes random valid graphs of nn as cases of trainc-check-gradient, which compares compiled values with the
reference interpreter's and gradients with central differences.

    tests/random_graphs.py --count 2000 --seed 1 --check build/dev/bin/trainc-check-gradient
    tests/random_graphs.py --count 1 --seed 77        # the text of one

Every value carries bounds of its elements, so that no operation leaves its domain and differences stay meaningful.
"""
import argparse
import random
import subprocess
import sys
import tempfile

UNARY = {  # operation: least and greatest operand, bounds of the result
    "neg": (-50, 50, lambda a, b: (-b, -a)),
    "abs": (-50, 50, lambda a, b: (0, max(-a, b))),
    "exp": (-3, 3, lambda a, b: (0.04, 21)),
    "log": (0.05, 50, lambda a, b: (-3, 4)),
    "sqrt": (0.05, 50, lambda a, b: (0.2, 7.1)),
    "tanh": (-5, 5, lambda a, b: (-1, 1)),
    "atan": (-50, 50, lambda a, b: (-1.6, 1.6)),
    "erf": (-5, 5, lambda a, b: (-1, 1)),
    "sin": (-10, 10, lambda a, b: (-1, 1)),
    "cos": (-10, 10, lambda a, b: (-1, 1)),
    "reciprocal": (0.1, 50, lambda a, b: (0.02, 10)),
    "rsqrt": (0.1, 50, lambda a, b: (0.1, 3.2)),
    "sigmoid": (-10, 10, lambda a, b: (4e-5, 1)),
    "relu": (-50, 50, lambda a, b: (0, max(b, 0))),
    "softplus": (-10, 10, lambda a, b: (4e-5, 11)),
    "gelu": (-5, 5, lambda a, b: (-0.2, 5)),
    "gelu_tanh": (-5, 5, lambda a, b: (-0.2, 5)),
}


class Value:
    def __init__(self, name, shape, low, high):
        self.name, self.shape, self.low, self.high = name, list(shape), low, high

    @property
    def type(self):
        return tensor(self.shape)


def tensor(shape, element="f64"):
    return "tensor<%s%s>" % ("".join("%dx" % size for size in shape), element)


def numbers(values):
    return "array<i64%s>" % (": " + ", ".join(map(str, values)) if values else "")


def count(shape):
    result = 1
    for size in shape:
        result *= size
    return result


class Graph:
    def __init__(self, generator, number):
        self.random, self.number = generator, number
        self.lines, self.values = [], []
        shape = [self.random.choice([1, 2, 3, 5]) for _ in range(self.random.randint(1, 3))]
        self.arguments = [Value("%%arg%d" % i, shape, 0.1, 1.1) for i in range(self.random.randint(1, 3))]
        self.values += self.arguments

    def emit(self, operation, operands, shape, low, high, attributes="", element="f64"):
        value = Value("%%v%d" % len(self.lines), shape, low, high)
        types = ", ".join(operand if isinstance(operand, str) else operand.type for _, operand in operands)
        self.lines.append("  %s = nn.%s %s%s : (%s) -> %s" % (
            value.name, operation, ", ".join(name for name, _ in operands), " {%s}" % attributes if attributes else "",
            types, tensor(shape, element)))
        return value

    def one(self, operation, x, shape, low, high, attributes=""):
        return self.emit(operation, [(x.name, x)], shape, low, high, attributes)

    def pick(self, test=lambda value: True):
        fitting = [value for value in self.values if test(value)]
        if fitting and self.random.random() < 0.7: # so that most of a graph reaches its result
            fitting = fitting[-2:]
        return self.random.choice(fitting) if fitting else None

    # Each step returns a new value, or None where no operand fits.

    def unary(self):
        operation = self.random.choice(sorted(UNARY))
        least, greatest, bounds = UNARY[operation]
        x = self.pick(lambda v: v.low >= least and v.high <= greatest)
        return x and self.one(operation, x, x.shape, *bounds(x.low, x.high))

    def binary(self):
        a = self.pick()
        b = self.pick(lambda v: v.shape == a.shape)
        operation = self.random.choice(["add", "sub", "mul", "div", "minimum", "maximum", "pow", "select"])
        corners = [a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high]
        low, high = {"add": (a.low + b.low, a.high + b.high), "sub": (a.low - b.high, a.high - b.low),
                     "mul": (min(corners), max(corners))}.get(operation, (min(a.low, b.low), max(a.high, b.high)))
        if operation == "div" and b.low < 0.1 or operation == "pow" and (a.low < 0.1 or a.high > 3 or max(-b.low, b.high) > 2):
            return None
        if operation == "div":
            low, high = -max(-a.low, a.high) * 10, max(-a.low, a.high) * 10
        if operation == "pow":
            low, high = 0.01, 100
        if operation != "select":
            return self.emit(operation, [(a.name, a), (b.name, b)], a.shape, low, high)
        condition = self.emit("less", [(a.name, a), (b.name, b)], a.shape, 0, 0, element="i1")
        operands = [(condition.name, tensor(a.shape, "i1")), (b.name, b), (a.name, a)]
        return self.emit("select", operands, a.shape, low, high)

    def broadcast(self):
        x = self.pick(lambda v: len(v.shape) < 4)
        shape, dimensions = [], []
        for size in x.shape:
            if self.random.random() < 0.3:
                shape.append(self.random.choice([1, 2, 3]))
            dimensions.append(len(shape))
            shape.append(self.random.choice([size, 4]) if size == 1 else size)
        return self.one("broadcast", x, shape, x.low, x.high, "dimensions = " + numbers(dimensions))

    def movement(self):
        x = self.pick(lambda v: v.shape)
        rank = len(x.shape)
        kind = self.random.choice(["transpose", "reshape", "slice", "pad", "reverse"])
        if kind == "transpose":
            order = self.random.sample(range(rank), rank)
            return self.one(kind, x, [x.shape[d] for d in order], x.low, x.high, "permutation = " + numbers(order))
        if kind == "reshape":
            total = count(x.shape)
            shape = self.random.choice([[total], [1] + x.shape, x.shape + [1], list(reversed(x.shape))])
            return self.one(kind, x, shape, x.low, x.high)
        if kind == "reverse":
            chosen = sorted(self.random.sample(range(rank), self.random.randint(1, rank)))
            return self.one(kind, x, x.shape, x.low, x.high, "dimensions = " + numbers(chosen))
        if kind == "pad":
            low, high, between = ([self.random.randint(0, 2) for _ in x.shape] for _ in range(3))
            shape = [l + h + s + (s - 1) * b for l, h, b, s in zip(low, high, between, x.shape)]
            return self.one(kind, x, shape, min(x.low, 0), max(x.high, 0), "high = %s, interior = %s, low = %s" % (
                numbers(high), numbers(between), numbers(low)))
        starts, sizes, strides = [], [], []
        for size in x.shape:
            stride = self.random.choice([1, 1, 2, -1])
            first = self.random.randrange(size)
            reach = size - first if stride > 0 else first + 1
            starts.append(first)
            strides.append(stride)
            sizes.append(self.random.randint(1, (reach - 1) // abs(stride) + 1))
        return self.one("slice", x, sizes, x.low, x.high, "sizes = %s, starts = %s, strides = %s" % (
            numbers(sizes), numbers(starts), numbers(strides)))

    def reduction(self):
        x = self.pick(lambda v: v.shape)
        chosen = sorted(self.random.sample(range(len(x.shape)), self.random.randint(1, len(x.shape))))
        kind = self.random.choice(["reduce_sum", "reduce_max", "reduce_min"])
        reduced = count([x.shape[d] for d in chosen]) if kind == "reduce_sum" else 1
        shape = [size for d, size in enumerate(x.shape) if d not in chosen]
        return self.one(kind, x, shape, x.low * reduced, x.high * reduced, "dimensions = " + numbers(chosen))

    def row(self):
        x = self.pick(lambda v: v.shape and v.low > -20 and v.high < 20)
        kind = self.random.choice(["softmax", "log_softmax", "layer_norm"])
        low, high = {"softmax": (0, 1), "log_softmax": (-50, 0), "layer_norm": (-3, 3)}[kind]
        return x and self.one(kind, x, x.shape, low, high, "epsilon = 1.0e-01 : f64" if kind == "layer_norm" else "")

    def matmul(self):
        x = self.pick(lambda v: len(v.shape) >= 2)
        if not x:
            return None
        bound = max(-x.low, x.high) ** 2 * x.shape[-1]
        return self.emit("matmul", [(x.name, x), (x.name, x)], x.shape[:-1] + [x.shape[-2]], -bound, bound, "transpose_b")

    def concat(self):
        x = self.pick(lambda v: v.shape)
        y = self.pick(lambda v: v.shape == x.shape)
        dimension = self.random.randrange(len(x.shape))
        shape = list(x.shape)
        shape[dimension] *= 2
        return self.emit("concat", [(x.name, x), (y.name, y)], shape, min(x.low, y.low), max(x.high, y.high),
                         "dimension = %d : i64" % dimension)

    def gather(self):
        x = self.pick(lambda v: v.shape)
        rows = [self.random.randrange(x.shape[0]) for _ in range(self.random.randint(1, 4))]
        kind = tensor([len(rows)], "i64")
        name = "%%i%d" % len(self.lines)
        self.lines.append("  %s = nn.constant dense<%s> : %s" % (name, rows, kind))
        return self.emit("gather", [(x.name, x), (name, kind)], [len(rows)] + x.shape[1:], x.low, x.high)

    def text(self):
        steps = [self.unary] * 4 + [self.binary] * 4 + [self.movement] * 2 + [
            self.broadcast, self.reduction, self.row, self.matmul, self.concat, self.gather]
        length = self.random.randint(3, 14)
        for _ in range(200):
            if len(self.lines) >= length:
                break
            value = self.random.choice(steps)()
            if value and max(-value.low, value.high) <= 50 and count(value.shape) <= 200 and len(value.shape) <= 5:
                self.values.append(value)
        result = self.values[-1]
        if result in self.arguments:
            result = self.one("tanh", result, result.shape, -1, 1)
        arguments = ", ".join("%s: %s" % (value.name, value.type) for value in self.arguments)
        return "func.func @numbers_graph_%d(%s) -> %s {\n%s\n  return %s : %s\n}\n" % (
            self.number, arguments, result.type, "\n".join(self.lines), result.name, result.type)


BATCH = 100  # graphs that are compiled as one program


def text_of(numbers):
    return "// NUMBERS\n" + "\n".join(Graph(random.Random(number), number).text() for number in numbers)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20, help="graphs to write (20)")
    parser.add_argument("--seed", type=int, default=1, help="of the first graph; the others follow (1)")
    parser.add_argument("--check", metavar="PROGRAM", help="trainc-check-gradient, to be run on batches of the graphs")
    options = parser.parse_args()
    numbers_left = range(options.seed, options.seed + options.count)
    if not options.check:
        print(text_of(numbers_left))
        return
    wrong = 0
    while numbers_left:
        batch, numbers_left = numbers_left[:BATCH], numbers_left[BATCH:]
        with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
            file.write(text_of(batch))
            file.flush()
            result = subprocess.run([options.check, file.name], capture_output=True, text=True)
        rows = result.stdout.splitlines()
        good = sum(row.endswith(" ok") for row in rows)
        wrong += len(batch) - good
        if good != len(batch):
            print("\n".join(row for row in rows if not row.endswith(" ok")), result.stderr)
    print("%d graphs, %d wrong" % (options.count, wrong))
    sys.exit(wrong != 0)


main()
