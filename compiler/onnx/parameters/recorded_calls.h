// SPDX-License-Identifier: Apache-2.0
//
// The calls of a recorded program, the nodes that were made from each, and the initializers that
// those read.
#pragma once

#include "compiler/onnx/parameters/claims.h"

namespace trainc::reader {

struct RecordedCalls {
  /// A call, with the nodes that were made from it.
  struct Made {
    ProgramCall call;
    llvm::SmallVector<onnx::NodeProto *> nodes;
  };
  /// An input of a node.
  struct Read {
    onnx::NodeProto *node;
    int input;
    const std::string &name() const { return node->input(input); }
  };

  RecordedCalls(ModelFile &file, const ExportedProgram &program);

  bool isInitializer(llvm::StringRef name) const { return file.find(name) != nullptr; }
  const TensorBytes &tensorOf(llvm::StringRef name) const { return *file.find(name); }
  bool holdsFloats(llvm::StringRef name) const { return isFloat(tensorOf(name).dataType); }
  /// The parameters that an initializer is, or was made from.
  const std::vector<std::string> &originsOf(const std::string &name) const {
    return origins.at(name);
  }
  bool isOwn(const Read &use, llvm::StringRef parameter) const {
    return llvm::is_contained(originsOf(use.name()), parameter);
  }
  /// A value that no call in the file makes.
  bool isLost(llvm::StringRef reference) const {
    return values.find(reference) == values.end() && !program.listsInput(reference);
  }
  /// The initializers of floats that the nodes of a call read.
  std::vector<Read> usesIn(const Made &made) const;
  /// The initializer that an Identity copies; else the value itself.
  std::string copiedFrom(const std::string &value) const;

  ModelFile &file;
  const ExportedProgram &program;
  std::vector<Made> calls;                                 // in order
  std::map<std::string, std::vector<std::string>> origins; // by initializer
  std::map<std::string, std::vector<std::string>> usedIn;  // parameters, by module
  std::set<std::string, std::less<>> mentioned;            // parameters, buffers that calls name
  std::set<std::string, std::less<>> held;                 // parameters that initializers are
  std::vector<const onnx::NodeProto *> callless;
  llvm::StringMap<std::string> passedOn; // first input of a callless node, by its outputs
  llvm::StringMap<std::string> copies;   // initializers, by outputs of Identity nodes
  bool definesTwice = false;             // a node makes a value under an initializer's name

private:
  void collect(onnx::NodeProto &node);

  std::set<std::string, std::less<>> values;
  llvm::StringMap<size_t> callNumbers;
};

/// What the calls say about the initializers that nodes read; nothing without a record.
Claims claimsOfCalls(const RecordedCalls &calls);

/// Refuses buffers that the module changes, and whose new values the graph does not give out.
void refuseChangedBuffers(const RecordedCalls &calls, const Recipe &recipe, Report &report);

/// Adds the parameters of the module that no claim explains: lost, or unused.
void explainMissing(const RecordedCalls &calls, Claims &claims);

} // namespace trainc::reader
