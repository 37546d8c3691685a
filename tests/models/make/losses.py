# SPDX-License-Identifier: Apache-2.0
#
# The cases that losses of the recipe are tested with: losses of one output by themselves, and a model
# of which several outputs have one each. loss_reference.py computes both with PyTorch and records the
# numbers; tests/train/numbers/losses.test writes what it needs from here, without PyTorch.
#
#   python3 losses.py model BATCH >model.onnxtxt
#   python3 losses.py data SAMPLES     x.npy and the labels
#   python3 losses.py options          --loss of each output, one a line
#   python3 losses.py bounds           bounds.onnxtxt, its data and its --loss options
#   python3 losses.py compare GRADIENTS EXPECTED
#   python3 losses.py cases TRAINC_OPT EXPECTED >cases.mlir     for trainc-check-gradient
import json
import math
import re
import struct
import subprocess
import sys


def noise(seed):
    while True:
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        yield (seed >> 40) / 2**24 - 0.5


def numbers(count, seed, scale=2.0):
    draw = noise(seed)
    return [scale * next(draw) for _ in range(count)]


def logarithms(count, classes, seed):
    """Of probabilities, rows of so many classes."""
    scores = numbers(count, seed)
    rows = [scores[i:i + classes] for i in range(0, count, classes)]
    return [value - math.log(sum(map(math.exp, row))) for row in rows for value in row]


def probabilities(count, seed):
    return [0.5 + 0.9 * value for value in numbers(count, seed, 1.0)]


def size(shape):
    return math.prod(shape)


def classes(count, of, seed, ignored={}):
    labels = [int((value + 0.5) * of) for value in numbers(count, seed, 1.0)]
    for i, value in ignored.items():
        labels[i] = value
    return labels


# ---- losses by themselves: text, the output's shape and numbers, the labels' shape and numbers

SCORES = numbers(2 * 3 * 4, 1)
PIXELS = classes(8, 3, 2, {1: -100, 6: -100})
ROWS = numbers(5 * 6, 3)
WORDS = classes(5, 6, 4, {2: 5, 3: 0})
ERRORS = numbers(3 * 4, 5, 4.0)
TARGETS = numbers(3 * 4, 6, 4.0)
LIKELY = probabilities(3 * 4, 7)
MARKS = probabilities(3 * 4, 8)
CASES = [
    ("cross_entropy", (5, 6), ROWS, (5,), WORDS),
    ("cross_entropy,axis=1", (2, 3, 4), SCORES, (2, 4), PIXELS),
    ("cross_entropy,axis=-2,label_smoothing=0.1", (2, 3, 4), SCORES, (2, 4), PIXELS),
    ("cross_entropy,label_smoothing=1", (5, 6), ROWS, (5,), WORDS),
    ("cross_entropy,axis=1,class_weights=0.5,2,1.25", (2, 3, 4), SCORES, (2, 4), PIXELS),
    ("cross_entropy,axis=1,class_weights=0.5,2,0,label_smoothing=0.25", (2, 3, 4), SCORES, (2, 4), PIXELS),
    ("cross_entropy,ignore_index=5", (5, 6), ROWS, (5,), WORDS),
    ("cross_entropy,reduction=sum,ignore_index=0", (5, 6), ROWS, (5,), WORDS),
    ("cross_entropy,axis=1,reduction=sum,class_weights=0.5,2,1.25,label_smoothing=0.1", (2, 3, 4), SCORES, (2, 4), PIXELS),
    ("cross_entropy", (1, 1), [0.25], (1,), [0]),
    ("cross_entropy", (4,), ROWS[:4], (), [2]),
    ("nll", (5, 6), logarithms(30, 6, 3), (5,), WORDS),
    ("nll,axis=1,class_weights=0.5,2,1.25,ignore_index=2", (2, 3, 4), SCORES, (2, 4), [abs(label) % 3 for label in PIXELS]),
    ("nll,reduction=sum", (5, 6), logarithms(30, 6, 3), (5,), WORDS),
    ("mse", (3, 4), ERRORS, (3, 4), TARGETS),
    ("mse,reduction=sum*0.25", (3, 4), ERRORS, (3, 4), TARGETS),
    ("l1", (3, 4), ERRORS, (3, 4), TARGETS),
    ("l1,reduction=sum", (1,), ERRORS[:1], (1,), TARGETS[:1]),
    ("huber", (3, 4), ERRORS, (3, 4), TARGETS),
    ("huber,delta=0.3,reduction=sum", (3, 4), ERRORS, (3, 4), TARGETS),
    ("smooth_l1", (3, 4), ERRORS, (3, 4), TARGETS),
    ("smooth_l1,beta=0.3", (3, 4), ERRORS, (3, 4), TARGETS),
    ("smooth_l1,beta=0", (3, 4), ERRORS, (3, 4), TARGETS),
    ("bce", (3, 4), LIKELY, (3, 4), MARKS),
    ("bce,reduction=sum*-2", (3, 4), LIKELY, (3, 4), [0.0, 1.0] * 6),
    ("bce_with_logits", (3, 4), ERRORS, (3, 4), MARKS),
    ("bce_with_logits,pos_weight=3", (3, 4), ERRORS, (3, 4), MARKS),
    ("bce_with_logits,pos_weight=0.5,1,2,3,reduction=sum", (3, 4), ERRORS, (3, 4), MARKS),
    ("kl_div", (3, 4), logarithms(12, 4, 9), (3, 4), MARKS),
    ("kl_div,reduction=batchmean", (3, 4), logarithms(12, 4, 9), (3, 4), MARKS),
    ("kl_div,reduction=sum", (3, 4), logarithms(12, 4, 9), (3, 4), MARKS),
    ("kl_div,log_target=true,reduction=batchmean", (3, 4), logarithms(12, 4, 9), (3, 4), logarithms(12, 4, 10)),
]

