// SPDX-License-Identifier: Apache-2.0
//
// What an importer of one ONNX operator sees of its node, and how it registers.
// No protobuf here: the reader (compiler/onnx) implements the node.
#pragma once

#include "dialects/nn/batch_norm_mode.h"
#include "dialects/nn/builder.h"
#include "llvm/ADT/Twine.h"
#include <functional>

namespace trainc::nn {

enum class AttributeKind { integer, real, other };

/// One node of the ONNX graph during import. Inputs are tensors of nn; those
/// known at compile time (shape arithmetic, axes, masks) are available as
/// constants. Where all inputs are known, what the importer builds is evaluated by
/// the interpreter at once and nothing of it stays, unless some of it varies by step.
class OnnxNode {
public:
  virtual ~OnnxNode() = default;

  virtual llvm::StringRef opType() const = 0;
  /// Version of the node's operator set that the model imports.
  virtual int64_t opset() const = 0;
  virtual Builder &builder() = 0;
  /// Its place among the nodes of the file, from 0: what tells its random numbers from others'.
  virtual int64_t number() const = 0;

  virtual unsigned numInputs() const = 0;
  virtual unsigned numOutputs() const = 0;
  /// False for an absent trailing input and for an empty name.
  virtual bool hasInput(unsigned index) const = 0;
  virtual bool outputUsed(unsigned index) const = 0;
  /// The input as a tensor. A constant beside others becomes an nn.constant, of i64 where its
  /// integers are narrower than 32 bits or unsigned.
  virtual mlir::Value input(unsigned index) = 0;
  /// The input's value where it is known at compile time (never a parameter's), else none.
  virtual Tensor constant(unsigned index) = 0;
  /// What an importer computed itself, as a tensor.
  virtual mlir::Value literal(const Tensor &value) = 0;
  /// The same of integers of 64 bits.
  mlir::Value integerLiteral(llvm::ArrayRef<int64_t> values, llvm::ArrayRef<int64_t> shape);
  /// Like `constant`, flattened to integers; nullopt where unknown.
  std::optional<llvm::SmallVector<int64_t>> integers(unsigned index);

  virtual bool hasAttribute(llvm::StringRef name) const = 0;
  /// The kinds of all attributes, by name.
  virtual std::vector<std::pair<std::string, AttributeKind>> attributeKinds() const = 0;
  virtual int64_t integer(llvm::StringRef name, int64_t otherwise) const = 0;
  virtual double real(llvm::StringRef name, double otherwise) const = 0;
  virtual std::string string(llvm::StringRef name, llvm::StringRef otherwise) const = 0;
  virtual std::optional<llvm::SmallVector<int64_t>> integers(llvm::StringRef name) const = 0;
  virtual std::optional<llvm::SmallVector<double>> reals(llvm::StringRef name) const = 0;
  /// An attribute that holds a tensor; none where it is absent or cannot be read.
  virtual Tensor tensor(llvm::StringRef name) const = 0;

  virtual BatchNormMode batchNormMode() const = 0;
  /// True of an Identity that stands for a call of detach().
  virtual bool stopsGradients() const = 0;
  /// The row without a gradient in the table of a Gather that stands for an embedding.
  virtual std::optional<int64_t> paddingRow() const = 0;
  /// Of a Clip, Max or Min that stands for a clamp: whether the module's bounds are numbers, and no
  /// tensors. nullopt where the file does not say.
  virtual std::optional<bool> hasNumbersAsBounds() const = 0;
  /// What the nodes before made of the input in this training step, where it is an initializer that
  /// each step replaces (running statistics); else null.
  virtual mlir::Value buffer(unsigned index) = 0;
  /// What this node makes of such an input.
  virtual void replaceBuffer(unsigned index, mlir::Value value) = 0;

  /// Records what a user should know though nothing is wrong.
  /// `finding`: a name of compiler/findings.def.
  virtual void warning(llvm::StringRef finding, const llvm::Twine &message,
                       const llvm::Twine &advice) = 0;
  /// Records an error of this node in the report's form and fails:
  /// `model.onnx: node 'x' (Softmax, opset 13): <message>` and, where given, `try: <advice>`.
  virtual mlir::LogicalResult error(const llvm::Twine &message, const llvm::Twine &advice = "") = 0;

  /// Refuses an input that must be known when the model is compiled, such as its `shape`, and says
  /// what it depends on instead.
  virtual mlir::LogicalResult refuseUnknown(unsigned input, const llvm::Twine &what) = 0;
  /// An input of one element that must be known; fails with an error of the node about its `what`.
  mlir::FailureOr<double> knownNumber(unsigned input, const llvm::Twine &what);
  mlir::FailureOr<int64_t> knownInteger(unsigned input, const llvm::Twine &what);

