// SPDX-License-Identifier: Apache-2.0
//
// Problem: exporters write `If` for what they could not decide: `squeeze` where a size is 1, a
// sampling rate, a training flag; and `Loop` for loops of Python. Programs here have no control
// flow.
//
// Method: the values that conditions and numbers of iterations need are imported by themselves,
// with both branches of every `If` in the graph; where a condition is known, the values after it
// are those of its branch. Once more with the branches and iterations that are left, which may have
// fewer parameters: until nothing is new. A `Loop` that ends by a condition is tried: so many of
// its iterations are in the graph, and once more twice as many where the condition holds after all
// of them. One inside of another makes what it makes after its last iteration, so that a walk
// decides the loops of all iterations around it, in their order; new ones are tried as often as
// those before them ran. What cannot be built is tried by itself, and half as often.
//
// Known weakness: what conditions need is imported twice or more. Loops that decide each other by
// anything else (a count, or what they put together) cost an import each.
#include "compiler/onnx/graph/conditions.h"
#include "compiler/onnx/import/importer.h"
#include "dialects/nn/onnx/onnx_refusal.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace trainc::reader {

using onnx::GraphProto;
using onnx::NodeProto;

constexpr int64_t kFirstTrial = 16; // iterations: beam searches and retries end within some ten
constexpr int64_t kLongestTrial = 1 << 14; // iterations; then 8 nodes of each are kInlinedNodes

static const nn::OnnxRefusal lateCondition({"Loop"},
                                           "a condition that holds behind 2^14 iterations");

static size_t ownInputs(const GraphNode &node) {
  return std::min<size_t>(node.proto->input_size(), node.inputs.size());
}

std::vector<std::string> decidingValues(const GraphNode &node) {
  if (node.key().empty())
    return {};
  if (node.isScan()) // after its own: the sizes of what it scans
    return {node.inputs.begin() + ownInputs(node), node.inputs.end()};
  if (!node.isIf() && !node.isLoop())
    return {};
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min<size_t>(node.inputs.size(), node.isLoop() ? 2 : 1); ++i)
    if (!node.inputs[i].empty())
      names.push_back(node.inputs[i]);
  const size_t own = ownInputs(node);
  for (size_t i = 0; i < node.tried; ++i)
    names.push_back(node.inputs[own + i * ((node.inputs.size() - own) / node.tried)]);
  return names;
}

static bool isDecided(const GraphNode &node) {
  return !decidingValues(node).empty() || (node.isLoop() && !node.key().empty());
}

/// How often a scan runs: all that it scans is as long.
static std::optional<int64_t> timesOf(const GraphNode &scan, ArrayRef<Known> sizes,
                                      Unknown &unknown) {
  auto axes = scan.integers("scan_input_axes");
  std::optional<int64_t> times;
  for (auto [k, one] : enumerate(sizes)) {
    const int64_t given = axes && k < axes->size() ? (*axes)[k] : 0, rank = one.tensor.count();
    const int64_t axis = given < 0 ? given + rank : given;
    if (axis < 0 || axis >= rank) {
      unknown = {"its scan_input_axes name axis " + std::to_string(given) + " of a value with " +
                     std::to_string(rank) + (rank == 1 ? " axis" : " axes"),
                 ""};
      return std::nullopt;
    }
    const int64_t length = one.tensor.integer(axis);
    if (times && *times != length) {
      unknown = {"the values that it scans have different lengths, " + std::to_string(*times) +
                     " and " + std::to_string(length),
                 ""};
      return std::nullopt;
    }
    times = length;
  }
  return times;
}

/// What is wrong with a value that decides, a count or a condition; else "".
static std::string wrongDecision(const nn::Tensor &value, bool isCount) {
  if (value.count() != 1)
    return "the value that says it has " + std::to_string(value.count()) +
           " elements, expected one";
  mlir::Type type = value.type().getElementType();
  const bool isBool = type.isInteger(1);
  if (isCount ? isBool || !isa<mlir::IntegerType>(type) : !isBool)
    return std::string("the value that says it is ") +
           (isBool                       ? "a bool"
            : isa<mlir::FloatType>(type) ? "a float"
                                         : "an integer") +
           ", expected " + (isCount ? "an integer" : "a bool");
  return "";
}

