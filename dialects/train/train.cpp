// SPDX-License-Identifier: Apache-2.0
//
// Registration and verification of the train dialect.
#include "dialects/train/train.h"
#include "dialects/train/attribute_names.h"
#include "dialects/train/module_state.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dialects/train/train_dialect.cpp.inc"
#include "dialects/train/train_enums.cpp.inc"
#include "dialects/train/train_interfaces.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/train/train_attributes.cpp.inc"

namespace trainc::train {

static constexpr llvm::StringLiteral kRole = "train.role";
static constexpr llvm::StringLiteral kChunk = "train.chunk";
static constexpr llvm::StringLiteral kPipeline = "train.pipeline";
static constexpr llvm::StringLiteral kLayout = "train.layout";
static constexpr llvm::StringLiteral kGroups = "train.groups";
static constexpr llvm::StringLiteral kModel = kModelAttribute;
static constexpr llvm::StringLiteral kGraph = kGraphAttribute;
static constexpr llvm::StringLiteral kLoss = "train.loss";
static constexpr llvm::StringLiteral kPrecision = "train.precision";
static constexpr llvm::StringLiteral kObjective = "train.objective";
static constexpr llvm::StringLiteral kLosses = "train.losses";
static constexpr llvm::StringLiteral kOptimizer = "train.optimizer";
static constexpr llvm::StringLiteral kTarget = "train.target";
static constexpr llvm::StringLiteral kExports = "train.exports";
static constexpr llvm::StringLiteral kModuleTensors = "train.module_tensors";
// Lists of rows (module_state.h).
static constexpr llvm::StringLiteral kAdapters = "train.adapters";
static constexpr llvm::StringLiteral kStatePieces = "train.state_pieces";
static constexpr llvm::StringLiteral kStateConstants = "train.state_constants";
static constexpr llvm::StringLiteral kInfiniteParameters = "train.infinite_parameters";
static constexpr llvm::StringLiteral kFrozenStorage = "train.frozen_storage",
                                     kFrozenDigest = "train.frozen_digest",
                                     kFrozenParts = "train.frozen_parts",
                                     kFrozenPlaces = "train.frozen_places";
static constexpr llvm::StringLiteral kStateLayout = "train.state_layout";

void TrainDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/train/train_attributes.cpp.inc"
#include <cstring>
      >();
}

// ---- what the verifier accepts

LogicalResult ParameterAttr::verify(function_ref<InFlightDiagnostic()> emitError, StringAttr,
                                    Run run, StringAttr, int64_t group) {
  if (run == Run::buffer)
    return emitError() << "a parameter is in the run decayed, undecayed or frozen; a tensor that "
                          "the step replaces has the role #train.buffer";
  if (group < 0 || (group > 0 && run == Run::frozen))
    return emitError() << "a group, from 1, is of trained parameters; found " << group << " of "
                       << stringifyRun(run) << " ones";
  return success();
}

LogicalResult IndexCheckAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                     ArrayAttr checks) {
  for (Attribute check : checks)
    if (!llvm::isa<CheckedIndexAttr>(check))
      return emitError() << "expects #train.checked_index attributes, found " << check;
  return success();
}

LogicalResult LayoutAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 ArrayRef<int64_t> runs, ArrayAttr parameters) {
  constexpr size_t fewest = kTrainedRuns + kOtherRuns;
  if (runs.size() < fewest || runs.size() % kTrainedRuns != 0)
    return emitError() << "expects the sizes of " << fewest << " runs, found " << runs.size()
                       << "; each group of parameters has " << kTrainedRuns << " more";
  const int64_t groups = (static_cast<int64_t>(runs.size()) - kOtherRuns) / kTrainedRuns;
  for (Attribute parameter : parameters) {
    auto placed = llvm::dyn_cast<PlacedAttr>(parameter);
    if (!placed)
      return emitError() << "expects #train.placed attributes, found " << parameter;
    if (placed.getGroup() < 0 || placed.getGroup() >= groups)
      return emitError() << placed << " is in none of " << groups - 1 << " groups";
    int64_t begin = 0, index = indexOf(placed.getRun(), placed.getGroup(), groups);
    for (int64_t elements : runs.take_front(index))
      begin += elements;
    int64_t end = begin + runs[index];
    if (placed.getOffset() < begin || placed.getOffset() + placed.getCount() > end)
      return emitError() << placed << " is outside its run, [" << begin << ", " << end << ")";
  }
  return success();
}

