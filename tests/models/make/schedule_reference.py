#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records the learning rates of PyTorch's schedulers, 500 steps each:

    python3 tests/models/make/schedule_reference.py >tests/models/expected/schedules.json

Each entry has the options of `trainer train` and the rates of steps 1 to 500 behind a warm-up of `warmup-steps`.
"""
import json

import torch
from torch.optim import lr_scheduler as schedulers

STEPS = 500
PEAK = 0.3


def rates(make):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))], lr=PEAK)
    scheduler = make(optimizer)
    result = []
    for _ in range(STEPS):
        result.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return result


def stable_then_linear(optimizer):
    stable = schedulers.ConstantLR(optimizer, factor=1, total_iters=0)
    decay = schedulers.LinearLR(optimizer, 1, 0.03 / PEAK, total_iters=120)
    return schedulers.SequentialLR(optimizer, [stable, decay], milestones=[380])


CASES = {
    "constant": ({}, lambda o: schedulers.ConstantLR(o, factor=1)),
    "linear": ({"final-learning-rate": 0.03}, lambda o: schedulers.LinearLR(o, 1, 0.03 / PEAK, STEPS)),
    "cosine": ({"final-learning-rate": 0.03}, lambda o: schedulers.CosineAnnealingLR(o, STEPS, 0.03)),
    "cosine-restarts": ({"final-learning-rate": 0.03, "cycle-steps": 45, "cycle-factor": 2},
                        lambda o: schedulers.CosineAnnealingWarmRestarts(o, 45, 2, 0.03)),
    "cosine-restarts of one length": ({"final-learning-rate": 0.03, "cycle-steps": 60},
                                      lambda o: schedulers.CosineAnnealingWarmRestarts(o, 60, 1, 0.03)),
    "polynomial": ({"schedule-power": 2.5}, lambda o: schedulers.PolynomialLR(o, STEPS, 2.5)),
    "inverse-sqrt": ({"warmup-steps": 40}, lambda o: schedulers.LambdaLR(o, lambda t: (40 / (40 + t)) ** 0.5)),
    "warmup-stable-decay": ({"final-learning-rate": 0.03, "decay-steps": 120}, stable_then_linear),
    "step": ({"decay-every": 70, "decay-factor": 0.3}, lambda o: schedulers.StepLR(o, 70, 0.3)),
    "exponential": ({"decay-factor": 0.99}, lambda o: schedulers.ExponentialLR(o, 0.99)),
}

print("{")
for number, (name, (options, make)) in enumerate(CASES.items()):
    entry = {"options": {"schedule": name.split()[0], "learning-rate": PEAK, **options}, "rates": rates(make)}
    print(f' {json.dumps(name)}: {json.dumps(entry)}{"," if number + 1 < len(CASES) else ""}')
print("}")
