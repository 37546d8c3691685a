// SPDX-License-Identifier: Apache-2.0
#include "compiler/library_output.h"
#include "compiler/cuda_toolkit.h"
#include "compiler/emit/library.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;

namespace trainc {

std::string nameOfLibrary(const Model &model) {
  return libraryName(train::modelNameOf(*model.module));
}

/// What the caller of a library without files writes into it, in the order of its tables.
static LogicalResult writeValuesForLibrary(const BuildRequest &request, const std::string &base) {
  ModuleOp module = *request.model.module;
  auto function = module.lookupSymbol<func::FuncOp>("forward_backward");
  if (!function)
    function = module.lookupSymbol<func::FuncOp>("evaluate");
  std::vector<std::string> parameters, buffers;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (train::roleAs<train::ParameterAttr>(function, i))
      parameters.push_back(train::nameOf(function, i).str());
    else if (train::roleAs<train::BufferAttr>(function, i))
      buffers.push_back(train::nameOf(function, i).str());
  return failure(failed(writeValues(request.model, parameters,
                                    request.output.entry(base + ".parameters"), request.report)) ||
                 (!buffers.empty() &&
                  failed(writeValues(request.model, buffers,
                                     request.output.entry(base + ".buffers"), request.report))));
}

LogicalResult emitLibrary(const BuildRequest &request) {
  StringRef modelName = train::modelNameOf(*request.model.module);
  const std::string name = nameOfLibrary(request.model);
  auto text = [&](StringRef file) {
    auto read = llvm::MemoryBuffer::getFile(request.installation.includeFolder +
                                            "/runtime/library/" + file);
    return read ? libraryText((*read)->getBuffer(), name) : std::string();
  };
  const std::string header = text("interface.h"), headerOfCxx = text("interface.hpp"),
                    forwards = text("forwards.inc");
  if (header.empty() || headerOfCxx.empty() || forwards.empty())
    return request.report.error(ExitCode::internalError, Subject::ofProgram("trainc"),
                                "cannot read " + request.installation.includeFolder +
                                    "/runtime/library");
  auto write = [&](const std::string &file, const std::string &text) {
    return request.output.writeText(file, text, request.report);
  };
  if (failed(request.output.makeFolder("source/library", request.report)) ||
      failed(write("source/library/" + name + ".h", header)) ||
      failed(write("source/library.cpp", forwards)) ||
      failed(request.options.isMinimal()
                 ? write("source/CMakeLists.txt", minimalLibraryBuildText(name, request.march))
                 : write("source/library.cmake", libraryBuildText(name))))
    return failure();
  if (!request.options.compiles()) // its folder is for what is built
    return success();
  if (failed(request.output.makeFolder("library", request.report)) ||
      failed(write("library/" + name + ".h", header)) ||
      failed(write("library/" + name + ".hpp", headerOfCxx)))
    return failure();
  if (request.options.isMinimal() && failed(writeValuesForLibrary(request, "library/" + name)))
    return failure();
  std::vector<std::string> arguments = {"-lstdc++", "-lm"};
  if (!request.options.isMinimal())
    llvm::append_range(arguments, request.installation.linkArguments);
  if (std::string missing; request.recipe.target == "cuda") {
    if (auto toolkit =
            findCudaToolkit(request.options.nvcc, missing)) // else building says what is missing
      llvm::append_range(arguments, toolkit->linkArguments);
  } else if (!request.options.isMinimal()) {
    arguments.push_back("-ldnnl");
  }
  return write("library/" + name + ".pc",
               pkgConfigText(name, modelName, llvm::join(arguments, " ")));
}

} // namespace trainc
