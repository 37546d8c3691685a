// SPDX-License-Identifier: Apache-2.0
//
// What the recipe says about parameters: patterns of names choose which train, decay, and form
// groups.
#include "compiler/onnx/graph/recurrent_layout.h"
#include "compiler/onnx/parameters/claims.h"
#include "compiler/onnx/parameters/quantized_weights.h"
#include "runtime/name_pattern.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace trainc::reader {

// By its own names, those that the module has for it, and those of what is tied to it. One that
// holds several of the module's parameters is not `divided` by a pattern that matches some of them.
static std::set<const Parameter *>
matching(const name_pattern &pattern, const Parameters &parameters, const Parameter *&divided) {
  std::set<const Parameter *> result;
  auto matches = [&](const std::string &name) { return pattern.matches(name); };
  for (const auto &one : parameters) {
    const bool matchesAll =
        matches(one->name) || matches(one->moduleName) ||
        any_of(one->inState, [&](const TensorName &other) { return matches(other.name); }) ||
        (!one->pieces.empty() &&
         all_of(one->pieces, [&](const StatePiece &piece) { return matches(piece.tensor); })) ||
        (!one->stackedOf.empty() && all_of(one->stackedOf, matches));
    if (!matchesAll && any_of(one->stackedOf, matches))
      divided = one.get();
    if (matchesAll)
      result.insert({one.get(), one->canonical});
  }
  return result;
}

static bool checkLengths(StringRef option, const Parameters &parameters, Report &report) {
  const auto isShort = [&](StringRef name) {
    return name.size() <= name_pattern::longest_name ||
           succeeded(report.error(ExitCode::unsupportedModel, Subject::ofOption("--" + option),
                                  "an initializer has a name of " + Twine(name.size()) +
                                      " characters, which begins with '" + name.take_front(20) +
                                      "'; patterns are matched with at most " +
                                      Twine(name_pattern::longest_name),
                                  "a shorter name in the file"));
  };
  return all_of(parameters, [&](const auto &one) {
    return isShort(one->name) && isShort(one->moduleName) && all_of(one->stackedOf, isShort) &&
           all_of(one->inState, [&](const TensorName &other) { return isShort(other.name); });
  });
}

namespace {

class Chooser {
public:
  Chooser(const Parameters &parameters, Report &report) : parameters(parameters), report(report) {}

  /// Calls `apply` on matching parameters; a pattern must match something, which `what` says.
  void apply(StringRef option, const std::vector<std::string> &patterns,
             llvm::function_ref<bool(const Parameter &)> eligible,
             llvm::function_ref<void(Parameter &)> apply, const Twine &what = "parameter") {
    if (patterns.empty())
      return;
    if (!checkLengths(option, parameters, report)) {
      isGood = false;
      return;
    }
    for (const std::string &pattern : patterns) {
      std::string why;
      std::optional<name_pattern> names = name_pattern::parse(pattern, why);
      if (!names) {
        fail(option, "'" + pattern + "' is not a regular expression: " + why);
        continue;
      }
      bool any = false;
      const Parameter *divided = nullptr;
      const std::set<const Parameter *> found = matching(*names, parameters, divided);
      for (const auto &parameter : parameters)
        if (eligible(*parameter) && found.count(parameter.get())) {
          apply(*parameter);
          any = true;
        }
      if (divided)
        fail(option,
             "'" + pattern + "' matches some of the parameters that the exporter put into '" +
                 divided->name + "', not all: " + quotedList(divided->stackedOf),
             "a pattern that matches all or none; or torch.onnx.export(..., optimize=False)");
      else if (!any)
        refuse(option, pattern, found, what);
    }
  }

  bool isGood = true;

private:
  void fail(StringRef option, const Twine &message, const Twine &advice = "") {
    isGood = false;
    (void)report.error(ExitCode::usage, Subject::ofOption("--" + option), message, advice);
  }

  void refuse(StringRef option, const std::string &pattern,
              const std::set<const Parameter *> &found, const Twine &what) {
    auto fixed = find_if(found, [](auto *one) { return one && one->isFixed; });
    auto quantized = find_if(found, [](auto *one) { return one && one->quantized; });
    if (fixed != found.end())
      fail(option,
           "'" + pattern + "' matches no " + what + " but input '" + (*fixed)->name +
               "', which --constant fixes",
           "one of the two options");
    else if (quantized != found.end())
      fail(option,
           "'" + (*quantized)->name + "' has integers in the file, " +
               quantizedForm(*(*quantized)->quantized) + ", which are not trained",
           "--lora, or the model before quantization");
    else
      fail(option, "'" + pattern + "' matches no " + what,
           "--print-parameters lists them; a pattern must match a whole name, as '.*weight' does");
  }

