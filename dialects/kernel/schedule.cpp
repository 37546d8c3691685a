// SPDX-License-Identifier: Apache-2.0
//
// What follows from a schedule, and whether it fits its kernel.
#include "dialects/kernel/schedule.h"
#include "dialects/elements/element_type.h"
#include "dialects/errors/internal_error.h"
#include "dialects/kernel/loop_nest.h"

using namespace mlir;
using namespace trainc;

llvm::DenseSet<Operation *> kernel::operationsOfStage(FunctionOp function, Stage stage) {
  SmallVector<Operation *> open;
  function.getBody().walk([&](Operation *op) {
    bool inReduction = isa<ReduceOp>(op) || isa<ReduceOp>(op->getParentOp());
    if (stage == Stage::whole || (stage == Stage::parts) == inReduction)
      if (stage != Stage::total || isa<StoreOp>(op))
        open.push_back(op);
  });
  llvm::DenseSet<Operation *> wanted;
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    if (!wanted.insert(op).second || (stage == Stage::total && isa<ReduceOp>(op)))
      continue;
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        open.push_back(producer);
  }
  return wanted;
}

SmallVector<unsigned> kernel::heldBuffers(const LoopNest &nest, int64_t vector) {
  SmallVector<unsigned> held;
  FunctionOp function = nest.function;
  for (BlockArgument argument : function.getBody().getArguments()) {
    const unsigned number = argument.getArgNumber();
    llvm::SmallPtrSet<Block *, 4> phases;
    for (Operation *user : argument.getUsers())
      if (auto load = dyn_cast<LoadOp>(user);
          load && !load.getIndex() && nest.isVector(load, vector) &&
          (nest.dependence(load) & LoopNest::bits(nest.kept)) != 0)
        phases.insert(load->getBlock());
    if (phases.size() > 1)
      held.push_back(number);
  }
  return held;
}

int64_t kernel::resultsOfBlock(DeviceFunctionAttr device) {
  switch (device.getWorker()) {
  case Worker::thread:
    return device.getThreads();
  case Worker::warp:
    return device.getThreads() / warpThreads;
  case Worker::block:
    return device.getColumns();
  }
  internalError("a worker of a schedule is unknown");
}

int64_t kernel::FunctionOp::getScratchBytes() {
  auto schedule = dyn_cast_or_null<CudaScheduleAttr>(getScheduleAttr());
  return schedule && schedule.getParts() ? schedule.getParts().getBytes() : 0;
}

namespace {

/// Compares a schedule with the kernel that bears it.
class Verifier {
public:
  explicit Verifier(kernel::FunctionOp function) : function(function), nest(function) {}

  LogicalResult verify(kernel::CpuScheduleAttr schedule);
  LogicalResult verify(kernel::CudaScheduleAttr schedule);

private:
  int64_t freeLoops(kernel::CpuScheduleAttr schedule);
  LogicalResult verify(kernel::DeviceFunctionAttr device, kernel::PartsAttr parts);
  LogicalResult verify(kernel::PartsAttr parts);
  bool is(kernel::Form form) { return function.getForm() == form; }
  bool hasColumns() { return is(kernel::Form::column) && !nest.kept.empty(); }
  InFlightDiagnostic error() { return function.emitOpError("has a schedule that does not fit: "); }

