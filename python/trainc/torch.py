# SPDX-License-Identifier: Apache-2.0
"""A compiled step in a PyTorch loop.

    step = trainc.torch.TrainStep(module, "cross_entropy", example=(x, y))
    for x, y in loader:
        loss = step(x, y, learning_rate=1e-3)
    step.sync()   # the module has the trained parameters

Forward pass, backward pass and update are one call of a compiled model; the module is what it was until `sync`.
"""
import json
import os
import struct
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

from trainc.compiler import CompileError, library_of
from trainc.export import ExportError, export_without_values
from trainc.model import Model, ModelError

__all__ = ["TrainStep", "CompileError", "ExportError", "ModelError"]


def _loss_text(loss, axes, y):
    """The word after --loss for one of torch.nn's losses, of an output with so many axes and labels `y`."""
    if isinstance(loss, str):
        return loss
    settings = []
    if getattr(loss, "reduction", "mean") != "mean":
        settings.append(f"reduction={loss.reduction}")
    if isinstance(loss, nn.CrossEntropyLoss):
        name = "cross_entropy"
        settings += [f"ignore_index={loss.ignore_index}"] if loss.ignore_index != -100 else []
        settings += [f"label_smoothing={loss.label_smoothing}"] if loss.label_smoothing else []
        settings += ["target=probabilities"] if isinstance(y, torch.Tensor) and y.is_floating_point() else []
    elif isinstance(loss, nn.NLLLoss):
        name = "nll"
        settings += [f"ignore_index={loss.ignore_index}"] if loss.ignore_index != -100 else []
    elif isinstance(loss, nn.HuberLoss):
        name, settings = "huber", [*settings, f"delta={loss.delta}"]
    elif isinstance(loss, nn.SmoothL1Loss):
        name, settings = "smooth_l1", [*settings, f"beta={loss.beta}"]
    elif isinstance(loss, nn.KLDivLoss):
        name, settings = "kl_div", [*settings, f"log_target={str(loss.log_target).lower()}"]
    else:
        names = {nn.MSELoss: "mse", nn.L1Loss: "l1", nn.BCELoss: "bce", nn.BCEWithLogitsLoss: "bce_with_logits"}
        if type(loss) not in names:
            raise CompileError(f"the loss {type(loss).__name__} is none that trainc has\n  try: the name of one of docs/losses.md; or a "
                               "module that returns its loss, with loss=\"output\"")
        name = names[type(loss)]
    if isinstance(loss, (nn.CrossEntropyLoss, nn.NLLLoss)) and axes > 2:
        settings.append("axis=1")  # as PyTorch has it; the text "cross_entropy" takes the last one
    if getattr(loss, "weight", None) is not None:
        if not isinstance(loss, (nn.CrossEntropyLoss, nn.NLLLoss)):
            raise CompileError(f"{type(loss).__name__}: a weight of each sample's elements is not supported")
        settings.append("class_weights=" + ",".join(repr(float(one)) for one in loss.weight))
    if getattr(loss, "pos_weight", None) is not None:
        settings.append("pos_weight=" + ",".join(repr(float(one)) for one in loss.pos_weight.flatten()))
    return ",".join([name, *settings])


# What torch.optim's groups have that says how a step is computed, and not what.
_WAYS = {"params", "initial_lr", "foreach", "fused", "capturable", "differentiable"}


def _settings_of(name, group):
    """Hyperparameters of a group of a torch.optim optimizer by the library's names. What it has no name for must be off."""
    known = {"adam": {"eps", "weight_decay"}, "sgd": {"momentum", "dampening", "nesterov", "weight_decay"},
             "adagrad": {"lr_decay", "eps", "weight_decay"}, "rmsprop": {"alpha", "eps", "momentum", "weight_decay"},
             "nadam": {"eps", "momentum_decay", "weight_decay"}, "adafactor": {"beta2_decay", "d", "weight_decay"}}
    known["adamw"] = known["adam"]
    if name not in known:
        raise CompileError(f"torch.optim's {name} is none that trainc has\n  try: one of {', '.join(sorted(known))}")
    settings, refused = {}, []
    for key, value in group.items():
        if key == "lr":
            settings["learning_rate"] = float(value)
        elif key == "betas" and name in ("adam", "adamw", "nadam"):
            settings["beta1"], settings["beta2"] = map(float, value)
        elif key == "eps" and name == "adafactor":
            settings.update({f"eps{i}": float(one) for i, one in enumerate(value, 1) if one is not None})
        elif key in known[name]:
            settings[key] = float(value)
        elif key == "decoupled_weight_decay" and value and name in ("adam", "adamw"):
            if name != "adamw":
                refused.append(key)
        elif key not in _WAYS and value:
            refused.append(f"{key}={value}")
    if refused:
        raise CompileError(f"torch.optim's {name} with {', '.join(refused)}, which trainc does not have")
    return settings


