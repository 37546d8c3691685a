// SPDX-License-Identifier: Apache-2.0
//
// Decides about every initializer. PyTorch's default exporter records what each is and, of those
// that it computed itself, all values that they were computed from: there the decision is exact.
// Other files have only names and uses.
#include "compiler/onnx/file/file_check.h"
#include "compiler/onnx/parameters/claims.h"
#include "compiler/onnx/parameters/quantized_weights.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace trainc {

Parameter::Parameter(const reader::TensorBytes &tensor)
    : tensor(&tensor), name(tensor.name), shape(tensor.shape.begin(), tensor.shape.end()),
      isDouble(reader::isDouble(tensor.dataType)), bytes(tensor.bytes), inFile(tensor.inFile),
      moduleName(tensor.name) {}

bool Parameter::isOfFloats() const {
  return quantized || (tensor && reader::isFloat(tensor->dataType));
}

} // namespace trainc

namespace trainc::reader {

using nn::OnnxWeight;

// Through a Cast and what scales it, to an operator that learns it; empty where there is none.
static std::string castTo(const Graph &graph, const Parameter &parameter) {
  constexpr int kFarthest = 6; // a Cast, a zero point, a scale and what moves elements
  if (!is_contained({onnx::TensorProto::INT8, onnx::TensorProto::UINT8, onnx::TensorProto::INT16,
                     onnx::TensorProto::UINT16},
                    parameter.tensor->dataType))
    return "";
  std::vector<std::string> values{parameter.name}, next;
  for (int step = 0; step < kFarthest && !values.empty(); ++step, values.swap(next)) {
    next.clear();
    for (const std::string &value : values)
      for (const Use &use : graph.uses(value)) {
        if (step > 0 && nn::isWeight(weightOf(use, parameter.shape)))
          return use.node->opType().str();
        const StringRef op = use.node->opType();
        const bool goesOn = step == 0
                                ? op == "Cast"
                                : is_contained({"Sub", "Mul", "Div", "Transpose", "Reshape"}, op);
        if (goesOn && use.node->domain.empty() && !use.node->outputs.empty())
          next.push_back(use.node->outputs[0]);
      }
  }
  return "";
}

namespace {

class Classifier {
public:
  Classifier(const ModelFile &file, const Graph &graph, const Ledger &ledger,
             const BatchNormModes &batchNorms, const Recipe &recipe, Report &report)
      : file(file), graph(graph), ledger(ledger), program(ledger.program), batchNorms(batchNorms),
        trains(recipe.trains), report(report) {}

  Parameters classify() {
    Parameters parameters;
    for (int i = 0; i < file.graph().initializer_size(); ++i) {
      parameters.push_back(std::make_unique<Parameter>(file.initializer(i)));
      Parameter &parameter = *parameters.back();
      classify(parameter);
      for (const StringMap<std::string> *notes : {&ledger.origin, &ledger.notes})
        if (auto found = notes->find(parameter.name); found != notes->end())
          parameter.reason += "; " + found->second;
    }
    // What else belongs to a weight in integers is not a tensor by itself; numbers that other nodes
    // read, too, are constants.
    for (const auto &parameter : parameters)
      if (partsOfQuantized.count(parameter->tensor)) {
        parameter->isPartOfQuantized = all_of(graph.uses(parameter->name), readsPart);
        parameter->role = parameter->isPartOfQuantized ? Role::unused : Role::constant;
        parameter->isAsked = false;
        parameter->reason = "scales or zero points of a weight in integers";
      }
    return parameters;
  }