  kernel::FunctionOp function;
  LoopNest nest;
};

/// Loops that threads may share. The innermost of a pointwise kernel is for vectors.
int64_t Verifier::freeLoops(kernel::CpuScheduleAttr schedule) {
  int64_t rank = nest.sizes.size();
  switch (function.getForm()) {
  case kernel::Form::pointwise:
  case kernel::Form::full:
    return rank < 2 ? rank : rank - 1;
  case kernel::Form::row:
    return nest.kept.size();
  case kernel::Form::column:
    return nest.kept.size() + (schedule.getChunk() > 0);
  }
  internalError(function, "its form is unknown");
}

LogicalResult Verifier::verify(kernel::CpuScheduleAttr schedule) {
  if (schedule.getParallel() < 0 || schedule.getParallel() > freeLoops(schedule))
    return error() << "threads share " << schedule.getParallel() << " loops of "
                   << freeLoops(schedule);
  int64_t block = schedule.getBlock(), chunk = schedule.getChunk();
  if (hasColumns()) {
    if (block < 1 || block > nest.sizes.back())
      return error() << "a block has " << block << " columns of " << nest.sizes.back();
  } else if (block < 0 || (block > 0 && (!is(kernel::Form::full) || schedule.getParallel() == 0))) {
    return error() << "a block of " << block << " in form "
                   << kernel::stringifyForm(function.getForm());
  }
  if (chunk == 0)
    return success();
  if (!hasColumns() || nest.sizes.size() != 2 || !nest.onlyReduction() ||
      schedule.getParallel() != 2 || chunk < 1 || chunk >= nest.sizes[0])
    return error() << "rows are cut into chunks of " << chunk;
  return success();
}

LogicalResult Verifier::verify(kernel::CudaScheduleAttr schedule) {
  using kernel::Stage;
  SmallVector<Stage> expected = {Stage::whole};
  if (schedule.getParts())
    expected.assign({Stage::parts, Stage::total});
  auto stages = llvm::map_to_vector(
      schedule.getFunctions(), [](kernel::DeviceFunctionAttr device) { return device.getStage(); });
  if (stages != expected)
    return error() << "expects one device function for the whole kernel, or two with `parts`";
  if (schedule.getParts() && failed(verify(schedule.getParts())))
    return failure();
  for (kernel::DeviceFunctionAttr device : schedule.getFunctions())
    if (failed(verify(device, schedule.getParts())))
      return failure();
  return success();
}

LogicalResult Verifier::verify(kernel::DeviceFunctionAttr device, kernel::PartsAttr parts) {
  using kernel::Stage, kernel::Worker;
  constexpr int64_t mostThreads = 1024; // of a block, on any device
  bool isParts = device.getStage() == Stage::parts;
  int64_t threads = device.getThreads(), columns = device.getColumns();
  if (threads < kernel::warpThreads || threads > mostThreads || threads % kernel::warpThreads != 0)
    return error() << "a block has " << threads << " threads";
  if (device.getBlocks() < 1 ||
      device.getBlocksY() != (isParts && hasColumns() ? parts.getCount() : 1))
    return error() << device.getBlocks() << " x " << device.getBlocksY() << " blocks";
  bool walksLast = is(kernel::Form::pointwise) ||
                   (!nest.walked.empty() && nest.walked.back() + 1 == nest.sizes.size());
  const int64_t vector = device.getVector(), rounds = device.getRounds();
  bool tiled = columns == kernel::warpThreads * vector && hasColumns() &&
               device.getWorker() == Worker::block && nest.onlyReduction();
  if (columns != 1 && !tiled)
    return error() << "a block works on " << columns << " columns";
  bool hasVectors = (vector == kernel::vectorElements || vector == kernel::narrowVectorElements) &&
                    (walksLast || tiled) && !nest.sizes.empty() &&
                    (rounds > 0 || nest.sizes.back() % vector == 0);
  if (vector != 1 && !hasVectors)
    return error() << "vectors of " << vector << " elements";
  const int64_t workers = device.getWorker() == Worker::warp ? kernel::warpThreads : threads;
  if (rounds != 0 &&
      (!is(kernel::Form::row) || nest.walked.size() != 1 || vector == 1 ||
       device.getWorker() == Worker::thread || rounds * vector * workers < nest.sizes.back()))
    return error() << rounds << " rounds of " << workers << " threads for a row of "
                   << nest.points(nest.walked);
  if ((is(kernel::Form::pointwise) && device.getWorker() != Worker::thread) ||
      (isParts && (device.getWorker() != Worker::block || (hasColumns() && !tiled))))
    return error() << "a " << kernel::stringifyWorker(device.getWorker()) << " works on a result";
  // Blocks of pointwise kernels loop.
  int64_t results = device.getBlocks() * kernel::resultsOfBlock(device);
  int64_t wanted = is(kernel::Form::pointwise) ? 1 : nest.points(nest.kept);
  if (isParts && !hasColumns())
    wanted = parts.getCount();
  if (results < wanted || (isParts && !hasColumns() && results != wanted))
    return error() << "blocks for " << results << " results of " << wanted;
  return success();
}

LogicalResult Verifier::verify(kernel::PartsAttr parts) {
  kernel::ReduceOp reduce = nest.onlyReduction();
  if (!reduce || !(is(kernel::Form::column) || is(kernel::Form::full)))
    return error() << "only a kernel.reduce that stands alone, in form column or full, has parts";
  if (parts.getOffsets().size() != reduce.getNumResults())
    return error() << parts.getOffsets().size() << " offsets for " << reduce.getNumResults()
                   << " partial results";
  int64_t rows = nest.points(nest.walked);
  bool covers = hasColumns() ? parts.getCount() * parts.getRows() >= rows &&
                                   (parts.getCount() - 1) * parts.getRows() < rows
                             : parts.getRows() == 0;
  if (parts.getCount() < 2 || !covers)
    return error() << parts.getCount() << " parts of " << parts.getRows() << " rows of " << rows;
  for (auto [k, result] : llvm::enumerate(reduce.getOuts())) {
    int64_t bytes = elementBytes(result.getType());
    int64_t end = k + 1 < parts.getOffsets().size() ? parts.getOffsets()[k + 1] : parts.getBytes();
    int64_t begin = parts.getOffsets()[k];
    if (begin % bytes != 0 || begin + parts.getCount() * nest.points(nest.kept) * bytes > end)
      return error() << "partial results " << k << " do not fit in scratch from " << begin << " to "
                     << end;
  }
  return success();
}

} // namespace

LogicalResult kernel::FunctionOp::verifySchedule() {
  if (auto schedule = dyn_cast_or_null<CpuScheduleAttr>(getScheduleAttr()))
    return Verifier(*this).verify(schedule);
  if (auto schedule = dyn_cast_or_null<CudaScheduleAttr>(getScheduleAttr()))
    return Verifier(*this).verify(schedule);
  return success();
}
