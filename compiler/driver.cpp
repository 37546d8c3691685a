// SPDX-License-Identifier: Apache-2.0
//
// The compiler from command line to output folder: read, passes, emit, host compile.
#include "compiler/driver.h"
#include "compiler/cuda_toolkit.h"
#include "compiler/emit/emit.h"
#include "compiler/host_compile.h"
#include "compiler/ir_file.h"
#include "compiler/library_output.h"
#include "compiler/memory_limit.h"
#include "compiler/model_name.h"
#include "compiler/onnx/gradient_graph/gradient_graph.h"
#include "compiler/operator_table.h"
#include "compiler/output/depfile.h"
#include "compiler/output/output_folder.h"
#include "compiler/output/write_file.h"
#include "compiler/pipeline.h"
#include "compiler/plan/program_plan.h"
#include "compiler/plan/write_plan.h"
#include "compiler/stage_clock.h"
#include "compiler/standard_output.h"
#include "dialects/errors/internal_error.h"
#include "dialects/kernel/kernel.h"
#include "dialects/names/node_name.h"
#include "dialects/nn/nn.h"
#include "dialects/train/loss.h"
#include "dialects/train/module_state.h"
#include "dialects/train/optimizer.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/options/option_reader.h"
#include "passes/passes.h"
#include "passes/planning/plan_text.h"
#include "passes/sharding/gradient_buckets.h"
#include "passes/sharding/update_parts.h"
#include "runtime/byte_text.h"
#include "runtime/name_pattern.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <set>

using namespace mlir;

namespace trainc {

namespace {

/// The last pass of --check: the passes after it do what is asked of them, or there is an internal
/// error.
constexpr const char *kCheckedUntil = "differentiate";

/// The pass that plan-recompute, and so --memory-curve, stands after.
constexpr const char *kCurveBehind = "store-frozen";

class Compilation {
public:
  explicit Compilation(const Options &options)
      : options(options),
        output(options.output.empty() ? modelName(options.model) : options.output),
        clock(options.quiet || options.messageFormat != "text") {
    context.loadDialect<nn::NNDialect, train::TrainDialect, kernel::KernelDialect,
                        func::FuncDialect, arith::ArithDialect, math::MathDialect>();
    context.disableMultithreading();
  }

  ExitCode run() {
    bool good = steps();
    clock.finish();
    bool asTable = options.check && options.messageFormat == "text" && looksAtModel;
    if (asTable)
      report.printTable(llvm::outs());
    std::error_code unprinted = finishStandardOutput();
    if (unprinted)
      (void)report.error(ExitCode::outputNotWritten, Subject::ofProgram("trainc"),
                         "its standard output cannot be written: " + unprinted.message(),
                         "another place for it");
    if (!asTable || unprinted)
      printReport();
    return good && report.empty() ? ExitCode::ok
           : report.empty()       ? ExitCode::internalError
                                  : report.exitCode();
  }

private:
  void printReport() const {
    report.print(llvm::errs(),
                 parseMessageFormat(options.messageFormat).value_or(MessageFormat::text));
  }

  bool stopsAfter(StringRef stage) const { return options.stopAfter == stage; }

  bool steps() {
    options.acceptFindings(report);
    std::optional<Recipe> parsed = options.recipe(report);
    std::optional<RecomputeOptions> again = options.recomputeOptions(report);
    std::optional<StageOptions> cut = options.stageOptions(report);
    startedAs = options.runLayout(report);
    if (!parsed || !again || !cut)
      return false;
    operators = readCustomOperators(options.operators, parsed->target, report);
    if (!report.empty())
      return false;
    if (options.printDocumentation || options.listOperators) {
      llvm::outs() << (options.listOperators ? operatorTable() : optionsDocumentation());
      return true;
    }
    recipe = *parsed;
    recompute = *again;
    stages = *cut;
    looksAtModel = true;
    if (options.printParameters)
      return printParameters();
    if (!read())
      return false;
    if (options.check && !recipe.trains)
      return true;
    if (stopsAfter("import"))
      return printIr();
    if (!runPasses())
      return false;
    if (options.memoryCurve)
      return printMemoryCurve();
    if (stopped)
      return options.check || printIr();
    return emit();
  }

