// SPDX-License-Identifier: Apache-2.0
//
// ONNX DFT and STFT: products with a matrix of sines and cosines, which is known when the model is
// compiled. The last dimension holds a number, or its real and imaginary parts; in the result both,
// but where half of the frequencies of a real signal go back to it.
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
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

/// [frequencies * parts, length]: what each part of a frequency adds to each sample of a real
/// signal. Frequencies stand for their conjugates too, but the first and the middle one.
Value matrixToReals(Builder &builder, Type element, int64_t length, int64_t frequencies,
                    int64_t parts) {
  std::vector<double> values(frequencies * parts * length, 0.0);
  for (int64_t k = 0; k < std::min(frequencies, frequenciesOf(length, true)); ++k) {
    bool isAlone = 2 * k % length == 0;
    double scale = (isAlone ? 1.0 : 2.0) / static_cast<double>(length);
    for (int64_t n = 0; n < length; ++n) {
      double angle = 2 * M_PI * static_cast<double>(n * k % length) / static_cast<double>(length);
      values[k * parts * length + n] = std::cos(angle) * scale;
      if (parts == 2 && !isAlone)
        values[(k * parts + 1) * length + n] = -std::sin(angle) * scale;
    }
  }
  auto type = RankedTensorType::get({frequencies * parts, length}, element);
  return builder.constant(Tensor::ofReals(type, values).attribute());
}

/// x [..., frequencies, parts] to the real signal [..., length, 1].
FailureOr<Value> transformedToReals(OnnxNode &node, Value x, int64_t length) {
  Builder &builder = node.builder();
  SmallVector<int64_t> shape(tensorType(x).getShape());
  int64_t parts = shape.pop_back_val(), frequencies = shape.pop_back_val();
  int64_t rows = computeProduct(shape);
  if (failed(countElements(node, {frequencies * parts, length})))
    return failure();
  Value matrix = matrixToReals(builder, tensorType(x).getElementType(), length, frequencies, parts);
  Value y = builder.matmul(builder.reshape(x, {rows, frequencies * parts}), matrix);
  llvm::append_values(shape, length, int64_t(1));
  return builder.reshape(y, shape);
}

/// x [..., samples, parts] to [..., frequencies, 2].
FailureOr<Value> transformed(OnnxNode &node, Value x, const Transform &transform) {
  Builder &builder = node.builder();
  SmallVector<int64_t> shape(tensorType(x).getShape());
  int64_t parts = shape.pop_back_val(), samples = shape.pop_back_val();
  int64_t rows = computeProduct(shape);
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
  bool onesided = node.integer("onesided", 0) != 0, inverse = node.integer("inverse", 0) != 0;
  int64_t size = type.getDimSize(*axis);
  FailureOr<int64_t> length =
      numberOf(node, 1, "length", onesided && inverse ? 2 * (size - 1) : size);
  if (failed(length))
    return failure();
  if (*length < 1 || *length > INT32_MAX)
    return node.error("its length is " + llvm::Twine(*length) + (onesided ? ", one-sided" : "") +
                      (inverse ? ", inverse" : ""));
  x = builder.exchange(x, *axis, rank - 2);
  auto y = onesided && inverse
               ? transformedToReals(node, x, *length)
               : transformed(node, x, {*length, frequenciesOf(*length, onesided), inverse});
  if (failed(y))
    return failure();
  return SmallVector<Value>{builder.exchange(*y, *axis, rank - 2)};
}

static OnnxResults importStft(OnnxNode &node) {
  Builder &builder = node.builder();
  Value x = node.input(0);
  if (tensorType(x).getRank() == 2) // as PyTorch's TorchScript exporter writes real signals
    x = builder.reshape(x, {tensorType(x).getDimSize(0), tensorType(x).getDimSize(1), 1});
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