  /// The signature's parameter that an initializer was computed from; of `classify`d ones only.
  StringMap<std::vector<Parameter *>> madeFrom;

private:
  void classify(Parameter &parameter) {
    const ArrayRef<Use> uses = graph.uses(parameter.name);
    if (!uses.empty())
      parameter.firstUse = uses[0].node->index * 64 + uses[0].index;
    if (ledger.fixed.contains(parameter.name)) {
      parameter.reason = "the value of an input, by --constant";
      parameter.isFixed = true;
    } else if (uses.empty() && !graph.isOutput(parameter.name) &&
               !graph.isCaptured(parameter.name)) {
      parameter.role = Role::unused;
      parameter.reason = "no node that an output needs uses it";
    } else if (any_of(uses, isOfQuantized)) {
      quantizedWeight(parameter);
    } else if (const Use *use = useAs(OnnxWeight::statistic, uses, parameter)) {
      runningStatistic(*use, parameter);
    } else if (const Use *use = useAs(OnnxWeight::setting, uses, parameter)) {
      parameter.reason = "a setting of a " + use->node->opType().str();
      parameter.isSetting = true;
    } else if (program.isRecorded()) {
      bySignature(parameter);
    } else if (std::string op = castTo(graph, parameter); !op.empty()) {
      parameter.isAsked = true;
      parameter.reason =
          "integers that a Cast makes the weight of a " + op + ": they are not trained";
    } else if (!parameter.isOfFloats()) {
      parameter.reason = "integers and booleans are not trained";
    } else {
      byNameAndUse(parameter);
    }
  }

  static bool isOfQuantized(const Use &use) {
    return quantizedInput(use.node->domain, use.node->opType()) == use.index;
  }

  static bool readsPart(const Use &use) {
    return quantizedInput(use.node->domain, use.node->opType()).has_value() && !isOfQuantized(use);
  }

  void quantizedWeight(Parameter &parameter) {
    std::string why;
    std::optional<QuantizedWeight> weight =
        reader::quantizedWeight(file, graph, *parameter.tensor, why);
    if (!weight) {
      parameter.role = Role::unused;
      parameter.reason = "integers that are no weight: " + why;
      (void)report.error(ExitCode::unsupportedModel,
                         Subject::ofPart(file.path(), "quantized weight '" + parameter.name + "'"),
                         why,
                         "the model before quantization, or integers as docs/memory.md lists "
                         "them");
      return;
    }
    parameter.role = Role::frozen;
    parameter.reason = quantizedForm(*weight) + ", which are not trained";
    parameter.shape.assign(weight->shape.begin(), weight->shape.end());
    parameter.isDouble = false;
    parameter.bytes = parameter.inFile = {};
    parameter.moduleName = withoutQuantization(parameter.moduleName);
    partsOfQuantized.insert({weight->scales, weight->zeros});
    parameter.quantized = std::make_shared<QuantizedWeight>(std::move(*weight));
  }

  static const Use *useAs(OnnxWeight weight, ArrayRef<Use> uses, const Parameter &parameter) {
    const Use *found = llvm::find_if(
        uses, [&](const Use &use) { return weightOf(use, parameter.shape) == weight; });
    return found == uses.end() ? nullptr : found;
  }

  void runningStatistic(const Use &use, Parameter &parameter) {
    const GraphNode &node = *use.node;
    const nn::BatchNormMode mode = batchNorms.of(node);
    parameter.role = nn::trainsStatistics(mode) ? Role::buffer : Role::frozen;
    parameter.reason = "running statistics of a batch norm";
    if (mode == nn::BatchNormMode::trainByDefault &&
        !nn::saysBatchStatistics(node.opset, node.integer("training_mode", 0),
                                 node.integer("is_test", 0), node.outputs.size()))
      parameter.reason += ", which the file has in inference mode";
  }

  // ---- files that record it

  void bySignature(Parameter &parameter) {
    const StringRef kind = program.kindOf(parameter.name);
    parameter.exporterMade = kind.empty();
    if (!kind.empty()) {
      const bool isTrained = kind == "PARAMETER" && parameter.isOfFloats();
      const bool isFrozen = isTrained && program.isFrozen(parameter.name);
      parameter.role = isFrozen ? Role::frozen : isTrained ? Role::trained : Role::constant;
      parameter.reason =
          ("the file says " + kind).str() + (isFrozen ? ", of which requires_grad is False" : "");
      return;
    }
    if (auto stacked = ledger.stacked.find(parameter.name);
        stacked != ledger.stacked.end() && parameter.isOfFloats())
      return stackedParameters(stacked->second, parameter);
    const ArrayRef<std::string> sources = program.sourcesOf(parameter.name);
    std::vector<std::string> origins, others;
    for (const std::string &source : sources)
      (program.isParameter(source) ? origins : others).push_back(source);
    if (origins.empty())
      parameter.reason = sources.empty() ? "a constant of the program: the file lists it nowhere"
                                         : "computed by the exporter from constants";
    else if (origins.size() == 1 && parameter.isOfFloats() &&
             isSelection(parameter, origins[0], others))
      selection(parameter, origins[0], others);
    else
      folded(parameter, origins);
  }

