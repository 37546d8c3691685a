// SPDX-License-Identifier: Apache-2.0
//
// What PyTorch's calls say and ONNX's operators do not: files of the default exporter keep the text
// of each call, and the node that was made of it trains as another one.
#include "compiler/onnx/exported_program.h"
#include "compiler/onnx/graph.h"
#include "compiler/onnx/separation.h"
#include "llvm/ADT/SetVector.h"

using namespace llvm;

namespace trainc::reader {

static StringRef argumentOf(const ProgramCall &call, size_t index) {
  return index < call.arguments.size() ? StringRef(call.arguments[index]) : StringRef();
}

static std::string lostBy(const ProgramCall &call) {
  double smoothing = 0;
  // cross_entropy_loss(input, target, weight, reduction, ignore_index, label_smoothing)
  if (call.is("aten.cross_entropy_loss") && !argumentOf(call, 5).getAsDouble(smoothing) &&
      smoothing != 0)
    return "was called with label_smoothing=" + call.arguments[5];
  // embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
  if (call.is("aten.embedding") && argumentOf(call, 3) == "True")
    return "was called with scale_grad_by_freq=True";
  return "";
}

static std::string adviceOn(const ProgramCall &call) {
  std::string advice = "the option written out in the module, or left out of it";
  if (call.is("aten.cross_entropy_loss"))
    advice += "; or an export of its logits, with --loss cross_entropy,label_smoothing=" +
              call.arguments[5];
  return advice;
}

// instance_norm(input, weight, bias, mean, variance, ...): evaluation takes running statistics, of
// which the graph has no new values, if it has them at all.
static bool tracksStatistics(const ProgramCall &call) {
  return call.is("aten.instance_norm") && argumentOf(call, 3).starts_with("%");
}

static void refuseTrackedStatistics(const onnx::NodeProto &node, const Subject &subject,
                                    const Recipe &recipe, Report &report) {
  bool isEvaluated = isOnnx(node, "BatchNormalization");
  if (isEvaluated ? recipe.batchNorm != "frozen" : isOnnx(node, "InstanceNormalization"))
    (void)report.error(
        ExitCode::unsupportedModel, subject,
        "the module evaluates by running statistics (track_running_stats) that no step can replace",
        std::string("a module without track_running_stats; or ") +
            (isEvaluated ? "" : "an export of the module in eval(), and ") + "--batch-norm frozen");
}

bool refuseLostCalls(const ModelFile &file, const Recipe &recipe, Separation &separation,
                     Report &report) {
  size_t before = report.size();
  ExportedProgram program(file);
  SmallSetVector<StringRef, 4> detached;
  for (const onnx::NodeProto &node : file.graph().node()) {
    std::optional<ProgramCall> call = callOf(node);
    if (!call)
      continue;
    StringRef name = node.name().empty() && node.output_size() ? StringRef(node.output(0))
                                                               : StringRef(node.name());
    Subject subject{file.path(), name.str(), node.op_type(), 0};
    if (tracksStatistics(*call))
      refuseTrackedStatistics(node, subject, recipe, report);
    if (std::string lost = lostBy(*call); !lost.empty())
      (void)report.error(ExitCode::unsupportedModel, subject,
                         lost + ", which the exporter left out of the graph", adviceOn(*call));
    StringRef operand = argumentOf(*call, 0);
    std::string parameter = operand.consume_front("%") ? program.parameterAt(operand).str() : "";
    if (call->is("aten.detach") && !parameter.empty())
      separation.detached[parameter] = name;
    else if (call->is("aten.detach") || llvm::any_of(call->references, [](StringRef reference) {
               return baseName(reference) == "detach";
             }))
      detached.insert(name);
  }
  if (!detached.empty())
    report.warning(file.path(),
                   "the module calls detach() before node '" + detached.front() + "'" +
                       (detached.size() > 1 ? " and others" : "") +
                       ", which the graph has no operator for: gradients pass there",
                   "where that is meant to stop them: an export without this part");
  return report.size() == before;
}

} // namespace trainc::reader
