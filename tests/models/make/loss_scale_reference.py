# SPDX-License-Identifier: Apache-2.0
#
# Trains one family with products of f16 and PyTorch's GradScaler, where the targets of some batches are
# so large that their gradients have no f16, and writes expected/loss_scale.json.
import json
import os

import torch
from torch import nn

import families
import train_reference

FAMILY = "mlp_gelu"
LARGE = {3: 1e4, 7: 1e4, 8: 1e4, 13: 1e4, 19: 1e4}  # factors of targets, by step from 1 on
SCALE = {"init_scale": 65536.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 4}


def rounded(values):
    return values.half().float()


class Product(torch.autograd.Function):
    """x times the transposed weight as --precision fp16 has it: a parameter's gradient is not rounded."""

    @staticmethod
    def forward(context, x, weight):
        context.save_for_backward(rounded(x), rounded(weight))
        return rounded(rounded(x) @ rounded(weight).T)

    @staticmethod
    def backward(context, gradient):
        x, weight = context.saved_tensors
        gradient = rounded(gradient)
        return rounded(gradient @ weight), gradient.T @ x


class Linear(nn.Module):
    def __init__(self, of):
        super().__init__()
        self.weight, self.bias = of.weight, of.bias

    def forward(self, x):
        return Product.apply(x, self.weight) + self.bias


def main():
    data = families.make_data()
    module, recipe = families.make(FAMILY)
    module.first, module.second = Linear(module.first), Linear(module.second)
    optimizer = train_reference.optimizer_for(module, "adamw")
    scaler = torch.amp.GradScaler("cpu", **SCALE)
    inputs = torch.from_numpy(data[next(iter(recipe["inputs"].values()))])
    labels = torch.from_numpy(data[recipe["labels"]])
    steps = []
    for step in range(1, families.STEPS + 1):
        rows = slice((step - 1) * recipe["batch"], step * recipe["batch"])
        optimizer.zero_grad()
        loss = families.loss_of(recipe["loss"], module(inputs[rows]), labels[rows] * LARGE.get(step, 1))
        scale, before = scaler.get_scale(), module.first.weight.detach().clone()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        skipped = torch.equal(before, module.first.weight)
        steps.append({"loss": loss.item(), "loss_scale": scale, "skipped": skipped})
        print(step, steps[-1])
    result = {"family": FAMILY, "large": LARGE, "scaler": SCALE, "steps": steps}
    with open(os.path.join(train_reference.HERE, "expected", "loss_scale.json"), "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
