// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/gradient_ranges.h"
#include "dialects/elements/element_type.h"
#include "dialects/train/train.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace trainc {

llvm::SmallVector<ElementRange> gradientRangesOf(func::FuncOp function) {
  constexpr int64_t alignment = 16; // of form-buckets
  train::LayoutAttr layout = train::layoutOf(function->getParentOfType<ModuleOp>());
  llvm::StringMap<train::PlacedAttr> placed;
  if (!layout)
    return {};
  for (train::PlacedAttr parameter : layout.placed())
    placed[parameter.getName().getValue()] = parameter;
  SmallVector<ElementRange> ranges;
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    train::RoleAttrInterface role = train::resultRoleOf(function, i);
    if (isa_and_nonnull<train::StepTotalsAttr>(role))
      ranges.push_back({layout.summedElements(), layout.summedElements() + train::kStepTotals});
    if (!isa_and_nonnull<train::GradientAttr, train::NewValueAttr>(role))
      continue;
    train::PlacedAttr at = placed.lookup(role.getName().getValue());
    ranges.push_back(
        {at.getOffset(), int64_t(llvm::alignTo(at.getOffset() + at.getCount(), alignment))});
  }
  llvm::sort(ranges, [](ElementRange a, ElementRange b) { return a.begin < b.begin; });
  SmallVector<ElementRange> joined;
  for (ElementRange range : ranges)
    if (!joined.empty() && joined.back().end == range.begin)
      joined.back().end = range.end;
    else
      joined.push_back(range);
  return joined;
}

int64_t gradientBytesOf(func::FuncOp function) {
  int64_t elements = 0, width = 0;
  for (ElementRange range : gradientRangesOf(function))
    elements += range.end - range.begin;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (isa_and_nonnull<train::GradientAttr, train::NewValueAttr>(train::resultRoleOf(function, i)))
      width = elementBytes(cast<RankedTensorType>(function.getResultTypes()[i]).getElementType());
  return elements * width;
}

} // namespace trainc
