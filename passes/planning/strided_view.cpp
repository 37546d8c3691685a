// SPDX-License-Identifier: Apache-2.0
//
// Affine index arithmetic of views (strided_view.h).
#include "passes/planning/strided_view.h"

#include <algorithm>
#include <numeric>

namespace trainc::planning {

int64_t elementCount(const Sizes &sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<int64_t>());
}

Sizes rowMajorStrides(const Sizes &sizes) {
  Sizes strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;)
    strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

static int64_t floorDivide(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

void Affine::add(size_t d, int64_t coefficient) {
  if (coefficients.size() <= d)
    coefficients.resize(d + 1, 0);
  coefficients[d] += coefficient;
}

Affine Affine::scaled(int64_t factor, int64_t shift) const {
  Affine result{offset * factor + shift, coefficients};
  for (int64_t &c : result.coefficients)
    c *= factor;
  return result;
}

bool Affine::isConstant() const {
  return std::all_of(coefficients.begin(), coefficients.end(), [](int64_t c) { return c == 0; });
}

bool Affine::operator==(const Affine &other) const {
  if (offset != other.offset)
    return false;
  size_t count = std::max(coefficients.size(), other.coefficients.size());
  for (size_t d = 0; d < count; ++d)
    if (coefficient(d) != other.coefficient(d))
      return false;
  return true;
}

Range rangeOf(const Affine &expression, const Sizes &space) {
  Range range{expression.offset, expression.offset};
  for (size_t d = 0; d < expression.coefficients.size(); ++d) {
    int64_t reach = expression.coefficients[d] * (space[d] - 1);
    (reach < 0 ? range.low : range.high) += reach;
  }
  return range;
}

IndexMap IndexMap::identity(const Sizes &space) {
  IndexMap map{space, {}};
  for (size_t d = 0; d < space.size(); ++d) {
    Affine index;
    if (space[d] > 1)
      index.add(d, 1);
    map.index.push_back(index);
  }
  return map;
}

IndexMap IndexMap::throughTranspose(const Sizes &permutation) const {
  IndexMap operand{space, std::vector<Affine>(index.size())};
  for (size_t i = 0; i < permutation.size(); ++i)
    operand.index[permutation[i]] = index[i];
  return operand;
}

IndexMap IndexMap::throughSlice(const Sizes &starts, const Sizes &strides) const {
  IndexMap operand{space, {}};
  for (size_t d = 0; d < index.size(); ++d)
    operand.index.push_back(index[d].scaled(strides[d], starts[d]));
  return operand;
}

IndexMap IndexMap::throughReverse(const Sizes &dimensions, const Sizes &shape) const {
  IndexMap operand = *this;
  for (int64_t d : dimensions)
    operand.index[d] = index[d].scaled(-1, shape[d] - 1);
  return operand;
}

IndexMap IndexMap::throughBroadcast(const Sizes &dimensions, const Sizes &operandShape) const {
  IndexMap operand{space, std::vector<Affine>(operandShape.size())};
  for (size_t i = 0; i < dimensions.size(); ++i)
    if (operandShape[i] != 1)
      operand.index[i] = index[dimensions[i]];
  return operand;
}

std::optional<IndexMap> IndexMap::throughReshape(const Sizes &shape, const Sizes &operandShape,
                                                 std::optional<Split> &split) const {
  auto indices = delinearise(linear(shape), space, operandShape, split);
  if (!indices)
    return std::nullopt;
  return IndexMap{space, std::move(*indices)};
}

Affine IndexMap::linear(const Sizes &shape) const {
  Sizes strides = rowMajorStrides(shape);
  Affine position;
  for (size_t d = 0; d < index.size(); ++d) {
    position.offset += index[d].offset * strides[d];
    for (size_t i = 0; i < index[d].coefficients.size(); ++i)
      position.add(i, index[d].coefficients[i] * strides[d]);
  }
  return position;
}

Affine linearIndex(const Sizes &space, size_t begin, size_t end) {
  Affine position;
  int64_t stride = 1;
  for (size_t d = end; d-- > begin; stride *= space[d])
    position.add(d, space[d] > 1 ? stride : 0);
  return position;
}

/// A split that lets the terms of `rest` fall apart at blocks of `block`.
static std::optional<Split> helpfulSplit(const Affine &rest, const Sizes &space, int64_t block) {
  for (size_t d = 0; d < rest.coefficients.size(); ++d) {
    int64_t c = rest.coefficients[d], extent = c * space[d];
    if (c > 0 && c < block && extent > block && block % c == 0 && extent % block == 0)
      return Split{d, block / c};
  }
  return std::nullopt;
}

std::optional<std::vector<Affine>> delinearise(const Affine &position, const Sizes &space,
                                               const Sizes &shape, std::optional<Split> &split) {
  Sizes strides = rowMajorStrides(shape);
  std::vector<Affine> indices(shape.size());
  Affine rest = position;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1)
      continue;
    int64_t block = strides[d];
    Affine inner;
    for (size_t i = 0; i < rest.coefficients.size(); ++i) {
      int64_t c = rest.coefficients[i];
      if (c != 0)
        (c % block == 0 ? indices[d] : inner).add(i, c % block == 0 ? c / block : c);
    }
    Range range = rangeOf(inner, space);
    indices[d].offset = floorDivide(rest.offset + range.low, block);
    inner.offset = rest.offset - indices[d].offset * block;
    if (inner.offset + range.high >= block) {
      split = helpfulSplit(inner, space, block);
      return std::nullopt;
    }
    rest = inner;
  }
  return indices;
}

