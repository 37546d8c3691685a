// SPDX-License-Identifier: Apache-2.0
//
// Index arithmetic of views, checked against an element-by-element walk.
#include "passes/planning/strided_view.h"

#include <gtest/gtest.h>

using namespace trainc::planning;

namespace {

/// Value of an affine expression at a point.
int64_t at(const Affine &expression, const Sizes &point) {
  int64_t value = expression.offset;
  for (size_t d = 0; d < point.size(); ++d)
    value += expression.coefficient(d) * point[d];
  return value;
}

/// All points of a space, row-major.
std::vector<Sizes> points(const Sizes &space) {
  std::vector<Sizes> result;
  for (int64_t i = 0; i < elementCount(space); ++i) {
    Sizes point(space.size());
    int64_t rest = i;
    for (size_t d = space.size(); d-- > 0; rest /= space[d])
      point[d] = rest % space[d];
    result.push_back(point);
  }
  return result;
}

TEST(StridedView, TransposeOfSlice) {
  // y = transpose(x[1:3, 4:0:-2]) of a 4 x 6 tensor.
  IndexMap y = IndexMap::identity({2, 2});
  IndexMap slice = y.throughTranspose({1, 0});
  IndexMap x = slice.throughSlice({1, 4}, {1, -2});
  Affine position = x.linear({4, 6});
  for (const Sizes &point : points({2, 2}))
    EXPECT_EQ(at(position, point), (1 + point[1]) * 6 + 4 - 2 * point[0]);
}

TEST(StridedView, BroadcastHasStrideZero) {
  IndexMap map = IndexMap::identity({2, 3, 4}).throughBroadcast({0, 2}, {1, 4});
  Affine position = map.linear({1, 4});
  EXPECT_EQ(position.coefficient(0), 0);
  EXPECT_EQ(position.coefficient(1), 0);
  EXPECT_EQ(position.coefficient(2), 1);
}

TEST(StridedView, ReverseCountsDown) {
  Affine position = IndexMap::identity({5}).throughReverse({0}, {5}).linear({5});
  EXPECT_EQ(position.offset, 4);
  EXPECT_EQ(position.coefficient(0), -1);
}

TEST(StridedView, HeadsOfAttentionAreStrides) {
  // q = transpose(reshape(x[:, 768:1536])): batch 2, time 3, heads 4, width 5 of rows of 60.
  IndexMap map = IndexMap::identity({2, 4, 3, 5}).throughTranspose({0, 2, 1, 3});
  std::optional<Split> split;
  auto flat = map.throughReshape({2, 3, 4, 5}, {6, 20}, split);
  ASSERT_TRUE(flat);
  Affine position = flat->throughSlice({0, 20}, {1, 1}).linear({6, 60});
  EXPECT_EQ(position, (Affine{20, {180, 5, 60, 1}}));
}

TEST(StridedView, ReshapeAsksForTheSplitItNeeds) {
  IndexMap map = IndexMap::identity({12});
  std::optional<Split> split;
  EXPECT_FALSE(map.throughReshape({12}, {3, 4}, split));
  ASSERT_TRUE(split);
  EXPECT_EQ(split->dimension, 0u);
  EXPECT_EQ(split->inner, 4);
}

TEST(StridedView, ReshapeAcrossATransposeHasNoSplit) {
  // Rows of 3 read from columns of 4: no rectangle of points has one stride.
  IndexMap map = IndexMap::identity({3, 4}).throughTranspose({1, 0});
  std::optional<Split> split;
  EXPECT_FALSE(map.throughReshape({4, 3}, {3, 4}, split));
  EXPECT_FALSE(split);
}

TEST(StridedView, DelineariseUndoesLinear) {
  Sizes space{2, 3, 4, 5};
  std::optional<Split> split;
  auto indices = delinearise(linearIndex(space, 0, 4), space, {6, 20}, split);
  ASSERT_TRUE(indices);
  for (const Sizes &point : points(space)) {
    EXPECT_EQ(at((*indices)[0], point), point[0] * 3 + point[1]);
    EXPECT_EQ(at((*indices)[1], point), point[2] * 5 + point[3]);
  }
}

TEST(StridedView, AlignmentNamesRowsAndOrder) {
  Sizes space{4, 8};
  EXPECT_EQ(alignmentOf(linearIndex(space, 0, 2), space, 32), Alignment::identity);
  EXPECT_EQ(alignmentOf(linearIndex(space, 0, 1), space, 4), Alignment::leading);
  EXPECT_EQ(alignmentOf(linearIndex(space, 1, 2), space, 8), Alignment::other);
  EXPECT_EQ(alignmentOf(Affine{0, {1, 4}}, space, 32), Alignment::other);
  EXPECT_EQ(alignmentOf(Affine{1, {8, 1}}, space, 33), Alignment::other);
}

TEST(StridedView, StridedTensorJoinsDimensions) {
  auto tensor = stridedTensor(Affine{7, {60, 20, 1}}, {2, 3, 5}, {6, 5});
  ASSERT_TRUE(tensor);
  EXPECT_EQ(tensor->strides, (Sizes{20, 1}));
  EXPECT_EQ(tensor->offset, 7);
  EXPECT_FALSE(stridedTensor(Affine{0, {1, 20, 2}}, {2, 3, 5}, {6, 5}));
}

TEST(StridedView, InverseOfAPermutationLeadsBack) {
  // y[a, b, c] is element (b, a, c) of x; where does x's element go in y?
  Sizes space{2, 3, 4};
  auto inverse = invertPermutation(Affine{0, {4, 8, 1}}, space);
  ASSERT_TRUE(inverse);
  EXPECT_EQ(inverse->shape, (Sizes{3, 2, 4}));
  EXPECT_EQ(inverse->strides, (Sizes{4, 12, 1}));
  EXPECT_FALSE(invertPermutation(Affine{0, {4, 0, 1}}, space));
}

} // namespace
