// SPDX-License-Identifier: Apache-2.0
//
// ONNX MelWeightMatrix: triangles over the bins of a spectrum, their corners evenly spaced on the
// mel scale, 2595 log10(1 + hertz / 700). Everything is known when the model is compiled.
#include "dialects/nn/interpreter.h"
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/nn/onnx/onnx_types.h"
#include <cmath>

using namespace mlir;

namespace trainc::nn {

static double melOf(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
static double hertzOf(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

static OnnxResults importMelWeightMatrix(OnnxNode &node) {
  Builder &builder = node.builder();
  double bands = 0, length = 0, rate = 0, lower = 0, upper = 0; // edges in hertz
  std::pair<const char *, double *> numbers[] = {{"number of bins", &bands},
                                                 {"length", &length},
                                                 {"sample rate", &rate},
                                                 {"lower edge", &lower},
                                                 {"upper edge", &upper}};
  for (auto [i, number] : llvm::enumerate(numbers)) {
    FailureOr<double> known = node.knownNumber(i, number.first);
    if (failed(known))
      return failure();
    *number.second = *known;
  }
  Type element = onnxElementType(builder.op().getContext(), node.integer("output_datatype", 1));
  bool good = bands >= 1 && length >= 1 && rate > 0 && lower >= 0 && upper > lower &&
              bands * (length / 2 + 1) <= static_cast<double>(kLargestFolded);
  if (!good || !element)
    return node.error(
        "its bins, length, sample rate and edges, or its element type, fit no matrix");
  int64_t columns = static_cast<int64_t>(bands), rows = static_cast<int64_t>(length) / 2 + 1;
  auto corner = [&](int64_t i) { // a bin
    double step = (melOf(upper) - melOf(lower)) / (bands + 2);
    return std::floor((length + 1) * hertzOf(melOf(lower) + static_cast<double>(i) * step) / rate);
  };
  std::vector<double> values(rows * columns, 0.0);
  for (int64_t band = 0; band < columns; ++band) {
    double low = corner(band), centre = corner(band + 1), high = corner(band + 2);
    for (int64_t row = 0; row < rows; ++row) {
      auto bin = static_cast<double>(row);
      double &weight = values[row * columns + band];
      if (low == centre && bin == centre)
        weight = 1;
      else if (bin >= low && bin <= centre && low < centre)
        weight = (bin - low) / (centre - low);
      if (bin >= centre && bin < high)
        weight = (high - bin) / (high - centre);
    }
  }
  auto type = RankedTensorType::get({rows, columns}, builder.op().getF64Type());
  Value matrix = builder.constant(Tensor::ofReals(type, values).attribute());
  return SmallVector<Value>{builder.cast(matrix, element)};
}

static OnnxRegistration melWeightMatrix =
    OnnxRegistration("MelWeightMatrix", 17, importMelWeightMatrix)
        .gradientOf({})
        .mustKnow(0, "number of bins")
        .mustKnow(1, "length")
        .mustKnow(2, "sample rate")
        .mustKnow(3, "lower edge")
        .mustKnow(4, "upper edge");

} // namespace trainc::nn
