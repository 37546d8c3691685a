// SPDX-License-Identifier: Apache-2.0
//
// simplify: canonical forms, and neither dead nor equal operations.
//
// The rules are the dialects' own (dialects/nn/simplify.cpp and the folders beside
// the operations), applied greedily until none matches, and then merging of equal
// operations, block by block. Passes that leave such remains call it at their end;
// the pass is for tests. Merging is value numbering in one walk; MLIR's own, for
// any control flow, hashes each operation six times, which was a quarter of a long
// model's compilation. Known weakness: merging prefers the first of two equal
// operations, so the second one's node loses its name.
#include "passes/simplify.h"
#include "dialects/nn/nn.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/module_pass.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace {

/// An operation as what it computes.
struct Computation {
  Operation *op;
  unsigned hash;

  explicit Computation(Operation *op)
      : op(op), hash(OperationEquivalence::computeHash(op, OperationEquivalence::directHashValue,
                                                       OperationEquivalence::ignoreHashValue,
                                                       OperationEquivalence::IgnoreLocations)) {}
  Computation(Operation *special, unsigned hash) : op(special), hash(hash) {}
};

struct ComputationInfo {
  using Pointers = llvm::DenseMapInfo<Operation *>;
  static Computation getEmptyKey() { return {Pointers::getEmptyKey(), 0}; }
  static Computation getTombstoneKey() { return {Pointers::getTombstoneKey(), 0}; }
  static unsigned getHashValue(const Computation &computation) { return computation.hash; }
  static bool isEqual(const Computation &a, const Computation &b) {
    auto isSpecial = [](Operation *op) {
      return op == Pointers::getEmptyKey() || op == Pointers::getTombstoneKey();
    };
    if (a.op == b.op || isSpecial(a.op) || isSpecial(b.op))
      return a.op == b.op;
    return a.hash == b.hash &&
           OperationEquivalence::isEquivalentTo(a.op, b.op, OperationEquivalence::IgnoreLocations);
  }
};

} // namespace

static bool mergeEqual(Block &block) {
  bool merged = false;
  llvm::DenseSet<Computation, ComputationInfo> computations;
  computations.reserve(block.getOperations().size());
  for (Operation &op : llvm::make_early_inc_range(block)) {
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        merged |= mergeEqual(inner);
    if (op.getNumRegions() != 0 || op.hasTrait<OpTrait::IsTerminator>() || !isMemoryEffectFree(&op))
      continue;
    auto [first, isNew] = computations.insert(Computation(&op));
    if (isNew)
      continue;
    op.replaceAllUsesWith(first->op);
    op.erase();
    merged = true;
  }
  return merged;
}

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
    bool changed = false;
    if (failed(applyPatternsAndFoldGreedily(root, frozen, config, &changed)))
      return root->emitError("simplification finds no fixed point");
    if (round > 0 && !changed)
      break;
    merged = false;
    for (Region &region : root->getRegions())
      for (Block &block : region)
        merged |= mergeEqual(block);
  }
  return success();
}

namespace {

struct Simplify : trainc::ModulePass<Simplify> {
  static constexpr StringLiteral flag = "simplify";
  static constexpr StringLiteral description =
      "bring operations to canonical forms and merge equal ones";

  void runOnOperation() override {
    if (failed(trainc::simplify(getOperation())))
      signalPassFailure();
  }
};

PassRegistration<Simplify> simplifyRegistration;

} // namespace
