// SPDX-License-Identifier: Apache-2.0
//
// raise-patterns: recognises composite operations written out in primitives.
//
// Exporters below the opsets that have them as operators (LayerNormalization 17,
// Gelu 20), and modules that define them by hand, leave chains such as ReduceMean,
// Sub, Pow, ReduceMean, Add, Sqrt, Div. Raised to one operation they get the gradient
// of the whole instead of that of the parts. Canonicalisation first removes the
// differences that mean nothing; then all patterns that stand beside the operations
// (dialects/nn/raised_pattern.h) are applied until none matches.
#include "dialects/nn/raised_pattern.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/module_pass.h"
#include "passes/passes.h"
#include "passes/simplify.h"

using namespace mlir;

namespace {

struct RaisePatterns : trainc::ModulePass<RaisePatterns> {
  static constexpr StringLiteral flag = "raise-patterns";
  static constexpr StringLiteral description =
      "recognise composite operations written out in primitives";

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    trainc::nn::addRaisePatterns(patterns);
    bool raised = false;
    if (failed(trainc::simplify(getOperation())) ||
        failed(applyPatternsAndFoldGreedily(getOperation(), std::move(patterns), {}, &raised)) ||
        (raised && failed(trainc::simplify(getOperation()))))
      signalPassFailure();
  }
};

PassRegistration<RaisePatterns> raisePatternsRegistration;

} // namespace

std::unique_ptr<Pass> trainc::createRaisePatternsPass() {
  return std::make_unique<RaisePatterns>();
}
