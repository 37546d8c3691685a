// SPDX-License-Identifier: Apache-2.0
#include "dialects/nn/raised_pattern.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace trainc::nn {

// A function's static: registrations of other files may run before this file's own statics.
static std::vector<void (*)(RewritePatternSet &)> &raisePatterns() {
  static std::vector<void (*)(RewritePatternSet &)> patterns;
  return patterns;
}

RaiseRegistration::RaiseRegistration(void (*add)(RewritePatternSet &)) {
  raisePatterns().push_back(add);
}

void addRaisePatterns(RewritePatternSet &patterns) {
  for (auto *add : raisePatterns())
    add(patterns);
}

std::optional<double> splatOfFloats(Value value) {
  SplatElementsAttr splat;
  if (!matchPattern(value, m_Constant(&splat)) || !isa<FloatType>(splat.getElementType()))
    return std::nullopt;
  return splat.getSplatValue<APFloat>().convertToDouble();
}

bool isNear(double value, double expected) {
  constexpr double tolerance = 1e-6;
  return std::abs(value - expected) <= tolerance * std::abs(expected);
}

Location wholeLocation(Operation *last, Operation *part) {
  auto lastName = dyn_cast<NameLoc>(last->getLoc()), partName = dyn_cast<NameLoc>(part->getLoc());
  if (!lastName || !partName)
    return last->getLoc();
  StringRef module = lastName.getName().getValue().rsplit('.').first;
  if (module == lastName.getName().getValue() ||
      module != partName.getName().getValue().rsplit('.').first)
    return last->getLoc();
  return NameLoc::get(StringAttr::get(last->getContext(), module));
}

void Product::multiply(Value value) {
  if (auto splat = splatOfFloats(value))
    number *= *splat;
  else if (auto mul = value.getDefiningOp<MulOp>()) {
    multiply(mul.getA());
    multiply(mul.getB());
  } else if (auto div = value.getDefiningOp<DivOp>(); div && splatOfFloats(div.getB())) {
    multiply(div.getA());
    number /= *splatOfFloats(div.getB());
  } else if (auto neg = value.getDefiningOp<NegOp>()) {
    number = -number;
    multiply(neg.getX());
  } else
    factors.push_back(value);
}

bool Product::remove(Value x) {
  SmallVector<Value> rest = factors;
  Product whole(x);
  for (Value factor : whole.factors) {
    auto found = llvm::find(rest, factor);
    if (found == rest.end())
      return false;
    rest.erase(found);
  }
  factors = rest;
  number /= whole.number;
  return true;
}

bool Product::isPower(Value x, unsigned power) {
  for (unsigned i = 0; i < power; ++i)
    if (!remove(x))
      return false;
  return factors.empty();
}

Value addedTo(Value sum, double number) {
  auto add = sum.getDefiningOp<AddOp>();
  if (!add)
    return nullptr;
  for (auto [constant, other] :
       {std::pair(add.getA(), add.getB()), std::pair(add.getB(), add.getA())})
    if (auto splat = splatOfFloats(constant); splat && isNear(*splat, number))
      return other;
  return nullptr;
}

} // namespace trainc::nn
