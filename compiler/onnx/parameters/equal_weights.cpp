// SPDX-License-Identifier: Apache-2.0
//
// Decides which tensors are one weight, and which only start equal.
//
// PyTorch's TorchScript exporter, in inference mode, stores equal initializers once and writes an
// `Identity` for each further one. There a copy under a module's name is a parameter of its own: a
// parameter that the module has twice reaches the exporter once. Scripted modules are an exception:
// their nodes have no module's path, so the file does not tell. A copy under an invented name, such
// as a transposed weight, is the same weight if two calls of one module read both. If two modules
// read them, it mostly stays open. In all other files an `Identity` of a weight is that weight.
//
// Exporters also write one weight twice, with its values or transposed: the two are tied again.
#include "compiler/onnx/graph/recurrent_layout.h"
#include "compiler/onnx/parameters/claims.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace trainc::reader {

using nn::OnnxWeight;
using onnx::NodeProto;

// ---- calls of modules

namespace {

struct WeightUse {
  std::optional<std::string> path; // of the node's module; none where its name does not tell
  bool isRecurrent = false;        // its gates have another order than the module's
};

/// Which nodes PyTorch's TorchScript exporter made of one module. Their names bear its path
/// (modulePath), with a number at the end for each further call of it: h.0.c_fc, then h.0.c_fc_1.
class ModuleCalls {
public:
  /// A node in a module uses an initializer; those with a module's name are evidence.
  void addUse(StringRef path, StringRef initializer) {
    if (initializer.contains('.') && !isExporterName(initializer))
      modules[path.str()].insert(initializer.rsplit('.').first.str());
  }

  /// Whether two weights with these values are one parameter of the module. One of them at least
  /// has no name. They are if two calls of one module use them, and they are not if all elements
  /// are equal, as fresh ones may be, and two modules use them. Else two modules may share it, or
  /// one be a copy of the other, even where all besides is equal: a copy may have been given the
  /// weight again. Nor does a file tell of one call, which may use a parameter twice or two of
  /// them.
  std::optional<bool> areOneWeight(ArrayRef<WeightUse> a, ArrayRef<WeightUse> b,
                                   const TensorBytes &values) const {
    bool areTwo = !a.empty() && !b.empty();
    for (const WeightUse &one : a)
      for (const WeightUse &other : b) {
        const bool areTold = one.path && other.path && *one.path != *other.path;
        std::optional<bool> same = areTold ? areOne(*one.path, *other.path) : std::nullopt;
        if (same.value_or(false))
          return isUniform(values) ? std::nullopt : std::optional(true);
        areTwo = areTwo && same.has_value() &&
                 (isUniform(values) || one.isRecurrent || other.isRecurrent);
      }
    return areTwo ? std::optional(false) : std::nullopt;
  }

private:
  // Nullopt where they may be of a module that is called twice, or of another one whose own name
  // ends in a number.
  std::optional<bool> areOne(StringRef a, StringRef b) const {
    if (a == b)
      return true;
    if (firstCall(a) != b && firstCall(b) != a && firstCall(a) != firstCall(b))
      return false;
    auto one = modules.find(a), other = modules.find(b);
    if (one == modules.end() || other == modules.end())
      return std::nullopt;
    return any_of(one->second, [&](const std::string &name) { return other->second.count(name); });
  }

  // The path without the number of a further call.
  static StringRef firstCall(StringRef path) {
    StringRef base = path.rtrim("0123456789");
    return base.size() < path.size() && base.ends_with("_") ? base.drop_back() : path;
  }

  std::map<std::string, std::set<std::string>, std::less<>> modules; // of initializers, by path
};

} // namespace

// ---- copies by Identity nodes

namespace {

class CopySeparator {
public:
  CopySeparator(ModelFile &file, Ledger &ledger, Report &report)
      : file(file), ledger(ledger), report(report) {
    bool hasPaths = false, hasModules = false;
    for (const NodeProto &node : file.graph().node()) {
      if (isOnnx(node, "Identity") && node.input_size() == 1 && node.output_size() == 1)
        sources[node.output(0)] = node.input(0);
      const std::optional<std::string> path = modulePath(node.name());
      hasPaths |= path.has_value();
      hasModules |= path && !path->empty();
      for (int i = 0; i < node.input_size(); ++i) {
        users[node.input(i)].push_back({&node, i});
        if (path && isInitializer(node.input(i)))
          calls.addUse(*path, node.input(i));
      }
    }
    ledger.tellsNoModules = hasPaths && !hasModules;
  }