# Losses of two outputs: text, their shape and the numbers of each, the labels' shape and numbers
TURNED = numbers(3 * 4, 11)
SIGNS = [1.0, -1.0, -1.0]
PAIRS = [
    ("y=cosine_embedding,input2=z", (3, 4), ERRORS, TURNED, (3,), SIGNS),
    ("y=cosine_embedding,input2=z,margin=-0.75,reduction=sum", (3, 4), ERRORS, TURNED, (3,), SIGNS),
    ("y=cosine_embedding,input2=z,margin=0.9*2", (3, 4), ERRORS, [2 * value for value in ERRORS[:8]] + TURNED[8:], (3,), [-1.0, 1.0, 0.0]),
    ("y=cosine_embedding,input2=z,margin=0.25", (1, 1), ERRORS[:1], TURNED[:1], (1,), [-1.0]),
    ("y=cosine_embedding,input2=z", (5,), ERRORS[:5], TURNED[:5], (), [1.0]),
]


# At the ends of what an output can be: of each loss one row, which is a parameter.
BOUNDS = [
    ("bce", [0.0, 1.0, 0.5], [1.0, 0.0, 1.0]),
    ("bce_with_logits,pos_weight=3", [200.0, -200.0, 0.5, -90.0], [0.0, 1.0, 1.0, 0.0]),
    ("cross_entropy,label_smoothing=0.25*1e-20", [1e30, 0.0, -1e30], [1]),
    ("cross_entropy,class_weights=1,0.5,2", [100.0, -100.0, 3.0], [2]),
    ("huber", [1.0, -1.0, 0.0, 1e18], [0.0, 0.0, 0.0, 0.0]),
    ("smooth_l1,beta=0.5*2", [0.5, -0.5, 0.0], [0.0, 0.0, 0.0]),
    ("l1", [2.0, -2.0, 1.0], [2.0, 2.0, 1.5]),
    ("kl_div", [-1e30, -0.5, 0.0], [0.0, 1.0, 0.5]),
]


