// SPDX-License-Identifier: Apache-2.0
//
// The program that PyTorch exported, as far as its default exporter (dynamo) records it: a
// signature that lists every parameter, and with each node the call that it was made from.
#pragma once

#include "compiler/onnx/file/model_file.h"
#include "compiler/onnx/parameters/value_names.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <optional>

namespace trainc::reader {

/// `%linear_1 : ... = call_function[target=torch.ops.aten.linear.default](args = (%x, %p_w), ...)`
struct ProgramCall {
  std::string name;                    // linear_1
  std::string operation;               // aten.linear.default
  std::vector<std::string> arguments;  // by position, as text
  std::vector<std::string> references; // names of the values that it uses, in order
  std::optional<size_t> users;         // calls that used its value; nullopt: not recorded

  llvm::StringRef argument(int index) const { // empty: there is none
    const bool isThere = index >= 0 && static_cast<size_t>(index) < arguments.size();
    return isThere ? llvm::StringRef(arguments[index]) : llvm::StringRef();
  }
  bool is(llvm::StringRef base) const { // aten.linear, in any overload
    return operation == base || llvm::StringRef(operation).starts_with(base.str() + ".");
  }
  /// batch_norm(input, weight, bias, mean, variance, ...), as ONNX has them, in either mode.
  bool isBatchNorm() const;
};

class ExportedProgram {
public:
  ExportedProgram() = default; // of a file that records none
  explicit ExportedProgram(const ModelFile &file);

  /// False for files of other exporters: there only names, uses and values tell.
  bool isRecorded() const { return recorded; }
  /// Names in the module of all parameters, in order.
  llvm::ArrayRef<std::string> parameters() const { return targets; }
  bool isParameter(llvm::StringRef target) const { return known.contains(target); }
  /// The parameter that the program calls `placeholder` (p_a_weight), else "".
  llvm::StringRef parameterAt(llvm::StringRef placeholder) const;
  /// The buffer or constant that the program calls `placeholder` (b_a_running_mean), else "".
  llvm::StringRef bufferAt(llvm::StringRef placeholder) const;
  /// The calls (or inputs) that the program's results for its user come from, in order.
  llvm::ArrayRef<std::string> outputs() const { return results; }
  /// Buffers that the program changes, by target: the calls that make their new values.
  llvm::ArrayRef<std::pair<std::string, std::string>> changedBuffers() const { return changes; }
  /// Names in the module of all buffers and constants, in no order.
  const llvm::StringSet<> &bufferTargets() const { return bufferNames; }
  bool isBuffer(llvm::StringRef target) const { return bufferNames.contains(target); }
  /// Whether the signature has an input of this name: parameter, buffer, constant or user's.
  bool listsInput(llvm::StringRef placeholder) const { return placeholders.contains(placeholder); }
  /// The parameters that a call names, in order, each once.
  std::vector<std::string> parametersOf(const ProgramCall &call) const;

  /// Whether trainc.export made the file: nothing was merged or taken out of it.
  bool isOfTrainc() const { return ownExport; }
  /// Whether the module trains a parameter (requires_grad), as far as the file says.
  bool isFrozen(llvm::StringRef target) const { return frozen.contains(target); }
  /// All names that the module has for a parameter, as trainc.export records them; empty: one.
  llvm::ArrayRef<std::string> namesOf(llvm::StringRef target) const {
    auto found = ownNames.find(target);
    return found == ownNames.end() ? llvm::ArrayRef<std::string>()
                                   : llvm::ArrayRef<std::string>(found->second);
  }

  /// The call that a node was made from; null where the file does not say.
  const ProgramCall *callOf(const onnx::NodeProto &node) const;

  /// Of an initializer: PARAMETER, BUFFER, CONSTANT_TENSOR, or "" where the file does not say.
  llvm::StringRef kindOf(llvm::StringRef initializer) const;
  /// The values that the exporter computed an initializer from.
  llvm::ArrayRef<std::string> sourcesOf(llvm::StringRef initializer) const;

  /// The same of initializers that were found to be parameters, buffers or made from parameters.
  void addKind(llvm::StringRef initializer, llvm::StringRef kind);
  void addSources(llvm::StringRef initializer, std::vector<std::string> sources);

private:
  struct Record {
    std::string kind;
    std::vector<std::string> sources;
  };
  void readSignature(llvm::StringRef text);
  void readOwnRecord(const ModelFile &file);

  llvm::StringMap<Record> records;    // of initializers
  llvm::StringMap<ProgramCall> calls; // by the node's first output
  std::vector<std::string> targets, results;
  std::vector<std::pair<std::string, std::string>> changes;
  llvm::StringSet<> known, bufferNames, frozen;
  llvm::StringMap<std::vector<std::string>> ownNames; // by each of them
  llvm::StringMap<std::string> byPlaceholder, buffers;
  llvm::StringSet<> placeholders;
  bool recorded = false, kinds = false, ownExport = false;
};

/// Keys of what a file records about a value.
constexpr char kKindKey[] = "pkg.torch.export.graph_signature.InputSpec.kind";
constexpr char kSourcesKey[] = "pkg.onnxscript.optimizer.folded_from";

/// How files are made that keep what the default exporter's optimizer takes out; the first keeps
/// what is frozen, too.
constexpr char kWholeExport[] = "trainc.export; or torch.onnx.export(..., optimize=False)";

/// An Identity that stands for detach(): the graph itself cannot say that no gradient passes.
bool isDetach(const onnx::NodeProto &node);

/// Of a Gather that stands for an embedding: the row of its table that PyTorch has no gradient of.
std::optional<int64_t> paddingOf(const onnx::NodeProto &node);
/// The same of a call that may be one of an embedding.
std::optional<int64_t> paddingOf(const ProgramCall &call);

/// Of a node that stands for a clamp: whether its bounds are numbers of the module's code. PyTorch
/// has no gradient at those, and halves of one at tensors. nullopt where the file does not say.
std::optional<bool> clampsAtNumbers(const onnx::NodeProto &node);

/// The innermost module that a node was made in; nullopt where the file does not say.
std::optional<std::string> moduleOf(const onnx::NodeProto &node);

} // namespace trainc::reader
