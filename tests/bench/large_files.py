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
from onnx_file import INT64, function, graph, model, node, opset, message, tensor, value


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


def conditions(count):
    """Each `If` asks for a size of what the one before made."""
    nodes = []
    for i in range(count):
        last = f"v{i}" if i else "x"
        nodes += [node("Shape", [last], [f"s{i}"]), node("Gather", [f"s{i}", "axis"], [f"n{i}"]), node("Equal", [f"n{i}", "eight"], [f"c{i}"]),
                  node("If", [f"c{i}"], [f"v{i + 1}"], {"then_branch": (branch(node("Mul", [last, "w"], ["r"])),),
                                                        "else_branch": (branch(node("Softmax", [last], ["r"], {"axis": 9})),)})]
    numbers = [tensor("w", [8]), tensor("axis", [], INT64, [1]), tensor("eight", [], INT64, [8])]
    return model(graph(nodes, [value("x", [4, 8])], [value(f"v{count}", [4, 8])], numbers))


def branch(of):
    return graph([of], outputs=[message(1, "r")])


FILES = {"chain of nodes": (chain, 100000), "functions": (functions, 2000), "conditions": (conditions, 2000), "weights of 4 MB in Constant nodes": (constants, 256)}


def write(name, share, path):
    make, count = FILES[name]
    pathlib.Path(path).write_bytes(make(count // int(share)))


def main():
    trainc, folder, share = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "large.onnx"
    for name, (_, count) in FILES.items():
        # By a process of its own: the compiler's peak would include that of the process that starts it.
        subprocess.run([sys.executable, __file__, "write", name, str(share), path], check=True)
        size, started = path.stat().st_size, time.monotonic()
        child = subprocess.Popen([trainc, path, "--loss", "mse", "--quiet", "--source-only", "-o", folder / "out"])
        _, status, usage = os.wait4(child.pid, 0)
        print(f"{count // share} {name}: exit code {os.waitstatus_to_exitcode(status)}, {time.monotonic() - started:.1f} s "
              f"({usage.ru_utime + usage.ru_stime:.1f} s of CPU), {usage.ru_maxrss >> 10} MB for a file of {size >> 20} MB", flush=True)


if sys.argv[1] == "write":
    write(*sys.argv[2:])
else:
    main()
