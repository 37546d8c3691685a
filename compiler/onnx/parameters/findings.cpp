// SPDX-License-Identifier: Apache-2.0
//
// Reports what the file leaves open. If it does not record what trains, one warning gives the
// counts, the tensors that are not plain weights of layers, and the options to copy. Equal weights
// that may be one weight are an error, as are filters that the exporter certainly folded.
#include "compiler/onnx/graph/recurrent_layout.h"
#include "compiler/onnx/parameters/claims.h"
#include "compiler/onnx/parameters/quantized_weights.h"
#include "dialects/train/optimizer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"

using namespace llvm;

namespace trainc::reader {

constexpr size_t kShown = 3;   // names of one kind
constexpr size_t kAdvised = 8; // names in options to copy

static std::string freezing(ArrayRef<std::string> names) {
  if (names.size() > kAdvised)
    return "--freeze PATTERN";
  auto option = [](StringRef name) { return "--freeze " + quotedForShell(Regex::escape(name)); };
  return join(map_range(names, option), " ");
}

/// Whether ONNX Runtime's optimizer wrote it, which imports all of its own domains.
static bool isOptimizedByOnnxRuntime(const ModelFile &file) {
  return any_of(file.model().opset_import(),
                [](const auto &set) { return set.domain() == "com.microsoft.nchwc"; });
}

namespace {

/// The one question about a file that records no roles.
class Question {
public:
  Question(const Parameters &parameters, const Ledger &ledger, const ModelFile &file,
           const Graph &graph)
      : parameters(parameters), ledger(ledger), file(file), graph(graph),
        ofPyTorch(isFromPyTorch(file)) {}

  void ask(Report &report) {
    for (const auto &one : parameters)
      if (one->isAnswered)
        continue;
      else if (one->role == Role::trained && !isPlain(*one))
        trained.push_back(one->name);
      else if (one->role == Role::constant && mayBeParameter(*one))
        constants.push_back(one->name);
    for (const GraphNode *node : graph.nodes())
      if (isWeightInside(*node))
        constants.push_back(node->outputs[0]);
    if (trained.empty() && constants.empty())
      return;
    const std::string trainAll =
        "--train-only with patterns of all parameters, where the module trains more";
    report.warning(
        Finding::unrecordedRoles, file.path(),
        "the file does not record what the module trains: here " + parameterCounts(parameters) +
            ". Not plain weights of layers: " + named(),
        (isOptimizedByOnnxRuntime(file)
             ? "the file before ONNX Runtime's optimizer, which merges equal weights; "
             : "") +
            (trained.empty() ? "" : freezing(trained) + ", where it does not train them; ") +
            (constants.empty() ? "" : trainAll + "; ") +
            (ofPyTorch ? "trainc.export, which records it; " : "") +
            "or --accept unrecorded-roles");
  }

private:
  std::string named() const {
    std::string text;
    if (!trained.empty())
      text = quotedList(trained, kShown) + (trained.size() == 1 ? " trains" : " train");
    if (!constants.empty())
      text += (text.empty() ? "" : "; ") + quotedList(constants, kShown) +
              (constants.size() == 1 ? " is a constant" : " are constants");
    return text;
  }

  // What PyTorch's layers learn keeps its name in TorchScript's files, except the matrix of a
  // linear layer, which is transposed, and the weights of recurrent layers. What only scales or is
  // added may be a registered buffer there.
  bool isPlain(const Parameter &one) const {
    const bool isFromNode = ledger.fromNodes.contains(one.name);
    if ((isFromNode && (ofPyTorch || one.tensor->count == 1)) || one.shape.empty() || isMerged(one))
      return false;
    if (isTorchScriptName(one.name))
      return !one.inState.empty() || !one.pieces.empty() || isOfLinear(one);
    const auto axes = llvm::count_if(one.shape, [](int64_t size) { return size > 1; });
    if (!ofPyTorch)
      return (axes <= 1 && !one.exporterMade && !isFromNode) || isLearntByLayer(one);
    const StringRef attribute = attributeOf(one.name);
    return attribute.contains("weight") || (attribute.contains("bias") && one.shape.size() == 1) ||
           isLearntByLayer(one);
  }

  bool isOfLinear(const Parameter &one) const {
    return any_of(graph.uses(one.name), [&](const Use &use) {
      return isRecurrent(use.node->domain, use.node->opType()) || isOnnx(*use.node, "MatMul");
    });
  }

  bool isLearntByLayer(const Parameter &one) const {
    return any_of(graph.uses(one.name), [&](const Use &use) {
      const StringRef opType = use.node->opType();
      return multiplies(use, *one.tensor) ||
             (opType != "Add" && opType != "Mul" && nn::isWeight(weightOf(use, one.shape))) ||
             (one.shape.size() == 1 && isAddedToProduct(graph, use));
    });
  }