int64_t LayoutAttr::offsetOf(Run run, int64_t group) const {
  int64_t offset = 0;
  for (int64_t elements : getRuns().take_front(indexOf(run, group, groups())))
    offset += elements;
  return offset;
}

namespace {

bool isFloatTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

bool isScalar(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getRank() == 0;
}

/// Whether it is a frozen weight that is stored as integers with scales.
bool isStoredAsIntegers(Attribute role, Type type) {
  auto parameter = dyn_cast<ParameterAttr>(role);
  return parameter && parameter.isFrozen() &&
         isa<IntegerType>(cast<RankedTensorType>(type).getElementType());
}

LogicalResult checkType(Operation *op, Attribute role, Type type) {
  auto expect = [&](bool fits, const llvm::Twine &what) -> LogicalResult {
    if (fits)
      return success();
    return op->emitOpError("expects ") << what << " for " << role << ", found " << type;
  };
  auto isListOf = [&](int64_t size) {
    return isFloatTensor(type) && cast<RankedTensorType>(type).getShape() == ArrayRef(size);
  };
  if (role.hasTrait<OfFloats>())
    return expect(isFloatTensor(type) || isStoredAsIntegers(role, type), "a tensor of floats");
  if (isa<IndexCheckAttr>(role))
    return expect(isListOf(2), "two floats");
  if (isa<StepTotalsAttr>(role))
    return expect(isListOf(kStepTotals), "three floats");
  if (role.hasTrait<Scalar>() && !isScalar(type))
    return expect(false, "a scalar");
  if (isa<RandomKeyAttr>(role) && type != randomKeyType(role.getContext()))
    return op->emitOpError("expects ")
           << randomKeyType(role.getContext()) << " for " << role << ", found " << type;
  return success();
}

/// The names that arguments have, each once, and what the results refer to.
class Signature {
public:
  explicit Signature(func::FuncOp function) : function(function) {}

  LogicalResult checkArguments() {
    llvm::StringSet<> names;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto role = roleOf(function, i))
        if (StringAttr name = role.getName(); name && !names.insert(name).second)
          return function.emitOpError("has two arguments called ") << name;
    return success();
  }

  LogicalResult checkResults() {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (StringRef name = nameOf(function, i); !name.empty())
        arguments[name] = i;
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (failed(checkResult(i)))
        return failure();
    return success();
  }

private:
  LogicalResult checkResult(unsigned result) {
    RoleAttrInterface role = resultRoleOf(function, result);
    if (isa_and_nonnull<RunParametersAttr, StateAttr>(role)) {
      if (!overwrittenArgument(function, result))
        return function.emitOpError("has a result ") << role << " without an argument of that role";
      return success();
    }
    if (!isa_and_nonnull<GradientAttr, NewValueAttr>(role))
      return success();
    auto found = arguments.find(role.getName());
    Type type = function.getResultTypes()[result];
    if (found != arguments.end()) {
      auto parameter = roleAs<ParameterAttr>(function, found->second);
      bool fits = isa<GradientAttr>(role) ? parameter && !parameter.isFrozen()
                                          : bool(roleAs<BufferAttr>(function, found->second));
      if (fits && function.getArgumentTypes()[found->second] == type)
        return success();
    }
    return function.emitOpError("has a result ")
           << role << " of type " << type << ", but no "
           << (isa<GradientAttr>(role) ? "trained parameter" : "buffer")
           << " of that name and type";
  }

  func::FuncOp function;
  llvm::StringMap<unsigned> arguments;
};

LogicalResult unknownAttribute(Operation *op, NamedAttribute attribute, StringRef place) {
  return op->emitOpError("has an attribute '")
         << attribute.getName().getValue() << "' " << place << ", which means nothing there";
}

/// The first argument or result with a role checks them all, so that the whole is checked once.
template <typename Of> bool isFirst(Of roleAt, unsigned index) {
  for (unsigned i = 0; i < index; ++i)
    if (roleAt(i))
      return false;
  return true;
}

} // namespace

