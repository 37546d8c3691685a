// SPDX-License-Identifier: Apache-2.0
//
// Which initializers are parameters, and why: the rule of docs/parameter_rules.md.
#pragma once

#include "compiler/onnx/graph/graph.h"
#include "compiler/onnx/graph/recurrent_layout.h"
#include "compiler/onnx/provenance/batch_norm_modes.h"
#include "compiler/onnx/provenance/quantized_weights.h"
#include "compiler/onnx/provenance/separation.h"
#include "compiler/recipe.h"
#include "dialects/nn/onnx/onnx_node.h"

namespace trainc::reader {

enum class Role { trained, frozen, buffer, tied, constant, unused };

/// Why a role that was decided by names and uses may be another one.
enum class Doubt {
  none,
  number,        // a constant because it is one number without a module's name
  unclearNumber, // one number where a weight may stand, or a number of the code
  foldedNumber,  // one number without axes that PyTorch's TorchScript exporter folded: those of the
                 // module's code are Constant nodes
  statistic,     // a constant because of its name
  mask,          // a constant because of its two values, under a name of its own
  quantized,     // integers that stand for a weight
  inNode,        // the value of a Constant node, as numbers of the module's code are
  unlearnt,      // floats that no operator learns, or a recorded buffer
};

struct Decision {
  const TensorBytes *tensor = nullptr;
  Role role = Role::constant;
  std::string reason;
  std::string moduleName; // as the module calls it, where that differs from the initializer's name
  // What the module calls the tensor whose elements it has, all of them, under another name; empty:
  // it has none. They are those of its transpose, or have the same order.
  std::string moduleTensor;
  bool isModulesTranspose = false;
  std::vector<std::string> otherModuleTensors; // of a module that has several names
  // The module's tensors that it consists of, in another order, and their places.
  std::vector<std::pair<std::string, std::vector<LayoutPiece>>> held;
  std::vector<std::string> stackedOf; // the module's parameters that it holds, where several
  bool decays = false;
  size_t group = 0;          // number of the recipe's, from 1; 0: in none
  bool exporterMade = false; // an intermediate value that the exporter computed
  bool isFixed = false;      // an input, by --constant
  Doubt doubt = Doubt::none;
  bool isPart = false; // elements that the exporter chose of a parameter, perhaps all
  const Decision *canonical = nullptr; // of a tied one: the parameter
  bool transposed = false;             // of a tied one: it is the parameter's transpose
  size_t firstUse = 0;                 // node and input, for the order
  // Of integers that stand for a frozen weight of floats, which is what the program has.
  std::optional<QuantizedWeight> quantized;
  bool isPartOfQuantized = false; // scales or zero points of such a weight

