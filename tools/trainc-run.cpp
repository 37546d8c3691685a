// SPDX-License-Identifier: Apache-2.0
//
// trainc-run: evaluates a forward ONNX model without compiling it, in the reference interpreter.
#include "compiler/model_name.h"
#include "compiler/onnx/import/evaluate.h"
#include "compiler/standard_output.h"
#include "dialects/errors/internal_error.h"
#include "dialects/nn/nn.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "passes/passes.h"
#include "runtime/failure.h"
#include "runtime/files/conversion.h"
#include "runtime/files/npy.h"
#include "runtime/files/output_file.h"
#include "runtime/files/safetensors.h"
#include "runtime/observe/statistics_file.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include <map>

using namespace llvm;
using namespace trainc;

namespace {

const char kOverview[] =
    "trainc-run evaluates a forward ONNX model without compiling it.\n\n"
    "  trainc-run model.onnx --dim batch=4 --input x=x.npy -o outputs.safetensors\n"
    "  trainc-run model.onnx --dim batch=4 --input x=x.npy --all --precision f64 -o "
    "all.safetensors\n\n"
    "The reference interpreter, which also folds constants and judges compiled programs in the "
    "tests,\n"
    "executes the model's operations one after the other: plain loops, nothing fused. Compare two\n"
    "files with trainc-compare.\n\n"
    "Exit codes: 0 success; 1 internal error; 2 the command line is wrong, or a file that it "
    "names; "
    "3 the\n"
    "model cannot be read, or an index is outside its table; 4 the model is not supported; 5 the "
    "output\n"
    "cannot be written; 6 too little memory.\n";

cl::OptionCategory category("trainc-run options");
cl::opt<std::string> modelPath(cl::Positional, cl::desc("MODEL.onnx"), cl::cat(category));
cl::list<std::string> dimensions("dim", cl::value_desc("NAME=SIZE"), cl::cat(category),
                                 cl::desc("size of a symbolic dimension; once for each"));
cl::list<std::string> inputFiles("input", cl::value_desc("NAME=FILE.npy"), cl::cat(category),
                                 cl::desc("value of a model input, of exactly its shape; a type is "
                                          "accepted where no value can change"));
cl::opt<std::string>
    parameterFile("parameters", cl::value_desc("FILE.safetensors"), cl::cat(category),
                  cl::desc("parameters by ONNX name in place of the model's own, as "
                           "a trainer's checkpoints hold them"));
cl::opt<std::string> precision("precision", cl::value_desc("f32|f64"), cl::init("f32"),
                               cl::cat(category),
                               cl::desc("f32: every operation rounds as its type says; f64: f32 "
                                        "tensors are computed in double"));
cl::opt<bool> all("all", cl::cat(category),
                  cl::desc("write every value that an output needs, by ONNX name"));
cl::opt<std::string>
    statisticsPath("statistics", cl::value_desc("FILE.jsonl"), cl::cat(category),
                   cl::desc("write statistics of every value that an output needs, by the names "
                            "of plans, for trainc-compare statistics"));
cl::opt<std::string> outputPath("o", cl::value_desc("FILE.safetensors"), cl::cat(category),
                                cl::desc("where the outputs go, by ONNX name; may be left out with "
                                         "--statistics"));

bool parseDimensions(Recipe &recipe, Report &report) {
  for (StringRef text : dimensions) {
    auto [name, size] = text.rsplit('='); // names may hold equals signs
    int64_t number = 0;
    if (name.empty() || size.getAsInteger(10, number) || number <= 0)
      (void)report.error(ExitCode::usage, Subject::ofProgram("trainc-run"),
                         "--dim expects NAME=SIZE with a positive size, found '" + text + "'",
                         "--dim batch=8");
    else if (!recipe.dimensions.emplace(name.str(), number).second)
      (void)report.error(ExitCode::usage, Subject::ofProgram("trainc-run"),
                         "--dim gives '" + name + "' twice", "one --dim for each dimension");
  }
  if (precision != "f32" && precision != "f64")
    (void)report.error(ExitCode::usage, Subject::ofProgram("trainc-run"),
                       "unknown precision '" + precision + "'", "--precision f32 or f64");
  recipe.precision = precision;
  recipe.trains = false;
  return report.empty();
}

data_type dataTypeOf(mlir::Type tensor) {
  for (const data_type_row &row : data_type_rows)
    if (StringRef(row.safetensors).equals_insensitive(trainc::elementTypeOf(tensor).name))
      return row.type;
  trainc::internalError("a value has a type that no file has");
}

/// The whole file as elements of `type`, which is an input's.
nn::Tensor readNpy(const std::string &path, mlir::RankedTensorType type) {
  input_file file(path, exit_data);
  npy_header header = read_npy_header(file);
  data_type wanted = dataTypeOf(type);
  std::string found = shape_text(header.shape.data(), header.shape.size());
  if (ArrayRef<int64_t>(header.shape) != type.getShape())
    throw trainc::failure(exit_data,
                          path + ": has shape " + found + ", expected " +
                              shape_text(type.getShape().data(), type.getShape().size()));
  if (!converts_without_loss(header.type, wanted))
    throw trainc::failure(exit_data, path + ": holds " + name_of(header.type) + ", expected " +
                                         name_of(wanted) + "\n  try: array.astype('" +
                                         name_of(wanted) + "')");
  std::vector<char> bytes(header.element_count * bytes_of(header.type));
  file.read(header.data_offset, bytes.data(), static_cast<int64_t>(bytes.size()));
  nn::Tensor result(type);
  convert(header.type, bytes.data(), wanted, result.data(), header.element_count);
  return result;
}

bool readInputs(Model &model, NamedTensors &inputs, Report &report) {
  auto function = model.module->lookupSymbol<mlir::func::FuncOp>("model");
  std::map<std::string, mlir::Type> types;
  for (mlir::BlockArgument argument : function.getArguments())
    types[train::nameOf(function, argument.getArgNumber()).str()] = argument.getType();
  for (StringRef text : inputFiles) {
    auto [name, path] = text.split('=');
    auto type = types.find(name.str());
    if (name.empty() || path.empty())
      (void)report.error(ExitCode::usage, Subject::ofProgram("trainc-run"),
                         "--input expects NAME=FILE.npy, found '" + text + "'", "--input x=x.npy");
    else if (type == types.end())
      (void)report.error(ExitCode::usage, modelPath, "the model has no input '" + name + "'",
                         "trainc-run " + modelPath + " without --input, which names them");
    else if (inputs.count(name.str()))
      (void)report.error(ExitCode::usage, Subject::ofOption("--input"),
                         "'" + name + "' is given twice", "one --input for each input");
    else
      try {
        inputs[name.str()] = readNpy(path.str(), cast<mlir::RankedTensorType>(type->second));
      } catch (const trainc::failure &problem) {
        (void)report.error(ExitCode::usage, Subject::ofOption("--input " + name), problem.message);
      }
  }
  return report.empty();
}

nn::Tensor readStored(const input_file &file, const stored_tensor &stored,
                      mlir::MLIRContext &context) {
  bool isDouble = stored.type == "F64";
  if (!isDouble && stored.type != "F32")
    return {};
  auto element =
      isDouble ? mlir::Type(mlir::Float64Type::get(&context)) : mlir::Float32Type::get(&context);
  nn::Tensor result(mlir::RankedTensorType::get(stored.shape, element));
  file.read(stored.offset, result.data(), stored.bytes);
  return result;
}

/// The model's parameters from the file, which may hold optimizer state besides. Training gives
/// parameters that an exporter merged their own storage: a file of those fits only the exported
/// model.
bool readParameters(const Model &model, mlir::MLIRContext &context, NamedTensors &parameters,
                    Report &report) {
  if (parameterFile.empty())
    return true;
  try {
    input_file file(parameterFile, exit_data);
    safetensors_index index = read_safetensors_index(file, exit_data);
    for (auto &[name, stored] : index.tensors)
      if (llvm::none_of(model.parameters, [&](const Parameter &p) { return p.name == name; }) &&
          !llvm::StringRef(name).starts_with("optimizer/"))
        (void)report.error(ExitCode::usage, parameterFile,
                           "has a tensor '" + name +
                               "' that is not a parameter of this model as it "
                               "stands in its file",
                           "the model that the trainer's export wrote with these parameters");
    for (const Parameter &parameter : model.parameters) {
      auto found = index.tensors.find(parameter.name);
      nn::Tensor value;
      if (found != index.tensors.end())
        value = readStored(file, found->second, context);
      if (value)
        parameters[parameter.name] = value;
      else
        (void)report.error(ExitCode::usage, parameterFile,
                           "has no F32 or F64 tensor '" + parameter.name + "'",
                           "a file that a trainer's export or trainc wrote for this model");
    }
  } catch (const trainc::failure &problem) {
    (void)report.error(ExitCode::usage, Subject::ofOption("--parameters"), problem.message);
  }
  return report.empty();
}

/// What is said of the file that an option names.
template <typename Work> bool onOutput(Report &report, const char *option, Work work) {
  try {
    work();
  } catch (const trainc::failure &problem) {
    ExitCode code = problem.code == exit_usage ? ExitCode::usage : ExitCode::outputNotWritten;
    (void)report.error(code, Subject::ofOption(option), problem.message);
  }
  return report.empty();
}

bool mayWrite(const Model &model, Report &report) {
  std::vector<std::string> read = model.file->paths();
  read.push_back(parameterFile);
  for (StringRef text : inputFiles)
    read.push_back(text.split('=').second.str());
  for (auto [option, path] : {std::pair("-o", &outputPath), {"--statistics", &statisticsPath}})
    if (!path->empty() &&
        !onOutput(report, option, [&, &file = *path] { check_output_path(file, read); }))
      return false;
  return true;
}

/// The bytes of some elements of a tensor whose elements are all the same.
std::vector<char> copiesOf(const nn::Tensor &splat, int64_t elements) {
  std::vector<char> copies;
  for (int64_t i = 0; i < elements; ++i)
    copies.insert(copies.end(), splat.at(0), splat.at(0) + splat.width());
  return copies;
}

void write(output_file &file, const nn::Tensor &value) {
  int64_t bytes = value.count() * value.width();
  if (!value.isSplat())
    return file.write(value.at(0), bytes);
  constexpr int64_t kAtOnce = 1 << 14; // elements
  const std::vector<char> copies = copiesOf(value, std::min(kAtOnce, value.count()));
  for (int64_t written = 0, piece = copies.size(); written < bytes; written += piece)
    file.write(copies.data(), std::min(piece, bytes - written));
}

bool write(const std::vector<EvaluatedTensor> &results, Report &report) {
  std::vector<tensor_view> views;
  for (const EvaluatedTensor &result : results) {
    ArrayRef<int64_t> shape = result.value.shape();
    views.push_back({result.name,
                     dataTypeOf(result.value.type()),
                     {shape.begin(), shape.end()},
                     nullptr,
                     result.value.count() * result.value.width()});
  }
  std::string header = safetensors_header(views, {});
  return onOutput(report, "-o", [&] {
    output_file file(outputPath);
    file.write(header.data(), static_cast<int64_t>(header.size()));
    for (const EvaluatedTensor &result : results)
      write(file, result.value);
    file.publish();
  });
}

/// As a trainer writes them of its first micro-batch, without those of nodes that have several
/// results, which plans call alike.
bool writeStatistics(const std::vector<EvaluatedTensor> &values, Report &report) {
  std::map<std::string, int> named;
  for (const EvaluatedTensor &each : values)
    ++named[each.planName];
  return onOutput(report, "--statistics", [&] {
    output_file file(statisticsPath);
    std::string text;
    append_head(text, modelName(modelPath), 0, 1);
    for (const EvaluatedTensor &each : values) {
      if (each.planName.empty() || named[each.planName] > 1 || each.value.count() == 0)
        continue;
      const int64_t count = each.value.count();
      const std::vector<char> copies =
          each.value.isSplat() ? copiesOf(each.value, count) : std::vector<char>();
      statistics_taker taker(count);
      const data_type type = dataTypeOf(each.value.type());
      const ArrayRef<int64_t> shape = each.value.shape();
      append_line(text, 1, 0,
                  {each.planName, tensor_kind::value, type, {shape.begin(), shape.end()}},
                  taker.of(type, copies.empty() ? each.value.at(0) : copies.data(), count));
      file.write(text.data(), static_cast<int64_t>(text.size()));
      text.clear();
    }
    file.write(text.data(), static_cast<int64_t>(text.size()));
    file.publish();
  });
}

/// Whether both results would have one name.
bool areTwoFiles(Report &report) {
  return outputPath.empty() || statisticsPath.empty() || onOutput(report, "--statistics", [] {
           check_output_path(statisticsPath, {outputPath}, "is the file of -o", "--statistics");
           if (sys::fs::equivalent(Twine(statisticsPath), Twine(outputPath)) ||
               statisticsPath == outputPath)
             throw trainc::failure(exit_usage, statisticsPath + ": is the file of -o");
         });
}

bool evaluate(Report &report) {
  Recipe recipe;
  if (!parseDimensions(recipe, report))
    return false;
  mlir::MLIRContext context;
  context.loadDialect<nn::NNDialect, train::TrainDialect, mlir::func::FuncDialect>();
  context.disableMultithreading();
  auto model = readModel(modelPath, recipe, context, report);
  if (failed(model) || !mayWrite(*model, report) || !areTwoFiles(report))
    return false;
  mlir::PassManager passes(&context);
  passes.addPass(createSetPrecisionPass(precision));
  NamedTensors inputs, parameters;
  if (failed(passes.run(model->module.get())) || !readInputs(*model, inputs, report) ||
      !readParameters(*model, context, parameters, report))
    return false;
  auto results = evaluateModel(*model, inputs, parameters, all || !statisticsPath.empty(), report);
  if (failed(results) || (!statisticsPath.empty() && !writeStatistics(*results, report)))
    return false;
  if (!all)
    llvm::erase_if(*results, [](const EvaluatedTensor &value) { return !value.isOutput; });
  if (!outputPath.empty() && !write(*results, report))
    return false;
  for (const EvaluatedTensor &result : *results) {
    ArrayRef<int64_t> shape = result.value.shape();
    outs() << result.name << ": " << name_of(dataTypeOf(result.value.type())) << " "
           << shape_text(shape.data(), shape.size()) << "\n";
  }
  return true;
}

} // namespace

int main(int argc, char **argv) {
  watchStandardOutput("trainc-run");
  cl::HideUnrelatedOptions(category);
  if (!cl::ParseCommandLineOptions(argc, argv, kOverview, &errs()))
    return static_cast<int>(ExitCode::usage);
  if (modelPath.empty() || (outputPath.empty() && statisticsPath.empty())) {
    errs() << "trainc-run: no " << (modelPath.empty() ? "model" : "output file") << " given\n"
           << "  try: trainc-run model.onnx --input x=x.npy -o outputs.safetensors, or --help\n";
    return static_cast<int>(ExitCode::usage);
  }
  Report report;
  bool good = false;
  try {
    good = evaluate(report);
  } catch (const std::bad_alloc &) {
    (void)report.error(ExitCode::tooLittleMemory, modelPath,
                       "its values take more memory than there is", "a smaller --dim");
  }
  report.print(errs());
  return good             ? 0
         : report.empty() ? static_cast<int>(ExitCode::internalError)
                          : static_cast<int>(report.exitCode());
}
