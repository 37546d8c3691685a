// SPDX-License-Identifier: Apache-2.0
//
// ONNX ArgMax and ArgMin: the index of the largest or smallest element, which has no gradient.
#include "compiler/onnx/import/compositions/extreme_index.h"

using namespace mlir;

namespace trainc::nn {

template <Extreme extreme> static OnnxResults importExtremeIndex(OnnxNode &node) {
  Value x = node.input(0);
  SmallVector<int64_t> kept(tensorType(x).getShape());
  FailureOr<int64_t> axis = axisOf(node, kept.size(), 0);
  if (failed(axis))
    return failure();
  if (kept[*axis] == 0)
    return node.error("there is no element along axis " + llvm::Twine(*axis));
  kept[*axis] = 1;
  Tie tie = node.integer("select_last_index", 0) ? Tie::last : Tie::first;
  Value index = extremeIndex(node.builder(), x, *axis, extreme, tie);
  return SmallVector<Value>{node.integer("keepdims", 1) ? node.builder().reshape(index, kept)
                                                        : index};
}

static OnnxRegistration argMax =
    OnnxRegistration("ArgMax", 1, importExtremeIndex<Extreme::largest>).gradientOf({});
static OnnxRegistration argMin =
    OnnxRegistration("ArgMin", 1, importExtremeIndex<Extreme::smallest>).gradientOf({});

} // namespace trainc::nn
