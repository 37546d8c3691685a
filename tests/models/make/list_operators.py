# SPDX-License-Identifier: Apache-2.0
#
# Writes operators.md: which operators occur in the fixtures, at which opsets and
# in which of them.
import glob
import os
from collections import defaultdict

import onnx

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # tests/models


def nodes_of(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes_of(attribute.g)


def main():
    opsets, files = defaultdict(set), defaultdict(set)
    for path in sorted(glob.glob(os.path.join(HERE, "*.onnx"))):
        model = onnx.load(path, load_external_data=False)
        version = next(o.version for o in model.opset_import if o.domain == "")
        fixture = os.path.basename(path)[: -len(".onnx")]
        nodes = list(nodes_of(model.graph)) + [n for f in model.functions for n in f.node]
        for node in nodes:
            name = node.op_type if not node.domain else f"{node.domain}::{node.op_type}"
            opsets[name].add(version)
            files[name].add(fixture)
    total = len(set().union(*files.values()))
    with open(os.path.join(HERE, "operators.md"), "w") as file:
        file.write("# Operators in the fixtures\n\nWritten by `list_operators.py`.\n\n"
                   "| Operator | Opsets | Fixtures |\n|---|---|---|\n")
        for name in sorted(opsets):
            where = (f"{len(files[name])} of {total}" if len(files[name]) > 4
                     else ", ".join(sorted(files[name])))
            file.write(f"| {name} | {', '.join(map(str, sorted(opsets[name])))} | {where} |\n")


if __name__ == "__main__":
    main()
