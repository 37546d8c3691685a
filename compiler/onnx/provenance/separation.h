// SPDX-License-Identifier: Apache-2.0
//
// Undoes what exporters do to parameters that happen to be equal: rewrites the model so that each
// has its own storage again.
#pragma once

#include "compiler/onnx/provenance/dynamo/exported_program.h"
#include "compiler/recipe.h"
#include "compiler/report.h"
#include "llvm/ADT/StringSet.h"

namespace trainc::reader {

/// The names of two initializers.
using EqualWeights = std::pair<std::string, std::string>;

/// What was found out about the parameters of the module.
struct Separation {
  /// As the file records it, and what was found of further initializers.
  ExportedProgram program;
  /// By initializer: where its values come from, for the parameter table.
  llvm::StringMap<std::string> origin;
  /// Initializers that were values of nodes, and which no operator learns.
  llvm::StringSet<> unlearnt;
  /// Initializers of one element that are the bias of a layer with one output: other makers than
  /// PyTorch give them no name that tells them from numbers.
  llvm::StringSet<> biasesOfOne;
  /// Such that are added to, or used for, something else as well.
  llvm::StringSet<> unclearNumbers;
  /// Initializers that hold all elements of these parameters of the module, in another order.
  llvm::StringMap<std::vector<std::string>> stacked;
  /// Inputs that have the one value of an initializer, as the recipe says.
  llvm::StringSet<> fixed;
  /// By parameter: what else a reader of the table should know.
  llvm::StringMap<std::string> notes;
  /// Weights that the exporter had merged, and of which the file does not tell whether they are
  /// one.
  std::vector<EqualWeights> undecided;
  /// Nodes' names tell no modules, as in files of scripted ones, which have shared weights twice.
  bool tellsNoModules = false;
  /// One of PyTorch's exporters wrote it, none of which records `requires_grad`.
  bool lacksRequiresGrad = false;
  /// Parameters that the file lists but has no storage for, rightly, and why.
  std::vector<std::pair<std::string, std::string>> absent;
};

/// Why an initializer is one of its own again.
inline std::string apartFrom(const std::string &other) {
  return "the exporter merged it with " + other + ", which was equal: apart again";
}

/// For files that record the exported program: refuses options of calls that the graph lost (label
/// smoothing, detach()), and instance norms that keep running statistics.
bool refuseLostCalls(const ModelFile &file, const ExportedProgram &program, const Recipe &recipe,
                     Report &report);

/// For PyTorch's files: the dropout inside of attention drops again. Refuses calls of which no
/// place for it is left.
bool restoreDropout(ModelFile &file, Separation &separation, Report &report);

/// For files that record the exported program: refuses buffers that the module changes and the
/// graph does not, or warns of them.
bool refuseChangedBuffers(const ModelFile &file, const ExportedProgram &program,
                          const Recipe &recipe, Report &report);

/// For files that record the exported program: running statistics get their own initializers, which
/// further calls of a norm read, too.
void separateBuffers(ModelFile &file, Separation &separation);

/// For files that record the exported program: the weights of LSTM and GRU, which hold several
/// parameters, are told, and apart where the exporter merged those of several nodes.
void separateRecurrent(ModelFile &file, Separation &separation);

/// For files that record the exported program: every parameter that its calls name gets its own
/// initializer at the uses that meant it. Reports what cannot be decided.
bool separateParameters(ModelFile &file, Separation &separation, Report &report);

/// For files that record the exported program: parameters in the place of what can be computed from
/// them again.
void unfoldParameters(ModelFile &file, Separation &separation);

/// How many outputs a layer has that multiplies by a weight of this shape: MatMul with a matrix,
/// Gemm, or a convolution. None for other nodes.
std::optional<int64_t> outputsOf(const onnx::NodeProto &node, llvm::ArrayRef<int64_t> weight);

/// Whether one of PyTorch's exporters made the file.
bool isFromPyTorch(const ModelFile &file);

/// Whether ONNX Runtime's optimizer wrote it, which imports all of its own domains.
bool isOptimizedByOnnxRuntime(const ModelFile &file);

/// For TorchScript's files: `Identity` nodes which stand for a weight that was equal to another
/// become initializers. Weights that one module uses twice stay one.
bool separateCopies(ModelFile &file, Separation &separation, Report &report);

/// Makes initializers of nodes that hold weights, in files of exporters that write them so.
void liftWeights(ModelFile &file, Separation &separation, Report &report);

/// The same in branches of `If`: initializers of the branch.
void liftWeightsOfBranches(ModelFile &file);

/// The end of the name of an initializer that is the transposition of a parameter.
constexpr char kTransposed[] = ".transposed";
/// The same, with other axes than the parameter has.
constexpr char kReshaped[] = ".reshaped";
/// Of one that is a row of a table.
constexpr char kRow[] = ".row";

} // namespace trainc::reader
