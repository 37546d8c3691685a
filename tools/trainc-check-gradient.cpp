// SPDX-License-Identifier: Apache-2.0
//
// trainc-check-gradient FILE.mlir: numbers of the operation tests. Takes every
// @numbers_* function of the file's NUMBERS sections through the passes, emits and
// compiles all of them as one library, and compares values with check.results and the
// reference interpreter's, and gradients with central differences in f64. A row per case;
// exit status 1 where one is wrong. With --f32 values of the same functions in f32, too, against
// f64 within what rounding explains (check_rounding.h). --records in place of the file: f32 values
// of all pointwise operations against their f64 values, in the units that pointwise.td states.
#include "compiler/emit/emit.h"
#include "compiler/emit/step_program.h"
#include "compiler/installation.h"
#include "compiler/standard_output.h"
#include "dialects/kernel/kernel.h"
#include "dialects/nn/interpreter.h"
#include "dialects/nn/nn.h"
#include "dialects/train/train.h"
#include "mlir/Parser/Parser.h"
#include "runtime/program.h"
#include "tools/check_gradient_cases.h"
#include "tools/check_records.h"
#include "tools/check_rounding.h"
#include "tools/run_tool.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <cstring>
#include <dlfcn.h>
#include <fstream>

using namespace mlir;
using namespace trainc;

namespace {

struct CheckOptions : tools::ToolOptions {
  bool records = false, f32 = false;
  std::string keep;
};

constexpr double kGradientTolerance = 1e-5; // relative
constexpr double kValueTolerance = 1e-9;    // relative, of f64 values
constexpr double kStep = 1e-4;              // of the central differences, before extrapolation
constexpr double kLossRounding = 0x1p-49;   // relative, of a loss of some dozen operations
constexpr int64_t kFewElements = 1000;      // of an argument; of more, differences take a sample
constexpr int64_t kSampledElements = 50;

constexpr int kSamples = 16, kManySamples = 400; // of rounding; the latter before a value is wrong
constexpr double kRoundingFactor = 4;            // the largest of 16 samples is not the largest
constexpr double kUndetermined = 1e-3;           // relative: a bound that says little

/// The arenas of all cases, one after the other.
class Memory {
public:
  explicit Memory(ArrayRef<int64_t> bytes) {
    for (int i = 0; i < arena_count; ++i) {
      sizes[i] = (static_cast<size_t>(bytes[i]) + 127) / 64 * 64;
      arenas.base[i] = static_cast<char *>(std::aligned_alloc(64, sizes[i]));
    }
  }
  ~Memory() {
    for (char *base : arenas.base)
      std::free(base);
  }
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;

  /// All bits one: NaN as a float, so that what nobody writes shows.
  void clear() {
    for (int i = 0; i < arena_count; ++i)
      std::memset(arenas.base[i], 0xff, sizes[i]);
  }
  char *at(const CheckTensor &tensor, int64_t index) const {
    return arenas.base[tensor.arena] + tensor.offset +
           index * elementBytes(tensor.type.getElementType());
  }
  double read(const CheckTensor &tensor, int64_t index) const {
    return withHostType(elementTypeOf(tensor.type).stored, [&](auto value) {
      std::memcpy(&value, at(tensor, index), sizeof value);
      return static_cast<double>(value);
    });
  }
  /// Any number but zero is true.
  void write(const CheckTensor &tensor, int64_t index, double value) {
    value = tensor.type.getElementType().isInteger(1) ? value != 0 : value;
    withHostType(elementTypeOf(tensor.type).stored, [&](auto element) {
      element = static_cast<decltype(element)>(value);
      std::memcpy(at(tensor, index), &element, sizeof element);
    });
  }

  trainc::arenas arenas = {}; // no stash

private:
  size_t sizes[arena_count];
};

double elementOf(DenseElementsAttr elements, int64_t index) {
  Attribute element = elements.getValues<Attribute>()[index];
  if (auto number = dyn_cast<FloatAttr>(element)) {
    llvm::APFloat value = number.getValue();
    bool lossy;
    value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &lossy);
    return value.convertToDouble();
  }
  auto number = cast<IntegerAttr>(element);
  if (number.getType().isSignlessInteger(1))
    return !number.getValue().isZero();
  return number.getType().isUnsignedInteger() ? static_cast<double>(number.getUInt())
                                              : static_cast<double>(number.getInt());
}

class Checker {
public:
  using Entry = void (*)(int, arenas);
  /// Of the library that was made of the planned program.
  Checker(Entry run, ModuleOp program)
      : run(run), memory(program->getAttrOfType<DenseI64ArrayAttr>("kernel.arena_bytes")) {}