  std::vector<std::string> filesRead() const {
    std::vector<std::string> files = modelFiles(model);
    llvm::append_range(files, recipe.lossFiles);
    for (const CustomOperator &custom : operators) {
      files.push_back(custom.manifest);
      llvm::append_range(files, custom.files);
    }
    return files;
  }

  bool printParameters() {
    FailureOr<std::string> table = readParameterTable(options.model, recipe, context, report);
    if (succeeded(table))
      llvm::outs() << *table;
    return succeeded(table);
  }

  /// Whether --frozen-type does something.
  bool checkRounding(ArrayRef<FrozenWeight> weights) {
    if (recipe.frozenType != "file" && weights.empty())
      return succeeded(report.error(ExitCode::usage, Subject::ofOption("--frozen-type"),
                                    "has no effect without frozen weights",
                                    "--freeze, --train-only or --lora"));
    const bool roundsToIntegers = recipe.frozenType == "int8" || recipe.frozenType == "int4";
    return !roundsToIntegers ||
           any_of(weights, [](const FrozenWeight &weight) { return weight.layout.has_value(); }) ||
           succeeded(report.error(ExitCode::usage, Subject::ofOption("--frozen-type"),
                                  recipe.frozenType +
                                      " rounds weights whose last axis is a multiple of 32, and "
                                      "no frozen weight is one",
                                  "--frozen-type bf16"));
  }

  /// What the table of parameters tells of frozen weights besides.
  static std::string storedForms(ArrayRef<FrozenWeight> weights) {
    std::string text;
    for (const FrozenWeight &weight : weights)
      if (weight.layout)
        text += "stored    " + weight.tensor.name + " in " + std::to_string(weight.layout->bits) +
                " bits with scales '" + weight.scales.name + "'\n";
      else if (weight.tensor.type != "f32")
        text += "stored    " + weight.tensor.name + " in " + weight.tensor.type + "\n";
    return text;
  }

  /// The folder of the output needs these: one line each.
  std::string stayingFiles() const {
    std::string text;
    for (const FrozenPart &part : frozenParts.parts)
      text += "frozen weights stay in " + part.path + " (" + byte_text(part.bytes) +
              "), which the trainer maps: keep it as it is\n";
    return text;
  }

  /// Whether the trainer maps frozen weights as their file has them.
  bool storesFrozen() const {
    return recipe.trains && recipe.target == "cpu" && recipe.precision != "f64" &&
           options.library.empty();
  }

  bool read() {
    clock.begin("import");
    FailureOr<Model> result = readModel(options.model, recipe, context, report);
    if (failed(result))
      return false;
    model = std::move(*result);
    setTarget(*model.module, target());
    setExports(*model.module, exportInitializers(model, storesFrozen()));
    setModuleTensors(*model.module, moduleTensors(model));
    setStatePieces(*model.module, statePieces(model));
    setStateConstants(*model.module, model.constants);
    setAdapters(*model.module, model.adapters);
    setInfiniteParameters(*model.module, infiniteParameters(model));
    if (storesFrozen()) {
      const std::vector<FrozenWeight> weights = frozenWeights(model, recipe);
      setStoredForms(*model.module, weights);
      frozenParts = frozenFiles(model, weights);
      setFrozenFiles(*model.module, frozenParts);
      if (!checkRounding(weights))
        return false;
      model.parameterTable += storedForms(weights) + stayingFiles();
    }
    train::setLosses(*model.module, recipe.losses);
    if (options.shardsGradients())
      shardGradients(*model.module);
    if (options.updatesInBackward)
      updateInBackward(*model.module);
    if (startedAs)
      setPlannedRun(*model.module, *startedAs);
    dropUnusedOperators();
    return checkSizes() && checkNodePatterns();
  }

  /// A name that is misspelt would go unnoticed where the model has a body for it.
  void dropUnusedOperators() {
    std::set<std::string> used;
    model.module->walk(
        [&](nn::CustomOp op) { used.insert(op.getLibrary().rsplit('/').first.str()); });
    llvm::erase_if(operators, [&](const CustomOperator &custom) {
      const bool isUsed = used.count(custom.folder) > 0;
      if (!isUsed)
        report.warning(Finding::unusedOperator, Subject::ofOption("--operator", custom.manifest),
                       "no node of the model is '" + custom.name + "'");
      return !isUsed;
    });
  }

