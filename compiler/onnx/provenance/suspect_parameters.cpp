// SPDX-License-Identifier: Apache-2.0
//
// What the rule for parameters decides, but their values or uses speak against: refused where
// training would train another model, else said in a warning.
#include "compiler/onnx/provenance/parameters.h"
#include "dialects/nn/onnx_node.h"
#include "dialects/train/optimizer.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace trainc::reader {

using nn::OnnxWeight;

constexpr size_t kShown = 3; // names in a warning
constexpr char kIdentity[] = "an identity matrix";
constexpr char kRelative[] = "numbers of a grid or of distances, as linear biases of attention are";

// What is computed from positions, and hardly ever learnt; else empty.
static StringRef seriesIn(const TensorBytes &tensor) {
  return looksSinusoidal(tensor)  ? "sines and cosines of positions"
         : looksLikeRange(tensor) ? "evenly spaced numbers"
         : looksGeometric(tensor) ? "a geometric series, as rotary positions use"
                                  : "";
}

static bool isElementwiseUse(const Use &use) {
  return use.node->domain.empty() && llvm::StringSwitch<bool>(use.node->opType())
                                         .Cases("Add", "Sub", "Mul", "Div", "Exp", true)
                                         .Default(false);
}

// What a parameter looks like that modules keep fixed, as a buffer or by requires_grad=False;
// empty where it looks like none. Files of some exporters record neither.
static StringRef fixedTable(const Decision &decision, const Graph &graph, bool buffersRecorded) {
  const TensorBytes &tensor = *decision.tensor;
  if (StringRef series = seriesIn(tensor); !series.empty())
    return series;
  if (looksRelative(tensor)) {
    std::vector<Use> uses = usesBehindViews(graph, decision.name());
    if (any_of(uses, isElementwiseUse) &&
        none_of(uses, [&](const Use &use) { return multiplies(use, tensor); }))
      return kRelative;
  }
  if (buffersRecorded)
    return "";
  if (looksLikeIdentity(tensor))
    return kIdentity;
  if (looksLikeMask(tensor))
    return "two values throughout, as masks do";
  bool isRow = tensor.shape.size() >= 2 && tensor.shape.back() == tensor.count;
  if (isRow && decision.name().ends_with("bias") && isZero(tensor))
    return "zeros in one row of two axes, as buffers for later use do";
  return "";
}

// As a pattern that matches it alone.
static std::string escaped(StringRef name) {
  std::string pattern;
  for (char c : name) {
    if (StringRef(R"(\^$.*+?()[]{}|)").contains(c))
      pattern += '\\';
    pattern += c;
  }
  return pattern;
}

static std::string freezing(ArrayRef<std::string> names) {
  std::string patterns;
  for (const std::string &name : names)
    patterns += (patterns.empty() ? "--freeze '" : " --freeze '") + escaped(name) + "'";
  return patterns;
}

static void suspectTables(const Decisions &decisions, const Graph &graph, bool buffersRecorded,
                          const ModelFile &file, Report &report) {
  llvm::MapVector<StringRef, std::vector<std::string>> tables; // by contents
  for (const auto &decision : decisions)
    if (StringRef contents =
            decision->role == Role::trained ? fixedTable(*decision, graph, buffersRecorded) : "";
        !contents.empty())
      tables[contents].push_back(decision->moduleName.empty() ? decision->name().str()
                                                              : decision->moduleName);
  for (const auto &[contents, names] : tables) {
    std::string patterns = freezing(names);
    std::string others = "--train-only with patterns of all parameters that are to be trained";
    bool isIdentity = contents == kIdentity; // more often learnt than kept
    bool mayBeComputed = contents == kRelative && isFromPyTorch(file) && !buffersRecorded;
    (void)report.error(ExitCode::unsupportedModel, file.path(),
                       (names.size() == 1 ? "parameter " : "parameters ") + quotedList(names) +
                           (names.size() == 1 ? " holds " : " hold ") + contents +
                           (isIdentity ? ": modules learn such a matrix or keep it fixed"
                                       : ": modules keep such a table fixed") +
                           ", which this file does not say",
                       isIdentity ? others + "; or " + patterns + ", as requires_grad=False does"
                                  : patterns + ", as requires_grad=False does; or " + others +
                                        (mayBeComputed ? "; or, where it was computed from them, "
                                                         "torch.onnx.export(..., "
                                                         "do_constant_folding=False)"
                                                       : ""));
  }
}

