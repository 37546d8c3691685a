# SPDX-License-Identifier: Apache-2.0
#
# Puts the kernels of many emitted kernels.cu into few files, equal ones once: what nvcc
# says of each kernel it then says for all folders, in a fraction of the time.
#
#   distinct_kernels.py COUNT OUTPUT_FOLDER KERNELS.cu...
#
# A kernel is what stands between two comments at the left margin: its functions and its
# host function. Each gets a namespace of its own. Standard library only.
import pathlib
import re
import sys

count, output, files = int(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
includes, kernels = {}, {}
for file in files:
    text = pathlib.Path(file).read_text()
    for line in re.findall(r"^#include .*$", text, re.M):
        includes[line] = None
    begin = text.index("namespace trainc::kernels {") + len("namespace trainc::kernels {")
    body = text[begin : text.rindex("} // namespace trainc::kernels")]
    current = []
    for paragraph in re.split(r"\n\n+", body.strip("\n")):
        if paragraph.startswith("//") and current:
            kernels["\n\n".join(current)] = None
            current = []
        current.append(re.sub(r"\A(//.*\n)+", "", paragraph))
    kernels["\n\n".join(current)] = None
includes.pop('#include "kernels.h"', None)
includes['#include "runtime/element_range.h"'] = None # of kernels.h: what its functions take

output.mkdir(exist_ok=True)
shares = [list(kernels)[i::count] for i in range(count)]
for i, share in enumerate(shares):
    lines = ["#include <cstdint>", *includes, "", "namespace trainc {"]
    for j, kernel in enumerate(share):
        lines += ["", f"namespace kernel_{i}_{j} {{", kernel, "}"]
    lines += ["", "} // namespace trainc", ""]
    (output / f"kernels_{i}.cu").write_text("\n".join(lines))
print(f"{len(files)} folders, {len(kernels)} distinct kernels")
