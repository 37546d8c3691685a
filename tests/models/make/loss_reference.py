# SPDX-License-Identifier: Apache-2.0
#
# Computes the losses of losses.py with torch.nn.functional in f64, trains its model with their sum, and
# writes expected/losses.json.
import json
import os

import torch
import torch.nn.functional as F

import losses

STEPS, LEARNING_RATE = 20, 0.05


def read(text):
    """OUTPUT, NAME, settings and factor of one --loss."""
    text, _, factor = text.partition("*")
    head, *parts = text.split(",")
    output, _, name = head.rpartition("=")
    settings = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if equals:
            settings[key] = [value]
        else:
            settings[last].append(part)
        last = key if equals else last
    return output, name, settings, float(factor or 1)


def function(text):
    """Of output and labels; the word of PyTorch for each of ours."""
    _, name, settings, factor = read(text)
    options = {"reduction": settings.pop("reduction", ["mean"])[0]}
    axis = int(settings.pop("axis", ["-1"])[0])
    words = {"class_weights": "weight", "log_target": "log_target", "ignore_index": "ignore_index"}
    for key, values in settings.items():
        if key in ("class_weights", "pos_weight"):
            options[words.get(key, key)] = torch.tensor([float(value) for value in values], dtype=torch.float64)
        elif key == "log_target":
            options[key] = values[0] == "true"
        else:
            options[key] = int(values[0]) if key == "ignore_index" else float(values[0])
    functions = {"mse": F.mse_loss, "l1": F.l1_loss, "huber": F.huber_loss, "smooth_l1": F.smooth_l1_loss,
                 "bce": F.binary_cross_entropy, "bce_with_logits": F.binary_cross_entropy_with_logits, "kl_div": F.kl_div}
    if name == "output":
        return lambda output, labels: factor * output
    if name in functions:
        return lambda output, labels: factor * functions[name](output, labels, **options)
    of = F.cross_entropy if name == "cross_entropy" else F.nll_loss

    def classes(output, labels):  # PyTorch's second axis, or the only one
        moved = output.movedim(axis, 1) if output.dim() > 1 else output
        return factor * of(moved, labels, **options)

    return classes


def distance(text):
    """Of two outputs and labels."""
    _, _, settings, factor = read(text.replace("cosine_embedding,input2=z", "cosine_embedding"))
    return lambda first, second, labels: factor * F.cosine_embedding_loss(
        first, second, labels, margin=float(settings.get("margin", [0])[0]), reduction=settings.get("reduction", ["mean"])[0])


def tensor(shape, values):
    return torch.tensor(values, dtype=torch.int64 if isinstance(values[0], int) else torch.float64).reshape(shape)


def values():
    return [{"case": text, "loss": function(text)(tensor(shape, output), tensor(label_shape, labels)).item()}
            for text, shape, output, label_shape, labels in losses.CASES] + [
            {"case": text, "loss": distance(text)(tensor(shape, first), tensor(shape, second), tensor(label_shape, labels)).item()}
            for text, shape, first, second, label_shape, labels in losses.PAIRS]


def bounds():
    found = []
    for text, row, labels in losses.BOUNDS:
        output = tensor((1, len(row)), row).requires_grad_()
        shape = (1,) if isinstance(labels[0], int) else (1, len(labels))
        function(text)(output, tensor(shape, labels)).backward()
        found.append(output.grad.flatten().tolist())
    return found


def outputs_of(weights, x):
    functions = {None: lambda value: value, "LogSoftmax": lambda value: F.log_softmax(value, -1), "Sigmoid": torch.sigmoid}
    hidden = torch.tanh(x @ weights["w"])
    outputs = {name: functions[applied](hidden @ weights[name]).reshape(len(x), *shape)
               for name, (shape, applied) in losses.HEADS.items()}
    return outputs | {"own": (hidden * hidden).mean()}


def data(samples=losses.SAMPLES):
    x = tensor((losses.SAMPLES, losses.WIDTH), losses.X)[:samples]
    return x, {name: tensor((losses.SAMPLES, *shape), numbers)[:samples] for name, (shape, numbers) in losses.LABELS.items()}


def total(outputs, labels, texts):
    return sum(function(text)(outputs[read(text)[0]], labels.get(read(text)[0])) for text in texts)


def evaluate(samples):
    """Without the model's own loss, of which no sample can be told apart."""
    weights = {name: tensor(shape, losses.WEIGHTS[name]) for name, shape in losses.PARAMETERS.items()}
    x, labels = data(samples)
    outputs = outputs_of(weights, x)
    texts = [text for text in losses.LOSSES if "=output" not in text]
    counted = labels["scores"] != -100
    right = outputs["scores"].argmax(1) == labels["scores"]
    return {"loss": total(outputs, labels, texts).item(), "scores_accuracy": right[counted].double().mean().item(),
            "value_mean_squared_error": F.mse_loss(outputs["value"], labels["value"]).item()}


def train():
    weights = {name: tensor(shape, losses.WEIGHTS[name]).requires_grad_() for name, shape in losses.PARAMETERS.items()}
    optimizer = torch.optim.SGD(weights.values(), lr=LEARNING_RATE)
    x, labels = data()
    found = {"losses": [], "gradient_norms": []}
    for _ in range(STEPS):
        loss = total(outputs_of(weights, x), labels, losses.LOSSES)
        optimizer.zero_grad()
        loss.backward()
        found["losses"].append(loss.item())
        found["gradient_norms"].append(torch.cat([weight.grad.flatten() for weight in weights.values()]).norm().item())
        optimizer.step()
    return found


def main():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "expected")
    with open(os.path.join(folder, "losses.json"), "w") as file:
        json.dump({"torch": torch.__version__, "values": values(), "bounds": bounds(),
                   "evaluations": {samples: evaluate(samples) for samples in (7, 8)},
                   "runs": {"sum": {"f64": train()}}}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
