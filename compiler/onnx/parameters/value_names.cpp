// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/parameters/value_names.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace trainc::reader {

constexpr std::pair<unsigned, const char *> kOperations[] = {
    {kKeepsOrder, "view reshape unsqueeze squeeze flatten unflatten clone contiguous _unsafe_view "
                  "alias"},
    {kReorders, "t transpose permute numpy_t mt"},
    {kChooses, "slice select narrow split split_split chunk embedding"},
    {kCasts, "_to_copy to type_as convert_element_type_default"},
    {kRepeats, "expand expand_as repeat index"},
    {kFills, "ones zeros full new_ones new_zeros new_full ones_like zeros_like full_like"},
    {kCounts, "val sym_size_int scalar_tensor_default lifted_tensor arange eq ne lt le gt ge "
              "logical_and logical_or logical_not any bitwise_and bitwise_or bitwise_not"},
    {kAdds, "add sub"},
    {kPassesOn, "getitem detach"},
    {kLacksParameters, "_assert_tensor_metadata dropout cumsum relu clamp view_as where"},
    {kStopsGradients, "argmax argmin argsort one_hot isnan isinf isfinite floor ceil round sign "
                      "floor_divide bincount"},
};

bool isMadeBy(StringRef value, unsigned kinds) {
  static const StringMap<unsigned> kindOf = [] {
    StringMap<unsigned> kinds;
    for (const auto &[kind, names] : kOperations)
      for (StringRef name : split(names, ' '))
        kinds[name] |= kind;
    return kinds;
  }();
  return (kindOf.lookup(baseName(value)) & kinds) != 0;
}

StringRef baseName(StringRef name) {
  StringRef base = name.rtrim("0123456789");
  return base.size() < name.size() && base.ends_with("_") && base.size() > 1 ? base.drop_back()
                                                                             : name;
}

StringRef moduleOfParameter(StringRef target) {
  return target.contains('.') ? target.rsplit('.').first : "";
}

StringRef attributeOf(StringRef target) { return target.substr(target.rfind('.') + 1); }

bool saysBuffer(StringRef name) {
  const StringRef attribute = attributeOf(name);
  return attribute.ends_with("running_mean") || attribute.ends_with("running_var") ||
         attribute.ends_with("_buffer") || (attribute == "pe" && attribute.size() < name.size());
}

bool isPaddleName(StringRef name) {
  SmallVector<StringRef> parts;
  name.split(parts, '.');
  return parts[0] == "p2o" || (parts.size() == 3 && parts[0] == "helper" && !parts[2].empty() &&
                               all_of(parts[2], isDigit));
}

bool isPaddleConstant(StringRef name) {
  return name.starts_with("helper.constant.") && isPaddleName(name);
}

bool isTorchScriptName(StringRef name) {
  return name.contains("onnx::") || name.contains("aten::"); // others write F0::layer.weight
}

bool isExporterName(StringRef name) {
  return isTorchScriptName(name) || name.starts_with("/") || all_of(name, isDigit) ||
         isPaddleName(name) ||
         llvm::StringSwitch<bool>(baseName(name))
             .Cases("val", "scalar_tensor_default", "lifted_tensor", "_lifted_tensor", true)
             .Case("c_lifted_tensor", true)
             .Cases("const_fold_opt_", "Const_", true) // tf2onnx: const_fold_opt__12
             .Default(false);
}

} // namespace trainc::reader