  void stackedParameters(const std::vector<std::string> &parameters, Parameter &holder) {
    holder.role = Role::trained;
    holder.reason = (parameters.size() == 1 ? "the exporter's order of parameter "
                                            : "the exporter's order of ") +
                    join(parameters, ", ");
    for (const std::string &parameter : parameters)
      madeFrom[parameter].push_back(&holder);
    if (parameters.size() == 1)
      holder.moduleName = parameters[0];
    else
      holder.stackedOf = parameters;
  }

  void selection(Parameter &parameter, const std::string &origin, ArrayRef<std::string> others) {
    auto chooses = [](StringRef name) { return isMadeBy(name, kChooses); };
    parameter.role = Role::trained;
    parameter.isPart = chooses(parameter.name) || StringRef(parameter.name).ends_with(kRow) ||
                       any_of(others, chooses);
    parameter.moduleName = origin;
    const bool isView = isMadeBy(parameter.name, kKeepsOrder) && all_of(others, [](StringRef name) {
                          return isMadeBy(name, kKeepsOrder | kNumbers);
                        });
    const std::string form = formOf(parameter);
    if (isView || isArgument(parameter, origin, others))
      parameter.inState.push_back(
          {origin, !isView && parameter.shape.size() == 2 && form == "transposition"});
    parameter.reason = "the exporter's " + form + " of parameter " + origin;
    madeFrom[origin].push_back(&parameter);
  }

  // What the exporter's translation of a call makes of a parameter of the call has no name: the
  // transposed weight of `linear`, the slope of `prelu` or the scale of a norm with other axes.
  bool isArgument(const Parameter &parameter, const std::string &origin,
                  ArrayRef<std::string> others) const {
    const StringRef name = parameter.name;
    if (name.ends_with(kTransposed) || name.ends_with(kReshaped))
      return true;
    auto isNameless = [](StringRef one) { return baseName(one) == "val"; };
    return isNameless(name) && all_of(others, isNameless) &&
           all_of(graph.uses(name), [&](const Use &use) {
             const ProgramCall *call = program.callOf(*use.node->proto);
             const OnnxWeight weight = weightOf(use, parameter.shape);
             const bool isMatrix = use.index == 1 && weight == OnnxWeight::matrix;
             if (!call) // a file that was stripped of its calls has their names
               return isMatrix && baseName(programOperation(*use.node)) == "linear";
             if (!is_contained(program.parametersOf(*call), origin))
               return false;
             const bool rearrangesScales = call->is("aten.prelu") || call->is("aten.group_norm") ||
                                           call->is("aten.native_group_norm");
             return call->is("aten.linear") ? isMatrix
                                            : rearrangesScales && (weight == OnnxWeight::scale ||
                                                                   weight == OnnxWeight::bias);
           });
  }

  // Every element stands for one element of the parameter, none for two: by what the result and
  // all values that it was made from are called. Three things names do not tell. Whether a cast was
  // one there and back: numbers with all their digits were not rounded. Of a table's rows, whether
  // a repetition was one of the rows' numbers or of the table: then columns, or rows, are equal.
  // And whether a sum was: with a number, as it is where nothing is chosen of the table, the table
  // would have the same gradient, and the same updates except weight decay. A buffer may number
  // rows; else it says nothing, as an operation's result may have its name: index.
  bool isSelection(const Parameter &parameter, const std::string &origin,
                   ArrayRef<std::string> others) const {
    const StringRef name = parameter.name;
    if (isArgument(parameter, origin, others) || name.ends_with(kRow))
      return true;
    if (!isMadeBy(name, kRearranges | kChooses | kCasts))
      return false;
    auto isTable = [](StringRef one) { return baseName(one) == "embedding"; };
    auto movesRows = [](StringRef one) {
      return isMadeBy(one, kRearranges | kChooses) &&
             !is_contained({"embedding", "unsqueeze", "clone", "contiguous"}, baseName(one));
    };
    const bool choosesRows = isTable(name) || any_of(others, isTable);
    const bool anywhere = !isTable(name) && (movesRows(name) || any_of(others, movesRows));
    const unsigned allowed =
        kRearranges | kChooses | kCasts | kNumbers | (isTable(name) ? kRepeats | kAdds : 0);
    auto any = [&](unsigned kinds) {
      return any_of(others, [&](StringRef one) { return isMadeBy(one, kinds); });
    };
    return all_of(others,
                  [&](StringRef one) {
                    return isMadeBy(one, allowed) || (choosesRows && program.isBuffer(one));
                  }) &&
           (!(isMadeBy(name, kCasts) || any(kCasts)) || hasAllDigits(*parameter.tensor)) &&
           (!choosesRows || rowsDiffer(*parameter.tensor, anywhere)) &&
           (!any(kRepeats) || columnsDiffer(*parameter.tensor)) && !(any(kAdds) && any(kChooses));
  }