  /// Prints the row of a case, then what is wrong with it.
  bool check(const CheckCase &c) {
    chooseArguments(c);
    problems.clear();
    double valueError = checkValues(c);
    auto [count, gradientError] = checkGradients(c);
    llvm::outs() << llvm::formatv("{0,-40}", c.name)
                 << llvm::format("  values %8.1e  gradients %5d  %8.1e", valueError, count,
                                 gradientError);
    if (c.f32)
      checkRounding(c);
    llvm::outs() << (problems.empty() ? "  ok\n" : "  WRONG\n");
    for (size_t i = 0; i < problems.size() && i < 8; ++i)
      llvm::outs() << "    " << problems[i] << "\n";
    return problems.empty();
  }

  /// Prints the largest error of a record's f32 values, and where it is.
  bool check(const CheckCase &c, const RecordCheck &record) {
    chooseArguments(c);
    evaluate(c);
    double largest = 0;
    std::vector<double> worst;
    for (int64_t i = 0; i < c.results[0].type.getNumElements(); ++i) {
      std::vector<double> operands;
      for (const std::vector<double> &list : values)
        operands.push_back(list[i]);
      double error = errorInUnits(memory.read(c.results[0], i), memory.read(c.results[1], i),
                                  operands, record.accuracy.cancels);
      if (error > largest) {
        largest = error;
        worst = operands;
      }
    }
    bool good = largest <= record.accuracy.ulp;
    llvm::outs() << llvm::formatv("{0,-18}", record.name)
                 << llvm::format("  %8.3f ulp of %4.2f", largest, record.accuracy.ulp)
                 << (record.accuracy.cancels ? " of the largest operand" : "") << "  at";
    for (double x : worst)
      llvm::outs() << llvm::format(" %.9g", x);
    llvm::outs() << (good ? "  ok\n" : "  WRONG\n");
    return good;
  }

private:
  void chooseArguments(const CheckCase &c) {
    values.clear();
    uint64_t state = 7;
    for (const CheckArgument &argument : c.arguments) {
      values.emplace_back();
      for (int64_t i = 0; i < argument.value.type.getNumElements(); ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        bool isFloat = isa<FloatType>(argument.value.type.getElementType());
        double random = isFloat ? 0.1 + static_cast<double>(state >> 40) / (1 << 24) : 0;
        values.back().push_back(argument.given ? elementOf(argument.given, i) : random);
      }
    }
  }

  double evaluate(const CheckCase &c) {
    memory.clear();
    writeArguments(c);
    run(c.evaluate, memory.arenas);
    return memory.read(c.loss, 0);
  }

  void writeArguments(const CheckCase &c) {
    for (auto [argument, list] : llvm::zip(c.arguments, values))
      for (auto [i, value] : llvm::enumerate(list))
        if (argument.value.arena >= 0)
          memory.write(argument.value, i, value);
  }

  double checkValues(const CheckCase &c) {
    evaluate(c);
    double largest = 0;
    std::vector<nn::Tensor> interpreted = interpret(c);
    for (auto [r, result] : llvm::enumerate(c.results))
      for (int64_t i = 0; i < result.type.getNumElements(); ++i) {
        double found = memory.read(result, i);
        if (r < c.expected.size())
          largest = std::max(largest, compare(c, r, i, found, elementOf(c.expected[r], i), ""));
        if (r < interpreted.size())
          largest = std::max(
              largest, compare(c, r, i, found, interpreted[r].real(i), ", says the interpreter"));
      }
    return largest;
  }

