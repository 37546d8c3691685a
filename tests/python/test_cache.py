# SPDX-License-Identifier: Apache-2.0
"""The cache of compiled models: what is damaged is made anew, and what killed processes left goes."""
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy
import pytest
import trainc
import trainc.compiler

TREE = Path(__file__).resolve().parents[2]
MODELS = TREE / "tests" / "models"
X, TARGETS = numpy.load(MODELS / "data" / "x.npy"), numpy.load(MODELS / "data" / "targets.npy")
COMPILE = f"trainc.compile({str(MODELS / 'mlp_gelu_dynamo20.onnx')!r}, loss='mse', dims={{'batch': 8}}"
RUN = f"""import numpy, trainc, trainc.compiler
with {COMPILE}) as model:
    print(model.step({{"x": numpy.load({str(MODELS / "data" / "x.npy")!r})[:8],
                      "labels": numpy.load({str(MODELS / "data" / "targets.npy")!r})[:8]}}))"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PYTHONPATH", str(TREE / "python"))
    return tmp_path / "cache"


def run(program):
    """In a process of its own, which may end with a signal."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


def compiled(**options):
    return trainc.compile(MODELS / "mlp_gelu_dynamo20.onnx", loss="mse", dims={"batch": 8}, **options)


def truncate(path):
    os.truncate(path, path.stat().st_size // 3)


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("what, damage", [
    ("out/library/lib*.so", truncate), ("out/library/lib*.so", os.remove), ("out/parameters.safetensors", flip),
    ("inputs.json", lambda path: path.write_text("")), ("inputs.json", lambda path: path.write_text("[1]")),
    ("inputs.json", lambda path: path.write_text('{"read": {}, "made": 3}')), ("inputs.json", os.remove)])
def test_what_is_damaged_is_made_anew(cache, what, damage):
    first = run(RUN)
    assert first.returncode == 0, first.stderr
    (entry,) = cache.iterdir()
    (path,) = entry.glob(what)
    damage(path)
    second = run(RUN)
    assert second.returncode == 0 and second.stdout == first.stdout, (second.returncode, second.stderr)
    assert f"{entry}: is damaged, and is made anew" in second.stderr
    third = run(RUN.replace("with", "trainc.compiler._run = None\nwith", 1))
    assert third.returncode == 0 and third.stdout == first.stdout and third.stderr == "", third.stderr
    assert list(cache.iterdir()) == [entry]


def test_what_killed_processes_left_goes(cache, tmp_path, monkeypatch):
    wait = tmp_path / "wait"
    wait.write_text(f'#!/bin/sh\ntouch "{tmp_path}/begun"\nsleep 100\n')
    wait.chmod(0o755)
    writer = subprocess.Popen([sys.executable, "-c", f"import trainc; {COMPILE})"], start_new_session=True,
                              env={**os.environ, "TRAINC": str(wait)})
    while not (tmp_path / "begun").exists():
        assert writer.poll() is None
        time.sleep(0.01)
    (folder,) = cache.glob(".writing-*")
    try:
        compiled().close()
        assert list(cache.glob(".writing-*")) == [folder]  # it writes at this moment
    finally:
        os.killpg(writer.pid, signal.SIGKILL)
        writer.wait()
    (cache / ".writing-file").write_text("another's")
    compiled(optimizer="sgd").close()
    assert list(cache.glob(".writing-*")) == [cache / ".writing-file"]


def test_processes_at_once(cache):
    running = [subprocess.Popen([sys.executable, "-c", RUN], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    losses = {process.communicate()[0] for process in running}
    assert len(losses) == 1 and not [process for process in running if process.returncode]
    (entry,) = cache.iterdir()
    truncate(next(entry.glob("out/library/lib*.so")))
    running = [subprocess.Popen([sys.executable, "-c", RUN], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert {process.communicate()[0] for process in running} == losses
    assert list(cache.iterdir()) == [entry]


def test_without_locks(cache, monkeypatch):
    def no_lock(*_):
        raise OSError("no locks")

    monkeypatch.setattr(trainc.compiler.fcntl, "flock", no_lock)
    (cache / ".writing-before").mkdir(parents=True)
    compiled().close()
    assert (cache / ".writing-before").is_dir()


def test_an_entry_of_other_inputs_is_not_damaged(cache, tmp_path):
    for name in ("mlp_relu_dynamo18.onnx", "mlp_relu_dynamo18.onnx.data"):
        (tmp_path / name).write_bytes((MODELS / name).read_bytes())
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            trainc.compile(tmp_path / "mlp_relu_dynamo18.onnx", dims={"batch": 8}).close()
        flip(tmp_path / "mlp_relu_dynamo18.onnx.data")
