# SPDX-License-Identifier: Apache-2.0
#
# Every operation of dialects/nn/ops has an example in its description, which is what trainc-opt reads: functions that
# hold one example each are printed.
#
#   examples.py FOLDER | trainc-opt --split-input-file
import pathlib
import re
import sys

EXAMPLE = re.compile(r"(?P<results>%[\w, %]+) = (?P<operation>nn\.\w+)(?P<operands>(?: %\w+(?:, %\w+)*)?)"
                     r"(?P<rest>.*?)(?: : \((?P<types>.*?)\) -> \(?(?P<made>.*?)\)?)?$")
TYPE = re.compile(r"tensor<[^>]*>")


def examples(description):
    """Of lines that are indented more than text: each begins with its results and goes on until the next."""
    found = []
    for line in description.splitlines():
        if re.match(r" {8,}%", line):
            found.append(line.strip())
        elif found and re.match(r" {10,}\S", line):
            found[-1] += " " + line.strip()
    return found


def names(text):
    return re.findall(r"%\w+", text)


def function(text):
    parts = EXAMPLE.match(text)
    if not parts:
        sys.exit(f"is not an example: {text}")
    made = TYPE.findall(parts["made"] or text.rsplit(" : ", 1)[1])
    operands = dict(zip(names(parts["operands"]), TYPE.findall(parts["types"] or "")))
    arguments = ", ".join(f"{name}: {type}" for name, type in operands.items())
    return (f"func.func @example({arguments}) -> ({', '.join(made)}) {{\n  {text}\n"
            f"  return {', '.join(names(parts['results']))} : {', '.join(made)}\n}}\n")


printed, lacking = [], []
for file in sorted(pathlib.Path(sys.argv[1]).glob("*.td")):
    for name, body in re.findall(r"^def (\w+Op) : (.*?)\n}\n", file.read_text(), re.S | re.M):
        description = re.search(r"let description = \[\{(.*?)\}\];", body, re.S)
        found = examples(description.group(1)) if description else []
        printed += map(function, found)
        lacking += [] if found else [f"{file.name}: {name}"]
if lacking:
    sys.exit("without an example: " + ", ".join(lacking))
print("// -----\n".join(printed))
