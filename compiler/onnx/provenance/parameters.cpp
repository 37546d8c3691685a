// SPDX-License-Identifier: Apache-2.0
//
// Decides about every initializer. PyTorch's dynamo exporter records what each is and, of those
// that it computed itself, all values that they were computed from: there the decision is exact.
// Other files have only names, uses and values.
#include "compiler/onnx/file/file_check.h"
#include "compiler/onnx/provenance/doubts.h"
#include "dialects/nn/onnx/onnx_node.h"
#include "runtime/name_pattern.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Format.h"

using namespace llvm;

namespace trainc::reader {

using nn::OnnxWeight;

OnnxWeight weightOf(const Use &use, const TensorBytes &tensor) {
  return nn::onnxWeight(use.node->domain, use.node->opType(), use.index, tensor.shape);
}

bool multiplies(const Use &use, const TensorBytes &tensor) {
  bool isProduct = use.node->domain.empty() &&
                   (use.node->opType() == "MatMul" || use.node->opType() == "Einsum");
  return isProduct || isFactor(weightOf(use, tensor));
}

// Through a Cast and what scales it, to an operator that learns it; empty where there is none.
static std::string quantizedWeightOf(const Graph &graph, const Decision &decision) {
  constexpr int kFarthest = 6; // a Cast, a zero point, a scale and what moves elements
  if (!llvm::is_contained({onnx::TensorProto::INT8, onnx::TensorProto::UINT8,
                           onnx::TensorProto::INT16, onnx::TensorProto::UINT16},
                          decision.tensor->dataType))
    return "";
  std::vector<std::string> values{decision.name().str()}, next;
  for (int step = 0; step < kFarthest && !values.empty(); ++step, values.swap(next)) {
    next.clear();
    for (const std::string &value : values)
      for (const Use &use : graph.uses(value)) {
        if (step > 0 && nn::isWeight(weightOf(use, *decision.tensor)))
          return use.node->opType().str();
        bool goesOn = step == 0 ? use.node->opType() == "Cast"
                                : llvm::StringSwitch<bool>(use.node->opType())
                                      .Cases("Sub", "Mul", "Div", "Transpose", "Reshape", true)
                                      .Default(false);
        if (goesOn && use.node->domain.empty() && !use.node->outputs.empty())
          next.push_back(use.node->outputs[0]);
      }
  }
  return "";
}

bool isUsedAs(const Graph &graph, const Decision &decision, OnnxWeight weight) {
  return any_of(graph.uses(decision.name()), [&](const Use &use) {
    return weightOf(use, *decision.tensor) == weight ||
           (weight == OnnxWeight::matrix && use.node->opType() == "Transpose");
  });
}

int32_t Decision::dataType() const {
  return quantized ? int32_t{onnx::TensorProto::FLOAT} : tensor->dataType;
}

class Classifier {
public:
  Classifier(const ModelFile &file, const Graph &graph, const Separation &separation,
             const BatchNormModes &batchNorms, const Recipe &recipe, Report &report)
      : file(file), graph(graph), separation(separation), trains(recipe.trains),
        batchNorms(batchNorms), report(report), program(separation.program) {}

  Decisions classify() {
    Decisions decisions;
    for (int i = 0; i < file.graph().initializer_size(); ++i)
      decisions.push_back(classify(i));
    // What else belongs to a weight in integers is no tensor by itself; numbers that other nodes
    // read, too, are constants.
    for (const auto &decision : decisions)
      if (partsOfQuantized.count(decision->tensor)) {
        decision->role =
            all_of(graph.uses(decision->name()), readsPart) ? Role::unused : Role::constant;
        decision->isPartOfQuantized = decision->role == Role::unused;
        decision->doubt = Doubt::none;
        decision->reason = "scales or zero points of a weight in integers";
      }
    return decisions;
  }