def bounds():
    weights = ",\n ".join(f"float[1, {len(row)}] w{i} = {{{', '.join(map(repr, row))}}}" for i, (_, row, _) in enumerate(BOUNDS))
    outputs = ", ".join(f"float[1, {len(row)}] y{i}" for i, (_, row, _) in enumerate(BOUNDS))
    body = "".join(f"  y{i} = Add (x, w{i})\n" for i in range(len(BOUNDS)))
    with open("bounds.onnxtxt", "w") as file:
        file.write(f"""<ir_version: 7, opset_import: ["" : 13]>
bounds (float[1, 1] x) => ({outputs})
<{weights}>
{{
{body}}}
""")
    save("x.npy", (1, 1), [0.0], ("<f4", "f"))
    for i, (text, _, labels) in enumerate(BOUNDS):
        save(f"y{i}.npy", (1,) if isinstance(labels[0], int) else (1, len(labels)), labels, ("<f4", "f"))
        print(f"y{i}={text}")


def compare(gradients, expected):
    with open(gradients, "rb") as file:
        data = file.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    with open(expected) as file:
        rows = json.load(file)["bounds"]
    for i, row in enumerate(rows):
        begin, end = header[f"w{i}"]["data_offsets"]
        found = struct.unpack(f"<{len(row)}f", data[8 + size + begin:8 + size + end])
        for a, b in zip(found, row):
            if not abs(a - b) <= max(1e-6 * abs(b), 1e-38):  # below are not normal floats
                sys.exit(f"{BOUNDS[i][0]}: {found}, expected {row}")


def dense(shape, values, kind):
    def nested(shape, values):
        if not shape:
            return repr(values[0])
        step = len(values) // shape[0]
        return "[" + ", ".join(nested(shape[1:], values[i * step:(i + 1) * step]) for i in range(shape[0])) + "]"

    return f"dense<{nested(shape, values)}> : tensor<{'x'.join(map(str, (*shape, kind)))}>"


def case_ir(trainc_opt, number, case, expected):
    """The loss as attach-loss builds it, without roles and without all other results."""
    text, shape, *outputs, label_shape, labels = case
    kind = "x".join(map(str, (*shape, "f64")))
    names = ["xy", "wz"][:len(outputs)]
    ir = f"""module attributes {{train.losses = ["{text}"]}} {{
  func.func @model({", ".join(f'%{x}: tensor<{kind}> {{train.role = #train.input<"{x}">}}' for x, _ in names)})
      -> ({", ".join(f'tensor<{kind}> {{train.role = #train.output<"{y}">}}' for _, y in names)}) {{
    return {", ".join(f"%{x}" for x, _ in names)} : {", ".join(f"tensor<{kind}>" for _ in names)}
  }}
}}
"""
    built = subprocess.run([trainc_opt, "-attach-loss"], input=ir, capture_output=True, text=True, check=True).stdout
    body = built[built.index("  func.func @model"):built.rindex("}")]
    body = re.sub(r" \{train\.role = #train[^}]*\}", "", body)
    body = re.sub(r"return (%[\w.]+),.* : tensor<f64>,.*", r"return \1 : tensor<f64>", body)
    label_kind = "i64" if isinstance(labels[0], int) else "f64"
    given = [dense(shape, output, "f64") for output in outputs] + [dense(label_shape, labels, label_kind)]
    attributes = (f"check.inputs = [{', '.join(given)}], "
                  f"check.results = [{dense((), [expected], 'f64')}]")
    head, rest = body.split("\n", 1)
    head = re.sub(r" -> .* \{$", f" -> tensor<f64> attributes {{{attributes}}} {{", head).replace("@model", f"@numbers_case_{number}")
    return f"// {text}\n// NUMBERS\n{head}\n{rest}"


# ---- a model with several

SAMPLES, WIDTH, HIDDEN = 8, 3, 5
HEADS = {  # of a hidden row: sizes of the output, what makes it of the product
    "scores": ((5, 4), None), "words": ((6,), "LogSoftmax"), "value": ((2,), None), "flags": ((3,), None),
    "chances": ((3,), "Sigmoid"), "spread": ((4,), "LogSoftmax")}
