# SPDX-License-Identifier: Apache-2.0
"""Statistics of the tensors of a PyTorch training, in the format of `trainer train --watch`.

One file; it needs torch alone. `trainc-compare statistics` holds the two against each other and names
the first tensor that differs (docs/observe.md).

    watch = Statistics(module, optimizer, "torch.jsonl")
    for inputs, labels in batches:
        optimizer.zero_grad()
        loss(module(inputs), labels).backward()
        optimizer.step()
    watch.close()
"""
import json
import math
import re

import torch

FORMAT, VERSION = "trainc-statistics", 1
LOWEST_EXPONENT, HIGHEST_EXPONENT = -64, 63
SKETCHES = 4


def _signs(places):
    """Bit k: whether element `places[i]` counts negatively in sum k (lowbias32 by Chris Wellons)."""
    bits = (places ^ (places >> 32)) & 0xFFFFFFFF
    bits = ((bits ^ (bits >> 16)) * 0x7FEB352D) & 0xFFFFFFFF
    bits = ((bits ^ (bits >> 15)) * 0x846CA68B) & 0xFFFFFFFF
    return bits ^ (bits >> 16)


def statistics_of(tensor):
    """What is told of a tensor: sums in f64; mean, deviation and bounds are of its finite elements."""
    values = tensor.detach().to("cpu").reshape(-1)
    values = values.to(torch.int64).to(torch.float64) if values.dtype == torch.bool else values.to(torch.float64)
    finite = torch.isfinite(values)
    zeroed = torch.where(finite, values, torch.zeros_like(values))
    kept = values[finite]
    signs = _signs(torch.arange(values.numel(), dtype=torch.int64))
    nonzero = kept[kept != 0]
    exponents = (torch.frexp(nonzero)[1] - 1).clamp(LOWEST_EXPONENT, HIGHEST_EXPONENT)
    histogram = []
    for exponent in exponents.unique().tolist():
        of = nonzero[exponents == exponent]
        histogram.append([exponent, int((of < 0).sum()), int((of > 0).sum())])
    any_finite = kept.numel() > 0
    mean = float(kept.mean()) if any_finite else None
    return {
        "min": float(kept.min()) if any_finite else None,
        "max": float(kept.max()) if any_finite else None,
        "mean": mean,
        "std": math.sqrt(max(float((kept * kept).mean()) - mean * mean, 0.0)) if any_finite else None,
        "abs_mean": float(kept.abs().mean()) if any_finite else None,
        "norm": float(zeroed.norm()),
        "zeros": int((values == 0).sum()),
        "nan": int(torch.isnan(values).sum()),
        "inf": int(torch.isinf(values).sum()),
        "sketch": [float((zeroed * (1 - 2 * ((signs >> k) & 1))).sum()) for k in range(SKETCHES)],
        "histogram": histogram,
    }


def _unwrapped(module):
    while True:
        if isinstance(module, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
            module = module.module
        elif isinstance(getattr(module, "_orig_mod", None), torch.nn.Module):
            module = module._orig_mod
        else:
            return module


class Statistics:
    """Writes a line for the output of every module and its gradient, and after each step of the optimizer for every
    parameter, its gradient and its update.

    module, optimizer: what is trained; of a module that DataParallel or torch.compile has wrapped, what is inside
    path: the file, written anew
    scaler: the GradScaler, where there is one: gradients are those of the loss itself, before any clipping
    names: a regular expression; tensors are watched whose names it matches as a whole. A module's output is called
        what the module is called, with `gradient of ` in front for its gradient and `update of ` for what a step
        added to a parameter.
    """

    def __init__(self, module, optimizer, path, names=".*", scaler=None):
        module = _unwrapped(module)
        self._scaler = scaler
        self._gradients = {}  # as the backward passes of the step left them
        self._matches = re.compile(names).fullmatch
        self._parameters = dict(module.named_parameters())
        self._buffers = dict(module.named_buffers())
        self._before = {}
        self._calls = {}  # of each module
        self._step, self._micro_batch = 1, -1
        self._file = open(path, "w", encoding="utf-8")
        self._write({"format": FORMAT, "version": VERSION, "model": type(module).__name__, "rank": 0, "ranks": 1})
        self._handles = [module.register_forward_pre_hook(self._begin_micro_batch)]
        for name, child in module.named_modules():
            if name:
                self._handles.append(child.register_forward_hook(self._hook_of(name)))
        for name, parameter in self._parameters.items():
            if parameter.requires_grad and self._matches("gradient of " + name):
                self._handles.append(parameter.register_post_accumulate_grad_hook(
                    lambda one, name=name: self._gradients.__setitem__(name, self._unscaled(one.grad).clone())))
        self._handles.append(optimizer.register_step_pre_hook(self._before_step))
        self._handles.append(optimizer.register_step_post_hook(self._after_step))

    def close(self):
        for handle in self._handles:
            handle.remove()
        self._file.close()

    def _write(self, line):
        self._file.write(json.dumps(line) + "\n")

    def _take(self, kind, name, tensor, of_step=False):
        if not self._matches(name):
            return
        line = {"step": self._step}
        if not of_step:
            line["micro_batch"] = self._micro_batch
        types = {torch.float32: "f32", torch.float64: "f64", torch.int64: "i64", torch.int32: "i32", torch.bool: "bool",
                 torch.bfloat16: "bf16", torch.float16: "f16"}
        line.update(tensor=name, kind=kind, type=types.get(tensor.dtype, str(tensor.dtype)), shape=list(tensor.shape))
        self._write({**line, **statistics_of(tensor)})

    def _unscaled(self, gradient):
        gradient = gradient.detach()
        return gradient if self._scaler is None else gradient / self._scaler.get_scale()

    def _begin_micro_batch(self, *_):
        self._micro_batch += 1

    def _hook_of(self, name):
        def hook(_module, _inputs, output):
            tensor = output[0] if isinstance(output, (tuple, list)) and output else output
            if not isinstance(tensor, torch.Tensor):
                return
            self._take("value", name, tensor)
            call = self._calls[name] = self._calls.get(name, 0) + 1
            if tensor.requires_grad:
                tensor.register_hook(lambda gradient: self._take_gradient(name, call, gradient))

        return hook

    def _take_gradient(self, name, call, gradient):
        if self._calls[name] == call:
            self._take("gradient", "gradient of " + name, self._unscaled(gradient))

    def _before_step(self, *_):
        for name, parameter in self._parameters.items():
            if parameter.grad is not None:
                if name in self._gradients:
                    self._take("total_gradient", "gradient of " + name, self._gradients.pop(name), of_step=True)
                if self._matches("update of " + name):
                    self._before[name] = parameter.detach().clone()

    def _after_step(self, *_):
        for name, parameter in self._parameters.items():
            self._take("parameter", name, parameter, of_step=True)
            if name in self._before:
                difference = parameter.detach().double() - self._before.pop(name).double()
                self._take("update", "update of " + name, difference, of_step=True)
        for name, buffer in self._buffers.items():
            if buffer.is_floating_point():
                self._take("buffer", name, buffer, of_step=True)
        self._step, self._micro_batch = self._step + 1, -1
        self._file.flush()
