# SPDX-License-Identifier: Apache-2.0
#
# Trains one family with groups of parameters that have rates and weight decays of their own, in
# f64 and f32, and writes expected/groups.json.
import re

import torch

import families
import train_reference

# Of each group: the names of its parameters, factor of the learning rate, weight decay of matrices.
GROUPS = [(r".*\.attn\..*", 2.0, 0.1), (r".*\.mlp\..*", 0.5, 0.0), (r".*", 1.0, 0.01)]


def parameter_groups(module, rate):
    """As --group has them: a parameter is in the first that matches, and vectors do not decay."""
    groups = [{"params": [], "lr": rate * factor, "weight_decay": decay if is_matrix else 0.0}
              for _, factor, decay in GROUPS for is_matrix in (True, False)]
    for name, parameter in module.named_parameters():
        number = next(i for i, (pattern, _, _) in enumerate(GROUPS) if re.fullmatch(pattern, name))
        groups[2 * number + (parameter.dim() < 2)]["params"].append(parameter)
    assert all(group["params"] for group in groups[:-1])
    return [group for group in groups if group["params"]]


class SgdWithCosine(torch.optim.SGD):
    def __init__(self, groups):
        super().__init__(groups, momentum=0.9)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self, families.STEPS, 0.002)

    def step(self, closure=None):
        super().step(closure)
        self.schedule.step()


OPTIMIZERS = {
    "adamw": lambda module: torch.optim.AdamW(parameter_groups(module, 1e-3)),
    "sgd": lambda module: SgdWithCosine(parameter_groups(module, 0.02)),
}


if __name__ == "__main__":
    train_reference.record("groups", "nanogpt", OPTIMIZERS)