/// How often a loop runs that has such a count, or none, and is tried as often as there are
/// conditions. Where these are too few, `next` is how often it is to be tried.
static std::optional<int64_t> timesUntil(std::optional<int64_t> count, ArrayRef<Known> conditions,
                                         Unknown &unknown, int64_t &next) {
  for (auto [i, condition] : enumerate(conditions)) {
    const auto times = static_cast<int64_t>(i) + 1;
    if (times == count)
      return times;
    unknown.why = condition.tensor ? wrongDecision(condition.tensor, /*isCount=*/false) : "";
    if (!condition.tensor)
      unknown = condition.unknown;
    if (!condition.tensor || !unknown.why.empty())
      return std::nullopt;
    if (condition.tensor.integer(0) == 0)
      return times;
  }
  const auto tried = static_cast<int64_t>(conditions.size());
  next = std::max(kFirstTrial, 2 * tried);
  if (count)
    next = std::min(next, *count);
  unknown = {
      lateCondition.told("its condition still holds after " + Twine(tried) + " iterations").str(),
      "a loop that ends earlier, or an export without control flow: torch.jit.trace or "
      "dynamo"};
  return std::nullopt;
}

/// What they say; none where one of them is not known, whose reason `unknown` gets then, or where
/// the node has to be tried, `next` times.
static std::optional<int64_t> choiceOf(const GraphNode &node, ArrayRef<Known> values,
                                       Unknown &unknown, int64_t &next) {
  const bool hasCount = node.isLoop() && !node.inputs.empty() && !node.inputs[0].empty();
  const bool hasCondition = node.isLoop() && node.inputs.size() > 1 && !node.inputs[1].empty();
  ArrayRef<Known> own = values, tried;
  if (node.isLoop()) {
    own = values.take_front(static_cast<size_t>(hasCount) + static_cast<size_t>(hasCondition));
    tried = values.drop_front(own.size());
  }
  for (auto [i, value] : enumerate(own)) {
    if (value.tensor)
      unknown.why = node.isScan() ? "" : wrongDecision(value.tensor, hasCount && i == 0);
    else
      unknown = value.unknown;
    if (!value.tensor || !unknown.why.empty())
      return std::nullopt;
  }
  if (node.isIf())
    return values[0].tensor.integer(0) != 0;
  if (node.isScan())
    return timesOf(node, values, unknown);
  if (hasCondition && own.back().tensor.integer(0) == 0)
    return 0;
  std::optional<int64_t> count;
  if (hasCount)
    count = std::max<int64_t>(0, own[0].tensor.integer(0));
  if (node.changesCondition && !(count && *count <= 1))
    return timesUntil(count, tried, unknown, next);
  if (!count)
    unknown = {"it has none, and its condition never changes", "a loop that ends"};
  return count;
}

std::optional<int64_t> timesOfTried(const GraphNode &loop, ArrayRef<Known> values) {
  Unknown ignored;
  int64_t next = 0;
  return choiceOf(loop, values, ignored, next);
}

namespace {

/// How often loops are tried.
class Trials {
public:
  explicit Trials(Choices &choices) : choices(choices) {}

  /// The graph can be built.
  void keep() { raised.clear(); }
  /// It cannot: what was raised last is taken back, of several all but the first, of one half.
  /// False where nothing is tried, so that the file itself is wrong.
  bool takeBack(const std::string &why);
  /// Something was decided, which may make room.
  void startAgain() {
    stuck.clear();
    isCareful = false;
  }
  /// Has a loop tried `next` times; where that cannot be, `unknown` gets the reason. True if it is
  /// worth another round.
  bool raise(const GraphNode &loop, int64_t next, Unknown &unknown);

private:
  void set(const std::string &key, int64_t times) {
    if (times == 0)
      choices.tried.erase(key);
    else
      choices.tried[key] = times;
  }

  Choices &choices;
  std::map<std::string, int64_t> raised;    // from how often
  std::map<std::string, std::string> stuck; // why they are not tried more often
  bool isCareful = false;                   // one by one
};

} // namespace

