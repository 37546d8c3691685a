// SPDX-License-Identifier: Apache-2.0
//
// What locations say: the importer gives every operation the name of the model's node,
// differentiate encloses it where an operation belongs to the node's gradient.
#pragma once

#include "mlir/IR/Location.h"
#include <string>

namespace trainc {

struct NodeName {
  std::string node; // `h.1.mlp.act`; empty where the location has no name
  bool gradient = false;
  /// For people: `h.1.mlp.act`, `gradient of h.1.mlp.act`.
  std::string title() const;
};
NodeName nodeName(mlir::Location location);

/// What a message about `location` is about: `model.onnx: node 'h.1.mlp.act'`, the file alone
/// where the location has no name.
std::string subjectAt(llvm::StringRef file, mlir::Location location);

/// The location of what computes the gradient of `node`.
mlir::Location gradientLocation(mlir::Location node);

/// What an identifier is made of: a title with `d_` in the place of `gradient of `.
std::string withShortGradient(llvm::StringRef title);

} // namespace trainc
