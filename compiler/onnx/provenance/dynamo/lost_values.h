// SPDX-License-Identifier: Apache-2.0
//
// What the optimizer of PyTorch's default exporter took out of the program that it recorded: calls
// that are left name values that nothing in the file makes.
#pragma once

#include "compiler/onnx/provenance/dynamo/exported_program.h"
#include "llvm/ADT/STLExtras.h"

namespace trainc::reader {

struct LostValues {
  /// Calls that stand for another, equal one as well. What they read, that one may have read from
  /// another initializer with the same values.
  llvm::StringSet<> merged;
  /// A calculation is gone that changed nothing: a product with 1, a sum with 0.
  bool calculates = false;
  /// What moves elements is gone (a view, a cast), and perhaps such a calculation before it.
  bool moves = false;
};

/// `isLost`: whether nothing in the file makes a value that a call names.
LostValues findLostValues(const ModelFile &file, const ExportedProgram &program,
                          llvm::function_ref<bool(const std::string &)> isLost);

} // namespace trainc::reader