  /// The signature's parameter that an initializer was computed from; of `classify`d ones only.
  MadeFrom madeFrom;
  bool hasSignature() const { return program.isRecorded(); }

private:
  std::unique_ptr<Decision> classify(int index) {
    auto decision = std::make_unique<Decision>();
    decision->tensor = &file.initializer(index);
    ArrayRef<Use> uses = graph.uses(decision->name());
    decision->firstUse = uses.empty() ? SIZE_MAX : uses[0].node->index * 64 + uses[0].index;
    if (separation.fixed.contains(decision->name())) {
      decision->reason = "the value of an input, by --constant";
      decision->isFixed = true;
    } else if (uses.empty() && !graph.isOutput(decision->name()) &&
               !graph.isCaptured(decision->name())) {
      decision->role = Role::unused;
      decision->reason = "no node that an output needs uses it";
    } else if (any_of(uses, isOfQuantized)) {
      quantizedWeight(*decision);
    } else if (const Use *use = useAs(OnnxWeight::statistic, uses, *decision->tensor)) {
      runningStatistic(*use, *decision);
    } else if (const Use *use = useAs(OnnxWeight::setting, uses, *decision->tensor)) {
      decision->reason = "a setting of a " + use->node->opType().str();
    } else if (hasSignature()) {
      bySignature(*decision);
    } else if (std::string op = quantizedWeightOf(graph, *decision); !op.empty()) {
      decision->doubt = Doubt::quantized;
      decision->reason =
          "integers that a Cast makes the weight of a " + op + ": they are not trained";
    } else if (!isFloat(decision->tensor->dataType)) {
      decision->reason = "integers and booleans are not trained";
    } else {
      byNameAndUse(*decision);
    }
    if (auto found = separation.origin.find(decision->name()); found != separation.origin.end())
      decision->reason += "; " + found->second;
    if (auto found = separation.notes.find(decision->name()); found != separation.notes.end())
      decision->reason += "; " + found->second;
    return decision;
  }

  static bool isOfQuantized(const Use &use) {
    return quantizedInput(use.node->domain, use.node->opType()) == use.index;
  }

  static bool readsPart(const Use &use) {
    return quantizedInput(use.node->domain, use.node->opType()).has_value() && !isOfQuantized(use);
  }

  void quantizedWeight(Decision &decision) {
    std::string why;
    decision.quantized = reader::quantizedWeight(file, graph, *decision.tensor, why);
    if (!decision.quantized) {
      decision.role = Role::unused;
      decision.reason = "integers that are no weight: " + why;
      (void)report.error(
          ExitCode::unsupportedModel,
          Subject::ofPart(file.path(), "quantized weight '" + decision.name().str() + "'"), why,
          "the model before quantization, or integers as docs/memory.md lists them");
      return;
    }
    decision.role = Role::frozen;
    decision.reason = quantizedForm(*decision.quantized) + ", which are not trained";
    partsOfQuantized.insert(decision.quantized->scales);
    partsOfQuantized.insert(decision.quantized->zeros);
  }

  static const Use *useAs(OnnxWeight weight, ArrayRef<Use> uses, const TensorBytes &tensor) {
    const Use *found =
        llvm::find_if(uses, [&](const Use &use) { return weightOf(use, tensor) == weight; });
    return found == uses.end() ? nullptr : found;
  }

  void runningStatistic(const Use &use, Decision &decision) {
    const GraphNode &node = *use.node;
    const nn::BatchNormMode mode = batchNorms.of(node);
    decision.role = nn::trainsStatistics(mode) ? Role::buffer : Role::frozen;
    decision.reason = "running statistics of a batch norm";
    if (mode == nn::BatchNormMode::trainByDefault &&
        !nn::saysBatchStatistics(node.opset, node.integer("training_mode", 0),
                                 node.integer("is_test", 0), node.outputs.size()))
      decision.reason += ", which the file has in inference mode";
  }

