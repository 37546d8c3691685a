// SPDX-License-Identifier: Apache-2.0
//
// trainer.cpp: the constant `trainer_program` through which the runtime sees the model.
#include "compiler/emit/gradient_tables.h"
#include "compiler/emit/pipeline_tables.h"
#include "compiler/emit/step_program.h"
#include "dialects/elements/element_type.h"
#include "dialects/train/module_state.h"
#include "dialects/train/optimizer.h"
#include "dialects/train/train.h"
#include "passes/plan_tables.h"
#include "passes/planning/plan_text.h"
#include "passes/sharding/gradient_buckets.h"
#include "passes/sharding/update_parts.h"
#include "runtime/program.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

using namespace mlir;
using namespace trainc;

// Emitted tables name arenas as the IR does, and programs index them as the runtime does.
static_assert(int(arena_kind::parameters) == int(kernel::Arena::parameters) &&
              int(arena_kind::gradients) == int(kernel::Arena::gradients) &&
              int(arena_kind::optimizer_state) == int(kernel::Arena::optimizer_state) &&
              int(arena_kind::activations) == int(kernel::Arena::activations) &&
              int(arena_kind::workspace) == int(kernel::Arena::workspace) &&
              arena_count == int(kernel::Arena::workspace) + 1 && int(arena_kind::frozen) == 6);

namespace {

std::string dataType(Type type) { return ("data_type::" + elementTypeOf(type).runtimeName).str(); }

std::string placeText(StringRef name, Type type, kernel::PlaceAttr place) {
  auto tensor = cast<RankedTensorType>(type);
  std::string shape;
  for (int64_t size : tensor.getShape())
    shape += (shape.empty() ? "" : ", ") + std::to_string(size);
  return llvm::formatv("{{{0}, {1}, {2}, {{{3}}, arena_kind::{4}, {5}}", stringLiteral(name),
                       dataType(type), tensor.getRank(), shape,
                       kernel::stringifyArena(place.getArena()), place.getOffset())
      .str();
}

/// Operations of forward and backward pass, whether in one function or in those of chunks.
double microBatchFlops(ModuleOp module) {
  double flops = 0;
  for (const planned_entry &entry : describeKernels(module)) {
    auto function = module.lookupSymbol<func::FuncOp>(entry.name);
    if (entry.name == "forward_backward" || (function && train::chunkOf(function)))
      flops += entry.flops;
  }
  return flops;
}

class TablePrinter {
public:
  TablePrinter(ModuleOp module, const ProgramTables &tables, const MemoryNames &names)
      : module(module), tables(tables), names(names) {}
  FailureOr<std::string> print();

private:
  kernel::PlaceAttr placeOf(DictionaryAttr attributes, StringRef what) {
    auto place =
        attributes ? attributes.getAs<kernel::PlaceAttr>("kernel.place") : kernel::PlaceAttr();
    if (place)
      return place;
    emitError(module.getLoc(), "emit: no kernel.place for ") << what;
    failed = true;
    return kernel::PlaceAttr::get(module.getContext(), kernel::Arena::workspace, 0);
  }
  /// Opens a table unless it would be empty; a C++ array cannot be.
  void table(StringRef type, StringRef name, ArrayRef<std::string> rows) {
    if (rows.empty())
      return;
    writer.line();
    writer.line("constexpr " + type + " " + name + "[] = {");
    for (const std::string &row : rows)
      writer.line(row + ",");
    writer.line("};");
  }
  static std::string tableName(StringRef name, size_t count) {
    return count == 0 ? "nullptr" : name.str();
  }
  void collectArguments(func::FuncOp function);
  void addParameter(StringRef tensor, StringRef role, bool decays, bool isInfinite = false,
                    StringRef group = "");
  void addInput(StringRef tensor, bool isLabel, std::optional<int64_t> bound,
                std::optional<int64_t> ignored, std::optional<int64_t> low);
  void collectOutputs(func::FuncOp function);
  void collectStatePlaces();
  std::vector<std::string> metricRows() const;
  std::vector<std::string> partRows() const;
  std::vector<std::string> adapterRows() const;
  std::vector<std::string> quantizedRows() const;
  std::vector<std::string> frozenParts() const;
  void findStepTotals(func::FuncOp function);
  void collectStepScalars(func::FuncOp function);
  void addIndexCheck(train::IndexCheckAttr check, const std::string &place);
  void collectScalars(func::FuncOp function);
  int64_t scalar(StringRef name, bool required);
  void printProgram();
  std::string arenaList(StringRef attribute);