  /// A pattern that is misspelt would do nothing.
  void checkNodePattern(const char *option, const std::string &pattern, const char *advice) {
    std::string why;
    std::optional<name_pattern> nodes = name_pattern::parse(pattern, why);
    check(nodes.has_value(), *model.module, Twine("a pattern of ") + option + " was not checked");
    WalkResult found = model.module->walk([&](Operation *op) {
      std::string node = nodeName(op->getLoc()).node;
      return !node.empty() && nodes->matches(node) ? WalkResult::interrupt()
                                                   : WalkResult::advance();
    });
    if (!found.wasInterrupted())
      (void)report.error(ExitCode::usage, Subject::ofOption(option),
                         "no node has a name that '" + pattern + "' matches as a whole", advice);
  }

  bool checkNodePatterns() {
    for (const std::string &pattern : options.recomputePatterns)
      checkNodePattern("--recompute-pattern", pattern,
                       "the names that trainc-inspect OUTPUT recompute shows of one without it");
    if (!recipe.kept.empty())
      checkNodePattern("--keep", recipe.kept,
                       "a `name` among the nodes of plan/plan.json of an output without it");
    return report.empty();
  }

  /// Programs have no tensors without elements.
  bool checkSizes() {
    auto function = model.module->lookupSymbol<func::FuncOp>("model");
    auto check = [&](Type type, StringRef what, StringRef name) {
      if (cast<RankedTensorType>(type).getNumElements() == 0)
        (void)report.error(ExitCode::unsupportedModel, options.model,
                           what + " '" + name + "' has no elements, which is not supported");
    };
    for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
      check(type, "input", train::nameOf(function, i));
    for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
      check(type, "output", train::resultNameOf(function, i));
    return report.empty();
  }

  LogicalResult writeGradientGraph() {
    const std::string &path = options.gradientGraph;
    Subject subject = Subject::ofOption("--write-gradient-graph", path);
    if (llvm::any_of(filesRead(), [&](const std::string &file) {
          return llvm::sys::fs::equivalent(path, file);
        }))
      return report.error(ExitCode::outputNotWritten, subject, "is read by this command",
                          "another file");
    if (train::isNarrow(recipe.precision))
      return report.error(ExitCode::usage, subject,
                          "the graph has no numbers of 16 bits, which --precision " +
                              recipe.precision + " computes with",
                          "--precision f32");
    FailureOr<std::string> graph = gradientGraphOf(*model.module, model, options.model, report);
    if (failed(graph))
      return failure();
    if (std::error_code error = writeWholeFile(path, *graph))
      return report.error(ExitCode::outputNotWritten, subject,
                          "cannot be written: " + error.message(), "another file");
    return success();
  }

  bool runPasses() {
    std::string pass;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      DiagnosticSeverity severity = diagnostic.getSeverity();
      if (severity != DiagnosticSeverity::Error && severity != DiagnosticSeverity::Warning)
        return failure();
      bool isOfModule = diagnostic.getLocation() == model.module->getLoc(); // of no node
      std::string node = isOfModule ? "" : nodeName(diagnostic.getLocation()).node;
      Subject subject(options.model, node, "", 0);
      std::string text = diagnostic.str(), advice;
      for (Diagnostic &note : diagnostic.getNotes())
        if (std::string more = note.str(); StringRef(more).starts_with("try: "))
          advice = more.substr(5);
      if (severity == DiagnosticSeverity::Warning) {
        report.warning(pass == "raise-attention" ? Finding::writtenAttention
                                                 : Finding::unreachedParameters,
                       subject, text, advice);
        return success();
      }
      ExitCode code = userErrorOf(pass).value_or(ExitCode::internalError);
      (void)report.error(code, subject, text, advice);
      return success();
    });
    internalErrorContext().dumpFolder =
        options.dumpIr.empty() ? temporaryPath("dump") : options.dumpIr;
    internalErrorContext().report = [this](const std::string &message) {
      (void)report.error(ExitCode::internalError, options.model, message,
                         "report it with that file");
      printReport();
    };
    PipelineHooks hooks;
    hooks.before = [&](StringRef name) { clock.begin(pass = name.str()); };
    hooks.after = [&](StringRef name) {
      return options.gradientGraph.empty() || name != kGradientGraphBehind ||
             succeeded(writeGradientGraph());
    };
    hooks.dumpFolder = options.dumpIr;
    hooks.read = filesRead();
    hooks.failureFolder = temporaryPath("dump");
    hooks.stopAfter = options.check         ? kCheckedUntil
                      : options.memoryCurve ? kCurveBehind
                                            : options.stopAfter;
    PipelineResult result = runPipeline(*model.module, recipe, recompute, stages, hooks);
    stopped = result.stopped;
    if (!result.unwritten.empty())
      (void)report.error(ExitCode::outputNotWritten,
                         Subject::ofOption("--dump-ir", result.unwritten), result.why,
                         "another folder");
    if (!result.succeeded && !result.dumpFile.empty())
      (void)report.error(ExitCode::internalError, options.model,
                         "internal error in pass " + result.lastPass + "; the IR is in " +
                             result.dumpFile,
                         "report it with that file; with --dump-ir FOLDER every pass is verified");
    return result.succeeded;
  }