  // ONNX Runtime's optimizer keeps one of equal weights; fresh ones have one number throughout.
  bool isMerged(const Parameter &one) const {
    if (!isOptimizedByOnnxRuntime(file))
      return false;
    std::set<const GraphNode *> readers;
    for (const Use &use : graph.uses(one.name))
      if (nn::isWeight(weightOf(use, one.shape)))
        readers.insert(use.node);
    return readers.size() > 1 && isUniform(*one.tensor);
  }

  // A temperature that is learnt, or an epsilon that is not. PyTorch writes numbers of the code as
  // Constant nodes; other exporters invent names for theirs. What is the same throughout may fill.
  bool mayBeParameter(const Parameter &one) const {
    if (one.isAsked)
      return true;
    if (!one.isOfFloats() || one.isFixed || one.isPartOfQuantized || one.tensor->count == 0 ||
        one.isSetting || isOnlyCompared(graph, one.name))
      return false;
    if (one.tensor->count == 1)
      return !one.exporterMade || isBesideProduct(one) ||
             (isTorchScriptName(one.name) &&
              (one.shape.empty() || isCalculatedWith(graph, one.name, ofPyTorch)));
    const bool isOfCode = ofPyTorch && ledger.fromNodes.contains(one.name);
    return !isUniform(*one.tensor) || (!isOfCode && isCalculatedWith(graph, one.name, ofPyTorch));
  }

  bool isBesideProduct(const Parameter &one) const {
    return any_of(usesBehindViews(graph, one.name), [&](const Use &use) {
      return isAddedToProduct(graph, use) || (use.node->opType() == "Gemm" && use.index == 2);
    });
  }

  // Weights in nodes of functions are not initializers of the graph.
  bool isWeightInside(const GraphNode &node) const {
    const onnx::AttributeProto *value = node.attribute("value");
    if (!node.isInner || !node.domain.empty() || node.opType() != "Constant" || !value ||
        !value->has_t() || !isFloat(value->t().data_type()) || node.outputs.size() != 1)
      return false;
    const SmallVector<int64_t> shape(value->t().dims().begin(), value->t().dims().end());
    return std::optional<int64_t>(nn::elementCount(shape)).value_or(0) > 1 &&
           nn::isWeight(learntAs(graph, node.outputs[0], shape).as);
  }

