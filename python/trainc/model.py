# SPDX-License-Identifier: Apache-2.0
"""A compiled model: the C library that `trainc --library` makes, with NumPy arrays."""
import ctypes
import os
import re
import shutil
import tempfile
import warnings
import weakref
from collections.abc import Mapping
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int64, c_uint64, c_void_p
from pathlib import Path

import numpy

_INPUTS, _OUTPUTS, _PARAMETERS, _BUFFERS, _GRADIENTS, _STATES = range(6)
_BUSY = 10


class ModelError(RuntimeError):
    """A call failed: `status` as in the library's header; the text says what to try."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class ModelWarning(UserWarning):
    """What a call warns of."""


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("threads", c_int), ("forward_only", c_int), ("seed", c_uint64), ("micro_batches", c_int64),
                ("mean_per_batch", c_int), ("no_files", c_int), ("folder", c_char_p), ("memory", c_void_p), ("memory_bytes", c_int64),
                ("device", c_int), ("stream", c_void_p)]


class _Tensor(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("type", c_char_p), ("rank", c_int), ("shape", POINTER(c_int64)), ("bytes", c_int64)]


class _Result(ctypes.Structure):
    _fields_ = [("loss", c_double), ("gradient_norm", c_double), ("applied", c_int), ("step", c_int64)]


def _dtype(name):
    """NumPy has no bfloat16: its bits."""
    return numpy.dtype("uint16" if name == "bfloat16" else name)


class Tensors(Mapping):
    """Tensors of a model by name, as arrays. Reading gives a view of the model's own memory (a copy of gradients, and of
    what is on a GPU); `tensors[name] = array` and writing into a view change the model."""

    def __init__(self, model, kind):
        self._of, self._kind = weakref.ref(model), kind
        self._all = {}
        for index in range(model._function("count", c_int64)(model._handle, kind)):
            tensor = _Tensor()
            model._call("describe", kind, c_int64(index), byref(tensor))
            self._all[tensor.name.decode()] = (tuple(tensor.shape[:tensor.rank]), _dtype(tensor.type.decode()))

    def _model(self):
        model = self._of()
        if model is None or not model._handle:
            raise ModelError(2, "the model is closed")
        return model

    def __getitem__(self, name):
        shape, dtype = self._all[name]
        if self._kind == _GRADIENTS or self._model().target == "cuda":
            copy = numpy.empty(shape, dtype)
            self._model()._call("read", self._kind, name.encode(), copy.ctypes.data_as(c_void_p), c_int64(copy.nbytes))
            copy.flags.writeable = False  # `tensors[name] = ...` changes them
            return copy
        place = self._model()._function("data", c_void_p)(self._model()._handle, self._kind, name.encode())
        if not place:
            raise ModelError(2, self._model()._message())
        count = int(numpy.prod(shape, dtype=numpy.int64))
        memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(place)
        memory.model = self._model()  # lives as long as its views
        return numpy.frombuffer(memory, dtype, count).reshape(shape)

    def __setitem__(self, name, values):
        shape, dtype = self._all[name]
        if self._model().target == "cuda" and getattr(values, "is_cuda", False):
            values = _plain(values).contiguous()
            _check(tuple(values.shape), numpy.dtype(values.__cuda_array_interface__["typestr"]), shape, dtype, name, exactly=True)
            place, size = c_void_p(values.data_ptr()), values.numel() * dtype.itemsize
        else:
            values = _array(values, shape, dtype, name)
            place, size = values.ctypes.data_as(c_void_p), values.nbytes
        self._model()._call("write", self._kind, name.encode(), place, c_int64(size))

    def __iter__(self):
        return iter(self._all)

    def __len__(self):
        return len(self._all)

    def flat(self):
        """All of them, one after the other in the order of their names here: an array of their type, of bytes where there
        are several types."""
        flat = numpy.empty(self._model()._function("bytes", c_int64)(self._model()._handle, self._kind), numpy.uint8)
        self._model()._call("read_all", self._kind, flat.ctypes.data_as(c_void_p), c_int64(flat.nbytes))
        types = {dtype for _, dtype in self._all.values()}
        return flat.view(types.pop()) if len(types) == 1 else flat

    def set_flat(self, flat):
        types = {dtype for _, dtype in self._all.values()}
        if len(types) == 1:
            (dtype,) = types
            flat = numpy.asarray(flat)
            if flat.dtype not in (dtype, numpy.uint8):
                raise ModelError(2, f"expected {dtype}, found {flat.dtype}")
        flat = numpy.ascontiguousarray(flat).view(numpy.uint8)
        self._model()._call("write_all", self._kind, flat.ctypes.data_as(c_void_p), c_int64(flat.nbytes))


def _check(found_shape, found, shape, dtype, name, exactly=False):
    if found_shape != shape:
        is_of_other_batch = len(shape) > 0 and len(found_shape) == len(shape) and found_shape[1:] == shape[1:]
        raise ModelError(2, f"'{name}': expected shape {shape}, found {found_shape}" + (
            f"\n  try: drop_last=True of a DataLoader, rows that fill up the batch, or a model compiled for {found_shape[0]}"
            if is_of_other_batch else ""))
    if found != dtype and (exactly or not numpy.can_cast(found, dtype, "same_kind") and found.kind != "b"):
        raise ModelError(2, f"'{name}': expected {dtype}, found {found}\n  try: as {dtype}")


def _plain(values):
    """Of a tensor of PyTorch: apart from the graph, with no pending negation or conjugation, which DLPack leaves out."""
    return values.detach().resolve_conj().resolve_neg() if hasattr(values, "resolve_neg") else values


def _array(values, shape, dtype, name):
    """`values` as an array of the tensor's type and shape. Arrays and CPU tensors (DLPack) are not copied where they fit."""
    if not isinstance(values, numpy.ndarray):
        values = _plain(values)
        if str(getattr(values, "dtype", "")) == "torch.bfloat16":  # which NumPy does not have
            values = values.float()
        values = numpy.from_dlpack(values) if hasattr(values, "__dlpack__") else numpy.asarray(values)
    _check(values.shape, values.dtype, shape, dtype, name)
    return numpy.ascontiguousarray(values, dtype)