LogicalResult TrainDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned index,
                                                     NamedAttribute attribute) {
  auto function = dyn_cast<func::FuncOp>(op);
  if (attribute.getName() != kRole || !function)
    return unknownAttribute(op, attribute, "on an argument");
  Attribute role = attribute.getValue();
  if (!role.hasTrait<OfArgument>())
    return op->emitOpError("expects the role of an argument, found ") << role;
  if (failed(checkType(op, role, function.getArgumentTypes()[index])))
    return failure();
  bool first = isFirst([&](unsigned i) { return roleOf(function, i); }, index);
  return first ? Signature(function).checkArguments() : success();
}

LogicalResult TrainDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned index,
                                                        NamedAttribute attribute) {
  auto function = dyn_cast<func::FuncOp>(op);
  if (attribute.getName() != kRole || !function)
    return unknownAttribute(op, attribute, "on a result");
  Attribute role = attribute.getValue();
  if (!role.hasTrait<OfResult>())
    return op->emitOpError("expects the role of a result, found ") << role;
  if (failed(checkType(op, role, function.getResultTypes()[index])))
    return failure();
  bool first = isFirst([&](unsigned i) { return resultRoleOf(function, i); }, index);
  return first ? Signature(function).checkResults() : success();
}

LogicalResult TrainDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  auto expect = [&](bool fits, StringRef what) -> LogicalResult {
    if (fits)
      return success();
    return op->emitOpError("expects ") << what << " for '" << name << "', found " << value;
  };
  if (isa<func::FuncOp>(op) && name == kChunk)
    return expect(isa<ChunkAttr>(value), "a #train.chunk");
  if (!isa<ModuleOp>(op))
    return unknownAttribute(op, attribute, "of its own");
  if (llvm::is_contained({kModel, kGraph, kLoss, kPrecision, kObjective, kOptimizer, kFrozenDigest},
                         name))
    return expect(isa<StringAttr>(value), "a string");
  if (name == kLayout) {
    auto layout = dyn_cast<LayoutAttr>(value);
    const size_t groups = groupsOf(cast<ModuleOp>(op)).size();
    if (layout && layout.groups() != static_cast<int64_t>(groups) + 1)
      return op->emitOpError("has names of ")
             << groups << " groups of parameters and a layout of " << layout.groups() - 1;
    return expect(bool(layout), "a #train.layout");
  }
  if (name == kTarget)
    return expect(isa<TargetAttr>(value), "a #train.target");
  if (name == kPipeline)
    return expect(isa<PipelineAttr>(value), "a #train.pipeline");
  if (name == kFrozenStorage)
    return expect(isa<DictionaryAttr>(value), "types by the names of parameters");
  if (name == kFrozenPlaces)
    return expect(isa<DictionaryAttr>(value), "numbers by the names of parameters");
  auto list = dyn_cast<ArrayAttr>(value);
  if (name == kLosses)
    return expect(list && llvm::all_of(list, llvm::IsaPred<StringAttr>), "a list of strings");
  if (name == kGroups || name == kInfiniteParameters)
    return expect(list && !list.empty() && llvm::all_of(list, llvm::IsaPred<StringAttr>),
                  "a list of names");
  if (name == kExports || name == kModuleTensors)
    return expect(list && llvm::all_of(list, llvm::IsaPred<ExportAttr>), "a list of #train.export");
  if (name == kStatePieces || name == kStateConstants || name == kAdapters)
    return expect(list && llvm::all_of(list, llvm::IsaPred<ArrayAttr>), "a list of lists");
  if (name == kFrozenParts)
    return expect(list && llvm::all_of(list, llvm::IsaPred<DenseI64ArrayAttr>),
                  "a list of four numbers each");
  if (name == kStateLayout)
    return expect(list && statePlacesOf(cast<ModuleOp>(op)).size() == list.size(),
                  "a list of states, each two names, a type and numbers");
  return unknownAttribute(op, attribute, "of its own");
}

// ---- accessors

RoleAttrInterface roleOf(func::FuncOp function, unsigned argument) {
  return function.getArgAttrOfType<RoleAttrInterface>(argument, kRole);
}

RoleAttrInterface resultRoleOf(func::FuncOp function, unsigned result) {
  return function.getResultAttrOfType<RoleAttrInterface>(result, kRole);
}

void setRole(func::FuncOp function, unsigned argument, RoleAttrInterface role) {
  function.setArgAttr(argument, kRole, role);
}

