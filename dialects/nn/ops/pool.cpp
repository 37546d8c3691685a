// SPDX-License-Identifier: Apache-2.0
//
// nn.max_pool and nn.sum_pool with their gradients; ONNX MaxPool and GlobalMaxPool. Pools of means
// and norms are compositions.
//
// The gradient of a largest element looks for it again, in x: that reads what it would otherwise
// have to keep, positions of four bytes or more for each element of the result.
#include "dialects/nn/pool.h"
#include "dialects/nn/library_step.h"
#include "dialects/nn/onnx/onnx_refusal.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace trainc::nn {

static const OnnxRefusal emptyWindows({"MaxPool"}, "windows of pads alone");
static const OnnxRefusal moreDimensions({"MaxPool", "AveragePool", "LpPool", "GlobalMaxPool"},
                                        "more than 3 dimensions of space");

namespace {

template <typename Op> WindowSpace spaceOf(Op op, RankedTensorType x, RankedTensorType y) {
  return {x.getShape().drop_front(2), op.getKernel(), y.getShape().drop_front(2), op.getStrides(),
          op.getDilations(),          op.getPads()};
}
WindowSpace spaceOf(MaxPoolOp op) {
  return spaceOf(op, op.getX().getType(), op.getResult().getType());
}
WindowSpace spaceOf(MaxPoolGradientOp op) {
  return spaceOf(op, op.getX().getType(), op.getDy().getType());
}
WindowSpace spaceOf(SumPoolOp op) {
  return spaceOf(op, op.getX().getType(), op.getResult().getType());
}
WindowSpace spaceOf(SumPoolGradientOp op) {
  return spaceOf(op, op.getResult().getType(), op.getDy().getType());
}

/// Batches of channels: as many as there are windows at each point.
int64_t planesOf(RankedTensorType type) { return type.getDimSize(0) * type.getDimSize(1); }

/// The type of a pool of x.
template <typename Adaptor>
FailureOr<RankedTensorType> pooled(std::optional<Location> location, Adaptor op,
                                   RankedTensorType x) {
  int64_t rank = x.getRank(), space = rank - 2;
  ArrayRef<int64_t> kernel = op.getKernel(), pads = op.getPads();
  if (rank < 3 || rank > 5 || static_cast<int64_t>(kernel.size()) != space ||
      llvm::any_of(kernel, [](int64_t size) { return size < 1 || size > kLargestWindowNumber; }))
    return emitOptionalError(location, // pool-c1
                             "the rank is 3 to 5 and the kernel has one positive number per "
                             "dimension of space, found a kernel of ",
                             kernel.size(), " for ", x);
  if (failed(checkWindowNumbers(location, space, op.getStrides(), op.getDilations(),
                                pads))) // pool-c2
    return failure();
  SmallVector<int64_t> shape(x.getShape().take_front(2));
  for (int64_t d = 0; d < space; ++d) {
    int64_t size = x.getDimSize(d + 2) + pads[d] + pads[d + space];
    int64_t reach = reachOf(kernel[d], op.getDilations()[d]);
    if (reach > size)
      return emitOptionalError(location, // pool-c3
                               "the dilated kernel fits into the padded input, found ", reach,
                               " in ", size, " along dimension ", d + 2);
    shape.push_back((size - reach) / op.getStrides()[d] + 1);
  }
  return x.clone(shape);
}

/// Windows along one dimension, which has `size` elements after `before` pads.
struct WindowRow {
  int64_t kernel, stride, dilation, before, size, points;

