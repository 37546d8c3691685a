// SPDX-License-Identifier: Apache-2.0
//
// decompose: replaces composite operations by primitive ones.
//
// Softmax, layer norm and cross-entropy stay whole until here because their
// gradients are better than those of their parts. Their gradients were built
// from the same primitives as their decompositions, so that merging equal
// operations over forward and backward lets both share the statistics of a row
// (its mean, deviation, maximum, sum). A decomposition may itself create composites:
// they are replaced in turn until none is left. Known weakness: the merge also
// shares large cheap intermediates; fuse recomputes those.
#include "dialects/nn/builder.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/module_pass.h"
#include "passes/passes.h"
#include "passes/simplify.h"

using namespace mlir;

namespace {

// Composites of composites; what is deeper contains itself.
constexpr int kDeepest = 16;

struct Decompose : trainc::ModulePass<Decompose> {
  static constexpr StringLiteral flag = "decompose";
  static constexpr StringLiteral description =
      "replace composite operations by primitives and simplify";

  void runOnOperation() override {
    for (int depth = 0;; ++depth) {
      SmallVector<trainc::nn::DecomposableOpInterface> composites;
      getOperation().walk(
          [&](trainc::nn::DecomposableOpInterface op) { composites.push_back(op); });
      if (composites.empty())
        break;
      if (depth == kDeepest) {
        composites.front()->emitError("decompose: the decomposition of '")
            << composites.front()->getName() << "' leads back to itself";
        return signalPassFailure();
      }
      for (trainc::nn::DecomposableOpInterface op : composites)
        decompose(op);
    }
    if (failed(trainc::simplify(getOperation())))
      signalPassFailure();
  }

private:
  static void decompose(trainc::nn::DecomposableOpInterface op) {
    OpBuilder at(op);
    trainc::nn::Builder builder(at, trainc::withoutRole(op.getLoc()));
    SmallVector<Value> results = op.decompose(builder);
    for (Value result : results) // a role that the operation has is its results'
      if (Operation *made = result.getDefiningOp(); made && made->getLoc() == builder.location())
        made->setLoc(op.getLoc());
    op->replaceAllUsesWith(results);
    op->erase();
  }
};

PassRegistration<Decompose> decomposeRegistration;

} // namespace

std::unique_ptr<Pass> trainc::createDecomposePass() { return std::make_unique<Decompose>(); }