bool Trials::takeBack(const std::string &why) {
  if (raised.empty()) { // what was decided leaves no room for what is tried
    const bool any = !choices.tried.empty() || !choices.likely.empty();
    choices.tried.clear();
    choices.likely.clear();
    return any;
  }
  isCareful = true;
  while (raised.size() > 1) {
    auto last = std::prev(raised.end());
    set(last->first, last->second);
    raised.erase(last);
    if (raised.size() == 1)
      return true;
  }
  auto [key, before] = *raised.begin();
  const int64_t half = before + (choices.tried[key] - before) / 2;
  set(key, half);
  if (half == before) {
    stuck[key] = why;
    raised.clear();
  }
  return true;
}

bool Trials::raise(const GraphNode &loop, int64_t next, Unknown &unknown) {
  const std::string key = loop.key();
  const auto has = static_cast<int64_t>(loop.tried);
  if (has < choices.trialsOf(loop)) {
    const std::string limit = std::to_string(kInlinedNodes) + " nodes in all";
    unknown.why = has == 0 ? "its iterations would be more than " + limit
                           : unknown.why + ", and more of them would be more than " + limit;
    return false;
  }
  if (auto found = stuck.find(key); found != stuck.end()) {
    if (has == 0)
      unknown = {"its body cannot be written out: " + found->second, ""};
    else
      unknown.why += ", and no more can be tried: " + found->second;
    return false;
  }
  next = std::min(next, kLongestTrial);
  if (next <= has)
    return false;
  if (isCareful && !raised.empty())
    return true;
  raised[key] = has;
  choices.tried[key] = next;
  return true;
}

/// Of a loop that waits for one in its body, why that is not known.
static void explainByInner(ArrayRef<const GraphNode *> open, llvm::StringMap<Unknown> &unknown) {
  for (const GraphNode *outer : open) {
    auto own = unknown.find(outer->key());
    if (own == unknown.end() || own->second.why != kNotEvaluated)
      continue;
    for (const GraphNode *inner : open) {
      auto cause = unknown.find(inner->key());
      if (cause == unknown.end() || cause->second.why == kNotEvaluated ||
          !StringRef(inner->key()).starts_with(outer->key() + "/"))
        continue;
      own->second = {"of '" + inner->label + "' in its body it is not: " + cause->second.why,
                     cause->second.advice};
      break;
    }
  }
}

/// The first error, without the file's name.
static std::string firstError(const Report &report, const ModelFile &file) {
  const std::string text = report.text();
  StringRef line = StringRef(text).split('\n').first;
  line.consume_front(file.path() + ": ");
  return line.str();
}

static bool hasBodies(const ModelFile &file) {
  auto decides = [](const NodeProto &node) {
    return isOnnx(node, "If") || isOnnx(node, "Loop") || isOnnx(node, "Scan");
  };
  return any_of(file.graph().node(), decides) ||
         any_of(file.model().functions(), [&](const onnx::FunctionProto &function) {
           return any_of(function.node(), decides);
         });
}

Conditions findConditions(const ModelFile &file, const Ledger &ledger, const Recipe &recipe,
                          mlir::MLIRContext &context) {
  Conditions found;
  if (!hasBodies(file))
    return found;
  Choices &choices = found.choices;
  Trials trials(choices);
  while (true) {
    Report ignored; // all is looked at again when branches are known
    std::unique_ptr<Graph> graph = Graph::build(file, choices, ignored);
    if (!graph && trials.takeBack(firstError(ignored, file)))
      continue;
    if (!graph)
      return found;
    trials.keep();
    std::vector<const GraphNode *> open;
    for (const GraphNode *node : graph->nodes())
      if (isDecided(*node))
        open.push_back(node);
    const BatchNormModes batchNorms(file, *graph, ledger.program, recipe, ignored);
    auto initializers = decideParameters(file, *graph, ledger, batchNorms, recipe, ignored);
    auto inputs = resolveInputs(file, recipe, ignored);
    bool hasSizes = inputs.has_value();
    if (!initializers)
      initializers.emplace();
    if (!inputs)
      inputs.emplace();
    std::vector<std::string> names;
    for (const GraphNode *node : open)
      llvm::append_range(names, decidingValues(*node));
    std::vector<Known> values =
        evaluateValues(file, *graph, *initializers, *inputs, names, context);
    found.unknown.clear();
    const size_t before = choices.made.size();
    bool triesMore = false;
    ArrayRef<Known> rest = values;
    for (const GraphNode *node : open) {
      const size_t count = decidingValues(*node).size();
      Unknown unknown;
      int64_t next = 0;
      auto choice = choiceOf(*node, rest.take_front(count), unknown, next);
      rest = rest.drop_front(count);
      if (next > 0 && trials.raise(*node, next, unknown))
        triesMore = true;
      if (choice)
        choices.made[node->key()] = *choice;
      else if (hasSizes)
        found.unknown[node->key()] = unknown;
      if (choice && node->changesCondition) {
        int64_t &likely = choices.likely[node->proto];
        likely = std::max({int64_t(1), likely, *choice});
      }
    }
    explainByInner(open, found.unknown);
    if (choices.made.size() != before)
      trials.startAgain();
    else if (!triesMore)
      break;
  }
  found.choices.tried.clear();
  found.choices.likely.clear();
  return found;
}

