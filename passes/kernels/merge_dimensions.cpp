// SPDX-License-Identifier: Apache-2.0
//
// Fewer dimensions for a built kernel, so that most have one or two and equal
// kernels look equal though they came from different shapes. No later step drops or
// merges any.
#include "dialects/nn/scalar_code.h"
#include "passes/kernels/kernel_builder.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace trainc {
namespace {

/// The iteration space made anew, dimension after dimension.
class MergedSpace {
public:
  explicit MergedSpace(kernel::FunctionOp function) : function(function) {
    function.walk([&](kernel::IndexOp index) { indexed.insert(index.getDimension()); });
    for (auto access : function.getAccesses().getAsRange<kernel::AccessAttr>())
      old.push_back(access.getStrides());
    strides.resize(old.size());
  }

  void add(size_t d, bool sameSide);
  void replaceIndexes();
  ArrayAttr accesses();

  SmallVector<int64_t> sizes;

private:
  kernel::FunctionOp function;
  llvm::SmallDenseSet<size_t> indexed;
  SmallVector<ArrayRef<int64_t>> old;
  SmallVector<SmallVector<int64_t>> strides;
  SmallVector<std::optional<size_t>> place; // of an old dimension; none: size one
  std::optional<size_t> previous;           // old dimension that was last kept
};

/// `sameSide`: the dimension before is walked if this one is.
void MergedSpace::add(size_t d, bool sameSide) {
  int64_t size = function.getDims()[d];
  if (size == 1) {
    place.push_back(std::nullopt);
    return;
  }
  bool merges = previous && sameSide && !indexed.contains(d) && !indexed.contains(*previous) &&
                llvm::all_of(old, [&](ArrayRef<int64_t> s) { return s[*previous] == s[d] * size; });
  if (!merges)
    sizes.push_back(1);
  sizes.back() *= size;
  for (auto [into, from] : llvm::zip(strides, old)) {
    into.resize(sizes.size());
    into.back() = from[d];
  }
  place.push_back(sizes.size() - 1);
  previous = d;
}

void MergedSpace::replaceIndexes() {
  function.walk([&](kernel::IndexOp index) {
    if (auto now = place[index.getDimension()])
      return index.setDimension(*now);
    OpBuilder builder(index);
    index.replaceAllUsesWith(scalarConstant(builder, index.getLoc(), 0, index.getType()));
    index.erase();
  });
}

ArrayAttr MergedSpace::accesses() {
  SmallVector<Attribute> accesses;
  for (auto [own, access] :
       llvm::zip(strides, function.getAccesses().getAsRange<kernel::AccessAttr>()))
    accesses.push_back(kernel::AccessAttr::get(function.getContext(), own, access.getOffset()));
  return ArrayAttr::get(function.getContext(), accesses);
}

} // namespace

void mergeDimensions(kernel::FunctionOp function, size_t border) {
  kernel::Form form = function.getForm();
  MergedSpace space(function);
  size_t front = 0, rank = function.getDims().size();
  bool crossed = form == kernel::Form::pointwise || form == kernel::Form::full;
  for (size_t d = 0; d < rank; ++d) {
    space.add(d, crossed || d < border || space.sizes.size() > front);
    if (d < border)
      front = space.sizes.size();
  }
  space.replaceIndexes();
  function.setAccessesAttr(space.accesses());
  size_t merged = space.sizes.size();
  function.setDims(space.sizes);
  function.setReduced(form == kernel::Form::row      ? merged - front
                      : form == kernel::Form::column ? front
                      : form == kernel::Form::full   ? merged
                                                     : 0);
}

} // namespace trainc
