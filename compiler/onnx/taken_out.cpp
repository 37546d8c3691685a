// SPDX-License-Identifier: Apache-2.0
//
// Method: what read the value of an operation that is gone still names it, and reads another one;
// the signature names those that the results were. A value that was moved behind it (a view) hides
// the calculation. Only numbers without axes can have been in one: those that are parameters, or
// elements of one that is in the file by other elements.
//
// Weakness: a number computed from a whole parameter of which the file has no other number is not
// looked for: else each model with x * 1.0 in its code would be refused.
#include "compiler/onnx/taken_out.h"
#include "compiler/onnx/graph.h"
#include "compiler/onnx/parameters.h"
#include "compiler/onnx/parametric_calls.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <cmath>
#include <map>

using namespace llvm;

namespace trainc::reader {

using onnx::NodeProto;

namespace {

class Finder {
public:
  Finder(const ModelFile &file, const ExportedProgram &program,
         llvm::function_ref<bool(const std::string &)> isLost)
      : file(file), program(program), isLost(isLost) {
    for (const auto &tensor : file.graph().initializer()) {
      initializers.insert(tensor.name());
      if (isFloat(tensor.data_type()) && tensor.dims_size() > 0)
        tables.insert(tensor.name());
    }
    const onnx::GraphProto &graph = file.graph();
    for (const auto *values : {&graph.value_info(), &graph.input(), &graph.output()})
      for (const onnx::ValueInfoProto &value : *values)
        types[value.name()] = &value.type().tensor_type();
    for (const NodeProto &node : graph.node()) {
      std::optional<ProgramCall> call = callOf(node);
      for (const std::string &output : node.output())
        makers[output] = call ? call->name : "";
      if (!call)
        continue;
      calls.insert(call->name);
      for (const std::string &parameter : program.parametersOf(*call))
        markUsed(parameter);
      if (std::optional<std::string> module = moduleOf(node))
        markUsed(*module + ".");
    }
    for (const onnx::ValueInfoProto &output : graph.output())
      results.insert(output.name());
  }

  TakenOut run() {
    for (const NodeProto &node : file.graph().node())
      if (std::optional<ProgramCall> call = callOf(node))
        look(node, *call);
    lookAtResults();
    if (found.calculates || found.moves)
      findNumbers();
    findUnusedLayers();
    return std::move(found);
  }

private:
  // A module is used where it, or one inside, is called or has a parameter that a call names.
  void markUsed(StringRef parameter) {
    for (StringRef module = parameter; !module.empty();) {
      module = module.contains('.') ? module.rsplit('.').first : "";
      used.insert(module);
    }
  }

  // A module of which no call is there; if it has one parameter, the call may have been a product
  // with that. In a module that is called, anything may be gone.
  void findUnusedLayers() {
    std::map<StringRef, std::vector<std::string>> modules;
    for (const std::string &parameter : program.parameters())
      modules[moduleOfParameter(parameter)].push_back(parameter);
    for (const auto &[module, parameters] : modules)
      for (const std::string &parameter : parameters) {
        bool isUnusedLayer = isLayers(parameter) && !used.contains(module);
        if (isUnusedLayer || isTable(parameter) || isSecondName(parameter))
          found.unused.insert(parameter);
        if (isUnusedLayer && parameters.size() == 1)
          found.single.insert(parameter);
      }
  }

  // By its name, what has axes.
  static bool isTable(StringRef parameter) {
    StringRef attribute = attributeOf(parameter);
    StringRef word = attribute.substr(attribute.rfind('_') + 1);
    return llvm::StringSwitch<bool>(word)
        .Cases("token", "tokens", "embed", "embeds", "embedding", "embeddings", true)
        .Default(false);
  }

  // As a head's bias is that of the layer in it (predictions.bias, predictions.decoder.bias).
  bool isSecondName(StringRef parameter) const {
    StringRef module = moduleOfParameter(parameter), attribute = attributeOf(parameter);
    return isLayers(parameter) && count_if(program.parameters(), [&](StringRef other) {
                                    StringRef parent = moduleOfParameter(moduleOfParameter(other));
                                    return attributeOf(other) == attribute && parent == module &&
                                           moduleOfParameter(other) != module;
                                  }) == 1;
  }

