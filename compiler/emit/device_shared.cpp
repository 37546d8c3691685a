// SPDX-License-Identifier: Apache-2.0
//
// Device functions whose rows or columns, or whose only result, are a thread's, a warp's
// or a block's each.
#include "compiler/emit/device_function.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace trainc;
using kernel::Stage;
using kernel::Worker;

/// Room for the rows that a thread holds.
void DeviceFunction::declareHeld() {
  if (schedule.getRounds() == 0)
    return;
  for (unsigned argument : kernel::heldBuffers(nest, step)) {
    held[argument] = code.names.unique((code.buffer(argument) + "_row").str());
    writer.line(packType(argument) + " " + held[argument] + "[" + number(schedule.getRounds()) +
                "];");
  }
}

void DeviceFunction::emitShared() {
  openResults();
  declareHeld();
  for (Operation &op : function.getBody().front()) {
    if (op.getNumRegions() == 0) {
      printScalar(op);
      continue;
    }
    storeScalars();
    noteLoads(op.getRegion(0).front());
    if (auto reduce = dyn_cast<kernel::ReduceOp>(op))
      reduceShared(reduce);
    else
      printWalk(op.getRegion(0).front(), [] {});
  }
  storeScalars();
}

/// A loop over the nest.walked points with a phase's code.
void DeviceFunction::printWalk(Block &block, llvm::function_ref<void()> end) {
  printAt(block, keptMask, nothing);
  NameTable outside = code.names;
  if (nest.walked.empty()) {
    printAt(block, everything, keptMask);
    return end();
  }
  if (schedule.getRounds() > 0)
    openRounds();
  else if (worker == Worker::thread)
    openWalk("0", 1, step);
  else if (worker == Worker::warp)
    openWalk("threadIdx.x % 32", 32, step);
  else
    openWalk("threadIdx.x", schedule.getThreads(), step);
  printBody(block, keptMask, end);
  close(1);
  code.names = outside;
}

/// Declares what a thread reduces its points to.
SmallVector<std::string> DeviceFunction::declareOwn(kernel::ReduceOp reduce) {
  SmallVector<std::string> own;
  eachReduction(reduce, [&](kernel::Reduction kind, Value result, size_t) {
    std::string name = reductionText(result).result;
    own.push_back(code.names.value(worker == Worker::thread ? name : name + "_of_thread"));
    writer.line(scalarType(result.getType()) + " " + own.back() + " = " +
                neutralText(kind, result.getType()) + ";");
  });
  return own;
}

/// From the threads' results to that of the row.
void DeviceFunction::combineOwn(kernel::ReduceOp reduce, ArrayRef<std::string> own) {
  eachReduction(reduce, [&](kernel::Reduction, Value result, size_t k) {
    if (worker == Worker::thread)
      return code.setText(result, own[k]);
    ReductionText text = reductionText(result);
    StringRef type = scalarType(result.getType());
    std::string call = text.verb + "_of_warp(" + own[k] + ")";
    if (worker == Worker::block) {
      std::string shared = code.names.value(text.partial);
      writer.line("__shared__ " + type + " " + shared + "[" +
                  number(schedule.getThreads() / kernel::warpThreads) + "];");
      call = text.verb + "_of_block(" + own[k] + ", " + shared + ")";
    }
    std::string name = code.names.value(text.result);
    writer.line((result.use_empty() ? "[[maybe_unused]] " : "") + ("const " + type).str() + " " +
                name + " = " + call + ";");
    code.setText(result, name);
  });
  if (worker == Worker::block)
    read.clear(); // after the barrier
}

void DeviceFunction::reduceShared(kernel::ReduceOp reduce) {
  if (nest.walked.empty())
    return reduceNothing(reduce);
  SmallVector<std::string> own = declareOwn(reduce);
  printWalk(reduce.getBody().front(), [&] { yieldInto(reduce, own, ""); });
  combineOwn(reduce, own);
}

void DeviceFunction::printScalar(Operation &op) {
  if (isPrologue(op) || !wanted.contains(&op))
    return;
  if (auto store = dyn_cast<kernel::StoreOp>(op)) {
    pending.push_back(store);
    return;
  }
  if (auto load = dyn_cast<kernel::LoadOp>(op))
    read.insert(load.getBuffer());
  code.print(op);
}

void DeviceFunction::printTail() {
  for (Operation &op : function.getBody().front())
    if (op.getNumRegions() == 0)
      printScalar(op);
  storeScalars();
}

/// Which buffers a phase reads once per row.
void DeviceFunction::noteLoads(Block &block) {
  for (auto load : block.getOps<kernel::LoadOp>())
    if ((nest.dependence(load) & ~LoopNest::reduced & ~keptMask) == 0)
      read.insert(load.getBuffer());
}

/// The row's results, by one of its threads. One that may take the place of an input waits
/// until all threads have read that.
void DeviceFunction::storeScalars() {
  if (pending.empty())
    return;
  bool waits = llvm::any_of(pending, [&](kernel::StoreOp store) {
    return llvm::any_of(read, [&](Value input) {
      return function.getAccesses()[cast<BlockArgument>(input).getArgNumber()] ==
                 function.getAccesses()[argumentOf(store)] &&
             input.getType() == store.getBuffer().getType();
    });
  });
  if (waits && worker != Worker::thread) {
    writer.line(worker == Worker::warp ? "__syncwarp();" : "__syncthreads();");
    read.clear();
  }
  if (worker != Worker::thread)
    writer.line(worker == Worker::warp ? "if (threadIdx.x % 32 == 0) {"
                                       : "if (threadIdx.x == 0) {");
  for (kernel::StoreOp store : pending)
    code.print(*store);
  if (worker != Worker::thread)
    close(1);
  pending.clear();
}
