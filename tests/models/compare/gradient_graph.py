# SPDX-License-Identifier: Apache-2.0
"""The graphs of `trainc --write-gradient-graph` in onnxruntime, beside what trainers compute.

    python tests/models/compare/gradient_graph.py --trainc build/dev/bin/trainc FOLDER                 # all fixtures
    python tests/models/compare/gradient_graph.py --trainc build/dev/bin/trainc FOLDER gpt2_dynamo20 --optimizer sgd

Of each fixture the graph passes onnx's full check and runs on the fixture's first batch. Its gradients are compared with
those of `trainer gradients`, its new parameters, buffers and states with the checkpoint after one step, and the slope of
its loss along a direction, by differences, with what the gradients say. Prints a line for each; ends with 1 where a tensor is further off than rounding, or a graph is refused though its optimizer has a form.

Needs numpy, onnx, onnxruntime and safetensors.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

import numpy
import onnx
import onnxruntime
import safetensors.numpy

ROOT = pathlib.Path(__file__).resolve().parents[3]
MODELS = ROOT / "tests/models"
REFUSED = ("adafactor", "muon")  # optimizers that call the runtime's functions
WITHIN = {"f32": 3e-6, "f64": 1e-13}  # of a tensor's 2-norm; 2.2e-6 is a bias that a batch norm cancels all but
SQUARES = 2  # their errors are twice as large
STRIDES = {"float32": (3e-3, 3e-4), "float64": (1e-5,)}  # the better one counts: rounding, or the curve, spoils the other
SLOPE = {"f32": 1e-3, "f64": 1e-7}
DIVIDED = 20  # those of RMSProp's momentum, of gradients divided by their own size
ROUNDING = 1e-5  # of the largest of its kind: a tensor, or a gradient's element, below is rounding altogether
RATE = 1e-3

STEP = r"""
. "$ROOT/tests/train/harness.sh" "$SCRATCH"
recipe "$FIXTURE"
status=0
"$TRAINC" "$TRAINC_MODELS/$FIXTURE.onnx" "${dimensions[@]}" "${frozen[@]}" --loss "$loss" --optimizer "$OPTIMIZER" --precision "$PRECISION" \
  --write-gradient-graph graph.onnx -o out 2>messages.txt || status=$?
[ $status = 0 ] || exit $status
quietly out/trainer gradients "${inputs[@]}" --data "labels=$data/$labels" --checkpoint initial -o gradients.safetensors
train out 1 --learning-rate 1e-3 --run run --overwrite
echo "labels=$data/$labels"
printf '%s\n' "${inputs[@]}" | grep =
"""


def trained(fixture, folder, arguments):
    """Paths of the batch's arrays by name; None where the graph is refused."""
    variables = {"ROOT": str(ROOT), "SCRATCH": str(folder), "FIXTURE": fixture, "TRAINC": arguments.trainc,
                 "OPTIMIZER": arguments.optimizer, "PRECISION": arguments.precision}
    done = subprocess.run(["bash", "-c", STEP, "gradient_graph.test"], env={**os.environ, **variables},
                          capture_output=True, text=True)
    if done.returncode == 4 and not (folder / "graph.onnx").exists():
        return None
    if done.returncode:
        sys.exit(f"{fixture}: {done.stderr}{(folder / 'messages.txt').read_text()}")
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if not line.startswith("="))