namespace {

class BranchLifter {
public:
  BranchLifter(ModelFile &file, Ledger &ledger) : file(file), ledger(ledger) {
    const GraphProto &graph = file.graph();
    for (const auto &input : graph.input())
      taken.insert(input.name());
    for (const auto &tensor : graph.initializer())
      taken.insert(tensor.name());
    for (const auto &node : graph.node())
      take(node);
  }

  void run() {
    for (NodeProto &node : *file.editableGraph().mutable_node())
      liftFrom(node, {});
  }

private:
  using Renamed = std::map<std::string, std::string>;

  void take(const NodeProto &node) {
    taken.insert(node.output().begin(), node.output().end());
    for (const auto &attribute : node.attribute())
      for (const NodeProto &inner : attribute.g().node())
        take(inner);
  }

  void liftFrom(NodeProto &node, const Renamed &around) {
    for (std::string &input : *node.mutable_input())
      if (auto found = around.find(input); found != around.end())
        input = found->second;
    for (auto &attribute : *node.mutable_attribute())
      if (attribute.has_g())
        liftFrom(node, *attribute.mutable_g(), around);
  }

  void liftFrom(const NodeProto &owner, GraphProto &branch, const Renamed &around) {
    Renamed renamed = around;
    for (const auto &input : branch.input())
      renamed.erase(input.name());
    for (const NodeProto &node : branch.node())
      for (const std::string &output : node.output())
        renamed.erase(output);
    google::protobuf::RepeatedPtrField<onnx::TensorProto> kept;
    for (const onnx::TensorProto &tensor : branch.initializer()) {
      std::string why;
      const bool isBranch = isOnnx(owner, "If");
      std::unique_ptr<TensorBytes> values =
          isBranch || isOnnx(owner, "Loop") || isOnnx(owner, "Scan") ? tensorBytes(tensor, why)
                                                                     : nullptr;
      if (!values) { // of what is not supported, or wrong: whoever reads it says so
        *kept.Add() = tensor;
        renamed.erase(tensor.name());
        continue;
      }
      std::string name = tensor.name();
      for (int i = 2; !taken.insert(name).second; ++i)
        name = tensor.name() + "_" + std::to_string(i);
      renamed[tensor.name()] = values->name = name;
      ledger.notes[name] = (isBranch ? "of a branch of " : "of the body of ") + owner.op_type() +
                           " '" + owner.name() + "'";
      file.addInitializer(std::move(values));
    }
    branch.mutable_initializer()->Swap(&kept);
    for (NodeProto &node : *branch.mutable_node())
      liftFrom(node, renamed);
    for (auto &output : *branch.mutable_output())
      if (auto found = renamed.find(output.name()); found != renamed.end())
        output.set_name(found->second);
  }

  ModelFile &file;
  Ledger &ledger;
  std::set<std::string> taken;
};

} // namespace

void liftBranchInitializers(ModelFile &file, Ledger &ledger) { BranchLifter(file, ledger).run(); }

} // namespace trainc::reader
