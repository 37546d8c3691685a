// SPDX-License-Identifier: Apache-2.0
//
// ONNX DFT and STFT: products with a matrix of sines and cosines, which is known when the model is
// compiled. The last dimension holds a number, or its real and imaginary parts; in the result both.
#include "dialects/nn/onnx_node.h"
#include "dialects/nn/tensor.h"
#include <cmath>

using namespace mlir;

namespace trainc::nn {
namespace {

struct Transform {
  int64_t length;      // of the period
  int64_t frequencies; // of the result
  bool inverse = false;
};

int64_t frequenciesOf(int64_t length, bool onesided) { return onesided ? length / 2 + 1 : length; }

/// [samples * parts, frequencies * 2]: what each part of a sample adds to each part of a frequency.
Value matrixOf(Builder &builder, Type element, const Transform &transform, int64_t samples,
               int64_t parts) {
  int64_t rows = samples * parts, columns = transform.frequencies * 2;
  std::vector<double> values(rows * columns, 0.0);
  double scale = transform.inverse ? 1.0 / static_cast<double>(transform.length) : 1;
  for (int64_t n = 0; n < std::min(samples, transform.length); ++n)
    for (int64_t k = 0; k < transform.frequencies; ++k) {
      double angle = 2 * M_PI * static_cast<double>(n * k % transform.length) /
                     static_cast<double>(transform.length);
      double cosine = std::cos(angle) * scale, sine = std::sin(angle) * scale;
      if (transform.inverse)
        sine = -sine;
      double *real = &values[n * parts * columns + 2 * k];
      real[0] = cosine;
      real[1] = -sine;
      if (parts == 2) {
        real[columns] = sine;
        real[columns + 1] = cosine;
      }
    }
  auto type = RankedTensorType::get({rows, columns}, element);
  return builder.constant(Tensor::ofReals(type, values).attribute());
}

/// x [..., samples, parts] to [..., frequencies, 2].
FailureOr<Value> transformed(OnnxNode &node, Value x, const Transform &transform) {
  Builder &builder = node.builder();
  SmallVector<int64_t> shape(tensorType(x).getShape());
  int64_t parts = shape.pop_back_val(), samples = shape.pop_back_val(), rows = 1;
  for (int64_t size : shape)
    rows *= size;
  if (failed(countElements(node, {samples * parts, transform.frequencies * 2})))
    return failure();
  Value matrix = matrixOf(builder, tensorType(x).getElementType(), transform, samples, parts);
  Value y = builder.matmul(builder.reshape(x, {rows, samples * parts}), matrix);
  llvm::append_values(shape, transform.frequencies, int64_t(2));
  return builder.reshape(y, shape);
}

/// A number that an input gives; `otherwise` where it is left out.
FailureOr<int64_t> numberOf(OnnxNode &node, unsigned input, StringRef what, int64_t otherwise) {
  if (!node.hasInput(input))
    return otherwise;
  return node.knownInteger(input, what);
}

LogicalResult checkParts(OnnxNode &node, RankedTensorType type) {
  if (type.getRank() < 3 || type.getShape().back() < 1 || type.getShape().back() > 2 ||
      !isa<FloatType>(type.getElementType()))
    return node.error(
        "expects floats whose last dimension is a number, or its real and imaginary part");
  return success();
}

} // namespace

static OnnxResults importDft(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  auto type = tensorType(x);
  if (failed(checkParts(node, type)))
    return failure();
  int64_t rank = type.getRank();
  FailureOr<int64_t> axis = node.opset() < 20 ? FailureOr<int64_t>(node.integer("axis", 1))
                                              : numberOf(node, 2, "axis", -2);
  if (failed(axis) || failed(axis = dimensionOf(node, *axis, rank)))
    return failure();
  if (*axis == rank - 1)
    return node.error("its axis is that of the real and imaginary part");
  FailureOr<int64_t> length = numberOf(node, 1, "length", type.getDimSize(*axis));
  if (failed(length))
    return failure();
  bool onesided = node.integer("onesided", 0) != 0, inverse = node.integer("inverse", 0) != 0;
  if (*length < 1 || *length > INT32_MAX || (onesided && inverse))
    return node.error("its length is " + llvm::Twine(*length) + (onesided ? ", one-sided" : "") +
                      (inverse ? ", inverse" : ""));
  auto order = llvm::to_vector(llvm::seq<int64_t>(0, rank)); // its own inverse
  std::swap(order[*axis], order[rank - 2]);
  auto y = transformed(node, builder.transpose(x, order),
                       {*length, frequenciesOf(*length, onesided), inverse});
  if (failed(y))
    return failure();
  return SmallVector<Value>{builder.transpose(*y, order)};
}

static OnnxResults importStft(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  auto type = tensorType(x);
  if (failed(checkParts(node, type)))
    return failure();
  if (type.getRank() != 3)
    return node.error("expects a signal [batch, length, 1 or 2]");
  int64_t signal = type.getDimSize(1);
  int64_t window = node.hasInput(2) ? tensorType(node.input(2)).getNumElements() : signal;
  FailureOr<int64_t> step = numberOf(node, 1, "frame_step", 0);
  FailureOr<int64_t> length = numberOf(node, 3, "frame_length", window);
  if (failed(step) || failed(length))
    return failure();
  if (*step < 1 || *length < 1 || *length > signal || (node.hasInput(2) && window != *length))
    return node.error("takes frames of " + llvm::Twine(*length) + " every " + llvm::Twine(*step) +
                      " of " + llvm::Twine(signal) + ", with a window of " + llvm::Twine(window));
  int64_t frames = (signal - *length) / *step + 1;
  std::vector<int64_t> samples;
  for (int64_t frame = 0; frame < frames; ++frame)
    for (int64_t i = 0; i < *length; ++i)
      samples.push_back(frame * *step + i);
  auto places = RankedTensorType::get({frames, *length}, builder.op().getI64Type());
  Value rows = builder.constant(Tensor::ofIntegers(places, samples).attribute());
  Value framed = builder.create<GatherOp>(builder.transpose(x, {1, 0, 2}), rows);
  if (node.hasInput(2)) {
    Value factors = builder.cast(builder.reshape(node.input(2), {window}), type.getElementType());
    framed = builder.mul(framed, builder.broadcast(factors, {1}, tensorType(framed).getShape()));
  }
  framed = builder.transpose(framed, {2, 0, 1, 3}); // batch, frame, sample, part
  bool onesided = node.integer("onesided", 1) != 0;
  auto y = transformed(node, framed, {*length, frequenciesOf(*length, onesided)});
  if (failed(y))
    return failure();
  return SmallVector<Value>{*y};
}

static OnnxRegistration dft =
    OnnxRegistration("DFT", 17, importDft).mustKnow(1, "length").mustKnow(2, "axis");
static OnnxRegistration stft =
    OnnxRegistration("STFT", 17, importStft).mustKnow(1, "frame_step").mustKnow(3, "frame_length");

} // namespace trainc::nn
