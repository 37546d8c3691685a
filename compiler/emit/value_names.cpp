// SPDX-License-Identifier: Apache-2.0
#include "compiler/emit/value_names.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace trainc {

std::string lastParts(StringRef value) {
  StringRef prefix = value.consume_front("gradient of ") ? "d_" : "";
  SmallVector<StringRef> parts, named;
  llvm::SplitString(value, parts, "./");
  for (StringRef part : parts)
    if (!llvm::all_of(part, llvm::isDigit))
      named.push_back(part);
  if (named.empty())
    return value.empty() ? "" : (prefix + value).str();
  bool two = named.size() > 2 ||
             (named.size() == 2 && (named.back() == "weight" || named.back() == "bias"));
  std::string name = prefix.str();
  if (two)
    name += named[named.size() - 2].str() + "_";
  return name + named.back().str();
}

std::string valueWord(Location location) {
  NodeName name = nodeName(location);
  return name.of.empty() ? name.role : lastParts(name.value());
}

} // namespace trainc