  ModuleOp module;
  const ProgramTables &tables;
  const MemoryNames &names;
  SourceWriter writer;
  bool failed = false;
  std::string buckets = "{}"; // of @forward_backward
  std::string lossPlace, lossWeightPlace, sampleLossesPlace, stepTotalsPlace, indexCheckPlace,
      parameterType = "data_type::f32";
  std::vector<std::string> frozen; // of parameters, which have them last
  std::vector<std::string> inputNames, parameters, inputs, outputs, checkedIndexes, hyperparameters,
      exports, moduleTensors, statePieces, stateConstants, states, statePlaces;
  struct Part {
    std::string value, weight = "{}", samples = "{}"; // places
    bool isSum = false;
  };
  std::map<int64_t, Part> parts;                                       // of the loss
  std::vector<std::pair<std::string, std::optional<int64_t>>> metrics; // and the weight of each
  std::map<int64_t, std::string> metricWeights;
  std::map<int64_t, int64_t> partScales; // where, of those that forward_backward has
  llvm::StringMap<int64_t> scalars;
  llvm::StringMap<int64_t> stepScalars; // where, of those that forward_backward has
};

/// What the runtime sets for each micro-batch, or for each step.
bool isStepScalar(train::RoleAttrInterface role) {
  return isa_and_nonnull<train::RandomKeyAttr, train::BatchFaultAttr, train::MeanPerBatchAttr,
                         train::LossScaleAttr>(role);
}

void TablePrinter::collectArguments(func::FuncOp function) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    train::RoleAttrInterface role = train::roleOf(function, i);
    StringRef name = train::nameOf(function, i);
    Type type = function.getArgument(i).getType();
    std::string tensor = placeText(name, type, placeOf(function.getArgAttrDict(i), name));
    if (auto parameter = dyn_cast_or_null<train::ParameterAttr>(role)) {
      if (train::storedTypeOf(module, parameter.getName())) {
        frozen.push_back("{" + tensor + ", parameter_role::frozen, false}");
        continue;
      }
      parameterType = dataType(type);
      addParameter(tensor, parameter.isFrozen() ? "frozen" : "trained",
                   parameter.getRun() == train::Run::decayed,
                   tables.infiniteParameters.count(name.str()),
                   parameter.getGroup() > 0 ? train::groupsOf(module)[parameter.getGroup() - 1]
                                            : StringRef());
    } else if (isa_and_nonnull<train::BufferAttr>(role)) {
      addParameter(tensor, "buffer", false);
    } else if (auto input = dyn_cast_or_null<train::InputAttr>(role)) {
      addInput(tensor, false, input.getIndexBound(), input.getIgnoreIndex(), input.getIndexLow());
      inputNames.push_back(name.str());
    } else if (auto label = dyn_cast_or_null<train::LabelAttr>(role)) {
      addInput(tensor, true, label.getIndexBound(), label.getIgnoreIndex(), {});
      inputNames.push_back(name.str());
    } else if (auto scale = dyn_cast_or_null<train::PartScaleAttr>(role)) {
      partScales[scale.getPart()] =
          placeOf(function.getArgAttrDict(i), "the scale of a part of the loss").getOffset();
    } else if (!isStepScalar(role) && !isa_and_nonnull<train::ParameterCopyAttr>(role)) {
      function.emitError("emit: argument ") << i << " has no role that a trainer knows";
      failed = true;
    }
  }
}

