// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/provenance/doubts.h"
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/train/optimizer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace trainc::reader {

using nn::OnnxWeight;

constexpr size_t kShown = 3;   // names of one reason
constexpr size_t kAdvised = 8; // names in options to copy

void Doubts::add(Finding finding, StringRef name, const Twine &why) {
  found[finding][why.str()].push_back(name.str());
}

bool Doubts::has(Finding finding, StringRef name) const {
  auto reasons = found.find(finding);
  return reasons != found.end() && any_of(reasons->second, [&](const auto &reason) {
           return is_contained(reason.second, name);
         });
}

std::string Doubts::listed(const NamesByReason &reasons) {
  std::string text;
  for (const auto &[why, names] : reasons)
    text += (text.empty() ? "" : "; ") + quotedList(names, kShown) + " (" + why + ")";
  return text;
}

std::vector<std::string> Doubts::namesOf(const NamesByReason &reasons) {
  std::vector<std::string> all;
  for (const auto &[why, names] : reasons)
    llvm::append_range(all, names);
  return all;
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
  if (names.size() > kAdvised)
    return "--freeze PATTERN";
  return join(
      map_range(names, [](StringRef name) { return "--freeze " + quotedForShell(escaped(name)); }),
      " ");
}

void Doubts::report(const ModelFile &file, Report &report) const {
  const std::string trainAll = "--train-only with patterns of all parameters";
  for (const auto &[finding, reasons] : found) {
    const std::string freeze = freezing(namesOf(reasons)), names = listed(reasons);
    if (finding == Finding::computedByExporter)
      (void)report.refuse(
          finding, file.path(),
          "the exporter computed initializers from parameters: " + names +
              ": training this file would update a different model from the one you exported",
          "trainc.export; or torch.onnx.export(..., dynamo=False, "
          "training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False), or PRESERVE "
          "where parts of the module are in eval(); or " +
              freeze +
              ", which keeps them as they are; or, where the exporter only chose or "
              "rearranged elements, " +
              trainAll);
    else if (finding == Finding::mergedWeights)
      (void)report.refuse(
          finding, file.path(),
          "ONNX Runtime's optimizer merges equal weights, and the file does not tell whether the "
          "module has one or several: " +
              names,
          "the file before the optimizer; or, where the module has one, " + trainAll);
    else if (finding == Finding::foldedConstants)
      (void)report.refuse(
          finding, file.path(),
          "the exporter folded initializers that are not trained: " + names +
              ": where it computed them from parameters, training this file would update a "
              "different model from the one you exported",
          freeze +
              ", where the module learns nothing there; or trainc.export; or "
              "torch.onnx.export(..., do_constant_folding=False), where buffers then need "
              "--freeze; or " +
              trainAll);
    else if (finding == Finding::mayBeConstant)
      report.warning(finding, file.path(),
                     "the file does not tell whether the module trains what is trained here: " +
                         names,
                     freeze + " for those that it does not train; trainc.export, which records "
                              "it; or --accept may-be-constant");
    else
      report.warning(finding, file.path(),
                     "the file does not tell whether the module trains what is not trained here: " +
                         names,
                     trainAll + ", where it trains them; else --accept may-be-parameter");
  }
}

StringRef seriesIn(const TensorBytes &tensor) {
  return looksSinusoidal(tensor)  ? "sines and cosines of positions"
         : looksLikeRange(tensor) ? "evenly spaced numbers"
         : looksGeometric(tensor) ? "a geometric series"
                                  : "";
}

static bool isElementwiseUse(const Use &use) {
  return use.node->domain.empty() && llvm::StringSwitch<bool>(use.node->opType())
                                         .Cases("Add", "Sub", "Mul", "Div", "Exp", true)
                                         .Default(false);
}

bool isCalculatedWith(const Graph &graph, const Decision &decision, bool isFromPyTorch) {
  return any_of(usesBehindViews(graph, decision.name()), [&](const Use &use) {
    return use.node->domain.empty() &&
           llvm::StringSwitch<bool>(use.node->opType())
               .Cases("Concat", "Where", "Expand", "Max", "Min", "CumSum", isFromPyTorch)
               .Cases("Add", "Sub", "Mul", "Div", "Pow", true)
               .Cases("MatMul", "Gemm", "Einsum", true)
               .Default(false);
  });
}

// Weights of fresh modules have one number throughout.
static void findMerged(const Decisions &decisions, const Graph &graph, Doubts &doubts) {
  for (const auto &decision : decisions) {
    std::vector<std::string> readers;
    for (const Use &use : graph.uses(decision->name()))
      if (nn::isWeight(weightOf(use, *decision->tensor)) && !is_contained(readers, use.node->label))
        readers.push_back(use.node->label);
    if (decision->role == Role::trained && readers.size() > 1 && isUniform(*decision->tensor))
      doubts.add(Finding::mergedWeights, decision->name(),
                 "read by " + quotedList(readers, kShown));
  }
}

namespace {

/// Of files that do not record what is a parameter.
class UntoldDoubts {
public:
  UntoldDoubts(const Decisions &decisions, const ModelFile &file, const Graph &graph,
               Doubts &doubts)
      : decisions(decisions), file(file), graph(graph), doubts(doubts) {}

  void find() {
    for (const auto &decision : decisions)
      if (decision->role == Role::trained)
        ofTrained(*decision);
      else if (decision->role == Role::constant)
        ofConstant(*decision);
    for (const GraphNode *node : graph.nodes())
      ofInnerConstant(*node);
  }

private:
  void mayBeConstant(const Decision &decision, StringRef why) {
    doubts.add(Finding::mayBeConstant, decision.name(), why);
  }

  void ofTrained(const Decision &decision) {
    const TensorBytes &tensor = *decision.tensor;
    if (tensor.count == 1) {
      if (decision.doubt == Doubt::unclearNumber)
        mayBeConstant(decision, "one number, in the place of a weight or bias");
      else if (!decision.exporterMade && tensor.shape.empty())
        mayBeConstant(decision, "one number, under a module's name");
    } else if (looksLikeMask(tensor))
      mayBeConstant(decision, "two values throughout, as a mask has");
    else if (StringRef series = seriesIn(tensor); !series.empty())
      mayBeConstant(decision, series);
    else if (isFromPyTorch(file) && !isLearnt(decision))
      ofScale(decision);
  }

  // TorchScript's files do not tell a registered buffer from a parameter, nor what was computed
  // from one and only scales or is added. Biases of PyTorch's modules have one axis.
  void ofScale(const Decision &decision) {
    const StringRef attribute = attributeOf(decision.name());
    const bool isNamedAsParameter =
        attribute.contains("weight") ||
        (attribute.contains("bias") && decision.tensor->shape.size() == 1);
    if (isTorchScriptName(decision.name())) {
      if (decision.moduleTensor.empty() && decision.held.empty())
        mayBeConstant(decision, "computed by the exporter, perhaps from parameters");
    } else if (!isNamedAsParameter)
      mayBeConstant(decision, "a parameter or a registered buffer");
  }

  bool isLearnt(const Decision &decision) const {
    return any_of(graph.uses(decision.name()), [&](const Use &use) {
      bool isBias = isAddedToProduct(use) && decision.tensor->shape.size() == 1;
      return multiplies(use, *decision.tensor) || isBias ||
             (nn::isWeight(weightOf(use, *decision.tensor)) && !isElementwiseUse(use));
    });
  }

  bool isAddedToProduct(const Use &use) const {
    return use.node->domain.empty() && use.node->opType() == "Add" &&
           any_of(use.node->inputs, [&](const std::string &input) {
             const GraphNode *maker = graph.producer(input);
             return maker && maker->domain.empty() && maker->opType() == "MatMul";
           });
  }

  void ofConstant(const Decision &decision) {
    auto add = [&](StringRef why) { doubts.add(Finding::mayBeParameter, decision.name(), why); };
    const bool isFolded = isFromPyTorch(file) || isTorchScriptName(decision.name());
    switch (decision.doubt) {
    case Doubt::none:
    case Doubt::foldedNumber: // findFoldedConstants
      break;
    case Doubt::quantized:
      add("integers that a Cast makes a weight: take the model before quantization");
      break;
    case Doubt::statistic:
      add("running statistics by name, which no batch norm reads");
      break;
    case Doubt::unlearnt:
      if (!isFolded &&
          (!isUniform(*decision.tensor) ||
           isCalculatedWith(graph, decision, /*isFromPyTorch=*/false)) &&
          seriesIn(*decision.tensor).empty())
        add("without a module's name, and no operator learns it");
      break;
    case Doubt::mask:
      add("two values throughout, as a mask has");
      break;
    case Doubt::inNode:
      if (any_of(graph.uses(decision.name()),
                 [&](const Use &use) { return multiplies(use, *decision.tensor); }))
        add("in a Constant node, as numbers of the module's code are");
      break;
    // A temperature that is learnt, or an epsilon that is not. PyTorch writes numbers of the code
    // without axes: one with an axis may have been a parameter's.
    case Doubt::number:
      if (isFloat(decision.tensor->dataType) && decision.tensor->count == 1 &&
          (!decision.exporterMade ||
           (isTorchScriptName(decision.name()) && !decision.tensor->shape.empty() &&
            isCalculatedWith(graph, decision, isFromPyTorch(file)))))
        add("one number without a module's name");
      break;
    case Doubt::unclearNumber:
      add("one number without a module's name");
      break;
    }
  }

  // Weights in nodes of functions and branches are not initializers of the graph.
  void ofInnerConstant(const GraphNode &node) {
    const onnx::AttributeProto *value = node.attribute("value");
    if (!node.isInner || !node.domain.empty() || node.opType() != "Constant" || !value ||
        !value->has_t() || !isFloat(value->t().data_type()) || node.outputs.size() != 1)
      return;
    SmallVector<int64_t> shape(value->t().dims().begin(), value->t().dims().end());
    bool isLarge = std::optional<int64_t>(nn::elementCount(shape)).value_or(0) > 1;
    if (isLarge && any_of(graph.uses(node.outputs[0]), [&](const Use &use) {
          return nn::isWeight(
              nn::onnxWeight(use.node->domain, use.node->opType(), use.index, shape));
        }))
      doubts.add(Finding::mayBeParameter, node.outputs[0],
                 "a constant inside a function or a branch, which has to be an initializer of the "
                 "graph to be trained");
  }

  const Decisions &decisions;
  const ModelFile &file;
  const Graph &graph;
  Doubts &doubts;
};

} // namespace

// The loss of such a model is not a number in the first step.
static void warnOfNonFinite(const Decisions &decisions, const ModelFile &file, Report &report) {
  std::vector<std::string> names;
  for (const auto &decision : decisions)
    if (decision->role == Role::trained || decision->role == Role::buffer)
      if (!isSound(*decision->tensor))
        names.push_back(decision->name().str());
  if (!names.empty())
    report.warning(Finding::nonFiniteParameters, file.path(),
                   (names.size() == 1 ? "parameter " : "parameters ") + quotedList(names, kShown) +
                       (names.size() == 1 ? " holds" : " hold") + " NaN or +infinity",
                   "a file written before the model diverged");
}

// Whether a moving average is kept beside it or not.
static StringRef optimizerOf(const Recipe &recipe) { return train::ownNameOf(recipe.optimizer); }

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
      (void)report.refuse(Finding::stackedParameters, file.path(),
                          "initializer '" + decision->name() +
                              "' holds several parameters of the module, " +
                              quotedList(decision->stackedOf) + ", each of which " +
                              optimizerOf(recipe) + " updates as a whole",
                          "trainc.export; or torch.onnx.export(..., optimize=False)");
}

