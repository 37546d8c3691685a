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
void DeviceFunction::sumColumnRows(kernel::ReduceOp reduce, ArrayRef<std::string> own) {
  int64_t rows = nest.points(nest.walked);
  std::string row = "threadIdx.x / 32", end;
  if (stage == Stage::parts) {
    row = "part * " + number(cut.getRows()) + " + " + row;
    end = "(part + 1) * " + number(cut.getRows());
    if (rows % cut.getRows() != 0)
      end = ("minimum<" + indexType + ">(" + end + ", ").str() + number(rows) + ")";
  }
  Block &block = reduce.getBody().front();
  // Of packs of columns what depends on the column is a lane's.
  const uint64_t outside = step == 1 ? keptMask : keptMask & ~bit(nest.sizes.size() - 1);
  printAt(block, outside, nothing);
  openWalk(row, schedule.getThreads() / kernel::warpThreads, /*width=*/1, end);
  printBody(block, outside, [&] { yieldInto(reduce, own, step == 1 ? "" : "[lane]"); });
  close(1);
}

/// The first of the columns that a thread adds up.
void DeviceFunction::openColumns() {
  const std::string column = nameFlat(nest.kept, "column");
  const bool isOnly = nest.kept.size() == 1;
  std::string value = blockNumber() + " * 32 + threadIdx.x % 32";
  if (step > 1 && isOnly)
    value = "(" + value + ") * " + number(step);
  writer.line("const " + indexType + " " + column + " = " + value + ";");
}

/// What a thread reduces its columns to.
SmallVector<std::string> DeviceFunction::declareLanes(kernel::ReduceOp reduce) {
  if (step == 1)
    return declareOwn(reduce);
  SmallVector<std::string> own, neutral;
  eachReduction(reduce, [&](kernel::Reduction kind, Value result, size_t k) {
    own.push_back(code.names.value(reductionText(result).result + "_of_thread"));
    writer.line(scalarType(result.getType()) + " " + own[k] + "[" + number(step) + "];");
    neutral.push_back(own[k] + "[lane] = " + neutralText(kind, result.getType()) + ";");
  });
  writer.directive("#pragma unroll");
  writer.line("for (int lane = 0; lane < " + number(step) + "; ++lane) {");
  for (const std::string &text : neutral)
    writer.line(text);
  close(1);
  return own;
}

/// The threads' results in shared memory, warp after warp.
SmallVector<std::string> DeviceFunction::shareLanes(kernel::ReduceOp reduce,
                                                    ArrayRef<std::string> own) {
  SmallVector<std::string> shared;
  eachReduction(reduce, [&](kernel::Reduction, Value result, size_t k) {
    shared.push_back(code.names.value(reductionText(result).partial));
    writer.line("__shared__ " + scalarType(result.getType()) + " " + shared[k] + "[" +
                number(schedule.getThreads() * step) + "];");
    if (step == 1)
      writer.line(shared[k] + "[threadIdx.x] = " + own[k] + ";");
  });
  if (step > 1) {
    writer.directive("#pragma unroll");
    writer.line("for (int lane = 0; lane < " + number(step) + "; ++lane) {");
    for (auto [to, from] : llvm::zip(shared, own))
      writer.line(to + "[threadIdx.x * " + number(step) + " + lane] = " + from + "[lane];");
    close(1);
  }
  writer.line("__syncthreads();");
  return shared;
}

/// What the threads of a block have summed of their columns, in shared memory.
SmallVector<std::string> DeviceFunction::sumColumns(kernel::ReduceOp reduce) {
  const int64_t columns = nest.points(nest.kept);
  const std::string column = nameFlat(nest.kept, "column");
  const bool partial = columns % schedule.getColumns() != 0, isPacked = step > 1;
  if (!isPacked)
    openColumns();
  if (stage == Stage::parts)
    writer.line("const " + indexType + " part = blockIdx.y;");
  SmallVector<std::string> own = declareLanes(reduce);
  NameTable outside = code.names;
  if (isPacked) {
    writer.line("{");
    openColumns();
  }
  const int64_t flat = isPacked && nest.kept.size() > 1 ? columns / step : columns;
  if (partial)
    writer.line("if (" + column + " < " + number(flat) + ") {");
  printIndices(nest.kept, column, step);
  sumColumnRows(reduce, own);
  close(partial ? 1 : 0);
  if (isPacked) {
    close(1);
    code.names = outside;
  }
  return shareLanes(reduce, own);
}

/// A thread for each column of a block; the others return.
void DeviceFunction::openColumnOfThread() {
  const int64_t columns = nest.points(nest.kept), ofBlock = schedule.getColumns();
  const std::string column = nameFlat(nest.kept, "column");
  const bool partial = columns % ofBlock != 0;
  const std::string isBeyond = column + " >= " + number(columns);
  if (step == 1)
    return leaveIf("threadIdx.x >= " + number(ofBlock) + (partial ? " || " + isBeyond : ""));
  leaveIf("threadIdx.x >= " + number(ofBlock));
  writer.line("const " + indexType + " " + column + " = " + blockNumber() + " * " +
              number(ofBlock) + " + threadIdx.x;");
  if (partial)
    leaveIf(isBeyond);
}

/// Blocks of 32 columns, or packs of them, by 8 rows at a time, for one part of the rows each.
void DeviceFunction::emitColumnRows(kernel::ReduceOp reduce) {
  const int64_t columns = nest.points(nest.kept), ofBlock = schedule.getColumns();
  const std::string column = nameFlat(nest.kept, "column");
  SmallVector<std::string> shared = sumColumns(reduce);
  openColumnOfThread();
  combineInOrder(reduce, [&](Type, size_t k) {
    return std::pair{"for (int thread = threadIdx.x; thread < " +
                         number(schedule.getThreads() * step) + "; thread += " + number(ofBlock) +
                         ") {",
                     shared[k] + "[thread]"};
  });
  worker = Worker::thread;
  if (stage == Stage::whole) {
    if (nest.kept.size() > 1 && (columns % ofBlock != 0 || step > 1))
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
