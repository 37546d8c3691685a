// SPDX-License-Identifier: Apache-2.0
//
// ONNX HannWindow, HammingWindow and BlackmanWindow: sums of cosines over the size, or over one
// less where the window is symmetric.
#include "dialects/nn/interpreter.h"
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/onnx/onnx_refusal.h"
#include "dialects/nn/onnx/onnx_types.h"
#include <cmath>

using namespace mlir;

namespace trainc::nn {

static const OnnxRefusal longWindows({"HannWindow", "HammingWindow", "BlackmanWindow"},
                                     "more than 2^24 elements");
static const OnnxRefusal
    otherWindowTypes({"HannWindow", "HammingWindow", "BlackmanWindow"},
                     "types that are none of float, double, bool and the integers");

// a[0] - a[1] cos(2 pi n / N) + a[2] cos(4 pi n / N)
static OnnxResults importWindow(OnnxNode &node, ArrayRef<double> a) {
  Builder &builder = node.builder();
  FailureOr<int64_t> size = node.knownInteger(0, "size");
  if (failed(size))
    return failure();
  int64_t count = *size;
  if (count < 1 || count > kLargestFolded)
    return node.error(longWindows.told("its size is " + llvm::Twine(count) + ", expected 1 to " +
                                       llvm::Twine(kLargestFolded)));
  Type element = onnxElementType(builder.op().getContext(), node.integer("output_datatype", 1));
  if (!element)
    return node.error(otherWindowTypes.told("its element type is not supported"),
                      "output_datatype 1 (float)");
  int64_t period = node.integer("periodic", 1) ? count : count - 1;
  auto type = RankedTensorType::get({count}, builder.op().getF64Type());
  Value place = builder.create<IotaOp>(type, 0), sum = builder.constant(a[0], type);
  for (size_t i = 1; i < a.size(); ++i) {
    double step =
        2 * M_PI * static_cast<double>(i) / static_cast<double>(std::max<int64_t>(period, 1));
    Value wave = builder.create<CosOp>(builder.scale(place, step));
    sum = builder.add(sum, builder.scale(wave, i % 2 ? -a[i] : a[i]));
  }
  return SmallVector<Value>{builder.cast(sum, element)};
}

static OnnxResults importHann(OnnxNode &node) { return importWindow(node, {0.5, 0.5}); }
static OnnxResults importHamming(OnnxNode &node) {
  return importWindow(node, {25.0 / 46, 21.0 / 46});
}
static OnnxResults importBlackman(OnnxNode &node) { return importWindow(node, {0.42, 0.5, 0.08}); }

static OnnxRegistration hann =
    OnnxRegistration("HannWindow", 17, importHann).gradientOf({}).mustKnow(0, "size");
static OnnxRegistration hamming =
    OnnxRegistration("HammingWindow", 17, importHamming).gradientOf({}).mustKnow(0, "size");
static OnnxRegistration blackman =
    OnnxRegistration("BlackmanWindow", 17, importBlackman).gradientOf({}).mustKnow(0, "size");

} // namespace trainc::nn
