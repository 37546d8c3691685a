// SPDX-License-Identifier: Apache-2.0
#include "dialects/names/node_name.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace trainc {

constexpr llvm::StringLiteral enclosing = "gradient", ofGradient = "gradient of ";

std::string NodeName::title() const { return (gradient ? ofGradient.str() : "") + node; }

NodeName nodeName(Location location) {
  if (auto fused = dyn_cast<FusedLoc>(location)) {
    for (Location part : fused.getLocations())
      if (NodeName name = nodeName(part); !name.node.empty())
        return name;
    return {};
  }
  auto named = dyn_cast<NameLoc>(location);
  if (!named)
    return {};
  if (named.getName() == enclosing)
    if (NodeName inner = nodeName(named.getChildLoc()); !inner.node.empty())
      return {inner.node, true};
  return {named.getName().str(), false};
}

std::string subjectAt(StringRef file, Location location) {
  std::string node = nodeName(location).node;
  return file.str() + (node.empty() ? "" : ": node '" + node + "'");
}

Location gradientLocation(Location node) {
  return NameLoc::get(StringAttr::get(node.getContext(), enclosing), node);
}

std::string withShortGradient(StringRef title) {
  return title.consume_front(ofGradient) ? "d_" + title.str() : title.str();
}

} // namespace trainc
