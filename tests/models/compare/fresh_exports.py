# SPDX-License-Identifier: Apache-2.0
"""Modules as their constructors leave them, exported by both PyTorch exporters with default options: each trains as
PyTorch does, or is refused with the reason that is expected of it here. Prints a table; ends with 1 where a model trains otherwise
or has another answer.

    python tests/models/compare/fresh_exports.py --trainc build/dev/bin/trainc FOLDER            # every family, three seeds
    python tests/models/compare/fresh_exports.py --trainc build/dev/bin/trainc FOLDER fresh_bert # this one

Needs torch, transformers and onnx.
"""
import argparse
import json
import logging
import pathlib
import re
import subprocess
import sys
import warnings

import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "make"))
import families  # noqa: E402
import train_reference  # noqa: E402

WITHIN = 2e-5
FAMILIES = {name: entry for name, entry in families.FAMILIES.items() if families.is_fresh(name)}
FAMILIES["fresh_batch_norm_mlp"] = (families.BatchNormMlp, 22, families.vectors("classes.npy", "cross_entropy"))
FAMILIES["fresh_lstm"] = (families.fresh_lstm, 26, families.tokens("labels.npy"))
BATCH_NORM = ("fresh_densenet", "fresh_batch_norm_mlp")  # trained in train(), whatever mode the file is in
# What the file has lost, as the refusal says it; all others train. Both exporters fold norms of modules in eval() into filters.
REFUSED = {
    ("fresh_mixed_modes", "script"): "the exporter computed initializers from parameters: .* norm after it",
    ("fresh_mixed_modes", "dynamo"): "the exporter folded batch norm away",
    ("fresh_pegasus", "dynamo"): "the exporter merged equal parameters or equal operations",
    ("fresh_batch_norm_mlp", "dynamo"): "the exporter folded batch norm away",
    ("fresh_lstm", "script"): "weights are equal, and the file does not tell",
    ("fresh_t5", "dynamo"): "not exported: ConversionError",  # the exporter's own
}


def run(*words):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.decode(errors="replace").strip()


def export(family, exporter, path, data):
    module, recipe = families.make(family)
    name, file = next(iter(recipe["inputs"].items()))
    options = dict(dynamo=True, verbose=False) if exporter == "dynamo" else dict(dynamo=False)
    torch.onnx.export(module, (torch.from_numpy(data[file][: recipe["batch"]]),), path, input_names=[name], output_names=["logits"], **options)
    return name, file, recipe


def compile_model(trainc, path, recipe, folder, may_freeze):
    """With the patterns that the refusal names, where it asks for a decision and nothing is lost: folded filters that are frozen are another model."""
    words = [trainc, path, "--loss", recipe["loss"], "--quiet", "-o", folder / "out"]
    code, text = run(*words)
    patterns = re.findall(r"--freeze '([^']+)'", text) if code and may_freeze else []
    if patterns:
        code, text = run(*words, *(word for pattern in patterns for word in ("--freeze", pattern)))
    return code, text, "freeze" if patterns else ""


def answer(trainc, family, exporter, folder, data):
    """What happened, and where 20 steps were taken the difference, else 0."""
    try:
        name, file, recipe = export(family, exporter, folder / "m.onnx", data)
    except Exception as problem:  # the exporter's own
        return f"not exported: {type(problem).__name__}", 0
    code, text, advice = compile_model(trainc, folder / "m.onnx", recipe, folder, (family.partition("#")[0], exporter) not in REFUSED)
    if code:
        lines = [line for line in text.splitlines() if "warning" not in line]
        return f"refused ({code}): {lines[0].partition('m.onnx: ')[2]}", 0
    exact, _ = train_reference.train(family, torch.float64, lambda module: train_reference.optimizer_for(module, "adamw"), data)
    numpy.save(folder / "x.npy", data[file])
    numpy.save(folder / "labels.npy", data[recipe["labels"]])
    code, text = run(folder / "out/trainer", "train", "--steps", families.STEPS, "--no-progress", "--overwrite", "--run", folder / "run", "--data",
                     f"{name}={folder}/x.npy", "--data", f"labels={folder}/labels.npy", "--no-shuffle", "--learning-rate",
                     train_reference.LEARNING_RATE, "--weight-decay", train_reference.WEIGHT_DECAY)
    if code:
        return f"trainer ends with {code}: {text.splitlines()[0]}", 0
    lines = [json.loads(line) for line in (folder / "run/log.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if "loss" in line]
    worst = max(abs(a - b) / abs(a) for a, b in zip(exact["losses"], losses, strict=True))
    return f"{worst:.1e}{', ' + advice if advice else ''}", worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainc", required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("families", nargs="*")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    families.trains_batch_norm = lambda family: family.partition("#")[0] in BATCH_NORM
    trainc, data, good = pathlib.Path(options.trainc).resolve(), families.make_data(), True
    print("| family | exporter | largest relative difference of 20 losses from PyTorch's f64 |\n|---|---|---|")
    for family in options.families or FAMILIES:
        build, seed, recipe = FAMILIES[family]
        for number in range(options.seeds):
            variant = f"{family}#{number}"
            families.FAMILIES[variant] = (build, seed + 100 * number, recipe)
            for exporter in ("script", "dynamo"):
                folder = options.folder / variant.replace("#", "_") / exporter
                folder.mkdir(parents=True, exist_ok=True)
                text, difference = answer(trainc, variant, exporter, folder, data)
                refusal = REFUSED.get((family, exporter))
                fine = bool(re.search(refusal, text)) if refusal else 0 < difference <= WITHIN
                good &= fine
                print(f"| {variant} | {exporter} | {text[:160]}{'' if fine else ' WRONG'} |", flush=True)
    return 0 if good else 1


sys.exit(main())
