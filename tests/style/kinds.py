# SPDX-License-Identifier: Apache-2.0
#
# Code that knows kinds of things which one place should know alone.
#
#   kinds.py ROOT
#
# Steps: outside of dialects/kernel nobody asks which step an operation is; only who makes
# a kind may name it. Element types: outside of the table nobody asks for
# a certain width or precision; bool, as the type of conditions, may be asked for.
# Prints what breaks a rule; ends with 1 where there is something.
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
folders = ["dialects", "passes", "compiler", "tools"]

# The table of element types: what depends on them is a fact in it.
ELEMENT_TYPES = {"dialects/elements/element_type.cpp", "dialects/elements/element_type.h"}

kernel = "".join(file.read_text() for file in sorted(root.glob("dialects/kernel/*.td")))
kinds = [name for name, traits in re.findall(r"^def (\w+) : Kernel_(?:Named)?Op<(.*?)> \{", kernel, re.M | re.S)
         if "StepOpInterface" in traits]
mnemonics = [re.search(rf'def {name} : Kernel_(?:Named)?Op<"(\w+)"', kernel).group(1) for name in kinds]
if not kinds:
    sys.exit("kinds.py: no operation of dialects/kernel is a step")
kind = "|".join(kinds)
of_kernel = re.compile(rf"\bkernel::({kind})\b")
by_name = re.compile(rf'"kernel\.({"|".join(mnemonics)})"')
element = re.compile(r"(\.|->)(isF16|isBF16|isF32|isF64|isTF32)\(\)|(\.|->)is(Signless|Signed|Unsigned)?Integer\((?!1\))\d+\)"
                     r"|<(mlir::)?(Float(16|32|64)|BFloat16)Type>|[!=]= HostType::|case HostType::"
                     r"|elementBytes\([^;]*\) *[!=]= ")


def code(text):
    """The text without comments; names in literals count."""
    return re.sub(r"//[^\n]*", "", text)


status = 0
for folder in folders:
    for file in sorted((root / folder).rglob("*")):
        if file.suffix not in (".cpp", ".h") or not file.is_file():
            continue
        path = file.relative_to(root).as_posix()
        text = code(file.read_text())
        made = set(re.findall(rf"create<(?:trainc::)?kernel::({kind})>", text))
        for number, line in enumerate(text.splitlines(), 1):
            if not path.startswith("dialects/kernel/"):
                for name in of_kernel.findall(line):
                    if name not in made:
                        print(f"{path}:{number}: names the step kernel::{name}; ask StepOpInterface")
                        status = 1
                if by_name.search(line):
                    print(f"{path}:{number}: names a step; ask StepOpInterface")
                    status = 1
            if path not in ELEMENT_TYPES and element.search(line):
                print(f"{path}:{number}: tells element types apart: {line.strip()}")
                status = 1
sys.exit(status)