  bool printIr() {
    clock.finish();
    if (options.printIr)
      writeIr(*model.module, llvm::outs());
    return true;
  }

  bool printMemoryCurve() {
    clock.begin("memory curve");
    std::string text = memoryCurveText(*model.module, recompute, placementOptions(recipe));
    clock.finish();
    llvm::outs() << text;
    return true;
  }

  /// The instruction set that the kernels are compiled for, as the trainer names it.
  std::string chooseMarch() const {
    if (recipe.target == "cpu")
      return options.march != "native"      ? options.march
             : options.targetTriple.empty() ? nativeMarch()
                                            : "armv8-a"; // of aarch64
    return "sm_" + llvm::join(*parseCudaArchitectures(options.cudaArchitectures), ", sm_");
  }

  Target target() const {
    return {recipe.target, chooseMarch(), *parseCudaArchitectures(options.cudaArchitectures)};
  }

  LogicalResult checkLimit() {
    int64_t limit = *parseBytes(options.limitMemory);
    return train::pipelineOf(*model.module)
               ? checkMemoryLimit(describeStages(*model.module, recipe.target), limit,
                                  options.model, report)
               : checkMemoryLimit(describeMemory(*model.module), limit, options.model, report);
  }

  LogicalResult refuseUpdateInParts() {
    if (options.updatesInBackward)
      return report.error(ExitCode::usage, Subject::ofOption("--update-in-backward"),
                          "the update of " + recipe.optimizer + " takes parameters as a whole",
                          "an optimizer such as adamw");
    const std::string option = options.shardsGradients() ? "--shard" : "--stages";
    return report.error(
        ExitCode::usage, Subject::ofOption(option),
        "the update of " + recipe.optimizer + " takes parameters as a whole, of which the ranks " +
            (options.shardsGradients() ? "" : "of stages ") + "have parts each",
        option + (options.shardsGradients() ? " none" : " 1") + ", or an optimizer such as adamw");
  }

  bool emit() {
    Installation installation = findInstallation();
    if (!options.limitMemory.empty() && failed(checkLimit()))
      return false;
    const bool cutOnCpu = train::pipelineOf(*model.module) || options.updatesInBackward;
    if (recipe.trains && (options.shardsGradients() || (recipe.target == "cpu" && cutOnCpu)) &&
        updatesInParts(*model.module).empty())
      return succeeded(refuseUpdateInParts());
    clock.begin("parameters");
    std::vector<std::string> files = filesRead();
    if (!options.depfile.empty())
      files.push_back(options.depfile);
    if (failed(output.begin(files, report)) || failed(output.makeFolder("source", report)) ||
        failed(output.makeFolder("plan", report)) || !writeParameters())
      return false;
    clock.begin("emit");
    FailureOr<source_map> map =
        emitSources(*model.module, installation.version, output.entry("source"), report);
    if (failed(map))
      return report.empty()
                 ? succeeded(report.error(ExitCode::internalError, options.model, "emit failed"))
                 : false;
    if (!copyRuntime(installation) || !copyOperators() || !writePlan(*map))
      return false;
    const BuildRequest request{options,       recipe,       model,  operators,
                               chooseMarch(), installation, output, report};
    if (!options.library.empty() && failed(emitLibrary(request)))
      return false;
    if (options.compiles())
      clock.begin("host compile");
    if (options.compiles() && !compileOnHost(request))
      return false;
    // Before the output: one that a kill leaves behind names too much, not too little.
    return (options.depfile.empty() || writeDepfile(installation)) &&
           succeeded(output.publish(report));
  }

