// SPDX-License-Identifier: Apache-2.0
//
// nn.convolution and its two gradients, each the gradient of the other two; ONNX Conv, whose
// bias becomes an addition, and ConvTranspose, which is the gradient of an input.
#include "runtime/kernels/convolution.h"
#include "dialects/elements/element_type.h"
#include "dialects/nn/library_step.h"
#include "dialects/nn/onnx/onnx_refusal.h"
#include "dialects/nn/window.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace trainc::nn {

namespace {

enum Side { kX, kW, kY };

/// Which tensors of a convolution an operation reads, and which one it computes of them.
struct Sides {
  Side first, second, result;
};

Sides sidesOf(ConvolutionOp) { return {kX, kW, kY}; }
Sides sidesOf(ConvolutionInputGradientOp) { return {kY, kW, kX}; }
Sides sidesOf(ConvolutionWeightGradientOp) { return {kX, kY, kW}; }

/// A convolution and how its tensors belong together: each is a sum of products of the other two.
struct Geometry {
  Operation *op;
  Sides sides;
  std::array<Value, 3> tensors; // by side
  ArrayRef<int64_t> x, w, y, strides, dilations, pads;
  int64_t groups;

  template <typename Op>
  explicit Geometry(Op op)
      : op(op), sides(sidesOf(op)), strides(op.getStrides()), dilations(op.getDilations()),
        pads(op.getPads()), groups(op.getGroups()) {
    tensors[sides.first] = op->getOperand(0);
    tensors[sides.second] = op->getOperand(1);
    tensors[sides.result] = op->getResult(0);
    x = tensorType(tensors[kX]).getShape();
    w = tensorType(tensors[kW]).getShape();
    y = tensorType(tensors[kY]).getShape();
  }

