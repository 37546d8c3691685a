// SPDX-License-Identifier: Apache-2.0
//
// Fewer dimensions for a built kernel, so that most have one or two and equal
// kernels look equal whatever the shapes they came from.
#include "passes/lowering/kernel_builder.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;

namespace trainc {

void mergeDimensions(kernel::FunctionOp function, size_t border) {
  Builder builder(function.getContext());
  kernel::Form form = function.getForm();
  llvm::SmallDenseSet<size_t> indexed;
  function.walk([&](kernel::IndexOp index) { indexed.insert(index.getDimension()); });
  SmallVector<SmallVector<int64_t>> strides;
  SmallVector<int64_t> offsets;
  for (auto attribute : function.getAccesses().getAsRange<kernel::AccessAttr>()) {
    strides.emplace_back(attribute.getStrides());
    offsets.push_back(attribute.getOffset());
  }
  SmallVector<int64_t> sizes(function.getDims());
  SmallVector<size_t> origin = llvm::to_vector(llvm::seq<size_t>(0, sizes.size()));
  for (size_t d = sizes.size(); d-- > 1;) {
    bool sameSide = form == kernel::Form::pointwise || d != border;
    if (!sameSide || indexed.contains(origin[d]) || indexed.contains(origin[d - 1]) ||
        !llvm::all_of(strides, [&](auto &s) {
          return sizes[d] == 1 || sizes[d - 1] == 1 || s[d - 1] == s[d] * sizes[d];
        }))
      continue;
    bool keepFirst = sizes[d] == 1;
    sizes[d] *= sizes[d - 1];
    sizes.erase(sizes.begin() + d - 1);
    origin.erase(origin.begin() + d - 1);
    for (auto &s : strides)
      s.erase(s.begin() + (keepFirst ? d : d - 1));
    if (d < border)
      --border;
  }
  function.walk([&](kernel::IndexOp index) {
    index.setDimension(llvm::find(origin, index.getDimension()) - origin.begin());
  });
  SmallVector<Attribute> accesses;
  for (auto [s, offset] : llvm::zip(strides, offsets))
    accesses.push_back(kernel::AccessAttr::get(builder.getContext(), s, offset));
  function.setAccessesAttr(builder.getArrayAttr(accesses));
  function.setDims(sizes);
  function.setReduced(form == kernel::Form::row      ? sizes.size() - border
                      : form == kernel::Form::column ? border
                      : form == kernel::Form::full   ? sizes.size()
                                                     : 0);
}

} // namespace trainc
