# SPDX-License-Identifier: Apache-2.0
#
# Whether what importers refuse is in the support table: a message that speaks of support needs a
# declaration (OnnxRefusal::told, or what OnnxRegistration says), and so does an input that must be known.
# Problems are printed.
#
#   refusals.py TREE
import re
import sys
from pathlib import Path

# What is refused of any operator; the head of the table says so.
OF_ANY = ("which is not supported\"", "which is supported only \"")
MESSAGES = re.compile(r"\b(?:node\.error|view\.error|fail|report\.error)\(")
KNOWN = re.compile(r"\b(?:refuseUnknown\(|knownNumber\(|knownInteger\(|numberOf\(node, )")


def argument_text(text, start):
    """From behind an opening parenthesis to the one that closes it."""
    depth, at, quoted = 1, start, False
    while depth:
        if text[at] == "\\":
            at += 1
        elif text[at] == '"':
            quoted = not quoted
        elif not quoted:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
        at += 1
    return text[start:at - 1]


def problems(path, text):
    of_any = path.name == "importer.cpp"
    for found in MESSAGES.finditer(text):
        message = argument_text(text, found.end())
        words = " ".join(re.findall(r'"((?:[^"\\]|\\.)*)"', message))
        if "support" in words and "told(" not in message and not (of_any and any(one in message for one in OF_ANY)):
            yield found.start(), f"no OnnxRefusal tells '{words[:60]}'"
    declared = re.findall(r"mustKnow\((\d+)", text)
    for found in KNOWN.finditer(text):
        given = argument_text(text, found.end())
        number = re.match(r"\d+", given)
        if "told(" not in given and not (number[0] in declared if number else declared):
            yield found.start(), f"no mustKnow or OnnxRefusal for '{given[:60]}'"


def main():
    tree = Path(sys.argv[1])
    files = [*tree.glob("compiler/onnx/import/compositions/*.cpp"), *tree.glob("dialects/nn/ops/*.cpp"),
             *(tree / "compiler/onnx" / name for name in ("import/importer.cpp", "graph/inliner.cpp", "graph/unrolled_loops.cpp")),
             *(tree / "dialects/nn" / name for name in ("onnx/onnx_recurrent.cpp", "pointwise.cpp", "reduction.cpp", "window.cpp"))]
    assert len(files) > 80, len(files)
    for path in sorted(files):
        text = path.read_text()
        for place, what in problems(path, text):
            print(f"{path.relative_to(tree)}:{text.count(chr(10), 0, place) + 1}: {what}")


main()