  double flops() const {
    return 2.0 * static_cast<double>(computeProduct(y)) *
           static_cast<double>(computeProduct(w.drop_front()));
  }
};

/// Calls visit(x, w, y), positions in the three tensors, for every product in order of y, then w.
template <typename Visit> void forEachProduct(const Geometry &geometry, Visit visit) {
  WindowSpace space(geometry.x.drop_front(2), geometry.w.drop_front(2), geometry.y.drop_front(2),
                    geometry.strides, geometry.dilations, geometry.pads);
  int64_t channels = geometry.x[1], own = geometry.w[1], outputs = geometry.w[0];
  int64_t ofGroup = outputs / geometry.groups, taps = space.taps();
  int64_t y = 0;
  for (int64_t image = 0; image < geometry.x[0]; ++image)
    for (int64_t output = 0; output < outputs; ++output)
      for (int64_t point = 0, points = space.points(); point < points; ++point, ++y)
        for (int64_t input = 0; input < own; ++input)
          for (int64_t tap = 0; tap < taps; ++tap) {
            int64_t plane = image * channels + output / ofGroup * own + input;
            if (int64_t place = space.meeting(point, tap); place >= 0)
              visit(plane * space.inputs() + place, (output * own + input) * taps + tap, y);
          }
}

/// The type of a convolution of x with w.
template <typename Adaptor>
FailureOr<RankedTensorType> convolved(std::optional<Location> location, Adaptor op,
                                      RankedTensorType x, RankedTensorType w) {
  int64_t rank = x.getRank(), groups = op.getGroups();
  if (rank < 3 || rank > 5 || w.getRank() != rank || w.getElementType() != x.getElementType())
    return emitOptionalError(location, // convolution-c1
                             "x and w have one rank of 3 to 5 and one element type, found ", x,
                             " and ", w);
  if (failed(checkWindowNumbers(location, rank - 2, op.getStrides(), op.getDilations(),
                                op.getPads()))) // convolution-c2
    return failure();
  if (groups < 1 || groups > kLargestWindowNumber || w.getDimSize(0) % groups != 0 ||
      x.getDimSize(1) % groups != 0 || x.getDimSize(1) / groups != w.getDimSize(1))
    return emitOptionalError(location, // convolution-c3
                             "w has the channels of one of ", groups, " groups of x, found ", w,
                             " for ", x);
  SmallVector<int64_t> shape{x.getDimSize(0), w.getDimSize(0)};
  for (int64_t d = 0; d < rank - 2; ++d) {
    int64_t size = x.getDimSize(d + 2) + op.getPads()[d] + op.getPads()[d + rank - 2];
    int64_t reach = reachOf(w.getDimSize(d + 2), op.getDilations()[d]);
    if (w.getDimSize(d + 2) == 0 || reach > size)
      return emitOptionalError(location, // convolution-c4
                               "the dilated kernel fits into the padded x and has an element, "
                               "found ",
                               reach, " in ", size, " along dimension ", d + 2);
    shape.push_back((size - reach) / op.getStrides()[d] + 1);
  }
  return x.clone(shape);
}

/// A type with the first two sizes given and `sizes` after; null where these are not sizes.
RankedTensorType inSpaceOf(RankedTensorType like, int64_t first, int64_t second,
                           ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> shape{first, second};
  for (int64_t size : sizes) {
    if (size < 0)
      return nullptr;
    shape.push_back(size);
  }
  return like.clone(shape);
}

/// The tensor of a side, of the other two.
Value productFor(Side side, Builder &builder, const Geometry &like, ArrayRef<Value> tensors) {
  Value x = tensors[kX], w = tensors[kW], y = tensors[kY];
  if (side == kY)
    return builder.create<ConvolutionOp>(x, w, like.strides, like.dilations, like.pads,
                                         like.groups);
  if (side == kX)
    return builder.create<ConvolutionInputGradientOp>(y, w, like.strides, like.dilations, like.pads,
                                                      like.groups, like.x.drop_front(2));
  return builder.create<ConvolutionWeightGradientOp>(x, y, like.strides, like.dilations, like.pads,
                                                     like.groups, like.w.drop_front(2));
}

/// The gradient stands where the result stood. Gradients of bf16 operands are bf16 as those of a
/// product are.
LogicalResult gradients(const Geometry &of, Builder &builder, Value resultGradient,
                        const llvm::SmallBitVector &needed,
                        SmallVectorImpl<Value> &operandGradients) {
  Type element = tensorType(of.op->getOperand(0)).getElementType();
  std::array<Value, 3> tensors = of.tensors;
  tensors[of.sides.result] = builder.cast(resultGradient, element);
  operandGradients.assign(2, Value());
  for (auto [i, side] : llvm::enumerate(std::array{of.sides.first, of.sides.second}))
    if (needed[i])
      operandGradients[i] = builder.cast(productFor(side, builder, of, tensors), element);
  return success();
}

Tensor interpreted(const Geometry &of, ArrayRef<Tensor> operands) {
  auto [first, second, result] = of.sides;
  auto type = tensorType(of.op->getResult(0));
  std::vector<double> a = operands[0].reals(), b = operands[1].reals(),
                      totals(type.getNumElements());
  forEachProduct(of, [&, first = first, second = second, result = result](auto... places) {
    const int64_t at[] = {places...};
    totals[at[result]] += a[at[first]] * b[at[second]];
  });
  return Tensor::ofReals(type, totals);
}

/// The numbers as the runtime's functions take them.
convolution_shape forRuntime(const Geometry &geometry) {
  convolution_shape shape = {};
  llvm::copy(geometry.x, shape.input.of);
  llvm::copy(geometry.w, shape.weight.of);
  llvm::copy(geometry.y, shape.result.of);
  llvm::copy(geometry.strides, shape.strides.of);
  llvm::copy(geometry.dilations, shape.dilations.of);
  llvm::copy(geometry.pads, shape.pads.of);
  shape.groups = geometry.groups;
  return shape;
}

RankedTensorType ofSums(RankedTensorType type) {
  return type.clone(sumTypeOf(type.getElementType()));
}

/// That of a gradient, `type`, with which x convolved with w is to have the type of dy.
LogicalResult gradientType(std::optional<Location> location, RankedTensorType type,
                           FailureOr<RankedTensorType> convolved, RankedTensorType dy,
                           StringRef rule, SmallVectorImpl<Type> &types) {
  if (failed(convolved))
    return failure();
  if (!type || *convolved != dy)
    return emitOptionalError(location, rule, " has the type of dy, ", dy);
  types.push_back(ofSums(type));
  return success();
}

SmallVector<Replacement> lowerToCall(const Geometry &geometry, StepBuilder &builder) {
  StringRef function = geometry.op->getName().stripDialect();
  Value first = geometry.op->getOperand(0), second = geometry.op->getOperand(1);
  OpResult result = geometry.op->getResult(0);
  auto type = cast<RankedTensorType>(result.getType());
  convolution_shape shape = forRuntime(geometry);
  int64_t bytes = convolution_scratch_bytes(shape, elementBytes(type.getElementType()));
  if (isNarrowFloat(tensorType(first).getElementType()))
    bytes += convolution_widened_bytes(shape);
  SmallVector<Value> inputs{builder.contiguous(first), builder.contiguous(second)};
  auto call = builder.create<kernel::CallOp>(TypeRange{type}, function, "convolution",
                                             ArrayRef<int64_t>(), inputs);
  OpBuilder attributes(call.getContext());
  SmallVector<Attribute> numbers;
  for (ArrayRef<int64_t> list :
       {geometry.x, geometry.w, geometry.y, geometry.strides, geometry.dilations, geometry.pads})
    numbers.push_back(attributes.getDenseI64ArrayAttr(list));
  numbers.push_back(attributes.getI64IntegerAttr(geometry.groups));
  numbers.push_back(attributes.getI64IntegerAttr(bytes));
  call.setNumbersAttr(attributes.getArrayAttr(numbers));
  call.setFlops(APFloat(geometry.flops()));
  call.setScratchBytes(bytes);
  call.setRoundable(function == "convolution");
  return {{result, call.getOuts().front()}};
}

} // namespace

