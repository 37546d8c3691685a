# SPDX-License-Identifier: Apache-2.0
"""Tensors of PyTorch in safetensors, by which a compiled model takes and gives them."""
import json
import os
import struct
import tempfile
import warnings
from pathlib import Path

import torch

from trainc.model import ModelWarning

_TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64, "I32": torch.int32,
          "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}


def plain(tensor):
    """The tensor's values in memory as they are: apart from the graph, with no pending negation or conjugation."""
    return tensor.detach().resolve_conj().resolve_neg()


def read(path):
    """A dictionary of tensors."""
    data = Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        dtype = _TYPES[entry["dtype"]]
        values = torch.frombuffer(bytearray(data[begin:end]), dtype=dtype) if end > begin else torch.empty(0, dtype=dtype)
        tensors[name] = values.reshape(entry["shape"])
    return tensors


def write(path, tensors):
    """Those of a type that the format has; others, such as complex ones, are left out."""
    tensors = {name: plain(tensor) for name, tensor in tensors.items() if tensor.dtype in _NAMES}
    header, offset = {}, 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            if tensor.numel():
                file.write(tensor.cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())


def written_by(call):
    """The tensors that a call of the library writes to the path that it is given: all but the constants of the program."""
    with tempfile.TemporaryDirectory(prefix="trainc-") as work:
        path = os.path.join(work, "written.safetensors")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*without what is a constant of the program", ModelWarning)
            call(path)
        return read(path)


def give_to(call, tensors):
    """Calls what reads tensors from a path."""
    with tempfile.TemporaryDirectory(prefix="trainc-") as work:
        path = os.path.join(work, "given.safetensors")
        write(path, tensors)
        call(path)
