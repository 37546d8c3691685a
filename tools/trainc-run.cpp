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
#include "runtime/files/conversion.h"
#include "runtime/files/npy.h"
#include "runtime/files/output_file.h"
#include "runtime/files/safetensors.h"
#include "runtime/observe/statistics_file.h"
#include "tools/run_tool.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace llvm;
using namespace trainc;
using namespace trainc::tools;

namespace {

constexpr char kPage[] = R"(usage: trainc-run MODEL.onnx -o FILE.safetensors [options]

trainc-run evaluates a forward ONNX model without compiling it.

  trainc-run model.onnx --dim batch=4 --input x=x.npy -o outputs.safetensors
  trainc-run model.onnx --dim batch=4 --input x=x.npy --all --precision f64 -o all.safetensors

The reference interpreter, which also folds constants and judges compiled programs in the tests,
executes the model's operations one after the other: plain loops, nothing fused. Compare two
files with trainc-compare.

Exit codes: 0 success; 1 internal error; 2 the command line is wrong, or a file that it names; 3 the
model cannot be read, or an index is outside its table; 4 the model is not supported; 5 the output
cannot be written; 6 too little memory.
)";

struct RunOptions : ToolOptions {
  std::map<std::string, int64_t> dimensions;
  std::vector<std::string> inputs; // NAME=FILE
  std::string parameters, precision = "f32", statistics, output;
  bool all = false;

  std::string model() const { return word(0); }
};

std::string readDimension(const std::string &text, value_range, void *options) {
  auto [name, size] = StringRef(text).rsplit('='); // names may hold equals signs
  int64_t number = 0;
  if (name.empty() || size.getAsInteger(10, number) || number <= 0)
    return with_advice("expects NAME=SIZE with a positive size, found '" + text + "'",
                       "--dim batch=8");
  if (!static_cast<RunOptions *>(options)->dimensions.emplace(name.str(), number).second)
    return with_advice("gives '" + name.str() + "' twice", "one --dim for each dimension");
  return "";
}

