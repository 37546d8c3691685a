// SPDX-License-Identifier: Apache-2.0
//
// The ledger: what a file records about its initializers and what trainc changed. And the decision
// about each initializer.
#pragma once

#include "compiler/onnx/graph/graph.h"
#include "compiler/onnx/parameters/batch_norm_modes.h"
#include "compiler/onnx/parameters/exported_program.h"
#include "compiler/onnx/parameters/parameter.h"
#include "compiler/recipe.h"

namespace trainc::reader {

/// One for each initializer, in the order of their uses.
using Parameters = std::vector<std::unique_ptr<Parameter>>;

/// The names of two initializers.
using EqualWeights = std::pair<std::string, std::string>;

/// What is known of initializers besides the graph.
struct Ledger {
  /// As the file records it, and what was found of further initializers.
  ExportedProgram program;
  llvm::StringMap<std::string> origin; // of those that the file itself does not have: why
  llvm::StringMap<std::string> notes;  // what else a reader of the table should know
  llvm::StringSet<> fromNodes;         // values of Constant and ConstantOfShape nodes
  llvm::StringSet<> fixed;             // inputs that have one value, as the recipe says
  /// Initializers that hold all elements of these parameters of the module, in another order.
  llvm::StringMap<std::vector<std::string>> stacked;
  /// Weights that the exporter had merged, where the file does not tell whether they are one.
  std::vector<EqualWeights> undecided;
  /// Nodes' names tell no modules, as in files of scripted ones, which have shared weights twice.
  bool tellsNoModules = false;
  /// One of PyTorch's exporters wrote it: none records `requires_grad`.
  bool lacksRequiresGrad = false;
  /// Parameters that the file lists but has no storage for, rightly, and the one that each is
  /// another name of; empty: nothing uses it, or it is another name of some parameter.
  std::vector<std::pair<std::string, std::string>> absent;
};

/// Whether one of PyTorch's exporters made the file.
bool isFromPyTorch(const ModelFile &file);

/// Reads the ledger of a file, and gives each parameter of the module its own initializer again
/// where the exporter merged or folded it. False after errors, which do not stop the rest.
bool openLedger(ModelFile &file, const Recipe &recipe, Ledger &ledger, Report &report);

/// Decides about every initializer. None after errors with which shapes and operators cannot be
/// judged; others, of what an exporter lost, are in the report alone.
std::optional<Parameters> decideParameters(const ModelFile &file, const Graph &graph,
                                           const Ledger &ledger, const BatchNormModes &batchNorms,
                                           const Recipe &recipe, Report &report);

/// 4x6, or `scalar`.
std::string shapeText(llvm::ArrayRef<int64_t> shape);
/// Every decision, with its reason.
std::string parameterTable(const Parameters &parameters, const Ledger &ledger,
                           const Recipe &recipe);
/// `148 parameters train (124,439,808 numbers), 3 tensors are constants`.
std::string parameterCounts(const Parameters &parameters);

} // namespace trainc::reader
