# SPDX-License-Identifier: Apache-2.0
"""Models with dropout, their data, and what training them must draw.

    dropout.py write
    dropout.py masks FILE=SEED,STEP,MICRO_BATCHES...   gradients of masks.onnxtxt
    dropout.py rate LOSS                               loss of rate.onnxtxt
    dropout.py key SEED STEP MICRO_BATCH               what its random numbers follow from, as a signed integer
"""
import json
import math
import struct
import sys

COUNT = 1000  # elements of each parameter of masks.onnxtxt
RATIO = 0.25
DRAWS = 10_000_000

# The generator, after Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011.


def philox(key, counter):
    a, b, c, d = counter
    low, high = key & 0xFFFFFFFF, key >> 32
    for _ in range(10):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ low, q & 0xFFFFFFFF, (p >> 32) ^ d ^ high, p & 0xFFFFFFFF
        low, high = (low + 0x9E3779B9) & 0xFFFFFFFF, (high + 0xBB67AE85) & 0xFFFFFFFF
    return a, b, c, d


def key_of(seed, step, micro_batch):
    words = philox(seed, (step & 0xFFFFFFFF, step >> 32, micro_batch, 4))  # 4: what steps draw
    return words[1] << 32 | words[0]


def kept(key, node):
    """Of node number `node` of the file: whether each element stays."""
    return [philox(key, (i, 0, 2 * node, 0))[0] >> 2 >= round(RATIO * 2**30) for i in range(COUNT)]


def tensors(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            raw = data[8 + size + begin:8 + size + end]
            yield name, list(struct.unpack("<%df" % (len(raw) // 4), raw))


def npy(path, shape, values):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (shape,)
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack("<%df" % len(values), *values))


def floats(count, state):
    values = []
    for _ in range(count):
        state = (state * 1103515245 + 12345) % 2**31
        values.append(state / 2**30 - 1)
    return values


def listed(values):
    return "{" + ", ".join("%.6f" % value for value in values) + "}"


# The gradient of a sum of dropped parameters is their masks.
MASKS = """<ir_version: 7, opset_import: ["" : 13]>
masks (float[1] x) => (float loss)
<float[COUNT] u = ONES, float[COUNT] v = ONES, float ratio = {RATIO}, bool yes = {1}>
{
  u_kept = Dropout (u, ratio, yes)
  v_kept = Dropout (v, ratio, yes)
  both = Add (u_kept, v_kept)
  shifted = Mul (both, x)
  loss = ReduceSum <keepdims = 0> (shifted)
}
"""

# Its loss is the part that stays: half of the elements, each twice.
RATE = """<ir_version: 7, opset_import: ["" : 13]>
rate (float[1] x) => (float loss)
<float[1] w = {1.0}, int64[1] shape = {DRAWS}, float half = {0.5}, bool yes = {1}>
{
  all = Expand (w, shape)
  kept = Dropout (all, half, yes)
  shifted = Mul (kept, x)
  loss = ReduceMean <keepdims = 0> (shifted)
}
"""

NETWORK = """<ir_version: 7, opset_import: ["" : 13]>
network (float[2, 24] x) => (float[2, 4] y)
<float[24, 40] a_weight = A, float[40] a_bias = AB, float[40, 4] b_weight = B, float ratio = {RATIO}, bool yes = {1}>
{
  input = Dropout (x, ratio, yes)
  product = MatMul (input, a_weight)
  linear = Add (product, a_bias)
  hidden = Tanh (linear)
  dropped, mask = Dropout <seed = 3> (hidden, ratio, yes)
  factor = Cast <to = 1> (mask)
  twice = Mul (dropped, factor)
  y = MatMul (twice, b_weight)
}
"""


def write():
    text = MASKS.replace("COUNT", str(COUNT)).replace("ONES", listed([1.0] * COUNT))
    open("masks.onnxtxt", "w").write(text.replace("RATIO", str(RATIO)))
    open("rate.onnxtxt", "w").write(RATE.replace("DRAWS", str(DRAWS)))
    network = NETWORK.replace("RATIO", str(RATIO))
    for name, count in ("AB", 40), ("A", 960), ("B", 160):
        network = network.replace("= %s," % name, "= %s," % listed(floats(count, count)))
    open("network.onnxtxt", "w").write(network)
    open("plain.onnxtxt", "w").write(network.replace("yes = {1}", "yes = {0}"))
    npy("one.npy", (8,), [1.0] * 8)  # any number of batches
    npy("x.npy", (32, 24), floats(32 * 24, 1))
    npy("labels.npy", (32, 4), floats(32 * 4, 2))


def check_masks(arguments):
    seen = {}
    for argument in arguments:
        path, numbers = argument.split("=")
        seed, step, batches = map(int, numbers.split(","))
        found = dict(tensors(path))
        for node, name in enumerate(("u", "v")):
            masks = [kept(key_of(seed, step, batch), node) for batch in range(batches)]
            for batch, mask in enumerate(masks):
                seen[seed, step, batch, name] = mask
            # the mean of the micro-batches' gradients, or their sum: 1 / (1 - RATIO) where kept
            for i, value in enumerate(found[name]):
                expected = sum(mask[i] for mask in masks) / (1 - RATIO) / batches
                assert abs(value - expected) < 1e-5, (path, name, i, value, expected)
    masks = list(seen.values())
    for i, a in enumerate(masks):  # all differ: two agree as often as independent ones
        for b in masks[:i]:
            rate, agree = (1 - RATIO)**2 + RATIO**2, sum(x == y for x, y in zip(a, b))
            assert abs(agree - rate * COUNT) < 5 * math.sqrt(rate * (1 - rate) * COUNT), agree
    print("%d masks of %d elements, all different" % (len(masks), COUNT))


def check_rate(loss):
    rate = float(loss) / 2
    sigma = math.sqrt(0.25 / DRAWS)
    print("%d draws: %.6f stay, %.2f sigma from 0.5" % (DRAWS, rate, (rate - 0.5) / sigma))
    assert abs(rate - 0.5) < 4 * sigma


if sys.argv[1] == "write":
    write()
elif sys.argv[1] == "masks":
    check_masks(sys.argv[2:])
elif sys.argv[1] == "key":
    print(*struct.unpack("<q", struct.pack("<Q", key_of(*map(int, sys.argv[2:])))))
else:
    check_rate(sys.argv[2])
