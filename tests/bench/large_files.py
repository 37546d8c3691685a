# SPDX-License-Identifier: Apache-2.0
"""Files that are large in one way each: seconds and memory until their source is there.

    python3 tests/bench/large_files.py build/dev/bin/trainc FOLDER [SHARE]

SHARE divides the sizes: for how time and memory grow.
"""
import os
import pathlib
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
from onnx_file import function, graph, model, node, opset, message, tensor, value


def chain(count):
    nodes = [node("Mul", ["x", "w"], ["v0"])] + [node("Tanh", [f"v{i}"], [f"v{i + 1}"]) for i in range(count)]
    return model(graph(nodes, [value("x", [4, 8])], [value(f"v{count}", [4, 8])], [tensor("w", [8])]))


def functions(count):
    body = [node("Mul", ["a", "b"], ["c"]), node("Tanh", ["c"], ["d"])]
    nodes = [node(f"F{i}", [f"v{i}" if i else "x", "w"], [f"v{i + 1}"], domain="local") for i in range(count)]
    content = graph(nodes, [value("x", [4, 8])], [value(f"v{count}", [4, 8])], [tensor("w", [8])])
    return model(content, imports=[opset(1, "local")]) + b"".join(
        message(25, function(f"F{i}", ["a", "b"], ["d"], body)) for i in range(count))


def constants(count):
    """Weights of 4 MB each in Constant nodes."""
    nodes, size = [], 1024
    for i in range(count):
        values = struct.pack("<f", i + 0.5) * (size * size - 1) + struct.pack("<f", -1)
        nodes.append(node("Constant", [], [f"w{i}"], {"value": tensor("", [size, size], values=values)}))
        nodes.append(node("MatMul", [f"v{i}" if i else "x", f"w{i}"], [f"v{i + 1}"]))
    return model(graph(nodes, [value("x", [4, size])], [value(f"v{count}", [4, size])]))


def main():
    trainc, folder, share = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in ((f"chain of {100000 // share} nodes", chain(100000 // share)), (f"{2000 // share} functions", functions(2000 // share)),
                          (f"{1024 // share} MB in Constant nodes", constants(256 // share))):
        path = folder / "large.onnx"
        path.write_bytes(content)
        size, started = len(content), time.monotonic()
        del content
        child = subprocess.Popen([trainc, path, "--loss", "mse", "--quiet", "--source-only", "-o", folder / "out"])
        _, status, usage = os.wait4(child.pid, 0)
        print(f"{name}: exit code {os.waitstatus_to_exitcode(status)}, {time.monotonic() - started:.1f} s ({usage.ru_utime + usage.ru_stime:.1f} s of CPU), "
              f"{usage.ru_maxrss >> 10} MB for a file of {size >> 20} MB", flush=True)


main()
