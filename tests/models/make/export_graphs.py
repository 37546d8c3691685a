# SPDX-License-Identifier: Apache-2.0
#
# Writes graphs/<name>.onnx: models as the exporters write them by default, with
# the weights left out, so that a large one takes little room. `trainc-fill` puts seeded ones in. Where the exporter wrote
# one weight twice (the tied head), the second's doc_string says so.
import logging
import os
import sys
import tempfile
import warnings

import numpy
import onnx
import torch
from onnx import numpy_helper

import families

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # tests/models
LARGE = 64  # elements; smaller initializers keep their values
KEPT = ("pkg.torch.onnx.name_scopes", "pkg.onnxscript.optimizer.folded_from",
        "pkg.torch.export.graph_signature.InputSpec.kind",
        "pkg.torch.export.ExportedProgram.graph_signature")

GPT2 = dict(vocabulary=50257, width=768, heads=12, positions=1024, mask="tril", gelu="tanh")
SMALL = dict(vocabulary=64, width=32, heads=4, layers=2, positions=24, mask="tril", gelu="tanh")
GRAPHS = {
    "gpt2_12": dict(GPT2, layers=12),  # GPT-2 124M
    "gpt2_48": dict(GPT2, layers=48),
    "bytes_4": dict(vocabulary=256, width=192, heads=6, layers=4, positions=256, mask="tril",
                    gelu="tanh"),
    "untied": dict(SMALL, exporter="script"),  # the head is the table's transpose, written out
    "texts_2": dict(family=families.TextClassifier, inputs=["input_ids", "attention_mask"]),
}


def ties(initializers):
    """Initializers that are a copy or the transpose of an earlier one, by value."""
    result, seen = {}, {}
    for tensor in initializers:
        value = numpy_helper.to_array(tensor)
        if value.ndim != 2 or value.dtype != numpy.float32:
            continue
        for key, words in ((value.tobytes(), "copy of "),
                           (numpy.ascontiguousarray(value.T).tobytes(), "transpose of ")):
            if hash(key) in seen:
                result[tensor.name] = words + seen[hash(key)]
        seen.setdefault(hash(value.tobytes()), tensor.name)
    return result


def keep_only(entries):
    kept = [(e.key, e.value) for e in entries if e.key in KEPT]
    del entries[:]
    for key, value in kept:
        entries.add(key=key, value=value)


def strip(model, script):
    tied = ties(model.graph.initializer)
    names = {tensor.name for tensor in model.graph.initializer}
    weights = names if script else {
        value.name for value in model.graph.value_info for entry in value.metadata_props
        if entry.value == "PARAMETER" or entry.key.endswith("folded_from")}
    for tensor in model.graph.initializer:
        if tensor.name in weights and tensor.data_type == onnx.TensorProto.FLOAT \
                and numpy.prod(tensor.dims) >= LARGE:
            tensor.ClearField("raw_data")
            tensor.doc_string = tied.get(tensor.name, "")
    described = [v for v in model.graph.value_info if v.name in names]
    del model.graph.value_info[:]  # shapes follow from the operators
    model.graph.value_info.extend(described)
    for node in model.graph.node:
        if node.op_type in ("Concat", "Reshape"):  # no kernel is named after them
            del node.metadata_props[:]
        keep_only(node.metadata_props)
    for value in list(model.graph.value_info) + list(model.graph.initializer):
        keep_only(value.metadata_props)
    keep_only(model.graph.metadata_props)


def main(names):
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    os.makedirs(os.path.join(HERE, "graphs"), exist_ok=True)
    for name, configuration in GRAPHS.items():
        if names and name not in names:
            continue
        script = configuration.pop("exporter", "dynamo") == "script"
        inputs = configuration.pop("inputs", ["input_ids"])
        module = families.seed_weights(configuration.pop("family", families.NanoGpt)(**configuration), 1)
        examples = tuple(torch.ones((4, 64), dtype=torch.long) for _ in inputs)  # the exporter takes one tensor for one input
        shapes = ({0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence")},) * len(inputs)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            if script:
                torch.onnx.export(module, (examples[0][:, :16],), path, input_names=["input_ids"],
                                  output_names=["logits"], opset_version=17, dynamo=False)
            else:
                torch.onnx.export(module, examples, path, input_names=inputs,
                                  output_names=["logits"], opset_version=20, dynamo=True,
                                  dynamic_shapes=shapes, verbose=False)
            model = onnx.load(path)
        strip(model, script)
        target = os.path.join(HERE, "graphs", name + ".onnx")
        onnx.save(model, target)
        print(name, len(model.graph.node), "nodes", os.path.getsize(target), "bytes", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
