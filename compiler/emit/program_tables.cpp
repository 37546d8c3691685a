// SPDX-License-Identifier: Apache-2.0
//
// What the module says of the program as a whole.
#include "compiler/emit/program_tables.h"
#include "compiler/emit/source_writer.h"
#include "dialects/elements/element_type.h"
#include "dialects/train/loss_term.h"
#include "dialects/train/module_state.h"
#include "dialects/train/optimizer.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace trainc;

void trainc::setTarget(ModuleOp module, const Target &target) {
  Builder builder(module.getContext());
  SmallVector<StringRef> architectures(target.cudaArchitectures.begin(),
                                       target.cudaArchitectures.end());
  train::setTarget(module,
                   train::TargetAttr::get(module.getContext(), builder.getStringAttr(target.name),
                                          builder.getStringAttr(target.march),
                                          builder.getStrArrayAttr(architectures)));
}

// Types that tensors of the file may have.
static Type storedElement(Builder &builder, StringRef type) {
  return type == "bf16"  ? Type(builder.getBF16Type())
         : type == "f16" ? Type(builder.getF16Type())
         : type == "f32" ? Type(builder.getF32Type())
                         : IntegerType::get(builder.getContext(), type.ends_with("4") ? 4 : 8,
                                            type.starts_with("u") ? IntegerType::Unsigned
                                                                  : IntegerType::Signless);
}

static std::string nameOfStored(Type integers) {
  return (integers.isUnsignedInteger() ? "u" : "i") +
         std::to_string(integers.getIntOrFloatBitWidth());
}

static SmallVector<train::ExportAttr> attributesOf(ModuleOp module, ArrayRef<ExportEntry> entries) {
  Builder builder(module.getContext());
  SmallVector<train::ExportAttr> attributes;
  for (const ExportEntry &entry : entries)
    attributes.push_back(train::ExportAttr::get(
        module.getContext(), builder.getStringAttr(entry.name),
        entry.transposed ? train::ExportForm::transposed : train::ExportForm::copy,
        builder.getStringAttr(entry.parameterName),
        entry.type == "f16"    ? Type(builder.getF16Type())
        : entry.type == "bf16" ? Type(builder.getBF16Type())
        : entry.shape.empty()
            ? Type()
            : RankedTensorType::get(entry.shape, storedElement(builder, entry.type))));
  return attributes;
}

static std::vector<ExportEntry> entriesOf(ArrayRef<train::ExportAttr> attributes) {
  std::vector<ExportEntry> entries;
  for (train::ExportAttr entry : attributes) {
    entries.push_back({entry.getInitializer().str(), entry.getParameter().str(),
                       entry.getForm() == train::ExportForm::transposed});
    if (auto packed = dyn_cast_if_present<RankedTensorType>(entry.getType())) {
      entries.back().type = nameOfStored(packed.getElementType());
      entries.back().shape = packed.getShape();
    } else if (entry.getType()) {
      entries.back().type = elementTypeOf(entry.getType()).name.str();
    }
  }
  return entries;
}

void trainc::setExports(ModuleOp module, ArrayRef<ExportEntry> exports) {
  train::setExports(module, attributesOf(module, exports));
}

void trainc::setModuleTensors(ModuleOp module, ArrayRef<ExportEntry> tensors) {
  train::setModuleTensors(module, attributesOf(module, tensors));
}

// Rows of as many names, then numbers; others are left out.
static SmallVector<ArrayAttr> rowsOf(ArrayAttr list, size_t names, size_t numbers) {
  SmallVector<ArrayAttr> rows;
  if (list)
    for (auto row : list.getAsRange<ArrayAttr>())
      if (row.size() == names + numbers &&
          llvm::all_of(row.getValue().take_front(names), llvm::IsaPred<StringAttr>) &&
          llvm::all_of(row.getValue().drop_front(names), llvm::IsaPred<IntegerAttr>))
        rows.push_back(row);
  return rows;
}

static std::string nameIn(ArrayAttr row, size_t index) {
  return cast<StringAttr>(row[index]).str();
}
static int64_t numberIn(ArrayAttr row, size_t index) {
  return cast<IntegerAttr>(row[index]).getInt();
}

void trainc::setStatePieces(ModuleOp module, ArrayRef<StatePiece> pieces) {
  Builder builder(module.getContext());
  SmallVector<Attribute> rows;
  for (const StatePiece &piece : pieces)
    rows.push_back(builder.getArrayAttr(
        {builder.getStringAttr(piece.tensor), builder.getStringAttr(piece.parameterName),
         builder.getI64IntegerAttr(piece.from), builder.getI64IntegerAttr(piece.to),
         builder.getI64IntegerAttr(piece.count)}));
  train::setStatePieces(module, rows);
}

