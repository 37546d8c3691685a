// SPDX-License-Identifier: Apache-2.0
//
// ONNX Unique: the size of its results depends on values, so they must be known.
#include "dialects/nn/onnx/onnx_node.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include <map>
#include <numeric>

using namespace mlir;

namespace trainc::nn {
namespace {

/// What is compared: elements, or slices along an axis.
struct Slices {
  int64_t outer, count, inner; // elements are [outer, count, inner]
};

/// Numbers of the slices, as `order` has them first.
struct Distinct {
  std::vector<int64_t> first, inverse, counts;
};

} // namespace

// As NumPy sorts: what is not a number comes last, and is one value.
static int compare(double a, double b) {
  bool isNumber = !std::isnan(a), isOtherNumber = !std::isnan(b);
  if (!isNumber || !isOtherNumber)
    return isOtherNumber - isNumber;
  return (a > b) - (a < b);
}
static int compare(int64_t a, int64_t b) { return (a > b) - (a < b); }

template <typename T>
static Distinct distinct(const std::vector<T> &values, const Slices &slices, bool isSorted) {
  auto isLess = [&](int64_t a, int64_t b) {
    for (int64_t outer = 0; outer < slices.outer; ++outer)
      for (int64_t inner = 0; inner < slices.inner; ++inner) {
        auto at = [&](int64_t slice) {
          return values[(outer * slices.count + slice) * slices.inner + inner];
        };
        if (int order = compare(at(a), at(b)))
          return order < 0;
      }
    return false;
  };
  std::map<int64_t, std::vector<int64_t>, decltype(isLess)> places(isLess); // by a first slice
  for (int64_t slice = 0; slice < slices.count; ++slice)
    places[slice].push_back(slice);
  std::vector<std::vector<int64_t>> groups;
  groups.reserve(places.size());
  for (auto &[slice, group] : places)
    groups.push_back(std::move(group));
  if (!isSorted)
    llvm::sort(groups, [](const auto &a, const auto &b) { return a.front() < b.front(); });
  Distinct found{{}, std::vector<int64_t>(slices.count), {}};
  for (auto [number, group] : llvm::enumerate(groups)) {
    found.first.push_back(group.front());
    found.counts.push_back(static_cast<int64_t>(group.size()));
    for (int64_t slice : group)
      found.inverse[slice] = static_cast<int64_t>(number);
  }
  return found;
}

template <typename T>
static std::vector<T> chosen(const std::vector<T> &values, const Slices &slices,
                             ArrayRef<int64_t> first) {
  std::vector<T> result;
  for (int64_t outer = 0; outer < slices.outer; ++outer)
    for (int64_t slice : first)
      for (int64_t inner = 0; inner < slices.inner; ++inner)
        result.push_back(values[(outer * slices.count + slice) * slices.inner + inner]);
  return result;
}

static OnnxResults importUnique(OnnxNode &node) {
  Tensor x = node.constant(0);
  SmallVector<int64_t> shape{x.count()};
  int64_t axis = 0;
  if (node.hasAttribute("axis")) {
    shape.assign(x.shape().begin(), x.shape().end());
    FailureOr<int64_t> found = axisOf(node, x.type().getRank(), 0);
    if (failed(found))
      return failure();
    axis = *found;
  }
  Slices slices{computeProduct(ArrayRef(shape).take_front(axis)), shape[axis],
                computeProduct(ArrayRef(shape).drop_front(axis + 1))};
  bool isSorted = node.integer("sorted", 1) != 0;
  bool isReal = isa<FloatType>(x.type().getElementType());
  Distinct found =
      isReal ? distinct(x.reals(), slices, isSorted) : distinct(x.integers(), slices, isSorted);
  shape[axis] = static_cast<int64_t>(found.first.size());
  auto type = RankedTensorType::get(shape, x.type().getElementType());
  Tensor values = isReal ? Tensor::ofReals(type, chosen(x.reals(), slices, found.first))
                         : Tensor::ofIntegers(type, chosen(x.integers(), slices, found.first));
  auto list = [&](ArrayRef<int64_t> numbers) {
    return node.integerLiteral(numbers, static_cast<int64_t>(numbers.size()));
  };
  return SmallVector<Value>{node.literal(values), list(found.first), list(found.inverse),
                            list(found.counts)};
}

static OnnxRegistration unique = OnnxRegistration("Unique", 11, importUnique)
                                     .gradientOf({})
                                     .mustKnow(0, "input, whose values say how many are left,");

} // namespace trainc::nn
