# SPDX-License-Identifier: Apache-2.0
"""Losses of torch.nn as words of `--loss`, and the reverse."""
import torch
from torch import nn

from trainc.compiler import CompileError

_NAMES = {nn.CrossEntropyLoss: "cross_entropy", nn.NLLLoss: "nll", nn.HuberLoss: "huber", nn.SmoothL1Loss: "smooth_l1", nn.KLDivLoss: "kl_div",
          nn.MSELoss: "mse", nn.L1Loss: "l1", nn.BCELoss: "bce", nn.BCEWithLogitsLoss: "bce_with_logits"}
_OF_CLASSES = {"cross_entropy", "nll"}
_OWN_WAY = "try: a module that returns its loss, with loss=\"output\""


def _name_of(loss):
    """Of a class that is made from one of torch.nn only where it computes the same."""
    base = next((one for one in type(loss).__mro__ if one in _NAMES), None)
    if base is None:
        name = getattr(loss, "__name__", type(loss).__name__)
        raise CompileError(f"the loss {name} is none that trainc has\n  try: the name of one of docs/losses.md; or a module that returns its "
                           "loss, with loss=\"output\"")
    if type(loss).forward is not base.forward or type(loss).__call__ is not base.__call__:
        raise CompileError(f"the loss {type(loss).__name__} is made from {base.__name__} and computes something else\n  {_OWN_WAY}")
    return _NAMES[base]


def _numbers(values):
    return ",".join(repr(float(one)) for one in values.flatten())


def _positive_weight(weight, axes):
    """Broadcast as PyTorch does it: from the last axis on."""
    long = [axis for axis, size in enumerate(weight.shape) if size != 1]
    if len(long) > 1 or weight.dim() > axes:
        raise CompileError(f"BCEWithLogitsLoss: pos_weight of shape {list(weight.shape)} for an output of {axes} axes: trainc has one number, or "
                           f"one for each element of an axis\n  {_OWN_WAY}")
    axis = long[0] - weight.dim() if long else -1
    return [f"pos_weight={_numbers(weight)}"] + ([f"axis={axis}"] if axis != -1 else [])


def text_of(loss, axes, y):
    """The word after --loss for one of torch.nn's losses, of an output with so many axes and labels `y`. Raises CompileError."""
    if isinstance(loss, str):
        return loss
    name, settings = _name_of(loss), []
    if getattr(loss, "reduction", "mean") != "mean":
        settings.append(f"reduction={loss.reduction}")
    if name in _OF_CLASSES:
        settings += [f"ignore_index={loss.ignore_index}"] if loss.ignore_index != -100 else []
        settings += [f"label_smoothing={loss.label_smoothing}"] if getattr(loss, "label_smoothing", 0) else []
        settings += ["target=probabilities"] if name == "cross_entropy" and isinstance(y, torch.Tensor) and y.is_floating_point() else []
        settings += ["axis=1"] if axes > 2 else []  # as PyTorch has it; the text "cross_entropy" takes the last one
    settings += [f"{key}={getattr(loss, key)}" for key in ("delta", "beta") if hasattr(loss, key)]
    settings += [f"log_target={str(loss.log_target).lower()}"] if name == "kl_div" else []
    if getattr(loss, "weight", None) is not None:
        if name not in _OF_CLASSES:
            raise CompileError(f"{type(loss).__name__}: a weight of each sample's elements is not supported\n  {_OWN_WAY}")
        settings.append("class_weights=" + _numbers(loss.weight))
    if getattr(loss, "pos_weight", None) is not None:
        settings += _positive_weight(loss.pos_weight, axes)
    return ",".join([name, *settings])


def _settings_in(text):
    """"mse,reduction=sum" as a name and a dictionary of texts; numbers between commas belong to the name before them."""
    name, *words = text.split(",")
    settings = {}
    for word in words:
        key, is_setting, value = word.partition("=")
        if is_setting:
            last, settings[key] = key, value
        else:
            settings[last] += "," + word
    return name, settings


def _tensor_of(text):
    if text.endswith(".npy"):
        import numpy
        return torch.from_numpy(numpy.load(text)).float()
    return torch.tensor([float(one) for one in text.split(",")])


def of_text(text):
    """What PyTorch computes for a word after --loss, as a function of output and labels; None where the text has more than
    the loss of the one output."""
    name, settings = _settings_in(text)
    if "=" in name or "*" in text:
        return None
    if name == "output":
        return lambda output, labels: output
    functions = {of_name: kind for kind, of_name in _NAMES.items()}
    if name not in functions or settings.keys() - {"reduction", "ignore_index", "label_smoothing", "target", "axis", "delta", "beta", "log_target",
                                                   "class_weights", "pos_weight"}:
        return None
    arguments = {"reduction": settings.get("reduction", "mean")}
    arguments.update({key: float(settings[key]) for key in ("label_smoothing", "delta", "beta") if key in settings})
    if "ignore_index" in settings:
        arguments["ignore_index"] = int(settings["ignore_index"])
    if "log_target" in settings:
        arguments["log_target"] = settings["log_target"] == "true"
    axis = int(settings.get("axis", -1))
    if "class_weights" in settings:
        arguments["weight"] = _tensor_of(settings["class_weights"])
    if "pos_weight" in settings:
        weight = _tensor_of(settings["pos_weight"])
        arguments["pos_weight"] = weight
    function = functions[name](**arguments)

    def loss(output, labels):
        if name in _OF_CLASSES and output.dim() > 1:  # PyTorch has classes along axis 1
            if labels.is_floating_point():
                labels = labels.movedim(axis, 1)
            output = output.movedim(axis, 1)
        if "pos_weight" in settings and weight.numel() > 1:
            output, labels = output.movedim(axis, -1), labels.movedim(axis, -1)
        if name not in _OF_CLASSES:
            labels = labels.to(output.dtype)
        return function.to(output.device, output.dtype)(output, labels)

    return loss