  /// f32 values against f64 values of the same arguments; prints the largest error in units of its
  /// bound, and for how many elements the bound says little.
  void checkRounding(const CheckCase &c) {
    std::vector<nn::Tensor> arguments;
    for (auto [argument, list] : llvm::zip(c.arguments, values)) {
      std::vector<double> rounded(list);
      if (isa<FloatType>(argument.value.type.getElementType()))
        llvm::for_each(rounded, [](double &value) { value = static_cast<float>(value); });
      arguments.push_back(tensorOf(argument.value.type, rounded));
    }
    evaluate(*c.f32);
    auto few = sampleRounding(c.function, arguments, kSamples);
    if (failed(few))
      return problems.push_back("the interpreter failed");
    std::optional<RoundedResults> many;
    double largest = 0;
    int64_t elements = 0, undetermined = 0;
    for (auto [r, result] : llvm::enumerate(c.f32->results))
      for (int64_t i = 0; i < result.type.getNumElements(); ++i, ++elements) {
        double found = memory.read(result, i), want = few->exact[r].real(i);
        double bound = kRoundingFactor * few->deviation[r][i];
        double error = std::isnan(found) && std::isnan(want) ? 0 : std::abs(found - want);
        if (!(error <= bound)) {
          if (!many)
            many = *sampleRounding(c.function, arguments, kManySamples);
          bound = kRoundingFactor * many->deviation[r][i];
        }
        undetermined += bound > kUndetermined * std::max(1.0, std::abs(want));
        if (!(error <= bound))
          problems.push_back(llvm::formatv(
              "f32 result {0} element {1}: {2:E9} instead of {3:E9}, rounding explains {4:E1}", r,
              i, found, want, bound));
        else if (error > 0)
          largest = std::max(largest, error / bound);
      }
    llvm::outs() << llvm::format("  f32 %6lld, %lld undetermined, %4.2f",
                                 static_cast<long long>(elements),
                                 static_cast<long long>(undetermined), largest);
  }

  /// The relative error, which it reports where it is too large.
  double compare(const CheckCase &c, size_t r, int64_t i, double found, double want,
                 const char *who) {
    if (found == want || (std::isnan(found) && std::isnan(want)))
      return 0;
    double epsilon = withHostType(elementTypeOf(c.results[r].type).stored, [](auto zero) {
      return static_cast<double>(std::numeric_limits<decltype(zero)>::epsilon());
    });
    double tolerance = std::max(8 * epsilon, kValueTolerance);
    double error = std::abs(found - want) / std::max(std::abs(want), 1e-3);
    if (!(error <= tolerance))
      problems.push_back(
          llvm::formatv("result {0} element {1}: {2} instead of {3}{4}", r, i, found, want, who));
    return std::isnan(error) ? INFINITY : error;
  }

  static nn::Tensor tensorOf(RankedTensorType type, const std::vector<double> &list) {
    if (isa<FloatType>(type.getElementType()))
      return nn::Tensor::ofReals(type, list);
    return nn::Tensor::ofIntegers(type, std::vector<int64_t>(list.begin(), list.end()));
  }

  /// The results of the function as it stands in the file, by the reference interpreter.
  std::vector<nn::Tensor> interpret(const CheckCase &c) {
    Block &block = func::FuncOp(c.function).getBody().front();
    nn::TensorValues tensors;
    for (auto [argument, list] : llvm::zip(block.getArguments(), values))
      tensors[argument] = tensorOf(nn::tensorType(argument), list);
    auto returned = block.getTerminator()->getOperands();
    auto isReturned = [&](Value value) { return llvm::is_contained(returned, value); };
    if (failed(nn::Interpreter(nn::kLargestFolded).run(block, tensors, isReturned))) {
      problems.push_back("the interpreter failed");
      return {};
    }
    std::vector<nn::Tensor> results;
    for (Value value : returned)
      results.push_back(tensors.lookup(value));
    return results;
  }

  /// Elements from one difference to the next.
  static size_t stride(size_t count) {
    return count <= kFewElements ? 1 : count / kSampledElements;
  }

  struct Slope {
    double want, error; // relative
  };

  /// The difference, and how far `found` is from it. Where that is too far a kink or a jump of a
  /// result may be within the step: a smaller one is tried, where what the losses' own
  /// rounding does is not an error.
  Slope compareWithDifference(const CheckCase &c, double &x, double found, double scale) {
    auto compareAt = [&](double step, double noise) {
      const double h = step * std::max(1.0, std::abs(x) * 1e-3), want = difference(c, x, h);
      const double allowed = noise * std::abs(memory.read(c.loss, 0)) / h;
      const double off = std::max(std::abs(found - want) - allowed, 0.0);
      return Slope{want, std::isnan(found - want)
                             ? INFINITY
                             : off / std::max({std::abs(want), 1e-4 * scale, 1e-4})};
    };
    const Slope first = compareAt(kStep, 0);
    if (first.error <= kGradientTolerance)
      return first;
    for (double smaller : {0.1, 0.01})
      if (Slope slope = compareAt(smaller * kStep, kLossRounding);
          slope.error <= kGradientTolerance)
        return slope;
    return first;
  }

  /// Fourth-order difference of the loss along one element.
  double difference(const CheckCase &c, double &x, double h) {
    const double at = x;
    auto central = [&](double step) {
      x = at + step;
      const double above = x, high = evaluate(c);
      x = at - step;
      const double low = evaluate(c), slope = (high - low) / (above - x);
      x = at;
      return slope;
    };
    const double wide = central(h);
    return (4 * central(h / 2) - wide) / 3;
  }