def run(path, arrays):
    onnx.checker.check_model(str(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    values = {}
    for wanted in session.get_inputs():
        kind = {"tensor(double)": "f8", "tensor(float)": "f4", "tensor(int64)": "i8", "tensor(int32)": "i4"}[wanted.type]
        if wanted.name.startswith("optimizer/"):
            values[wanted.name] = numpy.zeros(wanted.shape, kind)  # as before the first update
        elif wanted.name == "learning_rate":
            values[wanted.name] = numpy.array(RATE)
        elif wanted.name == "random_key":
            values[wanted.name] = numpy.array(0)
        else:
            values[wanted.name] = numpy.load(arrays[wanted.name])[: wanted.shape[0]].astype(kind)
    results = dict(zip((output.name for output in session.get_outputs()), session.run(None, values)))
    initial = {value.name: onnx.numpy_helper.to_array(value) for value in onnx.load(path).graph.initializer}
    return results, slope_error(lambda changed: session.run(["loss"], {**values, **changed})[0], initial, results)


def slope_error(loss, initial, results):
    """How far differences of the loss are from the gradients, along these and a random direction as long."""
    draw = numpy.random.default_rng(1)
    gradients = {name.removeprefix("gradient of "): value.astype("f8") for name, value in results.items()
                 if name.startswith("gradient of ")}
    random = {name: draw.normal(size=value.shape) for name, value in gradients.items()}
    norm = {key: sum((value ** 2).sum() for value in all.values()) ** 0.5
            for key, all in (("gradient", gradients), ("random", random))}
    direction = {name: gradients[name] / norm["gradient"] + random[name] / norm["random"] for name in gradients}
    expected = sum((gradients[name] * direction[name]).sum() for name in direction)

    def end(far):
        return float(loss({name: numpy.asarray(initial[name] + far * direction[name], initial[name].dtype)
                           for name in direction}))
    strides = STRIDES[str(results["loss"].dtype)]
    return min(abs((end(far) - end(-far)) / (2 * far) - expected) for far in strides) / norm["gradient"]


def distances(ours, theirs):
    """Relative to each tensor's norm; those that are rounding altogether are left out."""
    norms = {name: numpy.linalg.norm(value.astype("f8")) for name, value in theirs.items()}
    floor = ROUNDING * max(norms.values(), default=0)
    return {name: numpy.linalg.norm((ours[name].astype("f8") - value).ravel()) / norms[name]
            for name, value in theirs.items() if norms[name] > floor}


def without_rounding(results, tensors):
    """What was updated in both with zeros where the gradient is rounding: some optimizers divide it by its own size."""
    def masked(values):
        return {name: numpy.where(counts[name], values[name], 0) for name in tensors}
    counts = {}
    for name, value in tensors.items():
        parameter = name.removeprefix("updated ")
        if parameter.startswith("optimizer/"):
            parameter = parameter.split("/", 2)[2]
        size = numpy.abs(results.get("gradient of " + parameter, numpy.ones_like(value)))
        counts[name] = size > ROUNDING * size.max()
    return masked(results), masked(tensors)


def compare(folder, results):
    gradients = safetensors.numpy.load_file(folder / "gradients.safetensors")
    checkpoint = safetensors.numpy.load_file(next((folder / "run/checkpoints").glob("step-*/rank-*")))
    expected = {"gradient": {"gradient of " + name: value for name, value in gradients.items()}}
    for name, value in checkpoint.items():
        kind = name.split("/")[1] if name.startswith("optimizer/") else "parameter"
        expected.setdefault(kind, {})["updated " + name] = value
    for kind, tensors in expected.items():
        there = {name: value for name, value in tensors.items() if name in results}
        if kind != "parameter" and len(there) < len(tensors):  # what is frozen is not updated
            sys.exit(f"the graph has no {sorted(set(tensors) - set(there))}")
        yield kind, distances(*((results, there) if kind == "gradient" else without_rounding(results, there)))


def times(kind, optimizer):
    if optimizer == "rmsprop" and kind == "momentum_buffer":
        return DIVIDED
    return SQUARES if "sq" in kind or kind == "sum" else 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("fixtures", nargs="*")
    parser.add_argument("--trainc", default="trainc")
    parser.add_argument("--optimizer", default="adamw")
    parser.add_argument("--precision", default="f32", choices=sorted(WITHIN))
    arguments = parser.parse_intermixed_args()
    arguments.trainc = str(pathlib.Path(arguments.trainc).resolve())
    fixtures = arguments.fixtures or sorted(path.stem for path in MODELS.glob("*.onnx"))
    counts = {"agrees": 0, "refused": 0, "DIFFERS": 0}
    for fixture in fixtures:
        folder = (arguments.folder / fixture).resolve()
        arrays = trained(fixture, folder, arguments)
        if arrays is None:
            said = (folder / "messages.txt").read_text().splitlines()
            verdict, text = "refused", next(line for line in said if "standard ONNX" in line)
            if arguments.optimizer not in REFUSED:
                verdict = "DIFFERS"
        else:
            results, slope = run(folder / "graph.onnx", arrays)
            worst = {kind: max(far.items(), key=lambda each: each[1], default=("", 0))
                     for kind, far in compare(folder, results)}
            worst["slope"] = ("loss", slope)
            bounds = {kind: WITHIN[arguments.precision] * times(kind, arguments.optimizer) for kind in worst}
            bounds["slope"] = SLOPE[arguments.precision]
            verdict = "agrees" if all(far <= bounds[kind] for kind, (_, far) in worst.items()) else "DIFFERS"
            nodes = len(onnx.load(folder / "graph.onnx").graph.node)
            text = f"{nodes} nodes; " + ", ".join(f"{kind} {far:.1e} ({name})" if far > bounds[kind] else f"{kind} {far:.1e}"
                                                  for kind, (name, far) in worst.items())
        counts[verdict] += 1
        print(f"{fixture}: {verdict}: {text}", flush=True)
    print(json.dumps(counts))
    return 1 if counts["DIFFERS"] else 0


if __name__ == "__main__":
    sys.exit(main())
