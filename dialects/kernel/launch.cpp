// SPDX-License-Identifier: Apache-2.0
//
// kernel.launch: a kernel of the module as a step.
//
// Writing over an input: a pointwise or row kernel visits each point of a row in
// the order of its loops, phases one after the other. So an element may be
// overwritten by the store that comes after its last load.
#include "dialects/elements/element_type.h"
#include "dialects/kernel/kernel.h"
#include "dialects/kernel/schedule.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace trainc::kernel {

static FunctionOp calleeOf(LaunchOp launch, SymbolTableCollection &symbols) {
  return symbols.lookupNearestSymbolFrom<FunctionOp>(launch, launch.getKernelAttr());
}

StepCall LaunchOp::call() {
  StepCall call{getKernel().str(), "", {}};
  for (Value input : getInputs())
    call.arguments.push_back(input);
  for (Value out : getOuts())
    call.arguments.push_back(out);
  return call;
}

std::string LaunchOp::describe() { return getKernel().str(); }

FlatSymbolRefAttr LaunchOp::calledKernel() { return getKernelAttr(); }

int64_t LaunchOp::scratchBytes(SymbolTableCollection &symbols) {
  FunctionOp callee = calleeOf(*this, symbols);
  return callee ? static_cast<int64_t>(callee.getScratchBytes()) : 0;
}

// ---- in place

/// Whether `load` is done for a point before `store` is, in the order of the body.
static bool comesBefore(Operation *load, Operation *store, Block *body) {
  if (load->getBlock() == store->getBlock())
    return load->isBeforeInBlock(store);
  Operation *loadLoop = body->findAncestorOpInBlock(*load);
  Operation *storeLoop = body->findAncestorOpInBlock(*store);
  return loadLoop->isBeforeInBlock(storeLoop);
}

bool LaunchOp::mayWriteOver(unsigned result, llvm::function_ref<bool(Value)> shares,
                            SymbolTableCollection &symbols) {
  FunctionOp callee = calleeOf(*this, symbols);
  if (!callee || (callee.getForm() != Form::pointwise && callee.getForm() != Form::row))
    return false;
  Block *body = &callee.getBody().front();
  unsigned inputs = getInputs().size();
  BlockArgument output = body->getArgument(inputs + result);
  Attribute access = callee.getAccesses()[inputs + result];
  Operation *store = nullptr;
  for (Operation *user : output.getUsers())
    if (isa<StoreOp>(user)) {
      if (store)
        return false;
      store = user;
    }
  if (!store)
    return false;
  for (unsigned i = 0; i < inputs; ++i) {
    if (!shares(getInputs()[i]))
      continue;
    BlockArgument input = body->getArgument(i);
    if (callee.getAccesses()[i] != access || input.getType() != output.getType())
      return false;
    for (Operation *user : input.getUsers()) {
      auto load = dyn_cast<LoadOp>(user);
      if (!load || load.getIndex() || !comesBefore(load, store, body))
        return false;
    }
  }
  return true;
}

// ---- cost

/// Whether the value is another for another index along the dimension.
static bool varies(Value value, unsigned dimension, FunctionOp function) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (auto index = dyn_cast<IndexOp>(op))
    return static_cast<unsigned>(index.getDimension()) == dimension;
  if (auto load = dyn_cast<LoadOp>(op)) {
    unsigned argument = cast<BlockArgument>(load.getBuffer()).getArgNumber();
    if (cast<AccessAttr>(function.getAccesses()[argument]).getStrides()[dimension] != 0)
      return true;
  }
  return llvm::any_of(op->getOperands(),
                      [&](Value operand) { return varies(operand, dimension, function); });
}

/// Elements that a load reads: one for each address. A predicate leaves some out, at least
/// those which lie outside of the tensor.
static int64_t elementsRead(LoadOp load, FunctionOp function, Value tensor) {
  unsigned argument = cast<BlockArgument>(load.getBuffer()).getArgNumber();
  ArrayRef<int64_t> strides = cast<AccessAttr>(function.getAccesses()[argument]).getStrides();
  int64_t elements = 1;
  for (auto [d, size] : llvm::enumerate(function.getDims()))
    if (strides[d] != 0 || (load.getIndex() && varies(load.getIndex(), d, function)))
      elements *= size;
  return load.getPredicate()
             ? std::min(elements, cast<RankedTensorType>(tensor.getType()).getNumElements())
             : elements;
}

/// Whether threads hold what they have read of a buffer for the loops to come.
static bool isHeld(FunctionOp function, BlockArgument buffer) {
  auto schedule = dyn_cast_or_null<CudaScheduleAttr>(function.getScheduleAttr());
  DeviceFunctionAttr device = schedule ? schedule.getFunctions().front() : DeviceFunctionAttr();
  return device && device.getRounds() > 0 &&
         llvm::is_contained(heldBuffers(LoopNest(function), device.getVector()),
                            buffer.getArgNumber());
}

/// What is read in two loops of the kernel is read twice, unless it is held; two loads of one loop
/// share a read.
static int64_t bytesRead(FunctionOp function, BlockArgument buffer, Value tensor) {
  llvm::SmallMapVector<Block *, int64_t, 4> byLoop;
  int64_t indexed = 0;
  for (Operation *user : buffer.getUsers()) {
    auto load = dyn_cast<LoadOp>(user);
    if (!load)
      continue;
    int64_t elements = elementsRead(load, function, tensor);
    if (load.getIndex())
      indexed += elements;
    else
      byLoop[load->getBlock()] = std::max(byLoop[load->getBlock()], elements);
  }
  const bool once = byLoop.size() > 1 && isHeld(function, buffer);
  int64_t most = 0;
  for (auto &[loop, elements] : byLoop) {
    most = std::max(most, elements);
    indexed += once ? 0 : elements;
  }
  indexed += once ? most : 0;
  return indexed * elementBytes(cast<BufferType>(buffer.getType()).getElement());
}

StepCost LaunchOp::cost(SymbolTableCollection &symbols) {
  StepCost cost;
  FunctionOp callee = calleeOf(*this, symbols);
  if (!callee)
    return cost;
  if (auto flops = callee.getFlops())
    cost.flops = flops->convertToDouble();
  for (auto [i, input] : llvm::enumerate(getInputs()))
    cost.reads.push_back(bytesRead(callee, callee.getBody().getArgument(i), input));
  for (Value out : getOuts())
    cost.writes.push_back(bytesOf(out.getType()));
  return cost;
}

} // namespace trainc::kernel