void setResultRole(func::FuncOp function, unsigned result, RoleAttrInterface role) {
  function.setResultAttr(result, kRole, role);
}

DictionaryAttr attributesOf(RoleAttrInterface role) {
  MLIRContext *context = role.getContext();
  return DictionaryAttr::get(context, NamedAttribute(StringAttr::get(context, kRole), role));
}

RankedTensorType randomKeyType(MLIRContext *context) {
  return RankedTensorType::get({}, IntegerType::get(context, 64));
}

static StringRef nameIn(RoleAttrInterface role) {
  StringAttr name = role ? role.getName() : StringAttr();
  return name ? name.getValue() : "";
}

StringRef nameOf(func::FuncOp function, unsigned argument) {
  return nameIn(roleOf(function, argument));
}

StringRef resultNameOf(func::FuncOp function, unsigned result) {
  return nameIn(resultRoleOf(function, result));
}

std::optional<unsigned> overwrittenArgument(func::FuncOp function, unsigned result) {
  RoleAttrInterface role = resultRoleOf(function, result);
  if (!isa_and_nonnull<RunParametersAttr, StateAttr>(role))
    return std::nullopt;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (roleOf(function, i) == role)
      return i;
  return std::nullopt;
}

bool isUpdate(func::FuncOp function) {
  return llvm::any_of(llvm::seq(function.getNumArguments()), [&](unsigned i) {
    return isa_and_nonnull<RunParametersAttr, RunGradientsAttr, StateAttr>(roleOf(function, i));
  });
}

ChunkAttr chunkOf(func::FuncOp function) { return function->getAttrOfType<ChunkAttr>(kChunk); }

void setChunk(func::FuncOp function, ChunkAttr chunk) { function->setAttr(kChunk, chunk); }

PipelineAttr pipelineOf(ModuleOp module) { return module->getAttrOfType<PipelineAttr>(kPipeline); }

void setPipeline(ModuleOp module, PipelineAttr pipeline) { module->setAttr(kPipeline, pipeline); }

func::FuncOp chunkFunction(ModuleOp module, ChunkPass pass, int64_t chunk) {
  return module.lookupSymbol<func::FuncOp>(
      (stringifyChunkPass(pass) + "_" + llvm::Twine(chunk)).str());
}

LayoutAttr layoutOf(ModuleOp module) { return module->getAttrOfType<LayoutAttr>(kLayout); }

void setLayout(ModuleOp module, LayoutAttr layout) { module->setAttr(kLayout, layout); }

static void setRows(ModuleOp module, StringRef attribute, ArrayRef<Attribute> rows) {
  if (rows.empty())
    module->removeAttr(attribute);
  else
    module->setAttr(attribute, ArrayAttr::get(module.getContext(), rows));
}

static SmallVector<StringRef> textsOf(ModuleOp module, StringRef attribute) {
  auto list = module->getAttrOfType<ArrayAttr>(attribute);
  return list ? llvm::to_vector(list.getAsValueRange<StringAttr>()) : SmallVector<StringRef>();
}

static void setTexts(ModuleOp module, StringRef attribute, ArrayRef<std::string> texts) {
  SmallVector<Attribute> rows;
  for (const std::string &text : texts)
    rows.push_back(StringAttr::get(module.getContext(), text));
  setRows(module, attribute, rows);
}

SmallVector<StringRef> groupsOf(ModuleOp module) { return textsOf(module, kGroups); }

std::string ofGroup(ModuleOp module, int64_t group) {
  if (group == 0)
    return "";
  SmallVector<StringRef> names = groupsOf(module);
  const auto index = static_cast<size_t>(group) - 1;
  std::string name = index < names.size() ? names[index].str() : "group_" + std::to_string(group);
  std::replace(name.begin(), name.end(), '-', '_');
  return "_of_" + name;
}

void setGroups(ModuleOp module, ArrayRef<std::string> names) { setTexts(module, kGroups, names); }

static StringRef textOf(ModuleOp module, StringRef attribute) {
  auto text = module->getAttrOfType<StringAttr>(attribute);
  return text ? text.getValue() : "";
}

static void setText(ModuleOp module, StringRef attribute, StringRef text) {
  module->setAttr(attribute, StringAttr::get(module.getContext(), text));
}

