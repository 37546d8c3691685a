// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/parameters/recorded_calls.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace trainc::reader {

RecordedCalls::RecordedCalls(ModelFile &file, const ExportedProgram &program)
    : file(file), program(program) {
  for (const onnx::TensorProto &tensor : file.graph().initializer()) {
    const std::string &name = tensor.name();
    std::vector<std::string> &from = origins[name];
    if (program.kindOf(name) == "PARAMETER")
      from.push_back(name);
    for (const std::string &source : program.sourcesOf(name)) {
      values.insert(source);
      if (program.isParameter(source))
        from.push_back(source);
    }
    held.insert(from.begin(), from.end());
    values.insert(name);
  }
  for (const auto &input : file.graph().input())
    values.insert(input.name());
  for (onnx::NodeProto &node : *file.editableGraph().mutable_node())
    collect(node);
}

void RecordedCalls::collect(onnx::NodeProto &node) {
  values.insert(node.output().begin(), node.output().end());
  definesTwice |= any_of(node.output(), [&](auto &one) { return isInitializer(one); });
  if (isOnnx(node, "Identity") && node.input_size() == 1 && node.output_size() == 1)
    if (std::string from = copiedFrom(node.input(0)); isInitializer(from))
      copies[node.output(0)] = from;
  const ProgramCall *call = program.callOf(node);
  if (!call) {
    callless.push_back(&node);
    for (const std::string &output : node.output())
      if (node.input_size())
        passedOn[output] = node.input(0);
    return;
  }
  values.insert(call->name);
  std::optional<std::string> module = moduleOf(node);
  for (const std::string &parameter : program.parametersOf(*call)) {
    mentioned.insert(parameter);
    if (module)
      usedIn[*module].push_back(parameter);
  }
  for (const std::string &reference : call->references)
    if (StringRef buffer = program.bufferAt(reference); !buffer.empty())
      mentioned.insert(buffer.str());
  auto [number, isNew] = callNumbers.try_emplace(call->name, calls.size());
  if (isNew)
    calls.push_back({*call, {}});
  calls[number->second].nodes.push_back(&node);
}

std::vector<RecordedCalls::Read> RecordedCalls::usesIn(const Made &made) const {
  std::vector<Read> uses;
  for (onnx::NodeProto *node : made.nodes)
    for (int i = 0; i < node->input_size(); ++i)
      if (isInitializer(node->input(i)) && holdsFloats(node->input(i)))
        uses.push_back({node, i});
  return uses;
}

std::string RecordedCalls::copiedFrom(const std::string &value) const {
  auto copy = copies.find(value);
  return copy == copies.end() ? value : copy->second;
}

} // namespace trainc::reader
