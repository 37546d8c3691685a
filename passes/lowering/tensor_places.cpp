// SPDX-License-Identifier: Apache-2.0
//
// Sizes and names of tensors (tensor_places.h).
#include "passes/lowering/tensor_places.h"
#include "dialects/names/node_name.h"
#include "dialects/train/train.h"

using namespace mlir;

namespace trainc {

bool hasPlaceOfItsOwn(func::FuncOp function, unsigned result) {
  return isa_and_nonnull<train::GradientAttr, train::NewValueAttr, train::LossAttr,
                         train::LossWeightAttr, train::SampleLossesAttr, train::StepTotalsAttr,
                         train::IndexCheckAttr, train::RunParametersAttr, train::StateAttr>(
      train::resultRoleOf(function, result));
}

std::string tensorName(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    auto role = function ? train::roleOf(function, argument.getArgNumber()) : nullptr;
    if (StringAttr title = role ? role.getTitle() : StringAttr())
      return title.str();
    return "argument_" + std::to_string(argument.getArgNumber());
  }
  auto result = cast<OpResult>(value);
  if (auto names = result.getOwner()->getAttrOfType<ArrayAttr>("result_names"))
    if (auto name = cast<StringAttr>(names[result.getResultNumber()]); !name.empty())
      return name.str();
  std::string text = nodeName(value.getLoc()).value();
  return text.empty() ? result.getOwner()->getName().getStringRef().str() : text;
}

} // namespace trainc
