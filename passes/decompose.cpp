// SPDX-License-Identifier: Apache-2.0
//
// decompose: replaces composite operations by primitive ones.
//
// Softmax, layer norm and cross-entropy stay whole until here because their
// gradients are better than those of their parts. Their gradients were built
// from the same primitives as their decompositions, so that merging equal
// operations over forward and backward lets both share the statistics of a row
// (its mean, deviation, maximum, sum). Known weakness: the merge also shares
// large cheap intermediates; fuse recomputes those.
#include "dialects/nn/builder.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/passes.h"
#include "passes/simplify.h"

using namespace mlir;

namespace {

struct Decompose : PassWrapper<Decompose, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Decompose)
  StringRef getArgument() const override { return "decompose"; }
  StringRef getDescription() const override {
    return "replace composite operations by primitives and simplify";
  }

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<trainc::nn::NNDialect>();
  }

  void runOnOperation() override {
    getOperation().walk([](trainc::nn::DecomposableOpInterface op) {
      OpBuilder at(op);
      trainc::nn::Builder builder(at, op.getLoc());
      op->replaceAllUsesWith(op.decompose(builder));
      op->erase();
    });
    if (failed(trainc::simplify(getOperation())))
      signalPassFailure();
  }
};

PassRegistration<Decompose> registration;

} // namespace

std::unique_ptr<Pass> trainc::createDecomposePass() { return std::make_unique<Decompose>(); }
