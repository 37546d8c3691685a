// SPDX-License-Identifier: Apache-2.0
//
// The walk over the graph and what it shows the importer of an operator. Each value is a tensor of
// the function, or known already, or a sequence of these.
#pragma once

#include "compiler/onnx/file/schema.h"
#include "compiler/onnx/graph/batch_axis.h"
#include "compiler/onnx/import/importer.h"
#include "compiler/onnx/parameters/exported_program.h"
#include "dialects/nn/interpreter.h"
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/onnx/onnx_refusal.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringSet.h"
#include <set>

namespace trainc::reader {

struct ImportedValue {
  mlir::Value tensor;  // null while only a constant
  nn::Tensor constant; // none where not known
  std::vector<ImportedValue> sequence;
  bool isSequence = false;
  bool followsBatch = false; // computed from sizes of what has samples: with --batch, the new ones
  std::string path;          // module of the node that made it
};

/// Where a node with known inputs is built: beside the function, with its inputs as arguments.
struct Workplace {
  mlir::Block block;
  nn::TensorValues values;

  mlir::Value add(const nn::Tensor &value, mlir::Location location) {
    mlir::Value argument = block.addArgument(value.type(), location);
    values[argument] = value;
    return argument;
  }
};

class Importer;

/// What an importer of one operator sees: see dialects/nn/onnx/onnx_node.h.
class ImportedNode : public nn::OnnxNode {
public:
  /// Without a workplace, operations are added to the function.
  ImportedNode(Importer &importer, const GraphNode &node, nn::Builder &nodeBuilder,
               Workplace *workplace = nullptr)
      : importer(importer), node(node), nodeBuilder(nodeBuilder), workplace(workplace) {}

  llvm::StringRef opType() const override { return node.opType(); }
  int64_t opset() const override { return node.opset; }
  nn::Builder &builder() override { return nodeBuilder; }
  int64_t number() const override { return static_cast<int64_t>(node.number); }
  unsigned numInputs() const override { return node.inputs.size(); }
  unsigned numOutputs() const override { return node.outputs.size(); }
  bool hasInput(unsigned index) const override {
    return index < node.inputs.size() && !node.inputs[index].empty();
  }
  bool outputUsed(unsigned index) const override;
  mlir::Value input(unsigned index) override;
  /// Before operator set 7 a second operand does not broadcast as NumPy's does. Gives it a shape
  /// that broadcasts to what ONNX says. To be called before the node's importer.
  mlir::LogicalResult alignSecond();
  nn::Tensor constant(unsigned index) override;
  mlir::Value literal(const nn::Tensor &value) override;
  bool hasAttribute(llvm::StringRef name) const override { return node.attribute(name); }
  std::vector<std::pair<std::string, nn::AttributeKind>> attributeKinds() const override;
  int64_t integer(llvm::StringRef name, int64_t otherwise) const override {
    return node.integer(name, otherwise);
  }
  double real(llvm::StringRef name, double otherwise) const override {
    return node.real(name, otherwise);
  }
  std::string string(llvm::StringRef name, llvm::StringRef otherwise) const override {
    return node.string(name, otherwise);
  }
  std::optional<llvm::SmallVector<int64_t>> integers(llvm::StringRef name) const override {
    return node.integers(name);
  }
  using nn::OnnxNode::integers;
  std::optional<llvm::SmallVector<double>> reals(llvm::StringRef name) const override;
  std::optional<llvm::SmallVector<std::string>> strings(llvm::StringRef name) const override;
  nn::Tensor tensor(llvm::StringRef name) const override;
  nn::BatchNormMode batchNormMode() const override;
  bool stopsGradients() const override { return isDetach(*node.proto); }
  std::optional<int64_t> paddingRow() const override { return paddingOf(*node.proto); }
  std::optional<bool> hasNumbersAsBounds() const override { return clampsAtNumbers(*node.proto); }
  mlir::Value buffer(unsigned index) override;
  void replaceBuffer(unsigned index, mlir::Value value) override;
  std::vector<InputType> inputTypes() const;
  mlir::LogicalResult refuseUnknown(unsigned input, const llvm::Twine &what) override;
  void warning(llvm::StringRef finding, const llvm::Twine &message,
               const llvm::Twine &advice) override;
  mlir::LogicalResult error(const llvm::Twine &message, const llvm::Twine &advice = "") override;
  /// Whether an error of the node was told; the report keeps equal ones of a loop's iterations
  /// once.
  bool isRefused() const { return refused; }

private:
  Importer &importer;
  const GraphNode &node;
  nn::Builder &nodeBuilder;
  Workplace *workplace;
  std::map<unsigned, mlir::Value> known;                 // inputs in the workplace
  std::optional<llvm::SmallVector<int64_t>> secondShape; // of an operand that was aligned
  mutable bool refused = false;
};

class Importer {
public:
  Importer(const ModelFile &file, const Graph &graph, const BatchNormModes &batchNormModes,
           mlir::MLIRContext &context, Report &report)
      : file(file), graph(graph), batchNormModes(batchNormModes), context(context), report(report),
        builder(&context), paths(graph.nodes().size()) {}