  bool writeParameters() {
    FailureOr<std::string> digest =
        writeInitialParameters(model, frozenTensorsOf(*model.module), frozenParts,
                               output.entry("parameters.safetensors"), recipe.precision, report);
    if (failed(digest) || failed(writeExportTemplate(model, storesFrozen(),
                                                     output.entry("export_template.onnx"), report)))
      return false;
    if (!digest->empty())
      train::setFrozenDigest(*model.module, *digest);
    if (!options.quiet && options.messageFormat == "text") {
      if (recipe.trains)
        llvm::outs() << model.parameterCounts << (recipe.adapters.empty() ? "" : ", and adapters")
                     << ": trainc " << forShell(options.model) << " --print-parameters\n";
      llvm::outs() << stayingFiles();
    }
    return true;
  }

  /// For a build system: the output depends on the model's files, on those of constants and on this
  /// compiler.
  bool writeDepfile(const Installation &installation) {
    std::vector<std::string> files = filesRead();
    llvm::append_range(files, installation.files(recipe.target));
    if (failed(output.makeRoomFor(options.depfile, report)))
      return false;
    std::string made =
        output.path() + (!options.compiles()   ? "/source/CMakeLists.txt"
                         : options.isMinimal() ? "/library/lib" + nameOfLibrary(model) + ".so"
                                               : "/trainer");
    return succeeded(trainc::writeDepfile(
        options.depfile, options.depfileTarget.empty() ? made : options.depfileTarget, files,
        report));
  }

  bool copyRuntime(const Installation &installation) {
    const EmittedProgram program = options.library.empty() ? EmittedProgram::trainer
                                   : options.isMinimal()   ? EmittedProgram::minimalLibrary
                                                           : EmittedProgram::trainerAndLibrary;
    std::error_code error =
        installation.copyRuntime(recipe.target, program, output.entry("source"));
    if (error)
      (void)report.error(ExitCode::outputNotWritten, output.entry("source/runtime"),
                         "cannot copy the runtime from " + installation.includeFolder + ": " +
                             error.message());
    return !error;
  }

  bool copyOperators() {
    for (const CustomOperator &custom : operators) {
      const std::string folder = "source/" + custom.folder;
      if (failed(output.makeFolder(folder, report)))
        return false;
      for (const std::string &file : custom.files) {
        std::string to = output.entry(folder + "/" + llvm::sys::path::filename(file).str());
        if (std::error_code error = llvm::sys::fs::copy_file(file, to)) {
          (void)report.error(ExitCode::outputNotWritten, to,
                             "cannot be copied from " + file + ": " + error.message());
          return false;
        }
      }
    }
    return true;
  }

  bool writePlan(const source_map &map) {
    const plan described = programPlan(model, *model.module, recipe.target);
    if (described.stages && described.stages->is_cut() && !options.quiet &&
        options.messageFormat == "text")
      llvm::outs() << stagesText(*described.stages);
    return succeeded(output.writeText("plan/plan.json", planJson(described), report)) &&
           succeeded(output.writeText("plan/source_map.json", sourceMapJson(map), report)) &&
           succeeded(output.writeText("plan/summary.txt", summaryText(described), report));
  }

  const Options &options;
  Recipe recipe;
  std::vector<CustomOperator> operators;
  RecomputeOptions recompute;
  StageOptions stages;
  std::optional<rank_layout> startedAs; // what --run-with says
  Report report;
  MLIRContext context;
  Model model;
  FrozenFiles frozenParts; // of the model's external data
  OutputFolder output;
  StageClock clock;
  bool stopped = false;
  bool looksAtModel = false; // the command line is right
};

} // namespace

ExitCode compileModel(const Options &options) { return Compilation(options).run(); }

} // namespace trainc
