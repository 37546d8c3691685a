// SPDX-License-Identifier: Apache-2.0
//
// Writing over an input (in_place.h). A pointwise or row kernel visits each
// point of a row in the order of its loops: phases one after the other. So an
// element may be overwritten by the store that comes after its last load.
#include "passes/lowering/in_place.h"

using namespace mlir;

namespace trainc {

/// Whether `load` is done for a point before `store` is, in the order of the body.
static bool comesBefore(Operation *load, Operation *store, Block *body) {
  if (load->getBlock() == store->getBlock())
    return load->isBeforeInBlock(store);
  Operation *loadLoop = body->findAncestorOpInBlock(*load);
  Operation *storeLoop = body->findAncestorOpInBlock(*store);
  return loadLoop->isBeforeInBlock(storeLoop);
}

bool mayWriteOver(kernel::LaunchOp launch, kernel::FunctionOp callee, unsigned result,
                  llvm::function_ref<bool(Value)> shares) {
  if (!callee ||
      (callee.getForm() != kernel::Form::pointwise && callee.getForm() != kernel::Form::row))
    return false;
  Block *body = &callee.getBody().front();
  unsigned inputs = launch.getInputs().size();
  BlockArgument output = body->getArgument(inputs + result);
  Attribute access = callee.getAccesses()[inputs + result];
  Operation *store = nullptr;
  for (Operation *user : output.getUsers())
    if (isa<kernel::StoreOp>(user)) {
      if (store)
        return false;
      store = user;
    }
  if (!store)
    return false;
  for (unsigned i = 0; i < inputs; ++i) {
    if (!shares(launch.getInputs()[i]))
      continue;
    BlockArgument input = body->getArgument(i);
    if (callee.getAccesses()[i] != access || input.getType() != output.getType())
      return false;
    for (Operation *user : input.getUsers()) {
      auto load = dyn_cast<kernel::LoadOp>(user);
      if (!load || load.getIndex() || !comesBefore(load, store, body))
        return false;
    }
  }
  return true;
}

} // namespace trainc
