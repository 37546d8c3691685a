// SPDX-License-Identifier: Apache-2.0
//
// Arguments of @model from names, then the interpreter, then names for what it computed.
#include "compiler/onnx/import/evaluate.h"
#include "compiler/onnx/parameters/quantized_weights.h"
#include "dialects/names/node_name.h"
#include "dialects/nn/interpreter.h"
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/onnx/onnx_types.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace mlir;

namespace trainc {

constexpr const char *kOtherData = "other data; indexes follow from the model's inputs";
constexpr int64_t kLargestEvaluated = int64_t(1)
                                      << 34; // elements, and multiplications of a product

nn::Tensor tensorOfBytes(MLIRContext &context, const reader::TensorBytes &bytes, bool copy) {
  Type element = nn::onnxElementType(&context, bytes.dataType);
  if (!element)
    return {};
  auto type = RankedTensorType::get(bytes.shape, element);
  bool isBool = element.isInteger(1); // any nonzero byte is true
  if (!copy && !isBool)
    return nn::Tensor::viewOf(type, bytes.bytes);
  nn::Tensor result(type);
  llvm::transform(bytes.bytes, result.data(),
                  [&](char byte) { return isBool ? static_cast<char>(byte != 0) : byte; });
  return result;
}

nn::Tensor initialValue(const Parameter &parameter, RankedTensorType type) {
  MLIRContext *context = type.getContext();
  type =
      type.clone(parameter.isDouble ? Type(Float64Type::get(context)) : Float32Type::get(context));
  if (!parameter.quantized)
    return nn::Tensor::viewOf(type, parameter.bytes);
  const std::vector<float> floats = parameter.quantized->values();
  return nn::Tensor::ofReals(type, std::vector<double>(floats.begin(), floats.end()));
}

namespace {

std::string textOf(Type type) {
  std::string text;
  raw_string_ostream(text) << type;
  return text;
}

class ModelRun {
public:
  ModelRun(Model &model, Report &report) : model(model), report(report) {
    function = model.module->lookupSymbol<func::FuncOp>("model");
  }

  bool setArguments(const NamedTensors &inputs, const NamedTensors &parameters) {
    size_t before = report.size();
    std::map<std::string, const Parameter *> initial;
    for (const Parameter &parameter : model.parameters)
      initial[parameter.name] = &parameter;
    std::set<std::string> inputNames;
    for (BlockArgument argument : function.getArguments()) {
      std::string name = train::nameOf(function, argument.getArgNumber()).str();
      auto parameter = initial.find(name);
      if (parameter == initial.end()) {
        inputNames.insert(name);
        setInput(argument, name, inputs);
      } else if (auto given = parameters.find(name); given != parameters.end()) {
        set(argument, "parameter '" + name + "'", given->second);
      } else {
        set(argument, "parameter '" + name + "'",
            initialValue(*parameter->second, nn::tensorType(argument)));
      }
    }
    reportUnknown(inputs, inputNames, "input");
    auto names = llvm::make_first_range(initial);
    reportUnknown(parameters, {names.begin(), names.end()}, "parameter");
    return report.size() == before;
  }

  bool run(bool all) {
    auto results = function.front().getTerminator()->getOperands();
    llvm::DenseSet<Value> wanted(results.begin(), results.end());
    for (const NamedValue &value : model.values)
      if (all && value.tensor)
        wanted.insert(value.tensor);
    size_t before = report.size();
    nn::Interpreter interpreter(kLargestEvaluated);
    ScopedDiagnosticHandler handler(function.getContext(), [&](Diagnostic &diagnostic) {
      bool tooLarge = interpreter.stoppedAtLimit(); // else values are what they may not be
      (void)report.error(tooLarge ? ExitCode::unsupportedModel : ExitCode::badData,
                         {model.file->path(), nodeName(diagnostic.getLocation()).node, "", 0},
                         diagnostic.str(), tooLarge ? "a smaller --dim" : kOtherData);
    });
    auto keep = [&](Value value) { return wanted.contains(value); };
    return succeeded(interpreter.run(function.front(), values, keep)) && checkIndexes() &&
           report.size() == before;
  }