StringRef modelNameOf(ModuleOp module) { return textOf(module, kModel); }
StringRef graphDigestOf(ModuleOp module) { return textOf(module, kGraph); }
StringRef lossNameOf(ModuleOp module) { return textOf(module, kLoss); }
StringRef precisionOf(ModuleOp module) {
  StringRef name = textOf(module, kPrecision);
  return name.empty() ? "f32" : name;
}
StringRef objectiveOf(ModuleOp module) { return textOf(module, kObjective); }

SmallVector<std::string> lossesOf(ModuleOp module) {
  return llvm::map_to_vector(textsOf(module, kLosses), [](StringRef text) { return text.str(); });
}

void setLosses(ModuleOp module, ArrayRef<std::string> losses) { setTexts(module, kLosses, losses); }

StringRef optimizerNameOf(ModuleOp module) { return textOf(module, kOptimizer); }
TargetAttr targetOf(ModuleOp module) { return module->getAttrOfType<TargetAttr>(kTarget); }

static SmallVector<ExportAttr> entriesOf(ModuleOp module, StringRef attribute) {
  auto list = module->getAttrOfType<ArrayAttr>(attribute);
  return list ? llvm::to_vector(list.getAsRange<ExportAttr>()) : SmallVector<ExportAttr>();
}

SmallVector<ExportAttr> exportsOf(ModuleOp module) { return entriesOf(module, kExports); }
SmallVector<ExportAttr> moduleTensorsOf(ModuleOp module) {
  return entriesOf(module, kModuleTensors);
}

ArrayAttr statePiecesOf(ModuleOp module) { return module->getAttrOfType<ArrayAttr>(kStatePieces); }
ArrayAttr stateConstantsOf(ModuleOp module) {
  return module->getAttrOfType<ArrayAttr>(kStateConstants);
}

void setStatePieces(ModuleOp module, ArrayRef<Attribute> rows) {
  setRows(module, kStatePieces, rows);
}
void setStateConstants(ModuleOp module, ArrayRef<Attribute> rows) {
  setRows(module, kStateConstants, rows);
}

Type storedTypeOf(ModuleOp module, StringAttr parameter) {
  if (QuantizedAttr form = quantizedFormOf(module, parameter))
    return cast<RankedTensorType>(form.getIntegers()).getElementType();
  auto forms = module->getAttrOfType<DictionaryAttr>(kFrozenStorage);
  auto type = forms ? forms.getAs<TypeAttr>(parameter) : TypeAttr();
  return type ? type.getValue() : Type();
}
QuantizedAttr quantizedFormOf(ModuleOp module, StringAttr parameter) {
  auto forms = module->getAttrOfType<DictionaryAttr>(kFrozenStorage);
  return forms ? forms.getAs<QuantizedAttr>(parameter) : QuantizedAttr();
}
SmallVector<std::pair<StringAttr, QuantizedAttr>> quantizedForms(ModuleOp module) {
  SmallVector<std::pair<StringAttr, QuantizedAttr>> quantized;
  if (auto forms = module->getAttrOfType<DictionaryAttr>(kFrozenStorage))
    for (NamedAttribute form : forms)
      if (auto own = dyn_cast<QuantizedAttr>(form.getValue()))
        quantized.push_back({form.getName(), own});
  return quantized;
}
quantized_layout layoutOf(QuantizedAttr form) {
  quantized_layout layout = {};
  ArrayRef<int64_t> numbers = form.getLayout();
  if (numbers.size() == sizeof layout / sizeof(int64_t))
    std::memcpy(&layout, numbers.data(), sizeof layout);
  return layout;
}
SmallVector<int64_t> numbersOf(const quantized_layout &layout) {
  SmallVector<int64_t> numbers(sizeof layout / sizeof(int64_t));
  std::memcpy(numbers.data(), &layout, sizeof layout);
  return numbers;
}
void setStoredForms(ModuleOp module, ArrayRef<NamedAttribute> forms) {
  if (!forms.empty())
    module->setAttr(kFrozenStorage, DictionaryAttr::get(module.getContext(), forms));
}