// One number throughout: filling, unless it is what a parameter that starts so was computed into.
// PyTorch's exporter writes filling as ConstantOfShape: what it folded may be a token that is put
// beside others, or in their place.
static bool isCalculatedWith(const Graph &graph, const Decision &decision, bool isFromPyTorch) {
  return any_of(usesBehindViews(graph, decision.name()), [&](const Use &use) {
    return use.node->domain.empty() &&
           llvm::StringSwitch<bool>(use.node->opType())
               .Cases("Concat", "Where", "Expand", "Max", "Min", "CumSum", isFromPyTorch)
               .Cases("Add", "Sub", "Mul", "Div", "Pow", true)
               .Cases("MatMul", "Gemm", "Einsum", true)
               .Default(false);
  });
}

// What an exporter computed from parameters and gave no name is a constant like any other where no
// operator learns it. Only its size and values tell that it might be more.
// PyTorch's TorchScript exporter folds: there nobody may train the rest unasked.
static void suspectNameless(const Decisions &decisions, const Graph &graph, const ModelFile &file,
                            Report &report) {
  std::vector<std::string> names, folded;
  auto isSuspect = [&](const Decision &decision) {
    const TensorBytes &tensor = *decision.tensor;
    if (isFoldedNumber(decision, file))
      return !isSampleSize(decision, decisions, graph);
    return (!isUniform(tensor) || isCalculatedWith(graph, decision, isFromPyTorch(file))) &&
           seriesIn(tensor).empty();
  };
  for (const auto &decision : decisions)
    if (decision->role == Role::constant && decision->isUnlearnt && !decision->isKept &&
        isSuspect(*decision))
      (isFromPyTorch(file) || isTorchScriptName(decision->name()) ? folded : names)
          .push_back(decision->name().str());
  auto text = [](const auto &some) {
    return quotedList(some, kShown) + (some.size() == 1 ? ", which has" : ", which have") +
           " no module's name and no operator learns, " + (some.size() == 1 ? "is" : "are") +
           " not trained";
  };
  if (!folded.empty())
    (void)report.error(
        ExitCode::unsupportedModel, file.path(),
        text(folded) + ": if the exporter computed " + (folded.size() == 1 ? "it" : "them") +
            " from parameters, what would train is not the module",
        freezing(folded) + ", where the module learns nothing there; or export again with "
                           "torch.onnx.export(..., do_constant_folding=False): buffers (tensors "
                           "that the module does not train) then need --freeze with their names");
  if (!names.empty())
    report.warning(file.path(), text(names),
                   "--train-only with patterns of all parameters, where the model learns " +
                       std::string(names.size() == 1 ? "it" : "them") + "; else nothing");
}

// One number may be a temperature that is learnt or an epsilon that is not: only its name tells. Or
// its place: a bias that is trained may be a number of the code that is added there. PyTorch writes
// numbers of the code without axes: one with an axis may have been a parameter's.
static void warnOfScalars(const Decisions &decisions, const Graph &graph, const ModelFile &file,
                          Report &report) {
  std::vector<std::string> named, placed, constant;
  for (const auto &decision : decisions) {
    if (decision->tensor->count != 1 || !isFloat(decision->tensor->dataType))
      continue;
    bool isTrained = decision->role == Role::trained;
    if (isTrained && decision->isUnclear)
      placed.push_back(decision->name().str());
    else if (isTrained && !decision->exporterMade && decision->tensor->shape.empty())
      named.push_back(decision->name().str());
    else if (decision->role == Role::constant && decision->isNumber &&
             (decision->isUnclear || !decision->exporterMade ||
              (isTorchScriptName(decision->name()) && !decision->tensor->shape.empty() &&
               isCalculatedWith(graph, *decision, isFromPyTorch(file)))))
      constant.push_back(decision->name().str());
  }
  auto are = [](const auto &names) { return names.size() == 1 ? " is" : " are"; };
  if (!named.empty())
    report.warning(file.path(),
                   quotedList(named, kShown) + ", a single number," + are(named) +
                       " trained: by name a module's parameter",
                   "--freeze, where the model means a constant");
  if (!placed.empty())
    report.warning(file.path(),
                   quotedList(placed, kShown) + ", a single number," + are(placed) +
                       " trained: by place the weight or bias of a layer",
                   "--freeze, where the model means a constant");
  if (!constant.empty())
    report.warning(file.path(),
                   quotedList(constant, kShown) + ", a single number without a module's name," +
                       are(constant) + " not trained",
                   "--train-only with patterns of all parameters, where the model learns it");
}