def _read_safetensors(path):
    data = Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    types = {"F32": torch.float32, "F64": torch.float64, "I64": torch.int64}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        values = torch.frombuffer(bytearray(data[begin:end]), dtype=types[entry["dtype"]]) if end > begin else torch.empty(0)
        yield name, values.reshape(entry["shape"])


def _write_safetensors(path, tensors):
    header, offset = {}, 0
    types = {torch.float32: "F32", torch.float64: "F64", torch.bfloat16: "BF16", torch.float16: "F16"}
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": types[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes() if tensor.numel() else b"")


def _mu_product(group, steps):
    """What torch.optim.NAdam multiplies up from step to step; the compiled one follows from the number of steps."""
    product = 1.0
    for step in range(1, steps + 1):
        product *= group["betas"][0] * (1.0 - 0.5 * 0.96 ** (step * group["momentum_decay"]))
    return torch.tensor(product)


class TrainStep:
    """Forward pass, backward pass and update of a module as one compiled call.

    module          what is trained; its parameters with requires_grad, in the modes that its parts are in
    loss            of the module's output: a loss of torch.nn with its settings, or text for `--loss`, such as
                    "cross_entropy" of the last axis, or "OUTPUT=mse" where there are several outputs
    optimizer       "adamw", "sgd", ... (docs/trainc.md), or one of torch.optim: its kind and its hyperparameters, as they
                    are now; with a scheduler give the rate in each call
    example         (x, y): inputs and labels of a batch; x is a tensor, a tuple of them or a dictionary by name
    micro_batches   accumulate() so often less one, then a call: a step over all of them
    threads, seed   as of trainc.Model
    settings        hyperparameters: learning_rate=1e-3, weight_decay=0.01, clip_norm=1
    compile         further options of trainc, as a dictionary: {"precision": "bf16"}

    What is compiled is kept in a cache (trainc.compile). Raises ExportError and CompileError, which list what is missing.
    """

    def __init__(self, module, loss, optimizer="adamw", *, example, micro_batches=1, threads=0, seed=0, compile=None, **settings):
        self.module = module
        self._torch_optimizer = optimizer if isinstance(optimizer, torch.optim.Optimizer) else None
        if self._torch_optimizer is not None:
            if len(optimizer.param_groups) != 1:
                raise CompileError("an optimizer with several groups of parameters\n  try: its name, and compile={\"group\": ...}")
            name = type(optimizer).__name__.lower()
            settings = {**_settings_of(name, optimizer.param_groups[0]), **settings}
            optimizer = name
            given = {id(one) for one in self._torch_optimizer.param_groups[0]["params"]}
            if given != {id(one) for one in module.parameters() if one.requires_grad}:
                raise CompileError("the optimizer's parameters are not those of the module that have requires_grad\n  try: "
                                   "requires_grad_(False) for those that it does not have")
        self._optimizer_name = optimizer
        x, y = example
        args, kwargs = ((), dict(x)) if isinstance(x, Mapping) else ((x,) if isinstance(x, torch.Tensor) else tuple(x), {})
        folder = self._compiled(args, kwargs, y, loss, optimizer, compile or {})
        self.model = Model(folder, threads=threads, seed=seed, micro_batches=micro_batches)
        names = list(self.model.inputs)
        self._label = names[-1] if y is not None else None
        self._names = names[:-1] if y is not None else names
        self.model.set(**settings)
        self._passes = 0  # since the module was written or read
        self.load()

    def _compiled(self, args, kwargs, y, loss, optimizer, options):
        with tempfile.TemporaryDirectory(prefix="trainc-") as work:
            path = os.path.join(work, "module.onnx")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                axes = export_without_values(self.module, args, path, kwargs=kwargs)
            options = {"decay": ".*", **options}  # PyTorch's optimizers decay every parameter
            return library_of(path, loss=_loss_text(loss, axes, y), optimizer=optimizer, is_temporary=True, **options)

    def load(self, optimizer=None):
        """Takes parameters and buffers from the module, and the optimizer's state from the one of torch.optim that was
        given at first, or from `optimizer`. What was accumulated is forgotten."""
        optimizer = self._checked(optimizer)
        with tempfile.TemporaryDirectory(prefix="trainc-") as work:
            path = os.path.join(work, "state.safetensors")
            state = self.module.state_dict()
            _write_safetensors(path, {name: tensor for name, tensor in state.items() if tensor.is_floating_point()})
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                self.model.load_state_dict(path)
            for warning in told:  # one text has all that the call says; what is lacking would be zeros
                if "initial values have" in str(warning.message):
                    raise ModelError(4, str(warning.message))
            states = self._states_of(optimizer) if optimizer is not None else {}
            if states:
                path = os.path.join(work, "optimizer.safetensors")
                _write_safetensors(path, states)
                self.model.load_optimizer_state(path)
        self._passes = 0

    def _checked(self, optimizer):
        optimizer = optimizer or self._torch_optimizer
        if optimizer is not None and type(optimizer).__name__.lower() != self._optimizer_name:
            raise ModelError(2, f"the step trains with {self._optimizer_name}; {type(optimizer).__name__} has other states\n"
                                "  try: an optimizer of that kind")
        return optimizer

    def _states_of(self, optimizer):
        states = {}
        for name, parameter in self.module.named_parameters(remove_duplicate=False):
            for slot, value in optimizer.state.get(parameter, {}).items():
                if isinstance(value, torch.Tensor):
                    states[f"state.{name}.{slot}"] = value
        return states

    def _batch(self, x, y):
        if isinstance(x, Mapping):
            batch = dict(x)
        else:
            values = (x,) if isinstance(x, torch.Tensor) else tuple(x)
            batch = dict(zip(self._names, values, strict=True))
        if y is not None:
            batch[self._label] = y
        return batch

    def __call__(self, x, y=None, **settings):
        """A step over a batch, and what was accumulated before. Returns the loss of the step."""
        self.model.set(**settings)
        self.accumulate(x, y)
        return self.model.update()

    def accumulate(self, x, y=None):
        """Forward and backward pass of a micro-batch. Returns its loss."""
        loss = self.model.forward_backward(self._batch(x, y))
        self._passes += 1
        return loss

    def evaluate(self, x, y=None):
        """The loss in inference mode."""
        return self.model.evaluate(self._batch(x, y))

    def discard(self):
        """Forgets the micro-batches since the last step."""
        self.model.discard()

    @property
    def last(self):
        """Of the last step: loss, gradient_norm, applied, step."""
        return self.model.last

    def sync(self, optimizer=None):
        """Writes parameters and buffers back into the module, and the optimizer's state into one of torch.optim: the one
        that was given at first, or `optimizer`."""
        optimizer = self._checked(optimizer)
        own = self.module.state_dict(keep_vars=True)
        with tempfile.TemporaryDirectory(prefix="trainc-") as work, torch.no_grad():
            path = os.path.join(work, "state.safetensors")
            self.model.save_state_dict(path)
            for name, values in _read_safetensors(path):
                if name in own:
                    own[name].copy_(values.reshape(own[name].shape))
            for part in self.module.modules():
                if part.training and getattr(part, "num_batches_tracked", None) is not None:
                    part.num_batches_tracked += self._passes
            if optimizer is not None:
                path = os.path.join(work, "optimizer.safetensors")
                self.model.save_optimizer_state(path)
                self._fill(optimizer, path)
        self._passes = 0
        return self.module

    def _fill(self, optimizer, path):
        named = {}
        for key, value in _read_safetensors(path):
            name, _, slot = key.removeprefix("state.").rpartition(".")
            named.setdefault(name, {})[slot] = value
        for name, parameter in self.module.named_parameters(remove_duplicate=False):
            if name in named and parameter.requires_grad:
                optimizer.state[parameter] = named[name]
                if self._optimizer_name == "nadam":
                    group = next(group for group in optimizer.param_groups if any(one is parameter for one in group["params"]))
                    named[name]["mu_product"] = _mu_product(group, int(named[name]["step"]))
