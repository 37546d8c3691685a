// SPDX-License-Identifier: Apache-2.0
//
// Columns on a CPU: blocks of them side by side in vectors, and chunks of rows where
// the schedule cuts those.
#include "compiler/emit/cpu_kernel.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace trainc;

/// Loops of a region in form column: walked dimensions, then the lanes of a block of
/// columns innermost. `end` prints after the last operation of the innermost loop.
void CpuKernel::columnLoops(Block &block, uint64_t outer, llvm::function_ref<void()> end) {
  uint64_t visible = outer;
  printAt(block, visible, nothing);
  for (size_t d : nest.walked) {
    openLoop(d);
    printAt(block, visible | bit(d), visible);
    visible |= bit(d);
  }
  writer.directive("#pragma omp simd");
  writer.line("for (int lane = 0; lane < width; ++lane) {");
  printAt(block, everything, visible);
  end();
  close(1 + nest.walked.size());
}

/// Scalar operations between phases: one loop over the lanes. What later phases use is kept per
/// lane.
void CpuKernel::columnScalars(ArrayRef<Operation *> operations, uint64_t outer) {
  SmallVector<Operation *> perLane;
  llvm::DenseSet<Operation *> together;
  for (Operation *op : operations) {
    bool lane = (nest.dependence(op) & ~outer & ~LoopNest::reduced) != 0;
    if (!lane && !isa<kernel::StoreOp>(op)) {
      code.print(*op);
      continue;
    }
    perLane.push_back(op);
    together.insert(op);
  }
  if (perLane.empty())
    return;
  SmallVector<std::pair<Operation *, std::string>> kept;
  for (Operation *op : perLane) {
    bool usedLater =
        llvm::any_of(op->getUsers(), [&](Operation *user) { return !together.contains(user); });
    if (!usedLater || op->getNumResults() != 1)
      continue;
    std::string name = code.names.unique("column_value");
    writer.line(scalarType(op->getResult(0).getType()) + " " + name + "[block];");
    kept.push_back({op, name});
  }
  writer.directive("#pragma omp simd");
  writer.line("for (int lane = 0; lane < width; ++lane) {");
  for (Operation *op : perLane)
    code.print(*op);
  for (auto &[op, name] : kept)
    writer.line(name + "[lane] = " + code.text(op->getResult(0)) + ";");
  close(1);
  for (auto &[op, name] : kept)
    code.setText(op->getResult(0), name + "[lane]");
}

void CpuKernel::columnPhases(uint64_t outer) {
  SmallVector<Operation *> scalars;
  auto flush = [&] {
    columnScalars(scalars, outer);
    scalars.clear();
  };
  for (Operation &op : function.getBody().front()) {
    if (auto reduce = dyn_cast<kernel::ReduceOp>(op)) {
      flush();
      const SmallVector<std::string> partials = declarePartials(reduce, "block");
      columnLoops(reduce.getBody().front(), outer, [&] { yieldInto(reduce, partials, "[lane]"); });
      for (auto [result, partial] : llvm::zip(reduce.getOuts(), partials))
        code.setText(result, partial + "[lane]");
    } else if (auto map = dyn_cast<kernel::MapOp>(op)) {
      flush();
      columnLoops(map.getBody().front(), outer, [] {});
    } else if (!isPrologue(op)) {
      scalars.push_back(&op);
    }
  }
  flush();
}

/// One chunk of rows in a block of columns, reduced into `parts`.
void CpuKernel::sumChunk(kernel::ReduceOp reduce, ArrayRef<std::string> parts) {
  const SmallVector<std::string> partials = declarePartials(reduce, "block");
  std::string chunk = std::to_string(schedule.getChunk());
  Block &block = reduce.getBody().front();
  StringRef i = code.index(0);
  std::string end = "minimum(" + size(0) + ", (chunk + 1) * " + chunk + ")";
  printAt(block, 0, nothing);
  writer.line("for (int " + i + " = chunk * " + chunk + "; " + i + " < " + end + "; ++" + i +
              ") {");
  printAt(block, bit(0), 0);
  writer.directive("#pragma omp simd");
  writer.line("for (int lane = 0; lane < width; ++lane) {");
  printAt(block, everything, bit(0));
  yieldInto(reduce, partials, "[lane]");
  close(2);
  writer.line("for (int lane = 0; lane < width; ++lane) {");
  for (auto [part, partial] : llvm::zip(parts, partials))
    writer.line(part + "[chunk][first + lane] = " + partial + "[lane];");
  close(1);
}

/// Chunks of rows side by side, then their partial results in order.
void CpuKernel::emitColumnChunks() {
  kernel::ReduceOp reduce = nest.onlyReduction();
  std::string columns = size(1);
  int64_t chunks = (nest.sizes[0] + schedule.getChunk() - 1) / schedule.getChunk();
  SmallVector<std::string> parts;
  eachReduction(reduce, [&](kernel::Reduction, Value result, size_t) {
    parts.push_back(code.names.unique(reductionText(result).result + "_of_chunk"));
    writer.line(scalarType(result.getType()) + " " + parts.back() + "[" + std::to_string(chunks) +
                "][" + columns + "];");
  });
  shareLoops();
  writer.line("for (int chunk = 0; chunk < " + std::to_string(chunks) + "; ++chunk) {");
  writer.line("for (int first = 0; first < " + columns + "; first += block) {");
  writer.line("const int width = minimum(block, " + columns + " - first);");
  sumChunk(reduce, parts);
  close(2);

  code.setIndex(1, "column");
  writer.line("for (int column = 0; column < " + columns + "; ++column) {");
  combineInOrder(reduce, [&](Type, size_t k) {
    return std::pair{"for (const auto &of_chunk : " + parts[k] + ") {",
                     std::string("of_chunk[column]")};
  });
  for (Operation &op : function.getBody().front())
    if (op.getNumRegions() == 0 && !isPrologue(op))
      code.print(op);
  close(1);
}

void CpuKernel::emitColumn() {
  if (nest.kept.empty()) // a single column is walked as a row is
    return emitRow();
  printPrologue();
  size_t last = nest.sizes.size() - 1;
  code.setIndex(last, "first + lane");
  writer.line("constexpr int block = " + std::to_string(schedule.getBlock()) + "; // columns");
  if (schedule.getChunk() > 0)
    return emitColumnChunks();
  shareLoops();
  ArrayRef<size_t> outer = ArrayRef(nest.kept).drop_back();
  openLoops(outer);
  writer.line("for (" + indexType + " first = 0; first < " + size(last) + "; first += block) {");
  if (nest.sizes[last] % schedule.getBlock() == 0)
    writer.line("constexpr int width = block;");
  else
    writer.line("const int width = static_cast<int>(minimum<" + indexType + ">(block, " +
                size(last) + " - first));");
  columnPhases(LoopNest::bits(outer));
  close(1 + outer.size());
}
