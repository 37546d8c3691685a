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

/// Shapes of a convolution's tensors, and how they belong together.
struct Geometry {
  ArrayRef<int64_t> x, w, y, strides, dilations, pads;
  int64_t groups;

  template <typename Op>
  Geometry(Op op, RankedTensorType x, RankedTensorType w, RankedTensorType y)
      : x(x.getShape()), w(w.getShape()), y(y.getShape()), strides(op.getStrides()),
        dilations(op.getDilations()), pads(op.getPads()), groups(op.getGroups()) {}

  double flops() const {
    return 2.0 * static_cast<double>(computeProduct(y)) *
           static_cast<double>(computeProduct(w.drop_front()));
  }
};

Geometry geometryOf(ConvolutionOp op) {
  return {op, op.getX().getType(), op.getW().getType(), op.getResult().getType()};
}
Geometry geometryOf(ConvolutionInputGradientOp op) {
  return {op, op.getResult().getType(), op.getW().getType(), op.getDy().getType()};
}
Geometry geometryOf(ConvolutionWeightGradientOp op) {
  return {op, op.getX().getType(), op.getResult().getType(), op.getDy().getType()};
}

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

template <typename Op> Value convolve(Builder &builder, Op like, Value x, Value w) {
  return builder.create<ConvolutionOp>(x, w, like.getStridesAttr(), like.getDilationsAttr(),
                                       like.getPadsAttr(), like.getGroupsAttr());
}

template <typename Op>
Value inputGradient(Builder &builder, Op like, Value dy, Value w, ArrayRef<int64_t> x) {
  return builder.create<ConvolutionInputGradientOp>(
      dy, w, like.getStridesAttr(), like.getDilationsAttr(), like.getPadsAttr(),
      like.getGroupsAttr(), builder.op().getDenseI64ArrayAttr(x.drop_front(2)));
}

