# SPDX-License-Identifier: Apache-2.0
#
# Writes every fixture `<name>.onnx` of this folder: the modules of families.py
# through both PyTorch exporters. Also writes fixtures.json, which says how each
# was made, for train_reference.py.
import json
import logging
import os
import re
import sys
import warnings

import numpy
import onnx
import torch

import families
import local_functions

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # tests/models
sys.path.insert(0, os.path.join(HERE, "..", "..", "python"))
import trainc  # noqa: E402  (of this tree)

# name: family, exporter ("script", "dynamo" or "trainc"), opset, options:
#   dynamic   symbolic batch and sequence
#   fold      constant folding (script) or optimization (dynamo); on by default
#   external  weights in <name>.onnx.data
#   positions rows of the position table
#   training  batch norm in training mode (script)
FIXTURES = {
    "mlp_relu_script13": ("mlp_relu", "script", 13, {}),
    "mlp_relu_dynamo18": ("mlp_relu", "dynamo", 18, {"dynamic": True, "external": True}),
    "mlp_gelu_script17": ("mlp_gelu", "script", 17, {"dynamic": True}),
    "mlp_gelu_dynamo20": ("mlp_gelu", "dynamo", 20, {"dynamic": True, "stacks": True}),
    "mlp_tanh_gelu_script15": ("mlp_tanh_gelu", "script", 15, {"dynamic": True, "fold": False}),
    "nanogpt_script13": ("nanogpt", "script", 13, {}),
    "nanogpt_script17_dynamic": ("nanogpt", "script", 17, {"dynamic": True}),
    "nanogpt_dynamo18_external": ("nanogpt", "dynamo", 18, {"external": True, "dynamic": True}),
    "nanogpt_dynamo20": ("nanogpt", "dynamo", 20, {"dynamic": True}),
    "nanogpt_dynamo20_static": ("nanogpt", "dynamo", 20, {}),
    "nanogpt_functions": ("nanogpt", "dynamo", 20, {"dynamic": True, "fold": False,
                                                    "functions": True}),
    "nanogpt_erf_script14_dynamic": ("nanogpt_erf", "script", 14, {"dynamic": True}),
    "nanogpt_erf_dynamo20_raw": ("nanogpt_erf", "dynamo", 20, {"dynamic": True, "fold": False}),
    "nanogpt_add_script16": ("nanogpt_add", "script", 16, {}),
    "nanogpt_add_script18_dynamic": ("nanogpt_add", "script", 18, {"dynamic": True}),
    "nanogpt_sdpa_script14": ("nanogpt_sdpa", "script", 14, {"dynamic": True, "fold": False}),
    "nanogpt_sdpa_script20": ("nanogpt_sdpa", "script", 20, {"dynamic": True}),
    "nanogpt_sdpa_dynamo20": ("nanogpt_sdpa", "dynamo", 20, {"dynamic": True}),
    "nanogpt_sdpa_dynamo23": ("nanogpt_sdpa", "dynamo", 23, {"dynamic": True}),
    "gpt2_script13": ("gpt2", "script", 13, {}),
    "gpt2_script17_raw": ("gpt2", "script", 17, {"dynamic": True, "fold": False}),
    "gpt2_dynamo18_raw": ("gpt2", "dynamo", 18, {"dynamic": True, "fold": False}),
    "gpt2_dynamo20": ("gpt2", "dynamo", 20, {"dynamic": True}),
    "gpt2_sdpa_script14": ("gpt2_sdpa", "script", 14, {"dynamic": True}),
    "gpt2_sdpa_dynamo20": ("gpt2_sdpa", "dynamo", 20, {"dynamic": True, "external": True}),
    "fresh_norm_mlp_script17": ("fresh_norm_mlp", "script", 17, {"dynamic": True}),
    "fresh_norm_mlp_dynamo20": ("fresh_norm_mlp", "dynamo", 20, {}),
    "fresh_shared_mlp_script17": ("fresh_shared_mlp", "script", 17, {"dynamic": True}),
    "fresh_shared_mlp_dynamo20": ("fresh_shared_mlp", "dynamo", 20, {}),
    "fresh_bert_script17": ("fresh_bert", "script", 17, {}),
    "fresh_gpt2_script17": ("fresh_gpt2", "script", 17, {}),
    "fresh_gpt2_dynamo20": ("fresh_gpt2", "dynamo", 20, {}),
    "fresh_llama_script17": ("fresh_llama", "script", 17, {}),
    "fresh_llama_dynamo20": ("fresh_llama", "dynamo", 20, {}),
    "fresh_gemma_script17": ("fresh_gemma", "script", 17, {}),
    "fresh_gemma_dynamo20": ("fresh_gemma", "dynamo", 20, {}),
    "fresh_t5_script17": ("fresh_t5", "script", 17, {}),
    "fresh_pegasus_script17": ("fresh_pegasus", "script", 17,
                               {"freeze": ["onnx::Add_.*", ".*final_logits_bias"]}),
    "cnn_script11": ("cnn", "script", 11, {"dynamic": True}),
    "fresh_cnn_dynamo20": ("fresh_cnn", "dynamo", 20, {}),
    "resnet_script13_training": ("resnet", "script", 13, {"training": True, "fold": False}),
    "resnet_script17_training": ("resnet", "script", 17, {"training": True, "fold": False,
                                                          "dynamic": True}),
    "resnet_dynamo20_raw": ("resnet", "dynamo", 20, {"fold": False}),
    "fresh_densenet_dynamo20": ("fresh_densenet", "dynamo", 20, {}),
    "fresh_mixed_modes_trainc20": ("fresh_mixed_modes", "trainc", 20, {"dynamic": True}),
    "lstm_script14": ("lstm", "script", 14, {"dynamic": True}),
    "lstm_dynamo20_raw": ("lstm", "dynamo", 20, {"dynamic": True, "fold": False}),
    "gru_script17_raw": ("gru", "script", 17, {"dynamic": True, "fold": False}),
    "gru_dynamo20_raw": ("gru", "dynamo", 20, {"fold": False}),
    "gru_dynamo20": ("gru", "dynamo", 20, {"dynamic": True}),
    "rnn_script13": ("rnn", "script", 13, {}),
}


