# SPDX-License-Identifier: Apache-2.0
#
# The functions of more than 40 lines: FILE NAME LINES for each.
#
#   functions.py ROOT
#
# Reads what clang-format wrote: a function's last line is a brace under the first column of its head.
import pathlib
import re
import sys

MOST_LINES = 40
FOLDERS = ("compiler", "dialects", "passes", "runtime", "tools")
SCOPE = re.compile(r"\s*(?:template <.*> )?(?:inline )?(?:namespace|struct|class|enum|union|extern)\b[^(]*\{$")


def functions(lines):
    """Name, number of the first line and length of each."""
    begin, i = 0, 0
    while i < len(lines):
        line = lines[i].split(" // ")[0].rstrip()
        if not line.endswith("{") or SCOPE.match(line):
            if re.search(r"[;{}:\\]$|^\s*(?:#|//)|^$", line):
                begin = i + 1  # of the next statement
            i += 1
            continue
        head = " ".join(text.strip() for text in lines[begin : i + 1])
        indent = re.match(r" *", lines[begin])[0]
        end = next((j for j in range(i + 1, len(lines)) if re.match(indent + r"\}", lines[j])), i)
        name = re.search(r"([\w~:]+|operator\S+)\(", head)
        if name and not re.search(r"(?<![=!<>])= \{$", head):
            yield name[1].split("::")[-1], begin + 1, end - begin + 1
        i = begin = end + 1


def main():
    root = pathlib.Path(sys.argv[1])
    for source in sorted(path for folder in FOLDERS for path in (root / folder).rglob("*")):
        if source.suffix in {".cpp", ".h", ".cu"}:
            for name, _, length in functions(source.read_text().splitlines()):
                if length > MOST_LINES:
                    print(source.relative_to(root).as_posix(), name, length)


main()
