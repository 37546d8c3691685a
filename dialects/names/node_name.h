// SPDX-License-Identifier: Apache-2.0
//
// What locations say. The importer gives every operation the name of the model's node.
// Around it stand, from the outside in:
//
//   loc("mean"("h.0.ln_1"))                        the mean of that node's computation
//   loc("gradient"("h.0.ln_1"))                    something in the computation of its gradient
//   loc("of h.0.add"("gradient"("h.0.ln_1")))      the gradient of h.0.add, computed there
//
// Inside stands what the file calls the node, as messages do. What several nodes are computed by
// names all of them, its own first:
//
//   loc("h.0.ln_1"(fused<"node">["/h.0/ln_1/LayerNormalization"]))
//   loc(fused["h.0.attn.softmax", "h.0.attn.mul"])
#pragma once

#include "mlir/IR/Location.h"
#include "mlir/IR/OpImplementation.h"
#include <string>
#include <vector>

namespace trainc {

struct NodeName {
  std::string node; // `h.1.mlp.act`; empty where the location has no name
  bool gradient = false;
  std::string role; // of a value within the node's computation: `mean`
  std::string of;   // of a gradient: the value that it is the gradient of
  /// The computation, for people: `h.1.mlp.act`, `gradient of h.1.mlp.act`.
  std::string title() const;
  /// The value, for people: `h.1.mlp.act`, `h.0.ln_1.mean`, `gradient of h.0.add`.
  std::string value() const;
};
NodeName nodeName(mlir::Location location);
/// Titles of all computations that the location names, each once, in its order.
std::vector<std::string> nodeTitles(mlir::Location location);

/// The location of a node: its name, and what the file calls it.
mlir::Location modelLocation(mlir::StringAttr name, mlir::StringAttr inFile);
/// The location of what is computed at `own` and, by the same step, at `others`.
mlir::Location jointLocation(mlir::Location own, llvm::ArrayRef<mlir::Location> others);
/// The location of what computes the gradient of `node`.
mlir::Location gradientLocation(mlir::Location node);
/// The location of a value that plays `role` in the computation `node`; of `node` where that has
/// no name.
mlir::Location roleLocation(llvm::StringRef role, mlir::Location node);
/// The location of the gradient of the value called `value`, computed at `gradient`.
mlir::Location gradientOfLocation(llvm::StringRef value, mlir::Location gradient);
/// The computation that the location belongs to, without the role in it.
mlir::Location withoutRole(mlir::Location location);

/// One location for an operation with several results, and that of each.
mlir::Location locationOfResults(llvm::ArrayRef<mlir::Location> results);
mlir::Location resultLocation(mlir::Value result);

/// What an identifier is made of: a title with `d_` in the place of `gradient of `.
std::string withShortGradient(llvm::StringRef title);

/// Names of an operation's results in textual IR: those of `result_names`, else their locations'.
void nameResults(mlir::Operation *op, mlir::OpAsmSetValueNameFn setName);

} // namespace trainc
