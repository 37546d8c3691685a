# SPDX-License-Identifier: Apache-2.0
#
# Trains every family in PyTorch, in f64 and in f32, from the weights and on the
# batches of the fixtures, and writes what must come out:
#
#   expected/<fixture>.json         losses of each optimizer, the recipe, and how each
#                                   parameter is called in the ONNX file
#                                   parameter is called in the ONNX file; under "recurrent" what
#                                   a recurrent operator has in an order of its own
#   expected/<family>.safetensors   first-step gradients (of the f64 run, stored as f32)
#                                   under PyTorch's names
#
# A parameter's ONNX initializer is found by value. Where an exporter untied a
# table, the initializer that Gather reads stays the parameter and the other one
# is listed under "folded".
import json
import os
import re
import sys

import numpy
import onnx
import safetensors.numpy
import torch
from onnx import numpy_helper

import families

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # tests/models
LEARNING_RATE = 1e-3
WEIGHT_DECAY = 0.01
SGD = {"learning_rate": 0.01, "momentum": 0.9, "weight_decay": 0.01}


def optimizer_for(module, kind):
    trained = [p for p in module.parameters() if p.requires_grad]
    matrices = [p for p in trained if p.dim() >= 2]
    vectors = [p for p in trained if p.dim() < 2]
    groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY},
              {"params": vectors, "weight_decay": 0.0}]
    if kind in ("adamw", "tokens"):
        return torch.optim.AdamW(groups, lr=LEARNING_RATE)
    return torch.optim.SGD(groups, lr=SGD["learning_rate"], momentum=SGD["momentum"],
                           nesterov=kind == "nesterov")


def train(family, dtype, make_optimizer, data):
    module, recipe = families.make(family)
    module.to(dtype).train(families.trains_batch_norm(family))
    optimizer = make_optimizer(module)
    name, file = next(iter(recipe["inputs"].items()))
    inputs = torch.from_numpy(data[file])
    labels = torch.from_numpy(data[recipe["labels"]])
    inputs = inputs.to(dtype) if inputs.is_floating_point() else inputs
    labels = labels.to(dtype) if labels.is_floating_point() else labels
    losses, norms, gradients = [], [], None
    for step in range(families.STEPS):
        rows = slice(step * recipe["batch"], (step + 1) * recipe["batch"])
        optimizer.zero_grad()
        loss = families.loss_of(recipe["loss"], module(inputs[rows]), labels[rows])
        loss.backward()
        losses.append(loss.item())
        trained = {n: p.grad for n, p in module.named_parameters() if p.grad is not None}
        norms.append(sum((g.double() ** 2).sum() for g in trained.values()).sqrt().item())
        if gradients is None:
            gradients = {n: g.clone().numpy() for n, g in trained.items()}
        optimizer.step()
    result = {"losses": losses, "gradient_norms": norms}
    if families.trains_batch_norm(family):
        # Running statistics, and what eval() makes of the last batch by them.
        result["buffers"] = {n: b.tolist() for n, b in module.named_buffers() if b.dim()}
        with torch.no_grad():
            result["prediction"] = module.eval()(inputs[rows]).tolist()
    return result, gradients


def train_in_both(family, kind, make_optimizer, data):
    """The numbers of f64 and f32, and the gradients of f64's first step; the kind is for the terminal."""
    exact, gradients = train(family, torch.float64, make_optimizer, data)
    single, _ = train(family, torch.float32, make_optimizer, data)
    worst = max(abs(a - b) / abs(a) for a, b in zip(exact["losses"], single["losses"]))
    print(f"{family:14} {kind:9} loss {exact['losses'][0]:.6f} -> "
          f"{exact['losses'][-1]:.6f}, f32 against f64 {worst:.1e}")
    return {"f64": exact, "f32": single}, gradients


def record(name, family, optimizers):
    """Writes expected/NAME.json: one family trained by each of the optimizers, functions of the module."""
    data = families.make_data()
    runs = {kind: train_in_both(family, kind, make, data)[0] for kind, make in optimizers.items()}
    with open(os.path.join(HERE, "expected", name + ".json"), "w") as file:
        json.dump({"family": family, "runs": runs}, file, indent=1)
        file.write("\n")


def torch_weights(family):
    module, _ = families.make(family)
    return {n: p.detach().numpy() for n, p in module.named_parameters() if p.requires_grad}


def gathered_tables(graph):
    return {node.input[0] for node in graph.node if node.op_type == "Gather"}


def float_initializers(model):
    values = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    return {n: v for n, v in values.items() if v.dtype == numpy.float32}


def sums_by_module(graph):
    """TorchScript's values for `1 + weight`, by the module that multiplies by them."""
    return {node.name.strip("/").rpartition("/")[0].replace("/", "."): name
            for node in graph.node if node.op_type == "Mul"
            for name in node.input if name.startswith("onnx::Mul_")}


