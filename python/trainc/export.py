# SPDX-License-Identifier: Apache-2.0
"""Exports a PyTorch module as a file that trainc trains as PyTorch would.

    import trainc
    trainc.export(module, (example,), "model.onnx")

torch.onnx.export makes files for inference: its optimizer merges parameters that start equal, folds
functions of parameters, and a file says neither which parameters are frozen nor how norms run. This
function exports without the optimizer and writes what is missing into the file. It needs torch, and
what torch.onnx.export needs (onnxscript). This file can be copied beside a script and used alone.
"""
import contextlib
import json
import os
import sys
import types
import warnings

import torch

METADATA_KEY = "trainc.export"
VERSION = 1


class ExportError(RuntimeError):
    """The module cannot be exported so that its training is that of the module."""


def export(module, args, path, *, kwargs=None, dynamic=True, input_names=None, output_names=None, check=True, **options):
    """Writes `module` to `path`, as it trains. Returns torch's ONNXProgram.

    args, kwargs    example inputs: a tensor or a tuple of them, and a dictionary
    dynamic         True: the first axis of every input is the batch, of any size. False: all sizes are those of the
                    example. Else what torch.export takes as `dynamic_shapes`
    check           compare the file's outputs with the module's, where onnxruntime is installed and can compute the file
    options         further arguments of torch.onnx.export, such as opset_version

    A module that is in eval() with all its parts is exported as in train(). In any other, what is in eval() stays so: a
    batch norm then keeps its running statistics, a dropout drops nothing. Modes and parameters of the module are left as they were.
    """
    warn_of_modes(module)
    args = (args,) if isinstance(args, torch.Tensor) else tuple(args)
    kwargs = dict(kwargs or {})
    program = _program_of(module, args, kwargs, dynamic, input_names, output_names, options)
    if check:
        try:
            _check_outputs(module, args, kwargs, program)
        except ExportError:
            raise
        except Exception as error:  # of the module or of onnxruntime
            raise ExportError(f"the file's outputs cannot be compared with the module's: {str(error).strip()}; with check=False it is written "
                              "all the same") from error
    program.save(path, external_data=_bytes_of(module) > 1 << 30)
    return program


