// SPDX-License-Identifier: Apache-2.0
//
// Sizes of inputs: from the file, or from --dim for symbolic ones. A dimension that has neither
// size nor name in the file is called `input[axis]`.
#include "compiler/onnx/inputs.h"
#include "dialects/nn/tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace llvm;

namespace trainc::reader {

constexpr int64_t kOldestIr = 3, kNewestIr = 14;
constexpr int64_t kOldestOpset = 7, kNewestOpset = 22;
constexpr int64_t kLargestSize = INT32_MAX; // of one dimension; keeps every product in 64 bits

bool servesOpset(int64_t version) { return version >= kOldestOpset && version <= kNewestOpset; }

bool checkVersions(const ModelFile &file, Report &report) {
  size_t before = report.size();
  int64_t ir = file.model().ir_version();
  if (ir < kOldestIr || ir > kNewestIr)
    (void)report.error(ExitCode::unsupportedModel, file.path(),
                       "ONNX IR version " + Twine(ir) + " is not supported, only " +
                           Twine(kOldestIr) + " to " + Twine(kNewestIr));
  for (const auto &entry : file.model().opset_import()) {
    bool own = entry.domain().empty() || entry.domain() == "ai.onnx";
    if (own && !servesOpset(entry.version()))
      (void)report.error(ExitCode::unsupportedModel, file.path(),
                         "operator set " + Twine(entry.version()) + " is not supported, only " +
                             Twine(kOldestOpset) + " to " + Twine(kNewestOpset),
                         "export again with opset_version=20");
  }
  return report.size() == before;
}

namespace {

class InputResolver {
public:
  InputResolver(const ModelFile &file, const Recipe &recipe, Report &report)
      : file(file), recipe(recipe), report(report) {
    for (const auto &tensor : file.graph().initializer())
      initializers.insert(tensor.name());
  }

  std::optional<std::vector<ModelInput>> run() {
    size_t before = report.size();
    std::vector<ModelInput> inputs;
    for (const onnx::ValueInfoProto &value : file.graph().input())
      if (!initializers.count(value.name())) // older files list initializers among the inputs
        resolve(value, inputs.emplace_back());
    reportUnbound();
    reportUnknown();
    return report.size() == before ? std::optional(std::move(inputs)) : std::nullopt;
  }

private:
  LogicalResult error(const onnx::ValueInfoProto &value, const Twine &message,
                      const Twine &advice = "") {
    return report.error(ExitCode::unsupportedModel,
                        Subject::ofPart(file.path(), "input '" + value.name() + "'"), message,
                        advice);
  }

  void resolve(const onnx::ValueInfoProto &value, ModelInput &input) {
    input.name = value.name();
    if (!value.type().has_tensor_type() || !value.type().tensor_type().has_shape()) {
      (void)error(value, "is no tensor with a known rank");
      return;
    }
    const auto &type = value.type().tensor_type();
    input.dataType = type.elem_type();
    if (!is_contained({onnx::TensorProto::FLOAT, onnx::TensorProto::DOUBLE,
                       onnx::TensorProto::INT64, onnx::TensorProto::INT32, onnx::TensorProto::BOOL},
                      input.dataType))
      (void)error(value, "has elements of type " + elementName(input.dataType),
                  "one of float, double, int64, int32 and bool");
    for (const auto &dimension : type.shape().dim())
      input.shape.push_back(sizeOf(value, dimension, input.shape.size()));
    if (!nn::elementCount(input.shape))
      (void)error(value, "has more than 2^40 elements, the largest tensor");
  }

  int64_t sizeOf(const onnx::ValueInfoProto &value,
                 const onnx::TensorShapeProto::Dimension &dimension, size_t axis) {
    std::string position = value.name() + "[" + std::to_string(axis) + "]";
    bool fixed = dimension.has_dim_value() && dimension.dim_value() > 0;
    std::string name = dimension.has_dim_param() && !dimension.dim_param().empty()
                           ? dimension.dim_param()
                           : position;
    if (fixed)
      fixedSizes[position] = dimension.dim_value();
    else
      users[name].push_back(position);
    auto bound = recipe.dimensions.find(name);
    if (bound == recipe.dimensions.end())
      return fixed ? checked(name, dimension.dim_value()) : 1;
    if (fixed && bound->second != dimension.dim_value())
      (void)report.error(ExitCode::usage, Subject::ofOption("--dim"),
                         "'" + name + "' is " + Twine(dimension.dim_value()) +
                             " in the model, not " + Twine(bound->second));
    return checked(name, bound->second);
  }

  int64_t checked(const std::string &name, int64_t size) {
    if (size > 0 && size <= kLargestSize)
      return size;
    (void)report.error(ExitCode::usage, Subject::ofOption("--dim"),
                       "size " + Twine(size) + " of '" + name + "' is not between 1 and " +
                           Twine(kLargestSize));
    return 1;
  }

  void reportUnbound() {
    std::string names, advice;
    for (const auto &[name, positions] : users)
      if (!recipe.dimensions.count(name)) {
        names += (names.empty() ? "'" : ", '") + name + "' (" + join(positions, ", ") + ")";
        advice += (advice.empty() ? "--dim " : " --dim ") + name + "=SIZE";
      }
    if (!names.empty())
      (void)report.error(ExitCode::usage, file.path(), "dimensions without a size: " + names,
                         advice);
  }

  void reportUnknown() {
    std::vector<std::string> known;
    for (const auto &[name, positions] : users)
      known.push_back(name);
    for (const auto &[name, size] : recipe.dimensions)
      if (!users.count(name) && !fixedSizes.count(name))
        (void)report.error(ExitCode::usage, file.path(), "no input has a dimension '" + name + "'",
                           known.empty() ? "the command without --dim; all sizes are in the file"
                                         : "one of " + join(known, ", "));
  }

  const ModelFile &file;
  const Recipe &recipe;
  Report &report;
  std::set<std::string> initializers;
  std::map<std::string, std::vector<std::string>> users; // of symbolic dimensions
  std::map<std::string, int64_t> fixedSizes;             // by position
};

} // namespace

std::optional<std::vector<ModelInput>> resolveInputs(const ModelFile &file, const Recipe &recipe,
                                                     Report &report) {
  return InputResolver(file, recipe, report).run();
}

} // namespace trainc::reader
