// SPDX-License-Identifier: Apache-2.0
//
// store-frozen: frozen weights as they are in their file.
//
// Problem: a frozen weight never changes, so it needs no place among the parameters and no wider
// type than its file has. Method: the parameters that train.frozen_storage names leave the layout
// and become arguments of the type that is stored; plan-memory gives them an arena of their own,
// which the trainer maps. A product in 16 bits reads a weight of that type as it is. Every other
// reader has a cast of its own, so that a widened weight lives for one step alone: equal casts must
// not be merged again, so nothing after this pass simplifies. Weakness: a product of another type
// than its weight widens or rounds the whole weight in front of it.
#include "dialects/names/node_name.h"
#include "dialects/nn/builder.h"
#include "dialects/nn/views.h"
#include "dialects/train/module_state.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/passes.h"

using namespace mlir;

namespace trainc {
namespace {

struct StoreFrozen : PassWrapper<StoreFrozen, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(StoreFrozen)
  StringRef getArgument() const override { return "store-frozen"; }
  StringRef getDescription() const override {
    return "read frozen weights in the type that their file has";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<nn::NNDialect, train::TrainDialect>();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto function : module.getOps<func::FuncOp>())
      for (unsigned i = 0; !function.isDeclaration() && i < function.getNumArguments(); ++i)
        if (auto role = train::roleAs<train::ParameterAttr>(function, i))
          if (Type stored = train::storedTypeOf(module, role.getName()))
            store(function, i, stored);
    leaveLayout(module);
  }

private:
  static void store(func::FuncOp function, unsigned index, Type stored) {
    BlockArgument weight = function.getArgument(index);
    auto wide = cast<RankedTensorType>(weight.getType());
    if (wide.getElementType() != stored) {
      weight.setType(wide.clone(stored));
      SmallVector<Type> inputs = llvm::to_vector(function.getArgumentTypes());
      inputs[index] = weight.getType();
      function.setFunctionType(
          FunctionType::get(function.getContext(), inputs, function.getResultTypes()));
      readAsStored(weight, wide);
    }
    for (Operation *reader : llvm::to_vector(weight.getUsers()))
      if (isa<nn::CastOp>(reader))
        separate(reader);
  }

  /// What cast the wide weight to the stored type reads it; all else reads one cast.
  static void readAsStored(BlockArgument weight, RankedTensorType wide) {
    OpBuilder at = OpBuilder::atBlockBegin(weight.getOwner());
    nn::Builder builder(at, weight.getLoc());
    Value widened = builder.cast(weight, wide.getElementType());
    for (OpOperand &use : llvm::make_early_inc_range(weight.getUses())) {
      auto cast = dyn_cast<nn::CastOp>(use.getOwner());
      if (cast && cast.getResult() == widened)
        continue;
      if (cast && cast.getType() == weight.getType()) {
        cast.replaceAllUsesWith(static_cast<Value>(weight));
        cast.erase();
      } else {
        use.set(widened);
      }
    }
    if (widened.use_empty())
      widened.getDefiningOp()->erase();
  }

  /// Gives each reader an operation of its own, through the views that lead to it.
  static void separate(Operation *op) {
    for (Operation *reader : llvm::to_vector(op->getUsers()))
      if (isView(reader))
        separate(reader);
    for (OpOperand &use : llvm::make_early_inc_range(op->getUses())) {
      OpBuilder at(use.getOwner());
      Operation *own = at.clone(*op);
      own->setLoc(roleLocation("weight", withoutRole(use.getOwner()->getLoc())));
      use.set(own->getResult(0));
    }
    op->erase();
  }

  static void leaveLayout(ModuleOp module) {
    train::LayoutAttr layout = train::layoutOf(module);
    if (!layout)
      return;
    SmallVector<Attribute> staying;
    SmallVector<int64_t> runs = llvm::to_vector(layout.getRuns());
    int64_t frozen = 0; // elements of those that stay, which lie last
    for (train::PlacedAttr placed : layout.placed()) {
      if (train::storedTypeOf(module, placed.getName()))
        continue;
      if (placed.getRun() == train::Run::frozen) {
        placed = train::PlacedAttr::get(module.getContext(), placed.getName(), placed.getRun(),
                                        layout.summedElements() + frozen, placed.getCount(),
                                        placed.getGroup());
        frozen += llvm::alignTo(placed.getCount(), kAlignedElements);
      }
      staying.push_back(placed);
    }
    runs.back() = frozen;
    train::setLayout(module, train::LayoutAttr::get(module.getContext(), runs,
                                                    ArrayAttr::get(module.getContext(), staying)));
  }

  static constexpr int64_t kAlignedElements = 32; // 64 bytes, of 16 bits too
};

PassRegistration<StoreFrozen> storeFrozenRegistration;

} // namespace

std::unique_ptr<Pass> createStoreFrozenPass() { return std::make_unique<StoreFrozen>(); }

} // namespace trainc
