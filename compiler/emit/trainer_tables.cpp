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

std::string row(ArrayRef<std::string> cells) { return "{" + llvm::join(cells, ", ") + "}"; }

std::string numbers(ArrayRef<int64_t> list) {
  return row(llvm::map_to_vector(list, [](int64_t number) { return std::to_string(number); }));
}

std::string textOf(StringRef text) { return text.empty() ? "" : stringLiteral(text); }

std::string boolean(bool value) { return value ? "true" : "false"; }

std::string dataType(Type type) { return ("data_type::" + elementTypeOf(type).runtimeName).str(); }

std::string placeText(StringRef name, Type type, kernel::PlaceAttr place) {
  auto tensor = cast<RankedTensorType>(type);
  return row({stringLiteral(name), dataType(type), std::to_string(tensor.getRank()),
              numbers(tensor.getShape()),
              ("arena_kind::" + kernel::stringifyArena(place.getArena())).str(),
              std::to_string(place.getOffset())});
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

std::vector<std::string> stateNames(const ProgramTables &tables) {
  std::vector<std::string> rows;
  for (const std::string &name : tables.stateNames)
    rows.push_back(stringLiteral(name));
  return rows;
}

/// What an initializer of the file has that the parameter has not: its type of floats, or its
/// integers.
std::vector<std::string> formOf(const ExportEntry &entry) {
  if (entry.shape.empty())
    return entry.type.empty() ? std::vector<std::string>()
                              : std::vector<std::string>{"data_type::" + entry.type};
  const auto number = llvm::StringSwitch<int64_t>(entry.type) // in ONNX
                          .Case("u8", 2)
                          .Case("i8", 3)
                          .Case("u4", 21)
                          .Default(22);
  return {"data_type::f32", std::to_string(number), std::to_string(entry.shape.size()),
          numbers(entry.shape)};
}

std::vector<std::string> exportRows(ArrayRef<ExportEntry> entries) {
  std::vector<std::string> rows;
  for (const ExportEntry &entry : entries) {
    std::vector<std::string> cells = {stringLiteral(entry.name), stringLiteral(entry.parameterName),
                                      boolean(entry.transposed)};
    llvm::append_range(cells, formOf(entry));
    rows.push_back(row(cells));
  }
  return rows;
}

std::vector<std::string> pieceRows(const ProgramTables &tables) {
  std::vector<std::string> rows;
  for (const StatePiece &piece : tables.statePieces)
    rows.push_back(
        row({stringLiteral(piece.tensor), stringLiteral(piece.parameterName),
             std::to_string(piece.from), std::to_string(piece.to), std::to_string(piece.count)}));
  return rows;
}

std::vector<std::string> constantRows(const ProgramTables &tables) {
  std::vector<std::string> rows;
  for (const StateConstant &constant : tables.stateConstants)
    rows.push_back(row({stringLiteral(constant.name), std::to_string(constant.bytes),
                        std::to_string(constant.checksum) + "u"}));
  return rows;
}

std::vector<std::string> statePlaces(ModuleOp module) {
  std::vector<std::string> rows;
  for (const train::StatePlace &state : train::statePlacesOf(module)) {
    auto place =
        kernel::PlaceAttr::get(module.getContext(), kernel::Arena::optimizer_state, state.offset);
    rows.push_back(placeText((state.name.getValue() + "/" + state.parameter.getValue()).str(),
                             RankedTensorType::get(state.shape, state.element), place));
  }
  return rows;
}

std::vector<std::string> adapterRows(const ProgramTables &tables) {
  std::vector<std::string> rows;
  for (const AdapterEntry &adapter : tables.adapters)
    rows.push_back(
        row({stringLiteral(adapter.module), stringLiteral(adapter.weight), stringLiteral(adapter.a),
             stringLiteral(adapter.b), floatLiteral(llvm::APFloat(adapter.alpha)),
             floatLiteral(llvm::APFloat(adapter.dropout)), boolean(adapter.isInByOut),
             boolean(adapter.isModulesInByOut)}));
  return rows;
}

std::vector<std::string> quantizedRows(ModuleOp module) {
  std::vector<std::string> rows;
  for (const auto &[name, form] : train::quantizedForms(module)) {
    auto shape = cast<RankedTensorType>(form.getWeight()).getShape();
    rows.push_back(row({stringLiteral(name.getValue()), stringLiteral(form.getScales().getValue()),
                        form.getZeros() ? stringLiteral(form.getZeros().getValue()) : "nullptr",
                        numbers(form.getLayout()), std::to_string(shape.size()), numbers(shape)}));
  }
  return rows;
}

std::vector<std::string> frozenParts(ModuleOp module) {
  std::vector<std::string> rows;
  if (ArrayAttr parts = train::frozenPartsOf(module))
    for (auto part : parts.getAsRange<DenseI64ArrayAttr>())
      rows.push_back(numbers(part.asArrayRef().take_front(3))); // without where it goes on
  return rows;
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
  /// Prints a table unless it would be empty; a C++ array cannot be.
  void table(StringRef type, StringRef name, ArrayRef<std::string> rows) {
    if (rows.empty())
      return;
    tableNames.push_back(name);
    writer.line();
    writer.line("constexpr " + type + " " + name + "[] = {");
    for (const std::string &row : rows)
      writer.line(row + ",");
    writer.line("};");
  }
  void collectArguments(func::FuncOp function);
  void addParameter(StringRef tensor, StringRef role, bool decays, bool isInfinite = false,
                    StringRef group = "");
  void addInput(StringRef tensor, bool isLabel, std::optional<int64_t> bound,
                std::optional<int64_t> ignored, std::optional<int64_t> low);
  void collectOutputs(func::FuncOp function);
  std::vector<std::string> metricRows() const;
  std::vector<std::string> partRows() const;
  std::vector<std::string> hyperparameterRows();
  void findStepTotals(func::FuncOp function);
  void collectStepScalars(func::FuncOp function);
  void addIndexCheck(train::IndexCheckAttr check, const std::string &place);
  void collectScalars(func::FuncOp function);
  int64_t scalar(StringRef name, bool required);
  LogicalResult collect();
  void printTables();
  void printKernelList();

  /// Of the program; none where the value is empty.
  void field(StringRef name, StringRef value) {
    if (!value.empty())
      writer.line("  ." + name + " = " + value + ",");
  }
  void stepScalarOffset(StringRef name);
  void printProgram();
  void printIdentity();
  void printMemory();
  void printFunctions();
  void printScalars();
  void printLoss();
  void printStep();
  void printFrozen();
  std::string arenaList(StringRef attribute);

  ModuleOp module;
  const ProgramTables &tables;
  const MemoryNames &names;
  SourceWriter writer;
  bool failed = false;
  func::FuncOp training;             // @forward_backward; null: there is none
  std::vector<StringRef> tableNames; // that are printed: fields of the program, in its order
  std::string buckets;               // of @forward_backward
  std::string lossPlace, lossWeightPlace, sampleLossesPlace, stepTotalsPlace, indexCheckPlace,
      parameterType = "data_type::f32";
  std::vector<std::string> frozen; // of parameters, which have them last
  std::vector<std::string> inputNames, parameters, inputs, outputs, checkedIndexes;
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
        frozen.push_back(row({tensor, "parameter_role::frozen", "false"}));
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
  std::vector<std::string> cells = {tensor.str(), ("parameter_role::" + role).str(),
                                    boolean(decays)};
  if (isInfinite || !group.empty())
    cells.push_back(boolean(isInfinite));
  if (!group.empty())
    cells.push_back(stringLiteral(group));
  parameters.push_back(row(cells));
}

void TablePrinter::addInput(StringRef tensor, bool isLabel, std::optional<int64_t> bound,
                            std::optional<int64_t> ignored, std::optional<int64_t> low) {
  std::vector<std::string> cells = {tensor.str(), boolean(isLabel),
                                    std::to_string(bound.value_or(0)), boolean(ignored.has_value()),
                                    integerLiteral(ignored.value_or(0))};
  if (low)
    cells.push_back(integerLiteral(*low));
  inputs.push_back(row(cells));
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

std::vector<std::string> TablePrinter::hyperparameterRows() {
  std::vector<std::string> rows;
  for (const HyperparameterEntry &entry : tables.hyperparameters) {
    std::vector<std::string> cells = {stringLiteral(entry.name),
                                      floatLiteral(llvm::APFloat(entry.defaultValue)),
                                      stringLiteral(entry.help),
                                      std::to_string(scalar(entry.name, true)),
                                      entry.follows.empty() ? "nullptr"
                                                            : stringLiteral(entry.follows),
                                      floatLiteral(llvm::APFloat(entry.least)),
                                      floatLiteral(llvm::APFloat(entry.limit)),
                                      boolean(entry.mayBeLimit)};
    if (!entry.needsAboveZero.empty())
      llvm::append_values(cells, stringLiteral(entry.needsAboveZero),
                          stringLiteral(entry.needsZero));
    rows.push_back(row(cells));
  }
  return rows;
}

std::vector<std::string> TablePrinter::metricRows() const {
  std::vector<std::string> rows;
  for (const auto &[place, weight] : metrics)
    rows.push_back(row({place, weight ? metricWeights.at(*weight) : "{}"}));
  return rows;
}

std::vector<std::string> TablePrinter::partRows() const {
  std::vector<std::string> rows;
  for (const auto &[number, part] : parts) {
    auto scale = partScales.find(number);
    rows.push_back(row({part.value, part.weight, part.samples, boolean(part.isSum),
                        std::to_string(scale == partScales.end() ? -1 : scale->second)}));
  }
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
    checkedIndexes.push_back(row({stringLiteral(index.getNode()), std::to_string(index.getLow()),
                                  std::to_string(index.getEnd())}));
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

void TablePrinter::stepScalarOffset(StringRef name) {
  if (auto found = stepScalars.find(name); found != stepScalars.end())
    field((name + "_offset").str(), std::to_string(found->second));
}

void TablePrinter::printIdentity() {
  field("model_name", stringLiteral(tables.modelName));
  field("compiler_version", stringLiteral(tables.compilerVersion));
  field("target", stringLiteral(tables.target.name));
  field("march", stringLiteral(tables.target.march));
  field("precision", stringLiteral(tables.precision));
  field("parameter_type", parameterType);
  field("loss_name", stringLiteral(tables.lossName));
  field("optimizer_name", stringLiteral(tables.optimizerName));
  field("fingerprint", "0x" + llvm::utohexstr(tables.fingerprint, true) + "u");
  field("graph_digest", textOf(tables.graphDigest));
  field("objective", textOf(tables.objective));
  field("kernel_list", "kernel_list");
  if (double flops = microBatchFlops(module))
    field("micro_batch_flops", floatLiteral(llvm::APFloat(flops)));
}

void TablePrinter::printMemory() {
  train::LayoutAttr layout = train::layoutOf(module);
  const int64_t width = parameterType == "data_type::f64" ? 8 : 4;
  auto bytes = module->getAttrOfType<DenseI64ArrayAttr>("kernel.arena_bytes");
  auto bytesOfArena = [&](kernel::Arena arena) {
    const auto number = static_cast<int64_t>(arena);
    return std::to_string(bytes && number < bytes.size() ? bytes[number] : 0);
  };
  field("arena_bytes", arenaList("kernel.arena_bytes"));
  field("arena_lower_bound", arenaList("kernel.arena_lower_bound"));
  field("constants", constantsAddress(names));
  field("constant_bytes", bytesOfArena(kernel::Arena::constants));
  field("summed_bytes", bytesOfArena(kernel::Arena::gradients));
  field("optimizer_slot_bytes", std::to_string(layout ? layout.trainedElements() * width : 0));
}

void TablePrinter::printFunctions() {
  for (StringRef entry : {"forward_backward", "update", "evaluate"})
    field(entry, module.lookupSymbol(entry) ? entry : "nullptr");
  for (StringRef entry : {"count_labels", "round_parameters"})
    if (module.lookupSymbol(entry))
      field(entry, entry);
}

void TablePrinter::printScalars() {
  const bool updates = module.lookupSymbol("update") != nullptr;
  auto offset = [&](StringRef name) {
    field((name + "_offset").str(), std::to_string(scalar(name, updates)));
  };
  for (StringRef name :
       {"learning_rate", "step", "gradient_scale", "clip_norm", "clip_value", "loss_limit"})
    offset(name);
  stepScalarOffset("loss_scale");
  offset("gradient_norm");
  field("draws_random_numbers", stepScalars.contains("random_key") ? "true" : "");
  stepScalarOffset("random_key");
}

void TablePrinter::printLoss() {
  field("loss", lossPlace);
  field("loss_is_log_perplexity", tables.lossIsLogPerplexity ? "true" : "");
  field("loss_weight", lossWeightPlace);
  stepScalarOffset("mean_per_batch");
  field("sample_losses", sampleLossesPlace);
  field("step_totals", stepTotalsPlace);
  stepScalarOffset("batch_fault");
  field("index_check", indexCheckPlace);
}

void TablePrinter::printStep() {
  if (train::pipelineOf(module))
    field("stages", "&step_pipeline");
  field("shards_gradients", shardsGradients(module) ? "true" : "");
  field("buckets", buckets);
  if (int64_t bytes = rankExchangeBytes(module))
    field("rank_exchange_bytes", std::to_string(bytes));
  field("updates_in_parts", updatesInParts(module).empty() ? "" : "true");
  if (!updatesInBackward(module))
    return;
  field("updates_in_backward", "true");
  const train::Optimizer *optimizer = train::findOptimizer(train::optimizerNameOf(module));
  field("update_row", std::to_string(optimizer ? optimizer->row : 1));
  field("sum_of_squares_offset", std::to_string(scalar("sum_of_squares", true)));
}

void TablePrinter::printFrozen() {
  auto bytes = module->getAttrOfType<IntegerAttr>("kernel.frozen_bytes");
  if (!bytes)
    return;
  field("frozen_count", std::to_string(frozen.size()));
  field("frozen_bytes", std::to_string(bytes.getInt()));
  field("frozen_digest", textOf(train::frozenDigestOf(module)));
}

void TablePrinter::printProgram() {
  writer.line();
  writer.line("extern const program trainer_program = {");
  printIdentity();
  printMemory();
  printFunctions();
  for (StringRef name : tableNames)
    field(name, name);
  printScalars();
  printLoss();
  printStep();
  printFrozen();
  writer.line("};");
}

/// What follows from the roles of arguments and results.
LogicalResult TablePrinter::collect() {
  training = module.lookupSymbol<func::FuncOp>("forward_backward");
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
  return success();
}

void TablePrinter::printTables() {
  table("parameter_place", "parameters", parameters);
  table("input_place", "inputs", inputs);
  table("tensor_place", "outputs", outputs);
  table("metric_place", "metrics", metricRows());
  table("loss_part", "loss_parts", partRows());
  table("checked_index", "checked_indexes", checkedIndexes);
  table("const char *", "state_names", stateNames(tables));
  table("hyperparameter", "hyperparameters", hyperparameterRows());
  table("export_initializer", "exports", exportRows(tables.exports));
  table("export_initializer", "module_tensors", exportRows(tables.moduleTensors));
  table("state_piece", "state_pieces", pieceRows(tables));
  table("state_constant", "state_constants", constantRows(tables));
  table("tensor_place", "state_places", statePlaces(module));
  table("adapter", "adapters", adapterRows(tables));
  table("quantized_weight", "quantized_weights", quantizedRows(module));
  table("frozen_part", "frozen_parts", frozenParts(module));
}

void TablePrinter::printKernelList() {
  writer.line();
  writer.line("constexpr const char *kernel_list =");
  std::string kernels = kernelsText(describeKernels(module));
  SmallVector<StringRef> lines;
  StringRef(kernels).rtrim('\n').split(lines, '\n');
  for (auto [i, line] : llvm::enumerate(lines))
    writer.line("    " + stringLiteral(line.str() + "\n") + (i + 1 == lines.size() ? ";" : ""));
}

FailureOr<std::string> TablePrinter::print() {
  if (mlir::failed(collect()))
    return failure();
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
  printTables();
  printKernelList();
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
