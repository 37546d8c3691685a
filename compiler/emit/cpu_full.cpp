// SPDX-License-Identifier: Apache-2.0
//
// Reductions over everything on a CPU: blocks of fixed size side by side, then their
// partial results in order.
#include "compiler/emit/cpu_kernel.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace trainc;

/// The rows of a block, with the indexes of all dimensions but the last.
void CpuKernel::openBlockRows() {
  int64_t rows = nest.points() / nest.sizes.back(), below = rows;
  std::string per = std::to_string(schedule.getBlock());
  writer.line("for (" + indexType + " row = block * " + per + "; row < minimum<" + indexType +
              ">(" + std::to_string(rows) + ", block * " + per + " + " + per + "); ++row) {");
  for (size_t d = 0; d + 1 < nest.sizes.size(); ++d) {
    below /= nest.sizes[d];
    std::string value = below == 1 ? "row" : "row / " + std::to_string(below);
    if (d != 0)
      value += " % " + size(d);
    writer.line("[[maybe_unused]] const " + indexType + " " + code.index(d) + " = " + value + ";");
  }
}

/// One block, reduced into `parts`.
void CpuKernel::sumBlock(kernel::ReduceOp reduce, ArrayRef<std::string> parts) {
  Block &block = reduce.getBody().front();
  size_t last = nest.sizes.size() - 1;
  const SmallVector<std::string> partials = declarePartials(reduce, "lanes");
  std::string begin = "0", end = size(last), per = std::to_string(schedule.getBlock());
  if (last == 0) {
    writer.line("const " + indexType + " begin = block * " + per + ";");
    writer.line("const " + indexType + " end = minimum<" + indexType + ">(" + end + ", begin + " +
                per + ");");
    begin = "begin";
    end = "end";
  } else {
    openBlockRows();
    printAt(block, bit(last) - 1, 0);
  }
  openLanes(block, last, begin, end);
  printAt(block, everything, bit(last) - 1);
  yieldInto(reduce, partials, "[lane]");
  writer.line("});");
  close(last == 0 ? 0 : 1);
  eachReduction(reduce, [&](kernel::Reduction, Value result, size_t k) {
    writer.line(parts[k] + "[block] = " + reductionText(result).verb + "_lanes(" + partials[k] +
                ");");
  });
}

void CpuKernel::reduceBlocks(kernel::ReduceOp reduce) {
  // Elements of the only dimension, or else whole rows of the last.
  int64_t units = nest.sizes.size() == 1 ? nest.sizes[0] : nest.points() / nest.sizes.back();
  std::string count = std::to_string((units + schedule.getBlock() - 1) / schedule.getBlock());
  SmallVector<std::string> parts;
  eachReduction(reduce, [&](kernel::Reduction, Value result, size_t) {
    parts.push_back(code.names.unique(reductionText(result).result + "_of_block"));
    writer.line(scalarType(result.getType()) + " " + parts.back() + "[" + count + "];");
  });
  printAt(reduce.getBody().front(), 0, nothing);
  writer.directive("#pragma omp parallel for schedule(static)");
  writer.line("for (" + indexType + " block = 0; block < " + count + "; ++block) {");
  sumBlock(reduce, parts);
  close(1);
  combineInOrder(reduce, [&](Type type, size_t k) {
    return std::pair{"for (const " + scalarType(type).str() + " of_block : " + parts[k] + ") {",
                     std::string("of_block")};
  });
}

void CpuKernel::emitFull() {
  printPrologue();
  for (Operation &op : function.getBody().front()) {
    if (auto map = dyn_cast<kernel::MapOp>(op))
      mapPoints(map);
    else if (auto reduce = dyn_cast<kernel::ReduceOp>(op))
      schedule.getBlock() > 0 ? reduceBlocks(reduce) : reduceRow(reduce, nest.walked);
    else if (!isPrologue(op))
      code.print(op);
  }
}
