// SPDX-License-Identifier: Apache-2.0
//
// What PyTorch's calls say and ONNX's operators do not: files of the default exporter keep the text
// of each call, and the node that was made of it trains as another one.
#include "compiler/onnx/parameters/claims.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace llvm;

namespace trainc::reader {

// lstm(input, states, parameters, has_biases, layers, dropout, train, bidirectional, batch_first).
// The exporter takes the matrices that project the states for other parameters.
static bool projectsStates(const ProgramCall &call) {
  int64_t layers = 0;
  if (call.operation != "aten.lstm.input" || call.argument(4).getAsInteger(10, layers))
    return false;
  const int64_t parameters = call.argument(2).count('%'),
                ofCell = call.argument(3) == "True" ? 4 : 2,
                cells = layers * (call.argument(7) == "True" ? 2 : 1);
  return parameters == cells * (ofCell + 1);
}

static std::string lostBy(const ProgramCall &call) {
  double smoothing = 0;
  // cross_entropy_loss(input, target, weight, reduction, ignore_index, label_smoothing)
  if (call.is("aten.cross_entropy_loss") && !call.argument(5).getAsDouble(smoothing) &&
      smoothing != 0)
    return "was called with label_smoothing=" + call.arguments[5];
  // scatter_reduce(input, dim, index, source, reduce, include_self)
  if (call.is("aten.scatter_reduce") && call.argument(4).contains("mean"))
    return "was called with reduce='mean'";
  // embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse)
  if (call.is("aten.embedding") && call.argument(3) == "True")
    return "was called with scale_grad_by_freq=True";
  // avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
  if ((call.is("aten.avg_pool2d") || call.is("aten.avg_pool3d")) && !call.argument(6).empty() &&
      call.argument(6) != "None")
    return "was called with divisor_override=" + call.arguments[6];
  if (projectsStates(call))
    return "was called with weights that project the states (proj_size)";
  return "";
}

static std::string adviceOn(const ProgramCall &call) {
  std::string advice = projectsStates(call)
                           ? "an LSTM without proj_size, or one written out as steps"
                           : "the option written out in the module, or left out of it";
  if (call.is("aten.cross_entropy_loss"))
    advice += "; or an export of its logits, with --loss cross_entropy,label_smoothing=" +
              call.arguments[5];
  return advice;
}

// instance_norm(input, weight, bias, mean, variance, ...): evaluation takes running statistics. The
// graph has no new values of them, if it has them at all.
static bool tracksStatistics(const ProgramCall &call) {
  return call.is("aten.instance_norm") && call.argument(3).starts_with("%");
}

static void refuseTrackedStatistics(const onnx::NodeProto &node, const Subject &subject,
                                    const Recipe &recipe, Report &report) {
  bool isEvaluated = isOnnx(node, "BatchNormalization");
  if (isEvaluated ? recipe.batchNorm != "frozen" : isOnnx(node, "InstanceNormalization"))
    (void)report.refuse(
        Finding::trackedInstanceNorm, subject,
        "the module evaluates by running statistics (track_running_stats) that no step can replace",
        std::string("a module without track_running_stats; or ") +
            (isEvaluated ? "" : "an export of the module in eval(), and ") + "--batch-norm frozen");
}

// Where the exporter's optimizer took the node of a detach() out, gradients would pass, unless what
// reads it has none, or the exporter has computed its result: an initializer has its name.
static void refuseLostDetach(const ModelFile &file, const ExportedProgram &program,
                             Report &report) {
  llvm::StringSet<> kept;
  for (const onnx::NodeProto &node : file.graph().node())
    if (isDetach(node))
      kept.insert(program.callOf(node)->name);
  for (const onnx::TensorProto &tensor : file.graph().initializer())
    kept.insert(tensor.name());
  auto isLost = [&](StringRef reference) {
    return baseName(reference) == "detach" && !kept.contains(reference);
  };
  std::vector<std::string> readers;
  for (const onnx::NodeProto &node : file.graph().node())
    if (const ProgramCall *call = program.callOf(node);
        call && any_of(call->references, isLost) && !isMadeBy(call->name, kHasNoGradient))
      readers.push_back(node.name().empty() && node.output_size() ? node.output(0) : node.name());
  if (readers.empty() && none_of(program.outputs(), isLost))
    return;
  (void)report.refuse(Finding::lostDetach, file.path(),
                      "the module calls detach()" +
                          (readers.empty() ? " for an output"
                                           : " before node '" + readers[0] + "'" +
                                                 (readers.size() > 1 ? " and others" : "")) +
                          ", which the exporter took out: gradients would pass there",
                      kWholeExport);
}

void refuseLostCalls(const ModelFile &file, const ExportedProgram &program, const Recipe &recipe,
                     Report &report) {
  for (const onnx::NodeProto &node : file.graph().node()) {
    const ProgramCall *call = program.callOf(node);
    if (!call)
      continue;
    StringRef name = node.name().empty() && node.output_size() ? StringRef(node.output(0))
                                                               : StringRef(node.name());
    Subject subject{file.path(), name.str(), node.op_type(), 0};
    if (tracksStatistics(*call))
      refuseTrackedStatistics(node, subject, recipe, report);
    bool isPart = projectsStates(*call) && !isOnnx(node, "LSTM"); // of what the call became
    if (std::string lost = lostBy(*call); !lost.empty() && !isPart)
      (void)report.refuse(Finding::lostArguments, subject,
                          lost + ", which the exporter left out of the graph", adviceOn(*call));
  }
  refuseLostDetach(file, program, report);
}

} // namespace trainc::reader