  bool mayBeFloat(const std::string &value) const {
    auto type = types.find(value);
    return type == types.end() || type->second->elem_type() == 0 ||
           isFloat(type->second->elem_type());
  }

  bool isNamed(const ProgramCall &call, const std::string &value) const {
    auto maker = makers.find(value);
    return is_contained(call.references, value) ||
           (maker != makers.end() && is_contained(call.references, maker->second));
  }

  // What a node reads that may stand for a value which is gone: no value that its call names, if
  // there is another one, be it an initializer (a mask that the exporter computed).
  std::vector<std::string> standsIn(const NodeProto &node, const ProgramCall &call) const {
    std::vector<std::string> named, others;
    bool readsTable = false;
    for (const std::string &input : node.input()) {
      auto maker = makers.find(input);
      bool isOwn = maker != makers.end() && maker->second == call.name;
      if (input.empty() || isOwn || !mayBeFloat(input))
        continue;
      if (tables.contains(input))
        readsTable |= !isNamed(call, input) && !is_contained(program.parametersOf(call), input);
      else if (!initializers.contains(input))
        (isNamed(call, input) ? named : others).push_back(input);
    }
    return others.empty() && !readsTable ? named : others;
  }

  // The model's result keeps its name, whatever is left to make it. A call with several results
  // has none of its own for them.
  bool isTakenOut(const std::string &result) const {
    auto maker = makers.find(result);
    StringRef base = baseName(result);
    return maker != makers.end() && !maker->second.empty() && maker->second != result &&
           !calls.contains(result) && results.contains(result) && base != "getitem" &&
           base != "val";
  }

  void look(const NodeProto &node, const ProgramCall &call) {
    for (const std::string &reference : call.references)
      if ((isLost(reference) && !isNumber(baseName(reference))) || isTakenOut(reference))
        for (const std::string &value : standsIn(node, call))
          lose(baseName(reference), value, /*isResult=*/false);
  }

  void lookAtResults() {
    const auto &outputs = file.graph().output();
    bool areKnown = static_cast<size_t>(outputs.size()) == program.outputs().size();
    for (int i = 0; areKnown && i < outputs.size(); ++i)
      if (const std::string &result = program.outputs()[i];
          (isLost(result) || isTakenOut(result)) && mayBeFloat(outputs[i].name()) &&
          baseName(result) != "getitem")
        lose(baseName(result), outputs[i].name(), /*isResult=*/true);
  }

  // `stand`: what is read in the place of a value of an operation that is gone.
  void lose(StringRef operation, const std::string &stand, bool isResult) {
    auto maker = makers.find(stand);
    bool isMade = maker != makers.end();
    if (isMade && maker->second.empty() && !isArithmetic(operation))
      return; // by a node without a call, which may be that operation: a split
    // One of two equal operations is gone as well, which takes no number with it; if that is a
    // product, say, the one that is left may also be what it read.
    bool isMerged = isMade && !isResult && baseName(maker->second) == operation;
    if (isMerged && !isArithmetic(operation))
      return;
    bool calculates = !hasNoParameters(operation) && !isMerged;
    found.calculates |= calculates;
    found.moves |= !calculates;
    isArithmeticGone |= calculates && isArithmetic(operation);
  }

  static bool isArithmetic(StringRef operation) {
    return operation == "mul" || operation == "div" || operation == "add" || operation == "sub";
  }

  void findNumbers() {
    for (int i = 0; i < file.graph().initializer_size(); ++i) {
      const onnx::TensorProto &tensor = file.graph().initializer(i);
      if (!isFloat(tensor.data_type()))
        continue;
      if (tensor.dims_size() != 0) {
        findElements(tensor, file.initializer(i));
        continue;
      }
      const TensorBytes &number = file.initializer(i);
      if (program.kindOf(tensor) == "PARAMETER" && (found.calculates || changesNothing(number)))
        found.numbers.insert(tensor.name());
      for (const std::string &source : program.sourcesOf(tensor))
        if (program.isParameter(source) && (found.calculates || mayBeWritten(number)))
          found.numbers.insert(source);
    }
    for (const NodeProto &node : file.graph().node())
      if (std::optional<ProgramCall> call = callOf(node))
        findComputed(node, *call);
  }

