// SPDX-License-Identifier: Apache-2.0
//
// Finds the weights that an exporter wrote more than once, with their values or transposed: trained
// apart, one parameter of the module would become several.
#include "compiler/onnx/graph/recurrent_layout.h"
#include "compiler/onnx/provenance/parameters.h"
#include "compiler/onnx/provenance/torch_script/module_calls.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace trainc::reader {

using nn::OnnxWeight;

static void tie(Decision &other, const Decision &canonical, bool transposed) {
  other.role = Role::tied;
  other.canonical = &canonical;
  other.transposed = transposed;
  other.reason = (transposed ? "transpose of " : "copy of ") + canonical.name().str() +
                 ", written twice by the exporter: tied again";
}

static bool tieIfSame(Decision &other, const Decision &canonical) {
  for (bool transposed : {false, true})
    if (sameValues(*other.tensor, *canonical.tensor, transposed)) {
      tie(other, canonical, transposed);
      return true;
    }
  return false;
}

namespace {
struct TieCandidate {
  Decision *decision;
  bool isTable, isMatrix;
};
} // namespace

// Canonical first: what has a name, then what is an embedding table, then the first used.
static std::vector<TieCandidate> tieCandidates(const Decisions &decisions, const Graph &graph) {
  std::vector<TieCandidate> candidates;
  // One number throughout says something only where one module uses it in several places.
  auto isTold = [&](const Decision &decision) {
    return !isUniform(*decision.tensor) || (isUsedAs(graph, decision, OnnxWeight::matrix) &&
                                            all_of(graph.uses(decision.name()), [](const Use &use) {
                                              return use.node->path.has_value();
                                            }));
  };
  for (const auto &decision : decisions)
    if (decision->isParameter() && decision->role != Role::buffer && isTold(*decision))
      candidates.push_back({decision.get(), isUsedAs(graph, *decision, OnnxWeight::table),
                            isUsedAs(graph, *decision, OnnxWeight::matrix)});
  auto key = [](const TieCandidate &one) {
    return std::tuple(one.decision->exporterMade, !one.isTable, one.decision->firstUse);
  };
  llvm::stable_sort(candidates,
                    [&](const TieCandidate &a, const TieCandidate &b) { return key(a) < key(b); });
  return candidates;
}

// The same for tensors that are equal, and for one and its transpose: sizes, and the first elements
// of the diagonal.
static std::string tieKey(const TensorBytes &tensor) {
  constexpr int64_t kCompared = 16; // elements
  SmallVector<int64_t> shape = tensor.shape;
  bool isMatrix = shape.size() == 2;
  int64_t step = isMatrix ? shape[1] + 1 : 1;
  int64_t elements = std::min(kCompared, isMatrix ? std::min(shape[0], shape[1]) : tensor.count);
  llvm::sort(shape);
  std::string key = join(map_range(shape, [](int64_t size) { return std::to_string(size); }), "x");
  int64_t width = elementBytes(tensor.dataType);
  for (int64_t i = 0; i < elements; ++i)
    key.append(tensor.bytes.data() + i * step * width, width);
  return key;
}

static std::vector<WeightUse> usesOf(const Graph &graph, const Decision &decision,
                                     const ModelFile &file) {
  std::vector<WeightUse> uses;
  for (const Use &use : graph.uses(decision.name()))
    uses.push_back(
        {use.node->path, isFromPyTorch(file) && isRecurrent(use.node->domain, use.node->opType())});
  return uses;
}

