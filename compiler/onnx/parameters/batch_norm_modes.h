// SPDX-License-Identifier: Apache-2.0
//
// Which statistics each batch norm of a model trains with: the recipe's choice, or the node's own.
#pragma once

#include "compiler/onnx/graph/graph.h"
#include "compiler/onnx/parameters/exported_program.h"
#include "compiler/recipe.h"
#include "dialects/nn/batch_norm_mode.h"

namespace trainc::reader {

class BatchNormModes {
public:
  BatchNormModes(nn::BatchNormMode all) : all(all) {}
  /// Reports patterns of the recipe that match no batch norm. Warns where the file has norms in
  /// both modes and nobody has chosen: each is then read as the file has it.
  BatchNormModes(const ModelFile &file, const Graph &graph, const ExportedProgram &program,
                 const Recipe &recipe, Report &report);

  nn::BatchNormMode of(const GraphNode &node) const;

private:
  void choose(const Graph &graph, const std::string &pattern, const std::string &mode,
              const ExportedProgram &program, Report &report);

  nn::BatchNormMode all;
  llvm::StringMap<nn::BatchNormMode> own; // by the node's key
};

} // namespace trainc::reader
