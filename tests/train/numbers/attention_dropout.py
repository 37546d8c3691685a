# SPDX-License-Identifier: Apache-2.0
"""attention_dropout.py: writes two layers of causal attention, whose weights have dropout, and data for them.

The second layer has one head of keys for two of queries. The rates are such that f32 has the factors of what stays
as they are, so that f64 can be compared.
"""
import random
import struct

TOKENS, HEADS, SIZE, SEQUENCES = 160, 4, 8, 8
WIDTH = HEADS * SIZE
numbers = random.Random(5)


def weight(name, columns):
    values = ", ".join("%.5f" % numbers.gauss(0, WIDTH**-0.5) for _ in range(WIDTH * columns))
    return f"float[{WIDTH}, {columns}] {name} = {{{values}}}"


def npy(path, rows):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d, %d), }" % (rows, TOKENS, WIDTH)
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        count = rows * TOKENS * WIDTH
        file.write(struct.pack("<%df" % count, *(numbers.gauss(0, 1) for _ in range(count))))


def matrices(layer, source, key_heads):
    """Queries, keys, which are transposed, and values of each head."""
    kinds = ("q", "heads", "0, 2, 1, 3"), ("k", key_heads, "0, 2, 3, 1"), ("v", key_heads, "0, 2, 1, 3")
    return "\n".join(f"""  {kind}{layer}_all = MatMul ({source}, {kind}{layer})
  {kind}{layer}_heads = Reshape ({kind}{layer}_all, {heads})
  {kind}{layer}_of = Transpose <perm = [{order}]> ({kind}{layer}_heads)""" for kind, heads, order in kinds)


WEIGHTS = [weight(f"{letter}{layer}", WIDTH // 2 if layer == 1 and letter in "kv" else WIDTH)
           for layer in (0, 1) for letter in "qkvo"]
MODEL = f"""<ir_version: 9, opset_import: ["" : 17]>
attentions (float[batch, {TOKENS}, {WIDTH}] x) => (float[batch, {TOKENS}, {WIDTH}] y)
<{", ".join(WEIGHTS)}, float root = {{{SIZE**-0.5:.8f}}}, float half = {{0.5}}, float most = {{0.75}}, float tenth = {{0.1}},
 bool yes = {{1}}, int64[2] square = {{{TOKENS}, {TOKENS}}}, int64[4] heads = {{0, {TOKENS}, {HEADS}, {SIZE}}},
 int64[4] fewer = {{0, {TOKENS}, {HEADS // 2}, {SIZE}}}, int64[4] rows = {{0, {HEADS // 2}, {2 * TOKENS}, {SIZE}}},
 int64[4] scores = {{0, {HEADS}, {TOKENS}, {TOKENS}}}, int64[4] pairs = {{0, {HEADS // 2}, {2 * TOKENS}, {TOKENS}}},
 int64[4] apart = {{0, {HEADS}, {TOKENS}, {SIZE}}}, int64[3] joined = {{0, {TOKENS}, {WIDTH}}}>
{{
  hidden = ConstantOfShape <value = float[1] {{-10000000000}}> (square)
  causal = Trilu <upper = 1> (hidden, one)
{matrices(0, "x", "heads")}
  product0 = MatMul (q0_of, k0_of)
  scaled0 = Mul (product0, root)
  masked0 = Add (scaled0, causal)
  softmax0 = Softmax (masked0)
  dropped0 = Dropout (softmax0, half, yes)
  mixed0 = MatMul (dropped0, v0_of)
  rows0 = Transpose <perm = [0, 2, 1, 3]> (mixed0)
  all0 = Reshape (rows0, joined)
  result0 = MatMul (all0, o0)
  kept0 = Dropout (result0, tenth, yes)
  middle = Add (x, kept0)
{matrices(1, "middle", "fewer")}
  q1_rows = Reshape (q1_of, rows)
  product1 = MatMul (q1_rows, k1_of)
  scores1 = Reshape (product1, scores)
  scaled1 = Mul (scores1, root)
  masked1 = Add (scaled1, causal)
  softmax1 = Softmax (masked1)
  dropped1 = Dropout (softmax1, most, yes)
  pairs1 = Reshape (dropped1, pairs)
  mixed1 = MatMul (pairs1, v1_of)
  apart1 = Reshape (mixed1, apart)
  rows1 = Transpose <perm = [0, 2, 1, 3]> (apart1)
  all1 = Reshape (rows1, joined)
  result1 = MatMul (all1, o1)
  y = Add (middle, result1)
}}
"""
open("attention.onnxtxt", "w").write(MODEL.replace("bool yes", "int64 one = {1}, bool yes", 1))
npy("x.npy", SEQUENCES)
npy("labels.npy", SEQUENCES)
