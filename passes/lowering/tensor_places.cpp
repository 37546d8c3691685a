// SPDX-License-Identifier: Apache-2.0
//
// Conventions of entry functions (tensor_places.h).
#include "passes/lowering/tensor_places.h"
#include "dialects/names/node_name.h"

using namespace mlir;

namespace trainc {

StringRef argumentKind(func::FuncOp function, unsigned index) {
  auto kind = function.getArgAttrOfType<StringAttr>(index, "train.kind");
  return kind ? kind.getValue() : "";
}

StringRef resultKind(func::FuncOp function, unsigned index) {
  auto kind = function.getResultAttrOfType<StringAttr>(index, "train.kind");
  return kind ? kind.getValue() : "";
}

std::optional<unsigned> overwrittenArgument(func::FuncOp function, unsigned result) {
  StringRef kind = resultKind(function, result);
  if (kind != "run_parameters" && kind != "run_state")
    return std::nullopt;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (argumentKind(function, i) == kind &&
        function.getArgAttr(i, "train.run") == function.getResultAttr(result, "train.run") &&
        function.getArgAttr(i, "train.slot") == function.getResultAttr(result, "train.slot"))
      return i;
  return std::nullopt;
}

bool isUpdate(func::FuncOp function) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (argumentKind(function, i).starts_with("run_"))
      return true;
  return false;
}

std::string tensorName(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    auto name = function
                    ? function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "train.module")
                    : StringAttr();
    if (function && !name)
      name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "train.name");
    if (name)
      return name.str();
    StringRef kind = function ? argumentKind(function, argument.getArgNumber()) : "";
    return (kind.empty() ? "argument" : kind.str()) + "_" + std::to_string(argument.getArgNumber());
  }
  auto result = cast<OpResult>(value);
  if (auto names = result.getOwner()->getAttrOfType<ArrayAttr>("result_names"))
    if (auto name = cast<StringAttr>(names[result.getResultNumber()]); !name.empty())
      return name.str();
  std::string text = nodeName(value.getLoc()).title();
  return text.empty() ? result.getOwner()->getName().getStringRef().str() : text;
}

} // namespace trainc
