// SPDX-License-Identifier: Apache-2.0
//
// Device functions for a kernel.reduce that stands alone: blocks of neighbouring columns,
// parts whose results lie in scratch, and what these give together.
#include "compiler/emit/device_function.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace trainc;
using kernel::Stage;
using kernel::Worker;

/// The rows of one part, or all of them, shared by the warps of a block.
void DeviceFunction::sumColumnRows(kernel::ReduceOp reduce, ArrayRef<std::string> own,
                                   bool partial) {
  int64_t rows = nest.points(nest.walked);
  std::string row = "threadIdx.x / 32", end;
  if (stage == Stage::parts) {
    row = "part * " + number(cut.getRows()) + " + " + row;
    end = "(part + 1) * " + number(cut.getRows());
    if (rows % cut.getRows() != 0)
      end = ("minimum<" + indexType + ">(" + end + ", ").str() + number(rows) + ")";
  }
  Block &block = reduce.getBody().front();
  printAt(block, keptMask, nothing);
  openWalk(row, schedule.getThreads() / kernel::warpThreads, end);
  printBody(block, keptMask, [&] { yieldInto(reduce, own, ""); });
  close(partial ? 2 : 1);
}

/// Blocks of 32 columns by 8 rows at a time, for one part of the rows each.
void DeviceFunction::emitColumnRows(kernel::ReduceOp reduce) {
  int64_t columns = nest.points(nest.kept), threads = schedule.getThreads();
  std::string column = nameFlat(nest.kept, "column");
  writer.line("const " + indexType + " " + column + " = " + blockNumber() + " * " +
              number(schedule.getColumns()) + " + threadIdx.x % 32;");
  if (stage == Stage::parts)
    writer.line("const " + indexType + " part = blockIdx.y;");
  SmallVector<std::string> own = declareOwn(reduce);
  bool partial = columns % schedule.getColumns() != 0;
  if (partial)
    writer.line("if (" + column + " < " + number(columns) + ") {");
  printIndices(nest.kept, column, 1);
  sumColumnRows(reduce, own, partial);
  SmallVector<std::string> shared;
  eachReduction(reduce, [&](kernel::Reduction, Value result, size_t k) {
    shared.push_back(code.names.value(reductionText(result).partial));
    writer.line("__shared__ " + scalarType(result.getType()) + " " + shared[k] + "[" +
                number(threads) + "];");
    writer.line(shared[k] + "[threadIdx.x] = " + own[k] + ";");
  });
  writer.line("__syncthreads();");
  returnIf("threadIdx.x >= 32" + (partial ? " || " + column + " >= " + number(columns) : ""));
  combineInOrder(reduce, [&](Type, size_t k) {
    return std::pair{"for (int thread = threadIdx.x; thread < " + number(threads) +
                         "; thread += 32) {",
                     shared[k] + "[thread]"};
  });
  worker = Worker::thread;
  if (stage == Stage::whole) {
    if (nest.kept.size() > 1 && partial)
      printIndices(nest.kept, column, 1);
    return printTail();
  }
  eachReduction(reduce, [&](kernel::Reduction, Value result, size_t k) {
    writer.line(parts[k] + "[part * " + number(columns) + " + " + column +
                "] = " + code.text(result) + ";");
  });
}

/// The parts of a column in order, then what is left to do with their sum.
void DeviceFunction::emitColumnTotal(kernel::ReduceOp reduce) {
  openPoints(nest.kept, "column", 1);
  std::string column = nameFlat(nest.kept, "column");
  combineInOrder(reduce, [&](Type, size_t k) {
    return std::pair{"for (int part = 0; part < " + number(cut.getCount()) + "; ++part) {",
                     parts[k] + "[part * " + number(nest.points(nest.kept)) + " + " + column + "]"};
  });
  printTail();
}

/// Every block reduces an equal share of the points, strewn over all of them.
void DeviceFunction::emitFullParts(kernel::ReduceOp reduce) {
  SmallVector<std::string> own = declareOwn(reduce);
  Block &block = reduce.getBody().front();
  NameTable outside = code.names;
  openGrid(nest.walked);
  printBody(block, nothing, [&] { yieldInto(reduce, own, ""); });
  close(1);
  code.names = outside;
  combineOwn(reduce, own);
  writer.line("if (threadIdx.x == 0) {");
  eachReduction(reduce, [&](kernel::Reduction, Value result, size_t k) {
    writer.line(parts[k] + "[blockIdx.x] = " + code.text(result) + ";");
  });
  close(1);
}

void DeviceFunction::emitFullTotal(kernel::ReduceOp reduce) {
  SmallVector<std::string> own = declareOwn(reduce);
  writer.line("for (int part = threadIdx.x; part < " + number(cut.getCount()) +
              "; part += " + number(schedule.getThreads()) + ") {");
  eachReduction(reduce, [&](kernel::Reduction kind, Value result, size_t k) {
    writer.line(combinationText(kind, result.getType(), own[k], parts[k] + "[part]"));
  });
  close(1);
  combineOwn(reduce, own);
  printTail();
}