  std::pair<int, double> checkGradients(const CheckCase &c) {
    memory.clear();
    writeArguments(c);
    if (c.randomKey.arena >= 0)
      memory.write(c.randomKey, 0, 0);
    run(c.forwardBackward, memory.arenas);
    std::vector<std::vector<double>> gradients(c.arguments.size());
    double scale = 0;
    for (auto [a, argument] : llvm::enumerate(c.arguments))
      if (argument.gradient.arena >= 0)
        for (int64_t i = 0; i < argument.value.type.getNumElements(); ++i) {
          gradients[a].push_back(memory.read(argument.gradient, i));
          scale = std::max(scale, std::abs(gradients[a].back()));
        }
    if (!std::isfinite(evaluate(c))) // a value test at a pole; there is no slope to compare with
      return {0, 0};
    int count = 0;
    double largest = 0;
    for (size_t a = 0; a < gradients.size(); ++a)
      for (size_t i = 0; i < gradients[a].size(); i += stride(gradients[a].size())) {
        if (!std::isfinite(values[a][i]))
          continue;
        auto [want, error] = compareWithDifference(c, values[a][i], gradients[a][i], scale);
        double found = gradients[a][i];
        ++count;
        if (!(error <= kGradientTolerance))
          problems.push_back(llvm::formatv(
              "gradient of argument {0} element {1}: {2}, differences say {3}", a, i, found, want));
        largest = std::isnan(error) ? INFINITY : std::max(largest, error);
      }
    return {count, largest};
  }

  Entry run;
  Memory memory;
  std::vector<std::vector<double>> values; // of the arguments
  std::vector<std::string> problems;
};

void writeFile(const std::string &folder, const char *name, const std::string &text) {
  std::ofstream(folder + "/" + name) << text;
}

SmallVector<func::FuncOp> functionsOf(ModuleOp program, ArrayRef<std::string> names) {
  return llvm::map_to_vector(
      names, [&](StringRef name) { return program.lookupSymbol<func::FuncOp>(name); });
}

/// Emits and compiles the program; the library's entry, or null after a message.
Checker::Entry build(ModuleOp program, const std::vector<std::string> &entries,
                     const std::string &folder) {
  MemoryNames names(program, functionsOf(program, entries));
  if (failed(names.collect()))
    return nullptr;
  FailureOr<EmittedCode> code = emitCode(program, names);
  if (failed(code))
    return nullptr;
  writeFile(folder, "kernels.h", code->kernelsHeader);
  writeFile(folder, "kernels.cpp", code->kernels);
  writeFile(folder, "memory.h", code->memory);
  writeFile(folder, "constants.h", code->constantsHeader);
  writeFile(folder, "constants.cpp", code->constants);
  writeFile(folder, "constants.bin", code->constantsData);
  writeFile(folder, "step.h", "#pragma once\n#include \"runtime/program.h\"\n");
  writeFile(folder, "step.cpp", code->step);
  std::string all = "#include \"constants.cpp\"\n#include \"kernels.cpp\"\n#include \"step.cpp\"\n"
                    "extern \"C\" void trainc_check(int entry, trainc::arenas memory) {\n"
                    "  using namespace trainc;\n"
                    "  const void *constants_address = " +
                    constantsAddress(names).str() +
                    ";\n"
                    "  memory.constants = static_cast<const char *>(constants_address);\n"
                    "  static void (*const entries[])(const trainc::arenas &) = {\n";
  for (const std::string &entry : entries)
    all += "      trainc::" + entry + ",\n";
  writeFile(folder, "check.cpp", all + "  };\n  entries[entry](memory);\n}\n");

  Installation installation = findInstallation();
  CompileOptions options;
  options.directory = folder;
  options.includes = {installation.includeFolder};
  options.march = "x86-64-v3";
  options.optimization = "-O1";
  options.sources = {"check.cpp"};
  options.shared = true;
  options.warningsAreErrors = true;
  options.linkArguments = installation.archives("cpu");
  options.output = folder + "/check.so";
  std::string error;
  if (!compileSources(options, error)) {
    llvm::errs() << error << "\n";
    return nullptr;
  }
  void *library = dlopen(options.output.c_str(), RTLD_NOW);
  if (!library) {
    llvm::errs() << dlerror() << "\n";
    return nullptr;
  }
  return reinterpret_cast<Checker::Entry>(dlsym(library, "trainc_check"));
}

} // namespace

