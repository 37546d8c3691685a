// SPDX-License-Identifier: Apache-2.0
//
// simplify: canonical forms, and neither dead nor equal operations.
//
// The rules are the dialects' own (dialects/nn/simplify.cpp and the folders beside
// the operations), applied greedily until none matches, and then merging of equal
// operations by dominance. Passes that leave such remains call it at their end;
// the pass is for tests. Known weakness: merging prefers the first of two equal
// operations, so the second one's node loses its name.
#include "passes/simplify.h"
#include "dialects/nn/nn.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

LogicalResult trainc::simplify(Operation *root) {
  MLIRContext *context = root->getContext();
  RewritePatternSet patterns(context);
  for (Dialect *dialect : context->getLoadedDialects())
    dialect->getCanonicalizationPatterns(patterns);
  for (RegisteredOperationName name : context->getRegisteredOperations())
    name.getCanonicalizationPatterns(patterns, context);
  FrozenRewritePatternSet frozen(std::move(patterns));
  // Merged operations may enable patterns (one use left), so once more after it.
  GreedyRewriteConfig config;
  config.enableRegionSimplification = GreedySimplifyRegionLevel::Disabled; // one block each
  bool merged = true;
  for (int round = 0; round < 2 && merged; ++round) {
    if (failed(applyPatternsAndFoldGreedily(root, frozen, config)))
      return root->emitError("simplification finds no fixed point");
    IRRewriter rewriter(context);
    DominanceInfo dominance(root);
    merged = false;
    eliminateCommonSubExpressions(rewriter, dominance, root, &merged);
  }
  return success();
}

namespace {

struct Simplify : PassWrapper<Simplify, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Simplify)
  StringRef getArgument() const override { return "simplify"; }
  StringRef getDescription() const override {
    return "bring operations to canonical forms and merge equal ones";
  }

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<trainc::nn::NNDialect>();
  }

  void runOnOperation() override {
    if (failed(trainc::simplify(getOperation())))
      signalPassFailure();
  }
};

PassRegistration<Simplify> registration;

} // namespace