  std::string formOf(const Parameter &parameter) const {
    const StringRef name = parameter.name, base = baseName(name);
    if (name.ends_with(kRow))
      return "row";
    if (base != "val" && !base.contains('.'))
      return base.str();
    const bool isMatrix =
        name.ends_with(kTransposed) || useAs(OnnxWeight::matrix, graph.uses(name), parameter);
    return isMatrix ? "transposition" : "reshape";
  }

  // Refused; --accept trains it as it stands. A parameter that is cast alone is of another type,
  // one that nothing here trains.
  void folded(Parameter &parameter, ArrayRef<std::string> origins) {
    parameter.reason = "computed by the exporter from parameter " + join(origins, ", ");
    if (!trains)
      return;
    const bool isCastAlone =
        program.sourcesOf(parameter.name).size() == 1 && isMadeBy(parameter.name, kCasts);
    const bool isAccepted = succeeded(report.refuse(
        Finding::computedByExporter, file.path(),
        "initializer '" + parameter.name + "' was computed by the exporter from parameter" +
            (origins.size() > 1 ? "s '" : " '") + join(origins, "' and '") +
            "', which training would leave behind",
        isCastAlone ? "a module whose parameters all are of one type: module.float() before the "
                      "export"
                    : kWholeExport));
    if (isAccepted && parameter.isOfFloats())
      parameter.role = Role::trained;
  }

  // ---- other files

  void byNameAndUse(Parameter &parameter) {
    const StringRef name = parameter.name;
    const bool isDotted = name.contains('.') && !isExporterName(name);
    parameter.exporterMade = isExporterName(name);
    const Learnt learnt = learntAs(graph, name, parameter.shape);
    const bool isOfNorm = StringRef(learnt.by).ends_with("Normalization");
    if (isFromPyTorch(file) && ledger.fromNodes.contains(name) &&
        (isOfNorm || (learnt.isElementwise() && !isBias(parameter)))) {
      parameter.reason = "as a number of the module's code";
    } else if (ledger.fromNodes.contains(name) && parameter.tensor->count > 1 &&
               !nn::isWeight(learnt.as)) {
      parameter.reason = "not used as a weight";
    } else if (parameter.tensor->count <= 1 && !isDotted) {
      ofOneElement(parameter, learnt);
    } else if (isOnlyCompared(graph, name)) {
      parameter.reason = "compared: no gradient passes";
    } else if (saysBuffer(name)) {
      parameter.reason = "a buffer by its name";
    } else if (!parameter.exporterMade) {
      parameter.role = Role::trained;
      parameter.reason =
          isDotted ? "floats under a module's name" : "floats under a name of their own";
    } else if (nn::isWeight(learnt.as)) {
      parameter.role = Role::trained;
      parameter.reason = "unnamed, but used as the weight of a " + learnt.by;
    } else {
      parameter.reason = "unnamed, and not used as a weight";
    }
  }

  // Of a linear layer.
  bool isBias(const Parameter &parameter) const {
    return parameter.shape.size() == 1 && any_of(graph.uses(parameter.name), [&](const Use &use) {
             return isAddedToProduct(graph, use);
           });
  }

