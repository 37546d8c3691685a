// SPDX-License-Identifier: Apache-2.0
//
// Builds the nn function from the flat graph.
#pragma once

#include "compiler/onnx/graph/conditions.h"
#include "compiler/onnx/graph/inputs.h"
#include "compiler/onnx/parameters/batch_norm_modes.h"
#include "compiler/onnx/parameters/ledger.h"
#include "compiler/onnx/reader.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace trainc::reader {

/// Reports every live node that no importer serves, or that is not as its operator is declared,
/// with what would help.
bool checkOperators(const Graph &graph, const Conditions &conditions, Report &report);

/// True for a node that an importer serves and that is as its operator is declared.
bool isImportable(const GraphNode &node);

/// A value, or why there is none.
struct Known {
  nn::Tensor tensor;
  Unknown unknown;
};

/// The values of the given names, as far as they follow from constants and shapes. What they do not
/// need may be wrong or unsupported. Without `initializers` or `inputs` less is known.
std::vector<Known> evaluateValues(const ModelFile &file, const Graph &graph,
                                  const Parameters &initializers, llvm::ArrayRef<ModelInput> inputs,
                                  llvm::ArrayRef<std::string> names, mlir::MLIRContext &context);

/// `func.func @model` with one argument per parameter and input, in these orders; what nodes make
/// of buffers are results after the outputs. `values` receives the graph's values by name, `nodes`
/// its nodes. Null after errors, also earlier ones: then it only adds what else is wrong.
mlir::OwningOpRef<mlir::ModuleOp>
importGraph(const ModelFile &file, const Graph &graph, llvm::ArrayRef<const Parameter *> parameters,
            const Parameters &initializers, llvm::ArrayRef<ModelInput> inputs,
            const BatchAxes &batchAxes, const BatchNormModes &batchNormModes,
            mlir::MLIRContext &context, Report &report, std::vector<NamedValue> &values,
            std::vector<NamedNode> &nodes);

/// Gives the operations of each node its readable name: the module path where one node of the
/// module makes operations, else the path and the operator. All nodes with their names.
std::vector<NamedNode> nameOperations(mlir::ModuleOp module, const Graph &graph,
                                      const std::vector<std::string> &paths);

/// Location of a node until `nameOperations`.
mlir::Location provisionalLocation(mlir::MLIRContext &context, size_t node);

/// Gives inputs that index tables their bounds, and checks to indices that are computed: then the
/// model has one more result, #train.index_check.
void checkIndices(mlir::ModuleOp module);

/// Turns the outputs that replace the recipe's buffers into new values.
bool markBuffers(mlir::ModuleOp module, const ModelFile &file, const Recipe &recipe,
                 Report &report);

} // namespace trainc::reader
