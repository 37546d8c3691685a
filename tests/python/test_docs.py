# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/python.md run as they stand there."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

TREE = Path(__file__).resolve().parents[2]


def test_programs(tmp_path):
    programs = re.findall(r"```python\n(.*?)```", (TREE / "docs" / "python.md").read_text(), re.DOTALL)
    assert len(programs) == 2 and all(program.count("\n") <= 25 for program in programs)
    shutil.copy(TREE / "tests" / "models" / "mlp_gelu_dynamo20.onnx", tmp_path / "net.onnx")
    environment = {**os.environ, "PYTHONPATH": str(TREE / "python"), "TRAINC_CACHE": str(tmp_path / "cache")}
    outputs = [subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
               for program in programs]
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", outputs[0])]
    assert len(losses) == 10 and losses[-1] < losses[0] / 2
    assert re.fullmatch(r"0\.0\S+ \(8, 7\)\n", outputs[1]), outputs[1]
    assert (tmp_path / "trained.pt").exists() and (tmp_path / "trained.onnx").exists()
