// SPDX-License-Identifier: Apache-2.0
//
// The model's inputs with every size known.
#pragma once

#include "compiler/onnx/model_file.h"
#include "compiler/recipe.h"

namespace trainc::reader {

struct ModelInput {
  std::string name;
  int32_t dataType = 0;
  llvm::SmallVector<int64_t> shape;
};

/// Nullopt after errors: unbound dimensions and sizes for unknown ones, all at once.
std::optional<std::vector<ModelInput>> resolveInputs(const ModelFile &file, const Recipe &recipe,
                                                     Report &report);

/// True for versions of ONNX's own operator set that are read here.
bool servesOpset(int64_t version);

/// Checks the versions of format and operator sets against those that are read here.
bool checkVersions(const ModelFile &file, Report &report);

} // namespace trainc::reader
