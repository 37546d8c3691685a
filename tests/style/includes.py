# SPDX-License-Identifier: Apache-2.0
#
# Dependencies point one way: what a folder may include.
#
#   includes.py ROOT
#
# Prints what breaks the rule; ends with 1 where there is something.
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])

# A folder, with all below that has no row of its own, and the folders that it may include besides itself. The list is
# lowest first: nothing may be included that stands further down.
MAY_INCLUDE = {
    "runtime/kernels": [],  # plain functions, also called by what is emitted and by shape rules
    "runtime": ["runtime/kernels"],
    "runtime/process": ["runtime/."],
    "runtime/arena.cpp": ["runtime/.", "runtime/process"],
    "runtime/files": ["runtime/.", "runtime/kernels", "runtime/process"],
    "runtime/ranks": ["runtime/.", "runtime/process"],
    "runtime/plan": ["runtime/.", "runtime/files", "runtime/ranks"],
    "runtime/observe": ["runtime/.", "runtime/process", "runtime/files", "runtime/plan"],
    "runtime/data": ["runtime/.", "runtime/process", "runtime/files"],
    "runtime/checkpoint": ["runtime/.", "runtime/kernels", "runtime/process", "runtime/files", "runtime/ranks",
                           "runtime/data"],
    "runtime/options": ["runtime/.", "runtime/files", "runtime/data", "runtime/checkpoint"],
    "runtime/device.h": ["runtime/.", "runtime/ranks", "runtime/options"],
    "runtime/run": ["runtime/.", "runtime/device.h", "runtime/process", "runtime/files", "runtime/ranks",
                    "runtime/data", "runtime/checkpoint", "runtime/options", "runtime/observe"],
    "runtime/step": ["runtime/.", "runtime/device.h", "runtime/process", "runtime/files", "runtime/plan",
                     "runtime/observe", "runtime/ranks", "runtime/data", "runtime/run"],
    "runtime/commands": ["runtime/.", "runtime/process", "runtime/files", "runtime/ranks", "runtime/data",
                         "runtime/checkpoint", "runtime/options", "runtime/run", "runtime/step",
                         "runtime/plan", "runtime/observe"],
    "runtime/train": ["runtime/.", "runtime/process", "runtime/files", "runtime/ranks", "runtime/data",
                      "runtime/checkpoint", "runtime/options", "runtime/run", "runtime/step", "runtime/commands",
                      "runtime/plan", "runtime/observe"],
    # The C interface of a model; all that a library has of a trainer.
    "runtime/library": ["runtime/.", "runtime/device.h", "runtime/process", "runtime/files", "runtime/ranks",
                        "runtime/data", "runtime/checkpoint", "runtime/step"],
    "runtime/trainer_main.cpp": ["runtime/.", "runtime/device.h", "runtime/process", "runtime/files", "runtime/ranks",
                                 "runtime/options", "runtime/run", "runtime/commands"],
    "runtime/cpu": ["runtime/.", "runtime/device.h", "runtime/kernels", "runtime/process", "runtime/files",
                    "runtime/ranks", "runtime/options", "runtime/run/threads.h", "runtime/run/program_memory.h"],
    # parts of a library where there is only libc: they take the place of others of runtime/cpu and runtime/library
    "runtime/minimal": ["runtime/.", "runtime/device.h", "runtime/kernels", "runtime/process", "runtime/files",
                        "runtime/ranks", "runtime/cpu", "runtime/library"],
    "runtime/cuda": ["runtime/.", "runtime/device.h", "runtime/kernels", "runtime/files", "runtime/ranks",
                     "runtime/process"],
    "dialects/errors": [],
    "dialects/names": [],
    "dialects/elements": ["dialects/errors", "runtime/kernels"],
    "dialects/kernel": ["dialects/errors", "dialects/names", "dialects/elements"],
    "dialects/nn": ["dialects/errors", "dialects/names", "dialects/elements", "dialects/kernel", "runtime/kernels"],
    "dialects/train": ["dialects/errors", "dialects/names", "dialects/elements", "dialects/nn", "runtime/kernels"],
    "passes/planning": ["runtime/plan/plan.h", "runtime/ranks/rank_memory.h", "runtime/byte_text.h"],
    "passes": ["dialects", "passes/planning", "runtime/plan/plan.h", "runtime/ranks/rank_memory.h", "runtime/byte_text.h",
               "runtime/name_pattern.h"],
    "compiler": ["dialects", "passes", "runtime/byte_text.h", "runtime/name_pattern.h", "runtime/program.h",
                 "runtime/files/own_files.h", "runtime/kernels/dequantize.h", "runtime/kernels/rounded_block.h",
                 "runtime/files/conversion.h", "runtime/files/crc32c.h", "runtime/files/bounded_json.h",
                 "runtime/files/json_names.h", "runtime/files/inner_path.h", "runtime/kernels/narrow_float.h",
                 "runtime/plan/plan.h", "runtime/ranks/rank_memory.h", "runtime/options/option_table.h"],
    "tools": ["dialects", "passes", "compiler", "runtime"],
}


OTHERS = {"mlir", "llvm"}  # folders of libraries that are included in quotes


def room(path):
    """The row of a file: the longest that it lies below."""
    rows = [row for row in MAY_INCLUDE if path == row or path.startswith(row + "/")]
    return max(rows, key=len, default=None)


def is_below(path, folder):
    """`runtime/.` is what lies in the row of `runtime` itself."""
    return room(path) == folder[:-2] if folder.endswith("/.") else path == folder or path.startswith(folder + "/")


status = 0
rows = list(MAY_INCLUDE)
for row, others in MAY_INCLUDE.items():
    for other in others:
        if room(other.removesuffix("/.")) in rows[rows.index(row):]:
            print(f"includes.py: {row} stands before {other}, which it may include")
            status = 1
for top in sorted({row.split("/")[0] for row in rows}):
    for file in sorted((root / top).rglob("*")):
        if file.suffix not in (".cpp", ".h", ".cu", ".td") or not file.is_file():
            continue
        path = file.relative_to(root).as_posix()
        own = room(path)
        if own == "runtime" and path.count("/") > 1:
            own = None
        for number, line in enumerate(file.read_text().splitlines(), 1):
            found = re.match(r'\s*#?\s*include\s+"([^"]+)"', line)
            if not found:
                continue
            included = found.group(1)
            if included.split("/")[0] not in {row.split("/")[0] for row in rows}:
                if included.split("/")[0] not in OTHERS or "/" not in included:
                    print(f"{path}:{number}: {included} is not named from the root")
                    status = 1
            elif own and room(included) != own and not any(
                    is_below(included, one) for one in MAY_INCLUDE[own]):
                print(f"{path}:{number}: {own} may not include {included}")
                status = 1
            elif not own:
                print(f"{path}:{number}: no row of includes.py says what this folder may include")
                status = 1
sys.exit(status)
