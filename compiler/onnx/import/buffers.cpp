// SPDX-License-Identifier: Apache-2.0
//
// Buffers: initializers that a training step replaces by an output of the model, such as running
// statistics. ONNX has no word for them, so the recipe says which output is whose new value.
#include "compiler/onnx/import/importer.h"
#include "dialects/train/train.h"

using namespace llvm;
using namespace mlir;

namespace trainc::reader {

static std::optional<unsigned> findBuffer(func::FuncOp model, StringRef name) {
  for (unsigned i = 0; i < model.getNumArguments(); ++i)
    if (train::roleAs<train::BufferAttr>(model, i) && train::nameOf(model, i) == name)
      return i;
  return std::nullopt;
}

static std::optional<unsigned> findOutput(func::FuncOp model, StringRef name) {
  for (unsigned i = 0; i < model.getNumResults(); ++i)
    if (train::resultNameOf(model, i) == name)
      return i;
  return std::nullopt;
}

static bool isReplaced(func::FuncOp model, StringRef name) {
  return llvm::any_of(llvm::seq(model.getNumResults()), [&](unsigned i) {
    auto role = train::resultRoleAs<train::NewValueAttr>(model, i);
    return role && role.getName() == name;
  });
}

bool markBuffers(ModuleOp module, const ModelFile &file, const Recipe &recipe, Report &report) {
  auto model = module.lookupSymbol<func::FuncOp>("model");
  MLIRContext *context = module.getContext();
  size_t before = report.size();
  for (const auto &buffer : recipe.buffers) {
    const std::string &name = buffer.first, &output = buffer.second;
    auto refuse = [&](const Twine &message, const Twine &advice) {
      (void)report.error(ExitCode::unsupportedModel, Subject::ofOption("--buffer", file.path()),
                         "'" + name + "': " + message, advice);
    };
    std::optional<unsigned> argument = findBuffer(model, name);
    std::optional<unsigned> result = findOutput(model, output);
    if (!argument)
      refuse("no parameter has this name",
             "--print-parameters, which lists the initializers and what they are taken for");
    else if (!result)
      refuse("the model has no output '" + output + "'", "--buffer NAME=OUTPUT with one of them");
    else if (model.getArgumentTypes()[*argument] != model.getResultTypes()[*result])
      refuse("output '" + output + "' has another shape or type than the initializer",
             "an output that is the initializer's new value");
    else if (isReplaced(model, name))
      refuse("the step replaces it already, by what a batch norm makes of it",
             "the command without --buffer, or with --batch-norm frozen");
    else
      train::setResultRole(model, *result,
                           train::NewValueAttr::get(context, StringAttr::get(context, name)));
  }
  return report.size() == before;
}

} // namespace trainc::reader