  // The weight of a layer with one input and one output, the scale of a norm of one channel, or the
  // bias of a layer with one output; else a number.
  void ofOneElement(Parameter &parameter, const Learnt &learnt) {
    const bool hasAxes = !parameter.shape.empty() && !isPaddleConstant(parameter.name);
    const bool isWeight = hasAxes && nn::isWeight(learnt.as);
    const bool isBias = hasAxes && !isWeight && isBiasOfOne(parameter);
    if (parameter.tensor->count == 0 || !(isWeight || isBias)) {
      parameter.reason = "at most one element and no module's name";
      return;
    }
    parameter.role = Role::trained;
    parameter.reason = !parameter.exporterMade ? "floats under a name of their own"
                       : isBias                ? "unnamed, but the bias of a layer with one output"
                                : "unnamed, but used as the weight of a " + learnt.by;
  }

  // All that it is added to are products with one weight of one column.
  bool isBiasOfOne(const Parameter &parameter) const {
    std::set<const TensorBytes *> weights;
    for (const Reader &reader : readersIn(graph, parameter.name)) {
      const GraphNode *maker = graph.producer(reader.other);
      const bool isSum =
          reader.domain.empty() && reader.opType == "Add" && maker && maker->inputs.size() == 2;
      const TensorBytes *weight = isSum ? file.find(maker->inputs[1]) : nullptr;
      if (!weight || outputsOf(*maker->proto, weight->shape) != 1)
        return false;
      weights.insert(weight);
    }
    return weights.size() == 1;
  }

  const ModelFile &file;
  const Graph &graph;
  const Ledger &ledger;
  const ExportedProgram &program;
  const BatchNormModes &batchNorms;
  const bool trains;
  Report &report;
  std::set<const TensorBytes *> partsOfQuantized;
};

} // namespace

static bool checkTypes(const Parameters &parameters, const ModelFile &file, const Recipe &recipe,
                       Report &report) {
  const size_t before = report.size();
  for (const auto &parameter : parameters) {
    if (!parameter->isParameter())
      continue;
    if (recipe.precision != "f64" && parameter->isDouble)
      (void)report.error(ExitCode::unsupportedModel, file.path(),
                         "parameter '" + parameter->name + "' is f64, but the precision is f32",
                         "--precision f64, or export the model in float32");
    if (std::string why = whyNotStored(parameter->name); !why.empty())
      (void)report.error(ExitCode::unsupportedModel, file.path(),
                         "parameter '" + parameter->name +
                             "' cannot be stored under its name, which " + why,
                         "another name for the module's parameter");
  }
  return report.size() == before;
}

static void checkAnyTrained(const Parameters &parameters, const ModelFile &file,
                            const Recipe &recipe, Report &report) {
  const bool isExplained = !report.empty(); // by what made the parameters constants
  if (recipe.trains && recipe.adapters.empty() && !isExplained &&
      none_of(parameters, [](const auto &one) { return one->role == Role::trained; }))
    (void)report.error(ExitCode::unsupportedModel, file.path(),
                       "no initializer is a parameter to train",
                       any_of(parameters, [](const auto &one) { return one->quantized; })
                           ? "--lora PATTERN, which trains adapters beside weights in integers"
                           : "--train-only PATTERN, which chooses whatever the rule says");
}

std::optional<Parameters> decideParameters(const ModelFile &file, const Graph &graph,
                                           const Ledger &ledger, const BatchNormModes &batchNorms,
                                           const Recipe &recipe, Report &report) {
  Classifier classifier(file, graph, ledger, batchNorms, recipe, report);
  Parameters parameters = classifier.classify();
  std::vector<EqualWeights> undecided = ledger.undecided;
  if (ledger.program.isRecorded())
    tieByRecord(parameters, classifier.madeFrom, file, report);
  else
    llvm::append_range(undecided, tieByValue(parameters, graph, ledger, file));
  llvm::stable_sort(parameters,
                    [](const auto &a, const auto &b) { return a->firstUse < b->firstUse; });
  nameInState(graph, ledger, parameters);
  if (!applyRecipe(parameters, graph, recipe, report))
    return std::nullopt;
  for (const auto &one : parameters)
    if (one->canonical)
      one->canonical->tied.push_back({one->name, one->transposed});
  checkAnyTrained(parameters, file, recipe, report);
  const bool areStorable = checkTypes(parameters, file, recipe, report);
  reportDoubts(parameters, undecided, ledger, file, graph, recipe, report);
  return areStorable ? std::optional(std::move(parameters)) : std::nullopt;
}

} // namespace trainc::reader
