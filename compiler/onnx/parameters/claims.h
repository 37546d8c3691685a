// SPDX-License-Identifier: Apache-2.0
//
// A claim says: this input of this node stands for that parameter of the module. Claims come from
// the calls that PyTorch's default exporter records. `resolve` computes the changes of the file
// that they need, `rewrite` makes them.
#pragma once

#include "compiler/onnx/parameters/ledger.h"
#include "dialects/nn/onnx/onnx_node.h"
#include <set>

namespace trainc::reader {

/// The ends of names of initializers that are a parameter in another form.
constexpr char kTransposed[] = ".transposed", kReshaped[] = ".reshaped";
constexpr char kRow[] = ".row"; // of a table

/// How the initializer is related to what the claim names.
enum class Form {
  same,
  transposed,
  reshaped,
  stacked,  // several parameters in another order
  constant, // no parameter: a number or tensor of the module's code
  statistic,
  zeros, // a bias that the exporter took out: the node lacks the input
};

struct Claim {
  onnx::NodeProto *node = nullptr;
  int input = 0;
  Form form = Form::same;
  std::vector<std::string> tensors; // the module's, by name
  std::string function = {}; // the value computed from the parameter, where the file lacks it
};

/// What the record lists and no claim explains.
struct Losses {
  std::vector<std::string> foldedNorms; // parameters of batch norms folded into other layers
  std::vector<std::string> changed;     // parameters that have other values than in the module
  std::set<std::string> undecided;      // several uses may have meant them
  std::set<std::string> unnamed;        // no call names them, though calculations are gone
  std::set<std::string> unclear;        // no call names them: in all likelihood unused
};

struct Claims {
  std::vector<Claim> uses;
  Losses lost;
  std::vector<std::pair<std::string, std::string>> absent, notes; // for the ledger
};

/// One change of the file. What is empty or null does not happen.
struct Change {
  std::unique_ptr<TensorBytes> tensor = nullptr; // a new initializer, unless its name is there
  int replaces = -1;                             // number of the initializer that it replaces
  std::string origin = {};                       // why, for the table
  std::string kind = {};                         // as records call it: PARAMETER, BUFFER
  std::vector<std::string> sources = {};         // values that it was made from
  std::vector<std::string> stacked = {};         // parameters that it holds in another order
  onnx::NodeProto *user = nullptr;               // reads `reads` at `input` from here on
  int input = 0;
  std::string reads = {};
  const onnx::NodeProto *removed = nullptr; // the tensor is in its place
  onnx::NodeProto *maker = nullptr;         // makes `makes` as its first value from here on
  std::string makes = {};
  std::optional<onnx::NodeProto> node = {}; // computes what the exporter had computed
};
using Changes = std::vector<Change>;

/// What claims ask for. Each gives an initializer of its own to a parameter that shares one.
Changes resolve(const ModelFile &file, const Ledger &ledger, llvm::ArrayRef<Claim> claims);

/// Parameters in the place of what the record says was computed from them, where that can be
/// recomputed: 1 + weight, a token that is spread over the batch, one row of a table.
Changes unfoldedParameters(const ModelFile &file, const Ledger &ledger);

/// Initializers in the place of Constant and ConstantOfShape nodes that hold weights.
Changes weightsInNodes(ModelFile &file, const Ledger &ledger, Report &report);

/// The same in bodies of If, Loop and Scan: initializers of the body.
void liftWeightsOfBodies(onnx::GraphProto &graph, Ledger &ledger);

/// Initializers in the place of Identity nodes by which PyTorch's TorchScript exporter writes a
/// weight that merely starts equal to another. Pairs that nothing decides go to the ledger.
Changes copiesOfWeights(ModelFile &file, Ledger &ledger, Report &report);

/// Dropout that both exporters of PyTorch leave out of attention.
Changes attentionDropout(ModelFile &file, const Ledger &ledger, Report &report);

/// Why an initializer is one of its own again.
std::string apartFrom(llvm::StringRef other);

/// Makes the changes, and writes them into the ledger.
void rewrite(ModelFile &file, Ledger &ledger, Changes changes);

/// Refuses what calls say and the graph does not: options (label smoothing), detach(), statistics
/// of instance norms.
void refuseLostCalls(const ModelFile &file, const ExportedProgram &program, const Recipe &recipe,
                     Report &report);

/// Refuses parameters that the exporter's optimizer removed, and warns of what may be one.
void refuseLosses(const ModelFile &file, Losses lost, Report &report);

// ---- for decisions

/// What an operator learns in the tensor of this shape that a node reads.
inline nn::OnnxWeight weightOf(const onnx::NodeProto &node, int input,
                               llvm::ArrayRef<int64_t> shape) {
  return nn::onnxWeight(node.domain(), node.op_type(), input, shape);
}
inline nn::OnnxWeight weightOf(const Use &use, llvm::ArrayRef<int64_t> shape) {
  return nn::onnxWeight(use.node->domain, use.node->opType(), use.index, shape);
}

/// How many outputs a layer has that multiplies by a weight of this shape: MatMul with a matrix,
/// Gemm, or a convolution. None for other nodes.
std::optional<int64_t> outputsOf(const onnx::NodeProto &node, llvm::ArrayRef<int64_t> weight);

/// Where values are read: of a graph, or of nodes of a file.
struct Reader {
  llvm::StringRef domain, opType;
  unsigned input = 0;
  llvm::StringRef output; // the node's first
  llvm::StringRef other;  // of two inputs, the one beside it
};
using Readers = llvm::function_ref<std::vector<Reader>(llvm::StringRef value)>;
std::vector<Reader> readersIn(const Graph &graph, llvm::StringRef value);

/// What an operator learns in a tensor of this shape, also through Identity, Cast, Transpose and
/// what changes axes alone.
struct Learnt {
  nn::OnnxWeight as = nn::OnnxWeight::none;
  std::string by; // the operator; a layer's before one that adds or scales