  bool meets(int64_t point) const {
    int64_t outside = std::max<int64_t>(0, before - point * stride);
    int64_t tap = (outside + dilation - 1) / dilation; // the first that is not before the input
    return tap < kernel && point * stride + tap * dilation - before < size;
  }
};

/// Whether every one meets an element.
bool allMeetElements(const WindowRow &row) {
  for (int64_t point = 0; point < row.points && point * row.stride < row.before; ++point)
    if (!row.meets(point))
      return false;
  return row.meets(row.points - 1);
}

template <typename Adaptor>
FailureOr<RankedTensorType> maxPooled(std::optional<Location> location, Adaptor op,
                                      RankedTensorType x) {
  auto type = pooled(location, op, x);
  if (failed(type))
    return failure();
  for (int64_t d = 0; d < x.getRank() - 2; ++d)
    if (!allMeetElements({op.getKernel()[d], op.getStrides()[d], op.getDilations()[d],
                          op.getPads()[d], x.getDimSize(d + 2),
                          type->getDimSize(d + 2)})) // pool-c4
      return emitOptionalError(location,
                               "every window of a largest element has an element, found one with "
                               "pads alone along dimension ",
                               d + 2);
  return type;
}

/// For each window the position in x of its largest element.
std::vector<int64_t> largestPlaces(const WindowSpace &space, int64_t planes, const Tensor &x) {
  std::vector<double> values = x.reals();
  std::vector<int64_t> places;
  for (int64_t plane = 0; plane < planes; ++plane)
    for (int64_t point = 0; point < space.points(); ++point) {
      int64_t best = -1;
      for (int64_t tap = 0; tap < space.taps(); ++tap) {
        int64_t at = space.meeting(point, tap);
        if (at < 0)
          continue;
        at += plane * space.inputs();
        if (best < 0 || values[at] > values[best] || std::isnan(values[at]))
          best = at;
      }
      places.push_back(best);
    }
  return places;
}

template <typename Op>
SmallVector<Replacement> lowerToCall(StepBuilder &builder, StringRef function, Op op,
                                     ValueRange operands) {
  OpResult result = op->getOpResult(0);
  SmallVector<Value> inputs;
  for (Value operand : operands)
    inputs.push_back(builder.contiguous(operand));
  auto call = builder.create<kernel::CallOp>(TypeRange{result.getType()}, function, "pool",
                                             ArrayRef<int64_t>(), inputs);
  WindowSpace space = spaceOf(op);
  OpBuilder attributes(call.getContext());
  SmallVector<Attribute> numbers{
      attributes.getI64IntegerAttr(planesOf(cast<RankedTensorType>(result.getType())))};
  for (const auto &list :
       {space.input, space.kernel, space.result, space.strides, space.dilations, space.before})
    numbers.push_back(attributes.getDenseI64ArrayAttr(list));
  call.setNumbersAttr(attributes.getArrayAttr(numbers));
  call.setFlops(APFloat(op.flops()));
  return {{result, call.getOuts().front()}};
}

template <typename Op> double flopsOf(Op op) {
  WindowSpace space = spaceOf(op);
  auto type = cast<RankedTensorType>(op.getResult().getType());
  return static_cast<double>(planesOf(type)) * static_cast<double>(space.points()) *
         static_cast<double>(space.taps());
}

} // namespace

Value maxPool(Builder &builder, Value x, Value values, const WindowPool &pool) {
  const WindowAttributes &windows = pool.windows;
  return builder.create<MaxPoolOp>(x, values, pool.kernel, windows.strides, windows.dilations,
                                   windows.pads);
}

Value sumPool(Builder &builder, Value x, const WindowPool &pool) {
  const WindowAttributes &windows = pool.windows;
  return builder.create<SumPoolOp>(x, pool.kernel, windows.strides, windows.dilations,
                                   windows.pads);
}

// ---- import

static LogicalResult checkPooled(OnnxNode &node) {
  auto type = tensorType(node.input(0));
  int64_t space = type.getRank() - 2;
  if (space < 1 || space > 3)
    return node.error(moreDimensions.told("input 'X' has " + llvm::Twine(space) +
                                          " dimensions of space, expected 1 to 3"));
  return success();
}

/// Pads for windows along dimension `d` of space, of `size` elements.
static LogicalResult padDimension(OnnxNode &node, WindowPool &pool, int64_t d, int64_t size) {
  int64_t space = pool.kernel.size(), stride = pool.windows.strides[d];
  int64_t reach = reachOf(pool.kernel[d], pool.windows.dilations[d]);
  pool.windows.padSame(d, size, reach);
  int64_t before = pool.windows.pads[d], &behind = pool.windows.pads[d + space];
  int64_t padded = size + before + behind;
  pool.counted.push_back(padded);
  if (reach > padded)
    return node.error("the kernel reaches over " + llvm::Twine(reach) + " elements of dimension " +
                      llvm::Twine(d + 2) + ", which has " + llvm::Twine(padded) + " with its pads");
  // One more window for what is left, unless it would begin after the input.
  int64_t points = (padded - reach) / stride + 1;
  if (node.integer("ceil_mode", 0) && (padded - reach) % stride != 0 &&
      points * stride < size + before)
    behind += points * stride + reach - padded;
  return success();
}

FailureOr<WindowPool> readPool(OnnxNode &node) {
  auto type = tensorType(node.input(0));
  int64_t space = type.getRank() - 2;
  if (failed(checkPooled(node)))
    return failure();
  auto kernel = node.integers("kernel_shape");
  if (!kernel || static_cast<int64_t>(kernel->size()) != space ||
      llvm::any_of(*kernel, [](int64_t size) { return size < 1 || size > kLargestWindowNumber; }))
    return node.error("attribute 'kernel_shape' is not one positive number for each of " +
                      llvm::Twine(space) + " dimensions of space");
  auto windows = readWindow(node, space);
  if (failed(windows))
    return failure();
  WindowPool pool{*kernel, *windows, {}};
  for (int64_t d = 0; d < space; ++d)
    if (failed(padDimension(node, pool, d, type.getDimSize(d + 2))))
      return failure();
  return pool;
}