  Changes run() {
    for (NodeProto &node : *file.editableGraph().mutable_node())
      if (isCopy(node))
        separate(node);
    if (!computed.empty())
      (void)report.refuse(
          Finding::computedByExporter, file.path(),
          "the exporter wrote parameters in the place of equal values that it had "
          "computed, and the file does not tell from what: " +
              join(computed, ", "),
          "trainc.export; or torch.onnx.export(..., dynamo=False, do_constant_folding=False)");
    return std::move(changes);
  }

private:
  bool isCopy(const NodeProto &node) const {
    if (!isOnnx(node, "Identity") || node.input_size() != 1 || node.output_size() != 1)
      return false;
    const TensorBytes *values = file.find(node.input(0));
    return values && isFloat(values->dataType) &&
           none_of(file.graph().output(),
                   [&](const auto &one) { return one.name() == node.output(0); });
  }

  // Also a copy of one.
  bool isInitializer(StringRef name) const {
    auto copy = sources.find(name);
    return file.find(copy == sources.end() ? name : StringRef(copy->second)) != nullptr;
  }

  // Of what uses a value, beside copies of it.
  std::vector<WeightUse> usesOf(const std::string &value) const {
    std::vector<WeightUse> uses;
    for (const auto &[node, input] : users.lookup(value))
      if (!isOnnx(*node, "Identity"))
        uses.push_back({modulePath(node->name()), isRecurrent(node->domain(), node->op_type())});
    return uses;
  }

  bool isUsedAsWeight(const std::string &value, ArrayRef<int64_t> shape) const {
    return any_of(users.lookup(value), [&](const auto &user) {
      return nn::isWeight(weightOf(*user.first, user.second, shape));
    });
  }

  void separate(NodeProto &node) {
    const std::string source = node.input(0), copy = node.output(0);
    const TensorBytes &values = *file.find(source);
    if (isExporterName(copy) && !isApart(node, source, copy, values))
      return;
    if (!isExporterName(copy) && ledger.tellsNoModules && !isUniform(values))
      ledger.undecided.push_back({source, copy});
    changes.push_back(
        {.tensor = sharedCopy(values, copy), .origin = apartFrom(source), .removed = &node});
  }

  // Of a copy under an invented name. Where it is a copy of a parameter under its own name that is
  // not a weight, or which the same module uses, it is what was computed from some parameter (-v,
  // of zeros).
  bool isApart(NodeProto &node, const std::string &source, const std::string &copy,
               const TensorBytes &values) {
    const std::vector<WeightUse> own = usesOf(copy);
    const bool isWeight = own.empty() || isUsedAsWeight(copy, values.shape); // none: in bodies
    std::vector<std::string> others{source}, mayBeOne;
    llvm::append_range(others, apart[source]);
    for (const std::string &other : others) {
      std::optional<bool> areOne = calls.areOneWeight(own, usesOf(other), values);
      const bool isOfParameter = other == source && !isExporterName(source);
      if (isOfParameter && (!isWeight || areOne.value_or(false))) {
        computed.push_back("'" + source + "' for '" + copy + "'");
        return false;
      }
      if (!areOne)
        mayBeOne.push_back(other);
      else if (*areOne) { // one weight, used twice
        changes.push_back({.user = &node, .reads = other});
        return false;
      }
    }
    if (!mayBeOne.empty() && !isWeight && !isUsedAsWeight(source, values.shape))
      return false;
    for (const std::string &other : mayBeOne)
      ledger.undecided.push_back({other, copy});
    apart[source].push_back(copy);
    return true;
  }

  ModelFile &file;
  Ledger &ledger;
  Report &report;
  ModuleCalls calls;
  Changes changes;
  std::vector<std::string> computed; // pairs: one is a function of some parameter
  std::map<std::string, std::string, std::less<>> sources;         // of copies, by their names
  StringMap<std::vector<std::pair<const NodeProto *, int>>> users; // and their inputs, by value
  std::map<std::string, std::vector<std::string>> apart; // copies under invented names, by source
};

} // namespace

Changes copiesOfWeights(ModelFile &file, Ledger &ledger, Report &report) {
  const bool mayHaveCopies = isFromPyTorch(file) && !ledger.program.isRecorded();
  return mayHaveCopies ? CopySeparator(file, ledger, report).run() : Changes();
}

// ---- equal initializers

static void tie(Parameter &other, Parameter &canonical, bool transposed) {
  other.role = Role::tied;
  other.canonical = &canonical;
  other.transposed = transposed;
  other.reason = (transposed ? "transpose of " : "copy of ") + canonical.name +
                 ", written twice by the exporter: tied again";
}

namespace {
struct TieCandidate {
  Parameter *parameter;
  bool isTable, isMatrix;
};
} // namespace

