// SPDX-License-Identifier: Apache-2.0
//
// Which branches of a model's `If` nodes are taken, and how often its loops run.
#pragma once

#include "compiler/onnx/graph/graph.h"
#include "compiler/onnx/parameters/ledger.h"
#include "compiler/recipe.h"
#include "mlir/IR/MLIRContext.h"

namespace trainc::reader {

struct Known;

struct Conditions {
  Choices choices;
  /// By the key of an `If` whose condition is not known, or a loop whose number of iterations is
  /// not: why. Where that is because sizes are missing, which is reported with the inputs, it has
  /// no entry.
  llvm::StringMap<Unknown> unknown;
};

/// The values that decide a node, none of another one, and of a `Loop` that has none.
std::vector<std::string> decidingValues(const GraphNode &node);

/// How often a loop runs that is tried, given these; none where they do not tell.
std::optional<int64_t> timesOfTried(const GraphNode &loop, llvm::ArrayRef<Known> values);

/// Evaluates the conditions and numbers that follow from constants and from shapes, to any depth.
Conditions findConditions(const ModelFile &file, const Ledger &ledger, const Recipe &recipe,
                          mlir::MLIRContext &context);

/// Makes the initializers of branches and loops those of the graph, so that the rule for parameters
/// sees them and exports hold them.
void liftBranchInitializers(ModelFile &file, Ledger &ledger);

} // namespace trainc::reader
