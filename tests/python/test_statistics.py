# SPDX-License-Identifier: Apache-2.0
"""trainc.statistics: gradients are those of the loss, whatever the loop does with them, and names those of the module."""
import json

import pytest
import torch
from torch import nn
from trainc.statistics import Statistics


def told(path, wrap=None, clip=None, scale=None):
    """The lines of one step, by kind and name."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 4))
    x, y = torch.randn(8, 5), torch.randn(8, 4)
    wrapped = wrap(module) if wrap else module
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", enabled=scale is not None, init_scale=scale or 1.0)
    watch = Statistics(wrapped, optimizer, path, scaler=scaler if scale else None)
    scaler.scale(nn.functional.mse_loss(wrapped(x), y)).backward()
    if clip:
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(module.parameters(), clip)
    scaler.step(optimizer)
    scaler.update()
    watch.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    return {(line["kind"], line["tensor"]): line["norm"] for line in lines}


@pytest.mark.parametrize("loop", [{"clip": 0.01}, {"scale": 1024.0}, {"clip": 0.01, "scale": 1024.0}, {"wrap": nn.DataParallel},
                                  {"wrap": lambda module: torch.compile(module, backend="eager")}])
def test_gradients_are_those_of_the_loss(loop, tmp_path):
    plain, other = told(tmp_path / "plain.jsonl"), told(tmp_path / "other.jsonl", **loop)
    assert plain.keys() == other.keys() and ("total_gradient", "gradient of 0.weight") in plain
    for name, norm in plain.items():
        if "gradient" in name[0]:
            assert other[name] == pytest.approx(norm, rel=1e-5), name
    update = ("update", "update of 0.weight")
    assert (other[update] < plain[update] / 2) == ("clip" in loop)
