// SPDX-License-Identifier: Apache-2.0
//
// trainer.cpp: the constant `trainer_program` through which the runtime sees the model.
#include "compiler/emit/element_types.h"
#include "compiler/emit/step_program.h"
#include "passes/passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace trainc;

namespace {

std::string dataType(Type type) { return ("data_type::" + elementTypeOf(type).runtime).str(); }

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

class TablePrinter {
public:
  TablePrinter(ModuleOp module, const ProgramTables &tables, const MemoryNames &names)
      : module(module), tables(tables), names(names) {}
  FailureOr<std::string> print();

private:
  StringRef stringAttr(DictionaryAttr attributes, StringRef key) {
    auto value = attributes ? attributes.getAs<StringAttr>(key) : StringAttr();
    return value ? value.getValue() : StringRef();
  }
  kernel::PlaceAttr placeOf(DictionaryAttr attributes, StringRef what) {
    auto place =
        attributes ? attributes.getAs<kernel::PlaceAttr>("kernel.place") : kernel::PlaceAttr();
    if (place)
      return place;
    module.emitError("emit: no kernel.place for ") << what;
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
  void collectOutputs(func::FuncOp function);
  void collectScalars(func::FuncOp function);
  int64_t scalar(StringRef name, bool required);
  void printProgram();
  std::string arenaList(StringRef attribute);

  ModuleOp module;
  const ProgramTables &tables;
  const MemoryNames &names;
  SourceWriter writer;
  bool failed = false;
  std::string lossPlace, precision = "data_type::f32";
  std::vector<std::string> parameters, inputs, outputs, hyperparameters, exports, states;
  llvm::StringMap<int64_t> scalars;
};

void TablePrinter::collectArguments(func::FuncOp function) {
  llvm::StringSet<> decaying, frozen;
  if (auto layout = module->getAttrOfType<ArrayAttr>("train.layout"))
    for (auto entry : layout.getAsRange<DictionaryAttr>()) {
      auto isSet = [&](StringRef key) {
        auto flag = entry.getAs<BoolAttr>(key);
        return entry.get(key) && (!flag || flag.getValue());
      };
      if (isSet("decay"))
        decaying.insert(stringAttr(entry, "name"));
      if (isSet("frozen"))
        frozen.insert(stringAttr(entry, "name"));
    }
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    DictionaryAttr attributes = function.getArgAttrDict(i);
    StringRef name = stringAttr(attributes, "train.name"),
              kind = stringAttr(attributes, "train.kind");
    Type type = function.getArgument(i).getType();
    std::string tensor = placeText(name, type, placeOf(attributes, name));
    if (kind == "parameter") {
      precision = dataType(type);
      parameters.push_back("{" + tensor + ", " + (frozen.contains(name) ? "true" : "false") + ", " +
                           (decaying.contains(name) ? "true" : "false") + "}");
      continue;
    }
    auto bound = attributes.getAs<IntegerAttr>("train.index_bound");
    auto ignore = attributes.getAs<IntegerAttr>("train.ignore_index");
    inputs.push_back("{" + tensor + ", " + (kind == "label" ? "true" : "false") + ", " +
                     std::to_string(bound ? bound.getInt() : 0) + ", " +
                     (ignore ? "true, " + integerLiteral(ignore.getInt()) : "false, 0") + "}");
  }
}

void TablePrinter::collectOutputs(func::FuncOp function) {
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    DictionaryAttr attributes = function.getResultAttrDict(i);
    StringRef kind = stringAttr(attributes, "train.kind"),
              name = stringAttr(attributes, "train.name");
    Type type = function.getResultTypes()[i];
    std::string text = placeText(name, type, placeOf(attributes, name));
    if (kind == "loss")
      lossPlace = text;
    else if (kind == "output")
      outputs.push_back(text);
  }
}

void TablePrinter::collectScalars(func::FuncOp function) {
  auto add = [&](DictionaryAttr attributes) {
    if (stringAttr(attributes, "train.kind") == "scalar") {
      StringRef name = stringAttr(attributes, "train.name");
      scalars[name] = placeOf(attributes, name).getOffset();
    }
  };
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    add(function.getArgAttrDict(i));
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    add(function.getResultAttrDict(i));
}

int64_t TablePrinter::scalar(StringRef name, bool required) {
  auto found = scalars.find(name);
  if (found != scalars.end())
    return found->second;
  if (required) {
    module.emitError("emit: @update has no scalar '") << name << "'";
    failed = true;
  }
  return 0;
}

