# SPDX-License-Identifier: Apache-2.0
"""The models of model_table.py on the stand-in for a GPU: each, as exported by both of PyTorch's exporters, takes some steps there
and on the CPU, with the same batches, by SGD: Adam's first steps have one length for gradients of any size, so that they show what is
rounding in the smallest. Prints the largest relative difference of the losses; ends with 1 where one is above 1e-5, and above 4
times that of the CPU's losses from its own in f64, where a step on the CPU or the stand-in fails, or where no export of a model compiles.

    python tests/models/compare/model_stand_in.py --trainc build/dev/bin/trainc FOLDER            # all, an hour or two on two cores
    python tests/models/compare/model_stand_in.py --trainc build/dev/bin/trainc --steps 5 FOLDER vit lstm

Needs what model_table.py needs, and a build with the stand-in.
"""
import argparse
import json
import logging
import pathlib
import sys
import warnings

import model_table
import numpy

ROOT = pathlib.Path(__file__).resolve().parents[3]
WITHIN, TIMES, RATE = 1e-5, 4, 1e-3
OPTIMIZER = ("--optimizer", "sgd")


def losses(trainer, folder, steps):
    """Of the first steps; the trainer's message where it fails."""
    code, text = model_table.run(
        trainer, "train", "--steps", steps, "--no-progress", "--no-checkpoints", "--overwrite", "--run", folder / "run", "--data", f"x={folder}/x.npy",
        "--data", f"labels={folder}/labels.npy", "--no-shuffle", "--learning-rate", RATE)
    if code:
        return text
    lines = [json.loads(line) for line in (folder / "run/log.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


def answer(trainc, name, exporter, folder, steps):
    shape = model_table.MODELS[name][1]
    x, labels = model_table.data_of(shape and shape[1])
    numpy.save(folder / "x.npy", x)
    numpy.save(folder / "labels.npy", labels)
    way, said = model_table.compiled_export(trainc, name, exporter, folder, x, *OPTIMIZER)
    if way is None:
        return said, False
    code, text = model_table.compiled(trainc, folder / "m.onnx", folder / "cuda", "--target", "cuda", "--source-only", *OPTIMIZER)
    if code == 0:
        script = 'scratch=$1; tree=$2; set -- "$1"; . "$tree/tests/train/cuda.sh"; build_cuda "$FOLDER"'
        code, text = model_table.run("env", f"FOLDER={folder}/cuda", f"TRAINC={trainc}", "bash", "-c", script, "build", folder / "scratch", ROOT)
    if code:
        return f"{way} | no trainer: {text[-300:]}", False
    cpu, cuda = (losses(folder / target / "trainer", folder, steps) for target in ("out", "cuda"))
    for kind, found in (("CPU", cpu), ("stand-in", cuda)):
        if isinstance(found, str):
            return f"{way} | {kind}: {found[-300:]}", False
    worst, bound, beside = model_table.distance(cuda, cpu), WITHIN, ""
    if worst > bound:
        code, text = model_table.compiled(trainc, folder / "m.onnx", folder / "f64", "--precision", "f64", *OPTIMIZER)
        exact = text if code else losses(folder / "f64/trainer", folder, steps)
        if isinstance(exact, str):
            return f"{way} | {worst:.1e}, and in f64: {exact[-300:]}", False
        own = model_table.distance(cpu, exact)
        bound, beside = max(bound, TIMES * own), f" (the CPU's from f64: {own:.1e})"
    return f"{way} | {worst:.1e}{beside}", worst <= bound


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainc", required=True)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)  # what exporters print where they fail
    trainc = pathlib.Path(options.trainc).resolve()
    print(f"| model | exporter | options | largest relative difference of {options.steps} losses from the CPU's |\n|---|---|---|---|")
    good = model_table.print_rows(options.folder, options.models, lambda *of: answer(trainc, *of, options.steps))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