  void bySignature(Decision &decision) {
    StringRef kind = program.kindOf(decision.name());
    ArrayRef<std::string> sources = program.sourcesOf(decision.name());
    decision.exporterMade = kind.empty();
    if (!kind.empty()) {
      bool trains = kind == "PARAMETER" && isFloat(decision.tensor->dataType);
      decision.role = trains ? Role::trained : Role::constant;
      decision.reason = ("the file says " + kind).str();
      if (trains && program.isFrozen(decision.name())) {
        decision.role = Role::frozen;
        decision.reason += ", of which requires_grad is False";
      }
      if (!trains && isFloat(decision.tensor->dataType))
        decision.doubt = Doubt::unlearnt;
      return;
    }
    if (auto stacked = separation.stacked.find(decision.name());
        stacked != separation.stacked.end() && isFloat(decision.tensor->dataType)) {
      stackedParameters(stacked->second, decision);
      return;
    }
    std::vector<std::string> origins, others;
    for (const std::string &source : sources)
      (program.isParameter(source) ? origins : others).push_back(source);
    if (origins.empty()) {
      decision.reason = sources.empty() ? "a constant of the program: the file lists it nowhere"
                                        : "computed by the exporter from constants";
      return;
    }
    if (origins.size() == 1 && isFloat(decision.tensor->dataType) &&
        isSelection(decision, origins[0], others)) {
      decision.role = Role::trained;
      decision.isPart = isChoice(baseName(decision.name())) || decision.name().ends_with(kRow) ||
                        any_of(others, [](StringRef name) { return isChoice(baseName(name)); });
      decision.moduleName = origins[0];
      bool isView = keepsOrder(baseName(decision.name())) && all_of(others, [](StringRef name) {
                      return keepsOrder(baseName(name)) || isNumber(baseName(name));
                    });
      if (isView || isArgument(decision, origins[0], others)) {
        decision.moduleTensor = origins[0];
        decision.isModulesTranspose = !isView && decision.tensor->shape.size() == 2 &&
                                      selectionName(decision) == "transposition";
      }
      decision.reason = "the exporter's " + selectionName(decision) + " of parameter " + origins[0];
      madeFrom[origins[0]].push_back(&decision);
      return;
    }
    decision.reason = "computed by the exporter from parameter " + join(origins, ", ");
    bool isCastAlone = sources.size() == 1 && isCast(baseName(decision.name()));
    if (trains)
      reportFolded(decision.name(), origins, isCastAlone);
  }

  void stackedParameters(ArrayRef<std::string> parameters, Decision &decision) {
    decision.role = Role::trained;
    decision.reason = (parameters.size() == 1 ? "the exporter's order of parameter "
                                              : "the exporter's order of ") +
                      join(parameters, ", ");
    for (const std::string &parameter : parameters)
      madeFrom[parameter].push_back(&decision);
    if (parameters.size() == 1)
      decision.moduleName = parameters[0];
    else
      decision.stackedOf = parameters;
  }

  // What the exporter's translation of a call makes of a parameter of the call has no name: the
  // transposed weight of `linear`, the slope of `prelu` or the scale of a norm with other axes.
  bool isArgument(const Decision &decision, const std::string &parameter,
                  ArrayRef<std::string> others) const {
    if (decision.name().ends_with(kTransposed) || decision.name().ends_with(kReshaped))
      return true;
    auto isNameless = [](StringRef name) { return baseName(name) == "val"; };
    return isNameless(decision.name()) && all_of(others, isNameless) &&
           all_of(graph.uses(decision.name()), [&](const Use &use) {
             const ProgramCall *call = program.callOf(*use.node->proto);
             OnnxWeight weight = weightOf(use, *decision.tensor);
             bool isMatrix = use.index == 1 && weight == OnnxWeight::matrix;
             if (!call) // a file that was stripped of its calls has their names
               return isMatrix && baseName(programOperation(*use.node)) == "linear";
             if (!is_contained(program.parametersOf(*call), parameter))
               return false;
             return call->is("aten.linear")
                        ? isMatrix
                        : rearrangesScales(*call) &&
                              (weight == OnnxWeight::scale || weight == OnnxWeight::bias);
           });
  }

  static bool rearrangesScales(const ProgramCall &call) {
    return call.is("aten.prelu") || call.is("aten.group_norm") || call.is("aten.native_group_norm");
  }