std::string TablePrinter::arenaList(StringRef attribute) {
  auto values = module->getAttrOfType<DenseI64ArrayAttr>(attribute);
  std::string text = "{";
  for (int i = 0; i < 5; ++i) // the sixth, constants, is no arena of the runtime
    text +=
        (i ? ", " : "") + std::to_string(values && i < values.size() ? values.asArrayRef()[i] : 0);
  if (!values) {
    module.emitError("emit: the module has no ") << attribute;
    failed = true;
  }
  return text + "}";
}

void TablePrinter::printProgram() {
  int64_t trained = 0;
  if (auto runs = module->getAttrOfType<DenseI64ArrayAttr>("train.runs"))
    trained =
        (runs.asArrayRef()[0] + runs.asArrayRef()[1]) * (precision == "data_type::f64" ? 8 : 4);
  auto field = [&](StringRef name, const llvm::Twine &value) {
    writer.line("  ." + name + " = " + value + ",");
  };
  auto list = [&](StringRef name, StringRef count, const std::vector<std::string> &rows) {
    field(name, tableName(name, rows.size()));
    field(count, llvm::Twine(rows.size()));
  };
  writer.line();
  writer.line("extern const program trainer_program = {");
  field("model_name", stringLiteral(tables.modelName));
  field("compiler_version", stringLiteral(tables.compilerVersion));
  field("target", stringLiteral(tables.target.name));
  field("march", stringLiteral(tables.target.march));
  field("precision", precision);
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
  field("trained_bytes", llvm::Twine(trained));
  field("optimizer_slot_bytes", llvm::Twine(trained));
  list("parameters", "parameter_count", parameters);
  list("inputs", "input_count", inputs);
  list("outputs", "output_count", outputs);
  list("state_names", "state_count", states);
  list("hyperparameters", "hyperparameter_count", hyperparameters);
  bool update = static_cast<bool>(module.lookupSymbol("update"));
  for (StringRef name : {"learning_rate", "step", "gradient_scale", "clip_norm", "gradient_norm"})
    field((name + "_offset").str(), llvm::Twine(scalar(name, update)));
  field("loss", lossPlace);
  list("exports", "export_count", exports);
  field("forward_backward", "forward_backward");
  field("update", "update");
  field("evaluate", "evaluate");
  field("kernel_list", "kernel_list");
  writer.line("};");
}

FailureOr<std::string> TablePrinter::print() {
  auto training = module.lookupSymbol<func::FuncOp>("forward_backward");
  auto evaluation = module.lookupSymbol<func::FuncOp>("evaluate");
  if (!training || !evaluation)
    return module.emitError("emit: expects @forward_backward and @evaluate");
  collectArguments(training);
  collectOutputs(evaluation);
  if (auto update = module.lookupSymbol<func::FuncOp>("update"))
    collectScalars(update);
  for (const HyperparameterEntry &entry : tables.hyperparameters)
    hyperparameters.push_back("{" + stringLiteral(entry.name) + ", " +
                              floatLiteral(llvm::APFloat(entry.defaultValue), true) + ", " +
                              stringLiteral(entry.help) + ", " +
                              std::to_string(scalar(entry.name, true)) + "}");
  for (const ExportEntry &entry : tables.exports)
    exports.push_back("{" + stringLiteral(entry.onnxName) + ", " +
                      stringLiteral(entry.parameterName) + ", " +
                      (entry.transposed ? "true" : "false") + "}");
  for (const std::string &name : tables.stateNames)
    states.push_back(stringLiteral(name));

  writer.line("// What the runtime knows of the model: names, shapes, places, entry functions.");
  if (!names.constants().empty())
    writer.line("#include \"constants.h\"");
  writer.line("#include \"runtime/program.h\"");
  writer.line("#include \"step.h\"");
  writer.line();
  writer.line("#include <cmath>");
  writer.line();
  writer.line("namespace trainc {");
  writer.outdent();
  writer.line();
  writer.line("namespace {");
  writer.outdent();
  table("parameter_place", "parameters", parameters);
  table("input_place", "inputs", inputs);
  table("tensor_place", "outputs", outputs);
  table("const char *", "state_names", states);
  table("hyperparameter", "hyperparameters", hyperparameters);
  table("export_initializer", "exports", exports);
  writer.line();
  writer.line("constexpr const char *kernel_list =");
  std::string kernels = kernelListText(module);
  SmallVector<StringRef> lines;
  StringRef(kernels).rtrim('\n').split(lines, '\n');
  for (auto [i, line] : llvm::enumerate(lines))
    writer.line("    " + stringLiteral(line.str() + "\n") + (i + 1 == lines.size() ? ";" : ""));
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