FailureOr<WindowPool> globalPool(OnnxNode &node) {
  if (failed(checkPooled(node)))
    return failure();
  SmallVector<int64_t> kernel(tensorType(node.input(0)).getShape().drop_front(2));
  SmallVector<int64_t> ones(kernel.size(), 1), pads(2 * kernel.size(), 0);
  return WindowPool{kernel, {ones, ones, pads, "NOTSET"}, kernel};
}

// Positions in the tensor, as MaxPool counts them: with storage_order 1 the dimensions of space are
// laid out in reverse.
static Value positions(Builder &builder, RankedTensorType type, bool columnsFirst) {
  SmallVector<int64_t> shape(type.getShape()), permutation;
  for (size_t d = 0; d < shape.size(); ++d)
    permutation.push_back(columnsFirst && d >= 2 ? shape.size() + 1 - d : d);
  SmallVector<int64_t> laidOut = applyPermutation(shape, permutation);
  auto flat = RankedTensorType::get({type.getNumElements()}, builder.op().getI64Type());
  Value count = builder.reshape(builder.create<IotaOp>(flat, 0), laidOut);
  return builder.named("positions", builder.transpose(count, permutation));
}

static OnnxResults pickLargest(OnnxNode &node, FailureOr<WindowPool> pool) {
  if (failed(pool))
    return failure();
  Builder &builder = node.builder();
  Value x = node.input(0);
  const WindowAttributes &windows = pool->windows;
  for (size_t d = 0; d < pool->kernel.size(); ++d) {
    int64_t size = tensorType(x).getDimSize(d + 2), stride = windows.strides[d];
    int64_t padded = size + windows.pads[d] + windows.pads[d + pool->kernel.size()];
    int64_t points = (padded - reachOf(pool->kernel[d], windows.dilations[d])) / stride + 1;
    if (!allMeetElements(
            {pool->kernel[d], stride, windows.dilations[d], windows.pads[d], size, points}))
      return node.error(emptyWindows.told("a window along dimension " + llvm::Twine(d + 2) +
                                          " has pads alone, and so no largest element"),
                        "pads below the size of the kernel");
  }
  SmallVector<Value> results{maxPool(builder, x, x, *pool)};
  if (node.outputUsed(1)) {
    bool columnsFirst = node.integer("storage_order", 0) != 0;
    results.push_back(maxPool(builder, x, positions(builder, tensorType(x), columnsFirst), *pool));
  }
  return results;
}

static OnnxResults importMaxPool(OnnxNode &node) { return pickLargest(node, readPool(node)); }

static OnnxResults importGlobalMaxPool(OnnxNode &node) {
  return pickLargest(node, globalPool(node));
}

// ---- largest elements

LogicalResult MaxPoolOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                          Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto x = tensorType(adaptor.getX()), values = tensorType(adaptor.getValues());
  Type element = values.getElementType();
  if (x.getShape() != values.getShape() ||
      (x.getElementType() != element && !isIndexElement(element))) // pool-c5
    return emitOptionalError(location,
                             "x and values have one shape, and values are of x's type or i64; "
                             "found ",
                             x, " and ", values);
  auto type = maxPooled(location, adaptor, x);
  if (failed(type))
    return failure();
  types.push_back(values.clone(type->getShape()));
  return success();
}

// Where x is largest does not change when it changes a little.
LogicalResult MaxPoolOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                       const llvm::SmallBitVector &needed,
                                       SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(2, Value());
  if (needed[1] && isa<FloatType>(getValues().getType().getElementType()))
    operandGradients[1] = builder.create<MaxPoolGradientOp>(
        getX(), resultGradients[0], getKernel(), getStrides(), getDilations(), getPads());
  return success();
}

double MaxPoolOp::flops() { return flopsOf(*this); }

SmallVector<Replacement> MaxPoolOp::lowerToStep(StepBuilder &builder) {
  if (getX() == getValues())
    return lowerToCall(builder, "max_pool", *this, getX());
  return lowerToCall(builder, "max_pool_of", *this, {getX(), getValues()});
}

FailureOr<Tensor> MaxPoolOp::interpret(ArrayRef<Tensor> operands) {
  auto type = getResult().getType();
  std::vector<int64_t> places = largestPlaces(spaceOf(*this), planesOf(type), operands[0]);
  auto pick = [&](const auto &values, auto &results) {
    for (int64_t place : places)
      results.push_back(values[place]);
  };
  if (isa<FloatType>(type.getElementType())) {
    std::vector<double> results;
    pick(operands[1].reals(), results);
    return Tensor::ofReals(type, results);
  }
  std::vector<int64_t> results;
  pick(operands[1].integers(), results);
  return Tensor::ofIntegers(type, results);
}