  // Every element stands for one element of the parameter, none for two: by what the result and
  // all values that it was made from are called. Three things names do not tell. Whether a cast was
  // one there and back: numbers with all their digits were not rounded. Of a table's rows, whether
  // a repetition was one of the rows' numbers or of the table: then columns, or rows, are equal.
  // And whether a sum was: with a number, as it is where nothing is chosen of the table, the table
  // would have the same gradient, and the same updates but for weight decay.
  bool isSelection(const Decision &decision, const std::string &parameter,
                   ArrayRef<std::string> others) const {
    if (isArgument(decision, parameter, others) || decision.name().ends_with(kRow))
      return true;
    StringRef base = baseName(decision.name());
    bool choosesRows = base == "embedding", chooses = false, casts = isCast(base), repeats = false,
         adds = false;
    if (!isRearrangement(base) && !isChoice(base) && !casts)
      return false;
    for (StringRef name : others) {
      StringRef other = baseName(name);
      chooses |= isChoice(other);
      casts |= isCast(other);
      repeats |= isRepetition(other);
      adds |= isSum(other);
      bool isOfNumbers = choosesRows && (isRepetition(other) || isSum(other));
      if (!isRearrangement(other) && !isChoice(other) && !isCast(other) && !isNumber(other) &&
          !isOfNumbers && !program.isBuffer(name)) // a table of positions
        return false;
    }
    return (!casts || hasAllDigits(*decision.tensor)) &&
           (!choosesRows || rowsDiffer(*decision.tensor)) &&
           (!repeats || columnsDiffer(*decision.tensor)) && !(adds && chooses);
  }

  std::string selectionName(const Decision &decision) const {
    StringRef base = baseName(decision.name());
    if (decision.name().ends_with(kRow))
      return "row";
    bool isMatrix = decision.name().ends_with(kTransposed) ||
                    any_of(graph.uses(decision.name()), [&](const Use &use) {
                      return weightOf(use, *decision.tensor) == OnnxWeight::matrix;
                    });
    return base == "val" || base.contains('.') ? isMatrix ? "transposition" : "reshape"
                                               : base.str();
  }

  // `isCastAlone`: the parameter itself is of another type, one that nothing here trains.
  void reportFolded(StringRef name, ArrayRef<std::string> origins, bool isCastAlone) {
    (void)report.refuse(Finding::computedByExporter, file.path(),
                        "initializer '" + name + "' was computed by the exporter from parameter" +
                            (origins.size() > 1 ? "s '" : " '") + join(origins, "' and '") +
                            "', which training would leave behind",
                        isCastAlone
                            ? "a module whose parameters all are of one type: module.float()"
                              " before the export"
                            : "export again with torch.onnx.export(..., optimize=False)");
  }

  void byNameAndUse(Decision &decision) {
    const TensorBytes &tensor = *decision.tensor;
    StringRef name = decision.name();
    bool dotted = name.contains('.') && !isExporterName(name);
    decision.exporterMade = isExporterName(name);
    bool isPlaced = tensor.count == 1 && !dotted && mayBeWeight(decision);
    bool isUnclear = isPlaced ? isPaddleConstant(name) || (mayBeWritten(tensor) && !isZero(tensor))
                              : separation.unclearNumbers.contains(name);
    if (isUnclear)
      decision.doubt = Doubt::unclearNumber;
    if (tensor.count == 0 ||
        (tensor.count == 1 && !dotted && (!isPlaced || isPaddleConstant(name)))) {
      decision.reason = "at most one element and no module's name";
      const bool isFolded = tensor.shape.empty() && isTorchScriptName(name) && isFromPyTorch(file);
      if (isFolded)
        decision.doubt = Doubt::foldedNumber;
      else if (!isUnclear)
        decision.doubt = Doubt::number;
    } else if (name.ends_with("running_mean") || name.ends_with("running_var")) {
      decision.reason = "running statistics by its name";
      decision.doubt = Doubt::statistic;
    } else if (looksLikeMask(tensor) && !anyMultiplies(decision)) {
      decision.reason = "a mask: two values throughout";
      if (!decision.exporterMade)
        decision.doubt = Doubt::mask;
    } else if (separation.unlearnt.contains(name)) {
      const bool ofCode = isFromPyTorch(file);
      decision.reason = ofCode ? "as a number of the module's code" : "not used as a weight";
      decision.doubt = ofCode ? Doubt::inNode : Doubt::unlearnt;
    } else if (dotted) {
      decision.role = Role::trained;
      decision.reason = "floats under a module's name";
    } else if (!decision.exporterMade) {
      decision.role = Role::trained;
      decision.reason = "floats under a name of their own";
    } else {
      byUse(decision);
    }
  }

