// SPDX-License-Identifier: Apache-2.0
//
// Which calls of the exported program stand for others as well: the optimizer of PyTorch's default
// exporter keeps one of several equal operations on equal values, and with it one call.
#pragma once

#include "compiler/onnx/exported_program.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace trainc::reader {

class MergedCalls {
public:
  MergedCalls(const ModelFile &file, const ExportedProgram &program);

  /// The names of such calls: whatever they read, the calls that are gone may have read something
  /// else that was equal.
  const llvm::StringSet<> &names() const { return merged; }

private:
  struct Call {
    ProgramCall call;
    std::vector<const onnx::NodeProto *> nodes;
    llvm::StringSet<> users; // calls, removed ones that change no value, and nodes without a call
  };
  /// A value read in the place of one whose call is gone.
  struct Stand {
    std::string lost, value;
  };

  void collect(const onnx::GraphProto &graph);
  bool isLost(llvm::StringRef reference) const;
  std::string makerOf(llvm::StringRef value) const;
  bool isValueOf(llvm::StringRef value, llvm::StringRef reference) const;
  void findStands(const std::string &user, llvm::ArrayRef<std::string> references,
                  llvm::ArrayRef<std::string> read);
  bool addInOrder(const std::string &user, llvm::ArrayRef<std::string> references,
                  llvm::ArrayRef<std::string> read);
  void add(const std::string &user, const std::string &lost, const std::string &value);
  std::vector<std::string> read(const Call &call) const;
  void follow(const std::string &name);

  const ExportedProgram &program;
  llvm::StringMap<Call> calls; // by name
  std::vector<std::string> order;
  llvm::StringMap<std::string> makers;             // calls, by value
  llvm::StringMap<const onnx::NodeProto *> passed; // nodes without a call, by value
  llvm::StringSet<> values, initializers, tables, inputs;
  std::vector<Stand> stands;
  llvm::StringSet<> merged;
};

} // namespace trainc::reader