  mlir::OwningOpRef<mlir::ModuleOp> run(llvm::ArrayRef<const Parameter *> parameters,
                                        const Parameters &initializers,
                                        llvm::ArrayRef<ModelInput> inputs,
                                        const BatchAxes &batchAxes);
  std::vector<NamedValue> namedValues();
  std::vector<NamedNode> takeNodes() { return std::move(nodes); }
  std::vector<Known> evaluate(const Parameters &initializers, llvm::ArrayRef<ModelInput> inputs,
                              llvm::ArrayRef<std::string> names);
  Unknown whyUnknown(llvm::StringRef name);

  ImportedValue *find(llvm::StringRef name) {
    auto found = values.find(name);
    if (found == values.end())
      return nullptr;
    return &found->second;
  }
  mlir::Value tensorOf(ImportedValue &value, nn::Builder &at);
  mlir::LogicalResult fail(const GraphNode &node, const llvm::Twine &message,
                           const llvm::Twine &advice = "");
  void warn(const GraphNode &node, llvm::StringRef finding, const llvm::Twine &message,
            const llvm::Twine &advice) {
    report.warning(findingOf(finding), graph.subject(node), message, advice);
  }
  /// A node or an output of the model reads it.
  bool isRead(llvm::StringRef value) const {
    return !graph.uses(value).empty() || graph.isOutput(value);
  }
  mlir::FailureOr<nn::Tensor> tensorOfAttribute(const GraphNode &node,
                                                const onnx::AttributeProto &attribute);
  nn::BatchNormMode modeOf(const GraphNode &node) const { return batchNormModes.of(node); }
  /// The newest value of a buffer in a step, by initializer; null where it is none.
  mlir::Value *bufferOf(llvm::StringRef name) {
    auto found = buffers.find(name);
    return found == buffers.end() ? nullptr : &found->second;
  }
  mlir::Value besideSamples(const GraphNode &node, mlir::Value input, nn::Builder &at);
  nn::Tensor shapeForBatch(const GraphNode &node, const nn::Tensor &shape);

private:
  using Operations = llvm::SmallPtrSet<mlir::Operation *, 8>;
  /// The inputs and parameters that a value which is not known comes from, a few of each.
  struct Causes {
    llvm::SmallVector<llvm::StringRef, 1> inputs, parameters;
    void add(const Causes &other);
  };