Alignment alignmentOf(const Affine &position, const Sizes &space, int64_t elements) {
  if (position.offset != 0)
    return Alignment::other;
  // Trailing dimensions without influence, then row-major order of the rest.
  size_t end = space.size();
  while (end > 0 && (space[end - 1] == 1 || position.coefficient(end - 1) == 0))
    --end;
  int64_t stride = 1;
  for (size_t d = end; d-- > 0; stride *= space[d])
    if (space[d] > 1 && position.coefficient(d) != stride)
      return Alignment::other;
  for (size_t d = space.size(); d < position.coefficients.size(); ++d)
    if (position.coefficients[d] != 0)
      return Alignment::other;
  if (stride != elements)
    return Alignment::other;
  return stride == elementCount(space) ? Alignment::identity : Alignment::leading;
}

std::optional<StridedTensor> stridedTensor(const Affine &position, const Sizes &space,
                                           const Sizes &shape) {
  StridedTensor tensor{shape, Sizes(shape.size(), 0), position.offset};
  size_t d = space.size();
  for (size_t s = shape.size(); s-- > 0;) {
    int64_t covered = 1, stride = 0;
    while (covered < shape[s]) {
      if (d == 0)
        return std::nullopt;
      --d;
      if (space[d] == 1)
        continue;
      int64_t c = position.coefficient(d);
      if (covered == 1)
        stride = c;
      else if (c != stride * covered)
        return std::nullopt;
      covered *= space[d];
    }
    if (covered != shape[s])
      return std::nullopt;
    tensor.strides[s] = stride;
  }
  return tensor;
}

std::optional<StridedTensor> invertPermutation(const Affine &position, const Sizes &space) {
  if (position.offset != 0)
    return std::nullopt;
  // Dimensions of the space by their stride in the tensor, outermost first.
  Sizes strides = rowMajorStrides(space);
  std::vector<size_t> order;
  for (size_t d = 0; d < space.size(); ++d)
    if (space[d] > 1)
      order.push_back(d);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return position.coefficient(a) > position.coefficient(b);
  });
  StridedTensor inverse;
  for (size_t d : order) {
    inverse.shape.push_back(space[d]);
    inverse.strides.push_back(strides[d]);
  }
  Sizes expected = rowMajorStrides(inverse.shape);
  for (size_t i = 0; i < order.size(); ++i)
    if (position.coefficient(order[i]) != expected[i])
      return std::nullopt;
  return inverse;
}

} // namespace trainc::planning
