// SPDX-License-Identifier: Apache-2.0
//
// Folding of operators that index, and of reductions.
#include "compiler/onnx/folding.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace llvm;

namespace trainc::reader {

static void copyElement(const HostTensor &source, int64_t from, HostTensor &target, int64_t to) {
  if (source.isReal())
    target.reals[to] = source.reals[from];
  else
    target.integers[to] = source.integers[from];
}

static bool hasIndices(const FoldNode &node) {
  return node.has(0) && node.has(1) && !node.input(1).isReal();
}

static Folded foldGather(const FoldNode &node) {
  if (!hasIndices(node))
    return std::nullopt;
  const HostTensor &x = node.input(0), &indices = node.input(1);
  auto axis = normalAxis(node.node.integer("axis", 0), x.rank());
  if (!axis)
    return std::nullopt;
  SmallVector<int64_t> shape(x.shape.begin(), x.shape.begin() + *axis);
  shape.append(indices.shape.begin(), indices.shape.end());
  shape.append(x.shape.begin() + *axis + 1, x.shape.end());
  auto result = makeHostTensor(x.element, shape);
  if (!result)
    return std::nullopt;
  int64_t outer = elementCount(ArrayRef(x.shape).take_front(*axis));
  int64_t inner = elementCount(ArrayRef(x.shape).drop_front(*axis + 1)), at = 0;
  for (int64_t row = 0; row < outer; ++row)
    for (int64_t index : indices.integers) {
      auto normal = normalAxis(index, x.shape[*axis]);
      if (!normal)
        return std::nullopt;
      for (int64_t i = 0; i < inner; ++i)
        copyElement(x, (row * x.shape[*axis] + *normal) * inner + i, *result, at++);
    }
  return single(result);
}

static Folded foldGatherElements(const FoldNode &node) {
  if (!hasIndices(node) || node.input(0).rank() != node.input(1).rank())
    return std::nullopt;
  const HostTensor &x = node.input(0), &indices = node.input(1);
  auto axis = normalAxis(node.node.integer("axis", 0), x.rank());
  auto result = makeHostTensor(x.element, indices.shape);
  if (!axis || !result)
    return std::nullopt;
  SmallVector<int64_t> own = stridesOf(x.shape), strides = stridesOf(indices.shape);
  for (int64_t i = 0, count = result->count(); i < count; ++i) {
    int64_t from = 0;
    for (int64_t d = 0; d < x.rank(); ++d) {
      auto index = normalAxis(d == *axis ? indices.integers[i] : i / strides[d] % indices.shape[d],
                              x.shape[d]);
      if (!index)
        return std::nullopt;
      from += *index * own[d];
    }
    copyElement(x, from, *result, i);
  }
  return single(result);
}

// Offset in `shape` of the index tuple at `tuple`; nullopt where it is out of range.
static std::optional<int64_t> tupleOffset(ArrayRef<int64_t> tuple, ArrayRef<int64_t> shape) {
  int64_t offset = 0;
  SmallVector<int64_t> strides = stridesOf(shape);
  for (size_t d = 0; d < tuple.size(); ++d) {
    auto index = normalAxis(tuple[d], shape[d]);
    if (!index)
      return std::nullopt;
    offset += *index * strides[d];
  }
  return offset;
}

static Folded foldGatherNd(const FoldNode &node) {
  if (!hasIndices(node) || node.node.integer("batch_dims", 0) || node.input(1).rank() == 0)
    return std::nullopt;
  const HostTensor &x = node.input(0), &indices = node.input(1);
  int64_t depth = indices.shape.back();
  if (depth > x.rank())
    return std::nullopt;
  SmallVector<int64_t> shape(indices.shape.begin(), indices.shape.end() - 1);
  shape.append(x.shape.begin() + depth, x.shape.end());
  auto result = makeHostTensor(x.element, shape);
  if (!result)
    return std::nullopt;
  int64_t inner = elementCount(ArrayRef(x.shape).drop_front(depth));
  int64_t tuples = elementCount(ArrayRef(indices.shape).drop_back());
  for (int64_t t = 0; t < tuples; ++t) {
    auto offset = tupleOffset(ArrayRef(indices.integers).slice(t * depth, depth), x.shape);
    if (!offset)
      return std::nullopt;
    for (int64_t i = 0; i < inner; ++i)
      copyElement(x, *offset + i, *result, t * inner + i);
  }
  return single(result);
}

static Folded foldScatterNd(const FoldNode &node) {
  if (!hasIndices(node) || !node.has(2) || node.node.string("reduction", "none") != "none" ||
      node.input(1).rank() == 0 || node.input(0).element != node.input(2).element)
    return std::nullopt;
  auto result = std::make_shared<HostTensor>(node.input(0));
  const HostTensor &indices = node.input(1), &updates = node.input(2);
  int64_t depth = indices.shape.back();
  if (depth > result->rank())
    return std::nullopt;
  int64_t inner = elementCount(ArrayRef(result->shape).drop_front(depth));
  int64_t tuples = elementCount(ArrayRef(indices.shape).drop_back());
  if (updates.count() != tuples * inner)
    return std::nullopt;
  for (int64_t t = 0; t < tuples; ++t) {
    auto offset = tupleOffset(ArrayRef(indices.integers).slice(t * depth, depth), result->shape);
    if (!offset)
      return std::nullopt;
    for (int64_t i = 0; i < inner; ++i)
      copyElement(updates, t * inner + i, *result, *offset + i);
  }
  return single(result);
}

static Folded foldNonZero(const FoldNode &node) {
  if (!node.has(0))
    return std::nullopt;
  const HostTensor &x = node.input(0);
  std::vector<int64_t> found;
  for (int64_t i = 0, count = x.count(); i < count; ++i)
    if (x.isReal() ? x.reals[i] != 0 : x.integers[i] != 0)
      found.push_back(i);
  int64_t columns = static_cast<int64_t>(found.size());
  auto result = makeHostTensor(Element::i64, {x.rank(), columns});
  if (!result)
    return std::nullopt;
  SmallVector<int64_t> strides = stridesOf(x.shape);
  for (int64_t d = 0; d < x.rank(); ++d)
    for (int64_t i = 0; i < columns; ++i)
      result->integers[d * columns + i] = found[i] / strides[d] % x.shape[d];
  return single(result);
}

// ---- reductions

struct ReducedShape {
  SmallVector<int64_t> kept; // the shape with reduced sizes 1
  SmallVector<int64_t> result;
  SmallVector<char> reduced;
};

static std::optional<ReducedShape> reducedShape(const FoldNode &node) {
  ReducedShape shape;
  const HostTensor &x = node.input(0);
  auto axes = node.integers(1, "axes");
  bool all = !axes || axes->empty();
  if (all && node.node.integer("noop_with_empty_axes", 0))
    return std::nullopt;
  shape.reduced.assign(x.rank(), all);
  for (int64_t axis : axes.value_or(SmallVector<int64_t>())) {
    auto normal = normalAxis(axis, x.rank());
    if (!normal)
      return std::nullopt;
    shape.reduced[*normal] = 1;
  }
  bool keep = node.node.integer("keepdims", 1);
  for (int64_t d = 0; d < x.rank(); ++d) {
    shape.kept.push_back(shape.reduced[d] ? 1 : x.shape[d]);
    if (keep || !shape.reduced[d])
      shape.result.push_back(shape.kept.back());
  }
  return shape;
}

static double initial(StringRef opType) {
  return opType == "ReduceMax"    ? -INFINITY
         : opType == "ReduceMin"  ? INFINITY
         : opType == "ReduceProd" ? 1
                                  : 0;
}

static double accumulate(StringRef opType, double total, double value) {
  return opType == "ReduceMax"    ? std::max(total, value)
         : opType == "ReduceMin"  ? std::min(total, value)
         : opType == "ReduceProd" ? total * value
                                  : total + value;
}

// Integers go through double, which is exact to 2^53; larger ones are refused.
static Folded foldReduction(const FoldNode &node) {
  if (!node.has(0) || node.input(0).count() == 0)
    return std::nullopt;
  const HostTensor &x = node.input(0);
  auto shape = reducedShape(node);
  if (!shape)
    return std::nullopt;
  StringRef opType = node.node.opType();
  auto result = makeHostTensor(x.element, shape->result);
  std::vector<double> totals(elementCount(shape->kept), initial(opType));
  SmallVector<int64_t> own = stridesOf(x.shape), kept = stridesOf(shape->kept);
  for (int64_t i = 0, count = x.count(); i < count; ++i) {
    int64_t to = 0;
    for (int64_t d = 0; d < x.rank(); ++d)
      if (!shape->reduced[d])
        to += i / own[d] % x.shape[d] * kept[d];
    totals[to] = accumulate(opType, totals[to], x.real(i));
  }
  double share = static_cast<double>(totals.size()) / static_cast<double>(x.count());
  for (size_t i = 0; i < totals.size(); ++i) {
    double value = opType == "ReduceMean" ? totals[i] * share : totals[i];
    if (x.isReal())
      result->setReal(i, value);
    else if (std::fabs(value) > 9007199254740992.0)
      return std::nullopt;
    else
      result->integers[i] = static_cast<int64_t>(value);
  }
  return single(result);
}

static Folded foldCumSum(const FoldNode &node) {
  if (!hasIndices(node) || node.input(1).count() != 1)
    return std::nullopt;
  auto axis = normalAxis(node.input(1).integers[0], node.input(0).rank());
  if (!axis)
    return std::nullopt;
  auto result = std::make_shared<HostTensor>(node.input(0));
  bool exclusive = node.node.integer("exclusive", 0), backwards = node.node.integer("reverse", 0);
  int64_t size = result->shape[*axis];
  int64_t inner = elementCount(ArrayRef(result->shape).drop_front(*axis + 1));
  for (int64_t start = 0, count = result->count(); start < count; ++start) {
    if (start / inner % size) // not the first of its line
      continue;
    double real = 0;
    int64_t integer = 0;
    for (int64_t step = 0; step < size; ++step) {
      int64_t i = start + (backwards ? size - 1 - step : step) * inner;
      if (result->isReal()) {
        double value = result->reals[i];
        result->setReal(i, exclusive ? real : real + value);
        real += value;
      } else {
        int64_t value = result->integers[i];
        result->integers[i] = exclusive ? integer : integer + value;
        integer += value;
      }
    }
  }
  return single(result);
}

// Plain matrix products, as in rotary tables (frequencies times positions).
static Folded foldMatMul(const FoldNode &node) {
  if (!node.has(0) || !node.has(1) || !node.input(0).isReal() || node.input(0).rank() < 2 ||
      node.input(0).rank() != node.input(1).rank())
    return std::nullopt;
  const HostTensor &a = node.input(0), &b = node.input(1);
  int64_t rank = a.rank(), rows = a.shape[rank - 2], inner = a.shape[rank - 1],
          columns = b.shape[rank - 1];
  ArrayRef<int64_t> batch = ArrayRef(a.shape).drop_back(2);
  if (batch != ArrayRef(b.shape).drop_back(2) || b.shape[rank - 2] != inner ||
      a.element != b.element)
    return std::nullopt;
  SmallVector<int64_t> shape(a.shape);
  shape.back() = columns;
  auto result = makeHostTensor(a.element, shape);
  if (!result || elementCount(shape) * inner > kLargestHostTensor)
    return std::nullopt;
  for (int64_t i = 0, count = result->count(); i < count; ++i) {
    int64_t matrix = i / columns / rows, row = i / columns % rows, column = i % columns;
    double total = 0;
    for (int64_t k = 0; k < inner; ++k)
      total += a.reals[(matrix * rows + row) * inner + k] *
               b.reals[(matrix * inner + k) * columns + column];
    result->setReal(i, total);
  }
  return single(result);
}

static FoldRegistration gather({"Gather"}, foldGather);
static FoldRegistration gatherElements({"GatherElements"}, foldGatherElements);
static FoldRegistration gatherNd({"GatherND"}, foldGatherNd);
static FoldRegistration scatterNd({"ScatterND"}, foldScatterNd);
static FoldRegistration nonZero({"NonZero"}, foldNonZero);
static FoldRegistration
    reductions({"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"}, foldReduction);
static FoldRegistration cumSum({"CumSum"}, foldCumSum);
static FoldRegistration matMul({"MatMul"}, foldMatMul);

} // namespace trainc::reader
