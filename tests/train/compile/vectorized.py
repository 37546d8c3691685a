# SPDX-License-Identifier: Apache-2.0
#
# vectorized.py KERNELS.cpp REPORT PREFIX: of each loop that is marked as simd in a function with this
# beginning, whether GCC's report (-fopt-info-vec-optimized) says that it was vectorized. Names those that
# were not; prints how many there are. Standard library only.
import re
import sys

source, report = (open(path).read().splitlines() for path in sys.argv[1:3])
found = (re.match(r"(?:.*/)?kernels\.cpp:(\d+):\d+: optimized: loop vectorized", line) for line in report)
vectorized = {int(match[1]) for match in found if match}
loops, scalar, function = 0, [], ""
for number, line in enumerate(source, start=1):
    if match := re.match(r"void (\w+)\(", line):
        function = match[1]
    if not function.startswith(sys.argv[3]) or not re.match(r"#pragma omp .*\bsimd\b", line):
        continue
    end = next(i for i in range(number, len(source)) if source[i] == "  }") + 1
    loops += 1
    if not vectorized & set(range(number, end + 1)):
        scalar.append(f"{function} (line {number})")
print(f"{loops} loops")
if scalar or not loops:
    sys.exit("not vectorized: " + ", ".join(scalar))