LOSSES = [
    "scores=cross_entropy,axis=1,label_smoothing=0.1,class_weights=0.5,2,1,0.25,1.5*0.3",
    "words=nll,ignore_index=0",
    "value=mse*0.5",
    "value=smooth_l1,beta=0.1",
    "flags=bce_with_logits,pos_weight=0.5,2,3*2",
    "chances=bce,reduction=sum*0.05",
    "spread=kl_div,reduction=batchmean",
    "own=output*0.01",
]
PARAMETERS = {"w": (WIDTH, HIDDEN), **{name: (HIDDEN, size(shape)) for name, (shape, _) in HEADS.items()}}
WEIGHTS = {name: numbers(size(shape), 20 + i) for i, (name, shape) in enumerate(PARAMETERS.items())}
X = numbers(SAMPLES * WIDTH, 30)
LABELS = {  # some micro-batches have no label that counts
    "scores": ((4,), classes(SAMPLES * 4, 5, 31, {0: -100, 3: -100, **{i: -100 for i in range(8, 12)}, 17: -100})),
    "words": ((), classes(SAMPLES, 6, 32, {1: 0, 2: 0, 6: 0})),
    "value": ((2,), numbers(SAMPLES * 2, 33)),
    "flags": ((3,), [float(value > 0) for value in numbers(SAMPLES * 3, 34)]),
    "chances": ((3,), probabilities(SAMPLES * 3, 35)),
    "spread": ((4,), [0.0] + [math.exp(value) for value in logarithms(SAMPLES * 4, 4, 36)][1:])}


def model(batch):
    def listed(values):
        return "{" + ", ".join(map(repr, values)) + "}"

    outputs = ", ".join(f"double[{', '.join(map(str, (batch, *shape)))}] {name}" for name, (shape, _) in HEADS.items())
    weights = ",\n ".join(f"double[{', '.join(map(str, shape))}] {name}_weight = {listed(WEIGHTS[name])}"
                          for name, shape in PARAMETERS.items())
    lines = ["product = MatMul (x, w_weight)", "hidden = Tanh (product)", "squares = Mul (hidden, hidden)",
             "own = ReduceMean <keepdims = 0> (squares)"]
    for name, (shape, function) in HEADS.items():
        last = f"{name}_rows" if len(shape) > 1 else name
        lines.append(f"{name + '_product' if function else last} = MatMul (hidden, {name}_weight)")
        if function:
            lines.append(f"{name} = {function} ({name}_product)")
        if len(shape) > 1:
            lines += [f"{name}_shape = Constant <value_ints = [{', '.join(map(str, (batch, *shape)))}]> ()",
                      f"{name} = Reshape ({last}, {name}_shape)"]
    body = "".join(f"  {line}\n" for line in lines)
    return f"""<ir_version: 7, opset_import: ["" : 13]>
heads (double[{batch}, {WIDTH}] x) => ({outputs}, double own)
<{weights}>
{{
{body}}}
"""


def save(path, shape, values, floats=("<f8", "d")):
    kind, code = ("<i8", "q") if isinstance(values[0], int) else floats
    header = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (kind, tuple(shape))
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(values)}{code}", *values))


def main(command, *words):
    if command == "model":
        print(model(int(words[0])), end="")
    elif command == "data":
        samples = int(words[0])
        save("x.npy", (samples, WIDTH), X[:samples * WIDTH])
        for name, (shape, values) in LABELS.items():
            save(f"{name}.npy", (samples, *shape), values[:samples * size(shape)])
    elif command == "bounds":
        bounds()
    elif command == "compare":
        compare(*words)
    elif command == "options":
        print("\n".join(LOSSES))
    else:
        with open(words[1]) as file:
            expected = json.load(file)["values"]
        cases = [case_ir(words[0], i, case, expected[i]["loss"]) for i, case in enumerate(CASES + PAIRS)]
        print("\n// -----\n\n".join(cases), end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
