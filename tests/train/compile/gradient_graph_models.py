# SPDX-License-Identifier: Apache-2.0
"""Models of gradient_graph.test, as ONNX text, and their data in this folder.

    gradient_graph_models.py layers       recurrent layers
    gradient_graph_models.py assorted     what has no operator of its own, or one with settings
"""
import math
import struct
import sys

STATE = 1

LAYERS = """<ir_version: 7, opset_import: ["" : 14]>
layers (float[5, 3, 4] x, int32[3] lengths) => (float loss)
<%s>
{
  y0 = LSTM <hidden_size = 3, direction = "bidirectional", clip = 0.8> (x, lstm_w, lstm_r, lstm_b, lengths, , , lstm_p)
  y1 = LSTM <hidden_size = 3, direction = "reverse", input_forget = 1, activations = ["HardSigmoid", "Softsign", "Tanh"]>
    (x, coupled_w, coupled_r, coupled_b)
  y2 = GRU <hidden_size = 3, direction = "reverse", linear_before_reset = 1> (x, linear_w, linear_r, linear_b, lengths)
  y3, h3 = GRU <hidden_size = 3> (x, gru_w, gru_r, gru_b)
  y4 = RNN <hidden_size = 3, activations = ["Elu"], activation_alpha = [0.5]> (x, rnn_w, rnn_r, rnn_b, lengths)
  y5 = Concat <axis = 1> (y0, y1, y2, y3, y4)
  y6 = Mul (y5, y5)
  y7 = ReduceMean <axes = [0, 1, 3], keepdims = 0> (y6)
  h4 = ReduceSum <keepdims = 0> (h3)
  y8 = ReduceMean <keepdims = 0> (y7)
  loss = Add (y8, h4)
}"""

ASSORTED = """<ir_version: 9, opset_import: ["" : 20]>
assorted (float[2, 4, 9, 8] x, int64[2, 3] ids) => (float loss)
<%s, float small = {0.01}, int64[3] line_shape = {2, 4, 72}, int64[5] cube_shape = {2, 1, 4, 9, 8},
 int64[1] last = {-1}, int64[1] before = {-99}, int64[1] axis = {3}, int64[1] two = {2}, int64[1] minus = {-2},
 int64[1] zero = {0}, int64[1] end = {99}, int64[1] channels = {1}>
{
  conv = Conv <group = 2, strides = [2, 1], dilations = [1, 2], pads = [1, 2, 0, 1]> (x, conv_w, conv_b)
  soft = Softplus (conv)
  elu = Elu <alpha = 0.7> (conv)
  gelu = Gelu (conv)
  average = AveragePool <kernel_shape = [2, 3], strides = [2, 1], pads = [1, 1, 1, 1], ceil_mode = 1> (soft)
  largest, places = MaxPool <kernel_shape = [2, 2], strides = [1, 2], pads = [1, 0, 0, 1]> (elu)
  places_real = Cast <to = 1> (places)
  place_factor = Mul (places_real, small)
  weighed = Mul (largest, place_factor)
  up = ConvTranspose <group = 2, strides = [2, 3], output_padding = [1, 2], dilations = [1, 2]> (weighed, up_w)
  back = Slice (up, last, before, axis, minus)
  third = Slice (gelu, zero, end, axis, two)
  line = Reshape (x, line_shape)
  conv1 = Conv <strides = [2]> (line, line_w)
  cube = Reshape (x, cube_shape)
  conv3 = Conv <pads = [0, 1, 1, 0, 1, 1]> (cube, cube_w)
  rows = Gather (table, ids)
  most = ReduceMax <keepdims = 0> (third, channels)
  sinh = Sinh (rows)
  l0 = ReduceSumSquare <keepdims = 0> (average)
  l1 = ReduceSumSquare <keepdims = 0> (back)
  l2 = ReduceSumSquare <keepdims = 0> (most)
  l3 = ReduceSumSquare <keepdims = 0> (conv1)
  l4 = ReduceSumSquare <keepdims = 0> (conv3)
  l5 = ReduceSumSquare <keepdims = 0> (sinh)
  loss = Sum (l0, l1, l2, l3, l4, l5)
}"""


def tensor(name, *shape):
    global STATE
    values = []
    for _ in range(math.prod(shape)):
        STATE = (STATE * 1103515245 + 12345) % 2**31
        values.append("%.6f" % (STATE / 2**30 - 1))
    return "float[%s] %s = {%s}" % (", ".join(map(str, shape)), name, ", ".join(values))


def layer(prefix, gates, directions):
    shapes = {"w": (directions, gates * 3, 4), "r": (directions, gates * 3, 3), "b": (directions, gates * 6)}
    return [tensor(prefix + name, *shape) for name, shape in shapes.items()]


def npy(path, kind, shape, values):
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values)


if sys.argv[1] == "layers":
    weights = layer("lstm_", 4, 2) + [tensor("lstm_p", 2, 9)] + layer("coupled_", 4, 1)
    weights += layer("linear_", 3, 1) + layer("gru_", 3, 1) + layer("rnn_", 1, 1)
    print(LAYERS % ", ".join(weights))
    npy("x.npy", "<f4", (3, 5, 4), struct.pack("<60f", *((i * 7 % 11 - 5) / 5 for i in range(60))))
    npy("lengths.npy", "<i4", (3,), struct.pack("<3i", 5, 2, 3))
else:
    weights = [tensor("conv_w", 6, 2, 3, 3), tensor("conv_b", 6), tensor("up_w", 6, 2, 2, 2), tensor("table", 7, 3),
               tensor("line_w", 3, 4, 5), tensor("cube_w", 2, 1, 2, 3, 3)]
    print(ASSORTED % ", ".join(weights))
    npy("images.npy", "<f4", (2, 4, 9, 8), struct.pack("<576f", *((i * 37 % 101 - 50) / 50 for i in range(576))))
    npy("ids.npy", "<i8", (2, 3), struct.pack("<6q", 3, 0, 3, 6, 1, 3))
