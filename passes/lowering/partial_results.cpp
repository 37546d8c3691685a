// SPDX-License-Identifier: Apache-2.0
//
// How a reduction is cut into parts (partial_results.h).
#include "passes/lowering/partial_results.h"
#include "passes/lowering/tensor_places.h"
#include "passes/planning/memory_plan.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace mlir;

namespace trainc {

namespace {

constexpr int64_t kColumnsOfBlock = 32;
constexpr int64_t kRowsOfPart = 64;       // at least: eight for each thread of a column
constexpr int64_t kBlocks = 1024;         // enough to fill any device several times
constexpr int64_t kElementsOfPart = 4096; // at least, in form full: sixteen for each thread
constexpr int64_t kUncut = 16384;         // elements that one block reduces faster by itself

int64_t product(ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
}

int64_t quotient(int64_t a, int64_t b) { return (a + b - 1) / b; }

} // namespace

/// Whether the value is another for another point.
static bool dependsOnPoint(Value value, kernel::FunctionOp function) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto load = dyn_cast<kernel::LoadOp>(op)) {
    unsigned argument = cast<BlockArgument>(load.getBuffer()).getArgNumber();
    auto access = cast<kernel::AccessAttr>(function.getAccesses()[argument]);
    if (llvm::any_of(access.getStrides(), [](int64_t stride) { return stride != 0; }))
      return true;
  }
  return isa<kernel::IndexOp>(op) || llvm::any_of(op->getOperands(), [&](Value operand) {
           return dependsOnPoint(operand, function);
         });
}

kernel::ReduceOp onlyReduction(kernel::FunctionOp function) {
  kernel::ReduceOp found;
  for (Operation &op : function.getBody().front()) {
    if (op.getNumRegions() == 0)
      continue;
    if (found || !isa<kernel::ReduceOp>(op))
      return {};
    found = cast<kernel::ReduceOp>(op);
  }
  if (!found)
    return {};
  bool standsAlone = true; // needs nothing that a column's other operations compute
  found.getBody().walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      standsAlone &=
          operand.getParentRegion() == &found.getBody() || !dependsOnPoint(operand, function);
  });
  return standsAlone ? found : kernel::ReduceOp();
}

PartialResults partialResults(kernel::FunctionOp function) {
  PartialResults cut;
  kernel::ReduceOp reduce = onlyReduction(function);
  kernel::Form form = function.getForm();
  if (!reduce || (form != kernel::Form::column && form != kernel::Form::full))
    return cut;
  ArrayRef<int64_t> dims = function.getDims();
  int64_t rows = product(dims.take_front(function.getReduced()));
  int64_t columns = product(dims.drop_front(function.getReduced()));
  if (form == kernel::Form::full || columns == 1) {
    columns = 1;
    rows = product(dims);
    if (rows > kUncut)
      cut.parts = std::min(quotient(rows, kElementsOfPart), kBlocks);
  } else {
    int64_t wanted = std::max<int64_t>(1, kBlocks / quotient(columns, kColumnsOfBlock));
    cut.share = quotient(rows, std::clamp<int64_t>(rows / kRowsOfPart, 1, wanted));
    cut.parts = quotient(rows, cut.share);
  }
  if (cut.parts < 2)
    return cut;
  for (Value result : reduce.getOuts()) {
    cut.offsets.push_back(cut.bytes);
    cut.bytes += planning::alignedBytes(cut.parts * columns * elementBytes(result.getType()));
  }
  return cut;
}

} // namespace trainc