// ---- import

static const OnnxRefusal manyDimensions({"Conv", "ConvTranspose"},
                                        "more than 3 dimensions of space");

static LogicalResult checkOperands(OnnxNode &node) {
  auto x = tensorType(node.input(0)), w = tensorType(node.input(1));
  if (!isa<FloatType>(x.getElementType()) || w.getElementType() != x.getElementType())
    return node.error("the inputs do not have one float element type",
                      "insert a Cast before the node");
  if (x.getRank() < 3 || x.getRank() > 5)
    return node.error(manyDimensions.told("input 'X' has " + llvm::Twine(x.getRank() - 2) +
                                          " dimensions of space, expected 1 to 3"));
  if (w.getRank() != x.getRank())
    return node.error("input 'W' has rank " + llvm::Twine(w.getRank()) + ", expected " +
                      llvm::Twine(x.getRank()));
  auto kernel = node.integers("kernel_shape");
  if (kernel && ArrayRef(*kernel) != w.getShape().drop_front(2))
    return node.error("attribute 'kernel_shape' is not that of input 'W'");
  if (computeProduct(w.getShape().drop_front(2)) == 0)
    return node.error("input 'W' has a kernel without elements");
  return success();
}

namespace {

/// What a node says beside its tensors.
struct ReadConvolution {
  WindowAttributes window;
  int64_t groups;
};

} // namespace

static FailureOr<ReadConvolution> readConvolution(OnnxNode &node, bool isTransposed) {
  if (failed(checkOperands(node)))
    return failure();
  auto x = tensorType(node.input(0)), w = tensorType(node.input(1));
  auto window = readWindow(node, x.getRank() - 2);
  if (failed(window))
    return failure();
  int64_t groups = node.integer("group", 1), channels = x.getDimSize(1);
  if (groups < 1 || groups > kLargestWindowNumber)
    return node.error("attribute 'group' is " + llvm::Twine(groups) +
                      ", expected a positive number below 2^31");
  bool fits = isTransposed ? channels == w.getDimSize(0)
                           : channels / groups == w.getDimSize(1) && w.getDimSize(0) % groups == 0;
  if (channels % groups != 0 || !fits)
    return node.error("input 'X' has " + llvm::Twine(channels) + " channels, input 'W' " +
                      llvm::Twine(w.getDimSize(0)) + " x " + llvm::Twine(w.getDimSize(1)) +
                      ", which do not fit " + llvm::Twine(groups) + " groups");
  return ReadConvolution{*window, groups};
}

static OnnxResults withBias(OnnxNode &node, Value y) {
  if (!node.hasInput(2))
    return SmallVector<Value>{y};
  Builder &builder = node.builder();
  y = builder.named("convolved", y);
  Value bias = node.input(2);
  auto type = tensorType(y);
  if (tensorType(bias).getShape() != type.getShape().slice(1, 1) ||
      tensorType(bias).getElementType() != type.getElementType())
    return node.error("input 'B' has not one element of the inputs' type per output channel");
  return SmallVector<Value>{builder.add(y, builder.broadcast(bias, {1}, type.getShape()))};
}

