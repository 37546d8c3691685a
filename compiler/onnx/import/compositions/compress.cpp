// SPDX-License-Identifier: Apache-2.0
//
// ONNX Compress by a known condition: a gather of the slices, or elements, for which it holds.
#include "compiler/onnx/import/compositions/indexed_rows.h"

using namespace mlir;

namespace trainc::nn {

static OnnxResults importCompress(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  Tensor condition = node.constant(1);
  if (condition.type().getRank() != 1)
    return node.error("its condition is not a list");
  if (!node.hasAttribute("axis"))
    x = builder.reshape(x, tensorType(x).getNumElements());
  FailureOr<int64_t> axis = axisOf(node, tensorType(x).getRank(), 0);
  if (failed(axis))
    return failure();
  if (condition.count() > tensorType(x).getDimSize(*axis))
    return node.error("its condition has " + llvm::Twine(condition.count()) +
                      " entries, its operand size " + llvm::Twine(tensorType(x).getDimSize(*axis)));
  std::vector<int64_t> chosen;
  for (int64_t i = 0; i < condition.count(); ++i)
    if (condition.integer(i))
      chosen.push_back(i);
  IndexedRows rows{{static_cast<int64_t>(chosen.size())}, chosen, Value()};
  Value gathered = builder.create<GatherOp>(builder.exchange(x, 0, *axis), rows.tensor(node));
  return SmallVector<Value>{builder.exchange(gathered, 0, *axis)};
}

static OnnxRegistration compress =
    OnnxRegistration("Compress", 9, importCompress).mustKnow(1, "condition");

} // namespace trainc::nn