def export_without_values(module, args, path, *, kwargs=None, without_dropout=None):
    """As `export`, of the example's sizes. Parameters are zeros, in a sparse file beside: the file says what is computed,
    and is the same whatever they are. Returns how many axes the first output has, and whether there is dropout: then a
    second file, `without_dropout`, has none."""
    import onnx_ir
    program = _program_of(module, tuple(args), dict(kwargs or {}), False, None, None, {})
    parameters = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    zeros, offset = os.path.basename(path) + ".zeros", 0
    for name, value in program.model.graph.initializers.items():
        tensor = value.const_value
        if name in parameters:
            value.const_value = onnx_ir.ExternalTensor(zeros, offset, tensor.nbytes, tensor.dtype, shape=tensor.shape, name=name,
                                                       base_dir=os.path.dirname(path))
            offset += -(-tensor.nbytes // 64) * 64
    with open(os.path.join(os.path.dirname(path), zeros), "wb") as file:
        file.truncate(offset)
    onnx_ir.save(program.model, path)
    dropouts = [node for node in program.model.graph if node.op_type == "Dropout" and len(node.inputs) > 1]  # attention's has no mode
    if dropouts and without_dropout:
        rate = onnx_ir.tensor(torch.tensor(0.0).numpy(), name="no_dropout")
        zero = onnx_ir.Value(name=rate.name, const_value=rate, shape=rate.shape, type=onnx_ir.TensorType(rate.dtype))
        program.model.graph.register_initializer(zero)
        for node in dropouts:  # which stay: trainc puts one back that attention lost
            node.replace_input_with(1, zero)
        onnx_ir.save(program.model, without_dropout)
    return len(program.model.graph.outputs[0].shape or ()), bool(dropouts)


def _each_its_own(examples):
    """Of a tensor that is given for two inputs the exporter makes one: the graph would read the first of them in both places."""
    given = set()

    def own(one):
        if not isinstance(one, torch.Tensor) or id(one) not in given:
            given.add(id(one))
            return one
        return one.clone()
    return torch.utils._pytree.tree_map(own, examples)


def _program_of(module, args, kwargs, dynamic, input_names, output_names, options):
    args, kwargs = _each_its_own((args, kwargs))
    with modes_kept(module):
        train_where_nothing_does(module)
        try:
            with warnings.catch_warnings():
                for text in ("Exporting a model while it is in training mode", ".*CastLike"):  # both are meant here
                    warnings.filterwarnings("ignore", text)
                program = _exported(module, args, kwargs, dynamic, input_names, output_names, options)
        except ExportError:
            raise
        except Exception as error:  # of many classes
            raise ExportError(f"torch.onnx.export: {str(error).strip()}") from error
        _drop_zero_biases(program.model.graph)
        _check_parameters(module, program)
        program.model.metadata_props[METADATA_KEY] = json.dumps(_record_of(module))
    return program


def _drop_zero_biases(graph):
    """Of a convolution without bias the exporter writes one of zeros, in three dimensions with a wrong size."""
    found = False
    for node in graph:
        if node.op_type == "Conv" and len(node.inputs) > 2 and _is_zero(node.inputs[2]):
            node.resize_inputs(2)
            found = True
    for node in reversed(list(graph)) if found else ():
        if not any(value.uses() or value.is_graph_output() for value in node.outputs):
            graph.remove(node, safe=True)


def _is_zero(value):
    """What is spread from a constant 0."""
    node = value.producer()
    while node is not None and node.op_type in ("Expand", "CastLike", "Cast"):
        node = node.inputs[0].producer()
    constant = node.attributes.get("value") if node is not None and node.op_type == "Constant" else None
    return constant is not None and not constant.value.numpy().any()


def train_where_nothing_does(module):
    """A module that is in eval() with all its parts is meant to train as a whole."""
    if not any(one.training for one in module.modules()):
        module.train()


def warn_of_modes(module):
    norms = [name for name, one in module.named_modules()
             if isinstance(one, torch.nn.modules.batchnorm._BatchNorm) and one.running_mean is not None]
    if norms and not any(one.training for one in module.modules()) and not all(one.requires_grad for one in module.parameters()):
        warnings.warn(f"the module is in eval() with all its parts, and is taken as in train(): its batch norms, '{norms[0]}' the first, take "
                      "the batch's statistics\n  try: train() of a part, such as the new head, where norms of a frozen part are to keep theirs; or of "
                      "the whole", stacklevel=3)


@contextlib.contextmanager
def modes_kept(module):
    """Modes of the module's parts and values of its buffers are as before, whatever a forward pass does."""
    modes = [(one, one.training) for one in module.modules()]
    buffers = {name: value.detach().clone() for name, value in module.named_buffers()}
    try:
        yield
    finally:
        for one, training in modes:
            one.training = training
        with torch.no_grad():
            for name, value in module.named_buffers():  # a trace may update running statistics
                if name in buffers and not isinstance(value, torch._subclasses.FakeTensor):
                    value.copy_(buffers[name])


def _exported(module, args, kwargs, dynamic, input_names, output_names, options):
    options = {"verbose": False, **options, "dynamo": True, "optimize": False, "input_names": input_names,
               "output_names": output_names, "kwargs": kwargs or None}
    if dynamic is not True:
        return torch.onnx.export(module, args, dynamic_shapes=dynamic or None, **options)
    try:
        return torch.onnx.export(module, args, dynamic_shapes=_batch_shapes(module, args, kwargs), **options)
    except Exception as error:  # torch has no class of its own for what it says of sizes
        reason = str(error.__cause__ or error).strip().splitlines()[:1]
        batch = next((one.shape[0] for one in torch.utils._pytree.tree_leaves((args, kwargs)) if _has_axes(one)), "none")
        warnings.warn(f"the batch is that of the example ({batch}): with any batch the export failed: {''.join(reason)}")
        return torch.onnx.export(module, args, **options)


def _has_axes(value):
    return isinstance(value, torch.Tensor) and value.dim() > 0


def _batch_shapes(module, args, kwargs):
    """For torch.export: {0: batch} for every tensor with axes."""
    batch = torch.export.Dim("batch")
    shapes = lambda tree: torch.utils._pytree.tree_map(lambda one: {0: batch} if _has_axes(one) else None, tree)
    import inspect
    bound = inspect.signature(module.forward).bind(*args, **kwargs)
    result = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            result.update(shapes(value))
        else:
            result[name] = shapes(value)
    return result


def _named_tensors(pairs):
    """Of tensors under several names: all names of each, the first one first."""
    names = {}
    for name, value in pairs:
        names.setdefault(id(value), (value, []))[1].append(name)
    return list(names.values())


def _record_of(module):
    persistent = set()
    for prefix, one in module.named_modules(remove_duplicate=False):
        persistent.update((prefix + "." if prefix else "") + name for name in one._buffers
                          if name not in one._non_persistent_buffers_set)
    return {
        "version": VERSION,
        "torch": torch.__version__,
        "parameters": [{"names": names, "requires_grad": value.requires_grad, "shape": list(value.shape)}
                       for value, names in _named_tensors(module.named_parameters(remove_duplicate=False))],
        "buffers": [{"names": names, "persistent": any(name in persistent for name in names)}
                    for value, names in _named_tensors(module.named_buffers(remove_duplicate=False))],
        "modes": {name: one.training for name, one in module.named_modules()
                  if isinstance(one, (torch.nn.modules.batchnorm._NormBase, torch.nn.modules.dropout._DropoutNd))},
    }


def _check_parameters(module, program):
    """Every parameter that the program uses is in the file, with its values."""
    initializers = program.model.graph.initializers
    unused = set()
    exported = program.exported_program
    if exported is not None:
        nodes = {node.name: node for node in exported.graph.nodes if node.op == "placeholder"}
        for placeholder, name in exported.graph_signature.inputs_to_parameters.items():
            if placeholder in nodes and not nodes[placeholder].users:
                unused.add(name)
    for value, names in _named_tensors(module.named_parameters(remove_duplicate=False)):
        found = [name for name in names if name in initializers]
        if not found:
            if exported is None or not unused.intersection(names):
                raise ExportError(f"parameter '{names[0]}' is not in the exported file: what was computed from it would not train")
            continue
        written = initializers[found[0]].const_value
        if list(written.shape) != list(value.shape):
            raise ExportError(f"parameter '{names[0]}' has shape {list(written.shape)} in the file, {list(value.shape)} in the module")


RANDOM = {"RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike", "Bernoulli", "Multinomial"}


def _check_outputs(module, args, kwargs, program):
    """In inference mode, in which neither draws random numbers."""
    try:
        import onnxruntime
    except ImportError:
        return
    if _bytes_of(module) > 1 << 30:
        return
    model = program.model_proto
    if any(node.op_type in RANDOM for node in model.graph.node):
        return
    for node in model.graph.node:
        if node.op_type == "Dropout":
            del node.input[2:]  # training_mode
            if len(node.output) == 1:  # onnxruntime wants a ratio below 1, even of what drops nothing
                node.op_type = "Identity"
                node.ClearField("attribute")
                del node.input[1:]
    with modes_kept(module), torch.no_grad():
        module.eval()
        expected = [one for one in torch.utils._pytree.tree_leaves(module(*args, **kwargs)) if isinstance(one, torch.Tensor)]
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    refusals = onnxruntime.capi.onnxruntime_pybind11_state
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=["CPUExecutionProvider"])
    except (refusals.NotImplemented, refusals.InvalidGraph) as error:  # of bfloat16, as a rule
        warnings.warn(f"onnxruntime cannot compute the file, so its outputs are not compared with the module's: {error}")
        return
    given = [one for one in torch.utils._pytree.tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
    feeds = {one.name: value.detach().cpu().numpy() for one, value in zip(session.get_inputs(), given)}
    for output, found, value in zip(session.get_outputs(), session.run(None, feeds), expected):
        if not value.is_floating_point():
            continue
        value = value.detach().cpu().double()
        found = torch.as_tensor(found).double()
        if found.shape != value.shape:
            raise ExportError(f"output '{output.name}' has shape {list(found.shape)} in the file, {list(value.shape)} in the module")
        same = torch.isfinite(value) & torch.isfinite(found)
        distance = (found - value)[same].abs().max().item() if same.any() else 0.0
        largest = value[same].abs().max().item() if same.any() else 0.0
        if distance > 1e-3 * max(largest, 1.0):
            raise ExportError(f"output '{output.name}' of the file is {distance:.3g} away from the module's: the exporter wrote another "
                              "function; with check=False it is written all the same")


def _bytes_of(module):
    return sum(one.numel() * one.element_size() for one in module.parameters())


class _CallableModule(types.ModuleType):
    """`trainc.export` is this module once somebody has imported it, and the function until then."""

    def __call__(self, *args, **kwargs):
        return export(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule
