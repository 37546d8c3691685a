# SPDX-License-Identifier: Apache-2.0
"""trainc.compile and trainc.Model: arrays in and out, the same bits by every way, errors."""
import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import trainc

TREE = Path(__file__).resolve().parents[2]
MODELS = TREE / "tests" / "models"
DATA = MODELS / "data"
X, TARGETS = numpy.load(DATA / "x.npy"), numpy.load(DATA / "targets.npy")


def batch(number):
    return {"x": X[8 * number:8 * number + 8], "labels": TARGETS[8 * number:8 * number + 8]}


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("TRAINC_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


def mlp(**model):
    return trainc.compile(MODELS / "mlp_gelu_dynamo20.onnx", loss="mse", dims={"batch": 8}, model=model)


def test_losses_are_pytorchs():
    expected = __import__("json").loads((MODELS / "expected" / "mlp_gelu_dynamo20.json").read_text())
    with mlp() as model:
        losses = [model.step(batch(i), learning_rate=1e-3, weight_decay=0.01) for i in range(8)]
    assert losses == pytest.approx(expected["runs"]["adamw"]["f64"]["losses"][:8], rel=1e-5)


def test_parameters_read_and_write():
    with mlp() as model:
        weight = model.parameters["first.weight"]
        weight[0, 0] = 7
        assert model.parameters["first.weight"][0, 0] == 7
        model.parameters["first.weight"] = numpy.zeros((33, 12))  # float64 is converted
        assert not weight.any()
        flat = model.parameters.flat()
        model.step(batch(0))
        assert (model.parameters.flat() != flat).any()
        model.parameters.set_flat(flat)
        assert not model.parameters["first.weight"].any()
        assert list(model.parameters) == ["first.weight", "first.bias", "second.weight", "second.bias"]


def test_gradients_are_those_of_the_mean():
    with mlp() as one, mlp(micro_batches=2) as two:
        one.forward_backward(batch(0))
        two.forward_backward(batch(0))
        with pytest.raises(trainc.ModelError, match="last micro-batch"):
            two.gradients["first.bias"]
        two.forward_backward(batch(0))
        assert numpy.array_equal(one.gradients["first.bias"], two.gradients["first.bias"])
        difference = one.parameters["first.bias"].copy()
        one.update(learning_rate=0.1)
        assert numpy.array_equal(numpy.sign(difference - one.parameters["first.bias"]), numpy.sign(two.gradients["first.bias"]))


def test_checkpoints_and_exports(tmp_path):
    with mlp() as model:
        for i in range(3):
            model.step(batch(i))
        model.save(tmp_path)
        model.export(tmp_path / "trained.onnx")
        expected = model.step(batch(3))
    with mlp() as model:
        model.load(tmp_path)
        assert model.step(batch(3)) == expected
    assert (tmp_path / "trained.onnx").stat().st_size > 1000


def test_evaluate_and_predict():
    with mlp(forward_only=True) as model:
        outputs = model.predict({"x": X[:8]})["prediction"]
        loss = model.evaluate(batch(0))
        assert loss == pytest.approx(numpy.mean((outputs - TARGETS[:8])**2), rel=1e-5)
        assert model.metric("mean_squared_error") == pytest.approx(loss, rel=1e-6)
        with pytest.raises(trainc.ModelError, match="forward pass alone"):
            model.step(batch(0))


@pytest.mark.parametrize("wrong, message", [
    ({"x": X[:7], "labels": TARGETS[:8]}, "expected shape"),
    ({"x": X[:8]}, "missing: labels"),
    ({"x": X[:8], "labels": TARGETS[:8], "z": X}, "unknown: z"),
    ({"x": X[:8].astype(complex), "labels": TARGETS[:8]}, "expected float32"),
])
def test_wrong_batches(wrong, message):
    with mlp() as model, pytest.raises(trainc.ModelError, match=message):
        model.step(wrong)


def test_wrong_settings_and_models():
    with mlp() as model, pytest.raises(trainc.ModelError, match="weight_decay"):
        model.step(batch(0), momentum=1)
    with pytest.raises(trainc.CompileError, match='dims={"batch": SIZE}'):
        trainc.compile(MODELS / "mlp_gelu_dynamo20.onnx", loss="mse")
    with pytest.raises(trainc.CompileError, match="unknown option"):
        trainc.compile(MODELS / "mlp_gelu_dynamo20.onnx", no_such_option=1)


def test_the_cache_sees_changes(tmp_path):
    model = tmp_path / "net.onnx"
    model.write_bytes((MODELS / "mlp_gelu_dynamo20.onnx").read_bytes())
    folders = [Path(trainc.compiler.library_of(model, loss="mse", dims={"batch": 8})) for _ in range(2)]
    assert folders[0] == folders[1]
    other = Path(trainc.compiler.library_of(model, loss="l1", dims={"batch": 8}))
    model.write_bytes((MODELS / "mlp_gelu_script17.onnx").read_bytes())
    assert len({folders[0], other, Path(trainc.compiler.library_of(model, loss="mse", dims={"batch": 8}))}) == 3


def test_the_cache_knows_models_of_the_same_graph(tmp_path):
    """Two files with their weights beside them, whose graphs are the same."""
    losses = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        for ending in ("", ".data"):
            (tmp_path / name / f"net.onnx{ending}").write_bytes((MODELS / f"mlp_relu_dynamo18.onnx{ending}").read_bytes())
    weights = bytearray((tmp_path / "b" / "net.onnx.data").read_bytes())
    weights[:4] = numpy.float32(3).tobytes()
    (tmp_path / "b" / "net.onnx.data").write_bytes(weights)
    # the data names its file in the model, so the names are what they were
    for name in ("a", "b"):
        (tmp_path / name / "mlp_relu_dynamo18.onnx.data").write_bytes((tmp_path / name / "net.onnx.data").read_bytes())
        with trainc.compile(tmp_path / name / "net.onnx", dims={"batch": 8}) as model:
            losses.append(model.evaluate({"x": X[:8], "labels": numpy.load(DATA / "classes.npy")[:8]}))
    assert losses[0] != losses[1]


def test_a_library_that_was_compiled_again_is_loaded(tmp_path):
    losses = []
    for loss in ("mse", "l1"):
        with trainc.compile(MODELS / "mlp_gelu_dynamo20.onnx", loss=loss, dims={"batch": 8}, output=tmp_path / "out") as model:
            losses.append(model.evaluate(batch(0)))
    assert losses[0] != losses[1]


def test_models_end_with_their_last_view():
    model = mlp()
    view = model.parameters["first.weight"]
    of = __import__("weakref").ref(model)
    del model
    assert of() is not None and view.shape == (33, 12)
    del view
    assert of() is None


def test_the_command_line():
    done = subprocess.run([sys.executable, "-m", "trainc", "--version"], capture_output=True, text=True, check=True,
                          env={**os.environ, "PYTHONPATH": str(TREE / "python")})
    assert done.stdout.startswith("trainc ")


LABELLED = """<ir_version: 9, opset_import: ["" : 17]>
labelled (float[4, 3] x, float[4, 3] prev_labels) => (float[4, 3] y)
<float[3, 3] w = {1, 0, 2, 0, 1, 0, 3, 0, 1}>
{
  a = MatMul (x, w)
  y = Add (a, prev_labels)
}
"""


def test_labels_are_what_the_program_says(tmp_path):
    (tmp_path / "m.onnxtxt").write_text(LABELLED)
    x, more = numpy.ones((4, 3), "f4"), numpy.full((4, 3), 2, "f4")
    with trainc.compile(tmp_path / "m.onnxtxt", loss="mse") as model:
        assert model.labels == ["labels"]
        expected = model.predict({"x": x, "prev_labels": more})["y"]
        assert (expected[0] == [6, 3, 5]).all()
        with pytest.raises(trainc.ModelError, match="missing: prev_labels"):
            model.predict({"x": x})
        model.evaluate({"x": x, "prev_labels": more, "labels": x})
        with pytest.raises(trainc.ModelError, match="missing: prev_labels"):
            model.predict({"x": x})


def test_messages_have_pythons_words():
    from trainc.compiler import _for_python
    for text, expected in {
            "try: --batch-norm file, which says that this is meant; or --batch-norm train|frozen, for all":
                'try: batch_norm="file", which says that this is meant; or batch_norm="train|frozen", for all',
            "a size: try: --dim batch=8": 'a size: try: dims={"batch": 8}',
            "try: --ema, which keeps it": "try: ema, which keeps it",
            "option --freeze: 'x' matches nothing": "option freeze: 'x' matches nothing",
            "try: --group 'head=lm.*'; --accept takes the name": "try: group 'head=lm.*'; accept takes the name"}.items():
        assert _for_python(text) == expected


def test_gradients_by_the_names_of_the_module(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    with mlp() as model:
        model.forward_backward(batch(0))
        model.save_gradients(tmp_path / "g.safetensors")
        for name, gradient in safetensors.load_file(tmp_path / "g.safetensors").items():
            assert numpy.array_equal(gradient, model.gradients[name])