static void loadDialects(MLIRContext &context) {
  context.disableMultithreading();
  context.loadDialect<func::FuncDialect, arith::ArithDialect, math::MathDialect, nn::NNDialect,
                      train::TrainDialect, kernel::KernelDialect>();
}

static int checkRecords(const std::string &folder) {
  MLIRContext context;
  loadDialects(context);
  OwningOpRef<ModuleOp> program = ModuleOp::create(UnknownLoc::get(&context)), functions;
  std::vector<RecordCheck> list = recordFunctions(context, functions);
  std::vector<std::string> entries;
  std::vector<CheckCase> cases;
  for (const RecordCheck &record : list) {
    auto built = buildCase(record.function, *program, entries);
    if (!built)
      return 1;
    cases.push_back(std::move(*built));
  }
  Checker::Entry run = build(*program, entries, folder);
  if (!run)
    return 1;
  Checker checker(run, *program);
  bool good = true;
  for (auto [c, record] : llvm::zip_equal(cases, list))
    good &= checker.check(c, record);
  return good ? 0 : 1;
}

static bool buildF32(CheckCase &c, ModuleOp program, std::vector<std::string> &entries) {
  auto function = narrowed(c.function);
  auto built = buildCase(*function, program, entries, /*forwardOnly=*/true);
  if (built)
    c.f32 = std::make_shared<CheckCase>(std::move(*built));
  else
    llvm::outs() << c.name << "  the passes failed on f32\n";
  return built.has_value();
}

static int checkFile(const CheckOptions &options, const std::string &folder) {
  const std::string input = options.word(0);
  auto file = llvm::MemoryBuffer::getFile(input);
  if (!file)
    throw trainc::failure(exit_usage, input + ": " + file.getError().message());
  MLIRContext context;
  loadDialects(context);
  OwningOpRef<ModuleOp> program = ModuleOp::create(UnknownLoc::get(&context));
  std::vector<std::string> entries;
  std::vector<CheckCase> cases;
  std::vector<OwningOpRef<ModuleOp>> sections; // which the cases' functions are in
  bool good = true;
  for (const std::string &section : numberSections((*file)->getBuffer())) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(section, &context, input);
    if (!module)
      return 1;
    for (auto function : module->getOps<func::FuncOp>()) {
      if (!function.getName().starts_with("numbers_"))
        continue;
      if (auto built = buildCase(function, *program, entries)) {
        cases.push_back(std::move(*built));
        cases.back().function = function;
        good &= !options.f32 || buildF32(cases.back(), *program, entries);
      } else {
        llvm::outs() << function.getName() << "  the passes failed\n";
        good = false;
      }
    }
    sections.push_back(std::move(module));
  }
  if (cases.empty()) {
    llvm::errs() << input << ": no @numbers_ function in a NUMBERS section\n";
    return 1;
  }
  Checker::Entry run = build(*program, entries, folder);
  if (!run)
    return 1;
  Checker checker(run, *program);
  for (const CheckCase &c : cases)
    good &= checker.check(c);
  return good ? 0 : 1;
}

static int check(const CheckOptions &options) {
  if (!options.records && (options.word(0).empty() || !llvm::sys::fs::exists(options.word(0))))
    throw trainc::failure(exit_usage,
                          options.word(0).empty()
                              ? "no file is given\n  try: trainc-check-gradient FILE.mlir"
                              : options.word(0) + ": does not exist");
  const std::string &keep = options.keep;
  llvm::SmallString<128> folder(keep);
  if (keep.empty() ? llvm::sys::fs::createUniqueDirectory("trainc-check", folder)
                   : llvm::sys::fs::create_directories(folder))
    throw trainc::failure(exit_usage, "trainc-check-gradient: cannot make a folder");
  int status =
      options.records ? checkRecords(folder.str().str()) : checkFile(options, folder.str().str());
  if (keep.empty() && status == 0)
    llvm::sys::fs::remove_directories(folder);
  else if (status != 0)
    llvm::errs() << "sources: " << folder << "\n";
  return status;
}

int main(int argc, char **argv) {
  watchStandardOutput("trainc-check-gradient");
  using tools::toolOption;
  return tools::runTool(
      argc, argv,
      {"trainc-check-gradient",
       "usage: trainc-check-gradient FILE.mlir [options]\n\n"
       "Compares gradients with central differences.\n",
       {toolOption("records", &CheckOptions::records, "", "f32 values of the pointwise operations"),
        toolOption("f32", &CheckOptions::f32, "", "compare f32 values with those of f64, too"),
        toolOption("keep", &CheckOptions::keep, "FOLDER", "folder that keeps the sources")}},
      check);
}
