// SPDX-License-Identifier: Apache-2.0
//
// nn.matmul; ONNX MatMul by NumPy's rules.
#include "dialects/elements/element_type.h"
#include "dialects/nn/library_step.h"
#include "dialects/nn/onnx/onnx_node.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace trainc::nn {

static SmallVector<int64_t> withMatrix(ArrayRef<int64_t> batch, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> result(batch);
  llvm::append_range(result, shape.take_back(2));
  return result;
}

// Operands of rank 2 or more; null where the batch dimensions do not broadcast.
static Value product(Builder &builder, Value a, Value b) {
  ArrayRef<int64_t> shapeA = tensorType(a).getShape(), shapeB = tensorType(b).getShape();
  if (shapeB.size() == 2 && shapeA.size() > 2) {
    // One product for all rows: so the gradient of b is one product as well.
    int64_t rows = 1;
    for (int64_t size : shapeA.drop_back())
      rows *= size;
    SmallVector<int64_t> shape(shapeA.drop_back());
    shape.push_back(shapeB.back());
    return builder.reshape(builder.matmul(builder.reshape(a, {rows, shapeA.back()}), b), shape);
  }
  auto batch = broadcastShapes(shapeA.drop_back(2), shapeB.drop_back(2));
  if (!batch)
    return nullptr;
  return builder.matmul(builder.broadcastTo(a, withMatrix(*batch, shapeA)),
                        builder.broadcastTo(b, withMatrix(*batch, shapeB)));
}

static OnnxResults importMatMul(OnnxNode &node) {
  Builder &builder = node.builder();
  Value a = node.input(0), b = node.input(1);
  auto typeA = tensorType(a), typeB = tensorType(b);
  if (typeA.getRank() < 1 || typeB.getRank() < 1)
    return node.error("an input is a scalar", "Mul in the place of MatMul");
  if (typeA.getElementType() != typeB.getElementType())
    return node.error("the inputs have different element types", "insert a Cast before the node");
  if (typeA.getRank() == 1)
    a = builder.reshape(a, {1, typeA.getDimSize(0)});
  if (typeB.getRank() == 1)
    b = builder.reshape(b, {typeB.getDimSize(0), 1});
  int64_t inner = tensorType(a).getShape().back();
  int64_t innerB = tensorType(b).getShape().take_back(2).front();
  if (inner != innerB)
    return node.error("contracted sizes " + llvm::Twine(inner) + " and " + llvm::Twine(innerB) +
                      " differ");
  Value result = product(builder, a, b);
  if (!result)
    return node.error("batch dimensions do not broadcast");
  SmallVector<int64_t> shape(tensorType(result).getShape());
  if (typeB.getRank() == 1)
    shape.pop_back();
  if (typeA.getRank() == 1)
    shape.erase(shape.end() - (typeB.getRank() == 1 ? 1 : 2));
  return SmallVector<Value>{builder.reshape(result, shape)};
}

LogicalResult MatmulOp::inferReturnTypes(MLIRContext *, std::optional<Location> location,
                                         Adaptor adaptor, SmallVectorImpl<Type> &types) {
  auto a = tensorType(adaptor.getA()), b = tensorType(adaptor.getB());
  if (a.getRank() < 2 || a.getRank() != b.getRank() || a.getElementType() != b.getElementType())
    return emitOptionalError(location, // matmul-c1
                             "operands have one rank, at least 2, and one element type, found ", a,
                             " and ", b);
  if (a.getShape().drop_back(2) != b.getShape().drop_back(2)) // matmul-c2
    return emitOptionalError(location, "batch dimensions are equal, found ", a, " and ", b);
  int64_t row = a.getRank() - 2, column = a.getRank() - 1;
  int64_t innerA = a.getDimSize(adaptor.getTransposeA() ? row : column);
  int64_t innerB = b.getDimSize(adaptor.getTransposeB() ? column : row);
  if (innerA != innerB) // matmul-c3
    return emitOptionalError(location, "contracted sizes are equal, found ", innerA, " and ",
                             innerB);
  SmallVector<int64_t> shape(a.getShape());
  shape[row] = a.getDimSize(adaptor.getTransposeA() ? column : row);
  shape[column] = b.getDimSize(adaptor.getTransposeB() ? row : column);
  types.push_back(a.clone(shape, sumTypeOf(a.getElementType())));
  return success();
}