  const Parameters &parameters;
  Report &report;
};

} // namespace

// What decays unless told otherwise. A module's vector may have got further axes by its exporter,
// unless it multiplies as a whole: the matrix of a layer with one output. ONNX itself gives the
// biases of recurrent layers an axis for the direction.
static bool isMatrix(const Parameter &parameter, const Graph &graph) {
  const ArrayRef<Use> uses = graph.uses(parameter.name);
  const bool isBiasOfRecurrent = any_of(uses, [&](const Use &use) {
    return isRecurrent(use.node->domain, use.node->opType()) &&
           weightOf(use, parameter.shape) == nn::OnnxWeight::bias;
  });
  if (isBiasOfRecurrent)
    return false;
  const bool isVector = parameter.exporterMade && none_of(uses, [&](const Use &use) {
                          return multiplies(use, *parameter.tensor);
                        });
  return isVector ? count_if(parameter.tensor->shape, [](int64_t size) { return size > 1; }) >= 2
                  : parameter.tensor->shape.size() >= 2;
}

// --train-only trains exactly what it names, --lora adapters beside what would train.
static void chooseTrained(const Parameters &parameters, const Recipe &recipe, Chooser &chooser) {
  std::set<const Parameter *> chosen;
  auto mayTrain = [](const Parameter &one) {
    return isFloat(one.tensor->dataType) && !one.isFixed && one.role != Role::unused &&
           one.role != Role::tied && one.role != Role::buffer;
  };
  chooser.apply("train-only", recipe.trainOnly, mayTrain,
                [&](Parameter &one) { chosen.insert(&one); });
  for (const auto &one : parameters)
    if (chosen.count(one.get())) {
      one->role = Role::trained;
      one->reason += "; chosen by --train-only";
    } else if (!recipe.trainOnly.empty() && one->isParameter() && one->role != Role::buffer) {
      one->role = Role::frozen;
      one->reason += "; not among --train-only";
    } else if (!recipe.adapters.empty() && one->role == Role::trained) {
      one->role = Role::frozen;
      one->reason += "; frozen, as --lora trains adapters";
    }
}

// A constant that the question names stays one.
static void freeze(Parameter &one) {
  one.isAnswered = true;
  one.reason += one.role == Role::constant  ? "; kept by --freeze"
                : one.role == Role::trained ? "; frozen by --freeze"
                                            : "";
  if (one.role != Role::constant)
    one.role = Role::frozen;
}

bool applyRecipe(const Parameters &parameters, const Graph &graph, const Recipe &recipe,
                 Report &report) {
  Chooser chooser(parameters, report);
  for (const auto &one : parameters)
    for (const auto &buffer : recipe.buffers)
      if (one->name == buffer.first && isFloat(one->tensor->dataType)) {
        one->role = Role::buffer;
        one->canonical = nullptr;
        one->reason += "; a buffer by --buffer";
      }
  chooseTrained(parameters, recipe, chooser);
  // What a step replaces is neither trained nor frozen.
  auto isEligible = [](const Parameter &one) {
    return one.isParameter() && one.role != Role::buffer;
  };
  auto mayFreeze = [&](const Parameter &one) {
    return isEligible(one) || (one.role == Role::constant && one.isOfFloats() && !one.isFixed);
  };
  chooser.apply("freeze", recipe.freeze, mayFreeze, freeze);
  for (const auto &one : parameters)
    one->decays = recipe.decay.empty() && isMatrix(*one, graph);
  chooser.apply("decay", recipe.decay, isEligible, [](Parameter &one) { one.decays = true; });
  for (auto [index, group] : enumerate(recipe.groups))
    chooser.apply(
        "group", {group.second},
        [](const Parameter &one) { return one.role == Role::trained && one.groupNumber == 0; },
        [&, number = index + 1](Parameter &one) {
          one.group = recipe.groups[number - 1].first;
          one.groupNumber = number;
        },
        "trained parameter that is in no group before '" + group.first + "'");
  return chooser.isGood;
}

} // namespace trainc::reader