  // An element of a vector or a small matrix that calculations use otherwise. Layers and norms do
  // not take numbers out of their own parameters; what calls them `weight` may be a norm. A module
  // may, of one that starts as ones or zeros: the file is then the same as with a number of the
  // code (x * 1.0), which is likelier.
  void findElements(const onnx::TensorProto &tensor, const TensorBytes &values) {
    constexpr int64_t kLargestMatrix = 64; // elements
    bool isMatrix = values.shape.size() == 2 && values.shape[0] > 1 && values.shape[1] > 1 &&
                    values.count <= kLargestMatrix;
    if (!isArithmeticGone || (values.shape.size() != 1 && !isMatrix))
      return;
    if (program.isParameter(tensor.name()) && isLayers(tensor.name())) {
      if (!isMatrix && anyOf(values, [](const TensorBytes &number) {
            return firstNumber(number) == std::trunc(firstNumber(number));
          }))
        found.elements.insert(tensor.name());
    } else if (program.kindOf(tensor) == "PARAMETER" && anyOf(values, changesNothing))
      found.numbers.insert(tensor.name());
    std::vector<std::string> sources = program.sourcesOf(tensor);
    if (isChoice(baseName(tensor.name()))) // of the others, nothing is in the file
      for (const std::string &source : sources)
        if (program.isParameter(source) && !isLayers(source))
          found.numbers.insert(source);
  }

  static bool isLayers(StringRef parameter) {
    StringRef attribute = attributeOf(parameter);
    attribute.consume_front("in_proj_");
    return attribute == "weight" || attribute == "bias";
  }

  static bool anyOf(TensorBytes values, llvm::function_ref<bool(const TensorBytes &)> holds) {
    const int64_t width = elementBytes(values.dataType);
    for (; values.count > 0; --values.count, values.bytes = values.bytes.drop_front(width))
      if (holds(values))
        return true;
    return false;
  }

  // A number that a node computes from parameters alone: another one may have been folded.
  void findComputed(const NodeProto &node, const ProgramCall &call) {
    bool isNumber = any_of(node.output(), [&](const std::string &output) {
      auto type = types.find(output);
      return type != types.end() && type->second->has_shape() &&
             isFloat(type->second->elem_type()) && type->second->shape().dim_size() == 0;
    });
    auto isParameter = [&](const std::string &one) { return !program.parameterAt(one).empty(); };
    if (isNumber && !call.references.empty() && all_of(call.references, isParameter))
      for (const std::string &parameter : program.parametersOf(call))
        found.numbers.insert(parameter);
  }

  // With it, or with what code makes of it (1 + it, exp(it)), about as the optimizer compares.
  static bool changesNothing(const TensorBytes &number) {
    constexpr double kTolerance = 1e-4;
    double value = firstNumber(number);
    return std::abs(value - std::round(value)) <= kTolerance;
  }

  const ModelFile &file;
  const ExportedProgram &program;
  llvm::function_ref<bool(const std::string &)> isLost;
  llvm::StringSet<> initializers, tables, calls, results, used;
  llvm::StringMap<const onnx::TypeProto::Tensor *> types; // by value
  std::map<std::string, std::string> makers;              // calls, or "", by value
  TakenOut found;
  bool isArithmeticGone = false; // a product, a quotient, a sum or a difference
};

} // namespace

bool TakenOut::isUnclear(const std::string &parameter) const {
  return moves && single.count(parameter) > 0;
}

bool TakenOut::mayHaveRead(const std::string &parameter) const {
  return calculates || (moves && unused.count(parameter) == 0);
}

TakenOut findTakenOut(const ModelFile &file, const ExportedProgram &program,
                      llvm::function_ref<bool(const std::string &)> isLost) {
  return Finder(file, program, isLost).run();
}

} // namespace trainc::reader
