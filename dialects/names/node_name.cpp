// SPDX-License-Identifier: Apache-2.0
#include "dialects/names/node_name.h"
#include "dialects/names/recomputed_name.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace trainc {

constexpr llvm::StringLiteral enclosing = "gradient", ofGradient = "gradient of ", ofValue = "of ";
constexpr llvm::StringLiteral inFile = "node";
static const StringRef onceMore = recomputedPrefix.rtrim();

std::string NodeName::title() const { return (gradient ? ofGradient.str() : "") + node; }

std::string NodeName::value() const {
  if (!of.empty())
    return ofGradient.str() + of;
  return role.empty() ? title() : node + "." + role;
}

/// What stands inside a node's location, which is not a name of IR or plans.
static bool isOfFile(FusedLoc location) {
  auto kind = dyn_cast_or_null<StringAttr>(location.getMetadata());
  return kind && kind.getValue() == inFile;
}

NodeName nodeName(Location location) {
  if (auto fused = dyn_cast<FusedLoc>(location)) {
    if (isOfFile(fused))
      return {};
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

namespace {

/// The titles of locations, each once.
struct Titles {
  std::vector<std::string> inOrder;
  llvm::StringSet<> known;

  /// Whether it names what was not known.
  bool add(Location location) {
    if (auto fused = dyn_cast<FusedLoc>(location); fused && !isOfFile(fused)) {
      bool any = false;
      for (Location part : fused.getLocations())
        any |= add(part);
      return any;
    }
    NodeName name = nodeName(location);
    if (name.node.empty() || !known.insert(name.title()).second)
      return false;
    inOrder.push_back(name.title());
    return true;
  }
};

} // namespace

std::vector<std::string> nodeTitles(Location location) {
  Titles titles;
  titles.add(location);
  return std::move(titles.inOrder);
}

Location modelLocation(StringAttr name, StringAttr labelInFile) {
  MLIRContext *context = name.getContext();
  Location label = NameLoc::get(labelInFile);
  return NameLoc::get(name, FusedLoc::get(label, StringAttr::get(context, inFile), context));
}

Location jointLocation(Location own, ArrayRef<Location> others) {
  Titles titles;
  if (!titles.add(own)) // the first name would be another's
    return own;
  SmallVector<Location> all{own};
  for (Location other : others)
    if (titles.add(other))
      all.push_back(withoutRole(other));
  return FusedLoc::get(own.getContext(), all);
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
