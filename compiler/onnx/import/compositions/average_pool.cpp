// SPDX-License-Identifier: Apache-2.0
//
// ONNX AveragePool, GlobalAveragePool, LpPool and GlobalLpPool: sums of windows. A mean divides by
// how many elements its window has, with count_include_pad by those and the pads that the node asks
// for.
#include "dialects/nn/interpreter.h"
#include "dialects/nn/onnx/onnx_refusal.h"
#include "dialects/nn/pool.h"

using namespace mlir;

namespace trainc::nn {

static const OnnxRefusal manyWindows({"AveragePool"}, "more than 2^24 windows along a dimension");
static const OnnxRefusal emptyWindows({"AveragePool"}, "windows of pads alone");

// How many of each window's taps count along dimension `d` of space, of `size` elements.
static std::vector<double> countTaps(const WindowPool &pool, bool withPads, size_t d, int64_t size,
                                     int64_t points) {
  int64_t before = pool.windows.pads[d], dilation = pool.windows.dilations[d];
  int64_t first = withPads ? 0 : before, last = withPads ? pool.counted[d] : before + size;
  std::vector<double> counts;
  for (int64_t point = 0; point < points; ++point) {
    int64_t begin = point * pool.windows.strides[d];
    auto tapsBefore = [&](int64_t end) {
      int64_t distance = std::max<int64_t>(0, end - begin);
      return std::min(pool.kernel[d], (distance + dilation - 1) / dilation);
    };
    counts.push_back(static_cast<double>(tapsBefore(last) - tapsBefore(first)));
  }
  return counts;
}

// The number of elements that each window's mean is over, in the shape of `sum`.
static FailureOr<Value> windowSizes(OnnxNode &node, const WindowPool &pool, Value sum) {
  Builder &builder = node.builder();
  auto type = tensorType(sum), input = tensorType(node.input(0));
  bool withPads = node.integer("count_include_pad", 0) != 0;
  double everywhere = 1;
  SmallVector<Value> tables;
  for (int64_t d = 0; d < type.getRank() - 2; ++d) {
    int64_t points = type.getDimSize(d + 2);
    if (points > kLargestFolded)
      return node.error(manyWindows.told(
          "has " + llvm::Twine(points) + " windows along dimension " + llvm::Twine(d + 2) +
          ", at most " + llvm::Twine(kLargestFolded) + " are supported"));
    std::vector<double> counts = countTaps(pool, withPads, d, input.getDimSize(d + 2), points);
    if (llvm::is_contained(counts, 0))
      return node.error(emptyWindows.told("a window has pads alone: its mean divides by zero"),
                        "pads below the size of the kernel");
    if (llvm::all_equal(counts)) {
      everywhere *= counts.front();
      continue;
    }
    Value table =
        builder.constant(Tensor::ofReals(type.clone(ArrayRef(points)), counts).attribute());
    tables.push_back(builder.broadcast(table, {d + 2}, type.getShape()));
  }
  Value sizes = builder.constant(everywhere, type);
  for (Value table : tables)
    sizes = everywhere == 1 && table == tables.front() ? table : builder.mul(sizes, table);
  return builder.named("sizes", sizes);
}

static OnnxResults importAveragePool(OnnxNode &node) {
  auto pool = readPool(node);
  if (failed(pool))
    return failure();
  Builder &builder = node.builder();
  Value sum = builder.named("sum", sumPool(builder, node.input(0), *pool));
  auto sizes = windowSizes(node, *pool, sum);
  if (failed(sizes))
    return failure();
  return SmallVector<Value>{builder.div(sum, *sizes)};
}

static SmallVector<int64_t> keptDimensions(Value x) {
  SmallVector<int64_t> shape(tensorType(x).getShape());
  std::fill(shape.begin() + 2, shape.end(), 1);
  return shape;
}

static LogicalResult checkSpace(OnnxNode &node) {
  auto type = tensorType(node.input(0));
  if (!isa<FloatType>(type.getElementType()) || type.getRank() < 3)
    return node.error("its operand is not of a float type with dimensions of space");
  return success();
}

static OnnxResults importGlobalAveragePool(OnnxNode &node) {
  if (failed(checkSpace(node)))
    return failure();
  Builder &builder = node.builder();
  Value x = node.input(0);
  Value mean = builder.reduceMean(
      x, llvm::to_vector(llvm::seq<int64_t>(2, tensorType(x).getRank())), "average");
  return SmallVector<Value>{builder.reshape(mean, keptDimensions(x))};
}

// (sum |x|^p)^(1/p)
static OnnxResults rootOfSum(OnnxNode &node, llvm::function_ref<Value(Value)> sum) {
  Builder &builder = node.builder();
  double p = node.opset() < 2 ? node.real("p", 2) : static_cast<double>(node.integer("p", 2));
  if (p < 1)
    return node.error("its p is " + llvm::Twine(std::to_string(p)) + ", expected 1 or more");
  Value size = builder.named("size", builder.create<AbsOp>(node.input(0)));
  auto power = [&](Value x, double exponent) {
    return exponent == 2     ? builder.mul(x, x)
           : exponent == 0.5 ? builder.create<SqrtOp>(x)
           : exponent == 1   ? x
                             : builder.create<PowOp>(x, builder.constant(exponent, x.getType()));
  };
  Value total = sum(builder.named("power", power(size, p)));
  return SmallVector<Value>{power(builder.named("sum", total), 1 / p)};
}

static OnnxResults importLpPool(OnnxNode &node) {
  auto pool = readPool(node);
  if (failed(pool))
    return failure();
  return rootOfSum(node, [&](Value x) { return sumPool(node.builder(), x, *pool); });
}

static OnnxResults importGlobalLpPool(OnnxNode &node) {
  if (failed(checkSpace(node)))
    return failure();
  return rootOfSum(node, [&](Value x) {
    SmallVector<int64_t> space = llvm::to_vector(llvm::seq<int64_t>(2, tensorType(x).getRank()));
    return node.builder().reshape(node.builder().reduceSum(x, space), keptDimensions(x));
  });
}

static OnnxRegistration averagePool =
    OnnxRegistration("AveragePool", 1, importAveragePool).takesFloats();
static OnnxRegistration globalAveragePool("GlobalAveragePool", 1, importGlobalAveragePool);
static OnnxRegistration lpPool = OnnxRegistration("LpPool", 2, importLpPool).takesFloats();
static OnnxRegistration globalLpPool("GlobalLpPool", 2, importGlobalLpPool);

} // namespace trainc::nn
