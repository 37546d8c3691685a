// SPDX-License-Identifier: Apache-2.0
//
// What the module says of the program as a whole.
#include "compiler/emit/program_tables.h"
#include "compiler/emit/element_types.h"
#include "dialects/train/optimizer.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace trainc;

void trainc::setTarget(ModuleOp module, const Target &target) {
  Builder builder(module.getContext());
  SmallVector<StringRef> architectures(target.cudaArchitectures.begin(),
                                       target.cudaArchitectures.end());
  module->setAttr("train.target",
                  builder.getDictionaryAttr({
                      builder.getNamedAttr("architectures", builder.getStrArrayAttr(architectures)),
                      builder.getNamedAttr("march", builder.getStringAttr(target.march)),
                      builder.getNamedAttr("name", builder.getStringAttr(target.name)),
                  }));
}

void trainc::setExports(ModuleOp module, ArrayRef<ExportEntry> exports) {
  Builder builder(module.getContext());
  SmallVector<Attribute> entries;
  for (const ExportEntry &entry : exports)
    entries.push_back(builder.getDictionaryAttr({
        builder.getNamedAttr("initializer", builder.getStringAttr(entry.onnxName)),
        builder.getNamedAttr("parameter", builder.getStringAttr(entry.parameterName)),
        builder.getNamedAttr("transposed", builder.getBoolAttr(entry.transposed)),
    }));
  module->setAttr("train.exports", builder.getArrayAttr(entries));
}

static std::string text(DictionaryAttr attributes, StringRef name) {
  auto value = attributes ? attributes.getAs<StringAttr>(name) : StringAttr();
  return value ? value.str() : "";
}

static Target targetOf(ModuleOp module) {
  Target target;
  auto attributes = module->getAttrOfType<DictionaryAttr>("train.target");
  if (!attributes)
    return target;
  target.name = text(attributes, "name");
  target.march = text(attributes, "march");
  if (auto list = attributes.getAs<ArrayAttr>("architectures"))
    for (auto number : list.getAsRange<StringAttr>())
      target.cudaArchitectures.push_back(number.str());
  return target;
}

/// Of what a checkpoint depends on: parameters in order, with shapes, precision and optimizer.
static uint64_t fingerprintOf(ModuleOp module, StringRef optimizer) {
  std::string precision = "f32", parameters;
  if (auto function = module.lookupSymbol<func::FuncOp>("forward_backward"))
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto kind = function.getArgAttrOfType<StringAttr>(i, "train.kind");
      if (!kind || kind.getValue() != "parameter")
        continue;
      auto type = cast<RankedTensorType>(function.getArgument(i).getType());
      precision = elementTypeOf(type).name.str();
      parameters += text(function.getArgAttrDict(i), "train.name") +
                    (function.getArgAttr(i, "train.frozen") ? " frozen" : "");
      for (int64_t size : type.getShape())
        parameters += " " + std::to_string(size);
      parameters += "\n";
    }
  return llvm::xxh3_64bits((optimizer + "\n" + precision + "\n" + parameters).str());
}

ProgramTables trainc::programTables(ModuleOp module, StringRef compilerVersion) {
  ProgramTables tables;
  DictionaryAttr attributes = module->getAttrDictionary();
  tables.modelName = text(attributes, "train.model");
  tables.lossName = text(attributes, "train.loss");
  tables.optimizerName = text(attributes, "train.optimizer");
  tables.compilerVersion = compilerVersion.str();
  tables.target = targetOf(module);
  tables.fingerprint = fingerprintOf(module, tables.optimizerName);
  if (const train::Optimizer *optimizer = train::findOptimizer(tables.optimizerName)) {
    tables.stateNames.assign(optimizer->states.begin(), optimizer->states.end());
    for (const train::Hyperparameter &parameter : optimizer->hyperparameters)
      tables.hyperparameters.push_back({parameter.name, parameter.defaultValue, parameter.help});
  }
  if (auto exports = module->getAttrOfType<ArrayAttr>("train.exports"))
    for (auto entry : exports.getAsRange<DictionaryAttr>())
      tables.exports.push_back({text(entry, "initializer"), text(entry, "parameter"),
                                entry.getAs<BoolAttr>("transposed").getValue()});
  return tables;
}
