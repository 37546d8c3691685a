# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/python.md and docs/recipes.md run as they stand there."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy
import torch
from safetensors.torch import save_file

from trainc.compiler import find_program

TREE = Path(__file__).resolve().parents[2]


def programs_of(page):
    return re.findall(r"```python\n(.*?)```", (TREE / "docs" / page).read_text(), re.DOTALL)


def run(command, folder):
    environment = {**os.environ, "PYTHONPATH": str(TREE / "python"), "TRAINC_CACHE": str(folder / "cache")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_programs(tmp_path):
    programs = programs_of("python.md")
    assert len(programs) == 2 and all(program.count("\n") <= 25 for program in programs)
    shutil.copy(TREE / "tests" / "models" / "mlp_gelu_dynamo20.onnx", tmp_path / "net.onnx")
    outputs = [run([sys.executable, "-c", program], tmp_path) for program in programs]
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", outputs[0])]
    assert len(losses) == 10 and losses[-1] < losses[0] / 2
    assert re.fullmatch(r"0\.0\S+ \(8, 7\)\n", outputs[1]), outputs[1]
    assert (tmp_path / "trained.pt").exists() and (tmp_path / "trained.onnx").exists()


def test_recipes(tmp_path):
    """tests/docs/recipes.test runs the other commands."""
    programs = programs_of("recipes.md")
    assert len(programs) == 3
    base = torch.nn.Sequential(torch.nn.Linear(12, 32), torch.nn.ReLU(), torch.nn.Linear(32, 7))
    save_file(base.state_dict(), tmp_path / "base.safetensors")
    for program in programs:
        run([sys.executable, "-c", program], tmp_path)
    table = run([find_program(), "head.onnx", "--dim", "batch=4", "--print-parameters"], tmp_path)
    roles = {line.split()[1]: line.split()[0] for line in table.splitlines()[2:] if len(line.split()) > 2}
    assert {name for name, role in roles.items() if role == "trained"} == {"fc.weight", "fc.bias"}, table
    assert "buffer" not in roles.values(), table  # norms in eval() keep their statistics

    run([find_program(), "adapted.onnx", "--dim", "batch=4", "--loss", "cross_entropy", "-o", "adapted"], tmp_path)
    x, y = torch.randn(8, 12), torch.randint(0, 7, (8,))
    numpy.save(tmp_path / "rows.npy", x.numpy())
    numpy.save(tmp_path / "kinds.npy", y.numpy())
    command = re.search(r"^    (adapted/trainer train .*)$", (TREE / "docs" / "recipes.md").read_text(), re.MULTILINE)[1]
    run(["bash", "-c", command + " --no-shuffle"], tmp_path)
    log = (tmp_path / "runs" / "adapted" / "log.jsonl").read_text()
    first = float(re.search(r'"step": 1\b.*?"loss": ([0-9.]+)', log)[1])
    expected = torch.nn.functional.cross_entropy(base(x[:4]), y[:4]).item()
    assert abs(first - expected) < 1e-5 * expected, (first, expected)
