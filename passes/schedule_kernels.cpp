// SPDX-License-Identifier: Apache-2.0
//
// schedule-kernels: how a target runs each kernel, written into the IR.
//
// Problem: one loop nest must keep the cores of a CPU or the thousands of threads of
// a device busy, and its results must not depend on how many there are. Method:
// all that decides an order of rounding, and all that a printer has to choose, is a
// function of form, sizes and accesses; the choice is an attribute of the kernel
// (dialects/kernel/schedule.td) that printers print. On a CPU, threads share outer
// loops, blocks of columns or blocks of fixed size. On a device a point is a thread's, four
// points where vectors are accessed; a row is a thread's, a warp's or a block's by its length; a
// column or a sum over everything is cut into parts whose results a second function
// combines. Weakness: sizes alone decide, not what a point costs; a kernel of several
// dependent reductions is not cut.
#include "dialects/kernel/loop_nest.h"
#include "dialects/kernel/schedule.h"
#include "passes/module_pass.h"
#include "passes/options/checked_pass.h"
#include "passes/passes.h"
#include "passes/planning/memory_plan.h"
#include "passes/plans/tensor_places.h"

using namespace mlir;

namespace trainc {
namespace {

using kernel::Form;
using kernel::Stage;
using kernel::Worker;

int64_t quotient(int64_t a, int64_t b) { return (a + b - 1) / b; }

bool hasColumns(const LoopNest &nest, Form form) {
  return form == Form::column && !nest.kept.empty();
}

namespace cpu {

constexpr int64_t kParallelPoints = 8192; // below this, waking threads costs more than the work
constexpr int64_t kBlock = 4096;          // elements of a block of a flat loop
constexpr int64_t kMaxBlocks = 1024;  // partial results that a full reduction keeps on the stack
constexpr int64_t kLanes = 16;        // blocks of a flat loop are whole vectors of any machine
constexpr int64_t kColumnBlock = 256; // columns of a block: 1 KB of each row of f32
constexpr int64_t kFewBlocks = 16;    // fewer blocks of columns than this: rows are cut too
constexpr int64_t kChunkRows = 64;    // least rows of a chunk then
constexpr int64_t kStackBytes = 256 << 10; // most that a kernel's partial results take
constexpr int64_t kWidestResult = 8;       // bytes

/// Rows of a chunk where there are few columns and many rows; 0: rows are not cut.
int64_t chunkRows(const LoopNest &nest) {
  kernel::ReduceOp reduce = nest.onlyReduction();
  if (nest.sizes.size() != 2 || nest.outer != 1 || !reduce)
    return 0;
  int64_t rows = nest.sizes[0], columns = nest.sizes[1];
  int64_t blocks = quotient(columns, kColumnBlock);
  if (blocks >= kFewBlocks || rows < 2 * kChunkRows)
    return 0;
  int64_t chunks = std::min({rows / kChunkRows, quotient(kFewBlocks, blocks),
                             kStackBytes / (columns * reduce.getNumResults() * kWidestResult)});
  return chunks < 2 ? 0 : quotient(rows, chunks);
}

/// Elements of the only dimension, or else whole rows of the last, that one partial result of
/// a full reduction is of.
int64_t fullBlock(const LoopNest &nest) {
  size_t rank = nest.sizes.size();
  int64_t inner = nest.sizes.back();
  int64_t units = rank == 1 ? inner : nest.points() / inner, unit = rank == 1 ? 1 : inner;
  int64_t block = std::max(quotient(kBlock, unit), quotient(units, kMaxBlocks));
  return rank == 1 ? quotient(block, kLanes) * kLanes : block;
}

kernel::CpuScheduleAttr schedule(kernel::FunctionOp function) {
  const LoopNest nest(function);
  int64_t rank = nest.sizes.size(), parallel = 0, block = 0, chunk = 0;
  bool worthThreads = nest.points() >= kParallelPoints;
  switch (function.getForm()) {
  case Form::pointwise:
    parallel = std::max<int64_t>(rank - 1, 1);
    break;
  case Form::row:
    parallel = nest.kept.size();
    break;
  case Form::column:
    if (!nest.kept.empty())
      block = std::min(nest.sizes.back(), kColumnBlock);
    chunk = worthThreads && !nest.kept.empty() ? chunkRows(nest) : 0;
    parallel = nest.kept.size() + (chunk > 0);
    break;
  case Form::full:
    parallel = std::max<int64_t>(rank - 1, 1);
    block = worthThreads ? fullBlock(nest) : 0;
    break;
  }
  return kernel::CpuScheduleAttr::get(function.getContext(), worthThreads ? parallel : 0, block,
                                      chunk);
}

} // namespace cpu

namespace cuda {

constexpr int64_t kThreads = 256;         // of a block; at most 255 registers each fit
constexpr int64_t kMostBlocks = 4096;     // of a pointwise kernel: the rest is a loop
constexpr int64_t kThreadRow = 16;        // longest row that one thread walks
constexpr int64_t kWarpRow = 1024;        // longest row that one warp walks
constexpr int64_t kWarpsOfBlock = 4;      // in kernels where a warp has a row
constexpr int64_t kManyColumns = 4096;    // fewer columns leave a device idle with a thread each
constexpr int64_t kFewRows = 64;          // fewer rows of a column are one thread's
constexpr int64_t kRowsOfPart = 64;       // at least: eight for each thread of a column
constexpr int64_t kBlocks = 1024;         // enough to fill any device several times
constexpr int64_t kElementsOfPart = 4096; // at least, in form full: sixteen for each thread
constexpr int64_t kUncut = 16384;         // elements that one block reduces faster by itself
constexpr int64_t kHeldBytes = 192;       // of a row, at most, in a thread's registers
constexpr int64_t kMostThreads = 1024;    // of a block: each then has 64 registers
constexpr int64_t kHeldByMost = 128;      // in these

class Scheduler {
public:
  explicit Scheduler(kernel::FunctionOp function)
      : function(function), form(function.getForm()), nest(function) {}

