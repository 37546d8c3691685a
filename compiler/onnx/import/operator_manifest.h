// SPDX-License-Identifier: Apache-2.0
//
// What the manifest of a user's operator says: docs/custom_operators.md.
#pragma once

#include "compiler/report.h"
#include "dialects/nn/onnx/onnx_node.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trainc {

struct ManifestInput {
  std::string name;
  nn::OnnxWeight weight = nn::OnnxWeight::none;
};

struct ManifestAttribute {
  std::string name;
  bool isFloat = false, hasDefault = false;
  double real = 0;     // the default of a float
  int64_t integer = 0; // of an int
};

struct ManifestOutput {
  std::string name;
  std::string like;               // has the shape of this input; empty: `shape`
  std::vector<std::string> shape; // size expressions
  std::string type;               // an element type, or the input that has it
};

struct ManifestFunction {
  std::string name;
  std::vector<std::string> numbers; // size expressions, or attributes that are floats
  std::string flops;                // a size expression; empty: one for each element of the results
  llvm::SmallVector<int64_t> inputs, gradients; // of a backward function, as nn.custom has them
};

struct OperatorManifest {
  std::string domain, name;
  std::string folder;             // of its files, in the emitted source
  std::string header;             // its path there
  std::vector<std::string> files; // to be copied there: the header, the target's sources
  std::vector<ManifestInput> inputs;
  std::vector<ManifestAttribute> attributes;
  std::vector<ManifestOutput> outputs;
  ManifestFunction forward;
  std::vector<ManifestFunction> backward;
  std::string meaning; // what the operator computes: manifest and files, without their places

  /// For messages, as those about nodes have it: `com.example::Cube`.
  std::string qualifiedName() const { return (domain.empty() ? "" : domain + "::") + name; }
  std::optional<size_t> input(llvm::StringRef name) const;
  std::optional<size_t> output(llvm::StringRef name) const;
  const ManifestAttribute *attribute(llvm::StringRef name) const;
};

/// Null where `report` says what is wrong.
std::shared_ptr<const OperatorManifest>
readOperatorManifest(const std::string &path, llvm::StringRef target, Report &report);

/// Null for what is not a name of an element type in a manifest.
mlir::Type manifestType(llvm::StringRef word, mlir::MLIRContext *context);

} // namespace trainc
