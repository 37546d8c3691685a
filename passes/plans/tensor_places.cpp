// SPDX-License-Identifier: Apache-2.0
//
// Sizes and names of tensors (tensor_places.h).
#include "passes/plans/tensor_places.h"
#include "dialects/names/node_name.h"
#include "dialects/train/optimizer.h"
#include "dialects/train/train.h"

using namespace mlir;

namespace trainc {

bool hasPlaceOfItsOwn(func::FuncOp function, unsigned result) {
  train::RoleAttrInterface role = train::resultRoleOf(function, result);
  return role && (isa<train::KeptAttr, train::PassedAttr>(role) ||
                  !llvm::is_contained({train::Placement::own, train::Placement::workspace},
                                      role.getPlacement()));
}

std::string flatTensorName(ModuleOp module, Attribute role) {
  auto text = [&](train::Run run, int64_t group, const llvm::Twine &what) -> std::string {
    if (run == train::Run::buffer)
      return what.str() == "parameters" ? "buffers" : "buffer_sums";
    return (train::stringifyRun(run) + "_" + what + train::ofGroup(module, group)).str();
  };
  if (auto parameters = dyn_cast_or_null<train::RunParametersAttr>(role))
    return text(parameters.getRun(), parameters.getGroup(), "parameters");
  if (auto copies = dyn_cast_or_null<train::RunCopiesAttr>(role))
    return text(copies.getRun(), copies.getGroup(), "copies");
  if (auto gradients = dyn_cast_or_null<train::RunGradientsAttr>(role))
    return text(gradients.getRun(), gradients.getGroup(), "gradients");
  auto state = dyn_cast_or_null<train::StateAttr>(role);
  if (!state)
    return "";
  const train::Optimizer *optimizer = train::findOptimizer(train::optimizerNameOf(module));
  size_t slot = state.getSlot();
  bool isKnown = optimizer && slot < optimizer->states.size();
  return text(state.getRun(), state.getGroup(),
              isKnown ? optimizer->states[slot] : "state_" + std::to_string(slot));
}

/// Whether each step that reads it computes something of the same node.
static bool isPartial(OpResult result, const NodeName &name) {
  return name.role.empty() && name.of.empty() && !result.use_empty() &&
         llvm::all_of(result.getUsers(), [&](Operation *reader) {
           return llvm::is_contained(nodeTitles(reader->getLoc()), name.title());
         });
}

std::string tensorName(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    auto role = function ? train::roleOf(function, argument.getArgNumber()) : nullptr;
    if (StringAttr title = role ? role.getTitle() : StringAttr())
      return title.str();
    if (std::string flat =
            role ? flatTensorName(function->getParentOfType<ModuleOp>(), role) : std::string();
        !flat.empty())
      return flat;
    return "argument_" + std::to_string(argument.getArgNumber());
  }
  auto result = cast<OpResult>(value);
  if (auto names = result.getOwner()->getAttrOfType<ArrayAttr>("result_names"))
    if (auto name = cast<StringAttr>(names[result.getResultNumber()]); !name.empty())
      return name.str();
  NodeName name = nodeName(value.getLoc());
  if (name.node.empty())
    return result.getOwner()->getName().getStringRef().str();
  return name.value() + (isPartial(result, name) ? ".partial" : "");
}

} // namespace trainc
