// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/provenance/torch_script/module_calls.h"
#include "compiler/onnx/provenance/dynamo/exported_program.h"
#include "compiler/onnx/provenance/parameters.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace trainc::reader {

void ModuleCalls::addUse(StringRef path, StringRef value) {
  if (value.contains('.') && !isExporterName(value))
    modules[path.str()].insert(value.rsplit('.').first.str());
}

// The path without the number of a further call.
static StringRef firstCall(StringRef path) {
  StringRef base = path.rtrim("0123456789");
  return base.size() < path.size() && base.ends_with("_") ? base.drop_back() : path;
}

std::optional<bool> ModuleCalls::areOne(StringRef a, StringRef b) const {
  if (a == b)
    return true;
  if (firstCall(a) != b && firstCall(b) != a && firstCall(a) != firstCall(b))
    return false;
  auto one = modules.find(a), other = modules.find(b);
  if (one == modules.end() || other == modules.end())
    return std::nullopt;
  return any_of(one->second, [&](const std::string &name) { return other->second.count(name); });
}

std::optional<bool> ModuleCalls::areOneWeight(ArrayRef<WeightUse> a, ArrayRef<WeightUse> b,
                                              const TensorBytes &values) const {
  bool areTwo = !a.empty() && !b.empty();
  for (const WeightUse &one : a)
    for (const WeightUse &other : b) {
      const bool areTold = one.path && other.path && *one.path != *other.path;
      std::optional<bool> same = areTold ? areOne(*one.path, *other.path) : std::nullopt;
      if (same.value_or(false))
        return isUniform(values) ? std::nullopt : std::optional(true);
      areTwo =
          areTwo && same.has_value() && (isUniform(values) || one.isRecurrent || other.isRecurrent);
    }
  return areTwo ? std::optional(false) : std::nullopt;
}

} // namespace trainc::reader
