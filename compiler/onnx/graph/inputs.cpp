// SPDX-License-Identifier: Apache-2.0
//
// Sizes of inputs: from the file, or from --dim for symbolic ones, by name or by place. A dimension
// that has neither size nor name in the file is called by its place, `input[axis]`.
#include "compiler/onnx/graph/inputs.h"
#include "compiler/onnx/graph/size_expression.h"
#include "dialects/nn/onnx/onnx_types.h"
#include "dialects/nn/tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace llvm;

namespace trainc::reader {

constexpr int64_t kLargestSize = INT32_MAX; // of one dimension; keeps every product in 64 bits

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
    checkBatchAxes();
    bindPlaces();
    workOut();
    findBatch();
    for (const onnx::ValueInfoProto &value : file.graph().input())
      if (isInput(value))
        resolve(value, inputs.emplace_back());
    reportUnbound();
    reportUnknown();
    warnOfBatchAxes();
    if (report.size() == before)
      reportBatch();
    return report.size() == before ? std::optional(std::move(inputs)) : std::nullopt;
  }

private:
  LogicalResult error(const onnx::ValueInfoProto &value, const Twine &message,
                      const Twine &advice = "") {
    return report.error(ExitCode::unsupportedModel,
                        Subject::ofPart(file.path(), "input '" + value.name() + "'"), message,
                        advice);
  }

  using Dimension = onnx::TensorShapeProto::Dimension;

  static std::string placeOf(const onnx::ValueInfoProto &value, size_t axis) {
    return value.name() + "[" + std::to_string(axis) + "]";
  }

  // A question mark is what exporters write for no name: each is a dimension of its own.
  static std::string nameOf(const Dimension &dimension, const std::string &place) {
    bool hasName =
        dimension.has_dim_param() && !dimension.dim_param().empty() && dimension.dim_param() != "?";
    return hasName ? dimension.dim_param() : place;
  }

  static bool isFixed(const Dimension &dimension) {
    return dimension.has_dim_value() && dimension.dim_value() > 0;
  }

  // Sizes given by place hold wherever the file has the same name.
  void bindPlaces() {
    sizes = recipe.dimensions;
    for (const onnx::ValueInfoProto &value : file.graph().input())
      for (auto [axis, dimension] : enumerate(value.type().tensor_type().shape().dim())) {
        std::string place = placeOf(value, axis), name = nameOf(dimension, place);
        auto given = recipe.dimensions.find(place);
        if (isFixed(dimension) || name == place || given == recipe.dimensions.end())
          continue;
        auto [bound, isNew] = sizes.try_emplace(name, given->second);
        if (!isNew && bound->second != given->second)
          (void)report.error(ExitCode::usage, Subject::ofOption("--dim"),
                             "'" + name + "' is " + Twine(bound->second) + " by one --dim and " +
                                 Twine(given->second) + " by another");
      }
  }

  // What a name such as `2*batch` says, from those of the given sizes. Names with other characters
  // are names alone.
  void workOut() {
    for (const onnx::ValueInfoProto &value : file.graph().input())
      for (auto [axis, dimension] : enumerate(value.type().tensor_type().shape().dim())) {
        const std::string name = nameOf(dimension, "");
        if (isFixed(dimension) || StringRef(name).find_first_of("+-*/") == StringRef::npos)
          continue;
        auto lookup = [&](StringRef part, std::optional<int64_t> index,
                          std::string &problem) -> std::optional<int64_t> {
          auto found = sizes.find(part.str());
          if (found == sizes.end() || index)
            problem = "not given";
          return problem.empty() ? std::optional(found->second) : std::nullopt;
        };
        std::string problem;
        std::optional<int64_t> size = evaluateSize(name, lookup, problem);
        if (!size)
          continue;
        auto [bound, isNew] = sizes.try_emplace(name, *size);
        if (!isNew && bound->second != *size)
          (void)report.error(ExitCode::usage, Subject::ofOption("--dim"),
                             "'" + name + "' is " + Twine(*size) + " by the other sizes, not " +
                                 Twine(bound->second));
      }
  }

  bool isInput(const onnx::ValueInfoProto &value) const { // older files list initializers, too
    return !initializers.count(value.name());
  }

  // The size that the file has in the place of --batch: 1 where any input begins with that, else
  // the one that all begin with.
  void findBatch() {
    if (recipe.batch == 0)
      return;
    for (const onnx::ValueInfoProto &value : file.graph().input())
      if (const auto &shape = value.type().tensor_type().shape(); isInput(value)) {
        const int64_t axis = batchAxisOf(value);
        if (axis < shape.dim_size() && isFixed(shape.dim(axis)))
          firstAxes.insert(shape.dim(axis).dim_value());
      }
    if (firstAxes.count(1) || firstAxes.size() == 1)
      batchInFile = *firstAxes.begin();
  }

  void reportBatch() {
    if (recipe.batch != 0 && batchInFile == 0)
      (void)report.error(
          ExitCode::usage, Subject::ofOption("--batch"),
          firstAxes.empty()
              ? "the file fixes the first axis of no input"
              : "the file fixes the first axes of its inputs at sizes that differ, none of them 1",
          firstAxes.empty() ? "--dim batch=8, by the name in the file"
                            : "an export with a symbolic first axis");
  }

  void resolve(const onnx::ValueInfoProto &value, ModelInput &input) {
    input.name = value.name();
    if (!value.type().has_tensor_type() || !value.type().tensor_type().has_shape()) {
      (void)error(value, "is not a tensor with a known rank");
      return;
    }
    const auto &type = value.type().tensor_type();
    input.dataType = type.elem_type();
    if (!nn::findOnnxType(input.dataType))
      (void)error(value, "has elements of type " + elementName(input.dataType),
                  "one of float, double, bool and the integers");
    for (const auto &dimension : type.shape().dim())
      input.shape.push_back(sizeOf(value, dimension, input.shape.size()));
    input.batchAxis = batchAxisOf(value);
    if (input.batchAxis > 0 && input.batchAxis >= type.shape().dim_size()) {
      refuseAxis(value);
      input.batchAxis = 0;
    }
    const auto axis = static_cast<int>(input.batchAxis);
    if (batchInFile && type.shape().dim_size() && isFixed(type.shape().dim(axis)) &&
        input.shape[axis] == batchInFile) {
      input.batchInFile = batchInFile;
      if (recipe.batch > kLargestSize)
        (void)report.error(ExitCode::usage, Subject::ofOption("--batch"),
                           Twine(recipe.batch) + " is above the largest size, " +
                               Twine(kLargestSize));
      input.shape[axis] = std::min(recipe.batch, kLargestSize);
    }
    if (!nn::elementCount(input.shape))
      (void)error(value, "has more than 2^40 elements, the largest tensor");
  }

  int64_t batchAxisOf(const onnx::ValueInfoProto &value) const {
    auto given = recipe.batchAxes.find(value.name());
    return given == recipe.batchAxes.end() ? 0 : given->second;
  }

  void refuseAxis(const onnx::ValueInfoProto &value) {
    (void)report.error(ExitCode::usage, Subject::ofOption("--batch-axis"),
                       "'" + value.name() + "' has " +
                           Twine(value.type().tensor_type().shape().dim_size()) +
                           " axes, no axis " + Twine(batchAxisOf(value)),
                       "an axis from 0");
  }

  // Names of inputs and outputs, and axes of outputs that the file tells.
  void checkBatchAxes() {
    llvm::StringSet<> known;
    for (const auto &input : file.graph().input())
      if (isInput(input))
        known.insert(input.name());
    for (const auto &output : file.graph().output()) {
      known.insert(output.name());
      const auto &type = output.type().tensor_type();
      if (batchAxisOf(output) > 0 && type.has_shape() &&
          batchAxisOf(output) >= type.shape().dim_size())
        refuseAxis(output);
    }
    for (const auto &[name, axis] : recipe.batchAxes)
      if (!known.contains(name))
        (void)report.error(
            ExitCode::usage, Subject::ofOption("--batch-axis"),
            "no input or output is called '" + name + "'",
            "one of " +
                join(llvm::map_range(known.keys(), [](StringRef one) { return one.str(); }), ", "));
  }

  // The file calls another axis than the first the batch.
  void warnOfBatchAxes() {
    std::vector<std::string> places, advice;
    auto look = [&](const onnx::ValueInfoProto &value) {
      const auto &shape = value.type().tensor_type().shape();
      for (int axis = 1; axis < shape.dim_size(); ++axis)
        if (StringRef(shape.dim(axis).dim_param()).contains_insensitive("batch") &&
            !StringRef(shape.dim(0).dim_param()).contains_insensitive("batch") &&
            !recipe.batchAxes.count(value.name())) {
          places.push_back(placeOf(value, axis));
          advice.push_back("--batch-axis " + forShell(value.name() + "=" + std::to_string(axis)));
        }
    };
    for (const auto &input : file.graph().input())
      if (isInput(input))
        look(input);
    for (const auto &output : file.graph().output())
      look(output);
    if (!places.empty())
      report.warning(Finding::batchAxis, file.path(),
                     "the file calls an axis the batch that is not the first: " +
                         quotedList(places) + "; here the first axis counts samples",
                     join(advice, " ") + "; or --accept batch-axis where that is right");
  }

  int64_t sizeOf(const onnx::ValueInfoProto &value, const Dimension &dimension, size_t axis) {
    std::string place = placeOf(value, axis), name = nameOf(dimension, place);
    bool fixed = isFixed(dimension);
    places.insert(place);
    if (fixed)
      name = place;
    else
      users[name].push_back(place);
    auto bound = sizes.find(name);
    if (fixed && dimension.dim_value() > kLargestSize)
      (void)error(value, "has an axis of " + Twine(dimension.dim_value()) +
                             ", above the largest, " + Twine(kLargestSize));
    if (bound == sizes.end())
      return fixed ? std::min(dimension.dim_value(), kLargestSize) : 1;
    if (fixed && bound->second != dimension.dim_value())
      (void)report.error(ExitCode::usage, Subject::ofOption("--dim"),
                         "'" + name + "' is " + Twine(dimension.dim_value()) +
                             " in the model, not " + Twine(bound->second));
    const bool countsSamples = batchAxisOf(value) == static_cast<int64_t>(axis);
    return checked(name, bound->second, /*least=*/countsSamples ? 1 : 0);
  }

  int64_t checked(const std::string &name, int64_t size, int64_t least) {
    if (size >= least && size <= kLargestSize)
      return size;
    (void)report.error(ExitCode::usage, Subject::ofOption("--dim"),
                       "size " + Twine(size) + " of '" + name + "' is not between " + Twine(least) +
                           " and " + Twine(kLargestSize),
                       least == 0 ? "" : "--dim " + forShell(name + "=8"));
    return 1;
  }

  void reportUnbound() {
    std::string names, advice;
    for (const auto &[name, positions] : users)
      if (!sizes.count(name)) {
        names += (names.empty() ? "'" : ", '") + name + "' (" + join(positions, ", ") + ")";
        advice += (advice.empty() ? "--dim " : " --dim ") + forShell(name + "=SIZE");
      }
    bool isMistyped =
        any_of(recipe.dimensions, [&](const auto &given) { return !isKnown(given.first); });
    if (!names.empty() && !isMistyped) // reportUnknown names those that there are
      (void)report.error(ExitCode::usage, file.path(), "dimensions without a size: " + names,
                         advice);
  }

  bool isKnown(const std::string &name) const { return users.count(name) || places.count(name); }

  void reportUnknown() {
    std::vector<std::string> known;
    for (const auto &[name, positions] : users)
      known.push_back(name);
    for (const auto &[name, size] : recipe.dimensions)
      if (!isKnown(name))
        (void)report.error(ExitCode::usage, file.path(), "no input has a dimension '" + name + "'",
                           known.empty() ? "the command without --dim; all sizes are in the file"
                                         : "one of " + join(known, ", "));
  }

  const ModelFile &file;
  const Recipe &recipe;
  Report &report;
  std::set<std::string> initializers;
  std::set<int64_t> firstAxes;                           // of inputs, that the file fixes
  int64_t batchInFile = 0;                               // what --batch replaces; 0: nothing
  std::map<std::string, int64_t> sizes;                  // of dimensions, by name
  std::map<std::string, std::vector<std::string>> users; // of symbolic dimensions
  std::set<std::string> places;                          // of all dimensions
};

} // namespace

std::optional<std::vector<ModelInput>> resolveInputs(const ModelFile &file, const Recipe &recipe,
                                                     Report &report) {
  return InputResolver(file, recipe, report).run();
}

} // namespace trainc::reader
