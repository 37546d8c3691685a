# SPDX-License-Identifier: Apache-2.0
#
# Runs of equal lines in files of two groups: what stands in both belongs in a shared place.
#
#   duplication.py LENGTH FILE... -- FILE...
#
# Blank lines, includes, the licence and lines of brackets alone do not count and do not
# interrupt a run. Prints each run of LENGTH lines or more; ends with 1 where there is one.
import pathlib
import re
import sys

split = sys.argv.index("--")
length, groups = int(sys.argv[1]), (sys.argv[2:split], sys.argv[split + 1 :])
nothing = re.compile(r"$|#include |// SPDX|//$|[\])};,]+$|} // namespace|namespace |public:|private:")


def lines_of(file):
    numbered = enumerate(pathlib.Path(file).read_text().splitlines(), 1)
    return [(n, line.strip()) for n, line in numbered if not nothing.match(line.strip())]


where = {}
for file in groups[0]:
    lines = lines_of(file)
    for i in range(len(lines) - length + 1):
        key = tuple(text for _, text in lines[i : i + length])
        where.setdefault(key, f"{file}:{lines[i][0]}")
status = 0
for file in groups[1]:
    lines = lines_of(file)
    for i in range(len(lines) - length + 1):
        key = tuple(text for _, text in lines[i : i + length])
        if key in where:
            print(f"{file}:{lines[i][0]}: the same {length} lines stand in {where[key]}")
            status = 1
if not where:
    sys.exit("no lines to compare")
sys.exit(status)