LogicalResult MaxPoolGradientOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                                  Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto x = tensorType(adaptor.getX());
  auto type = maxPooled(location, adaptor, x);
  if (failed(type))
    return failure();
  if (*type != tensorType(adaptor.getDy())) // pool-c6
    return emitOptionalError(location, "dy has the type of the pool of x, ", *type);
  types.push_back(x);
  return success();
}

LogicalResult MaxPoolGradientOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                               const llvm::SmallBitVector &needed,
                                               SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign(2, Value());
  if (needed[1])
    operandGradients[1] = builder.create<MaxPoolOp>(getX(), resultGradients[0], getKernel(),
                                                    getStrides(), getDilations(), getPads());
  return success();
}

double MaxPoolGradientOp::flops() { return flopsOf(*this); }

SmallVector<Replacement> MaxPoolGradientOp::lowerToStep(StepBuilder &builder) {
  return lowerToCall(builder, "max_pool_gradient", *this, {getX(), getDy()});
}

FailureOr<Tensor> MaxPoolGradientOp::interpret(ArrayRef<Tensor> operands) {
  auto type = getResult().getType();
  std::vector<double> dy = operands[1].reals(), totals(type.getNumElements());
  for (auto [i, place] :
       llvm::enumerate(largestPlaces(spaceOf(*this), planesOf(type), operands[0])))
    totals[place] += dy[i];
  return Tensor::ofReals(type, totals);
}

// ---- sums

LogicalResult SumPoolOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                          Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto type = pooled(location, adaptor, tensorType(adaptor.getX()));
  if (failed(type))
    return failure();
  types.push_back(*type);
  return success();
}

LogicalResult SumPoolOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                       const llvm::SmallBitVector &,
                                       SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign({builder.create<SumPoolGradientOp>(
      resultGradients[0], getKernel(), getStrides(), getDilations(), getPads(),
      getX().getType().getShape().drop_front(2))});
  return success();
}

double SumPoolOp::flops() { return flopsOf(*this); }

SmallVector<Replacement> SumPoolOp::lowerToStep(StepBuilder &builder) {
  return lowerToCall(builder, "sum_pool", *this, getX());
}

FailureOr<Tensor> SumPoolOp::interpret(ArrayRef<Tensor> operands) {
  auto type = getResult().getType();
  WindowSpace space = spaceOf(*this);
  std::vector<double> x = operands[0].reals(), totals(type.getNumElements());
  for (auto [i, total] : llvm::enumerate(totals))
    for (int64_t tap = 0, points = space.points(); tap < space.taps(); ++tap)
      if (int64_t place = space.meeting(i % points, tap); place >= 0)
        total += x[i / points * space.inputs() + place];
  return Tensor::ofReals(type, totals);
}

LogicalResult SumPoolGradientOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                                  Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto dy = tensorType(adaptor.getDy());
  SmallVector<int64_t> shape(dy.getShape().take_front(2));
  bool areSizes = llvm::all_of(adaptor.getSizes(), [](int64_t size) { return size >= 0; });
  llvm::append_range(shape, adaptor.getSizes());
  auto type = areSizes ? pooled(location, adaptor, dy.clone(shape)) : RankedTensorType();
  if (failed(type))
    return failure();
  if (!*type || *type != dy) // pool-c7
    return emitOptionalError(location, "the pool of the result has the type of dy, ", dy);
  types.push_back(dy.clone(shape));
  return success();
}

LogicalResult SumPoolGradientOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                               const llvm::SmallBitVector &,
                                               SmallVectorImpl<Value> &operandGradients) {
  operandGradients.assign({builder.create<SumPoolOp>(resultGradients[0], getKernel(), getStrides(),
                                                     getDilations(), getPads())});
  return success();
}

double SumPoolGradientOp::flops() { return flopsOf(*this); }

SmallVector<Replacement> SumPoolGradientOp::lowerToStep(StepBuilder &builder) {
  return lowerToCall(builder, "sum_pool_gradient", *this, getDy());
}

FailureOr<Tensor> SumPoolGradientOp::interpret(ArrayRef<Tensor> operands) {
  auto type = getResult().getType();
  WindowSpace space = spaceOf(*this);
  std::vector<double> dy = operands[0].reals(), totals(type.getNumElements());
  for (auto [i, value] : llvm::enumerate(dy))
    for (int64_t tap = 0, points = space.points(); tap < space.taps(); ++tap)
      if (int64_t place = space.meeting(i % points, tap); place >= 0)
        totals[i / points * space.inputs() + place] += value;
  return Tensor::ofReals(type, totals);
}

static OnnxRegistration poolRegistration =
    OnnxRegistration("MaxPool", 1, importMaxPool).takesFloats();
static OnnxRegistration globalMaxPool =
    OnnxRegistration("GlobalMaxPool", 1, importGlobalMaxPool).takesFloats();

} // namespace trainc::nn