void trainc::setStateConstants(ModuleOp module, ArrayRef<StateConstant> constants) {
  Builder builder(module.getContext());
  SmallVector<Attribute> rows;
  for (const StateConstant &constant : constants)
    rows.push_back(builder.getArrayAttr({builder.getStringAttr(constant.name),
                                         builder.getI64IntegerAttr(constant.bytes),
                                         builder.getI64IntegerAttr(constant.checksum)}));
  train::setStateConstants(module, rows);
}

// A number that is not an integer stands there as text.
void trainc::setAdapters(ModuleOp module, ArrayRef<AdapterEntry> adapters) {
  Builder builder(module.getContext());
  SmallVector<Attribute> rows;
  for (const AdapterEntry &adapter : adapters) {
    SmallVector<Attribute> row;
    for (const std::string &name :
         {adapter.module, adapter.weight, adapter.a, adapter.b,
          floatLiteral(APFloat(adapter.alpha)), floatLiteral(APFloat(adapter.dropout))})
      row.push_back(builder.getStringAttr(name));
    for (bool flag : {adapter.isInByOut, adapter.isModulesInByOut})
      row.push_back(builder.getI64IntegerAttr(flag));
    rows.push_back(builder.getArrayAttr(row));
  }
  train::setAdapters(module, rows);
}

static double realIn(ArrayAttr row, size_t index) {
  double number = 0;
  cast<StringAttr>(row[index]).getValue().getAsDouble(number);
  return number;
}

static std::vector<AdapterEntry> adaptersOf(ModuleOp module) {
  std::vector<AdapterEntry> adapters;
  for (ArrayAttr row : rowsOf(train::adaptersOf(module), 6, 2))
    adapters.push_back({nameIn(row, 0), nameIn(row, 1), nameIn(row, 2), nameIn(row, 3),
                        realIn(row, 4), realIn(row, 5), numberIn(row, 6) != 0,
                        numberIn(row, 7) != 0});
  return adapters;
}

void trainc::setInfiniteParameters(ModuleOp module, ArrayRef<std::string> names) {
  SmallVector<Attribute> attributes;
  for (const std::string &name : names)
    attributes.push_back(StringAttr::get(module.getContext(), name));
  train::setInfiniteParameters(module, attributes);
}

void trainc::setStoredForms(ModuleOp module, ArrayRef<FrozenWeight> weights) {
  Builder builder(module.getContext());
  std::map<std::string, Attribute> forms; // two weights may share what they have besides integers
  auto typeOf = [&](const FrozenTensor &tensor) {
    return RankedTensorType::get(tensor.shape, storedElement(builder, tensor.type));
  };
  auto add = [&](const FrozenTensor &tensor) {
    forms[tensor.name] = TypeAttr::get(storedElement(builder, tensor.type));
  };
  for (const FrozenWeight &weight : weights) {
    add(weight.tensor);
    if (!weight.layout)
      continue;
    add(weight.scales);
    StringAttr zeros;
    Type zerosType;
    if (!weight.zeros.name.empty()) {
      add(weight.zeros);
      zeros = builder.getStringAttr(weight.zeros.name);
      zerosType = typeOf(weight.zeros);
    }
    forms[weight.tensor.name] = train::QuantizedAttr::get(
        module.getContext(), RankedTensorType::get(weight.shape, builder.getF32Type()),
        train::numbersOf(*weight.layout), typeOf(weight.tensor),
        builder.getStringAttr(weight.scales.name), typeOf(weight.scales), zeros, zerosType);
  }
  SmallVector<NamedAttribute> named;
  for (const auto &[name, form] : forms)
    named.push_back(builder.getNamedAttr(name, form));
  train::setStoredForms(module, named);
}

void trainc::setFrozenFiles(ModuleOp module, const FrozenFiles &files) {
  Builder builder(module.getContext());
  SmallVector<Attribute> parts;
  for (const FrozenPart &part : files.parts)
    parts.push_back(
        builder.getDenseI64ArrayAttr({part.begin, part.bytes, part.offset, files.bytes}));
  SmallVector<NamedAttribute> places;
  for (const auto &[name, offset] : files.places)
    places.push_back(builder.getNamedAttr(name, builder.getI64IntegerAttr(offset)));
  train::setFrozenFiles(module, parts, places);
}

