// SPDX-License-Identifier: Apache-2.0
//
// Folding of operators that make tensors or move their elements.
#include "compiler/onnx/folding.h"
#include "dialects/nn/onnx_slice.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <numeric>
#include <utility>

using namespace llvm;

namespace trainc::reader {

static Folded foldConstant(const FoldNode &node) {
  std::string why;
  if (const auto *value = node.node.attribute("value")) {
    auto bytes = tensorBytes(value->t(), why);
    return bytes ? single(hostTensor(*bytes)) : std::nullopt;
  }
  for (StringRef name : {"value_float", "value_floats"})
    if (const auto *value = node.node.attribute(name)) {
      bool one = name == "value_float";
      SmallVector<int64_t> shape;
      if (!one)
        shape.push_back(value->floats_size());
      auto result = makeHostTensor(Element::f32, shape);
      for (int i = 0; result && i < result->count(); ++i)
        result->reals[i] = one ? value->f() : value->floats(i);
      return single(result);
    }
  if (node.node.attribute("value_int"))
    return single(makeInteger(node.node.integer("value_int", 0)));
  if (auto values = node.node.integers("value_ints"))
    return single(makeIntegers(*values));
  return std::nullopt;
}

static Folded foldConstantOfShape(const FoldNode &node) {
  if (!node.has(0) || node.input(0).isReal())
    return std::nullopt;
  Constant value;
  std::string why;
  if (const auto *attribute = node.node.attribute("value")) {
    auto bytes = tensorBytes(attribute->t(), why);
    value = bytes ? hostTensor(*bytes) : nullptr;
    if (!value || value->count() != 1)
      return std::nullopt;
  } else {
    value = makeHostTensor(Element::f32, {});
  }
  auto result = makeHostTensor(value->element, node.input(0).integers);
  if (!result)
    return std::nullopt;
  if (result->isReal())
    std::fill(result->reals.begin(), result->reals.end(), value->reals[0]);
  else
    std::fill(result->integers.begin(), result->integers.end(), value->integers[0]);
  return single(result);
}

static Folded foldRange(const FoldNode &node) {
  for (unsigned i = 0; i < 3; ++i)
    if (!node.has(i) || node.input(i).count() != 1 ||
        node.input(i).element != node.input(0).element)
      return std::nullopt;
  double start = node.input(0).real(0), step = node.input(2).real(0);
  double count = std::ceil((node.input(1).real(0) - start) / step);
  if (!(count <= kLargestHostTensor))
    return std::nullopt;
  auto result = makeHostTensor(node.input(0).element, {std::max<int64_t>(count, 0)});
  for (int64_t i = 0; i < result->shape[0]; ++i)
    if (result->isReal())
      result->setReal(i, start + i * step);
    else
      result->integers[i] = node.input(0).integers[0] + i * node.input(2).integers[0];
  return single(result);
}

static Folded foldReshape(const FoldNode &node) {
  if (!node.has(0) || !node.has(1) || node.input(1).isReal())
    return std::nullopt;
  const HostTensor &x = node.input(0);
  SmallVector<int64_t> shape(node.input(1).integers.begin(), node.input(1).integers.end());
  int64_t *inferred = nullptr;
  for (auto [i, size] : enumerate(shape)) {
    if (size == 0 && !node.node.integer("allowzero", 0))
      size = i < x.shape.size() ? x.shape[i] : 0;
    if (size == -1 && std::exchange(inferred, &size))
      return std::nullopt;
  }
  if (inferred) {
    *inferred = 1;
    int64_t known = elementCount(shape);
    *inferred = known ? x.count() / known : 0;
  }
  if (elementCount(shape) != x.count())
    return std::nullopt;
  return single(reshaped(x, shape));
}

static Folded foldFlatten(const FoldNode &node) {
  if (!node.has(0))
    return std::nullopt;
  const HostTensor &x = node.input(0);
  int64_t axis = node.node.integer("axis", 1);
  axis = axis < 0 ? axis + x.rank() : axis;
  if (axis < 0 || axis > x.rank())
    return std::nullopt;
  int64_t rows = elementCount(ArrayRef(x.shape).take_front(axis));
  return single(reshaped(x, {rows, elementCount(ArrayRef(x.shape).drop_front(axis))}));
}

static Folded foldUnsqueeze(const FoldNode &node) {
  auto axes = node.integers(1, "axes");
  if (!node.has(0) || !axes)
    return std::nullopt;
  int64_t rank = node.input(0).rank() + static_cast<int64_t>(axes->size());
  SmallVector<int64_t> shape(rank, 0);
  for (int64_t axis : *axes) {
    auto normal = normalAxis(axis, rank);
    if (!normal || shape[*normal])
      return std::nullopt;
    shape[*normal] = 1;
  }
  const int64_t *next = node.input(0).shape.begin();
  SmallVector<int64_t> result;
  for (int64_t size : shape)
    result.push_back(size ? 1 : *next++);
  return single(reshaped(node.input(0), result));
}

static Folded foldSqueeze(const FoldNode &node) {
  if (!node.has(0))
    return std::nullopt;
  const HostTensor &x = node.input(0);
  SmallVector<int64_t> shape(x.shape);
  auto axes = node.integers(1, "axes");
  for (int64_t axis : axes.value_or(SmallVector<int64_t>())) {
    auto normal = normalAxis(axis, x.rank());
    if (!normal || x.shape[*normal] != 1)
      return std::nullopt;
    shape[*normal] = -1;
  }
  erase_if(shape, [&](int64_t size) { return size == (axes ? -1 : 1); });
  return single(reshaped(x, shape));
}

static Folded foldTranspose(const FoldNode &node) {
  if (!node.has(0))
    return std::nullopt;
  const HostTensor &x = node.input(0);
  SmallVector<int64_t> permutation(reverse(seq<int64_t>(0, x.rank())));
  permutation = node.node.integers("perm").value_or(permutation);
  SmallVector<int64_t> sorted(permutation), own = stridesOf(x.shape), shape, strides;
  llvm::sort(sorted);
  if (!llvm::equal(sorted, seq<int64_t>(0, x.rank())))
    return std::nullopt;
  for (int64_t axis : permutation) {
    shape.push_back(x.shape[axis]);
    strides.push_back(own[axis]);
  }
  return single(gatherStrided(x, shape, 0, strides));
}

static Folded foldExpand(const FoldNode &node) {
  if (!node.has(0) || !node.has(1) || node.input(1).isReal())
    return std::nullopt;
  auto shape = broadcastShape(node.input(0).shape, node.input(1).integers);
  if (!shape || elementCount(*shape) > kLargestHostTensor)
    return std::nullopt;
  return single(broadcastConstant(node.inputs[0], *shape));
}

// Joined along an axis: copies blocks of what follows the axis.
static Folded foldConcat(const FoldNode &node) {
  if (!all_of(node.inputs, [](const Constant &input) { return input != nullptr; }) ||
      node.inputs.empty())
    return std::nullopt;
  SmallVector<int64_t> shape(node.input(0).shape);
  auto axis = normalAxis(node.node.integer("axis", 0), shape.size());
  if (!axis)
    return std::nullopt;
  shape[*axis] = 0;
  for (const Constant &input : node.inputs) {
    SmallVector<int64_t> own(input->shape);
    if (own.size() != shape.size() || input->element != node.input(0).element)
      return std::nullopt;
    shape[*axis] += own[*axis];
    own[*axis] = shape[*axis];
    if (own != shape)
      return std::nullopt;
  }
  auto result = makeHostTensor(node.input(0).element, shape);
  if (!result)
    return std::nullopt;
  int64_t outer = elementCount(ArrayRef(shape).take_front(*axis)), at = 0;
  for (int64_t row = 0; row < outer; ++row)
    for (const Constant &input : node.inputs) {
      int64_t block = elementCount(ArrayRef(input->shape).drop_front(*axis));
      for (int64_t i = 0; i < block; ++i, ++at)
        if (result->isReal())
          result->reals[at] = input->reals[row * block + i];
        else
          result->integers[at] = input->integers[row * block + i];
    }
  return single(result);
}

static Folded foldSlice(const FoldNode &node) {
  auto starts = node.integers(1, "starts"), ends = node.integers(2, "ends");
  auto axes = node.integers(3, "axes"), steps = node.integers(4, "steps");
  if (!node.has(0) || !starts || !ends || starts->size() != ends->size() ||
      (axes && axes->size() != starts->size()) || (steps && steps->size() != starts->size()))
    return std::nullopt;
  const HostTensor &x = node.input(0);
  SmallVector<int64_t> shape(x.shape), strides = stridesOf(x.shape), own(strides);
  int64_t offset = 0;
  for (size_t i = 0; i < starts->size(); ++i) {
    auto axis = normalAxis(axes ? (*axes)[i] : i, x.rank());
    int64_t step = steps ? (*steps)[i] : 1;
    if (!axis || step == 0)
      return std::nullopt;
    nn::SliceRange range = nn::sliceRange((*starts)[i], (*ends)[i], step, x.shape[*axis]);
    shape[*axis] = range.count;
    strides[*axis] = range.count > 1 ? own[*axis] * step : 0;
    offset += range.first * own[*axis];
  }
  return single(gatherStrided(x, shape, elementCount(shape) ? offset : 0, strides));
}

static Folded foldSplit(const FoldNode &node) {
  if (!node.has(0))
    return std::nullopt;
  const HostTensor &x = node.input(0);
  auto axis = normalAxis(node.node.integer("axis", 0), x.rank());
  if (!axis)
    return std::nullopt;
  int64_t size = x.shape[*axis], parts = static_cast<int64_t>(node.node.outputs.size());
  int64_t chunk = (size + parts - 1) / parts;
  SmallVector<int64_t> sizes;
  for (int64_t i = 0; i < parts; ++i)
    sizes.push_back(std::max<int64_t>(0, std::min(chunk, size - i * chunk)));
  sizes = node.integers(1, "split").value_or(sizes);
  if (static_cast<int64_t>(sizes.size()) != parts ||
      llvm::any_of(sizes, [](int64_t s) { return s < 0; }) ||
      std::accumulate(sizes.begin(), sizes.end(), int64_t(0)) != size)
    return std::nullopt;
  std::vector<Constant> results;
  SmallVector<int64_t> strides = stridesOf(x.shape);
  int64_t at = 0;
  for (int64_t part : sizes) {
    SmallVector<int64_t> shape(x.shape);
    shape[*axis] = part;
    results.push_back(gatherStrided(x, shape, at * strides[*axis], strides));
    at += part;
  }
  return results;
}

static Folded foldTile(const FoldNode &node) {
  if (!node.has(0) || !node.has(1) || node.input(1).isReal() ||
      node.input(1).count() != node.input(0).rank())
    return std::nullopt;
  // Repetition is a broadcast of a dimension of its own before each.
  const HostTensor &x = node.input(0);
  SmallVector<int64_t> own = stridesOf(x.shape), shape, strides, joined;
  for (int64_t i = 0; i < x.rank(); ++i) {
    int64_t repeats = node.input(1).integers[i];
    shape.append({repeats, x.shape[i]});
    strides.append({0, own[i]});
    joined.push_back(repeats * x.shape[i]);
  }
  Constant result = gatherStrided(x, shape, 0, strides);
  return result ? single(reshaped(*result, joined)) : std::nullopt;
}

static Folded foldTrilu(const FoldNode &node) {
  if (!node.has(0) || node.input(0).rank() < 2 || (node.has(1) && node.input(1).count() != 1))
    return std::nullopt;
  auto result = std::make_shared<HostTensor>(node.input(0));
  int64_t k = node.has(1) ? node.input(1).integers[0] : 0;
  bool upper = node.node.integer("upper", 1);
  int64_t columns = result->shape.back(), rows = result->shape[result->rank() - 2];
  for (int64_t i = 0, count = result->count(); i < count; ++i) {
    int64_t row = i / columns % rows, column = i % columns;
    if (upper ? column - row >= k : column - row <= k)
      continue;
    if (result->isReal())
      result->reals[i] = 0;
    else
      result->integers[i] = 0;
  }
  return single(result);
}

static Folded foldEyeLike(const FoldNode &node) {
  if (!node.has(0) || node.input(0).rank() != 2)
    return std::nullopt;
  Element element = node.input(0).element;
  if (node.node.attribute("dtype"))
    element = elementOf(static_cast<int32_t>(node.node.integer("dtype", 1)));
  if (element == Element::unsupported)
    return std::nullopt;
  auto result = makeHostTensor(element, node.input(0).shape);
  int64_t columns = result->shape[1], k = node.node.integer("k", 0);
  for (int64_t i = 0, count = result->count(); i < count; ++i)
    if (i % columns - i / columns == k) {
      if (result->isReal())
        result->reals[i] = 1;
      else
        result->integers[i] = 1;
    }
  return single(result);
}

static FoldRegistration constant({"Constant"}, foldConstant);
static FoldRegistration constantOfShape({"ConstantOfShape"}, foldConstantOfShape);
static FoldRegistration range({"Range"}, foldRange);
static FoldRegistration reshape({"Reshape"}, foldReshape);
static FoldRegistration flatten({"Flatten"}, foldFlatten);
static FoldRegistration unsqueeze({"Unsqueeze"}, foldUnsqueeze);
static FoldRegistration squeeze({"Squeeze"}, foldSqueeze);
static FoldRegistration transpose({"Transpose"}, foldTranspose);
static FoldRegistration expand({"Expand"}, foldExpand);
static FoldRegistration concat({"Concat"}, foldConcat);
static FoldRegistration slice({"Slice"}, foldSlice);
static FoldRegistration split({"Split"}, foldSplit);
static FoldRegistration tile({"Tile"}, foldTile);
static FoldRegistration trilu({"Trilu"}, foldTrilu);
static FoldRegistration eyeLike({"EyeLike"}, foldEyeLike);

} // namespace trainc::reader