template <typename Op>
Value weightGradient(Builder &builder, Op like, Value x, Value dy, ArrayRef<int64_t> w) {
  return builder.create<ConvolutionWeightGradientOp>(
      x, dy, like.getStridesAttr(), like.getDilationsAttr(), like.getPadsAttr(),
      like.getGroupsAttr(), builder.op().getDenseI64ArrayAttr(w.drop_front(2)));
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

SmallVector<Replacement> lowerToCall(StepBuilder &builder, StringRef function,
                                     const Geometry &geometry, Value first, Value second,
                                     OpResult result) {
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

static FailureOr<int64_t> groupsOf(OnnxNode &node) {
  int64_t groups = node.integer("group", 1);
  if (groups < 1 || groups > kLargestWindowNumber)
    return node.error("attribute 'group' is " + llvm::Twine(groups) +
                      ", expected a positive number below 2^31");
  return groups;
}

static FailureOr<Value> withBias(OnnxNode &node, Value y) {
  if (!node.hasInput(2))
    return y;
  Builder &builder = node.builder();
  Value bias = node.input(2);
  auto type = tensorType(y);
  if (tensorType(bias).getShape() != type.getShape().slice(1, 1) ||
      tensorType(bias).getElementType() != type.getElementType())
    return node.error("input 'B' has not one element of the inputs' type per output channel");
  return builder.add(y, builder.broadcast(bias, {1}, type.getShape()));
}

static OnnxResults importConv(OnnxNode &node) {
  if (failed(checkOperands(node)))
    return failure();
  Builder &builder = node.builder();
  Value x = node.input(0), w = node.input(1);
  auto typeX = tensorType(x), typeW = tensorType(w);
  int64_t space = typeX.getRank() - 2;
  auto attributes = readWindow(node, space);
  auto wantedGroups = groupsOf(node);
  if (failed(attributes) || failed(wantedGroups))
    return failure();
  int64_t groups = *wantedGroups;
  if (typeX.getDimSize(1) % groups != 0 || typeX.getDimSize(1) / groups != typeW.getDimSize(1) ||
      typeW.getDimSize(0) % groups != 0)
    return node.error("input 'X' has " + llvm::Twine(typeX.getDimSize(1)) +
                      " channels, input 'W' " + llvm::Twine(typeW.getDimSize(0)) + " x " +
                      llvm::Twine(typeW.getDimSize(1)) + ", which do not fit " +
                      llvm::Twine(groups) + " groups");
  for (int64_t d = 0; d < space; ++d) {
    int64_t size = typeX.getDimSize(d + 2);
    int64_t reach = reachOf(typeW.getDimSize(d + 2), attributes->dilations[d]);
    attributes->padSame(d, size, reach);
    size += attributes->pads[d] + attributes->pads[d + space];
    if (reach > size)
      return node.error("the kernel reaches over " + llvm::Twine(reach) +
                        " elements of dimension " + llvm::Twine(d + 2) + ", which has " +
                        llvm::Twine(size) + " with its pads");
  }
  Value y = builder.create<ConvolutionOp>(x, w, attributes->strides, attributes->dilations,
                                          attributes->pads, groups);
  auto result = withBias(node, node.hasInput(2) ? builder.named("convolved", y) : y);
  if (failed(result))
    return failure();
  return SmallVector<Value>{*result};
}

// x is what the convolution of the result with W would give, so what Conv calls pads is cut off
// here.
static OnnxResults importConvTranspose(OnnxNode &node) {
  if (failed(checkOperands(node)))
    return failure();
  Builder &builder = node.builder();
  Value x = node.input(0), w = node.input(1);
  auto typeX = tensorType(x), typeW = tensorType(w);
  int64_t space = typeX.getRank() - 2;
  auto attributes = readWindow(node, space);
  auto wantedGroups = groupsOf(node);
  if (failed(attributes) || failed(wantedGroups))
    return failure();
  int64_t groups = *wantedGroups;
  auto added = spaceList(node, "output_padding", space, 0);
  auto given = node.integers("output_shape");
  if (failed(added))
    return failure();
  if (given && static_cast<int64_t>(given->size()) != space)
    return node.error("attribute 'output_shape' has " + llvm::Twine(given->size()) +
                      " numbers, expected " + llvm::Twine(space));
  if (typeX.getDimSize(1) != typeW.getDimSize(0) || typeX.getDimSize(1) % groups != 0)
    return node.error("input 'X' has " + llvm::Twine(typeX.getDimSize(1)) +
                      " channels, input 'W' " + llvm::Twine(typeW.getDimSize(0)) + " x " +
                      llvm::Twine(typeW.getDimSize(1)) + ", which do not fit " +
                      llvm::Twine(groups) + " groups");
  SmallVector<int64_t> sizes;
  for (int64_t d = 0; d < space; ++d) {
    int64_t stride = attributes->strides[d], size = typeX.getDimSize(d + 2);
    if ((*added)[d] < 0 || (*added)[d] >= stride)
      return node.error("attribute 'output_padding' is " + llvm::Twine((*added)[d]) +
                        " along dimension " + llvm::Twine(d + 2) +
                        ", expected 0 to less than the stride " + llvm::Twine(stride));
    if (size == 0)
      return node.error("input 'X' has no elements along dimension " + llvm::Twine(d + 2));
    int64_t least = (size - 1) * stride + // with its pads
                    reachOf(typeW.getDimSize(d + 2), attributes->dilations[d]);
    int64_t whole = least + (*added)[d];
    std::optional<int64_t> wanted;
    if (given || attributes->isSame())
      wanted = given ? (*given)[d] : size * stride;
    if (wanted)
      attributes->splitPads(d, whole - std::clamp<int64_t>(*wanted, 0, whole));
    int64_t cut = attributes->pads[d] + attributes->pads[d + space];
    if (!wanted && cut >= whole)
      return node.error("attribute 'pads' takes " + llvm::Twine(cut) + " elements off dimension " +
                            llvm::Twine(d + 2) + " of the output, which has " + llvm::Twine(whole) +
                            " with them",
                        "smaller pads");
    sizes.push_back(wanted ? *wanted : whole - cut);
    // Behind the last point that input 'X' reaches there may be less than a stride of zeros.
    if (sizes.back() < 1 || sizes.back() >= least + stride - cut || sizes.back() < least - cut)
      return node.error("dimension " + llvm::Twine(d + 2) + " of the output cannot have " +
                        llvm::Twine(sizes.back()) + " elements: input 'X' makes " +
                        llvm::Twine(least) + " of it, pads included");
  }
  Value y = builder.create<ConvolutionInputGradientOp>(
      x, w, attributes->strides, attributes->dilations, attributes->pads, groups, sizes);
  auto result = withBias(node, node.hasInput(2) ? builder.named("convolved", y) : y);
  if (failed(result))
    return failure();
  return SmallVector<Value>{*result};
}

// ---- convolution

LogicalResult ConvolutionOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                              Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto type = convolved(location, adaptor, tensorType(adaptor.getX()), tensorType(adaptor.getW()));
  if (failed(type))
    return failure();
  types.push_back(ofSums(*type));
  return success();
}

// Gradients of bf16 operands are bf16 as those of a product are.
LogicalResult ConvolutionOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                           const llvm::SmallBitVector &needed,
                                           SmallVectorImpl<Value> &operandGradients) {
  Type element = getX().getType().getElementType();
  Value dy = builder.cast(resultGradients[0], element);
  operandGradients.assign(2, Value());
  if (needed[0])
    operandGradients[0] = builder.cast(
        inputGradient(builder, *this, dy, getW(), getX().getType().getShape()), element);
  if (needed[1])
    operandGradients[1] = builder.cast(
        weightGradient(builder, *this, getX(), dy, getW().getType().getShape()), element);
  return success();
}

