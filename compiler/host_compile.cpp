// SPDX-License-Identifier: Apache-2.0
#include "compiler/host_compile.h"
#include "compiler/cuda_toolkit.h"
#include "compiler/emit/emit.h"
#include "compiler/library_output.h"
#include "compiler/output/bundle.h"
#include "compiler/output/write_file.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include <cstdlib>

using namespace mlir;

namespace trainc {

namespace {

constexpr const char *kBundleFolder = "trainer.libs";

/// What --target cuda needs besides, or an error that says all that is missing.
LogicalResult addCuda(const BuildRequest &request, CompileOptions &compile) {
  std::string archive = request.installation.targetArchive("cuda"), missing;
  std::string remedy = "--source-only, and build the source folder with its CMakeLists.txt "
                       "where CUDA and NCCL are; or --nvcc PROGRAM";
  std::optional<CudaToolkit> toolkit = findCudaToolkit(request.options.nvcc, missing);
  if (toolkit && !llvm::sys::fs::exists(archive)) {
    missing = "this trainc was built without the runtime for CUDA: '" + archive + "' is missing";
    remedy = "cmake FOLDER && cmake --build FOLDER --target trainc_cuda, where FOLDER is the build "
             "folder of trainc, and the installation again; or --source-only";
    toolkit.reset();
  }
  if (!toolkit)
    return request.report.error(ExitCode::hostCompilerFailed, Subject::ofProgram("trainc"), missing,
                                remedy);
  compile.march = "x86-64"; // no kernel is among the host's files
  compile.nvcc = toolkit->nvcc;
  compile.cudaArchitectures = *parseCudaArchitectures(request.options.cudaArchitectures);
  compile.registers = request.output.entry("plan/registers.json");
  llvm::append_range(compile.includes, toolkit->includes);
  llvm::append_range(compile.linkArguments, toolkit->linkArguments);
  compile.runPath = toolkit->runPath;
  return success();
}

bool hasOneOf(StringRef message, std::initializer_list<StringRef> complaints) {
  return llvm::any_of(complaints, [&](StringRef complaint) { return message.contains(complaint); });
}

/// Whether the host compiler failed for what it writes, not for what it reads.
bool isOutOfRoom(StringRef message) {
  return hasOneOf(message, {"No space left on device", "File too large", "File size limit exceeded",
                            "Disk quota exceeded"});
}

/// What to try where the host compiler failed with this message.
StringRef adviceOn(StringRef message, const BuildRequest &request) {
  if (!request.operators.empty())
    return "what the manifests of --operator say and name, or another --host-compiler PROGRAM";
  if (request.recipe.target == "cuda")
    return "another --nvcc, --host-compiler or --cuda-arch";
  const bool isOfMarch =
      hasOneOf(message, {"bad value", "unknown target CPU", "unsupported argument"});
  return isOfMarch && request.options.march != "native"
             ? "--march native, or a name that the host compiler knows"
             : "installing one, or --host-compiler PROGRAM";
}

/// What the linker needs so that the trainer finds its libraries; nothing after an error.
std::vector<std::string> bundle(const BuildRequest &request) {
  const std::string folder = kBundleFolder;
  if (failed(request.output.makeFolder(folder, request.report)))
    return {};
  FailureOr<std::string> digest = bundleLibraries(request.output.entry("trainer"),
                                                  request.output.entry(folder), request.report);
  return succeeded(digest) ? bundleLinkArguments(folder + "/" + *digest)
                           : std::vector<std::string>();
}

/// What the host compiler is asked for; nothing after an error.
std::optional<CompileOptions> compileOptionsOf(const BuildRequest &request) {
  CompileOptions compile;
  compile.compiler = request.options.compiler;
  compile.directory = request.output.entry("source");
  for (const CustomOperator &custom : request.operators)
    compile.folders.push_back(custom.folder);
  compile.includes = {request.installation.includeFolder};
  compile.march = request.march;
  if (!request.options.isMinimal())
    compile.linkArguments = request.installation.archives(request.recipe.target);
  if (request.recipe.target == "cuda" && failed(addCuda(request, compile)))
    return std::nullopt;
  if (!request.options.isMinimal())
    llvm::append_range(compile.linkArguments, request.installation.linkArguments);
  if (!request.options.library.empty()) {
    compile.libraryFolder = request.output.entry("library");
    compile.libraryName = nameOfLibrary(request.model);
  }
  if (request.options.bundle)
    compile.linkAgainWith = [&request] { return bundle(request); };
  if (request.options.isMinimal()) {
    compile.isMinimal = true;
    compile.includes.clear(); // all that it needs is in the folder
    if (!request.options.targetTriple.empty()) {
      compile.toolPrefix = request.options.targetTriple + "-";
      if (!llvm::is_contained(request.options.given, "host-compiler"))
        compile.compiler = compile.toolPrefix + "g++";
    }
  } else {
    compile.output = request.output.entry("trainer");
  }
  compile.log = temporaryPath("compile.log"); // outlives the output folder of a failure
  compile.warningsAreErrors = std::getenv("TRAINC_WARNINGS_ARE_ERRORS") != nullptr; // tests
  return compile;
}

} // namespace

bool compileOnHost(const BuildRequest &request) {
  std::optional<CompileOptions> compile = compileOptionsOf(request);
  if (!compile)
    return false;
  std::string message;
  if (!compileSources(*compile, message)) {
    if (isOutOfRoom(message))
      (void)request.report.error(
          ExitCode::outputNotWritten, request.output.path(), message,
          "another folder with -o, or TMPDIR elsewhere, where there is room");
    else
      (void)request.report.error(ExitCode::hostCompilerFailed, request.options.model, message,
                                 adviceOn(message, request));
    return false;
  }
  if (!compile->output.empty() && !llvm::sys::fs::exists(compile->output))
    return succeeded(
        request.report.error(ExitCode::hostCompilerFailed, request.options.model,
                             "'" + compile->compiler + "' succeeded but produced no trainer",
                             "installing one, or --host-compiler PROGRAM"));
  if (!message.empty())
    request.report.warning(Finding::hostCompiler, request.options.model, message);
  return request.report.empty() && // of the libraries
         (!request.options.bundle ||
          succeeded(
              checkBundle(compile->output, request.output.entry(kBundleFolder), request.report)));
}

} // namespace trainc
