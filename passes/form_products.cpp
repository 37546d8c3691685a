// SPDX-License-Identifier: Apache-2.0
//
// form-products: operations of a library become steps, such as matrix products.
//
// Problem: a product reads views of tensors, transposed or cut, and its reader may
// want its result in another order; libraries take strides, so none of these needs a
// copy. Method: each operation lowers itself (LibraryOpInterface), with what
// kernels/matrix_products.h finds out about views. A sum of two steps' results is one
// computed in place of the other, where a step can add (StepOpInterface). Runs in front
// of fuse, which leaves steps as they are. Weakness: an operand that no strides
// describe is copied as a whole.
#include "dialects/elements/element_type.h"
#include "dialects/kernel/kernel.h"
#include "dialects/nn/library_step.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/kernels/matrix_products.h"
#include "passes/kernels/value_views.h"
#include "passes/module_pass.h"
#include "passes/passes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace trainc {
namespace {

class ViewFollower : public nn::StepBuilder {
public:
  using StepBuilder::StepBuilder;
  nn::StridedProduct product(Value a, bool transposeA, Value b, bool transposeB,
                             Value result) override {
    return stridedProduct(a, transposeA, b, transposeB, result);
  }
  nn::StridedBatch matrices(ArrayRef<int64_t> batch,
                            ArrayRef<nn::BatchedMatrices> tensors) override {
    return stridedBatch(batch, tensors);
  }
};

/// Erases what makes `value`, which nobody reads any more, of the operation's results.
void eraseBelow(Operation *op, Value value) {
  SmallVector<Operation *> unread = {value.getDefiningOp()};
  while (!unread.empty()) {
    Operation *maker = unread.pop_back_val();
    if (!maker || maker == op || !maker->use_empty())
      continue;
    SmallVector<Value> operands(maker->getOperands());
    maker->erase();
    for (Value operand : operands)
      if (!llvm::is_contained(unread, operand.getDefiningOp()))
        unread.push_back(operand.getDefiningOp());
  }
}

/// Erases the operation and views above it that nobody uses then.
void eraseWithViewsAbove(Operation *op) {
  llvm::SetVector<Operation *> views;
  auto collect = [&](Operation *reader) {
    for (Value operand : reader->getOperands())
      if (isView(operand.getDefiningOp()))
        views.insert(operand.getDefiningOp());
  };
  collect(op);
  op->erase();
  for (size_t i = 0; i < views.size(); ++i) // grows
    collect(views[i]);
  for (bool erased = true; erased;) {
    erased = false;
    for (Operation *view : llvm::to_vector(views))
      if (view->use_empty()) {
        views.remove(view);
        view->erase();
        erased = true;
      }
  }
}

/// A product whose result is only read rounded writes it so; views of it, which others may follow,
/// are views of rounded numbers then.
void roundResult(kernel::StepOpInterface step) {
  Value last = step->getNumResults() == 1 ? step->getResult(0) : Value();
  SmallVector<Operation *> views;
  while (last && last.hasOneUse() && isView(*last.user_begin())) {
    views.push_back(*last.user_begin());
    last = views.back()->getResult(0);
  }
  auto rounding =
      last && last.hasOneUse() ? dyn_cast<nn::CastOp>(*last.user_begin()) : nn::CastOp();
  Type element = rounding ? rounding.getType().getElementType() : Type();
  if (!rounding || !step.writeRounded(element))
    return;
  for (Operation *view : views)
    view->getResult(0).setType(nn::tensorType(view->getResult(0)).clone(element));
  rounding.getResult().replaceAllUsesWith(last);
  rounding.erase();
}

void lower(nn::LibraryOpInterface op) {
  OpBuilder builder(op);
  ViewFollower steps(builder, op.getLoc());
  SmallVector<nn::Replacement> replacements = op.lowerToStep(steps);
  if (replacements.empty())
    return;
  for (auto [old, replacement] : replacements) {
    old.replaceAllUsesWith(replacement);
    eraseBelow(op, old);
  }
  eraseWithViewsAbove(op);
  for (const nn::Replacement &made : replacements)
    if (auto step = made.replacement.getDefiningOp<kernel::StepOpInterface>())
      roundResult(step);
}

/// add(a step's result, another step's result): the one is added to the other in place.
void accumulate(nn::AddOp add) {
  for (auto [own, other] : {std::pair(add.getB(), add.getA()), std::pair(add.getA(), add.getB())}) {
    auto step = own.getDefiningOp<kernel::StepOpInterface>();
    if (!step || !own.hasOneUse() || !other.hasOneUse() ||
        !other.getDefiningOp<kernel::StepOpInterface>() || !step.accumulateInto(other))
      continue;
    step->moveBefore(add);
    add.getResult().replaceAllUsesWith(own);
    add.erase();
    return;
  }
}

/// The rounding of a product's result goes after the views of it: a step writes its result as its
/// reader wants it, and rounds it on the way.
void roundAfterViews(nn::CastOp rounding) {
  auto isProduct = [](Value value) {
    while (isView(value.getDefiningOp()))
      value = value.getDefiningOp()->getOperand(0);
    return value.getDefiningOp<nn::MatmulOp>() != nullptr;
  };
  Value value = rounding.getX();
  if (!isProduct(value) || !isNarrowFloat(rounding.getResult().getType().getElementType()))
    return;
  while (rounding->hasOneUse() && isView(*rounding->user_begin())) {
    Operation *view = *rounding->user_begin();
    auto type = cast<RankedTensorType>(view->getResult(0).getType());
    view->setOperand(0, rounding.getX());
    view->getResult(0).setType(type.clone(rounding.getX().getType().getElementType()));
    rounding->moveAfter(view);
    view->getResult(0).replaceAllUsesExcept(rounding.getResult(), rounding);
    rounding.getXMutable().assign(view->getResult(0));
    rounding.getResult().setType(type);
  }
}

struct FormProducts : ModulePass<FormProducts> {
  static constexpr StringLiteral flag = "form-products";
  static constexpr StringLiteral description =
      "Turn matrix products and other operations of a library into steps";

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isDeclaration())
        continue;
      // A use that nobody needs would keep a view alive.
      IRRewriter rewriter(function.getContext());
      (void)runRegionDCE(rewriter, function->getRegions());
      for (nn::CastOp cast : llvm::to_vector(function.getOps<nn::CastOp>()))
        roundAfterViews(cast);
      for (nn::LibraryOpInterface op : llvm::to_vector(function.getOps<nn::LibraryOpInterface>()))
        lower(op);
      for (nn::AddOp add : llvm::to_vector(function.getOps<nn::AddOp>()))
        accumulate(add);
      for (kernel::StepOpInterface step :
           llvm::to_vector(function.getOps<kernel::StepOpInterface>()))
        roundResult(step);
    }
  }
};

PassRegistration<FormProducts> formProductsRegistration;

} // namespace

std::unique_ptr<Pass> createFormProductsPass() { return std::make_unique<FormProducts>(); }

} // namespace trainc