static OnnxResults importConv(OnnxNode &node) {
  auto read = readConvolution(node, false);
  if (failed(read))
    return failure();
  auto &[window, groups] = *read;
  Value x = node.input(0), w = node.input(1);
  for (int64_t d = 0, space = tensorType(x).getRank() - 2; d < space; ++d) {
    int64_t size = tensorType(x).getDimSize(d + 2);
    int64_t reach = reachOf(tensorType(w).getDimSize(d + 2), window.dilations[d]);
    window.padSame(d, size, reach);
    size += window.pads[d] + window.pads[d + space];
    if (reach > size)
      return node.error("the kernel reaches over " + llvm::Twine(reach) +
                        " elements of dimension " + llvm::Twine(d + 2) + ", which has " +
                        llvm::Twine(size) + " with its pads");
  }
  return withBias(node, node.builder().create<ConvolutionOp>(x, w, window.strides, window.dilations,
                                                             window.pads, groups));
}

/// How many elements dimension `d` of space of a transposed convolution has; sets its pads.
static FailureOr<int64_t> transposedSize(OnnxNode &node, WindowAttributes &window, int64_t d,
                                         int64_t added, std::optional<int64_t> wanted) {
  auto x = tensorType(node.input(0)), w = tensorType(node.input(1));
  int64_t space = x.getRank() - 2, stride = window.strides[d], size = x.getDimSize(d + 2);
  if (added < 0 || added >= stride)
    return node.error("attribute 'output_padding' is " + llvm::Twine(added) + " along dimension " +
                      llvm::Twine(d + 2) + ", expected 0 to less than the stride " +
                      llvm::Twine(stride));
  if (size == 0)
    return node.error("input 'X' has no elements along dimension " + llvm::Twine(d + 2));
  int64_t least = (size - 1) * stride + reachOf(w.getDimSize(d + 2), window.dilations[d]);
  int64_t whole = least + added; // with its pads
  if (!wanted && window.isSame())
    wanted = size * stride;
  if (wanted)
    window.splitPads(d, whole - std::clamp<int64_t>(*wanted, 0, whole));
  int64_t cut = window.pads[d] + window.pads[d + space];
  if (!wanted && cut >= whole)
    return node.error("attribute 'pads' takes " + llvm::Twine(cut) + " elements off dimension " +
                          llvm::Twine(d + 2) + " of the output, which has " + llvm::Twine(whole) +
                          " with them",
                      "smaller pads");
  int64_t result = wanted.value_or(whole - cut);
  // After the last point that input 'X' reaches there may be less than a stride of zeros.
  if (result < 1 || result >= least + stride - cut || result < least - cut)
    return node.error("dimension " + llvm::Twine(d + 2) + " of the output cannot have " +
                      llvm::Twine(result) + " elements: input 'X' makes " + llvm::Twine(least) +
                      " of it, pads included");
  return result;
}

// x is what the convolution of the result with W would give, so what Conv calls pads is cut off
// here.
static OnnxResults importConvTranspose(OnnxNode &node) {
  auto read = readConvolution(node, true);
  if (failed(read))
    return failure();
  auto &[window, groups] = *read;
  Value x = node.input(0), w = node.input(1);
  const int64_t space = tensorType(x).getRank() - 2;
  auto added = spaceList(node, "output_padding", space, 0);
  auto given = node.integers("output_shape");
  if (failed(added))
    return failure();
  if (given && static_cast<int64_t>(given->size()) != space)
    return node.error("attribute 'output_shape' has " + llvm::Twine(given->size()) +
                      " numbers, expected " + llvm::Twine(space));
  SmallVector<int64_t> sizes;
  for (int64_t d = 0; d < space; ++d) {
    auto size = transposedSize(node, window, d, (*added)[d],
                               given ? std::optional((*given)[d]) : std::nullopt);
    if (failed(size))
      return failure();
    sizes.push_back(*size);
  }
  return withBias(node, node.builder().create<ConvolutionInputGradientOp>(
                            x, w, window.strides, window.dilations, window.pads, groups, sizes));
}

// ---- result types

LogicalResult ConvolutionOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                              Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto type = convolved(location, adaptor, tensorType(adaptor.getX()), tensorType(adaptor.getW()));
  if (failed(type))
    return failure();
  types.push_back(ofSums(*type));
  return success();
}

