# SPDX-License-Identifier: Apache-2.0
"""A compiled step in a PyTorch loop.

    step = trainc.torch.TrainStep(module, "cross_entropy", example=(x, y))
    for x, y in loader:
        loss = step(x, y, learning_rate=1e-3)
    step.sync()   # the module has the trained parameters

Forward pass, backward pass and update are one call of a compiled model; the module is what it was until `sync`.
"""
from trainc.compiler import CompileError, CompileWarning
from trainc.export import ExportError
from trainc.model import ModelError, ModelWarning
from trainc.torch.check import CheckError
from trainc.torch.step import TrainStep

__all__ = ["TrainStep", "CheckError", "CompileError", "CompileWarning", "ExportError", "ModelError", "ModelWarning"]
