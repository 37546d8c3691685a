# SPDX-License-Identifier: Apache-2.0
"""Files that ONNX Runtime's tool has quantized: gradients beside PyTorch in f64 on the dequantized weights, exports in ONNX Runtime."""
import copy
import subprocess

import numpy
import onnx
import pytest
import torch
import transformers
from safetensors.torch import load_file
from test_train_step import Logits
from trainc.compiler import find_program

quantizer = pytest.importorskip("onnxruntime.quantization.matmul_nbits_quantizer")
from onnxruntime.quantization import QuantFormat  # noqa: E402

LLAMA = transformers.LlamaConfig(vocab_size=101, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                                 max_position_embeddings=32)
FORMS = {  # keyword arguments of the tool
    "blocks": {"quant_format": QuantFormat.QOperator, "is_symmetric": True, "op_types_to_quantize": ("MatMul", "Gather")},
    "blocks with zero points": {"quant_format": QuantFormat.QOperator, "is_symmetric": False, "op_types_to_quantize": ("MatMul", "Gather")},
    "int4": {"quant_format": QuantFormat.QDQ, "is_symmetric": True},
    "uint4": {"quant_format": QuantFormat.QDQ, "is_symmetric": False},
    "8 bits": {"quant_format": QuantFormat.QOperator, "is_symmetric": False, "bits": 8},
}


def run(*words):
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout + result.stderr


def integers(tensor, count):
    """Of four bits, two to a byte; of a type that NumPy does not have."""
    packed = numpy.frombuffer(tensor.raw_data, numpy.uint8)
    halves = numpy.stack([packed & 15, packed >> 4], -1).reshape(-1)[:count].astype(numpy.int64)
    return numpy.where(halves > 7, halves - 16, halves) if tensor.data_type == onnx.TensorProto.INT4 else halves