  // One number that an operator learns, as the weight of a layer with one input and one output; or
  // that has axes from an exporter, as the scale of a norm of one channel has.
  bool mayBeWeight(const Decision &decision) const {
    const TensorBytes &tensor = *decision.tensor;
    return separation.biasesOfOne.contains(decision.name()) ||
           (tensor.shape.size() > 1 && isTorchScriptName(decision.name())) ||
           (!tensor.shape.empty() && any_of(graph.uses(decision.name()), [&](const Use &use) {
             return nn::isWeight(weightOf(use, tensor));
           }));
  }

  bool anyMultiplies(const Decision &decision) const {
    return any_of(graph.uses(decision.name()),
                  [&](const Use &use) { return multiplies(use, *decision.tensor); });
  }

  void byUse(Decision &decision) {
    for (const Use &use : graph.uses(decision.name()))
      if (nn::isWeight(weightOf(use, *decision.tensor))) {
        decision.role = Role::trained;
        decision.reason = "unnamed, but used as the weight of a " + use.node->opType().str();
        return;
      }
    if (separation.biasesOfOne.contains(decision.name())) {
      decision.role = Role::trained;
      decision.reason = "unnamed, but the bias of a layer with one output";
      return;
    }
    decision.reason = "unnamed, and not used as a weight";
    decision.doubt = Doubt::unlearnt;
  }

