// SPDX-License-Identifier: Apache-2.0
//
// The model's inputs with every size known.
#pragma once

#include "compiler/onnx/parameters/ledger.h"
#include "compiler/recipe.h"

namespace trainc::reader {

struct ModelInput {
  std::string name;
  int32_t dataType = 0;
  llvm::SmallVector<int64_t> shape; // as in the file; with a 0, no input of the program
  int64_t batchAxis = 0;            // which counts samples
  int64_t batchInFile = 0;          // its size in the file, where --batch gives it another one
};

/// Nullopt after errors: unbound dimensions and sizes for unknown ones, all at once.
std::optional<std::vector<ModelInput>> resolveInputs(const ModelFile &file, const Recipe &recipe,
                                                     Report &report);

/// Gives the inputs that the recipe fixes their values, as initializers.
bool fixInputs(ModelFile &file, const Recipe &recipe, Ledger &ledger, Report &report);

} // namespace trainc::reader