  /// A tensor of the program, which its files of parameters hold.
  bool isParameter() const {
    return role == Role::trained || role == Role::frozen || role == Role::buffer;
  }
  llvm::StringRef name() const { return tensor->name; }
  /// Of the program's tensor.
  llvm::ArrayRef<int64_t> shape() const { return quantized ? quantized->shape : tensor->shape; }
  int32_t dataType() const;
};

/// One decision per initializer, in graph order. Null after errors with which shapes and operators
/// cannot be judged; others, of what an exporter lost, are in the report alone.
using Decisions = std::vector<std::unique_ptr<Decision>>;
std::optional<Decisions> decideParameters(const ModelFile &file, const Graph &graph,
                                          const Separation &separation,
                                          const BatchNormModes &batchNorms, const Recipe &recipe,
                                          Report &report);

/// By parameter of the module: what the exporter made from it.
using MadeFrom = llvm::StringMap<std::vector<Decision *>>;

/// Ties what an exporter wrote more than once to the parameter that it is, for files that record
/// the exported program by what was made from each. Reports what training would part.
void tieByRecord(const Decisions &decisions, MadeFrom &madeFrom, const ModelFile &file,
                 Report &report);
/// The same for other files, by values, uses and names. Those that may be one or two.
std::vector<EqualWeights> tieByValue(const Decisions &decisions, const Graph &graph,
                                     const Separation &separation, const ModelFile &file);
/// Refuses such pairs, where one is trained and --train-only does not say that they are two; and
/// others, as texts.
void refuseUndecided(const Decisions &decisions, llvm::ArrayRef<EqualWeights> undecided,
                     std::vector<std::string> pairs, const Separation &separation,
                     const ModelFile &file, const Recipe &recipe, Report &report);

/// Names the modules' tensors of the parameters: of recurrent layers, and for TorchScript's files,
/// which have no signature, of linear layers and norms.
void findModuleTensors(const Graph &graph, bool hasSignature, Decisions &decisions);

/// Refuses, or warns of, what the file does not tell about what was decided.
void reportDoubts(const Decisions &decisions, const ExportedProgram &program, const ModelFile &file,
                  const Graph &graph, const Recipe &recipe, Report &report);

/// What the operator learns in an input that is this tensor.
nn::OnnxWeight weightOf(const Use &use, const TensorBytes &tensor);
/// True where an operator learns it as that; also as a matrix after a Transpose.
bool isUsedAs(const Graph &graph, const Decision &decision, nn::OnnxWeight weight);

/// Uses of a value, and of its elements elsewhere: after Split, Reshape and the like.
std::vector<Use> usesBehindViews(const Graph &graph, llvm::StringRef name);

/// What a matrix, a filter or a table is may be a weight that starts as ones and zeros; what is
/// added or scales would be a mask.
inline bool isFactor(nn::OnnxWeight weight) {
  return weight == nn::OnnxWeight::matrix || weight == nn::OnnxWeight::filter ||
         weight == nn::OnnxWeight::table;
}

/// The same of a use, also as several matrices.
bool multiplies(const Use &use, const TensorBytes &tensor);

/// 4x6, or `scalar`.
std::string shapeText(llvm::ArrayRef<int64_t> shape);
std::string parameterTable(const Decisions &decisions, const Separation &separation,
                           const Recipe &recipe);

/// True for bytes that are those of the other tensor, or with `transposed` of its transpose.
bool sameValues(const TensorBytes &a, const TensorBytes &b, bool transposed);
/// One value throughout: says nothing about where a tensor comes from.
bool isUniform(const TensorBytes &tensor);
/// Exactly two values, one of which an additive or multiplicative mask would have.
bool looksLikeMask(const TensorBytes &tensor);
/// Rows of sines and cosines of their numbers, in one of the usual layouts.
bool looksSinusoidal(const TensorBytes &tensor);
/// Evenly spaced along its one axis above 1, and long enough not to be so by chance.
bool looksLikeRange(const TensorBytes &tensor);
/// Each element a fixed multiple of the one before, along its one axis above 1: such as the
/// frequencies of rotary positions. Too long to be so by chance.
bool looksGeometric(const TensorBytes &tensor);
/// Of a tensor of floats that has elements.
double firstNumber(const TensorBytes &tensor);
/// Zeros throughout.
bool isZero(const TensorBytes &tensor);
/// Whole numbers alone, such as ones and zeros.
bool isWhole(const TensorBytes &tensor);
/// What a module's code may write, as no drawn or trained weight is: one value or two throughout
/// (of up to two elements, numbers of few digits and roots), whole numbers, or one of the tables
/// above.
bool mayBeWritten(const TensorBytes &tensor);
/// Successive rows of the first axis of `whole`, or one of them; of a matrix columns, too, and
/// either transposed. Not all elements equal.
bool isPartOf(const TensorBytes &part, const TensorBytes &whole);
/// One factor times the other tensor, or with `transposed` times its transpose, wherever it is not
/// 0: a multiple, perhaps with a mask.
bool isMultipleOf(const TensorBytes &multiple, const TensorBytes &tensor, bool transposed);
/// The same values without its axes of size 1; they remain those of the tensor.
TensorBytes withoutSingleAxes(const TensorBytes &tensor);
/// No NaN and no +infinity among its floats; -infinity is what masks hold.
bool isSound(const TensorBytes &tensor);
/// No two rows (of the last dimension) are equal.
bool rowsDiffer(const TensorBytes &tensor);
/// No two of all columns (of the last dimension) are equal.
bool columnsDiffer(const TensorBytes &tensor);
/// One of its numbers at least is neither whole nor one that fewer digits could say: none of them
/// was cast to a shorter type and back.
bool hasAllDigits(const TensorBytes &tensor);

} // namespace trainc::reader