LogicalResult ConvolutionInputGradientOp::inferReturnTypes(MLIRContext *,
                                                           std::optional<Location> location,
                                                           Adaptor adaptor,
                                                           SmallVectorImpl<Type> &types) {
  auto dy = tensorType(adaptor.getDy()), w = tensorType(adaptor.getW());
  if (dy.getRank() < 2 || w.getRank() < 2)
    return emitOptionalError(location, "x and w have one rank of 3 to 5"); // convolution-c1
  int64_t groups = std::clamp<int64_t>(adaptor.getGroups(), 0, kLargestWindowNumber);
  auto x = inSpaceOf(dy, dy.getDimSize(0), w.getDimSize(1) * groups, adaptor.getSizes());
  auto type = x ? convolved(location, adaptor, x, w) : FailureOr<RankedTensorType>(dy);
  return gradientType(location, x, type, dy, "a convolution of the result with w", // convolution-c5
                      types);
}

LogicalResult ConvolutionWeightGradientOp::inferReturnTypes(MLIRContext *,
                                                            std::optional<Location> location,
                                                            Adaptor adaptor,
                                                            SmallVectorImpl<Type> &types) {
  auto x = tensorType(adaptor.getX()), dy = tensorType(adaptor.getDy());
  if (dy.getRank() < 2 || x.getRank() < 2)
    return emitOptionalError(location, "x and w have one rank of 3 to 5"); // convolution-c1
  int64_t groups = std::max<int64_t>(adaptor.getGroups(), 1);
  auto w = inSpaceOf(x, dy.getDimSize(1), x.getDimSize(1) / groups, adaptor.getSizes());
  auto type = w ? convolved(location, adaptor, x, w) : FailureOr<RankedTensorType>(dy);
  return gradientType(location, w, type, dy, "a convolution of x with the result", // convolution-c6
                      types);
}

// ---- what the three have in common

LogicalResult ConvolutionOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                           const llvm::SmallBitVector &needed,
                                           SmallVectorImpl<Value> &operandGradients) {
  return gradients(Geometry(*this), builder, resultGradients[0], needed, operandGradients);
}
double ConvolutionOp::flops() { return Geometry(*this).flops(); }
SmallVector<Replacement> ConvolutionOp::lowerToStep(StepBuilder &builder) {
  return lowerToCall(Geometry(*this), builder);
}
FailureOr<Tensor> ConvolutionOp::interpret(ArrayRef<Tensor> operands) {
  return interpreted(Geometry(*this), operands);
}

LogicalResult ConvolutionInputGradientOp::buildGradient(Builder &builder,
                                                        ArrayRef<Value> resultGradients,
                                                        const llvm::SmallBitVector &needed,
                                                        SmallVectorImpl<Value> &operandGradients) {
  return gradients(Geometry(*this), builder, resultGradients[0], needed, operandGradients);
}
double ConvolutionInputGradientOp::flops() { return Geometry(*this).flops(); }
SmallVector<Replacement> ConvolutionInputGradientOp::lowerToStep(StepBuilder &builder) {
  return lowerToCall(Geometry(*this), builder);
}
FailureOr<Tensor> ConvolutionInputGradientOp::interpret(ArrayRef<Tensor> operands) {
  return interpreted(Geometry(*this), operands);
}

LogicalResult ConvolutionWeightGradientOp::buildGradient(Builder &builder,
                                                         ArrayRef<Value> resultGradients,
                                                         const llvm::SmallBitVector &needed,
                                                         SmallVectorImpl<Value> &operandGradients) {
  return gradients(Geometry(*this), builder, resultGradients[0], needed, operandGradients);
}
double ConvolutionWeightGradientOp::flops() { return Geometry(*this).flops(); }
SmallVector<Replacement> ConvolutionWeightGradientOp::lowerToStep(StepBuilder &builder) {
  return lowerToCall(Geometry(*this), builder);
}
FailureOr<Tensor> ConvolutionWeightGradientOp::interpret(ArrayRef<Tensor> operands) {
  return interpreted(Geometry(*this), operands);
}

static OnnxWeight weightsOfConv(unsigned input, ArrayRef<int64_t>) {
  return input == 1 ? OnnxWeight::filter : input == 2 ? OnnxWeight::bias : OnnxWeight::none;
}

static OnnxRegistration conv("Conv", 1, importConv, weightsOfConv);
static OnnxRegistration convTranspose("ConvTranspose", 1, importConvTranspose, weightsOfConv);

} // namespace trainc::nn