  std::vector<EvaluatedTensor> results(bool all) {
    std::vector<EvaluatedTensor> evaluated;
    std::set<std::string> outputs;
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (train::resultRoleAs<train::OutputAttr>(function, i))
        outputs.insert(train::resultNameOf(function, i).str());
    if (all) {
      for (const NamedValue &value : model.values)
        evaluated.push_back({value.name,
                             value.tensor ? values.lookup(value.tensor) : value.constant,
                             outputs.count(value.name) > 0, planNameOf(value.tensor)});
      return evaluated;
    }
    for (auto [index, result] : enumerate(function.front().getTerminator()->getOperands()))
      if (train::resultRoleAs<train::OutputAttr>(function, index))
        evaluated.push_back({train::resultNameOf(function, index).str(), values.lookup(result)});
    return evaluated;
  }

private:
  static std::string planNameOf(Value value) {
    return value && value.getDefiningOp() ? nodeName(resultLocation(value)).value() : "";
  }

  /// An error where the model computed an index that is out of range.
  bool checkIndexes() {
    for (auto [i, result] : enumerate(function.front().getTerminator()->getOperands()))
      if (auto check = train::resultRoleAs<train::IndexCheckAttr>(function, i)) {
        nn::Tensor value = values.lookup(result);
        auto number = static_cast<size_t>(value.real(0));
        if (number == 0)
          continue;
        auto index = cast<train::CheckedIndexAttr>(check.getChecks()[number - 1]);
        return succeeded(report.error(
            ExitCode::badData, {model.file->path(), index.getNode().str(), "", 0},
            "the model computes the index " + Twine(static_cast<int64_t>(value.real(1))) +
                ", which is outside [" + Twine(index.getLow()) + ", " + Twine(index.getEnd()) + ")",
            kOtherData));
      }
    return true;
  }

  void setInput(BlockArgument argument, const std::string &name, const NamedTensors &inputs) {
    if (auto given = inputs.find(name); given != inputs.end())
      set(argument, "input '" + name + "'", given->second);
    else
      (void)report.error(ExitCode::usage, model.file->path(),
                         "input '" + name + "', " + textOf(argument.getType()) + ", has no value",
                         "--input " + name + "=FILE.npy");
  }

  void set(BlockArgument argument, const Twine &what, const nn::Tensor &value) {
    auto type = cast<RankedTensorType>(argument.getType());
    bool widens = isa<FloatType>(type.getElementType()) &&
                  isa<FloatType>(value.type().getElementType()) &&
                  bytesOf(type) > bytesOf(value.type());
    if (value.shape() != type.getShape() ||
        (value.type().getElementType() != type.getElementType() && !widens))
      (void)report.error(ExitCode::usage, model.file->path(),
                         what + " is " + textOf(type) + ", found " + textOf(value.type()));
    else
      values[argument] = widens ? nn::Tensor::ofReals(type, value.reals()) : value;
  }

  void reportUnknown(const NamedTensors &given, const std::set<std::string> &known,
                     StringRef kind) {
    for (const auto &[name, value] : given)
      if (!known.count(name))
        (void)report.error(ExitCode::usage, model.file->path(),
                           "the model has no " + kind + " '" + name + "'",
                           known.empty() ? "none; it has none" : "one of " + join(known, ", "));
  }

  Model &model;
  Report &report;
  func::FuncOp function;
  nn::TensorValues values;
};

} // namespace

FailureOr<std::vector<EvaluatedTensor>> evaluateModel(Model &model, const NamedTensors &inputs,
                                                      const NamedTensors &parameters, bool all,
                                                      Report &report) {
  ModelRun modelRun(model, report);
  if (!modelRun.setArguments(inputs, parameters) || !modelRun.run(all))
    return failure();
  return modelRun.results(all);
}

} // namespace trainc
