// SPDX-License-Identifier: Apache-2.0
//
// Problem: a module may change its buffers (a moving average, a counter). The default exporter's
// signature says so, but no output of the graph is the new value: the buffer is a constant.
//
// Method: refused where the graph still reads the buffer, or the value that becomes it, and where
// operations were taken out, which may have; else a warning names it. The running statistics of
// batch norms are changed by the trainer, and their counts of batches matter to nothing.
#include "compiler/onnx/parameters/recorded_calls.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace trainc::reader {

namespace {

/// What the graph reads, and what its calls say of it.
struct BufferUses {
  explicit BufferUses(const RecordedCalls &recorded) {
    const ExportedProgram &program = recorded.program;
    for (const auto &[call, nodes] : recorded.calls) {
      calls.insert(call.name);
      references.insert(call.references.begin(), call.references.end());
      for (const std::string &reference : call.references)
        if (StringRef target = program.bufferAt(reference); !target.empty())
          (call.isBatchNorm() ? statistics : targets).insert(target);
    }
    for (const onnx::NodeProto &node : recorded.file.graph().node())
      for (const std::string &input : node.input())
        if (recorded.isInitializer(input)) {
          targets.insert(input);
          for (const std::string &source : program.sourcesOf(input))
            targets.insert(source);
        }
  }

  /// A value that is read or given out, but made by no call that is left, unless that only moved
  /// elements: what was taken out may have read any buffer.
  bool lacksCalls(const RecordedCalls &recorded) const {
    auto isLost = [&](StringRef name) {
      return recorded.isLost(name) && !isMadeBy(name, kUsesNoParameter);
    };
    return any_of(references.keys(), isLost) || any_of(recorded.program.outputs(), isLost);
  }

  llvm::StringSet<> calls, references, statistics, targets;
};

} // namespace

static std::string whatChanges(ArrayRef<std::string> buffers, size_t shown) {
  return "the module changes " + quotedList(buffers, shown) +
         (buffers.size() == 1 ? ", a buffer" : ", buffers");
}

void refuseChangedBuffers(const RecordedCalls &calls, const Recipe &recipe, Report &report) {
  const std::string &path = calls.file.path();
  std::vector<std::string> used, unused;
  const BufferUses uses(calls);
  for (const auto &[target, result] : calls.program.changedBuffers()) {
    bool isGiven =
        any_of(recipe.buffers, [&, &name = target](const auto &one) { return one.first == name; });
    if (isGiven || uses.statistics.contains(target) ||
        StringRef(target).ends_with("num_batches_tracked"))
      continue;
    bool isRead = uses.targets.contains(target) || uses.calls.contains(result) ||
                  uses.references.contains(result);
    (isRead ? used : unused).push_back(target);
  }
  const std::string them = unused.size() == 1 ? "it" : "them";
  if (!unused.empty() && uses.lacksCalls(calls))
    return (void)report.refuse(
        Finding::changedBuffers, path,
        whatChanges(unused, 3) +
            " that the graph does not have, and the exporter took operations out that may have "
            "read " +
            them,
        kWholeExport);
  if (!unused.empty())
    report.warning(Finding::changedBuffers, path,
                   whatChanges(unused, 3) +
                       " that the graph does not have: here what was computed from " + them +
                       " stays as it was at the export",
                   "a module whose results do not depend on it; else an export without this part");
  if (!used.empty())
    (void)report.refuse(
        Finding::changedBuffers, path,
        whatChanges(used, 8) + " that the graph reads, but no output of it is the new value",
        "the new value as an output of the module, and --buffer NAME=OUTPUT; or an export of "
        "the module in eval(), where it does not change it");
}

} // namespace trainc::reader