// Such as the rows of positions that the example had. They train as in the module, which cannot
// read them back: the rows that the exporter left out are in no file.
static void warnOfParts(const Decisions &decisions, const ModelFile &file, Report &report) {
  std::vector<std::string> parts;
  for (const auto &decision : decisions)
    if (decision->role == Role::trained && decision->isPart && decision->moduleTensor.empty())
      parts.push_back("'" + decision->name().str() + "' of '" + decision->moduleName + "'");
  if (parts.empty())
    return;
  const size_t more = parts.size() - std::min(parts.size(), kShown);
  parts.resize(parts.size() - more);
  report.warning(
      Finding::partOfParameter, file.path(),
      "the exporter chose elements of parameters: " + join(parts, ", ") +
          (more ? " and " + std::to_string(more) + " more" : "") +
          ": they train, but the module has no such tensors: state dicts have them "
          "under these names, --initialise does not find them, and the module's own stay "
          "as they are",
      "trainc.export; or torch.onnx.export(..., optimize=False); or --accept "
      "part-of-parameter, where the trained ONNX file is all that is needed");
}

static void warnOfIntegers(const Decisions &decisions, const ModelFile &file, Report &report) {
  std::vector<std::string> names;
  for (const auto &decision : decisions)
    if (decision->quantized)
      names.push_back(decision->name().str());
  if (!names.empty())
    report.warning(Finding::mayBeParameter, file.path(),
                   quotedList(names, kShown) + (names.size() == 1 ? " has" : " have") +
                       " integers in the file, which are not trained",
                   "--lora PATTERN, which trains adapters beside them; or --accept "
                   "may-be-parameter, where the other parameters are meant");
}