def name_used(model, family, torch_name):
    """Of the names of a parameter that a module has twice, the one in dynamo's calls."""
    module, _ = families.make(family)
    parameters = dict(module.named_parameters(remove_duplicate=False))
    calls = " ".join(entry.value for node in model.graph.node for entry in node.metadata_props
                     if entry.key == "pkg.torch.onnx.fx_node")
    for other, parameter in parameters.items():
        placeholder = "%p_" + other.replace(".", "_").lower()
        if parameter is parameters[torch_name] and re.search(placeholder + r"\b", calls):
            return other
    return torch_name


def match(fixture, family):
    """For each torch parameter the ONNX initializers that hold it: the parameter
    itself, and those which an exporter copied or transposed from it."""
    model = onnx.load(os.path.join(HERE, fixture + ".onnx"))
    values, tables = float_initializers(model), gathered_tables(model.graph)
    weights, summed = torch_weights(family), sums_by_module(model.graph)
    parameters, folded = [], []
    for torch_name, weight in weights.items():
        found, cut = [], []
        equal = sum(numpy.array_equal(weight, other) for other in weights.values())
        if equal > 1 or not weight.any():
            # One of several equal ones, which the exporter merged, or zeros, which it took out: it
            # comes back under its name, or under that of the sum which the exporter made of it.
            name = summed.get(torch_name.rpartition(".")[0], name_used(model, family, torch_name))
            parameters.append({"onnx": name, "torch": torch_name, "transposed": False})
            continue
        for name, value in values.items():
            if value.shape == weight.shape and numpy.array_equal(value, weight):
                found.append((name, False))
            elif (value.ndim == 2 and value.shape == weight.shape[::-1]
                  and numpy.array_equal(value.T, weight)):
                found.append((name, True))
            elif (value.ndim >= 2 and weight.ndim == 2 and value.shape[-1] == weight.shape[1]
                  and numpy.array_equal(value.reshape(-1, value.shape[-1]),
                                        weight[: value.shape[-2]])):
                cut.append({"onnx": name, "torch": torch_name, "transposed": False,
                            "rows": value.shape[-2]})
        if not found and cut:
            parameters += cut  # a position table cut to the rows in use
            continue
        if not found:
            print(f"{fixture}: nothing holds {torch_name} {weight.shape}")
            continue
        found.sort(key=lambda f: (f[0] not in tables, f[1], f[0] != torch_name))
        parameters.append({"onnx": found[0][0], "torch": torch_name, "transposed": found[0][1]})
        folded += [{"onnx": name, "torch": torch_name, "transposed": transposed}
                   for name, transposed in found[1:]]
    return parameters, folded


def recurrent(fixture, parameters):
    """Weights whose gates the exporter put into ONNX's order: no module's parameter has their values."""
    model = onnx.load(os.path.join(HERE, fixture + ".onnx"))
    known = {parameter["onnx"] for parameter in parameters}
    return sorted({name for node in model.graph.node if node.op_type in ("LSTM", "GRU", "RNN")
                   for name in node.input[1:4] if name in float_initializers(model)} - known)


def main(names):
    data = families.make_data()
    os.makedirs(os.path.join(HERE, "expected"), exist_ok=True)
    with open(os.path.join(HERE, "fixtures.json")) as file:
        fixtures = json.load(file)
    runs = {}
    for family in families.FAMILIES:
        if names and family not in names:
            continue
        kinds = ["adamw"] + (["sgd", "nesterov"] if family.startswith("mlp") else [])
        kinds += ["tokens"] if family == "nanogpt" else []
        runs[family] = {}
        for kind in kinds:
            batches = families.windows(families.make_text()) if kind == "tokens" else data
            runs[family][kind], gradients = train_in_both(
                family, kind, lambda module, kind=kind: optimizer_for(module, kind), batches)
            if kind == "adamw":
                safetensors.numpy.save_file(
                    {n: g.astype(numpy.float32) for n, g in gradients.items()},
                    os.path.join(HERE, "expected", family + ".safetensors"))
    for fixture, made in fixtures.items():
        family = made["family"]
        if family not in runs:
            continue
        parameters, folded = match(fixture, family)
        reordered = recurrent(fixture, parameters)
        _, recipe = families.make(family)
        with open(os.path.join(HERE, "expected", fixture + ".json"), "w") as file:
            json.dump({"model": fixture + ".onnx", "family": family,
                       "gradients": family + ".safetensors",
                       "dynamic": made.get("dynamic", False),
                       "freeze": made.get("freeze", []), **recipe,
                       "sequence": families.SEQUENCE, "learning_rate": LEARNING_RATE,
                       "weight_decay": WEIGHT_DECAY, "sgd": SGD,
                       "runs": runs[family], "parameters": parameters, "folded": folded,
                       **({"recurrent": reordered} if reordered else {})},
                      file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1:])