// Canonical first: what has a name, then what is an embedding table, then the first used. One
// number throughout says something only where one module uses it in several places.
static std::vector<TieCandidate> tieCandidates(const Parameters &parameters, const Graph &graph) {
  std::vector<TieCandidate> candidates;
  for (const auto &parameter : parameters) {
    if (!parameter->isParameter() || parameter->role == Role::buffer || parameter->quantized)
      continue;
    TieCandidate one{parameter.get(), false, false};
    bool allTold = true;
    for (const Use &use : graph.uses(parameter->name)) {
      const OnnxWeight weight = weightOf(use, parameter->shape);
      one.isTable |= weight == OnnxWeight::table;
      one.isMatrix |= weight == OnnxWeight::matrix || use.node->opType() == "Transpose";
      allTold &= use.node->path.has_value();
    }
    if (!isUniform(*parameter->tensor) || (one.isMatrix && allTold))
      candidates.push_back(one);
  }
  auto key = [](const TieCandidate &one) {
    return std::tuple(one.parameter->exporterMade, !one.isTable, one.parameter->firstUse);
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
  const bool isMatrix = shape.size() == 2;
  const int64_t step = isMatrix ? shape[1] + 1 : 1;
  const int64_t elements =
      std::min(kCompared, isMatrix ? std::min(shape[0], shape[1]) : tensor.count);
  llvm::sort(shape);
  std::string key = shapeText(shape);
  const int64_t width = elementBytes(tensor.dataType);
  for (int64_t i = 0; i < elements; ++i)
    key.append(tensor.bytes.data() + i * step * width, width);
  return key;
}

static std::vector<WeightUse> usesOf(const Graph &graph, const Parameter &parameter,
                                     const ModelFile &file) {
  std::vector<WeightUse> uses;
  for (const Use &use : graph.uses(parameter.name))
    uses.push_back(
        {use.node->path, isFromPyTorch(file) && isRecurrent(use.node->domain, use.node->opType())});
  return uses;
}

// Without a record only equal values tell. Two weights that both have names are apart, unless one
// is an embedding table and the other multiplies in a file of another maker than PyTorch, which
// writes a parameter once: separate weights may start equal on purpose. One without a name is that
// of the module which uses it.
std::vector<EqualWeights> tieByValue(const Parameters &parameters, const Graph &graph,
                                     const Ledger &ledger, const ModelFile &file) {
  std::vector<EqualWeights> undecided;
  ModuleCalls calls;
  for (const auto &parameter : parameters)
    for (const Use &use : graph.uses(parameter->name))
      if (use.node->path)
        calls.addUse(*use.node->path, parameter->name);
  llvm::StringMap<std::vector<TieCandidate>> earlier; // by tieKey
  for (const TieCandidate &candidate : tieCandidates(parameters, graph)) {
    Parameter &other = *candidate.parameter;
    std::vector<TieCandidate> &alike = earlier[tieKey(*other.tensor)];
    const bool isKnown = ledger.origin.count(other.name); // not to be the one it was merged with
    const bool areTwo = !other.exporterMade && isFromPyTorch(file) && !ledger.tellsNoModules;
    std::vector<EqualWeights> mayBeOne;
    for (size_t i = 0; i < alike.size() && other.isParameter(); ++i) {
      Parameter &canonical = *alike[i].parameter;
      const std::optional<bool> transposed = isTransposeOf(*other.tensor, *canonical.tensor);
      if (!transposed)
        continue;
      const bool embeddingAndHead = other.shape.size() == 2 && alike[i].isTable &&
                                    candidate.isMatrix && !isUniform(*other.tensor) && !isKnown;
      std::optional<bool> areOne = false;
      if (embeddingAndHead && !areTwo)
        areOne = true;
      else if (other.exporterMade)
        areOne = calls.areOneWeight(usesOf(graph, canonical, file), usesOf(graph, other, file),
                                    *canonical.tensor);
      if (areOne.value_or(false))
        tie(other, canonical, *transposed);
      else if (!areOne && !isKnown)
        mayBeOne.push_back({canonical.name, other.name});
    }
    if (!other.isParameter())
      continue;
    llvm::append_range(undecided, mayBeOne);
    alike.push_back(candidate);
  }
  return undecided;
}

// With a record, all that was made from one parameter must be that parameter: equal parts of it may
// be from different places.
void tieByRecord(const Parameters &parameters, StringMap<std::vector<Parameter *>> &madeFrom,
                 const ModelFile &file, Report &report) {
  for (const auto &parameter : parameters)
    if (parameter->isParameter() && !parameter->exporterMade)
      if (auto made = madeFrom.find(parameter->name); made != madeFrom.end())
        made->second.insert(made->second.begin(), parameter.get());
  for (auto &[origin, group] : madeFrom) {
    Parameter &first = *group[0];
    for (Parameter *other : ArrayRef(group).drop_front()) {
      const bool mayBeParts = first.exporterMade && (first.isPart || other->isPart);
      const std::optional<bool> transposed =
          mayBeParts ? std::nullopt : isTransposeOf(*other->tensor, *first.tensor);
      if (transposed) {
        tie(*other, first, *transposed);
        continue;
      }
      (void)report.refuse(Finding::computedByExporter, file.path(),
                          "the exporter made both '" + first.name + "' and '" + other->name +
                              "' from parameter '" + origin + "', " +
                              (mayBeParts ? "as parts of it" : "with different values") +
                              ": training would part them",
                          kWholeExport);
    }
  }
}

} // namespace trainc::reader