void TablePrinter::collectStepScalars(func::FuncOp function) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (train::RoleAttrInterface role = train::roleOf(function, i); isStepScalar(role))
      stepScalars[role.getTitle()] =
          placeOf(function.getArgAttrDict(i), role.getTitle()).getOffset();
}

void TablePrinter::addParameter(StringRef tensor, StringRef role, bool decays, bool isInfinite,
                                StringRef group) {
  std::string more = isInfinite ? ", true" : group.empty() ? "" : ", false";
  if (!group.empty())
    more += ", " + stringLiteral(group);
  parameters.push_back(llvm::formatv("{{{0}, parameter_role::{1}, {2}{3}}", tensor, role,
                                     decays ? "true" : "false", more));
}

void TablePrinter::addInput(StringRef tensor, bool isLabel, std::optional<int64_t> bound,
                            std::optional<int64_t> ignored, std::optional<int64_t> low) {
  inputs.push_back(llvm::formatv("{{{0}, {1}, {2}, {3}{4}}", tensor, isLabel ? "true" : "false",
                                 bound.value_or(0),
                                 ignored ? "true, " + integerLiteral(*ignored) : "false, 0",
                                 low ? ", " + integerLiteral(*low) : ""));
}

void TablePrinter::collectOutputs(func::FuncOp function) {
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    train::RoleAttrInterface role = train::resultRoleOf(function, i);
    StringRef name = train::resultNameOf(function, i);
    auto text = [&](StringRef name) {
      return placeText(name, function.getResultTypes()[i],
                       placeOf(function.getResultAttrDict(i), name));
    };
    if (isa_and_nonnull<train::LossAttr>(role))
      lossPlace = text(name);
    else if (auto part = dyn_cast_or_null<train::LossPartAttr>(role))
      parts[part.getPart()] = {text("loss_part"), "{}", "{}", part.getIsSum()};
    else if (auto weight = dyn_cast_or_null<train::LossWeightAttr>(role))
      (weight.getPart() ? parts[*weight.getPart()].weight : lossWeightPlace) = text("loss_weight");
    else if (auto losses = dyn_cast_or_null<train::SampleLossesAttr>(role))
      (losses.getPart() ? parts[*losses.getPart()].samples : sampleLossesPlace) =
          text("sample_losses");
    else if (auto metric = dyn_cast_or_null<train::MetricAttr>(role))
      metrics.emplace_back(text(metric.getMetric()), metric.getWeight());
    else if (auto weight = dyn_cast_or_null<train::MetricWeightAttr>(role))
      metricWeights[weight.getNumber()] = text("metric_weight");
    else if (isa_and_nonnull<train::OutputAttr>(role))
      outputs.push_back(text(name));
    else if (auto check = dyn_cast_or_null<train::IndexCheckAttr>(role))
      addIndexCheck(check, text("index_check"));
  }
}

void TablePrinter::collectStatePlaces() {
  for (const train::StatePlace &state : train::statePlacesOf(module)) {
    auto place =
        kernel::PlaceAttr::get(module.getContext(), kernel::Arena::optimizer_state, state.offset);
    statePlaces.push_back(
        placeText((state.name.getValue() + "/" + state.parameter.getValue()).str(),
                  RankedTensorType::get(state.shape, state.element), place));
  }
}

std::vector<std::string> TablePrinter::metricRows() const {
  std::vector<std::string> rows;
  for (const auto &[place, weight] : metrics)
    rows.push_back("{" + place + ", " + (weight ? metricWeights.at(*weight) : "{}") + "}");
  return rows;
}

std::vector<std::string> TablePrinter::partRows() const {
  std::vector<std::string> rows;
  for (const auto &[number, part] : parts) {
    auto scale = partScales.find(number);
    rows.push_back("{" + part.value + ", " + part.weight + ", " + part.samples + ", " +
                   (part.isSum ? "true" : "false") + ", " +
                   std::to_string(scale == partScales.end() ? -1 : scale->second) + "}");
  }
  return rows;
}