  mlir::OwningOpRef<mlir::ModuleOp> begin(llvm::ArrayRef<const Parameter *> parameters,
                                          const Parameters &initializers,
                                          llvm::ArrayRef<ModelInput> inputs);
  void addEmpty(const ModelInput &input);
  void addArguments(llvm::ArrayRef<const Parameter *> parameters,
                    llvm::ArrayRef<ModelInput> inputs);
  void addConstants(const Parameters &initializers);
  void addTied(const Parameters &initializers);
  bool checkDeclared(const onnx::ValueInfoProto &output, mlir::RankedTensorType type);
  bool checkDescribed();
  void warnOfShape(const onnx::ValueInfoProto &described, mlir::RankedTensorType type);
  bool addOutputs(const BatchAxes &batchAxes);
  bool putSamplesFirst(llvm::StringRef output, const BatchAxes &batchAxes, mlir::Value &result,
                       nn::Builder &at);
  const Causes &causesOf(llvm::StringRef name);
  bool readsQuantized(const GraphNode &node) const;
  bool importNode(const GraphNode &node);
  void takeBranch(const GraphNode &node);
  void takeIterations(const GraphNode &node);
  bool importOperator(const GraphNode &node);
  nn::OnnxResults callImporter(const GraphNode &node, ImportedNode &view);
  std::optional<bool> foldNode(const GraphNode &node);
  void defineResult(const GraphNode &node, unsigned output, mlir::Value result,
                    const Operations &made);
  nn::Tensor knownValue(mlir::Value result, const Operations &made);
  void eraseUnused();
  static bool computesOnEmpty(llvm::ArrayRef<mlir::Operation *> made);
  llvm::SmallVector<mlir::Operation *> madeBehind(mlir::Operation *last);
  bool keepsSamplesApart(const GraphNode &node, llvm::ArrayRef<mlir::Operation *> made);
  void followSizes(const GraphNode &node);

  // For sequences (import_sequences.cpp).
  bool importOfSequences(const GraphNode &node, nn::Builder &at, bool &handled);
  bool importElement(const GraphNode &node, nn::Builder &at);
  bool splitToSequence(const GraphNode &node, nn::Builder &at);
  bool concatSequence(const GraphNode &node, nn::Builder &at);
  bool importPart(const GraphNode &of, const onnx::NodeProto &proto,
                  llvm::ArrayRef<std::string> inputs, const std::string &output);
  std::string ownName(const GraphNode &node, const llvm::Twine &part);
  ImportedValue *inputOf(const GraphNode &node, unsigned input, bool isSequence);
  std::optional<int64_t> positionOf(ImportedNode &view, const GraphNode &node, unsigned input,
                                    int64_t size, bool mayEnd, const nn::OnnxRefusal &unknown);
  bool isLastUse(const GraphNode &node, llvm::StringRef value) const;
  ImportedValue takenOf(const GraphNode &node, unsigned input);
  void dropSequences(const GraphNode &node);
  static bool isMadeOfElements(const GraphNode &node);

  bool define(const GraphNode &node, unsigned output, ImportedValue value);
  void inheritPath(const GraphNode &node);

  const ModelFile &file;
  const Graph &graph;
  const BatchNormModes batchNormModes;
  mlir::MLIRContext &context;
  Report &report;
  llvm::MapVector<llvm::StringRef, mlir::Value> buffers;
  mlir::OpBuilder builder;
  nn::Interpreter interpreter{nn::kLargestFolded};
  mlir::func::FuncOp function;
  llvm::StringMap<ImportedValue> values;
  std::vector<std::string> paths;                      // module path by node
  std::vector<NamedNode> nodes;                        // once operations have their names
  const std::set<const GraphNode *> *needed = nullptr; // where only these are imported
  std::optional<BatchAxis> batch; // where --batch gives another one than the file's
  bool repeatsSamples = false;    // an Expand of the node being imported
  llvm::DenseSet<mlir::Value> erased;
  llvm::StringMap<Causes> causes;     // by value, of those asked for
  llvm::StringSet<> quantized;        // weights that the file has as integers
  llvm::StringSet<> partsOfQuantized; // their scales and zero points, which are not values
  llvm::StringSet<> initializers;     // filled for the first such question
};

} // namespace trainc::reader
