// SPDX-License-Identifier: Apache-2.0
//
// Views as index arithmetic. A kernel walks an iteration space; the element of
// a tensor that belongs to a point is one affine expression per tensor
// dimension. Reshapes, transposes, slices, reversals and broadcasts only change
// these expressions, so they cost nothing; at the tensor in memory the
// expressions collapse to an offset and one stride per iteration dimension.
// A reshape that cuts through an iteration dimension asks for a split of it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace trainc::planning {

using Sizes = std::vector<int64_t>;

int64_t elementCount(const Sizes &sizes);
Sizes rowMajorStrides(const Sizes &sizes);

/// `offset + sum_d coefficients[d] * point[d]`. Missing coefficients are 0: the
/// space may have grown after (symbols, see IndexMap).
struct Affine {
  int64_t offset = 0;
  std::vector<int64_t> coefficients;

  int64_t coefficient(size_t d) const { return d < coefficients.size() ? coefficients[d] : 0; }
  void add(size_t d, int64_t coefficient);
  /// `factor * this + shift`.
  Affine scaled(int64_t factor, int64_t shift = 0) const;
  bool isConstant() const;
  bool operator==(const Affine &other) const;
};

struct Range {
  int64_t low, high; // inclusive
};
Range rangeOf(const Affine &expression, const Sizes &space);

/// Cuts iteration dimension `dimension` into (size / inner, inner).
struct Split {
  size_t dimension;
  int64_t inner;
};

/// Splits of one iteration space; each is at a boundary of some tensor's dimensions, so there are
/// few.
constexpr int kMostSplits = 256;

/// The index of a tensor element as a function of the iteration point. `space`
/// holds the sizes of the iteration dimensions, then the ranges of symbols:
/// values computed in the kernel which serve as an index (of a gather).
struct IndexMap {
  Sizes space;
  std::vector<Affine> index;

  /// The point itself, for a tensor whose shape is the space.
  static IndexMap identity(const Sizes &space);

  // Each gives the map of the operand from that of the result.
  IndexMap throughTranspose(const Sizes &permutation) const;
  IndexMap throughSlice(const Sizes &starts, const Sizes &strides) const;
  IndexMap throughReverse(const Sizes &dimensions, const Sizes &shape) const;
  IndexMap throughBroadcast(const Sizes &dimensions, const Sizes &operandShape) const;
  std::optional<IndexMap> throughReshape(const Sizes &shape, const Sizes &operandShape,
                                         std::optional<Split> &split) const;

  /// Position in a row-major tensor of `shape`.
  Affine linear(const Sizes &shape) const;
};

/// Row-major position in the given consecutive dimensions of the space.
Affine linearIndex(const Sizes &space, size_t begin, size_t end);

/// Inverse of IndexMap::linear: index expressions of a row-major tensor of
/// `shape` at the position. Fails where a term crosses a dimension of the tensor;
/// `split` then says what would help, if anything does.
std::optional<std::vector<Affine>> delinearise(const Affine &position, const Sizes &space,
                                               const Sizes &shape, std::optional<Split> &split);

/// How a tensor's row-major order relates to that of an iteration space.
enum class Alignment { identity, leading, other };

/// `identity`: same order; `leading`: the tensor is indexed in order by leading
/// dimensions of the space and repeated along the rest (one element per row).
Alignment alignmentOf(const Affine &position, const Sizes &space, int64_t elements);

/// Strides of the dimensions of one operand of a matrix product, or the result.
struct StridedTensor {
  Sizes shape;
  Sizes strides;
  int64_t offset = 0;
};

/// The strided form of a tensor of shape `shape`, whose element at the identity
/// point of (refined) space `space` is at `position`: dimensions of the space
/// that make up one dimension of the shape must have joining strides.
std::optional<StridedTensor> stridedTensor(const Affine &position, const Sizes &space,
                                           const Sizes &shape);

/// For a one-to-one `position` of a tensor in `space`: the way back. `shape` are
/// the sizes of the space in the tensor's order, `strides` and `offset` lead from
/// a point in this order to the row-major position in the space.
std::optional<StridedTensor> invertPermutation(const Affine &position, const Sizes &space);

} // namespace trainc::planning