double ConvolutionOp::flops() { return geometryOf(*this).flops(); }

SmallVector<Replacement> ConvolutionOp::lowerToStep(StepBuilder &builder) {
  return lowerToCall(builder, "convolution", geometryOf(*this), getX(), getW(),
                     getOperation()->getOpResult(0));
}

FailureOr<Tensor> ConvolutionOp::interpret(ArrayRef<Tensor> operands) {
  std::vector<double> x = operands[0].reals(), w = operands[1].reals(),
                      totals(getResult().getType().getNumElements());
  forEachProduct(geometryOf(*this),
                 [&](int64_t i, int64_t j, int64_t to) { totals[to] += x[i] * w[j]; });
  return Tensor::ofReals(getResult().getType(), totals);
}

// ---- the gradient of x

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
  if (failed(type))
    return failure();
  if (!x || *type != dy) // convolution-c5
    return emitOptionalError(location, "a convolution of the result with w has the type of dy, ",
                             dy);
  types.push_back(ofSums(x));
  return success();
}

LogicalResult ConvolutionInputGradientOp::buildGradient(Builder &builder,
                                                        ArrayRef<Value> resultGradients,
                                                        const llvm::SmallBitVector &needed,
                                                        SmallVectorImpl<Value> &operandGradients) {
  Type element = getDy().getType().getElementType();
  Value dx = builder.cast(resultGradients[0], element);
  operandGradients.assign(2, Value());
  if (needed[0])
    operandGradients[0] = builder.cast(convolve(builder, *this, dx, getW()), element);
  if (needed[1])
    operandGradients[1] = builder.cast(
        weightGradient(builder, *this, dx, getDy(), getW().getType().getShape()), element);
  return success();
}

double ConvolutionInputGradientOp::flops() { return geometryOf(*this).flops(); }

SmallVector<Replacement> ConvolutionInputGradientOp::lowerToStep(StepBuilder &builder) {
  return lowerToCall(builder, "convolution_input_gradient", geometryOf(*this), getDy(), getW(),
                     getOperation()->getOpResult(0));
}

FailureOr<Tensor> ConvolutionInputGradientOp::interpret(ArrayRef<Tensor> operands) {
  std::vector<double> dy = operands[0].reals(), w = operands[1].reals(),
                      totals(getResult().getType().getNumElements());
  forEachProduct(geometryOf(*this),
                 [&](int64_t to, int64_t j, int64_t k) { totals[to] += dy[k] * w[j]; });
  return Tensor::ofReals(getResult().getType(), totals);
}

// ---- the gradient of w

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
  if (failed(type))
    return failure();
  if (!w || *type != dy) // convolution-c6
    return emitOptionalError(location, "a convolution of x with the result has the type of dy, ",
                             dy);
  types.push_back(ofSums(w));
  return success();
}

LogicalResult ConvolutionWeightGradientOp::buildGradient(Builder &builder,
                                                         ArrayRef<Value> resultGradients,
                                                         const llvm::SmallBitVector &needed,
                                                         SmallVectorImpl<Value> &operandGradients) {
  Type element = getX().getType().getElementType();
  Value dw = builder.cast(resultGradients[0], element);
  operandGradients.assign(2, Value());
  if (needed[0])
    operandGradients[0] = builder.cast(
        inputGradient(builder, *this, getDy(), dw, getX().getType().getShape()), element);
  if (needed[1])
    operandGradients[1] = builder.cast(convolve(builder, *this, getX(), dw), element);
  return success();
}

double ConvolutionWeightGradientOp::flops() { return geometryOf(*this).flops(); }

SmallVector<Replacement> ConvolutionWeightGradientOp::lowerToStep(StepBuilder &builder) {
  return lowerToCall(builder, "convolution_weight_gradient", geometryOf(*this), getX(), getDy(),
                     getOperation()->getOpResult(0));
}

FailureOr<Tensor> ConvolutionWeightGradientOp::interpret(ArrayRef<Tensor> operands) {
  std::vector<double> x = operands[0].reals(), dy = operands[1].reals(),
                      totals(getResult().getType().getNumElements());
  forEachProduct(geometryOf(*this),
                 [&](int64_t i, int64_t to, int64_t k) { totals[to] += x[i] * dy[k]; });
  return Tensor::ofReals(getResult().getType(), totals);
}

static OnnxWeight weightsOfConv(unsigned input, ArrayRef<int64_t>) {
  return input == 1 ? OnnxWeight::filter : input == 2 ? OnnxWeight::bias : OnnxWeight::none;
}

static OnnxRegistration conv("Conv", 1, importConv, weightsOfConv);
static OnnxRegistration convTranspose("ConvTranspose", 1, importConvTranspose, weightsOfConv);

} // namespace trainc::nn
