# SPDX-License-Identifier: Apache-2.0
"""trainc from Python.

    trainc.export(module, (example,), "model.onnx")     a PyTorch module as a file that trains as it does (needs torch)
    trainc.compile("model.onnx", loss="mse") -> Model   a model to train with arrays (needs numpy)
    trainc.torch.TrainStep(module, loss, ...)           a step in a PyTorch loop (needs torch)

`python -m trainc ...` is the command line of the compiler.
"""
from importlib import import_module

_PLACES = {"export": "export", "compile": "compiler", "CompileError": "compiler", "CompileWarning": "compiler",
           "Model": "model", "ModelError": "model", "ModelWarning": "model"}

__all__ = [*_PLACES, "torch"]


def __getattr__(name):  # so that nobody needs torch who does not use it
    if name == "torch":
        return import_module("trainc.torch")
    if name in _PLACES:
        return getattr(import_module("trainc." + _PLACES[name]), name)
    raise AttributeError(f"module 'trainc' has no attribute '{name}'")
