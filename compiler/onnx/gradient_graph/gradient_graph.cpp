// SPDX-License-Identifier: Apache-2.0
//
// The file around the graph: inputs with their initial values, operator set, and what has no
// operator.
#include "compiler/onnx/gradient_graph/gradient_graph.h"
#include "compiler/onnx/gradient_graph/operators.h"
#include "compiler/onnx/gradient_graph/standard_form.h"
#include "compiler/onnx/gradient_graph/step_function.h"
#include "compiler/onnx/import/evaluate.h"
#include "dialects/train/train.h"
#include <map>

using namespace llvm;
using namespace mlir;

namespace trainc {

constexpr int64_t kGraphIrVersion = 9;                          // the first with the operator set
constexpr int64_t kMostValues = (int64_t(1) << 31) - (1 << 27); // bytes: protobuf ends at 2 GiB

/// The report tells nodes of one operation together.
static LogicalResult refuseOperations(func::FuncOp function, StringRef modelPath, Report &report) {
  bool good = true;
  for (Operation &op : function.front().without_terminator()) {
    if (isOperator(&op))
      continue;
    good = false;
    Subject subject(modelPath.str(), nodeName(op.getLoc()).title(),
                    op.getName().getStringRef().str(), 0);
    (void)report.error(ExitCode::unsupportedModel, subject,
                       "has no form in standard ONNX operators",
                       "the command without --write-gradient-graph; docs/gradient_graph.md lists "
                       "what has none");
  }
  return success(good);
}

/// Initial values of parameters and buffers, where the file can hold them, and numbers.
static void addInitialValues(GraphWriter &writer, StepFunction &step, const Model &model) {
  std::map<StringRef, const Parameter *> parameters;
  for (const Parameter &parameter : model.parameters)
    parameters[parameter.name] = &parameter;
  int64_t bytes = 0;
  for (auto [argument, input] : zip_equal(step.function.getArguments(), step.inputs))
    bytes += parameters.count(input.name) ? bytesOf(argument.getType()) : 0;
  for (auto [argument, input] : zip_equal(step.function.getArguments(), step.inputs)) {
    RankedTensorType type = nn::tensorType(argument);
    auto parameter = parameters.find(input.name);
    if (input.number) {
      writer.initializer(input.name, nn::Tensor::ofReals(type, *input.number));
    } else if (parameter != parameters.end() && bytes < kMostValues) {
      nn::Tensor own = initialValue(*parameter->second, type);
      writer.initializer(input.name,
                         own.type() == type ? own : nn::Tensor::ofReals(type, own.reals()));
    }
  }
}

static onnx::ModelProto modelOf(StepFunction &step, const Model &model) {
  onnx::ModelProto proto;
  proto.set_ir_version(kGraphIrVersion);
  proto.set_producer_name("trainc");
  onnx::OperatorSetIdProto &operators = *proto.add_opset_import();
  operators.set_domain("");
  operators.set_version(kGradientGraphOpset);
  onnx::GraphProto &graph = *proto.mutable_graph();
  graph.set_name("step of " + model.name);
  std::vector<std::string> inputs;
  for (auto [argument, input] : zip_equal(step.function.getArguments(), step.inputs)) {
    inputs.push_back(input.name);
    describe(*graph.add_input(), input.name, nn::tensorType(argument));
  }
  GraphWriter writer(graph, step.function, inputs, step.outputs);
  addInitialValues(writer, step, model);
  for (Operation &op : step.function.front().without_terminator())
    writeOperator(writer, &op);
  writer.finish(step.function, step.outputs);
  return proto;
}

FailureOr<std::string> gradientGraphOf(ModuleOp module, const Model &model, StringRef modelPath,
                                       Report &report) {
  StepFunction step = joinStep(module);
  bringToStandardForm(step.function);
  if (failed(refuseOperations(step.function, modelPath, report)))
    return failure();
  std::string bytes;
  if (!modelOf(step, model).SerializeToString(&bytes))
    return report.error(ExitCode::unsupportedModel, Subject::ofOption("--write-gradient-graph"),
                        "the graph's constants exceed protobuf's 2 GiB", "the command without it");
  return bytes;
}

} // namespace trainc