std::vector<std::string> TablePrinter::adapterRows() const {
  std::vector<std::string> rows;
  for (const AdapterEntry &adapter : tables.adapters)
    rows.push_back("{" + stringLiteral(adapter.module) + ", " + stringLiteral(adapter.weight) +
                   ", " + stringLiteral(adapter.a) + ", " + stringLiteral(adapter.b) + ", " +
                   floatLiteral(llvm::APFloat(adapter.alpha)) + ", " +
                   floatLiteral(llvm::APFloat(adapter.dropout)) + ", " +
                   (adapter.isInByOut ? "true" : "false") + ", " +
                   (adapter.isModulesInByOut ? "true" : "false") + "}");
  return rows;
}

void TablePrinter::findStepTotals(func::FuncOp update) {
  for (unsigned i = 0; i < update.getNumArguments(); ++i)
    if (isa_and_nonnull<train::StepTotalsAttr>(train::roleOf(update, i)))
      stepTotalsPlace = placeText("step_totals", update.getArgument(i).getType(),
                                  placeOf(update.getArgAttrDict(i), "the step's totals"));
}

void TablePrinter::addIndexCheck(train::IndexCheckAttr check, const std::string &place) {
  indexCheckPlace = place;
  for (auto index : check.getChecks().getAsRange<train::CheckedIndexAttr>())
    checkedIndexes.push_back(llvm::formatv("{{{0}, {1}, {2}}", stringLiteral(index.getNode()),
                                           index.getLow(), index.getEnd()));
}

