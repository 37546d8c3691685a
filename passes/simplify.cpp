// SPDX-License-Identifier: Apache-2.0
//
// Canonicalisation and common-subexpression elimination on a function or module.
#include "passes/simplify.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace trainc {

LogicalResult simplify(Operation *root) {
  MLIRContext *context = root->getContext();
  RewritePatternSet patterns(context);
  for (Dialect *dialect : context->getLoadedDialects())
    dialect->getCanonicalizationPatterns(patterns);
  for (RegisteredOperationName name : context->getRegisteredOperations())
    name.getCanonicalizationPatterns(patterns, context);
  FrozenRewritePatternSet frozen(std::move(patterns));
  // Merged operations may enable patterns (one use left), so once more after it.
  for (int round = 0; round < 2; ++round) {
    if (failed(applyPatternsAndFoldGreedily(root, frozen)))
      return root->emitError("simplification finds no fixed point");
    IRRewriter rewriter(context);
    DominanceInfo dominance(root);
    eliminateCommonSubExpressions(rewriter, dominance, root);
  }
  return success();
}

} // namespace trainc
