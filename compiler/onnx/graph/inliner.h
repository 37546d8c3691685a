// SPDX-License-Identifier: Apache-2.0
//
// Replaces what has a body by it, with renamed values: calls of local functions, the branches of
// `If`, the iterations of `Loop` and `Scan`. What Graph::build makes its nodes of.
#pragma once

#include "compiler/onnx/graph/graph.h"
#include <functional>
#include <set>

namespace trainc::reader {

using Versions = std::map<std::string, int64_t>; // of operator sets, by domain

/// What names stand for in a graph, a function's body, a branch or an iteration.
struct Scope {
  Versions versions;
  const GraphNode *call = nullptr;               // of the function that this is in; null at the top
  const onnx::FunctionProto *function = nullptr; // that one
  std::string prefix;                            // of values inside
  std::map<std::string, std::string> renamed;    // of what is given to the body, and its outputs
  const Scope *around = nullptr;                 // of an inner graph, which sees the values there
  std::set<std::string> own;                     // of an inner graph: what it defines
  bool isIteration = false; // of a loop: room for once through loops inside is there

  bool isInIteration() const { return isIteration || (around && around->isInIteration()); }

  std::string name(const std::string &value) const;
};

class Inliner {
public:
  Inliner(Graph &graph, const ModelFile &file, const Choices &choices, Report &report);

  /// False after errors.
  bool run();
  /// Whether other nodes stand for it.
  bool isInlined(const GraphNode &node) const { return inlined.count(&node); }

private:
  const onnx::NodeProto &substituted(const onnx::NodeProto &node, const Scope &scope);
  bool add(const onnx::NodeProto &proto, const Scope &scope, int depth);
  bool fail(const GraphNode &node, ExitCode code, const llvm::Twine &message,
            const llvm::Twine &advice = "");
  std::string freePrefix(std::string name);
  int64_t roomFor(size_t size) const;
  bool enter(const GraphNode &node, size_t size, size_t times, int depth);

  bool checkCall(const GraphNode &call, const onnx::FunctionProto &function);
  bool inlineCall(const GraphNode &call, const onnx::FunctionProto &function, const Scope &outer,
                  int depth);

  Scope inside(const Scope &around, const std::string &prefix);
  bool addBody(const onnx::GraphProto &body, Scope &scope, int depth);
  bool addBranches(GraphNode &node, const Scope &scope, int depth);
  bool addBranch(const GraphNode &node, const onnx::GraphProto &branch, const char *part,
                 const Scope &around, int depth, std::vector<std::string> &results);
  void rename(const GraphNode &node, llvm::ArrayRef<std::string> results);

  // Loops (unrolled_loops.cpp).
  struct Iterations;
  bool addLoop(GraphNode &node, const Scope &scope, int depth);
  bool addScan(GraphNode &node, const Scope &scope, int depth);
  bool addBatchedScan(GraphNode &node, const Scope &scope, int depth);
  bool checkBody(const GraphNode &node, const onnx::GraphProto &body, bool fits);
  void askForSizes(GraphNode &node, const std::string &of);
  bool unroll(Iterations &loop, const Scope &scope, int depth);
  bool keepsGoing(const GraphNode &loop, const onnx::GraphProto &body, const Scope &around);
  std::string addNode(const GraphNode &of, llvm::StringRef opType, std::vector<std::string> inputs,
                      const std::string &output, std::optional<int64_t> axis = std::nullopt);
  std::string addConstant(const GraphNode &of, const onnx::TensorProto &tensor,
                          const std::string &output);
  std::string addNumber(const GraphNode &of, int64_t number, bool isScalar,
                        const std::string &output);
  std::string addStack(const GraphNode &of, std::vector<std::string> values,
                       const std::string &axes, int64_t axis, const std::string &prefix);

  Graph &graph;
  const ModelFile &file;
  const Choices &choices;
  Report &report;
  Versions imported; // by the model
  std::map<std::string, const onnx::FunctionProto *> functions;
  std::set<std::string> taken; // names of values in the file
  size_t inlinedNodes = 0;     // and those that loops inside them will have
  std::set<const GraphNode *> inlined;
};

} // namespace trainc::reader
