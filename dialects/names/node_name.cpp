// SPDX-License-Identifier: Apache-2.0
#include "dialects/names/node_name.h"
#include "dialects/names/recomputed_name.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;

namespace trainc {

constexpr llvm::StringLiteral enclosing = "gradient", ofGradient = "gradient of ", ofValue = "of ";
static const StringRef onceMore = recomputedPrefix.rtrim();

std::string NodeName::title() const { return (gradient ? ofGradient.str() : "") + node; }

std::string NodeName::value() const {
  if (!of.empty())
    return ofGradient.str() + of;
  return role.empty() ? title() : node + "." + role;
}

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
  StringRef text = named.getName();
  NodeName inner = nodeName(named.getChildLoc());
  if (inner.node.empty())
    return {text.str(), false, "", ""};
  if (text == enclosing)
    return {inner.node, true, "", ""};
  if (text == onceMore) {
    inner.node.insert(0, recomputedPrefix);
    return inner;
  }
  if (inner.gradient && text.consume_front(ofValue))
    return {inner.node, true, "", text.str()};
  return {inner.node, inner.gradient, text.str(), ""};
}

Location gradientLocation(Location node) {
  return NameLoc::get(StringAttr::get(node.getContext(), enclosing), withoutRole(node));
}

Location roleLocation(StringRef role, Location node) {
  return nodeName(node).node.empty()
             ? node
             : Location(NameLoc::get(StringAttr::get(node.getContext(), role), node));
}

Location gradientOfLocation(StringRef value, Location gradient) {
  return roleLocation((ofValue + value).str(), gradient);
}

Location recomputedLocation(Location location) {
  auto fused = dyn_cast<FusedLoc>(location);
  auto each = fused ? dyn_cast_or_null<ArrayAttr>(fused.getMetadata()) : ArrayAttr();
  if (!each)
    return roleLocation(onceMore, location);
  SmallVector<Location> results;
  for (auto part : each.getAsRange<LocationAttr>())
    results.push_back(roleLocation(onceMore, Location(part)));
  return locationOfResults(results);
}

Location withoutRole(Location location) {
  if (auto again = dyn_cast<NameLoc>(location); again && again.getName() == onceMore)
    return NameLoc::get(again.getName(), withoutRole(again.getChildLoc()));
  NodeName name = nodeName(location);
  auto named = dyn_cast<NameLoc>(location);
  return named && (!name.role.empty() || !name.of.empty()) ? withoutRole(named.getChildLoc())
                                                           : location;
}

Location locationOfResults(ArrayRef<Location> results) {
  if (results.size() == 1)
    return results.front();
  SmallVector<Attribute> each(results.begin(), results.end());
  MLIRContext *context = results.front().getContext();
  return FusedLoc::get(results, ArrayAttr::get(context, each), context);
}

Location resultLocation(Value result) {
  auto fused = dyn_cast<FusedLoc>(result.getLoc());
  auto each = fused ? dyn_cast_or_null<ArrayAttr>(fused.getMetadata()) : ArrayAttr();
  unsigned number = isa<OpResult>(result) ? cast<OpResult>(result).getResultNumber() : 0;
  if (each && number < each.size())
    if (auto own = dyn_cast<LocationAttr>(each[number]))
      return own;
  return result.getLoc();
}

std::string withShortGradient(StringRef title) {
  return title.consume_front(ofGradient) ? "d_" + title.str() : title.str();
}

void nameResults(Operation *op, OpAsmSetValueNameFn setName) {
  auto names = op->getAttrOfType<ArrayAttr>("result_names");
  Location computation = withoutRole(op->getLoc());
  for (OpResult result : op->getResults()) {
    NodeName own = nodeName(resultLocation(result));
    std::string name = own.value();
    // Between operations of one node: only what comes out bears its name.
    if (own.role.empty() && own.of.empty() && !result.use_empty() &&
        llvm::all_of(result.getUsers(),
                     [&](Operation *user) { return withoutRole(user->getLoc()) == computation; }))
      name.clear();
    if (names && result.getResultNumber() < names.size())
      if (auto given = dyn_cast<StringAttr>(names[result.getResultNumber()]); !given.empty())
        name = given.str();
    // Results of different meaning are told apart, with or without names.
    if (!name.empty() || op->hasTrait<OpTrait::AttrSizedResultSegments>())
      setName(result, withShortGradient(name));
  }
}

} // namespace trainc