def dequantized(tensors, node):
    """The weight [out, in] of a node that multiplies, in f64, and the table of one that gathers."""
    attributes = {attribute.name: attribute.i for attribute in node.attribute}
    parts = [tensors.get(name) for name in node.input]
    if node.op_type == "MatMulNBits":
        rows, length, bits = attributes["N"], attributes["K"], attributes.get("bits", 4)
        blocks = -(-length // attributes["block_size"])
        packed = numpy.frombuffer(parts[1].raw_data, numpy.uint8)
        codes = packed if bits == 8 else numpy.stack([packed & 15, packed >> 4], -1)
        codes = codes.reshape(rows, blocks, -1).astype(numpy.float64)
        scales = onnx.numpy_helper.to_array(parts[2]).astype(numpy.float64).reshape(rows, blocks, 1)
        zeros = 1 << (bits - 1)
        if len(parts) > 3:
            zeros = numpy.frombuffer(parts[3].raw_data, numpy.uint8).reshape(rows, -1)
            zeros = zeros if bits == 8 else numpy.stack([zeros & 15, zeros >> 4], -1).reshape(rows, -1)
            zeros = zeros[:, :blocks, None].astype(numpy.float64)
        return ((codes - zeros) * scales).reshape(rows, -1)[:, :length]
    gathers = node.op_type == "GatherBlockQuantized"
    codes, scales, zeros = parts[0], parts[2 if gathers else 1], parts[3 if gathers else 2] if len(parts) > (3 if gathers else 2) else None
    shape, axis = tuple(codes.dims), 1 if gathers else attributes["axis"]
    values = integers(codes, numpy.prod(shape)).reshape(shape).astype(numpy.float64)
    factors = onnx.numpy_helper.to_array(scales).astype(numpy.float64)
    points = integers(zeros, factors.size).reshape(factors.shape).astype(numpy.float64) if zeros is not None else numpy.zeros_like(factors)
    spread = lambda array: numpy.repeat(array, attributes["block_size"], axis)[tuple(slice(size) for size in shape)]
    values = (values - spread(points)) * spread(factors)
    return values if gathers else values.T


def give_dequantized(module, path):
    """In the order of the calls, which the file has, too."""
    model = onnx.load(path)
    tensors = {tensor.name: tensor for tensor in model.graph.initializer}
    nodes = [node for node in model.graph.node if node.op_type in ("MatMulNBits", "DequantizeLinear", "GatherBlockQuantized")]
    order = []
    hooks = [layer.register_forward_hook(lambda layer, *_: order.append(layer)) for layer in module.modules()
             if isinstance(layer, (torch.nn.Linear, torch.nn.Embedding))]
    module(torch.zeros(1, 4, dtype=torch.int64))
    for hook in hooks:
        hook.remove()
    if not any(node.op_type == "GatherBlockQuantized" for node in nodes):
        order = [layer for layer in order if not isinstance(layer, torch.nn.Embedding)]
    assert len(order) == len(nodes)
    for layer, node in zip(order, nodes):
        layer.weight.data = torch.from_numpy(dequantized(tensors, node).copy())


@pytest.mark.parametrize("form", FORMS)
def test_of_onnxruntime(form, tmp_path):
    torch.manual_seed(0)
    module = Logits(transformers.LlamaForCausalLM(LLAMA)).eval()
    x, y = torch.randint(0, 101, (2, 16)), torch.randint(0, 101, (2, 16))
    torch.onnx.export(module, (x,), tmp_path / "whole.onnx", dynamo=True, opset_version=20, input_names=["x"], verbose=False)
    tool = quantizer.MatMulNBitsQuantizer(onnx.load(tmp_path / "whole.onnx"), block_size=32, **FORMS[form])
    tool.process()
    onnx.save(tool.model.model, tmp_path / "model.onnx")
    numpy.save(tmp_path / "x.npy", x.numpy())
    numpy.save(tmp_path / "labels.npy", y.numpy())
    told = run(find_program(), tmp_path / "model.onnx", "--train-only", ".*norm.*", "-o", tmp_path / "out")
    assert "warning" not in told, told
    data = ["--data", f"x={tmp_path}/x.npy", "--data", f"labels={tmp_path}/labels.npy"]
    run(tmp_path / "out/trainer", "gradients", *data, "--checkpoint", "initial", "-o", tmp_path / "gradients.safetensors")

    exact = copy.deepcopy(module).double()
    give_dequantized(exact, tmp_path / "model.onnx")
    single = copy.deepcopy(exact).float()
    for model in (exact, single):
        torch.nn.functional.cross_entropy(model(x).reshape(-1, 101), y.reshape(-1)).backward()
    ours = load_file(tmp_path / "gradients.safetensors")
    known, of_single = dict(exact.named_parameters()), dict(single.named_parameters())
    names = [name for name in ours if "norm" in name]
    assert len(names) == 5
    worst = own = 0
    for name in names:
        size = known[name].grad.abs().max()
        worst = max(worst, ((ours[name].double() - known[name].grad).abs().max() / size).item())
        own = max(own, ((of_single[name].grad.double() - known[name].grad).abs().max() / size).item())
    print(f"\n{form}: gradients {worst:.2e}, PyTorch's own {own:.2e}")
    assert worst < max(1e-5, 4 * own)

    run(find_program(), tmp_path / "model.onnx", "--lora", ".*", "--lora-rank", 4, "-o", tmp_path / "adapted")
    run(tmp_path / "adapted/trainer", "train", *data, "--steps", 20, "--learning-rate", 1e-2, "--run", tmp_path / "run")
    run(tmp_path / "adapted/trainer", "export", "--run", tmp_path / "run", "-o", tmp_path / "trained.onnx")
    run(tmp_path / "adapted/trainer", "predict", *data[:2], "--run", tmp_path / "run", "-o", tmp_path / "outputs.safetensors")
    ours = next(iter(load_file(tmp_path / "outputs.safetensors").values())).reshape(2, 16, 101)
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL  # it may round activations to 8 bits
    session = onnxruntime.InferenceSession(tmp_path / "trained.onnx", options, providers=["CPUExecutionProvider"])
    theirs = torch.from_numpy(session.run(None, {"x": x.numpy()})[0])
    difference = ((ours - theirs).abs().max() / theirs.abs().max()).item()
    moved = ((ours - single(x)).abs().max() / theirs.abs().max()).item()
    print(f"{form}: the export in onnxruntime {difference:.2e}, moved by {moved:.2e}")
    assert difference < 1e-5 < moved