  bool isElementwise() const { return by == "Add" || by == "Mul"; }
};
Learnt learntAs(llvm::StringRef value, llvm::ArrayRef<int64_t> shape, Readers readers);
Learnt learntAs(const Graph &graph, llvm::StringRef value, llvm::ArrayRef<int64_t> shape);

/// Uses of a value, and of its elements elsewhere: after Split, Reshape and the like.
std::vector<Use> usesBehindViews(const Graph &graph, llvm::StringRef name);
/// No gradient passes any of those.
bool isOnlyCompared(const Graph &graph, llvm::StringRef name);
/// Something is calculated with it, so that it may be a parameter.
bool isCalculatedWith(const Graph &graph, llvm::StringRef name, bool isFromPyTorch);

/// True where an operator multiplies by it: a matrix, filter or table, or several.
bool multiplies(const Use &use, const TensorBytes &tensor);

/// True of an Add beside a product, as that of a linear layer's bias is.
bool isAddedToProduct(const Graph &graph, const Use &use);

/// Ties what was made from one recorded parameter; refuses what training would part.
void tieByRecord(const Parameters &parameters, llvm::StringMap<std::vector<Parameter *>> &madeFrom,
                 const ModelFile &file, Report &report);
/// The same for other files, by values, uses and names. Returns those that may be one or two.
std::vector<EqualWeights> tieByValue(const Parameters &parameters, const Graph &graph,
                                     const Ledger &ledger, const ModelFile &file);
/// What the module's state calls parameters of TorchScript's files, and how it holds the weights
/// of recurrent layers.
void nameInState(const Graph &graph, const Ledger &ledger, Parameters &parameters);

/// Roles, decay and groups by the patterns of the recipe. False after errors.
bool applyRecipe(const Parameters &parameters, const Graph &graph, const Recipe &recipe,
                 Report &report);

/// What the file does not tell, as one question; and what is refused or warned of besides.
void reportDoubts(const Parameters &parameters, llvm::ArrayRef<EqualWeights> undecided,
                  const Ledger &ledger, const ModelFile &file, const Graph &graph,
                  const Recipe &recipe, Report &report);

// ---- values (tensor_values.cpp)

/// Of two tensors with the same values, whether one has them as the other's transpose.
std::optional<bool> isTransposeOf(const TensorBytes &a, const TensorBytes &b);
/// One value throughout: says nothing about where a tensor comes from.
bool isUniform(const TensorBytes &tensor);
/// No NaN and no +infinity among its floats; -infinity is what masks hold.
bool isSound(const TensorBytes &tensor);
/// No two rows are equal: of the last axis, or of whichever axis holds them. No two columns.
bool rowsDiffer(const TensorBytes &tensor, bool anywhere);
bool columnsDiffer(const TensorBytes &tensor);
/// One of its numbers at least is neither whole nor one that fewer digits could say: none of them
/// was cast to a shorter type and back.
bool hasAllDigits(const TensorBytes &tensor);

} // namespace trainc::reader