  const Parameters &parameters;
  const Ledger &ledger;
  const ModelFile &file;
  const Graph &graph;
  const bool ofPyTorch;
  std::vector<std::string> trained, constants;
};

} // namespace

// In groups: pairs with a trained one, unless --train-only says that they are two.
static std::string groupsOf(const Parameters &parameters, ArrayRef<EqualWeights> undecided,
                            const Recipe &recipe) {
  llvm::StringSet<> trained;
  for (const auto &one : parameters)
    if ((one->canonical ? one->canonical->role : one->role) == Role::trained)
      trained.insert(one->name);
  std::vector<std::vector<std::string>> groups;
  llvm::StringMap<size_t> groupOf;
  for (const EqualWeights &pair : undecided) {
    const int count = int(trained.contains(pair.first)) + int(trained.contains(pair.second));
    if (count == 0 || (count == 2 && !recipe.trainOnly.empty()))
      continue;
    auto known = groupOf.find(groupOf.count(pair.first) ? pair.first : pair.second);
    const size_t group = known == groupOf.end() ? groups.size() : known->second;
    groups.resize(std::max(groups.size(), group + 1));
    for (const std::string &name : {pair.first, pair.second})
      if (groupOf.try_emplace(name, group).second)
        groups[group].push_back(name);
  }
  return join(map_range(groups, [](const auto &group) { return quotedList(group); }), "; ");
}

static void refuseEqual(const std::string &groups, const Ledger &ledger, const ModelFile &file,
                        Report &report) {
  if (groups.empty())
    return;
  const std::string module =
      ledger.tellsNoModules ? ", and the module itself, not what torch.jit.script made of it" : "";
  (void)report.refuse(
      Finding::equalWeights, file.path(),
      "weights are equal, and the file does not tell whether the module has one or several: " +
          groups,
      (isFromPyTorch(file)
           ? "trainc.export; or torch.onnx.export(..., dynamo=False, do_constant_folding=False)" +
                 module
           : std::string("one initializer where it is one, and names of their own where not")) +
          "; or, where the module has several, --train-only with patterns of all parameters");
}

// Exporters of models in inference mode fold batch norm, and weight norm, into filters. PyTorch's
// TorchScript exporter then invents a name (in files whose every name is a number, numbers are the
// modules' own), tf2onnx says so in it.
static void refuseFolded(const Parameters &parameters, const ModelFile &file, const Graph &graph,
                         Report &report) {
  const bool namesModules = any_of(parameters, [](const auto &one) {
    return one->isParameter() && !one->exporterMade && StringRef(one->name).contains('.');
  });
  std::vector<std::string> names;
  for (const auto &one : parameters) {
    const bool isFilter = any_of(graph.uses(one->name), [&](const Use &use) {
      return weightOf(use, one->shape) == nn::OnnxWeight::filter;
    });
    const bool isInvented = isTorchScriptName(one->name) ||
                            (one->exporterMade && namesModules && !isPaddleName(one->name));
    if (one->role == Role::trained && isFilter &&
        (isInvented || StringRef(one->name).contains("_fused_bn")))
      names.push_back(one->name);
  }
  if (names.empty())
    return;
  (void)report.refuse(
      Finding::computedByExporter, file.path(),
      "the exporter computed initializers from parameters: " + quotedList(names, kShown) +
          " (a filter with the batch norm or weight norm after it, or a parameter that is not a "
          "filter in the module): training this file would update a different model from the one "
          "you exported",
      "trainc.export; or torch.onnx.export(..., dynamo=False, "
      "training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False), or PRESERVE where "
      "parts of the module are in eval(); or the file before the norm was folded; or " +
          freezing(names) + ", which keeps them as they are");
}

// The loss of such a model is not a number in the first step.
static void warnOfNonFinite(const Parameters &parameters, const ModelFile &file, Report &report) {
  std::vector<std::string> names;
  for (const auto &one : parameters)
    if ((one->role == Role::trained || one->role == Role::buffer) && !isSound(*one->tensor))
      names.push_back(one->name);
  if (!names.empty())
    report.warning(Finding::nonFiniteParameters, file.path(),
                   (names.size() == 1 ? "parameter " : "parameters ") + quotedList(names, kShown) +
                       (names.size() == 1 ? " holds" : " hold") + " NaN or +infinity",
                   "a file written before the model diverged");
}

// An update that takes norms, rows or columns of each parameter has no meaning for several. Muon's
// does so of matrices that are not in AdamW's group.
static void refuseStacked(const Parameters &parameters, const ModelFile &file, const Recipe &recipe,
                          Report &report) {
  const StringRef optimizer = train::ownNameOf(recipe.optimizer);
  for (const auto &one : parameters) {
    const bool isWhole = optimizer == "muon" ? one->shape.size() == 2 && one->group != "adamw"
                                             : optimizer == "lamb" || optimizer == "adafactor";
    if (one->role == Role::trained && !one->stackedOf.empty() && isWhole)
      (void)report.refuse(
          Finding::stackedParameters, file.path(),
          "initializer '" + one->name + "' holds several parameters of the module, " +
              quotedList(one->stackedOf) + ", each of which " + optimizer + " updates as a whole",
          kWholeExport);
  }
}

// Such as the rows of positions that the example had. They train as in the module, which cannot
// read them back: the rows that the exporter left out are in no file.
static void warnOfParts(const Parameters &parameters, const ModelFile &file, Report &report) {
  std::vector<std::string> parts;
  for (const auto &one : parameters)
    if (one->role == Role::trained && one->isPart && one->inState.empty())
      parts.push_back("'" + one->name + "' of '" + one->moduleName + "'");
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
      std::string(kWholeExport) +
          "; or --accept part-of-parameter, where the trained ONNX file is all that is needed");
}

static void warnOfIntegers(const Parameters &parameters, const ModelFile &file, Report &report) {
  std::vector<std::string> names;
  for (const auto &one : parameters)
    if (one->quantized)
      names.push_back(one->name);
  if (!names.empty())
    report.warning(Finding::unrecordedRoles, file.path(),
                   quotedList(names, kShown) + (names.size() == 1 ? " has" : " have") +
                       " integers in the file, which are not trained",
                   "--lora PATTERN, which trains adapters beside them; or --accept "
                   "unrecorded-roles, where the other parameters are meant");
}

void reportDoubts(const Parameters &parameters, ArrayRef<EqualWeights> undecided,
                  const Ledger &ledger, const ModelFile &file, const Graph &graph,
                  const Recipe &recipe, Report &report) {
  if (recipe.trains)
    refuseEqual(groupsOf(parameters, undecided, recipe), ledger, file, report);
  warnOfNonFinite(parameters, file, report);
  refuseStacked(parameters, file, recipe, report);
  if (!recipe.trains)
    return;
  warnOfParts(parameters, file, report);
  if (!recipe.trainOnly.empty())
    return;
  if (recipe.adapters.empty())
    warnOfIntegers(parameters, file, report);
  if (ledger.program.isRecorded())
    return;
  const size_t before = report.size();
  refuseFolded(parameters, file, graph, report);
  if (report.size() == before)
    Question(parameters, ledger, file, graph).ask(report);
}

} // namespace trainc::reader
