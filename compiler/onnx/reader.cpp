// SPDX-License-Identifier: Apache-2.0
//
// The steps of reading a model, each of which reports all its problems before the next begins.
#include "compiler/onnx/reader.h"
#include "compiler/model_name.h"
#include "compiler/onnx/adapters.h"
#include "compiler/onnx/adapters_in_export.h"
#include "compiler/onnx/file/file_check.h"
#include "compiler/onnx/file/half_model.h"
#include "compiler/onnx/graph/graph_digest.h"
#include "compiler/onnx/import/importer.h"
#include "compiler/onnx/parameters/exported_program.h"
#include "compiler/onnx/parameters/quantized_weights.h"
#include "compiler/onnx/rounded_weights.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/files/crc32c.h"
#include "runtime/program.h"

using namespace llvm;
using namespace mlir;

namespace trainc {

using namespace reader;

namespace {
/// What is known of a file before its shapes and operators matter.
struct Opened {
  std::shared_ptr<ModelFile> file;
  Ledger ledger;
  Conditions conditions;
  std::unique_ptr<Graph> graph;
  bool isComplete = false; // false after errors, which do not stop the rest
};
} // namespace

static FailureOr<Opened> open(StringRef path, const Recipe &recipe, MLIRContext &context,
                              Report &report) {
  Opened opened;
  opened.file = ModelFile::open(path, report);
  if (!opened.file || !checkFile(*opened.file, report))
    return failure();
  if (!fixInputs(*opened.file, recipe, opened.ledger, report))
    return failure();
  opened.isComplete = openLedger(*opened.file, recipe, opened.ledger, report);
  opened.conditions = findConditions(*opened.file, opened.ledger, recipe, context);
  opened.graph = Graph::build(*opened.file, opened.conditions.choices, report);
  if (!opened.graph)
    return failure();
  return opened;
}

static BatchNormModes batchNormsOf(const Opened &opened, const Recipe &recipe, Report &report) {
  return {*opened.file, *opened.graph, opened.ledger.program, recipe, report};
}

static std::optional<Parameters> decide(const Opened &opened, const BatchNormModes &batchNorms,
                                        const Recipe &recipe, Report &report) {
  if (!opened.isComplete)
    return std::nullopt;
  return decideParameters(*opened.file, *opened.graph, opened.ledger, batchNorms, recipe, report);
}

FailureOr<std::string> readParameterTable(StringRef path, const Recipe &recipe,
                                          MLIRContext &context, Report &report) {
  FailureOr<Opened> opened = open(path, recipe, context, report);
  if (failed(opened))
    return failure();
  const BatchNormModes batchNorms = batchNormsOf(*opened, recipe, report);
  std::optional<Parameters> initializers = decide(*opened, batchNorms, recipe, report);
  if (!initializers || !report.empty())
    return failure();
  return parameterTable(*initializers, opened->ledger, recipe);
}

// Tensors inside a step have any rank; of those with a name the trainer knows the sizes.
static bool checkRanks(ModuleOp module, StringRef path, Report &report) {
  size_t before = report.size();
  auto check = [&](const Twine &what, StringRef name, Type type) {
    if (int64_t rank = cast<RankedTensorType>(type).getRank(); rank > max_rank)
      (void)report.error(ExitCode::unsupportedModel,
                         Subject::ofPart(path.str(), (what + " '" + name + "'").str()),
                         "has rank " + Twine(rank) + ", above the largest, " + Twine(max_rank));
  };
  for (auto function : module.getOps<func::FuncOp>()) {
    for (auto [i, type] : enumerate(function.getArgumentTypes()))
      check(train::roleAs<train::InputAttr>(function, i) ? "input" : "parameter",
            train::nameOf(function, i), type);
    for (auto [i, type] : enumerate(function.getResultTypes()))
      check("output", train::resultNameOf(function, i), type);
  }
  return report.size() == before;
}

/// Whether --export-type is what the file computes in and exports have anyway.
static bool isTypeOf(const ModelFile &file, StringRef exportType) {
  return file.exportsHalves() && file.halfType() == halfTypeNamed(exportType);
}

// What differs from the module: one that learns halves rounds each update to them, one that learns
// a sparse weight leaves its zeros.
static bool checkForms(const ModelFile &file, const Parameters &initializers, const Recipe &recipe,
                       Report &report) {
  const size_t before = report.size();
  const bool widens = recipe.precision == "f32";
  const StringRef chosen =
      isTypeOf(file, recipe.exportType) ? "file" : StringRef(recipe.exportType);
  const std::string exported = chosen == "file"
                                   ? file.exportsHalves() ? "the file's types" : "float32"
                               : chosen == "f32" ? "float32"
                                                 : "parameters in " + chosen.str();
  size_t casts = 0; // parameters of 16 bits in a file that computes in 32
  std::string cast; // the first
  if (const int32_t type = file.halfType())
    report.warning(Finding::halfPrecision, file.path(),
                   "the file computes in " + elementName(type) + ": here parameters are float32" +
                       (widens ? " and steps compute in it" : "") + "; exports have " + exported,
                   widens ? "--precision bf16 for products in 16 bits" : "");
  for (const auto &initializer : initializers) {
    const StringRef name = initializer->name, form = file.formInFile(name.str());
    if (form.empty() || initializer->role != Role::trained)
      continue;
    if (form != "sparse" && file.halfType())
      continue; // its float32 are the masters
    if (form == "sparse")
      report.warning(Finding::sparseParameters, file.path(),
                     "parameter '" + name + "' is sparse in the file: its zeros are trained, too");
    else if (casts++ == 0)
      cast = "parameter '" + name.str() + "'";
  }
  if (casts > 0)
    report.warning(Finding::halfPrecision, file.path(),
                   cast + (casts > 1 ? " and " + std::to_string(casts - 1) + " more" : "") +
                       (casts > 1
                            ? " have 16 bits in the file, and are cast to float: here they are "
                            : " has 16 bits in the file, and is cast to float: here it is ") +
                       "float32" + (chosen == "f32" ? "" : ", which exports round"));
  return report.size() == before;
}

static bool checkExportType(const ModelFile &file, const Graph &graph, StringRef exportType,
                            Report &report) {
  constexpr int64_t kFirstWithCast = 13;
  if (exportType != "bf16" || graph.opset() >= kFirstWithCast)
    return true;
  (void)report.error(ExitCode::usage, file.path(),
                     "ONNX casts bf16 from operator set 13 on, the file is of " +
                         std::to_string(graph.opset()),
                     "--export-type fp16");
  return false;
}

FailureOr<Model> readModel(StringRef path, const Recipe &recipe, MLIRContext &context,
                           Report &report) {
  FailureOr<Opened> opened = open(path, recipe, context, report);
  if (failed(opened))
    return failure();
  Model model;
  model.name = modelName(path);
  model.trains = recipe.trains;
  if (recipe.exportType != "file" && !isTypeOf(*opened->file, recipe.exportType))
    model.exportType = recipe.exportType;
  model.file = opened->file;
  Graph *graph = opened->graph.get();
  // Problems of all kinds in one round: the import looks at what the others leave.
  (void)checkOperators(*graph, opened->conditions, report);
  auto inputs = resolveInputs(*model.file, recipe, report);
  const BatchNormModes batchNorms = batchNormsOf(*opened, recipe, report);
  std::optional<Parameters> initializers = decide(*opened, batchNorms, recipe, report);
  if (!inputs || !initializers || !checkForms(*model.file, *initializers, recipe, report) ||
      !checkExportType(*model.file, *graph, recipe.exportType, report))
    return failure();
  SmallVector<const Parameter *> parameters;
  for (const auto &initializer : *initializers)
    if (initializer->isParameter()) {
      parameters.push_back(initializer.get());
      model.parameters.push_back(*initializer);
    }
  model.module =
      importGraph(*model.file, *graph, parameters, *initializers, *inputs, recipe.batchAxes,
                  batchNorms, context, report, model.values, model.nodes);
  if (!model.module)
    return failure();
  if (!checkRanks(*model.module, path, report))
    return failure();
  checkIndices(*model.module);
  if (!markBuffers(*model.module, *model.file, recipe, report))
    return failure();
  train::setModelName(*model.module, model.name);
  train::setGraphDigest(*model.module, graphDigest(*model.file, *graph, *initializers));
  std::vector<std::string> groups;
  for (const auto &group : recipe.groups)
    groups.push_back(group.first);
  train::setGroups(*model.module, groups);
  for (const auto &initializer : *initializers)
    if (initializer->role == Role::constant &&
        (isFloat(initializer->tensor->dataType) ||
         opened->ledger.program.isBuffer(initializer->name)) &&
        !initializer->exporterMade && !graph->uses(initializer->name).empty() &&
        !opened->ledger.origin.count(initializer->name))
      model.constants.push_back(
          {initializer->name, static_cast<int64_t>(initializer->tensor->bytes.size()),
           crc32c(0, initializer->tensor->bytes.data(), initializer->tensor->bytes.size())});
  model.parameterCounts = parameterCounts(*initializers);
  model.parameterTable = parameterTable(*initializers, opened->ledger, recipe);
  model.program = std::make_shared<ExportedProgram>(std::move(opened->ledger.program));
  if (failed(addAdapters(model, recipe, report)))
    return failure();
  if (!model.adapters.empty()) { // whether exports can have them, before anything is planned
    onnx::GraphProto exported = model.file->graph();
    if (failed(addAdapterNodes(model, exported, report)))
      return failure();
  }
  return model;
}

std::vector<ExportEntry> moduleTensors(const Model &model) {
  std::vector<ExportEntry> result;
  for (const Parameter &parameter : model.parameters)
    for (const TensorName &tensor : parameter.inState)
      result.push_back({tensor.name, parameter.name, tensor.transposed});
  return result;
}

std::vector<StatePiece> statePieces(const Model &model) {
  std::vector<StatePiece> result;
  for (const Parameter &parameter : model.parameters)
    llvm::append_range(result, parameter.pieces);
  return result;
}

std::vector<std::string> modelFiles(const Model &model) { return model.file->paths(); }

/// The type of 16 bits that the parameter has in an export, as ExportEntry calls it; else empty.
static std::string narrowTypeInExport(const Model &model, const Parameter &parameter,
                                      StringRef name) {
  const ModelFile &file = *model.file;
  auto isIt = [&](const onnx::ValueInfoProto &output) { return output.name() == name; };
  int32_t type = 0;
  if (!model.exportType.empty() && !parameter.isDouble && none_of(file.graph().output(), isIt))
    type = halfTypeNamed(model.exportType);
  else if (model.exportType.empty() && (!file.halfType() || file.exportsHalves()))
    type = halfTypeNamed(file.formInFile(name.str()));
  return type == onnx::TensorProto::FLOAT16 ? "f16" : type ? "bf16" : "";
}

static std::string nameOfHalf(int32_t dataType) {
  return dataType == onnx::TensorProto::FLOAT16 ? "f16" : dataType ? "bf16" : "f32";
}

std::string floatTypeInFile(const Model &model, const std::string &name) {
  return nameOfHalf(halfTypeNamed(model.file->formInFile(name)));
}

/// As the file has it, but integers of four bits by pairs.
static FrozenTensor storedTensor(const Model &model, const TensorBytes &tensor) {
  FrozenTensor stored{tensor.name, "u8", {tensor.shape.begin(), tensor.shape.end()}};
  if (isFloat(tensor.dataType))
    stored.type = floatTypeInFile(model, tensor.name);
  else if (tensor.dataType == onnx::TensorProto::INT8)
    stored.type = "i8";
  if (!isFourBits(tensor.dataType))
    return stored;
  if (!stored.shape.empty() && stored.shape.back() % 2 == 0)
    stored.shape.back() /= 2;
  else
    stored.shape = {static_cast<int64_t>(tensor.bytes.size())};
  return stored;
}

bool isBesideIntegers(const Model &model, StringRef weight) {
  return any_of(model.parameters, [&](const Parameter &parameter) {
    return parameter.quantized && parameter.name == weight;
  });
}

static FrozenWeight storedAsIntegers(const Model &model, const QuantizedWeight &weight) {
  FrozenWeight stored{storedTensor(model, *weight.integers),
                      {weight.shape.begin(), weight.shape.end()},
                      weight.layout};
  stored.scales = storedTensor(model, *weight.scales);
  if (weight.zeros)
    stored.zeros = storedTensor(model, *weight.zeros);
  return stored;
}

std::vector<FrozenWeight> frozenWeights(const Model &model, const Recipe &recipe) {
  std::vector<FrozenWeight> weights;
  for (const Parameter &parameter : model.parameters) {
    if (!parameter.isFrozen() || parameter.isDouble)
      continue;
    if (parameter.quantized) {
      weights.push_back(storedAsIntegers(model, *parameter.quantized));
      continue;
    }
    if (std::optional<FrozenWeight> rounded = roundedWeight(model, parameter, recipe.frozenType)) {
      weights.push_back(std::move(*rounded));
      continue;
    }
    // Rounding a vector would save nothing.
    const bool isRounded = recipe.frozenType != "file" && parameter.shape.size() > 1;
    const int32_t half = isRounded ? halfTypeNamed(recipe.frozenType) : 0;
    weights.push_back(
        {{parameter.name, half ? nameOfHalf(half) : floatTypeInFile(model, parameter.name),
          parameter.shape}});
  }
  return weights;
}

std::vector<ExportEntry> exportInitializers(const Model &model, bool storesFrozen) {
  std::vector<ExportEntry> result;
  auto add = [&](const std::string &name, const Parameter &parameter, bool transposed) {
    result.push_back(
        {name, parameter.name, transposed, narrowTypeInExport(model, parameter, name)});
  };
  std::set<std::string> added; // scales may be those of several weights
  auto addStored = [&](const TensorBytes *tensor) {
    if (!tensor || !added.insert(tensor->name).second)
      return;
    const int32_t type = tensor->dataType;
    result.push_back({tensor->name, tensor->name, false});
    ExportEntry &entry = result.back();
    if (!isFloat(type)) {
      entry.type = type == kInt4 ? "i4" : type == kUint4 ? "u4" : storedTensor(model, *tensor).type;
      entry.shape.assign(tensor->shape.begin(), tensor->shape.end());
    } else {
      entry.type = narrowTypeInExport(model, {}, tensor->name);
    }
  };
  std::set<std::string> apart; // matrices of adapters that are not merged
  for (const AdapterEntry &adapter : model.adapters)
    if (isBesideIntegers(model, adapter.weight))
      apart.insert({adapter.a, adapter.b});
  for (const Parameter &parameter : model.parameters) {
    if (parameter.isOfAdapter && !apart.count(parameter.name))
      continue;
    if (parameter.quantized) {
      if (storesFrozen)
        for (const TensorBytes *tensor : {parameter.quantized->integers,
                                          parameter.quantized->scales, parameter.quantized->zeros})
          addStored(tensor);
      continue;
    }
    add(parameter.name, parameter, false);
    for (const TensorName &tied : parameter.tied)
      add(tied.name, parameter, tied.transposed);
  }
  return result;
}

} // namespace trainc