void TablePrinter::collectScalars(func::FuncOp function) {
  auto add = [&](train::RoleAttrInterface role, DictionaryAttr attributes) {
    if (isa_and_nonnull<train::ScalarAttr, train::GradientNormAttr>(role))
      scalars[role.getName()] = placeOf(attributes, role.getName()).getOffset();
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    add(train::roleOf(function, i), function.getArgAttrDict(i));
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    add(train::resultRoleOf(function, i), function.getResultAttrDict(i));
}

int64_t TablePrinter::scalar(StringRef name, bool required) {
  auto found = scalars.find(name);
  if (found != scalars.end())
    return found->second;
  if (required) {
    emitError(module.getLoc(), "emit: @update has no scalar '") << name << "'";
    failed = true;
  }
  return 0;
}

std::string TablePrinter::arenaList(StringRef attribute) {
  auto values = module->getAttrOfType<DenseI64ArrayAttr>(attribute);
  std::string text = "{";
  for (int i = 0; i < 5; ++i) // the sixth, constants, is not an arena of the runtime
    text +=
        (i ? ", " : "") + std::to_string(values && i < values.size() ? values.asArrayRef()[i] : 0);
  if (!values) {
    emitError(module.getLoc(), "emit: the module has no ") << attribute;
    failed = true;
  }
  return text + "}";
}

void TablePrinter::printProgram() {
  train::LayoutAttr layout = train::layoutOf(module);
  int64_t width = parameterType == "data_type::f64" ? 8 : 4;
  int64_t slot = layout ? layout.trainedElements() * width : 0;
  auto field = [&](StringRef name, const llvm::Twine &value) {
    writer.line("  ." + name + " = " + value + ",");
  };
  auto list = [&](StringRef name, StringRef count, const std::vector<std::string> &rows) {
    field(name, tableName(name, rows.size()));
    field(count, llvm::Twine(rows.size()));
  };
  auto listOfAny = [&](StringRef name, StringRef count, const std::vector<std::string> &rows) {
    if (!rows.empty())
      list(name, count, rows);
  };
  writer.line();
  writer.line("extern const program trainer_program = {");
  field("model_name", stringLiteral(tables.modelName));
  field("compiler_version", stringLiteral(tables.compilerVersion));
  field("target", stringLiteral(tables.target.name));
  field("march", stringLiteral(tables.target.march));
  field("precision", stringLiteral(tables.precision));
  field("parameter_type", parameterType);
  field("loss_name", stringLiteral(tables.lossName));
  field("optimizer_name", stringLiteral(tables.optimizerName));
  field("fingerprint", "0x" + llvm::utohexstr(tables.fingerprint, true) + "u");
  field("arena_bytes", arenaList("kernel.arena_bytes"));
  field("arena_lower_bound", arenaList("kernel.arena_lower_bound"));
  field("constants", constantsAddress(names));
  auto bytes = module->getAttrOfType<DenseI64ArrayAttr>("kernel.arena_bytes");
  constexpr auto constants = static_cast<size_t>(kernel::Arena::constants);
  field("constant_bytes",
        llvm::Twine(bytes && bytes.asArrayRef().size() > constants ? bytes[constants] : 0));
  auto arenas = module->getAttrOfType<DenseI64ArrayAttr>("kernel.arena_bytes");
  constexpr auto gradients = static_cast<size_t>(kernel::Arena::gradients);
  field("summed_bytes", llvm::Twine(arenas ? arenas[gradients] : 0));
  field("optimizer_slot_bytes", llvm::Twine(slot));
  list("parameters", "parameter_count", parameters);
  list("inputs", "input_count", inputs);
  list("outputs", "output_count", outputs);
  list("state_names", "state_count", states);
  list("hyperparameters", "hyperparameter_count", hyperparameters);
  bool update = static_cast<bool>(module.lookupSymbol("update"));
  for (StringRef name : {"learning_rate", "step", "gradient_scale", "clip_norm", "clip_value",
                         "loss_limit", "gradient_norm"})
    field((name + "_offset").str(), llvm::Twine(scalar(name, update)));
  field("draws_random_numbers", stepScalars.contains("random_key") ? "true" : "false");
  field("random_key_offset", llvm::Twine(stepScalars.lookup("random_key")));
  field("loss", lossPlace.empty() ? "{}" : lossPlace);
  list("exports", "export_count", exports);
  for (StringRef entry : {"forward_backward", "update", "evaluate"})
    field(entry, module.lookupSymbol(entry) ? entry : "nullptr");
  field("kernel_list", "kernel_list");
  if (!checkedIndexes.empty()) {
    field("index_check", indexCheckPlace);
    list("checked_indexes", "checked_index_count", checkedIndexes);
  }
  if (!lossWeightPlace.empty())
    field("loss_weight", lossWeightPlace);
  if (stepScalars.contains("mean_per_batch"))
    field("mean_per_batch_offset", llvm::Twine(stepScalars.lookup("mean_per_batch")));
  if (!sampleLossesPlace.empty())
    field("sample_losses", sampleLossesPlace);
  if (!stepTotalsPlace.empty()) {
    field("step_totals", stepTotalsPlace);
    field("batch_fault_offset", llvm::Twine(stepScalars.lookup("batch_fault")));
  }
  if (!updatesInParts(module).empty())
    field("updates_in_parts", "true");
  listOfAny("metrics", "metric_count", metricRows());
  listOfAny("loss_parts", "loss_part_count", partRows());
  if (module.lookupSymbol("count_labels"))
    field("count_labels", "count_labels");
  if (tables.lossIsLogPerplexity)
    field("loss_is_log_perplexity", "true");
  if (train::pipelineOf(module))
    field("stages", "&step_pipeline");
  if (double flops = microBatchFlops(module))
    field("micro_batch_flops", floatLiteral(llvm::APFloat(flops)));
  if (!tables.graphDigest.empty())
    field("graph_digest", stringLiteral(tables.graphDigest));
  if (!tables.objective.empty())
    field("objective", stringLiteral(tables.objective));
  listOfAny("module_tensors", "module_tensor_count", moduleTensors);
  listOfAny("state_pieces", "state_piece_count", statePieces);
  listOfAny("state_constants", "state_constant_count", stateConstants);
  listOfAny("state_places", "state_place_count", statePlaces);
  if (shardsGradients(module))
    field("shards_gradients", "true");
  if (buckets != "{}")
    field("buckets", buckets);
  if (int64_t bytes = rankExchangeBytes(module))
    field("rank_exchange_bytes", std::to_string(bytes));
  if (stepScalars.contains("loss_scale"))
    field("loss_scale_offset", llvm::Twine(stepScalars.lookup("loss_scale")));
  if (module.lookupSymbol("round_parameters"))
    field("round_parameters", "round_parameters");
  if (updatesInBackward(module)) {
    field("updates_in_backward", "true");
    const train::Optimizer *optimizer = train::findOptimizer(train::optimizerNameOf(module));
    field("update_row", llvm::Twine(optimizer ? optimizer->row : 1));
    field("sum_of_squares_offset", llvm::Twine(scalar("sum_of_squares", true)));
  }
  if (auto bytes = module->getAttrOfType<IntegerAttr>("kernel.frozen_bytes")) {
    field("frozen_count", llvm::Twine(frozen.size()));
    field("frozen_bytes", llvm::Twine(bytes.getInt()));
    if (StringRef digest = train::frozenDigestOf(module); !digest.empty())
      field("frozen_digest", stringLiteral(digest));
  }
  listOfAny("adapters", "adapter_count", adapterRows());
  listOfAny("quantized_weights", "quantized_weight_count", quantizedRows());
  listOfAny("frozen_parts", "frozen_part_count", frozenParts());
  writer.line("};");
}

std::vector<std::string> TablePrinter::frozenParts() const {
  std::vector<std::string> rows;
  if (ArrayAttr parts = train::frozenPartsOf(module))
    for (auto part : parts.getAsRange<DenseI64ArrayAttr>())
      rows.push_back("{" + std::to_string(part[0]) + ", " + std::to_string(part[1]) + ", " +
                     std::to_string(part[2]) + "}");
  return rows;
}

std::vector<std::string> TablePrinter::quantizedRows() const {
  auto numbers = [](ArrayRef<int64_t> list) {
    return "{" +
           llvm::join(llvm::map_range(list, [](int64_t n) { return std::to_string(n); }), ", ") +
           "}";
  };
  std::vector<std::string> rows;
  for (const auto &[name, form] : train::quantizedForms(module)) {
    auto shape = cast<RankedTensorType>(form.getWeight()).getShape();
    rows.push_back("{" + stringLiteral(name.getValue()) + ", " +
                   stringLiteral(form.getScales().getValue()) + ", " +
                   (form.getZeros() ? stringLiteral(form.getZeros().getValue()) : "nullptr") +
                   ", " + numbers(form.getLayout()) + ", " + std::to_string(shape.size()) + ", " +
                   numbers(shape) + "}");
  }
  return rows;
}

FailureOr<std::string> TablePrinter::print() {
  auto training = module.lookupSymbol<func::FuncOp>("forward_backward");
  auto evaluation = module.lookupSymbol<func::FuncOp>("evaluate");
  if (!evaluation)
    return emitError(module.getLoc(), "emit: expects @evaluate");
  collectArguments(training ? training : evaluation);
  llvm::append_range(parameters, frozen);
  collectOutputs(evaluation);
  for (auto function : module.getOps<func::FuncOp>())
    if (function == training || train::chunkOf(function))
      collectStepScalars(function);
  if (auto update = module.lookupSymbol<func::FuncOp>("update")) {
    findStepTotals(update);
    collectScalars(update);
  }
  for (const HyperparameterEntry &entry : tables.hyperparameters)
    hyperparameters.push_back(
        "{" + stringLiteral(entry.name) + ", " + floatLiteral(llvm::APFloat(entry.defaultValue)) +
        ", " + stringLiteral(entry.help) + ", " + std::to_string(scalar(entry.name, true)) + ", " +
        (entry.follows.empty() ? "nullptr" : stringLiteral(entry.follows)) + ", " +
        floatLiteral(llvm::APFloat(entry.least)) + ", " + floatLiteral(llvm::APFloat(entry.limit)) +
        ", " + (entry.mayBeLimit ? "true" : "false") +
        (entry.needsAboveZero.empty()
             ? ""
             : ", " + stringLiteral(entry.needsAboveZero) + ", " + stringLiteral(entry.needsZero)) +
        "}");
  auto formOf = [](const ExportEntry &entry) -> std::string {
    if (entry.shape.empty())
      return entry.type.empty() ? "" : ", data_type::" + entry.type;
    const auto sizes =
        llvm::map_range(entry.shape, [](int64_t size) { return std::to_string(size); });
    const int64_t number = llvm::StringSwitch<int64_t>(entry.type) // in ONNX
                               .Case("u8", 2)
                               .Case("i8", 3)
                               .Case("u4", 21)
                               .Default(22);
    return ", data_type::f32, " + std::to_string(number) + ", " +
           std::to_string(entry.shape.size()) + ", {" + llvm::join(sizes, ", ") + "}";
  };
  auto add = [&](std::vector<std::string> &rows, ArrayRef<ExportEntry> entries) {
    for (const ExportEntry &entry : entries)
      rows.push_back("{" + stringLiteral(entry.name) + ", " + stringLiteral(entry.parameterName) +
                     ", " + (entry.transposed ? "true" : "false") + formOf(entry) + "}");
  };
  add(exports, tables.exports);
  add(moduleTensors, tables.moduleTensors);
  for (const StatePiece &piece : tables.statePieces)
    statePieces.push_back("{" + stringLiteral(piece.tensor) + ", " +
                          stringLiteral(piece.parameterName) + ", " + std::to_string(piece.from) +
                          ", " + std::to_string(piece.to) + ", " + std::to_string(piece.count) +
                          "}");
  for (const StateConstant &constant : tables.stateConstants)
    stateConstants.push_back("{" + stringLiteral(constant.name) + ", " +
                             std::to_string(constant.bytes) + ", " +
                             std::to_string(constant.checksum) + "u}");
  for (const std::string &name : tables.stateNames)
    states.push_back(stringLiteral(name));
  collectStatePlaces();

  writer.line("// What the runtime knows of the model: names, shapes, places, entry functions.");
  if (!names.constants().empty())
    writer.line("#include \"constants.h\"");
  writer.line("#include \"runtime/program.h\"");
  writer.line("#include \"step.h\"");
  writer.line();
  writer.line("namespace trainc {");
  writer.outdent();
  writer.line();
  writer.line("namespace {");
  writer.outdent();
  table("parameter_place", "parameters", parameters);
  table("input_place", "inputs", inputs);
  table("tensor_place", "outputs", outputs);
  table("metric_place", "metrics", metricRows());
  table("loss_part", "loss_parts", partRows());
  table("checked_index", "checked_indexes", checkedIndexes);
  table("const char *", "state_names", states);
  table("hyperparameter", "hyperparameters", hyperparameters);
  table("export_initializer", "exports", exports);
  table("export_initializer", "module_tensors", moduleTensors);
  table("tensor_place", "state_places", statePlaces);
  table("state_piece", "state_pieces", statePieces);
  table("state_constant", "state_constants", stateConstants);
  table("adapter", "adapters", adapterRows());
  table("quantized_weight", "quantized_weights", quantizedRows());
  table("frozen_part", "frozen_parts", frozenParts());
  writer.line();
  writer.line("constexpr const char *kernel_list =");
  std::string kernels = kernelsText(describeKernels(module));
  SmallVector<StringRef> lines;
  StringRef(kernels).rtrim('\n').split(lines, '\n');
  for (auto [i, line] : llvm::enumerate(lines))
    writer.line("    " + stringLiteral(line.str() + "\n") + (i + 1 == lines.size() ? ";" : ""));
  if (training)
    buckets = printBuckets(training, writer);
  printPipelineTables(module, inputNames, writer);
  writer.line();
  writer.indent();
  writer.line("} // namespace");
  printProgram();
  writer.line();
  writer.indent();
  writer.line("} // namespace trainc");
  if (failed)
    return failure();
  return writer.text();
}

} // namespace

FailureOr<std::string> trainc::trainerTables(ModuleOp module, const ProgramTables &tables,
                                             const MemoryNames &names) {
  return TablePrinter(module, tables, names).print();
}