  /// An attribute that is a list of words.
  virtual std::optional<llvm::SmallVector<std::string>> strings(llvm::StringRef name) const = 0;
};

/// The attribute `axis` of an operator on `rank` dimensions, counted from the front; an error where
/// it is out of range.
mlir::FailureOr<int64_t> axisOf(OnnxNode &node, int64_t rank, int64_t otherwise);
/// The dimension for an axis that an input gives.
mlir::FailureOr<int64_t> dimensionOf(OnnxNode &node, int64_t axis, int64_t rank);

/// The number of elements of a tensor that the node makes with sizes out of the file, or an error
/// of the node.
mlir::FailureOr<int64_t> countElements(OnnxNode &node, llvm::ArrayRef<int64_t> sizes);

using OnnxResults = mlir::FailureOr<llvm::SmallVector<mlir::Value>>;
using OnnxImporter = std::function<OnnxResults(OnnxNode &)>;

/// What an operator does with an input, where that is something that models learn. A statistic is
/// not trained: training replaces it. A setting is not a weight under any name: the compiler must
/// know it.
enum class OnnxWeight { none, table, matrix, filter, scale, bias, statistic, setting };

/// What a model may keep in its initializers: all but `none` and `setting`.
inline bool isWeight(OnnxWeight weight) {
  return weight != OnnxWeight::none && weight != OnnxWeight::setting;
}

/// Says it of an input that is a tensor of the given shape.
using OnnxWeightRule = std::function<OnnxWeight(unsigned input, llvm::ArrayRef<int64_t> shape)>;

/// The rule of operators whose inputs from number `First` on are settings, the others no weights.
template <unsigned First> OnnxWeight settingsFrom(unsigned input, llvm::ArrayRef<int64_t>) {
  return input >= First ? OnnxWeight::setting : OnnxWeight::none;
}

/// What is not supported of an operator. Nodes are checked against it before their importer sees
/// them, and the support table says it.
struct OnnxSupport {
  struct Words {
    llvm::StringRef attribute;
    llvm::SmallVector<llvm::StringRef> allowed;
  };
  struct Known {
    unsigned input;
    llvm::StringRef what;
  };
  /// The inputs that have a gradient; without a list all of floats have one.
  std::optional<llvm::SmallVector<unsigned>> gradient;
  llvm::SmallVector<Words> words; // of attributes
  llvm::SmallVector<Known> known; // inputs that the compiler must know
  bool floatsOnly = false;        // as input 0
  std::string meaning;            // of a user's operator, which its name does not tell
};

/// Registers the importer of an operator for models whose opset is at least
/// `since`; the entry with the largest `since` not above the model's opset
/// serves. Static objects of this class stand at the end of the file that
/// holds the importer; a user's operators come when their manifests are read.
struct OnnxRegistration {
  OnnxRegistration(llvm::StringRef opType, int64_t since, OnnxImporter importer,
                   OnnxWeightRule weights = nullptr, llvm::StringRef domain = "");

  /// No inputs but these have a gradient.
  OnnxRegistration &gradientOf(llvm::ArrayRef<unsigned> inputs);
  /// An attribute is one of these words, or absent.
  OnnxRegistration &takes(llvm::StringRef attribute, llvm::ArrayRef<llvm::StringRef> words);
  OnnxRegistration &mustKnow(unsigned input, llvm::StringRef what);
  OnnxRegistration &takesFloats();
  OnnxRegistration &means(std::string text);

private:
  OnnxSupport *support;
};

/// What the newest importer of the operator supports.
const OnnxSupport &onnxSupport(llvm::StringRef domain, llvm::StringRef opType);
/// Refuses a node that has something unsupported.
mlir::LogicalResult checkSupport(OnnxNode &node, const OnnxSupport &support);

/// What the operator, as its newest importer knows it, does with `input`.
OnnxWeight onnxWeight(llvm::StringRef domain, llvm::StringRef opType, unsigned input,
                      llvm::ArrayRef<int64_t> shape);

/// Null where no importer serves; `oldest` then receives the first opset that is served, or 0.
OnnxImporter findOnnxImporter(llvm::StringRef domain, llvm::StringRef opType, int64_t opset,
                              int64_t *oldest = nullptr);

/// All registered operators as "domain:OpType:since", sorted: the support table.
std::vector<std::string> listOnnxImporters();

} // namespace trainc::nn
