// SPDX-License-Identifier: Apache-2.0
//
// The steps of reading a model, each of which reports all its problems before the next begins.
#include "compiler/onnx/reader.h"
#include "compiler/onnx/importer.h"
#include "dialects/train/train.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace mlir;

namespace trainc {

using namespace reader;

static Parameter makeParameter(const Decision &decision, const Decisions &decisions) {
  Parameter parameter;
  parameter.name = decision.name().str();
  parameter.moduleName = decision.moduleName.empty() ? parameter.name : decision.moduleName;
  parameter.shape.assign(decision.tensor->shape.begin(), decision.tensor->shape.end());
  parameter.isDouble = elementOf(decision.tensor->dataType) == Element::f64;
  parameter.bytes = decision.tensor->bytes;
  parameter.frozen = decision.role == Role::frozen;
  parameter.decays = decision.decays;
  parameter.reason = decision.reason;
  for (const auto &other : decisions)
    if (other->role == Role::tied && other->canonical == &decision)
      parameter.tied.push_back({other->name().str(), other->transposed});
  return parameter;
}

FailureOr<Model> readModel(StringRef path, const Recipe &recipe, MLIRContext &context,
                           Report &report) {
  Model model;
  model.name = sys::path::stem(path).str();
  std::shared_ptr<ModelFile> file = ModelFile::open(path, report);
  model.file = file;
  if (!file || !checkVersions(*file, report))
    return failure();
  Separation separation; // a model that is only evaluated is taken as it is
  if (recipe.trains)
    liftWeights(*file, separation);
  bool separate = !recipe.trains || (separateParameters(*file, separation, report) &&
                                     separateCopies(*file, separation, report));
  std::unique_ptr<Graph> graph = Graph::build(*model.file, report);
  if (!graph)
    return failure();
  // Problems of all three kinds in one round.
  bool supported = checkOperators(*graph, report);
  auto inputs = resolveInputs(*model.file, recipe, report);
  std::optional<Decisions> decisions;
  if (separate)
    decisions = decideParameters(*model.file, *graph, separation, recipe, report);
  if (!supported || !inputs || !decisions)
    return failure();
  SmallVector<const Decision *> parameters;
  for (const auto &decision : *decisions)
    if (decision->isParameter()) {
      parameters.push_back(decision.get());
      model.parameters.push_back(makeParameter(*decision, *decisions));
    }
  model.module = importGraph(*model.file, *graph, parameters, *decisions, *inputs, context, report,
                             model.values);
  if (!model.module)
    return failure();
  checkIndices(*model.module);
  if (!markBuffers(*model.module, *model.file, recipe, report))
    return failure();
  train::setModelName(*model.module, model.name);
  model.parameterTable = parameterTable(*decisions, separation);
  return model;
}

std::vector<ExportInitializer> exportInitializers(const Model &model) {
  std::vector<ExportInitializer> result;
  for (const Parameter &parameter : model.parameters) {
    result.push_back({parameter.name, parameter.name, false});
    for (const TiedInitializer &tied : parameter.tied)
      result.push_back({tied.onnxName, parameter.name, tied.transposed});
  }
  return result;
}

} // namespace trainc
