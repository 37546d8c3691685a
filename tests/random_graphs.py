#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes random valid graphs of nn as cases of trainc-check-gradient, which compares compiled f64 values with the
reference interpreter's, compiled f32 values with those within what rounding explains, and gradients with central
differences.

    tests/random_graphs.py --count 2000 --seed 1 --check build/dev/bin/trainc-check-gradient
    tests/random_graphs.py --count 1 --seed 77        # the text of one

Every value carries bounds of its elements, so that no operation leaves its domain and differences stay meaningful.
An operation of nn must occur in the graphs or stand in NOT_GENERATED with the reason.
"""
import argparse
import math
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

NOT_GENERATED = {  # operation: reason
    "segment_norms": "has no gradient, and differences would find one; tests/ops/segment_norms.mlir has its numbers",
    "segment_broadcast": "likewise",
    **{name: "has results that only its gradient may use; tests/ops/%s.mlir has its numbers" % name for name in ("lstm", "gru", "rnn")},
    **{"%s_gradient" % name: "has no gradient, and differences would find one" for name in ("lstm", "gru", "rnn")},
    "attention": "has a result that only its gradient may use; tests/ops/attention.mlir has its numbers",
    "attention_gradient": "has no gradient, and differences would find one",
    "custom": "is whatever a user's function computes; tests/train/compile/custom_operators.test has one",
    "detach": "lets no gradient pass, and differences would find one; tests/ops/detach.mlir has its numbers",
    "mean_over_ranks": "is its operand where one rank is alone, which every program here is; tests/train/ranks/batch_norm_all_ranks.test has two, whose gradients are those of one rank with both batches",
    "training_form": "derive-evaluate leaves one of its operands; no later pass and no kernel knows it",
}

UNARY = {  # operation: least and greatest operand, bounds of the result
    "neg": (-50, 50, lambda a, b: (-b, -a)),
    "abs": (-50, 50, lambda a, b: (0, max(-a, b))),
    "exp": (-3, 3, lambda a, b: (0.04, 21)),
    "log": (0.05, 50, lambda a, b: (-3, 4)),
    "log1p": (-0.9, 50, lambda a, b: (-2.4, 4)),
    "expm1": (-3, 3, lambda a, b: (-0.96, 20)),
    "sqrt": (0.05, 50, lambda a, b: (0.2, 7.1)),
    "tanh": (-5, 5, lambda a, b: (-1, 1)),
    "atan": (-50, 50, lambda a, b: (-1.6, 1.6)),
    "asin": (-0.95, 0.95, lambda a, b: (-1.6, 1.6)),
    "acos": (-0.95, 0.95, lambda a, b: (0.3, 2.9)),
    "tan": (-1.3, 1.3, lambda a, b: (-3.7, 3.7)),
    "sinh": (-3, 3, lambda a, b: (-10.1, 10.1)),
    "cosh": (-3, 3, lambda a, b: (1, 10.1)),
    "asinh": (-50, 50, lambda a, b: (-4.7, 4.7)),
    "acosh": (1.1, 50, lambda a, b: (0.4, 4.7)),
    "atanh": (-0.95, 0.95, lambda a, b: (-1.9, 1.9)),
    "softsign": (-50, 50, lambda a, b: (-1, 1)),
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
ROUNDING = ["floor", "ceil", "round", "sign"]
COMPARISONS = ["equal", "less", "less_or_equal", "greater", "greater_or_equal"]
INTEGERS = ["i32", "i64"]
LARGEST = {"f32": 50, "f64": 50, "i1": 1, "i32": 2**31, "i64": 2**53}  # that a value may reach


class Value:
    def __init__(self, name, shape, low, high, element="f64"):
        self.name, self.shape, self.low, self.high, self.element = name, list(shape), low, high, element

    @property
    def type(self):
        return tensor(self.shape, self.element)

    @property
    def is_float(self):
        return self.element == "f64"

    @property
    def is_integer(self):
        return self.element in INTEGERS

    @property
    def magnitude(self):
        return max(-self.low, self.high)


def tensor(shape, element="f64"):
    return "tensor<%s%s>" % ("".join("%dx" % size for size in shape), element)


def numbers(values):
    return "array<i64%s>" % (": " + ", ".join(map(str, values)) if values else "")


def dimension(size):
    return "dimension = %d : i64" % size


def nested(values, shape):
    if not shape:
        return str(values[0])
    step = math.prod(shape[1:])
    return "[%s]" % ", ".join(nested(values[i * step:], shape[1:]) for i in range(shape[0]))


class Graph:
    def __init__(self, number):
        self.random, self.number = random.Random(number), number
        self.lines, self.values, self.arguments = [], [], []
        self.names = 0
        large = self.random.random() < 0.04  # beyond what one thread or one block of a kernel takes
        self.most = 12000 if large else 250  # elements
        sizes = [1, 2, 3, 5, 7, 17, 33] if not large else [1, 3, 16, 37, 65, 130]
        rank = self.random.choice([1, 2, 2, 3])
        shape = [self.random.choice(sizes) for _ in range(rank)]
        while math.prod(shape) > self.most // 2:
            shape[self.random.randrange(rank)] = 2
        for _ in range(self.random.randint(1, 3)):
            self.values.append(self.argument(shape))

    def argument(self, shape):
        value = Value("%%arg%d" % len(self.arguments), shape, 0.1, 1.1)
        self.arguments.append(value)
        return value

    def emit(self, operation, operands, shape, low, high, attributes="", element="f64"):
        value = Value("%%v%d" % self.names, shape, low, high, element)
        self.names += 1
        self.lines.append("  %s = nn.%s %s%s : (%s) -> %s" % (
            value.name, operation, ", ".join(x.name for x in operands), " {%s}" % attributes if attributes else "",
            ", ".join(x.type for x in operands), value.type))
        return value

    def one(self, operation, x, shape, low, high, attributes=""):
        return self.emit(operation, [x], shape, low, high, attributes, x.element)

    def constant(self, elements, shape, element, low, high):
        value = Value("%%v%d" % self.names, shape, low, high, element)
        self.names += 1
        self.lines.append("  %s = nn.constant dense<%s> : %s" % (value.name, nested(elements, shape), value.type))
        return value

    def filled(self, number, like):
        value = Value("%%v%d" % self.names, like.shape, number, number, like.element)
        self.names += 1
        text = "%.6e" % number if like.is_float else str(number)
        self.lines.append("  %s = nn.constant dense<%s> : %s" % (value.name, text, value.type))
        return value

    def integers(self, shape, low, high, element="i64"):
        """A constant of integers in [low, high)."""
        elements = [self.random.randrange(low, high) for _ in range(math.prod(shape))]
        return self.constant(elements, shape, element, low, high - 1)

    def floats(self, shape):
        """An argument, or a constant."""
        if self.random.random() < 0.6 and len(self.arguments) < 5:
            return self.argument(shape)
        elements = ["%.3f" % self.random.uniform(-2, 2) for _ in range(math.prod(shape))]
        return self.constant(elements, shape, "f64", -2, 2)

    def generic(self, x):
        """x moved, so that steps of what follows fall between its values and not on those that rounding can reach from
        either side, such as a row's softmax summed up."""
        y = self.emit("mul", [x, self.filled(self.random.uniform(0.6, 1.7), x)], x.shape, 1.7 * x.low, 1.7 * x.high)
        offset = self.random.uniform(0.01, 0.9)
        low, high = min(0, y.low) + offset, max(0, y.high) + offset
        return self.emit("add", [y, self.filled(offset, y)], x.shape, low, high)

    def pick(self, test=lambda value: True, kind=None):
        if kind is None:
            kind = (lambda v: v.is_float) if self.random.random() < 0.85 else (lambda v: True)
        fitting = [value for value in self.values if kind(value) and test(value)]
        if fitting and self.random.random() < 0.7: # so that most of a graph reaches its result
            fitting = fitting[-2:]
        return self.random.choice(fitting) if fitting else None

    def pick_float(self, test=lambda value: True):
        return self.pick(test, lambda v: v.is_float)

    # Each step returns a new value, or None where no operand fits.

    def unary(self):
        operation = self.random.choice(sorted(UNARY))
        least, greatest, bounds = UNARY[operation]
        x = self.pick_float(lambda v: v.low >= least and v.high <= greatest)
        x = x or self.within(self.pick_float(), least, greatest)
        return x and self.one(operation, x, x.shape, *bounds(x.low, x.high))

    def within(self, x, least, greatest):
        """x scaled and moved into a narrow domain; None where little of its differences would be left."""
        factor = (greatest - least) / max(x.high - x.low, 0.1)
        if factor < 0.05:
            return None
        y = self.emit("mul", [x, self.filled(factor, x)], x.shape, x.low * factor, x.high * factor)
        return self.emit("add", [y, self.filled(least - y.low, y)], x.shape, least, least + y.high - y.low)

    def rounding(self):
        x = self.pick_float(lambda v: v.magnitude < 25)
        return x and self.one(self.random.choice(ROUNDING), self.generic(x), x.shape, -50, 50)

    def binary(self):
        a = self.pick_float()
        b = self.pick_float(lambda v: v.shape == a.shape)
        operation = self.random.choice(["add", "sub", "mul", "div", "minimum", "maximum", "pow", "select", "remainder"])
        corners = [a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high]
        low, high = {"add": (a.low + b.low, a.high + b.high), "sub": (a.low - b.high, a.high - b.low),
                     "mul": (min(corners), max(corners))}.get(operation, (min(a.low, b.low), max(a.high, b.high)))
        if operation in ("div", "remainder") and b.low < 0.1:
            return None
        if operation == "pow" and (a.low < 0.1 or a.high > 3 or b.magnitude > 2):
            return None
        if operation == "div":
            low, high = -a.magnitude * 10, a.magnitude * 10
        if operation == "pow":
            low, high = 0.01, 100
        if operation == "remainder":
            a = self.generic(a)
            low, high = -b.high, b.high
        if operation != "select":
            return self.emit(operation, [a, b], a.shape, low, high)
        condition = self.emit("less", [a, b], a.shape, 0, 1, element="i1")
        return self.emit("select", [condition, b, a], a.shape, low, high)

    def comparison(self):
        a = self.pick()
        b = self.pick(lambda v: v.shape == a.shape, lambda v: v.element == a.element)
        operation = self.random.choice(COMPARISONS)
        return self.emit(operation, [a, self.generic(b) if b.is_float else b], a.shape, 0, 1, element="i1")

    def logic(self):
        a = self.pick(kind=lambda v: v.element == "i1")
        if not a:
            return self.comparison()
        operation = self.random.choice(["and", "or", "xor", "not"])
        b = self.pick(lambda v: v.shape == a.shape, lambda v: v.element == "i1")
        return self.emit(operation, [a] if operation == "not" else [a, b], a.shape, 0, 1, element="i1")

    def selection(self):
        condition = self.pick(kind=lambda v: v.element == "i1")
        if not condition:
            return self.comparison()
        a = self.pick(lambda v: v.shape == condition.shape)
        b = a and self.pick(lambda v: v.shape == condition.shape, lambda v: v.element == a.element)
        return b and self.emit("select", [condition, a, b], a.shape, min(a.low, b.low), max(a.high, b.high),
                               element=a.element)

    def not_a_number(self):
        x = self.pick_float()
        holes = ["0x7FF8000000000000" if self.random.random() < 0.3 else "%.2f" % self.random.uniform(-1, 1)
                 for _ in range(math.prod(x.shape))]
        other = self.constant(holes, x.shape, "f64", -1, 1)
        condition = self.emit("is_nan", [other], x.shape, 0, 1, element="i1")
        return self.emit("select", [condition, x, other], x.shape, min(x.low, -1), max(x.high, 1))

    def integer(self):
        """Arithmetic of integers; what overflows wraps."""
        a = self.pick(kind=lambda v: v.is_integer)
        if not a:
            return self.conversion()
        operation = self.random.choice(["add", "sub", "mul", "neg", "abs", "sign", "minimum", "maximum", "div",
                                        "remainder", "pow", "bit_and", "bit_or", "bit_xor", "bit_not"])
        low, high = a.low, a.high
        if operation == "bit_not":
            return self.one(operation, a, a.shape, -1 - a.high, -1 - a.low)
        if operation in ("neg", "abs", "sign"):
            return self.one(operation, a, a.shape, -a.magnitude, a.magnitude)
        if operation in ("div", "remainder"):
            b = self.integers(a.shape, 1, 9, a.element)
        elif operation == "pow":
            if a.magnitude > 9:
                return None
            b = self.integers(a.shape, 0, 4, a.element)
            low, high = -9**3, 9**3
        else:
            b = self.pick(lambda v: v.shape == a.shape, lambda v: v.element == a.element)
            if self.random.random() < 0.4:
                b = self.filled(self.random.randint(-9, 9), a)
            reach = a.magnitude * b.magnitude if operation == "mul" else a.magnitude + b.magnitude
            if operation.startswith("bit_"):
                reach = 2 ** max(int(a.magnitude), int(b.magnitude)).bit_length()
            if reach > LARGEST["i64"] and a.element == "i64":
                return None
            low, high = (-reach, reach) if reach < 2**31 else (-2**31, 2**31)
        return self.emit(operation, [a, b], a.shape, low, high, element=a.element)

    def conversion(self):
        x = self.pick(kind=lambda v: self.random.random() < 0.5)
        if not x or x.magnitude > (50 if x.is_float else 2**31):
            return None
        if x.is_float:
            x = self.generic(x)
            to = self.random.choice(["i32", "i64"])
            return self.emit("cast", [x], x.shape, math.floor(x.low), math.ceil(x.high), element=to)
        to = self.random.choice(["f64", "f32", "i32", "i64", "i1"])
        if to == x.element or to.startswith("f") and x.magnitude > 50:
            return None
        low, high = (0, 1) if to == "i1" else (x.low, x.high)
        value = self.emit("cast", [x], x.shape, low, high, element=to)
        return self.emit("cast", [value], x.shape, low, high) if to == "f32" else value

    def source(self):
        like = self.pick()
        if self.random.random() < 0.5:
            element = self.random.choice(["f64", "i32", "i64", "f64"])
            axis = self.random.randrange(len(like.shape)) if like.shape else None
            if axis is None or like.shape[axis] > 50:
                return None
            return self.emit("iota", [], like.shape, 0, like.shape[axis] - 1, dimension(axis), element)
        if self.random.random() < 0.3:
            bits = self.random.randint(1, 5)
            attributes = "stream = %d : i64, bits = %d : i64" % (self.random.randint(0, 9), bits)
            keys = [self.integers(like.shape, -3, 4, "i64")] if self.random.random() < 0.5 else []
            return self.emit("random_bits", keys, like.shape, 0, 2**bits - 1, attributes, "i64")
        if self.random.random() < 0.5:
            return self.floats(like.shape)
        return self.integers(like.shape, -3, 4, self.random.choice(INTEGERS))

    def broadcast(self):
        x = self.pick(lambda v: len(v.shape) < 4)
        shape, dimensions = [], []
        for size in x.shape + [0]:
            if self.random.random() < 0.3:
                shape.append(self.random.choice([1, 2, 3, 18]))
            if size:
                dimensions.append(len(shape))
                shape.append(self.random.choice([size, 4, 19]) if size == 1 else size)
        return self.one("broadcast", x, shape, x.low, x.high, "dimensions = " + numbers(dimensions))

    def movement(self):
        x = self.pick(lambda v: v.shape)
        if not x:
            return None
        rank = len(x.shape)
        kind = self.random.choice(["transpose", "reshape", "slice", "pad", "reverse"])
        if kind == "transpose":
            order = self.random.sample(range(rank), rank)
            return self.one(kind, x, [x.shape[d] for d in order], x.low, x.high, "permutation = " + numbers(order))
        if kind == "reshape":
            total = math.prod(x.shape)
            shapes = [[total], [1] + x.shape, x.shape + [1], list(reversed(x.shape)), [x.shape[0], total // x.shape[0]]]
            shapes += [[total // divisor, divisor] for divisor in (2, 3, 5) if total % divisor == 0]
            return self.one(kind, x, self.random.choice(shapes), x.low, x.high)
        if kind == "reverse":
            chosen = sorted(self.random.sample(range(rank), self.random.randint(1, rank)))
            return self.one(kind, x, x.shape, x.low, x.high, "dimensions = " + numbers(chosen))
        if kind == "pad":
            low, high, between = ([self.random.choice([0, 0, 1, 2]) for _ in x.shape] for _ in range(3))
            shape = [l + h + s + (s - 1) * b for l, h, b, s in zip(low, high, between, x.shape)]
            return self.one(kind, x, shape, min(x.low, 0), max(x.high, 0), "high = %s, interior = %s, low = %s" % (
                numbers(high), numbers(between), numbers(low)))
        starts, sizes, strides = [], [], []
        for size in x.shape:
            stride = self.random.choice([1, 1, 2, -1, -2, 3])
            first = self.random.randrange(size)
            reach = size - first if stride > 0 else first + 1
            starts.append(first)
            strides.append(stride)
            sizes.append(self.random.randint(1, (reach - 1) // abs(stride) + 1))
        return self.one("slice", x, sizes, x.low, x.high, "sizes = %s, starts = %s, strides = %s" % (
            numbers(sizes), numbers(starts), numbers(strides)))

    def reduction(self):
        x = self.pick(lambda v: v.shape and v.element != "i1")
        if not x:
            return None
        chosen = sorted(self.random.sample(range(len(x.shape)), self.random.randint(1, len(x.shape))))
        kind = self.random.choice(["reduce_sum", "reduce_max", "reduce_min"])
        reduced = math.prod(x.shape[d] for d in chosen) if kind == "reduce_sum" else 1
        if x.is_integer and x.magnitude * reduced > 2**31:
            return None
        shape = [size for d, size in enumerate(x.shape) if d not in chosen]
        y = self.one(kind, x, shape, x.low * reduced, x.high * reduced, "dimensions = " + numbers(chosen))
        if x.is_float and y.magnitude > 50 and y.magnitude < 50 * reduced: # a mean, so that long sums can go on
            factor = self.filled(1 / reduced, y)
            return self.emit("mul", [y, factor], shape, x.low, x.high)
        return y

    def row(self):
        x = self.pick_float(lambda v: v.shape and v.magnitude < 20)
        kind = self.random.choice(["softmax", "log_softmax", "layer_norm"])
        low, high = {"softmax": (0, 1), "log_softmax": (-50, 0), "layer_norm": (-6, 6)}[kind]
        return x and self.one(kind, x, x.shape, low, high, "epsilon = 1.0e-01 : f64" if kind == "layer_norm" else "")

    def channels(self):
        x = self.pick_float(lambda v: len(v.shape) >= 2 and v.magnitude < 20)
        return x and self.one("batch_norm", x, x.shape, -6, 6, "epsilon = 1.0e-01 : f64")

    def loss(self):
        x = self.pick_float(lambda v: v.shape and v.magnitude < 20)
        if not x:
            return None
        labels = self.integers(x.shape[:-1], 0, x.shape[-1], self.random.choice(INTEGERS))
        ignored = self.random.choice(["", "ignore_index = %d : i64" % self.random.randrange(x.shape[-1])])
        if ignored and math.prod(x.shape[:-1]) * x.shape[-1] < 30: # all may be ignored: the mean of nothing
            ignored = "ignore_index = -1 : i64"
        if self.random.random() < 0.6:
            return self.emit("cross_entropy", [x, labels], [], 0, 50, ignored)
        mask = self.emit("label_mask", [labels], x.shape, 0, 1, ignored, element="i1")
        return self.emit("select", [mask, x, self.filled(0, x)], x.shape, min(x.low, 0), max(x.high, 0))

    def resample(self):
        x = self.pick_float(lambda v: v.shape and 0 not in v.shape)
        if not x:
            return None
        dimension, taps = self.random.randrange(len(x.shape)), self.random.choice([1, 2, 2, 4, 9])
        count = self.random.randint(1, 2 * x.shape[dimension])
        shape = x.shape[:dimension] + [count] + x.shape[dimension + 1:]
        if math.prod(shape) * taps > self.most:
            return None
        indices = [self.random.randrange(x.shape[dimension]) for _ in range(count * taps)]
        weights = [self.random.choice(["1.0", "0.5", "%.2f" % self.random.uniform(-1, 1)]) for _ in indices]
        return self.one("resample", x, shape, -taps * x.magnitude, taps * x.magnitude,
                        "dimension = %d : i64, taps = %d : i64, indices = array<i64: %s>, weights = array<f64: %s>" % (
                            dimension, taps, ", ".join(map(str, indices)), ", ".join(weights)))

    def matmul(self):
        a = self.pick_float(lambda v: len(v.shape) >= 2)
        if not a:
            return None
        transpose_a, transpose_b = self.random.random() < 0.4, self.random.random() < 0.5
        rows, inner = reversed(a.shape[-2:]) if transpose_a else a.shape[-2:]
        if self.random.random() < 0.2: # with itself
            b, transpose_b = a, not transpose_a
            columns = rows
        else:
            columns = self.random.choice([1, 2, 3, 5, 17])
            b = self.floats(a.shape[:-2] + ([columns, inner] if transpose_b else [inner, columns]))
        bound = a.magnitude * b.magnitude * inner
        flags = ["transpose_a"] * transpose_a + ["transpose_b"] * transpose_b
        return self.scaled(self.emit("matmul", [a, b], a.shape[:-2] + [rows, columns], -bound, bound, ", ".join(flags)))

    def scaled(self, y):
        """A sum of products, small enough for others to follow."""
        if y.magnitude <= 50 or math.prod(y.shape) > self.most:
            return y
        return self.emit("mul", [y, self.filled(10 / y.magnitude, y)], y.shape, -10, 10)

    def convolution(self):
        choose = self.random.choice
        x = self.pick_float(lambda v: 3 <= len(v.shape) <= 5) if self.random.random() < 0.5 else None
        if not x:
            space = [choose([1, 3, 5]) for _ in range(choose([1, 2, 2, 3]))]
            x = self.floats([choose([1, 2]), choose([1, 2, 4, 6])] + space)
        channels, space = x.shape[1], x.shape[2:]
        groups = choose([d for d in range(1, channels + 1) if channels % d == 0])
        before, behind = [choose([0, 0, 1, 2]) for _ in space], [choose([0, 0, 1, 3]) for _ in space]
        dilations, strides = [choose([1, 1, 2]) for _ in space], [choose([1, 1, 2, 3]) for _ in space]
        kernel = [min(choose([1, 2, 3]), (size + a + b - 1) // dilation + 1)
                  for size, a, b, dilation in zip(space, before, behind, dilations)]
        out = [(size + a + b - (k - 1) * dilation - 1) // stride + 1
               for size, a, b, k, dilation, stride in zip(space, before, behind, kernel, dilations, strides)]
        w_shape = [groups * choose([1, 2, 3]), channels // groups] + kernel
        y_shape = [x.shape[0], w_shape[0]] + out
        if max(math.prod(w_shape), math.prod(y_shape)) > self.most:
            return None
        attributes = "dilations = %s, groups = %d : i64, pads = %s, strides = %s" % (
            numbers(dilations), groups, numbers(before + behind), numbers(strides))
        w = self.floats(w_shape)
        bound = x.magnitude * w.magnitude * math.prod(w_shape[1:])
        y = self.scaled(self.emit("convolution", [x, w], y_shape, -bound, bound, attributes))
        kind = self.random.random()
        if kind < 0.4:
            return y
        if kind < 0.7:
            bound = y.magnitude * w.magnitude * math.prod([w_shape[0]] + kernel)
            return self.scaled(self.emit("convolution_input_gradient", [y, w], x.shape, -bound, bound,
                                         attributes + ", sizes = " + numbers(space)))
        bound = x.magnitude * y.magnitude * math.prod([x.shape[0]] + out)
        return self.scaled(self.emit("convolution_weight_gradient", [x, y], w_shape, -bound, bound,
                                     attributes + ", sizes = " + numbers(kernel)))

    def pool(self):
        choose = self.random.choice
        x = self.pick_float(lambda v: 3 <= len(v.shape) <= 5) if self.random.random() < 0.5 else None
        if not x:
            space = [choose([1, 3, 5]) for _ in range(choose([1, 2, 2, 3]))]
            x = self.floats([choose([1, 2]), choose([1, 2, 3])] + space)
        space = x.shape[2:]
        kernel = [min(choose([1, 2, 3]), size) for size in space]
        dilations = [choose([1, 2]) if 2 * (k - 1) < size else 1 for k, size in zip(kernel, space)]
        strides = [choose([1, 1, 2, 3]) for _ in space]
        before, behind = ([choose([0, 0, 1]) if d * (k - 1) < size and k > 1 else 0
                           for k, d, size in zip(kernel, dilations, space)] for _ in range(2))
        out = [(size + a + b - (k - 1) * dilation - 1) // stride + 1
               for size, a, b, k, dilation, stride in zip(space, before, behind, kernel, dilations, strides)]
        y_shape = x.shape[:2] + out
        if math.prod(y_shape) > self.most:
            return None
        attributes = "dilations = %s, kernel = %s, pads = %s, strides = %s" % (
            numbers(dilations), numbers(kernel), numbers(before + behind), numbers(strides))
        kind, bound = self.random.random(), x.magnitude * math.prod(kernel)
        if kind < 0.4:
            return self.emit("max_pool", [x, x], y_shape, x.low, x.high, attributes)
        if kind < 0.6:
            dy = self.floats(y_shape)
            bound = dy.magnitude * math.prod(kernel)
            y = self.scaled(self.emit("max_pool_gradient", [x, dy], x.shape, -bound, bound, attributes))
            # Where the largest are found has no gradient: a graph may read x nowhere else.
            return self.emit("add", [y, x], x.shape, y.low + x.low, y.high + x.high)
        y = self.scaled(self.emit("sum_pool", [x], y_shape, -bound, bound, attributes))
        if kind < 0.8:
            return y
        bound = y.magnitude * math.prod(kernel)
        return self.scaled(self.emit("sum_pool_gradient", [y], x.shape, -bound, bound,
                                     attributes + ", sizes = " + numbers(space)))

    def concat(self):
        x = self.pick(lambda v: v.shape)
        if not x:
            return None
        axis = self.random.randrange(len(x.shape))
        others = [v for v in self.values if v.element == x.element and len(v.shape) == len(x.shape) and all(
            a == b for d, (a, b) in enumerate(zip(v.shape, x.shape)) if d != axis)]
        parts = [x] + [self.random.choice(others) for _ in range(self.random.choice([1, 1, 2]))]
        self.random.shuffle(parts)
        shape = list(x.shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        return self.emit("concat", parts, shape, min(p.low for p in parts), max(p.high for p in parts),
                         dimension(axis), x.element)

    def rows_of(self, x):
        """Indexes of rows of x: known ones with repetitions, or computed from the data."""
        computed = self.pick(lambda v: 0 < len(v.shape) < 3 and math.prod(v.shape) <= 40, lambda v: v.is_integer)
        if computed and self.random.random() < 0.7:
            size = self.filled(x.shape[0], computed)
            rest = self.emit("remainder", [computed, size], computed.shape, 0, 0, element=computed.element)
            return self.one("abs", rest, rest.shape, 0, x.shape[0] - 1)
        return self.integers([self.random.randint(1, 4)] * self.random.choice([1, 1, 2]), 0, x.shape[0],
                             self.random.choice(INTEGERS))

    def gather(self):
        x = self.pick(lambda v: v.shape)
        if not x:
            return None
        rows = self.rows_of(x)
        y = self.emit("gather", [x, rows], rows.shape + x.shape[1:], x.low, x.high, element=x.element)
        if not x.is_float or self.random.random() < 0.6 or math.prod(y.shape) > self.most:
            return y
        rows = self.rows_of(x)
        updates = self.emit("gather", [x, rows], rows.shape + x.shape[1:], x.low, x.high)
        reach = x.magnitude * (1 + math.prod(rows.shape))
        table = self.random.choice([x, self.filled(0.0, x)])
        return self.emit("scatter_add", [table, rows, updates], x.shape, -reach, reach)

    def text(self):
        steps = [self.unary] * 5 + [self.binary] * 5 + [self.movement] * 4 + [
            self.broadcast, self.broadcast, self.reduction, self.reduction, self.row, self.channels, self.matmul, self.matmul,
            self.convolution, self.pool, self.resample, self.concat, self.concat, self.gather, self.gather, self.rounding, self.comparison, self.logic,
            self.selection, self.not_a_number, self.integer, self.integer, self.conversion, self.source, self.loss]
        length = self.random.randint(3, 16)
        for _ in range(300):
            if len(self.values) >= length:
                break
            kept = list(self.lines), list(self.arguments), self.names
            value = self.random.choice(steps)()
            if value and value.magnitude <= LARGEST[value.element] and len(value.shape) <= 5 and math.prod(
                    value.shape) <= self.most:
                self.values.append(value)
            else:
                self.lines, self.arguments, self.names = kept
        used = set(re.findall(r"%\w+", " ".join(line.split("=", 1)[1] for line in self.lines)))
        results = [value for value in self.values[:-1]
                   if self.random.random() < (0.1 if value.name in used else 0.5)] + [self.values[-1]]
        results = [self.one("neg", x, x.shape, 0, 0) if x in self.arguments else x for x in results]
        arguments = ", ".join("%s: %s" % (value.name, value.type) for value in self.arguments)
        types = ", ".join(x.type for x in results)
        return "func.func @numbers_graph_%d(%s) -> (%s) {\n%s\n  return %s : %s\n}\n" % (
            self.number, arguments, types, "\n".join(self.lines), ", ".join(x.name for x in results), types)


BATCH = 60  # graphs that are compiled as one program


def registered_operations():
    folder = pathlib.Path(__file__).resolve().parent.parent / "dialects" / "nn"
    texts = [path.read_text() for path in folder.rglob("*.td")]
    return {name for text in texts for name in re.findall(r'^def \w+Op\s*: \w+<"(\w+)"', text, re.MULTILINE)}


def check_coverage(text):
    """What is wrong with the choice of operations, as lines."""
    produced, registered = set(re.findall(r" nn\.(\w+)", text)), registered_operations()
    lines = ["%s: no graph has it; add it to a step of tests/random_graphs.py, or to NOT_GENERATED with the reason" % name
             for name in sorted(registered - produced - set(NOT_GENERATED))]
    return lines + ["%s: listed in NOT_GENERATED, but generated or not an operation" % name
                    for name in sorted(NOT_GENERATED) if name in produced or name not in registered]


def run(check, graphs):
    """Rows and error text of one program of all `graphs`."""
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write("// NUMBERS\n" + "\n".join(graphs.values()))
        file.flush()
        result = subprocess.run([check, "--f32", file.name], capture_output=True, text=True)
    rows = result.stdout.splitlines()
    if len(graphs) == 1 or any(row.endswith((" ok", " WRONG")) for row in rows):
        return rows, result.stderr
    # No program: halves, until the graphs are found that have none.
    rows, errors, items = [], "", list(graphs.items())
    for half in (items[:len(items) // 2], items[len(items) // 2:]):
        more, error = run(check, dict(half))
        rows, errors = rows + more, errors + error
    return rows, errors


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20, help="graphs to write (20)")
    parser.add_argument("--seed", type=int, default=1, help="of the first graph; the others follow (1)")
    parser.add_argument("--check", metavar="PROGRAM", help="trainc-check-gradient, to be run on batches of the graphs")
    parser.add_argument("--only", type=int, nargs="+", help="check these of the graphs alone")
    options = parser.parse_args()
    graphs = {number: Graph(number).text() for number in range(options.seed, options.seed + options.count)}
    if not options.check:
        print("// NUMBERS\n" + "\n".join(graphs.values()))
        return
    problems = check_coverage("\n".join(graphs.values())) if options.count >= 200 else []
    wrong = elements = undetermined = 0
    items = [(number, text) for number, text in graphs.items() if not options.only or number in options.only]
    for first in range(0, len(items), BATCH):
        batch = dict(items[first:first + BATCH])
        rows, errors = run(options.check, batch)
        good = [row for row in rows if row.endswith(" ok")]
        for row in good:
            found = re.search(r" f32 +(\d+), (\d+) undetermined", row)
            elements, undetermined = elements + int(found[1]), undetermined + int(found[2])
        if len(good) != len(batch):
            wrong += len(batch) - len(good)
            named = {int(re.match(r"numbers_graph_(\d+)", row)[1]) for row in good}
            print("graphs that are not ok:", *sorted(set(batch) - named))
            print("\n".join(row for row in rows if not row.endswith(" ok")), errors)
    if undetermined > elements * 0.02:
        problems.append("%d of %d f32 elements are undetermined: graphs that say too little" % (undetermined, elements))
    print("\n".join(problems + ["%d graphs from seed %d: %d wrong; %d f32 elements, %d undetermined" % (
        len(items), options.seed, wrong, elements, undetermined)]))
    sys.exit(bool(wrong or problems))


main()
