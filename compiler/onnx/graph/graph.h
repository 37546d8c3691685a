// SPDX-License-Identifier: Apache-2.0
//
// The model as one flat list of nodes: local functions inlined, known branches taken, loops
// unrolled, dead nodes gone, in an order in which every value is made before it is used.
#pragma once

#include "compiler/onnx/file/model_file.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <deque>
#include <optional>

namespace trainc::reader {

/// Of local functions, branches and iterations in all; no exporter makes more.
constexpr size_t kInlinedNodes = 1 << 17;

struct GraphNode {
  const onnx::NodeProto *proto = nullptr;
  std::vector<std::string> inputs, outputs; // graph-wide value names; empty: absent
  std::string domain;                       // "" for ONNX's own
  int64_t opset = 0;
  const onnx::FunctionProto *function = nullptr; // whose body it is from
  bool isInner = false;                          // of a function or a branch
  std::string label;                             // node name for messages
  const GraphNode *partOf = nullptr;             // which messages name in its place
  std::optional<std::string> path; // module path, such as h.1.mlp.act; empty at the root
  std::string kind;                // last part of the readable name: the operator, in snake case
  size_t index = 0;                // in Graph::nodes()
  size_t number = 0;               // in the file, functions written out: whatever is needed of it
  /// Of a Loop, for what is not unrolled yet: whether the condition that its body makes may be
  /// false, so that it ends before its count does.
  bool changesCondition = false;
  /// Of such a loop: iterations that are in the graph to see after which its condition is false.
  /// Behind its own inputs it reads the condition of each, inside of other loops also its states.
  size_t tried = 0;

  llvm::StringRef opType() const { return proto->op_type(); }
  /// Its first output that has a name, which tells it apart; empty where it has none.
  std::string key() const {
    auto found = llvm::find_if(outputs, [](const std::string &name) { return !name.empty(); });
    return found == outputs.end() ? "" : *found;
  }
  bool isIf() const { return domain.empty() && opType() == "If"; }
  bool isLoop() const { return domain.empty() && opType() == "Loop"; }
  bool isScan() const { return domain.empty() && opType() == "Scan"; }
  const onnx::AttributeProto *attribute(llvm::StringRef name) const;
  int64_t integer(llvm::StringRef name, int64_t otherwise) const;
  double real(llvm::StringRef name, double otherwise) const;
  std::string string(llvm::StringRef name, llvm::StringRef otherwise) const;
  std::optional<llvm::SmallVector<int64_t>> integers(llvm::StringRef name) const;
};

/// Why a value is not known when the model is compiled, and what would help.
struct Unknown {
  std::string why; // `depends on the values of input 'x'`
  std::string advice;
};

/// `why` of what no input or parameter explains.
inline constexpr const char *kNotEvaluated = "depends on what cannot be evaluated";

inline bool isOnnx(const GraphNode &node, llvm::StringRef opType) {
  return node.domain.empty() && node.opType() == opType;
}

struct Use {
  const GraphNode *node;
  unsigned index; // of the input
};

/// By the `key` of nodes with bodies.
struct Choices {
  /// Of an `If`, 1 for `then_branch`, 0 for `else_branch`; of a `Loop` or `Scan` how often it runs.
  std::map<std::string, int64_t> made;
  /// Of a `Loop` that runs until its condition changes, how often it is to be tried: fewer times
  /// where these do not fit.
  std::map<std::string, int64_t> tried;
  /// How often others are that have no entry there: by their node in the file, of which bodies that
  /// are written out several times make several.
  std::map<const onnx::NodeProto *, int64_t> likely;

  int64_t trialsOf(const GraphNode &node) const {
    if (auto own = tried.find(node.key()); own != tried.end())
      return own->second;
    auto others = likely.find(node.proto);
    return others == likely.end() ? 0 : others->second;
  }
};

class Graph {
public:
  /// Of an `If` that is not among the choices both branches are there, and it reads what they make;
  /// a `Scan` reads the sizes of what it scans besides, and a `Loop` that is tried what its
  /// iterations make. Null after errors.
  static std::unique_ptr<Graph> build(const ModelFile &file, const Choices &choices,
                                      Report &report);

  const std::vector<GraphNode *> &nodes() const { return order; }
  /// Uses of a value by live nodes, in order.
  llvm::ArrayRef<Use> uses(llvm::StringRef value) const;
  bool isOutput(llvm::StringRef value) const;
  /// Whether the body of a loop reads it from the graph around.
  bool isCaptured(llvm::StringRef value) const { return captured.contains(value); }
  /// The node that makes a value; null for inputs and initializers.
  const GraphNode *producer(llvm::StringRef value) const { return producers.lookup(value); }
  /// Of ONNX's own operators, outside of functions; 0 where the model imports none.
  int64_t opset() const { return modelOpset; }
  /// `model.onnx: node 'x' (Softmax, opset 13)`
  Subject subject(const GraphNode &node) const;

private:
  friend class Inliner;
  Graph(const ModelFile &file) : file(file) {}
  bool sort(Report &report);
  void reportCycle(llvm::ArrayRef<char> waits, const llvm::StringMap<size_t> &producer,
                   Report &report);

  const ModelFile &file;
  int64_t modelOpset = 0;
  std::deque<GraphNode> storage;
  std::deque<onnx::NodeProto> rewritten; // nodes that are not the file's, such as of functions
  std::vector<GraphNode *> order;
  llvm::StringMap<std::vector<Use>> usesByValue;
  llvm::StringMap<const GraphNode *> producers;
  llvm::StringSet<> captured; // and what bodies make, under the names that it has there
};

/// What a message has of a field (wire.h) that is newer than the schema and holds bytes.
llvm::SmallVector<llvm::StringRef> newerField(const google::protobuf::Message &message, int number);

/// The entry `key` of a node's, value's, graph's or tensor's metadata, a field (wire.h) newer than
/// the schema. Empty where there is none.
std::string metadata(const google::protobuf::Message &message, int fieldNumber,
                     llvm::StringRef key);

/// Tells functions apart: domain, name and overload.
std::string functionKey(const onnx::FunctionProto &function);

/// Adds an entry to such metadata.
void addMetadata(google::protobuf::Message &message, int fieldNumber, llvm::StringRef key,
                 llvm::StringRef value);

/// Adds such an entry to the graph's description of an initializer.
void describeInitializer(onnx::GraphProto &graph, const TensorBytes &tensor, llvm::StringRef key,
                         llvm::StringRef value);

/// The quoted strings of a Python list such as ['a', 'b'].
std::vector<std::string> quotedStrings(llvm::StringRef text);

/// The operation of the exported program that a node comes from, such as linear_1; may be empty.
std::string programOperation(const GraphNode &node);

/// The line of Python that a node comes from, `model.py:35`; empty where the file has none.
std::string sourceLine(const GraphNode &node);

/// The module in a node's name as PyTorch's TorchScript exporter writes it: transformer.h.0.attn of
/// /transformer/h.0/attn/MatMul, empty at the root; none in other names.
std::optional<std::string> modulePath(llvm::StringRef nodeName);

/// Module path and readable kind of a node from the exporter's metadata or the node's name.
void nameNode(GraphNode &node);

std::string snakeCase(llvm::StringRef opType);

} // namespace trainc::reader