void reportDoubts(const Decisions &decisions, const ExportedProgram &program, const ModelFile &file,
                  const Graph &graph, const Recipe &recipe, Report &report) {
  warnOfNonFinite(decisions, file, report);
  refuseStacked(decisions, file, recipe, report);
  if (recipe.trains)
    warnOfParts(decisions, file, report);
  if (!recipe.trains || !recipe.trainOnly.empty())
    return;
  if (recipe.adapters.empty())
    warnOfIntegers(decisions, file, report);
  Doubts doubts;
  if (!program.isRecorded()) {
    if (isOptimizedByOnnxRuntime(file))
      findMerged(decisions, graph, doubts);
    findFolded(decisions, graph, doubts);
    findComputed(decisions, file, graph, doubts);
    findFoldedConstants(decisions, file, graph, doubts);
    UntoldDoubts(decisions, file, graph, doubts).find();
  } else if (!program.isOfTrainc()) // requires_grad=False is not recorded
    for (const auto &decision : decisions)
      if (StringRef series = decision->role == Role::trained ? seriesIn(*decision->tensor) : "";
          !series.empty())
        doubts.add(Finding::mayBeConstant,
                   decision->moduleName.empty() ? decision->name()
                                                : StringRef(decision->moduleName),
                   series);
  doubts.report(file, report);
}

} // namespace trainc::reader
