// SPDX-License-Identifier: Apache-2.0
//
// Problem: a module may change its buffers (a moving average, a counter). The default exporter's
// signature says so, but no output of the graph is the new value: the buffer is a constant.
//
// Method: refused where the graph still reads the buffer, or the value that becomes it, and where
// operations were taken out, which may have; else a warning names it. The running statistics of
// batch norms are changed by the trainer, and their counts of batches matter to nothing.
#include "compiler/onnx/parameters/claims.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace trainc::reader {

namespace {

/// What the graph reads, and what its calls say of it.
struct BufferUses {
  BufferUses(const ModelFile &file, const ExportedProgram &program) {
    llvm::StringSet<> read;
    for (const onnx::NodeProto &node : file.graph().node()) {
      for (const std::string &input : node.input())
        read.insert(input);
      const ProgramCall *call = program.callOf(node);
      if (!call)
        continue;
      bool isNorm = call->isBatchNorm();
      calls.insert(call->name);
      references.insert(call->references.begin(), call->references.end());
      for (const std::string &reference : call->references)
        if (StringRef target = program.bufferAt(reference); !target.empty())
          (isNorm ? statistics : targets).insert(target);
    }
    for (const onnx::TensorProto &tensor : file.graph().initializer()) {
      if (!read.contains(tensor.name()))
        continue;
      targets.insert(tensor.name());
      for (const std::string &source : program.sourcesOf(tensor.name()))
        targets.insert(source);
    }
  }

  /// A value that is read or given out, but made by no call that is left, unless that only moved
  /// elements: what was taken out may have read any buffer.
  bool lacksCalls(const ModelFile &file, const ExportedProgram &program) const {
    llvm::StringSet<> values;
    for (const onnx::ValueInfoProto &input : file.graph().input())
      values.insert(input.name());
    for (const onnx::NodeProto &node : file.graph().node())
      values.insert(node.output().begin(), node.output().end());
    for (const onnx::TensorProto &tensor : file.graph().initializer()) {
      values.insert(tensor.name());
      for (const std::string &source : program.sourcesOf(tensor.name()))
        values.insert(source);
    }
    auto isLost = [&](StringRef name) {
      return !calls.contains(name) && !values.contains(name) && !program.listsInput(name) &&
             !isMadeBy(name, kUsesNoParameter);
    };
    return any_of(references, [&](const auto &name) { return isLost(name.first()); }) ||
           any_of(program.outputs(), isLost);
  }

  llvm::StringSet<> calls, references, statistics, targets;
};

} // namespace

void refuseChangedBuffers(const ModelFile &file, const ExportedProgram &program,
                          const Recipe &recipe, Report &report) {
  std::vector<std::string> used, unused;
  BufferUses uses(file, program);
  for (const auto &[target, result] : program.changedBuffers()) {
    bool isGiven =
        any_of(recipe.buffers, [&, &name = target](const auto &one) { return one.first == name; });
    if (isGiven || uses.statistics.contains(target) ||
        StringRef(target).ends_with("num_batches_tracked"))
      continue;
    bool isRead = uses.targets.contains(target) || uses.calls.contains(result) ||
                  uses.references.contains(result);
    (isRead ? used : unused).push_back(target);
  }
  if (!unused.empty() && uses.lacksCalls(file, program))
    return (void)report.refuse(
        Finding::changedBuffers, file.path(),
        "the module changes " + quotedList(unused, 3) +
            (unused.size() == 1 ? ", a buffer" : ", buffers") +
            " that the graph does not have, and the exporter took operations out that may have "
            "read " +
            (unused.size() == 1 ? "it" : "them"),
        kWholeExport);
  if (!unused.empty())
    report.warning(Finding::changedBuffers, file.path(),
                   "the module changes " + quotedList(unused, 3) +
                       (unused.size() == 1 ? ", a buffer" : ", buffers") +
                       " that the graph does not have: here what was computed from " +
                       (unused.size() == 1 ? "it" : "them") + " stays as it was at the export",
                   "a module whose results do not depend on it; else an export without this part");
  if (!used.empty())
    (void)report.refuse(
        Finding::changedBuffers, file.path(),
        "the module changes " + quotedList(used) + (used.size() == 1 ? ", a buffer" : ", buffers") +
            " that the graph reads, but no output of it is the new value",
        "the new value as an output of the module, and --buffer NAME=OUTPUT; or an export of "
        "the module in eval(), where it does not change it");
}

} // namespace trainc::reader