ArrayAttr frozenPartsOf(ModuleOp module) { return module->getAttrOfType<ArrayAttr>(kFrozenParts); }
DictionaryAttr frozenPlacesOf(ModuleOp module) {
  return module->getAttrOfType<DictionaryAttr>(kFrozenPlaces);
}
void setFrozenFiles(ModuleOp module, ArrayRef<Attribute> parts, ArrayRef<NamedAttribute> places) {
  setRows(module, kFrozenParts, parts);
  if (!places.empty())
    module->setAttr(kFrozenPlaces, DictionaryAttr::get(module.getContext(), places));
}

StringRef frozenDigestOf(ModuleOp module) { return textOf(module, kFrozenDigest); }
void setFrozenDigest(ModuleOp module, StringRef digest) { setText(module, kFrozenDigest, digest); }

ArrayAttr adaptersOf(ModuleOp module) { return module->getAttrOfType<ArrayAttr>(kAdapters); }
void setAdapters(ModuleOp module, ArrayRef<Attribute> rows) { setRows(module, kAdapters, rows); }

ArrayAttr infiniteParametersOf(ModuleOp module) {
  return module->getAttrOfType<ArrayAttr>(kInfiniteParameters);
}
void setInfiniteParameters(ModuleOp module, ArrayRef<Attribute> names) {
  setRows(module, kInfiniteParameters, names);
}

ArrayAttr stateLayoutOf(ModuleOp module) { return module->getAttrOfType<ArrayAttr>(kStateLayout); }
void setStateLayout(ModuleOp module, ArrayRef<Attribute> rows) {
  setRows(module, kStateLayout, rows);
}

SmallVector<StatePlace> statePlacesOf(ModuleOp module) {
  constexpr size_t names = 2, type = 2, numbers = 2;
  SmallVector<StatePlace> places;
  if (ArrayAttr rows = stateLayoutOf(module))
    for (Attribute each : rows) {
      auto row = dyn_cast<ArrayAttr>(each);
      constexpr size_t first = type + 1;
      if (!row || row.size() < first + numbers ||
          !llvm::all_of(row.getValue().take_front(names), llvm::IsaPred<StringAttr>) ||
          !isa<TypeAttr>(row[type]) ||
          !llvm::all_of(row.getValue().drop_front(first), llvm::IsaPred<IntegerAttr>))
        continue;
      auto number = [&](size_t i) { return cast<IntegerAttr>(row[i]).getInt(); };
      StatePlace &place = places.emplace_back(StatePlace{cast<StringAttr>(row[0]),
                                                         cast<StringAttr>(row[1]),
                                                         cast<TypeAttr>(row[type]).getValue(),
                                                         number(first),
                                                         number(first + 1),
                                                         {}});
      for (size_t i = first + numbers; i < row.size(); ++i)
        place.shape.push_back(number(i));
    }
  return places;
}

Attribute rowOf(const StatePlace &place) {
  Builder builder(place.name.getContext());
  SmallVector<Attribute> row{place.name, place.parameter, TypeAttr::get(place.element),
                             builder.getI64IntegerAttr(place.slot),
                             builder.getI64IntegerAttr(place.offset)};
  for (int64_t size : place.shape)
    row.push_back(builder.getI64IntegerAttr(size));
  return builder.getArrayAttr(row);
}

void setTarget(ModuleOp module, TargetAttr target) { module->setAttr(kTarget, target); }

void setExports(ModuleOp module, ArrayRef<ExportAttr> exports) {
  SmallVector<Attribute> list(exports.begin(), exports.end());
  module->setAttr(kExports, ArrayAttr::get(module.getContext(), list));
}
void setModuleTensors(ModuleOp module, ArrayRef<ExportAttr> tensors) {
  setRows(module, kModuleTensors, SmallVector<Attribute>(tensors.begin(), tensors.end()));
}

void setModelName(ModuleOp module, StringRef name) { setText(module, kModel, name); }
void setGraphDigest(ModuleOp module, StringRef digest) { setText(module, kGraph, digest); }
void setLossName(ModuleOp module, StringRef name) { setText(module, kLoss, name); }
void setPrecision(ModuleOp module, StringRef name) { setText(module, kPrecision, name); }
void setObjective(ModuleOp module, StringRef text) { setText(module, kObjective, text); }
void setOptimizerName(ModuleOp module, StringRef name) { setText(module, kOptimizer, name); }

} // namespace trainc::train