def example_input(recipe, data):
    name, file = next(iter(recipe["inputs"].items()))
    return name, torch.from_numpy(data[file][: recipe["batch"]])


def export(fixture, path, data):
    family, exporter, opset, options = FIXTURES[fixture]
    module, recipe = families.make(family)
    name, example = example_input(recipe, data)
    axes = {0: "batch"} if example.dtype == torch.float32 else {
        0: "batch", 1: "sequence"}
    output = "logits" if recipe["loss"] != "mse" else "prediction"
    fold = options.get("fold", True)
    arguments = dict(input_names=[name], output_names=[output], opset_version=opset)
    if exporter == "trainc":
        trainc.export(module, (example,), path, dynamic=bool(options.get("dynamic")), **arguments)
        return
    if exporter == "script":
        if options.get("dynamic"):
            arguments["dynamic_axes"] = {name: axes, output: axes}
        arguments.update(dynamo=False, do_constant_folding=fold)
        if options.get("training"):
            arguments.update(training=torch.onnx.TrainingMode.TRAINING)
    else:
        if options.get("dynamic"):
            arguments["dynamic_shapes"] = ({axis: torch.export.Dim(dim) for axis, dim in
                                            axes.items()},)
        arguments.update(dynamo=True, optimize=fold, verbose=False,
                         external_data=bool(options.get("external")))
    torch.onnx.export(module, (example,), path, **arguments)


def scrub(path, options):
    """Drops what depends on the machine: stack traces with the paths of sources."""
    model = onnx.load(path, load_external_data=False)
    model.doc_string = ""
    for graph in [model.graph] + list(model.functions):
        for node in graph.node:
            node.doc_string = ""
            kept = []
            for entry in node.metadata_props:
                if entry.key == "pkg.torch.onnx.stack_trace":
                    if not options.get("stacks"):
                        continue
                    entry.value = re.sub(r'File "[^"]*/([^/"]*)"', r'File "\1"', entry.value)
                kept.append((entry.key, entry.value))
            del node.metadata_props[:]
            for key, value in kept:
                node.metadata_props.add(key=key, value=value)
    onnx.save(model, path)


def restore_statistics(path, family):
    """Exporting in training mode runs the module, which moves its running statistics."""
    module, _ = families.make(family)
    buffers = dict(module.named_buffers())
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if tensor.name in buffers:
            tensor.CopyFrom(onnx.numpy_helper.from_array(buffers[tensor.name].numpy(), tensor.name))
    onnx.save(model, path)


def main(names):
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    data = families.make_data()
    os.makedirs(os.path.join(HERE, "data"), exist_ok=True)
    for file, values in data.items():
        numpy.save(os.path.join(HERE, "data", file), values)
    families.make_text().tofile(os.path.join(HERE, "data", "text.bin"))
    for fixture, (family, exporter, opset, options) in FIXTURES.items():
        if names and fixture not in names:
            continue
        path = os.path.join(HERE, fixture + ".onnx")
        try:
            export(fixture, path, data)
        except Exception as problem:
            print(f"{fixture}: {type(problem).__name__}: {str(problem)[:300]}", file=sys.stderr)
            continue
        scrub(path, options)
        if options.get("training"):
            restore_statistics(path, family)
        if options.get("functions"):
            local_functions.outline(path)
        model = onnx.load(path)
        onnx.checker.check_model(model)
        print(fixture, model.ir_version, {o.domain: o.version for o in model.opset_import},
              len(model.graph.node), "nodes", os.path.getsize(path), "bytes", flush=True)
    with open(os.path.join(HERE, "fixtures.json"), "w") as file:
        json.dump({name: {"family": family, "exporter": exporter, "opset": opset, **options}
                   for name, (family, exporter, opset, options) in FIXTURES.items()},
                  file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1:])