std::vector<option_row> runRows() {
  using O = RunOptions;
  option_row dimension = {"dim", "NAME=SIZE", ~0u, "size of a symbolic dimension; once for each"};
  dimension.is_list = true;
  dimension.read = readDimension;
  dimension.texts = [](const void *) { return std::vector<std::string>(); };
  return {dimension,
          toolOption("input", &O::inputs, "NAME=FILE.npy",
                     "value of a model input, of exactly its shape; a type is accepted where no "
                     "value can change"),
          toolOption("parameters", &O::parameters, "FILE.safetensors",
                     "parameters by ONNX name in place of the model's own, as a trainer's "
                     "checkpoints hold them"),
          toolOption("precision", &O::precision, "f32|f64",
                     "f32: every operation rounds as its type says; f64: f32 tensors are "
                     "computed in double"),
          toolOption("all", &O::all, "", "write every value that an output needs, by ONNX name"),
          toolOption("statistics", &O::statistics, "FILE.jsonl",
                     "write statistics of every value that an output needs, by the names of plans, "
                     "for trainc-compare statistics"),
          toolOption("o", &O::output, "FILE.safetensors",
                     "where the outputs go, by ONNX name; may be left out with --statistics")};
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
  std::string found = shape_text(header.shape);
  if (ArrayRef<int64_t>(header.shape) != type.getShape())
    throw trainc::failure(exit_data, path + ": has shape " + found + ", expected " +
                                         shape_text(type.getShape()));
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

bool readInputs(Model &model, const RunOptions &options, NamedTensors &inputs, Report &report) {
  auto function = model.module->lookupSymbol<mlir::func::FuncOp>("model");
  std::map<std::string, mlir::Type> types;
  for (mlir::BlockArgument argument : function.getArguments())
    types[train::nameOf(function, argument.getArgNumber()).str()] = argument.getType();
  for (StringRef text : options.inputs) {
    auto [name, path] = text.split('=');
    auto type = types.find(name.str());
    if (name.empty() || path.empty())
      (void)report.error(ExitCode::usage, Subject::ofProgram("trainc-run"),
                         "--input expects NAME=FILE.npy, found '" + text + "'", "--input x=x.npy");
    else if (type == types.end())
      (void)report.error(ExitCode::usage, options.model(), "the model has no input '" + name + "'",
                         "trainc-run " + options.model() + " without --input, which names them");
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
bool readParameters(const Model &model, const std::string &path, mlir::MLIRContext &context,
                    NamedTensors &parameters, Report &report) {
  if (path.empty())
    return true;
  try {
    input_file file(path, exit_data);
    safetensors_index index = read_safetensors_index(file);
    for (auto &[name, stored] : index.tensors)
      if (llvm::none_of(model.parameters, [&](const Parameter &p) { return p.name == name; }) &&
          !llvm::StringRef(name).starts_with("optimizer/"))
        (void)report.error(ExitCode::usage, path,
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
        (void)report.error(ExitCode::usage, path,
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

bool mayWrite(const Model &model, const RunOptions &options, Report &report) {
  std::vector<std::string> read = model.file->paths();
  read.push_back(options.parameters);
  for (StringRef text : options.inputs)
    read.push_back(text.split('=').second.str());
  for (auto [option, path] :
       {std::pair("-o", &options.output), {"--statistics", &options.statistics}})
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

bool write(const std::vector<EvaluatedTensor> &results, const std::string &path, Report &report) {
  std::vector<tensor_view> views;
  for (const EvaluatedTensor &result : results) {
    ArrayRef<int64_t> shape = result.value.shape();
    views.push_back({result.name,
                     dataTypeOf(result.value.type()),
                     {shape.begin(), shape.end()},
                     nullptr,
                     result.value.count() * result.value.width()});
  }
  return onOutput(report, "-o", [&] {
    output_file file(path);
    file.write(safetensors_header(views, {}));
    for (const EvaluatedTensor &result : results)
      write(file, result.value);
    file.publish();
  });
}

/// As a trainer writes them of its first micro-batch, without those of nodes that have several
/// results, which plans call alike.
bool writeStatistics(const std::vector<EvaluatedTensor> &values, const RunOptions &options,
                     Report &report) {
  std::map<std::string, int> named;
  for (const EvaluatedTensor &each : values)
    ++named[each.planName];
  return onOutput(report, "--statistics", [&] {
    output_file file(options.statistics);
    std::string text;
    append_head(text, modelName(options.model()), 0, 1);
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
      file.write(text);
      text.clear();
    }
    file.write(text);
    file.publish();
  });
}

/// Whether both results would have one name.
bool areTwoFiles(const std::string &output, const std::string &statistics, Report &report) {
  return output.empty() || statistics.empty() || onOutput(report, "--statistics", [&] {
           check_output_path(statistics, {output}, "is the file of -o", "--statistics");
           if (statistics == output)
             throw trainc::failure(exit_usage, statistics + ": is the file of -o");
         });
}

bool evaluate(const RunOptions &options, Report &report) {
  Recipe recipe;
  recipe.dimensions = options.dimensions;
  recipe.precision = options.precision;
  recipe.trains = false;
  mlir::MLIRContext context;
  context.loadDialect<nn::NNDialect, train::TrainDialect, mlir::func::FuncDialect>();
  context.disableMultithreading();
  auto model = readModel(options.model(), recipe, context, report);
  if (failed(model) || !mayWrite(*model, options, report) ||
      !areTwoFiles(options.output, options.statistics, report))
    return false;
  mlir::PassManager passes(&context);
  passes.addPass(createSetPrecisionPass(options.precision));
  NamedTensors inputs, parameters;
  if (failed(passes.run(model->module.get())) || !readInputs(*model, options, inputs, report) ||
      !readParameters(*model, options.parameters, context, parameters, report))
    return false;
  auto results =
      evaluateModel(*model, inputs, parameters, options.all || !options.statistics.empty(), report);
  if (failed(results) ||
      (!options.statistics.empty() && !writeStatistics(*results, options, report)))
    return false;
  if (!options.all)
    llvm::erase_if(*results, [](const EvaluatedTensor &value) { return !value.isOutput; });
  if (!options.output.empty() && !write(*results, options.output, report))
    return false;
  for (const EvaluatedTensor &result : *results) {
    ArrayRef<int64_t> shape = result.value.shape();
    outs() << result.name << ": " << name_of(dataTypeOf(result.value.type())) << " "
           << shape_text(shape) << "\n";
  }
  return true;
}

int runModel(const RunOptions &options) {
  if (options.output.empty() && options.statistics.empty())
    throw trainc::failure(exit_usage, "trainc-run: no output file given\n"
                                      "  try: -o outputs.safetensors");
  Report report;
  bool good = false;
  try {
    good = evaluate(options, report);
  } catch (const std::bad_alloc &) {
    (void)report.error(ExitCode::tooLittleMemory, options.model(),
                       "its values take more memory than there is", "a smaller --dim");
  }
  report.print(errs());
  return good             ? 0
         : report.empty() ? static_cast<int>(ExitCode::internalError)
                          : static_cast<int>(report.exitCode());
}

} // namespace

int main(int argc, char **argv) {
  watchStandardOutput("trainc-run");
  return runTool(argc, argv, {"trainc-run", kPage, runRows(), "model"}, runModel);
}
