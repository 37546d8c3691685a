// SPDX-License-Identifier: Apache-2.0
//
// Problem: the optimizer of PyTorch's default exporter keeps one of all small initializers with
// equal values. The running statistics of a fresh batch norm are zeros and ones, as its bias and
// scale are: one initializer then stands for both, of all norms.
//
// Method: the call that a BatchNormalization was made from names its buffers. Files without calls
// share a statistic only where the module does. A norm that is called twice has copies of its
// statistics where its second call reads those that the first one made: they are the same buffers.
#include "compiler/onnx/graph/graph.h"
#include "compiler/onnx/provenance/separation.h"
#include "dialects/nn/onnx/onnx_node.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace trainc::reader {

static StringRef bufferMeant(const ExportedProgram &program, const onnx::NodeProto &node,
                             int index) {
  const ProgramCall *call = program.callOf(node);
  if (!call || !call->isBatchNorm() || index >= static_cast<int>(call->arguments.size()))
    return "";
  StringRef text = call->arguments[index];
  return text.consume_front("%") ? program.bufferAt(text) : "";
}

static bool isStatistic(const onnx::NodeProto &node, int index) {
  return nn::onnxWeight(node.domain(), node.op_type(), index, {}) == nn::OnnxWeight::statistic;
}

// Takes the copies out that nothing else reads.
static void readOriginals(ModelFile &file, const StringMap<int> &initializers) {
  auto &nodes = *file.editableGraph().mutable_node();
  StringMap<std::string> originals; // initializers, by copy
  llvm::StringSet<> read;
  for (const auto &output : file.graph().output())
    read.insert(output.name());
  for (onnx::NodeProto &node : nodes) {
    // of a copy, too, that an earlier call has made
    bool isCopy = isOnnx(node, "Identity") && node.input_size() == 1 && node.output_size() == 1;
    for (int index = 0; index < node.input_size(); ++index) {
      auto copy = originals.find(node.input(index));
      if (copy != originals.end() && (isCopy || isStatistic(node, index)))
        node.set_input(index, copy->second);
      read.insert(node.input(index));
    }
    if (isCopy && initializers.count(node.input(0)))
      originals[node.output(0)] = node.input(0);
  }
  for (int i = nodes.size() - 1; i >= 0; --i)
    if (nodes[i].output_size() == 1 && originals.count(nodes[i].output(0)) &&
        !read.contains(nodes[i].output(0)))
      nodes.DeleteSubrange(i, 1);
}

void separateBuffers(ModelFile &file, Separation &separation) {
  ExportedProgram &program = separation.program;
  if (!program.isRecorded())
    return;
  StringMap<int> initializers;
  for (int i = 0; i < file.graph().initializer_size(); ++i)
    initializers[file.graph().initializer(i).name()] = i;
  readOriginals(file, initializers);
  for (onnx::NodeProto &node : *file.editableGraph().mutable_node())
    for (int index = 0; index < node.input_size(); ++index) {
      if (!isStatistic(node, index))
        continue;
      std::string from = node.input(index), meant = bufferMeant(program, node, index).str();
      auto source = initializers.find(from);
      if (meant.empty() || meant == from || source == initializers.end())
        continue;
      if (!initializers.count(meant)) {
        auto copy = sharedCopy(file.initializer(source->second), meant);
        initializers[meant] = file.graph().initializer_size();
        separation.origin[meant] = apartFrom(from);
        program.addKind(meant, "BUFFER");
        file.addInitializer(std::move(copy));
      }
      node.set_input(index, meant);
    }
}

} // namespace trainc::reader