std::vector<FrozenTensor> trainc::frozenTensorsOf(ModuleOp module) {
  std::vector<FrozenTensor> tensors;
  std::set<std::string> names;
  for (auto function : module.getOps<func::FuncOp>())
    for (unsigned i = 0; !function.isDeclaration() && i < function.getNumArguments(); ++i) {
      auto place = function.getArgAttrOfType<kernel::PlaceAttr>(i, "kernel.place");
      if (!place || place.getArena() != kernel::Arena::frozen)
        continue;
      const std::string name = train::nameOf(function, i).str();
      auto type = cast<RankedTensorType>(function.getArgument(i).getType());
      if (names.insert(name).second)
        tensors.push_back({name, elementTypeOf(type.getElementType()).name.str(), type.getShape(),
                           place.getOffset()});
    }
  llvm::sort(tensors,
             [](const FrozenTensor &a, const FrozenTensor &b) { return a.offset < b.offset; });
  return tensors;
}

static Target targetOf(ModuleOp module) {
  Target target;
  train::TargetAttr attribute = train::targetOf(module);
  if (!attribute)
    return target;
  target.name = attribute.getName().str();
  target.march = attribute.getMarch().str();
  for (auto number : attribute.getArchitectures().getAsRange<StringAttr>())
    target.cudaArchitectures.push_back(number.str());
  return target;
}

uint64_t trainc::fingerprintOf(ModuleOp module) {
  std::string precision = "f32", parameters;
  auto addShape = [&](ArrayRef<int64_t> shape) {
    for (int64_t size : shape)
      parameters += " " + std::to_string(size);
    parameters += "\n";
  };
  auto function = module.lookupSymbol<func::FuncOp>("forward_backward");
  if (!function)
    function = module.lookupSymbol<func::FuncOp>("evaluate");
  if (function)
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      train::RoleAttrInterface role = train::roleOf(function, i);
      auto parameter = dyn_cast_or_null<train::ParameterAttr>(role);
      if (!parameter && !isa_and_nonnull<train::BufferAttr>(role))
        continue;
      auto type = cast<RankedTensorType>(function.getArgument(i).getType());
      if (!train::storedTypeOf(module, role.getName()))
        precision = elementTypeOf(type).name.str();
      StringRef suffix = !parameter ? " buffer" : parameter.isFrozen() ? " frozen" : "";
      parameters += (role.getName().getValue() + suffix).str();
      addShape(type.getShape());
    }
  for (const train::StatePlace &state : train::statePlacesOf(module)) {
    parameters += (state.name.getValue() + " of " + state.parameter.getValue()).str();
    addShape(state.shape);
  }
  const StringRef optimizer = train::optimizerNameOf(module);
  return llvm::xxh3_64bits((optimizer + "\n" + precision + "\n" + parameters).str());
}

/// Whether exp of the loss tells what people know as perplexity: of one such loss by itself.
static bool isLogPerplexity(StringRef text) {
  train::LossProblem problem;
  auto noFile = [](const std::string &, std::string &) { return std::vector<double>(); };
  std::optional<train::LossTerm> term = train::parseLossTerm(text, noFile, problem);
  return term && term->output.empty() && term->factor == 1 && term->loss->isLogPerplexity &&
         term->loss->isLogPerplexity(term->settings);
}

ProgramTables trainc::programTables(ModuleOp module, StringRef compilerVersion) {
  ProgramTables tables;
  tables.modelName = train::modelNameOf(module).str();
  tables.precision = train::precisionOf(module).str();
  tables.lossName = train::lossNameOf(module).str();
  tables.lossIsLogPerplexity = isLogPerplexity(tables.lossName);
  tables.optimizerName = train::optimizerNameOf(module).str();
  tables.compilerVersion = compilerVersion.str();
  tables.target = targetOf(module);
  tables.fingerprint = fingerprintOf(module);
  tables.graphDigest = train::graphDigestOf(module).str();
  tables.objective = train::objectiveOf(module).str();
  if (const train::Optimizer *optimizer = train::findOptimizer(tables.optimizerName)) {
    tables.stateNames.assign(optimizer->states.begin(), optimizer->states.end());
    tables.hyperparameters = train::hyperparametersOf(*optimizer, module);
  }
  tables.exports = entriesOf(train::exportsOf(module));
  tables.moduleTensors = entriesOf(train::moduleTensorsOf(module));
  for (ArrayAttr row : rowsOf(train::statePiecesOf(module), 2, 3))
    tables.statePieces.push_back(
        {nameIn(row, 0), nameIn(row, 1), numberIn(row, 2), numberIn(row, 3), numberIn(row, 4)});
  for (ArrayAttr row : rowsOf(train::stateConstantsOf(module), 1, 2))
    tables.stateConstants.push_back(
        {nameIn(row, 0), numberIn(row, 1), static_cast<uint32_t>(numberIn(row, 2))});
  tables.adapters = adaptersOf(module);
  if (ArrayAttr names = train::infiniteParametersOf(module))
    for (StringAttr name : names.getAsRange<StringAttr>())
      tables.infiniteParameters.insert(name.str());
  return tables;
}