// Files of PyTorch's TorchScript exporter do not tell a registered buffer from a parameter, nor
// what was computed from one and only scales or is added. They are trained, and the user is told.
static void warnOfUntold(const Decisions &decisions, const Graph &graph, const ModelFile &file,
                         Report &report) {
  auto isAddedToProduct = [&](const Use &use) {
    return use.node->domain.empty() && use.node->opType() == "Add" &&
           any_of(use.node->inputs, [&](const std::string &input) {
             const GraphNode *maker = graph.producer(input);
             return maker && maker->domain.empty() && maker->opType() == "MatMul";
           });
  };
  std::vector<std::string> named, computed;
  for (const auto &decision : decisions) {
    const bool isLearnt = any_of(graph.uses(decision->name()), [&](const Use &use) {
      return multiplies(use, *decision->tensor) || isAddedToProduct(use) ||
             (nn::isWeight(weightOf(use, *decision->tensor)) && !isElementwiseUse(use));
    });
    if (decision->role != Role::trained || decision->tensor->count == 1 || isLearnt)
      continue;
    const StringRef attribute = attributeOf(decision->name());
    if (isTorchScriptName(decision->name())) {
      if (decision->moduleTensor.empty() && decision->held.empty())
        computed.push_back(decision->name().str());
    } else if (!attribute.contains("weight") && !attribute.contains("bias"))
      named.push_back(decision->name().str());
  }
  auto warn = [&](const std::vector<std::string> &names, const std::string &what) {
    if (!names.empty())
      report.warning(
          file.path(),
          quotedList(names, kShown) + what + (names.size() == 1 ? " it is" : " they are") +
              " trained",
          freezing(names) +
              ", where the module does not learn that; or an export by trainc.export, which "
              "says it; else nothing");
  };
  warn(named, ": a parameter or a registered buffer, which the file does not tell;");
  warn(computed, ": what the exporter computed, perhaps from parameters;");
}

// Weights in nodes of functions and branches are no initializers of the graph: nothing trains them.
// Those of other nodes are initializers by now, but in PyTorch's files, where they are no weights.
static void warnOfInnerConstants(const Graph &graph, const ModelFile &file, Report &report) {
  std::vector<std::string> names;
  for (const GraphNode *node : graph.nodes()) {
    const onnx::AttributeProto *value = node->attribute("value");
    if (!node->isInner || !node->domain.empty() || node->opType() != "Constant" || !value ||
        !value->has_t() || !isFloat(value->t().data_type()) || node->outputs.size() != 1)
      continue;
    SmallVector<int64_t> shape(value->t().dims().begin(), value->t().dims().end());
    bool isLarge = std::optional<int64_t>(nn::elementCount(shape)).value_or(0) > 1;
    if (isLarge && any_of(graph.uses(node->outputs[0]), [&](const Use &use) {
          return nn::isWeight(
              nn::onnxWeight(use.node->domain, use.node->opType(), use.index, shape));
        }))
      names.push_back(node->outputs[0]);
  }
  if (!names.empty())
    report.warning(file.path(),
                   quotedList(names, kShown) +
                       (names.size() == 1 ? ", a constant" : ", constants") +
                       " inside a function or a branch, " + (names.size() == 1 ? "is" : "are") +
                       " not trained",
                   "where they are weights: initializers of the graph; else nothing");
}