  kernel::CudaScheduleAttr schedule();

private:
  struct Shape {
    Worker worker = Worker::thread;
    int64_t threads = kernel::warpThreads, blocks = 1, blocksY = 1, columns = 1;
    int64_t vector = 1, rounds = 0;
  };
  kernel::PartsAttr parts();
  kernel::DeviceFunctionAttr device(Stage stage, kernel::PartsAttr parts);
  Shape shapeOf(Stage stage, kernel::PartsAttr parts);
  Shape points(Shape shape, int64_t count);
  Shape results();
  void holdRow(Shape &shape);
  bool isTiled() const;
  int64_t widestVector(Stage stage);
  int64_t vectorOf(Stage stage);
  Worker workerOf();

  kernel::FunctionOp function;
  Form form;
  LoopNest nest;
};

/// A reduction of a column or of everything is cut where it has enough elements; else null.
kernel::PartsAttr Scheduler::parts() {
  kernel::ReduceOp reduce = nest.onlyReduction();
  if (!reduce || (form != Form::column && form != Form::full))
    return {};
  int64_t count = 1, rowsOfPart = 0;
  int64_t rows = nest.points(nest.walked), columns = nest.points(nest.kept);
  if (!hasColumns(nest, form)) {
    if (rows > kUncut)
      count = std::min(quotient(rows, kElementsOfPart), kBlocks);
  } else {
    const int64_t columnsOfBlock = kernel::warpThreads * vectorOf(Stage::parts);
    int64_t wanted = std::max<int64_t>(1, kBlocks / quotient(columns, columnsOfBlock));
    rowsOfPart = quotient(rows, std::clamp<int64_t>(rows / kRowsOfPart, 1, wanted));
    count = quotient(rows, rowsOfPart);
  }
  if (count < 2)
    return {};
  SmallVector<int64_t> offsets;
  int64_t bytes = 0;
  for (Value result : reduce.getOuts()) {
    offsets.push_back(bytes);
    bytes += planning::alignedBytes(count * columns * elementBytes(result.getType()));
  }
  return kernel::PartsAttr::get(function.getContext(), count, rowsOfPart, offsets, bytes);
}

/// Blocks of neighbouring columns, a number of rows at a time.
bool Scheduler::isTiled() const {
  return hasColumns(nest, form) && nest.onlyReduction() && nest.points(nest.walked) >= kFewRows;
}

/// Neighbours along the last dimension that make sixteen bytes of the narrowest floats which a
/// thread accesses side by side; 1: it accesses none so.
int64_t Scheduler::widestVector(Stage stage) {
  auto operations = kernel::operationsOfStage(function, stage);
  auto accesses = [&](int64_t width, bool onlyNarrow) {
    return llvm::count_if(operations, [&](Operation *op) {
      return nest.isVector(op, width) &&
             (!onlyNarrow ||
              isNarrowFloat(
                  cast<kernel::BufferType>(function.getBody().getArgument(argumentOf(op)).getType())
                      .getElement()));
    });
  };
  if (accesses(kernel::narrowVectorElements, true) > 0 &&
      accesses(kernel::narrowVectorElements, false) == accesses(kernel::vectorElements, false))
    return kernel::narrowVectorElements;
  return accesses(kernel::vectorElements, false) > 0 ? kernel::vectorElements : 1;
}

int64_t Scheduler::vectorOf(Stage stage) {
  bool walksLast = form == Form::pointwise || isTiled() ||
                   (!nest.walked.empty() && nest.walked.back() + 1 == nest.sizes.size());
  if (stage == Stage::total || nest.sizes.empty() || !walksLast)
    return 1;
  const int64_t widest = widestVector(stage);
  for (int64_t width : {widest, std::min(widest, kernel::vectorElements)})
    if (nest.sizes.back() % width == 0 &&
        !(isTiled() && nest.points(nest.kept) < kernel::warpThreads * width)) // idle threads
      return width;
  return 1;
}

/// Rows that several phases read stay in registers, where they are short enough.
void Scheduler::holdRow(Shape &shape) {
  const int64_t vector = widestVector(Stage::whole);
  if (form != Form::row || nest.walked.size() != 1 || vector == 1)
    return;
  int64_t bytes = 0; // of a point
  for (unsigned argument : kernel::heldBuffers(nest, vector))
    bytes += elementBytes(
        cast<kernel::BufferType>(function.getBody().getArgument(argument).getType()).getElement());
  if (bytes == 0)
    return;
  const bool isWarps = shape.worker == Worker::warp;
  for (int64_t threads = shape.threads; threads <= kMostThreads; threads *= 2) {
    const int64_t workers = isWarps ? kernel::warpThreads : threads;
    const int64_t rounds = quotient(nest.sizes.back(), workers * vector);
    if (rounds * vector * bytes <= (threads == kMostThreads ? kHeldByMost : kHeldBytes)) {
      shape.threads = threads;
      shape.vector = vector;
      shape.rounds = rounds;
      return;
    }
    if (isWarps)
      return;
  }
}

Worker Scheduler::workerOf() {
  int64_t length = nest.points(nest.walked);
  if (length <= kThreadRow)
    return Worker::thread;
  // Neighbouring threads read neighbouring columns.
  if (hasColumns(nest, form) && (nest.points(nest.kept) >= kManyColumns || length <= kFewRows))
    return Worker::thread;
  return length <= kWarpRow ? Worker::warp : Worker::block;
}

/// A thread for each of `count` points.
Scheduler::Shape Scheduler::points(Shape shape, int64_t count) {
  shape.threads = std::min(kThreads, quotient(count, kernel::warpThreads) * kernel::warpThreads);
  shape.blocks = quotient(count, shape.threads);
  return shape;
}

/// A worker for each row or column, or for the only result.
Scheduler::Shape Scheduler::results() {
  int64_t count = nest.points(nest.kept);
  Shape shape{.worker = workerOf(), .vector = vectorOf(Stage::whole)};
  if (shape.worker == Worker::thread)
    return points(shape, count);
  bool block = shape.worker == Worker::block;
  int64_t perBlock = block ? 1 : std::min(count, kWarpsOfBlock);
  shape.threads = block ? kThreads : kernel::warpThreads * perBlock;
  shape.blocks = quotient(count, perBlock);
  holdRow(shape);
  return shape;
}

Scheduler::Shape Scheduler::shapeOf(Stage stage, kernel::PartsAttr parts) {
  if (form == Form::pointwise) {
    const int64_t vector = vectorOf(stage);
    Shape shape = points({.vector = vector}, nest.points() / vector);
    shape.blocks = std::min(shape.blocks, kMostBlocks);
    return shape;
  }
  if (hasColumns(nest, form)) {
    int64_t columns = nest.points(nest.kept);
    if (stage == Stage::total)
      return points({}, columns);
    // Blocks of 32 columns, or vectors of them, by 8 rows at a time.
    if (isTiled()) {
      const int64_t vector = vectorOf(stage), columnsOfBlock = kernel::warpThreads * vector;
      return {.worker = Worker::block,
              .threads = kThreads,
              .blocks = quotient(columns, columnsOfBlock),
              .blocksY = stage == Stage::parts ? parts.getCount() : 1,
              .columns = columnsOfBlock,
              .vector = vector};
    }
  } else if (stage != Stage::whole) {
    int64_t blocks = stage == Stage::parts ? parts.getCount() : 1;
    return {
        .worker = Worker::block, .threads = kThreads, .blocks = blocks, .vector = vectorOf(stage)};
  }
  return results();
}

kernel::DeviceFunctionAttr Scheduler::device(Stage stage, kernel::PartsAttr parts) {
  Shape shape = shapeOf(stage, parts);
  return kernel::DeviceFunctionAttr::get(function.getContext(), stage, shape.worker, shape.threads,
                                         shape.blocks, shape.blocksY, shape.columns, shape.vector,
                                         shape.rounds);
}

kernel::CudaScheduleAttr Scheduler::schedule() {
  kernel::PartsAttr cut = parts();
  SmallVector<kernel::DeviceFunctionAttr> devices;
  if (cut)
    devices = {device(Stage::parts, cut), device(Stage::total, cut)};
  else
    devices = {device(Stage::whole, {})};
  return kernel::CudaScheduleAttr::get(function.getContext(), devices, cut);
}

} // namespace cuda

struct ScheduleKernels : ModulePass<ScheduleKernels, CheckedPass> {
  ScheduleKernels() = default;
  explicit ScheduleKernels(StringRef name) { target = name.str(); }

  TextOption target{*this, "target", "name", "cpu", "what runs the kernels: cpu or cuda"};

  static constexpr StringLiteral flag = "schedule-kernels";
  static constexpr StringLiteral description =
      "Decide how a target's threads, vectors and parts share the work of each kernel";

  void checkOptions(OptionReader &reader) const override {
    reader.choice("target", target, kTargets);
  }

  void runOnOperation() override {
    for (auto function : getOperation().getOps<kernel::FunctionOp>())
      if (target == "cuda")
        function.setScheduleAttr(cuda::Scheduler(function).schedule());
      else
        function.setScheduleAttr(cpu::schedule(function));
  }
};

PassRegistration<ScheduleKernels> scheduleKernelsRegistration;

} // namespace

std::unique_ptr<Pass> createScheduleKernelsPass(StringRef target) {
  return std::make_unique<ScheduleKernels>(target);
}

} // namespace trainc