  const ModelFile &file;
  const Graph &graph;
  const Separation &separation;
  bool trains;
  const BatchNormModes &batchNorms;
  Report &report;
  const ExportedProgram &program;
  std::set<const TensorBytes *> partsOfQuantized;
};

// ---- the recipe's patterns

// Whether a pattern matches what the module calls a tensor to which an exporter gave another name.
template <typename Matches>
static bool matchesModule(const Decision &decision, const Matches &matches) {
  return (!decision.moduleName.empty() && matches(decision.moduleName)) ||
         (!decision.moduleTensor.empty() && matches(decision.moduleTensor)) ||
         any_of(decision.otherModuleTensors, matches) ||
         (!decision.held.empty() &&
          all_of(decision.held, [&](const auto &held) { return matches(held.first); }));
}

// A parameter by its own names, and by those of what is tied to it. One that holds several of the
// module is not `divided` by a pattern that matches some of them.
static std::set<const Decision *> matching(const name_pattern &pattern, const Decisions &decisions,
                                           const Decision *&divided) {
  std::set<const Decision *> result;
  auto matches = [&](const std::string &name) { return pattern.matches(name); };
  for (const auto &one : decisions) {
    bool matchesAll = matches(one->name().str()) || matchesModule(*one, matches) ||
                      (!one->stackedOf.empty() && all_of(one->stackedOf, matches));
    if (!matchesAll && any_of(one->stackedOf, matches))
      divided = one.get();
    if (matchesAll) {
      result.insert(one.get());
      result.insert(one->canonical);
    }
  }
  return result;
}

static bool checkLengths(StringRef option, const Decisions &decisions, Report &report) {
  const auto isShort = [&](StringRef name) {
    return name.size() <= name_pattern::longest_name ||
           succeeded(report.error(ExitCode::unsupportedModel, Subject::ofOption("--" + option),
                                  "an initializer has a name of " + Twine(name.size()) +
                                      " characters, which begins with '" + name.take_front(20) +
                                      "'; patterns are matched with at most " +
                                      Twine(name_pattern::longest_name),
                                  "a shorter name in the file"));
  };
  return all_of(decisions, [&](const auto &one) {
    return isShort(one->name()) && isShort(one->moduleName) && isShort(one->moduleTensor) &&
           all_of(one->otherModuleTensors, isShort) && all_of(one->stackedOf, isShort);
  });
}

// Calls `apply` on matching decisions; a pattern must match something, which `what` says.
static bool applyPatterns(StringRef option, const std::vector<std::string> &patterns,
                          const Decisions &decisions, Report &report,
                          llvm::function_ref<bool(const Decision &)> eligible,
                          llvm::function_ref<void(Decision &)> apply,
                          const Twine &what = "parameter") {
  bool good = patterns.empty() || checkLengths(option, decisions, report);
  for (const std::string &pattern : good ? patterns : std::vector<std::string>()) {
    bool any = false;
    const Decision *divided = nullptr;
    std::string why;
    std::optional<name_pattern> names = name_pattern::parse(pattern, why);
    if (!names) {
      good = succeeded(report.error(ExitCode::usage, Subject::ofOption("--" + option),
                                    "'" + pattern + "' is not a regular expression: " + why));
      continue;
    }
    const std::set<const Decision *> found = matching(*names, decisions, divided);
    for (const auto &decision : decisions)
      if (eligible(*decision) && found.count(decision.get())) {
        apply(*decision);
        any = true;
      }
    if (divided)
      good = succeeded(report.error(
          ExitCode::usage, Subject::ofOption("--" + option),
          "'" + pattern + "' matches some of the parameters that the exporter put into '" +
              divided->name() + "', not all: " + quotedList(divided->stackedOf),
          "a pattern that matches all or none; or torch.onnx.export(..., optimize=False)"));
    else if (auto fixed = find_if(found, [](auto *one) { return one && one->isFixed; });
             !any && fixed != found.end())
      good = succeeded(report.error(ExitCode::usage, Subject::ofOption("--" + option),
                                    "'" + pattern + "' matches no " + what + " but input '" +
                                        (*fixed)->name() + "', which --constant fixes",
                                    "one of the two options"));
    else if (auto quantized = find_if(found, [](auto *one) { return one && one->quantized; });
             !any && quantized != found.end())
      good = succeeded(report.error(ExitCode::usage, Subject::ofOption("--" + option),
                                    "'" + (*quantized)->name() + "' has integers in the file, " +
                                        quantizedForm(*(*quantized)->quantized) +
                                        ", which are not trained",
                                    "--lora, or the model before quantization"));
    else if (!any)
      good = succeeded(report.error(ExitCode::usage, Subject::ofOption("--" + option),
                                    "'" + pattern + "' matches no " + what,
                                    "--print-parameters lists them; a pattern must match a whole "
                                    "name, as '.*weight' does"));
  }
  return good;
}

// A row of them for each direction.
static bool isBiasOfRecurrent(const Use &use, const TensorBytes &tensor) {
  return weightOf(use, tensor) == OnnxWeight::bias &&
         isRecurrent(use.node->domain, use.node->opType());
}

// What decays unless told otherwise. A module's vector may have got further axes by its exporter,
// unless it multiplies as a whole: the matrix of a layer with one output. ONNX itself gives the
// biases of recurrent layers an axis for the direction.
static bool isMatrix(const Decision &decision, const Graph &graph) {
  ArrayRef<int64_t> shape = decision.tensor->shape;
  if (any_of(graph.uses(decision.name()),
             [&](const Use &use) { return isBiasOfRecurrent(use, *decision.tensor); }))
    return false;
  bool isVector = decision.exporterMade &&
                  none_of(graph.uses(decision.name()),
                          [&](const Use &use) { return multiplies(use, *decision.tensor); });
  return isVector ? count_if(shape, [](int64_t size) { return size > 1; }) >= 2 : shape.size() >= 2;
}

static bool applyRecipe(const Decisions &decisions, const Graph &graph, const Recipe &recipe,
                        Report &report) {
  // What a step replaces is neither trained nor frozen.
  auto isParameter = [](const Decision &decision) {
    return decision.isParameter() && decision.role != Role::buffer;
  };
  std::set<const Decision *> chosen;
  auto mayTrain = [](const Decision &decision) {
    return isFloat(decision.tensor->dataType) && !decision.isFixed &&
           decision.role != Role::unused && decision.role != Role::tied &&
           decision.role != Role::buffer;
  };
  for (const auto &decision : decisions)
    for (const auto &buffer : recipe.buffers)
      if (decision->name() == buffer.first && isFloat(decision->tensor->dataType)) {
        decision->role = Role::buffer;
        decision->reason += "; a buffer by --buffer";
      }
  bool good = applyPatterns("train-only", recipe.trainOnly, decisions, report, mayTrain,
                            [&](Decision &decision) { chosen.insert(&decision); });
  if (!recipe.trainOnly.empty())
    for (const auto &decision : decisions) {
      if (chosen.count(decision.get())) {
        decision->role = Role::trained;
        decision->reason += "; chosen by --train-only";
      } else if (isParameter(*decision)) {
        decision->role = Role::frozen;
        decision->reason += "; not among --train-only";
      }
    }
  for (const auto &decision : decisions)
    if (!recipe.adapters.empty() && decision->role == Role::trained &&
        !chosen.count(decision.get())) {
      decision->role = Role::frozen;
      decision->reason += "; frozen, as --lora trains adapters";
    }
  auto mayFreeze = [&](const Decision &decision) {
    return isParameter(decision) ||
           (decision.role == Role::constant &&
            llvm::is_contained({Doubt::unlearnt, Doubt::inNode, Doubt::foldedNumber},
                               decision.doubt));
  };
  good &=
      applyPatterns("freeze", recipe.freeze, decisions, report, mayFreeze, [](Decision &decision) {
        decision.doubt = Doubt::none;
        if (decision.role == Role::constant) {
          decision.reason += "; kept by --freeze";
          return;
        }
        if (decision.role == Role::trained)
          decision.reason += "; frozen by --freeze";
        decision.role = Role::frozen;
      });
  for (const auto &decision : decisions)
    decision->decays = recipe.decay.empty() && isMatrix(*decision, graph);
  good &= applyPatterns("decay", recipe.decay, decisions, report, isParameter,
                        [](Decision &decision) { decision.decays = true; });
  auto isLeft = [](const Decision &decision) {
    return decision.role == Role::trained && decision.group == 0;
  };
  for (auto [index, group] : llvm::enumerate(recipe.groups))
    good &= applyPatterns(
        "group", {group.second}, decisions, report, isLeft,
        [number = index + 1](Decision &decision) { decision.group = number; },
        "trained parameter that is in no group before '" + group.first + "'");
  return good;
}

static bool checkTypes(const Decisions &decisions, const ModelFile &file, const Recipe &recipe,
                       Report &report) {
  size_t before = report.size();
  for (const auto &decision : decisions) {
    if (decision->isParameter() && recipe.precision != "f64" &&
        isDouble(decision->tensor->dataType))
      (void)report.error(ExitCode::unsupportedModel, file.path(),
                         "parameter '" + decision->name() + "' is f64, but the precision is f32",
                         "--precision f64, or export the model in float32");
    std::string why = decision->isParameter() ? whyNotStored(decision->name()) : "";
    if (!why.empty())
      (void)report.error(ExitCode::unsupportedModel, file.path(),
                         "parameter '" + decision->name() +
                             "' cannot be stored under its name, which " + why,
                         "another name for the module's parameter");
  }
  return report.size() == before;
}

static void checkAnyTrained(const Decisions &decisions, const ModelFile &file, const Recipe &recipe,
                            Report &report) {
  bool isExplained = !report.empty(); // by what made the parameters constants
  if (recipe.trains && recipe.adapters.empty() && !isExplained &&
      none_of(decisions, [](const auto &decision) { return decision->role == Role::trained; }))
    (void)report.error(ExitCode::unsupportedModel, file.path(),
                       "no initializer is a parameter to train",
                       any_of(decisions, [](const auto &one) { return one->quantized.has_value(); })
                           ? "--lora PATTERN, which trains adapters beside weights in integers"
                           : "--train-only PATTERN, which chooses whatever the rule says");
}

// The module's state has a tied parameter under each of its names.
static void addRecordedNames(const ExportedProgram &program, Decisions &decisions) {
  llvm::StringSet<> inFile;
  for (const auto &decision : decisions)
    inFile.insert(decision->name());
  for (const auto &decision : decisions)
    for (const std::string &name : program.namesOf(decision->name()))
      if (decision->isParameter() && !inFile.contains(name))
        decision->otherModuleTensors.push_back(name);
}

std::optional<Decisions> decideParameters(const ModelFile &file, const Graph &graph,
                                          const Separation &separation,
                                          const BatchNormModes &batchNorms, const Recipe &recipe,
                                          Report &report) {
  Classifier classifier(file, graph, separation, batchNorms, recipe, report);
  Decisions decisions = classifier.classify();
  std::vector<EqualWeights> undecided = separation.undecided;
  if (classifier.hasSignature())
    tieByRecord(decisions, classifier.madeFrom, file, report);
  else
    llvm::append_range(undecided, tieByValue(decisions, graph, separation, file));
  llvm::stable_sort(decisions,
                    [](const auto &a, const auto &b) { return a->firstUse < b->firstUse; });
  findModuleTensors(graph, classifier.hasSignature(), decisions);
  addRecordedNames(separation.program, decisions);
  if (!applyRecipe(decisions, graph, recipe, report))
    return std::nullopt;
  checkAnyTrained(decisions, file, recipe, report);
  const bool isAsked = recipe.trains && recipe.trainOnly.empty() && !classifier.hasSignature();
  refuseUndecided(decisions, undecided,
                  isAsked ? sharedRecurrent(decisions, file, graph) : std::vector<std::string>(),
                  separation, file, recipe, report);
  bool good = checkTypes(decisions, file, recipe, report);
  reportDoubts(decisions, separation.program, file, graph, recipe, report);
  return good ? std::optional(std::move(decisions)) : std::nullopt;
}

// ---- the table

static StringRef roleName(Role role) {
  switch (role) {
  case Role::trained:
    return "trained";
  case Role::frozen:
    return "frozen";
  case Role::buffer:
    return "buffer";
  case Role::tied:
    return "tied";
  case Role::constant:
    return "constant";
  case Role::unused:
    return "unused";
  }
  return "";
}

std::string shapeText(ArrayRef<int64_t> shape) {
  if (shape.empty())
    return "scalar";
  return join(map_range(shape, [](int64_t size) { return std::to_string(size); }), "x");
}

std::string parameterTable(const Decisions &decisions, const Separation &separation,
                           const Recipe &recipe) {
  std::string result;
  raw_string_ostream stream(result);
  size_t nameWidth = 4, shapeWidth = 5, groupWidth = 0, hidden = 0;
  if (!recipe.groups.empty())
    groupWidth = StringRef("group").size();
  for (const auto &group : recipe.groups)
    groupWidth = std::max(groupWidth, group.first.size());
  auto shown = [](const Decision &decision) {
    return isFloat(decision.dataType()) ? !decision.isPartOfQuantized
                                        : decision.doubt == Doubt::quantized;
  };
  int64_t trained = 0, elements = 0;
  for (const auto &decision : decisions) {
    if (decision->isPartOfQuantized)
      continue;
    trained += decision->role == Role::trained;
    elements += decision->role == Role::trained ? decision->tensor->count : 0;
    if (!shown(*decision)) {
      ++hidden;
      continue;
    }
    nameWidth = std::max(nameWidth, printable(decision->name()).size());
    shapeWidth = std::max(shapeWidth, shapeText(decision->shape()).size());
  }
  stream << trained << " trained parameters, " << elements << " elements"
         << (recipe.adapters.empty() ? "\n" : ", and adapters\n");
  auto row = [&](StringRef role, StringRef name, StringRef shape, StringRef decay, StringRef group,
                 StringRef reason) {
    stream << left_justify(role, 8) << "  " << left_justify(name, nameWidth) << "  "
           << left_justify(shape, shapeWidth) << "  " << left_justify(decay, 5) << "  ";
    if (groupWidth > 0)
      stream << left_justify(group, groupWidth) << "  ";
    stream << reason << '\n';
  };
  row("role", "name", "shape", "decay", "group", "why");
  for (const auto &decision : decisions)
    if (shown(*decision))
      row(roleName(decision->role), printable(decision->name()), shapeText(decision->shape()),
          decision->role != Role::trained ? ""
          : decision->decays              ? "yes"
                                          : "no",
          decision->group > 0 ? StringRef(recipe.groups[decision->group - 1].first) : "",
          printable(decision->reason));
  if (hidden)
    stream << hidden << " initializers of integers or booleans are constants\n";
  if (separation.lacksRequiresGrad && recipe.adapters.empty())
    stream << "the file does not record requires_grad: what the module froze is trained, unless "
              "--freeze names it\n";
  for (const auto &[parameter, reason] : separation.absent)
    stream << "not in the file: " << printable(parameter) << " (" << printable(reason) << ")\n";
  return result;
}

} // namespace trainc::reader