static void warnOfQuantized(const Decisions &decisions, const ModelFile &file, Report &report) {
  std::vector<std::string> names;
  for (const auto &decision : decisions)
    if (decision->isQuantized)
      names.push_back(decision->name().str());
  if (!names.empty())
    report.warning(file.path(),
                   quotedList(names, kShown) + ", integers that a Cast makes " +
                       (names.size() == 1 ? "a weight, are" : "weights, are") + " not trained",
                   "the model before quantization");
}

// By its name alone; a module may have a parameter of that name.
static void warnOfStatistics(const Decisions &decisions, const ModelFile &file, Report &report) {
  std::vector<std::string> names;
  for (const auto &decision : decisions)
    if (decision->role == Role::constant && decision->isNamedStatistic)
      names.push_back(decision->name().str());
  if (!names.empty())
    report.warning(file.path(),
                   quotedList(names, kShown) +
                       ", running statistics by name that no batch norm reads, " +
                       (names.size() == 1 ? "is" : "are") + " not trained and not replaced",
                   "--train-only with patterns of all parameters, where the model learns " +
                       std::string(names.size() == 1 ? "it" : "them") + "; else nothing");
}

// The loss of such a model is no number in the first step.
static void warnOfNonFinite(const Decisions &decisions, const ModelFile &file, Report &report) {
  std::vector<std::string> names;
  for (const auto &decision : decisions)
    if (decision->role == Role::trained || decision->role == Role::buffer)
      if (!isFinite(*decision->tensor))
        names.push_back(decision->name().str());
  if (!names.empty())
    report.warning(file.path(),
                   (names.size() == 1 ? "parameter " : "parameters ") + quotedList(names, kShown) +
                       (names.size() == 1 ? " holds" : " hold") + " NaN or infinity",
                   "a file written before the model diverged");
}

// Whether a moving average is kept beside it or not.
static StringRef optimizerOf(const Recipe &recipe) {
  StringRef optimizer = recipe.optimizer;
  optimizer.consume_back(train::kWithAverage);
  return optimizer;
}

// An update that takes norms, rows or columns of each parameter has no meaning for several. Muon's
// does so of matrices that are not in AdamW's group.
static bool isUpdatedAsWhole(const Decision &decision, const Recipe &recipe) {
  StringRef optimizer = optimizerOf(recipe);
  if (optimizer != "muon")
    return optimizer == "lamb" || optimizer == "adafactor";
  const bool isOther = decision.group > 0 && recipe.groups[decision.group - 1].first == "adamw";
  return decision.tensor->shape.size() == 2 && !isOther;
}

static void refuseStacked(const Decisions &decisions, const ModelFile &file, const Recipe &recipe,
                          Report &report) {
  for (const auto &decision : decisions)
    if (decision->role == Role::trained && !decision->stackedOf.empty() &&
        isUpdatedAsWhole(*decision, recipe))
      (void)report.error(ExitCode::unsupportedModel, file.path(),
                         "initializer '" + decision->name() +
                             "' holds several parameters of the module, " +
                             quotedList(decision->stackedOf) + ", each of which " +
                             optimizerOf(recipe) + " updates as a whole",
                         "export again with torch.onnx.export(..., optimize=False)");
}

void suspectParameters(const Decisions &decisions, bool hasSignature, const ModelFile &file,
                       const Graph &graph, const Recipe &recipe, Report &report) {
  warnOfNonFinite(decisions, file, report);
  refuseStacked(decisions, file, recipe, report);
  if (!recipe.trains || !recipe.trainOnly.empty())
    return;
  suspectTables(decisions, graph, hasSignature, file, report);
  warnOfQuantized(decisions, file, report);
  if (hasSignature)
    return;
  refuseFolded(decisions, file, graph, report);
  refuseSharedRecurrent(decisions, file, graph, report);
  suspectNameless(decisions, graph, file, report);
  if (isFromPyTorch(file))
    warnOfUntold(decisions, graph, file, report);
  warnOfStatistics(decisions, file, report);
  warnOfInnerConstants(graph, file, report);
  warnOfScalars(decisions, graph, file, report);
}

} // namespace trainc::reader