_opened = {}  # libraries by their paths: what each was, and the library


def _open_library(path):
    """The loader knows a library by its path: one that was compiled again is loaded under another name."""
    status = path.stat()
    own = (status.st_ino, status.st_mtime_ns, status.st_size)
    before = _opened.get(path)
    if before and before[0] == own:
        return before[1]
    if not before:
        library = ctypes.CDLL(os.fspath(path))
    else:
        with tempfile.TemporaryDirectory(prefix="trainc-") as work:
            copy = os.path.join(work, path.name)
            shutil.copyfile(path, copy)
            library = ctypes.CDLL(copy)
    _opened[path] = (own, library)
    return library


class Model:
    """An instance of a compiled model.

    folder          what trainc made, or what trainc.compile keeps
    threads         of a call; 0: OMP_NUM_THREADS, else one for each core
    seed            of the numbers that the model draws
    micro_batches   calls of forward_backward for each update
    mean_per_batch  each micro-batch weighs the same, whatever labels count in it
    forward_only    for evaluate and predict alone
    device, stream  of a library for CUDA: the number of the GPU; the address of a stream, such as
                    torch.cuda.current_stream().cuda_stream; 0: one that takes turns with CUDA's default stream

    parameters, buffers, gradients, states: mappings of arrays (Tensors). inputs, outputs: names to (shape, dtype).
    labels: the names of those inputs that the loss alone reads.
    """

    def __init__(self, folder, *, threads=0, seed=0, micro_batches=1, mean_per_batch=False, forward_only=False, device=0,
                 stream=0):
        folder = Path(folder)
        libraries = list((folder / "library").glob("lib*.so"))
        if len(libraries) != 1:
            raise ModelError(2, f"{folder}: holds no library\n  try: trainc --library, or trainc.compile")
        self.folder = folder
        self._name = re.fullmatch("lib(.*).so", libraries[0].name).group(1)
        self._library = _open_library(libraries[0].resolve())
        self._functions, self._handle = {}, c_void_p()
        self.target = self._function("target", c_char_p)().decode()  # "cpu" or "cuda"
        options = _Options(ctypes.sizeof(_Options), threads, int(forward_only), seed, micro_batches, int(mean_per_batch), 0,
                           os.fsencode(folder), None, 0, device, stream)
        self._check(self._function("create")(byref(options), byref(self._handle)))
        self._inputs, self._outputs = Tensors(self, _INPUTS), Tensors(self, _OUTPUTS)
        self.parameters, self.buffers = Tensors(self, _PARAMETERS), Tensors(self, _BUFFERS)
        self.gradients, self.states = Tensors(self, _GRADIENTS), Tensors(self, _STATES)
        self.inputs, self.outputs = dict(self._inputs._all), dict(self._outputs._all)
        self.labels = [name for index, name in enumerate(self.inputs) if self._function("is_label")(self._handle, c_int64(index)) == 1]
        self.last = None  # of the last update: a dictionary of loss, gradient_norm, applied, step

    def _function(self, what, result=c_int):
        if what not in self._functions:
            function = getattr(self._library, f"{self._name}_{what}")
            function.restype = result
            self._functions[what] = function
        return self._functions[what]

    def _message(self):
        return self._function("message", c_char_p)(self._handle).decode()

    def _check(self, status):
        if status == _BUSY:
            raise ModelError(status, "another thread is in a call of this model")
        if status != 0:
            raise ModelError(status, self._message())

    def _call(self, what, *arguments):
        self._check(self._function(what)(self._handle, *arguments))

    def _call_with_warnings(self, what, *arguments):
        self._call(what, *arguments)
        if text := self._message():
            warnings.warn(text, ModelWarning, stacklevel=3)

    def close(self):
        """Frees the memory. Views of it must not be used afterwards."""
        if self._handle:
            self._function("destroy", None)(self._handle)
            self._handle = c_void_p()

    def __reduce_ex__(self, protocol):
        raise TypeError("a compiled model is neither copied nor pickled\n  try: save() and load(); trainc.compile again, which takes it "
                        "from its cache")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            self.close()

    def _set_batch(self, batch, needed):
        missing = [name for name in needed if name not in batch]
        unknown = [name for name in batch if name not in self.inputs]
        if missing or unknown:
            raise ModelError(2, f"a batch has {', '.join(self.inputs)}" + (f"; missing: {', '.join(missing)}" if missing else "") +
                             (f"; unknown: {', '.join(unknown)}" if unknown else ""))
        for name, values in batch.items():
            self._inputs[name] = values

    def set(self, **settings):
        """Settings of the next updates: learning_rate, clip_norm, clip_value, hyperparameters such as weight_decay."""
        for name, value in settings.items():
            self._call("set", name.encode(), c_double(value))

    def get(self, name):
        value = c_double()
        self._call("get", name.encode(), byref(value))
        return value.value

    def forward_backward(self, batch):
        """Adds the gradients of a micro-batch, a dictionary of arrays by input; returns its loss."""
        self._set_batch(batch, self.inputs)
        loss = c_double()
        self._call("forward_backward", byref(loss))
        return loss.value

    def update(self, **settings):
        """Changes the parameters, after as many calls of forward_backward as there are micro-batches. Returns the loss."""
        self.set(**settings)
        result = _Result()
        self._call("update", byref(result))
        self.last = {"loss": result.loss, "gradient_norm": result.gradient_norm, "applied": bool(result.applied), "step": result.step}
        return result.loss

    def step(self, batch, **settings):
        """forward_backward and update. Returns the loss; `last` has the rest."""
        self.set(**settings)
        self.forward_backward(batch)
        return self.update()

    def evaluate(self, batch):
        """The loss of a batch in inference mode, without a change."""
        self._set_batch(batch, self.inputs)
        loss = c_double()
        self._call("evaluate", byref(loss))
        return loss.value

    def predict(self, batch):
        """Outputs for a batch, as a dictionary of arrays. Labels may be left out."""
        self._set_batch(batch, [name for name in self.inputs if name not in self.labels])
        self._call("evaluate", None)
        return {name: self._outputs[name].copy() for name in self.outputs}

    def metric(self, name):
        """Of the last evaluate: "accuracy"."""
        mean = c_double()
        self._call("metric", name.encode(), byref(mean), None)
        return mean.value

    def discard(self):
        """Forgets the micro-batches since the last update."""
        self._call("discard")

    def save(self, folder):
        """Writes a checkpoint of the trainer's format into a folder."""
        self._call_with_warnings("save", os.fsencode(folder))

    def load(self, path):
        """Loads a checkpoint, or the newest one of a folder or of a trainer's run."""
        self._call_with_warnings("load", os.fsencode(path))

    def save_state_dict(self, path):
        """Parameters and buffers as PyTorch's module has them, as safetensors."""
        self._call_with_warnings("save_state_dict", os.fsencode(path))

    def load_state_dict(self, path):
        self._call_with_warnings("load_state_dict", os.fsencode(path))

    def save_gradients(self, path):
        """Gradients by the names and in the layouts of PyTorch's module, as safetensors."""
        self._call_with_warnings("save_gradients", os.fsencode(path))

    def save_optimizer_state(self, path):
        """`state.NAME.exp_avg`, ... as PyTorch's optimizer has them, as safetensors."""
        self._call_with_warnings("save_optimizer_state", os.fsencode(path))

    def load_optimizer_state(self, path):
        self._call_with_warnings("load_optimizer_state", os.fsencode(path))

    def export(self, path):
        """Writes the model with its parameters as ONNX."""
        self._call_with_warnings("export", os.fsencode(path))