// Transposes stay flags. The gradient of an operand of 16 bits is one: rounded here. With c = a b:
// da = dc b^T, db = a^T dc; where an operand is stored transposed, so is its gradient.
LogicalResult MatmulOp::buildGradient(Builder &builder, ArrayRef<Value> resultGradients,
                                      const llvm::SmallBitVector &needed,
                                      SmallVectorImpl<Value> &operandGradients) {
  TypedValue<RankedTensorType> a = getA(), b = getB();
  Value dc = builder.cast(resultGradients[0], a.getType().getElementType()); // what products read
  bool transposeA = getTransposeA(), transposeB = getTransposeB();
  operandGradients.assign(2, Value());
  if (needed[0])
    operandGradients[0] = transposeA ? builder.matmul(b, dc, transposeB, true)
                                     : builder.matmul(dc, b, false, !transposeB);
  if (needed[1])
    operandGradients[1] = transposeB ? builder.matmul(dc, a, true, transposeA)
                                     : builder.matmul(a, dc, !transposeA, false);
  for (Value &gradient : operandGradients)
    if (gradient)
      gradient = builder.cast(gradient, a.getType().getElementType());
  return success();
}

double MatmulOp::flops() {
  ArrayRef<int64_t> a = getA().getType().getShape(), result = getResult().getType().getShape();
  size_t row = a.size() - 2;
  return kernel::MatmulOp::flopsOf(result.drop_back(2), result[row], result[row + 1],
                                   a[getTransposeA() ? row : row + 1]);
}

SmallVector<Replacement> MatmulOp::lowerToStep(StepBuilder &builder) {
  StridedProduct product =
      builder.product(getA(), getTransposeA(), getB(), getTransposeB(), getResult());
  auto step = builder.create<kernel::MatmulOp>(
      product.result.tensor.getType(), product.a.tensor, product.b.tensor, product.m, product.n,
      product.k, product.batch, product.a.layout, product.b.layout, product.result.layout);
  return {{product.result.tensor, step.getOut()}};
}

// A row of the result at a time, so that the innermost loop walks along memory.
FailureOr<Tensor> MatmulOp::interpret(ArrayRef<Tensor> operands) {
  auto type = getResult().getType();
  int64_t rank = type.getRank(), rows = type.getDimSize(rank - 2),
          columns = type.getDimSize(rank - 1);
  int64_t inner = getA().getType().getDimSize(getTransposeA() ? rank - 2 : rank - 1);
  std::vector<double> a = operands[0].reals(), b = operands[1].reals(),
                      totals(type.getNumElements());
  int64_t rowA = getTransposeA() ? 1 : inner, innerA = getTransposeA() ? rows : 1;
  int64_t innerB = getTransposeB() ? 1 : columns, columnB = getTransposeB() ? inner : 1;
  for (int64_t matrix = 0, end = computeProduct(type.getShape().drop_back(2)); matrix < end;
       ++matrix)
    for (int64_t row = 0; row < rows; ++row) {
      double *to = totals.data() + (matrix * rows + row) * columns;
      const double *left = a.data() + matrix * rows * inner + row * rowA;
      const double *right = b.data() + matrix * inner * columns;
      for (int64_t k = 0; k < inner; ++k)
        for (int64_t column = 0; column < columns; ++column)
          to[column] += left[k * innerA] * right[k * innerB + column * columnB];
    }
  return Tensor::ofReals(type, totals);
}

static OnnxWeight weightsOfMatMul(unsigned, ArrayRef<int64_t> shape) {
  return shape.size() == 2 ? OnnxWeight::matrix : OnnxWeight::none;
}

static OnnxRegistration matmul =
    OnnxRegistration("MatMul", 1, importMatMul, weightsOfMatMul).takesFloats();

} // namespace trainc::nn