// Without a record only equal values tell. Two weights that both have names are apart, unless one
// is an embedding table and the other multiplies in a file of another maker than PyTorch, which
// writes a parameter once: separate weights may start equal on purpose. One without a name is that
// of the module which uses it (module_calls.h).
std::vector<EqualWeights> tieByValue(const Decisions &decisions, const Graph &graph,
                                     const Separation &separation, const ModelFile &file) {
  std::vector<EqualWeights> undecided;
  std::vector<TieCandidate> candidates = tieCandidates(decisions, graph);
  ModuleCalls calls;
  for (const auto &decision : decisions)
    for (const Use &use : graph.uses(decision->name()))
      if (use.node->path)
        calls.addUse(*use.node->path, decision->name());
  llvm::StringMap<std::vector<TieCandidate>> earlier; // by tieKey
  for (const TieCandidate &candidate : candidates) {
    Decision &other = *candidate.decision;
    if (other.quantized) // integers are what they are
      continue;
    std::vector<TieCandidate> &alike = earlier[tieKey(*other.tensor)];
    bool isKnown = separation.origin.count(other.name()); // not to be the one it was merged with
    bool isNamed = !other.exporterMade, uniform = isUniform(*other.tensor);
    bool areTwo = isNamed && isFromPyTorch(file) && !separation.tellsNoModules;
    std::vector<std::string> mayBeOne;
    for (size_t i = 0; i < alike.size() && other.isParameter(); ++i) {
      const Decision &canonical = *alike[i].decision;
      bool isCopy = sameValues(*other.tensor, *canonical.tensor, /*transposed=*/false);
      if (!isCopy && !sameValues(*other.tensor, *canonical.tensor, /*transposed=*/true))
        continue;
      bool embeddingAndHead = other.tensor->shape.size() == 2 && alike[i].isTable &&
                              candidate.isMatrix && !uniform && !isKnown;
      if (embeddingAndHead && !areTwo) {
        tie(other, canonical, !isCopy);
        break;
      }
      if (isNamed)
        continue;
      std::optional<bool> areOne = calls.areOneWeight(
          usesOf(graph, canonical, file), usesOf(graph, other, file), *canonical.tensor);
      if (areOne.value_or(false))
        tie(other, canonical, !isCopy);
      else if (!areOne && !isKnown)
        mayBeOne.push_back(canonical.name().str());
    }
    if (!other.isParameter())
      continue;
    for (const std::string &name : mayBeOne)
      undecided.push_back({name, other.name().str()});
    alike.push_back(candidate);
  }
  return undecided;
}

void refuseUndecided(const Decisions &decisions, ArrayRef<EqualWeights> undecided,
                     std::vector<std::string> pairs, const Separation &separation,
                     const ModelFile &file, const Recipe &recipe, Report &report) {
  if (!recipe.trains)
    return;
  llvm::StringSet<> trained;
  for (const auto &decision : decisions)
    if ((decision->canonical ? decision->canonical->role : decision->role) == Role::trained)
      trained.insert(decision->name());
  std::vector<std::vector<std::string>> groups;
  llvm::StringMap<size_t> groupOf;
  for (const EqualWeights &pair : undecided) {
    const int count = int(trained.contains(pair.first)) + int(trained.contains(pair.second));
    bool areSeveral = count == 2 && !recipe.trainOnly.empty(); // as the recipe says
    if (count == 0 || areSeveral)
      continue;
    auto known = groupOf.find(groupOf.count(pair.first) ? pair.first : pair.second);
    const size_t group = known == groupOf.end() ? groups.size() : known->second;
    groups.resize(std::max(groups.size(), group + 1));
    for (const std::string &name : {pair.first, pair.second})
      if (groupOf.try_emplace(name, group).second)
        groups[group].push_back(name);
  }
  if (groups.empty() && pairs.empty())
    return;
  for (const auto &group : groups)
    pairs.push_back(quotedList(group));
  const char *advice =
      !isFromPyTorch(file) ? "one initializer where it is one, and names of their own where not"
      : separation.tellsNoModules
          ? "trainc.export; or torch.onnx.export(..., dynamo=False, do_constant_folding=False), "
            "and the module itself, not what torch.jit.script made of it"
          : "trainc.export; or torch.onnx.export(..., dynamo=False, do_constant_folding=False)";
  (void)report.refuse(
      Finding::equalWeights, file.path(),
      "weights are equal, and the file does not tell whether the module has one or several: " +
          join(pairs, "; "),
      std::string(advice) +
          "; or, where the module has several, --train-only with patterns of all parameters");
}

// With a record, all that was made from one parameter must be that parameter: equal parts of it may
// be from different places.
void tieByRecord(const Decisions &decisions, MadeFrom &madeFrom, const ModelFile &file,
                 Report &report) {
  for (const auto &decision : decisions)
    if (decision->isParameter() && !decision->exporterMade) {
      auto made = madeFrom.find(decision->name());
      if (made != madeFrom.end())
        made->second.insert(made->second.begin(), decision.get());
    }
  for (auto &[origin, group] : madeFrom) {
    const Decision &first = *group[0];
    for (Decision *other : ArrayRef(group).drop_front()) {
      bool mayBeParts = first.exporterMade && (first.isPart || other->isPart);
      if (!mayBeParts && tieIfSame(*other, first))
        continue;
      (void)report.refuse(Finding::computedByExporter, file.path(),
                          "the exporter made both '" + first.name() + "' and '" + other->name() +
                              "' from parameter '" + origin + "', " +
                              (mayBeParts ? "as parts of it" : "with different values") +
                              ": training would part them",
                          "trainc.export; or torch.onnx.export(..., optimize=False)");
    }
  }
}

} // namespace trainc::reader
