// SPDX-License-Identifier: Apache-2.0
//
// kernel.matmul as a step: calls of runtime/kernels/matmul.h.
#include "dialects/elements/element_type.h"
#include "dialects/kernel/kernel.h"
#include "dialects/kernel/row_pitch.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace trainc::kernel {

LogicalResult MatmulOp::verify() {
  if (!hasEpilogue()) {
    if (getLinear() || getLinearOut() || getSum())
      return emitOpError("has an operand or result of an epilogue, but no epilogue");
    return success();
  }
  MatrixAttr c = getMatrixC();
  auto elements = [](Value value) {
    return value ? cast<RankedTensorType>(value.getType()).getNumElements() : -1;
  };
  int64_t size = getM() * getN();
  int64_t line = c.getColumnStride() == 1 ? c.getRowStride() : c.getColumnStride();
  if (getInit() || llvm::any_of(getBatch(), [](int64_t b) { return b != 1; }))
    return emitOpError("with an epilogue is one product and has no init");
  if (c.getOffset() != 0 || line != getLength() || elements(getOut()) != size)
    return emitOpError("with an epilogue has a contiguous result");
  if (getBias() && elements(getBias()) != getLength())
    return emitOpError("expects a bias of ") << getLength() << " elements";
  bool gelu = getEpilogue() == Epilogue::gelu;
  bool gradient = getEpilogue() == Epilogue::gelu_gradient;
  if (gradient != bool(getLinear()) || (getLinear() && elements(getLinear()) != size))
    return emitOpError("takes `linear`, of the result's size, for a gradient alone");
  if (getLinearOut() && (!gelu || elements(getLinearOut()) != size))
    return emitOpError("writes `linear`, of the result's size, for gelu alone");
  if (bool(getSummed()) != bool(getSum()))
    return emitOpError("expects `summed` and a result for the sum");
  int64_t length = getSummed() == Summed::a   ? getM()
                   : getSummed() == Summed::b ? getN()
                                              : getLength();
  if (getSum() && elements(getSum()) != length)
    return emitOpError("expects a sum of ") << length << " elements";
  // What cuBLASLt has.
  bool sumsResult = getSummed() == Summed::result;
  if ((getBias() && (gradient || getSummed())) || (sumsResult && !gradient) ||
      (getSummed() && !sumsResult && getEpilogue()))
    return emitOpError("combines epilogues that no library has");
  return success();
}

std::string MatmulOp::epilogueText() {
  std::string text;
  if (getBias())
    text += ", bias";
  if (auto epilogue = getEpilogue())
    text += *epilogue == Epilogue::gelu ? ", gelu" : ", gradient of gelu";
  if (auto summed = getSummed())
    text += (", sum of " + stringifySummed(*summed)).str();
  return text;
}

double MatmulOp::flopsOf(ArrayRef<int64_t> batch, int64_t m, int64_t n, int64_t k) {
  double flops = 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  for (int64_t size : batch)
    flops *= static_cast<double>(size);
  return flops;
}

// ---- epilogues, as far as cuBLASLt has them

// "Must be divisible by 8": the leading dimension of what GELU was applied to.
static constexpr int64_t linearMultiple = 8;

static bool isContiguous(Value value, MatrixAttr matrix, int64_t rows, int64_t columns) {
  bool fits = (matrix.getColumnStride() == 1 && matrix.getRowStride() == columns) ||
              (matrix.getRowStride() == 1 && matrix.getColumnStride() == rows);
  return fits && matrix.getOffset() == 0 &&
         cast<RankedTensorType>(value.getType()).getNumElements() == rows * columns;
}

static Type elementOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

/// Vectors and matrices that go into a result have its type, which is the operands'.
static bool takesAlong(MatmulOp product, Value other) {
  Type element = elementOf(product.getOut());
  return elementOf(product.getA()) == element && elementOf(other) == element;
}

/// One product with a contiguous result, not added to anything.
int64_t MatmulOp::epilogueLength() {
  bool takes = elementTypeOf(getA().getType()).hasEpilogues && !getInit() &&
               llvm::all_of(getBatch(), [](int64_t b) { return b == 1; }) && getM() > 1 &&
               getN() > 1 && isContiguous(getOut(), getMatrixC(), getM(), getN());
  return takes ? getLength() : 0;
}

/// A product like the old one with more results, in front of it.
static MatmulOp withResults(MatmulOp old, Type linear, Type sum) {
  OpBuilder builder(old);
  return builder.create<MatmulOp>(old.getLoc(), old.getOut().getType(), linear, sum, old.getA(),
                                  old.getB(), old.getInit(), old.getBias(), old.getLinear(),
                                  old.getM(), old.getN(), old.getK(), old.getBatch(),
                                  old.getMatrixA(), old.getMatrixB(), old.getMatrixC(),
                                  old.getEpilogueAttr(), old.getSummedAttr(), ArrayAttr());
}

bool MatmulOp::addBias(Value bias) {
  if (epilogueLength() == 0 || hasEpilogue() || !takesAlong(*this, bias))
    return false;
  getBiasMutable().assign(bias);
  return true;
}

EpilogueOpInterface MatmulOp::applyGelu(bool keepLinear) {
  int64_t length = epilogueLength();
  if (length == 0 || getEpilogue() || getSummed() || length % linearMultiple != 0 ||
      !takesAlong(*this, getOut()))
    return {};
  MatmulOp fused = withResults(*this, keepLinear ? getOut().getType() : Type(), Type());
  fused.setEpilogue(Epilogue::gelu);
  return fused;
}

bool MatmulOp::scaleByGeluGradient(Value linear) {
  int64_t length = epilogueLength();
  if (length == 0 || hasEpilogue() || length % linearMultiple != 0 || !takesAlong(*this, linear))
    return false;
  getLinearMutable().assign(linear);
  setEpilogue(Epilogue::gelu_gradient);
  return true;
}

SmallVector<SummableLines> MatmulOp::summableLines() {
  int64_t m = getM(), n = getN(), k = getK();
  if (epilogueLength() == 0 || getSummed() || isNarrowFloat(elementOf(getOut())))
    return {}; // a sum has the result's type, and 16 bits are too few for it
  if (getEpilogue() == Epilogue::gelu_gradient)
    return {{getOut(), getLength()}};
  SmallVector<SummableLines> lines;
  if (hasEpilogue() || k == 1)
    return lines;
  if (getMatrixB().getColumnStride() == 1 && isContiguous(getB(), getMatrixB(), k, n))
    lines.push_back({getB(), n});
  if (getMatrixA().getRowStride() == 1 && isContiguous(getA(), getMatrixA(), m, k))
    lines.push_back({getA(), m});
  return lines;
}

EpilogueOpInterface MatmulOp::addSum(SummableLines lines, Type type) {
  MatmulOp fused = withResults(*this, Type(), type);
  fused.setSummed(lines.tensor == getOut() ? Summed::result
                  : lines.tensor == getB() && lines.length == static_cast<int64_t>(getN())
                      ? Summed::b
                      : Summed::a);
  return fused;
}

// ---- the call

/// `, .batch = {2, 3}`; empty where all values say nothing.
static std::string listField(StringRef name, ArrayRef<int64_t> values, int64_t nothing) {
  if (llvm::all_of(values, [&](int64_t value) { return value == nothing; }))
    return "";
  std::string text = (", ." + name + " = {").str();
  llvm::raw_string_ostream stream(text);
  llvm::interleaveComma(values, stream);
  return text + "}";
}

static std::string matrixField(StringRef name, MatrixAttr matrix) {
  std::string text = ("." + name + " = {").str();
  if (matrix.getOffset() != 0)
    text += llvm::formatv(".offset = {0}, ", matrix.getOffset());
  text += llvm::formatv(".row_stride = {0}, .column_stride = {1}", matrix.getRowStride(),
                        matrix.getColumnStride());
  return text + listField("batch_strides", matrix.getBatchStrides(), 0) + "}";
}

static StepConstant shapeOf(MatmulOp op) {
  int64_t m = op.getM(), n = op.getN(), k = op.getK();
  return {"matmul_shape",
          llvm::formatv("product_{0}x{1}x{2}", m, n, k),
          "Matrix products [m, k] x [k, n], in elements.",
          {llvm::formatv(".m = {0}, .n = {1}, .k = {2}", m, n, k).str() +
               listField("batch", op.getBatch(), 1),
           matrixField("a", op.getMatrixA()), matrixField("b", op.getMatrixB()),
           matrixField("c", op.getMatrixC())}};
}

StepCall MatmulOp::call() {
  StepCall call{"matmul", "matmul", {shapeOf(*this), getA(), getB()}};
  auto finish = [&](StringRef function, std::initializer_list<Value> others) {
    call.function = function.str();
    for (Value other : others)
      call.arguments.push_back(other);
    return call;
  };
  if (getEpilogue() == Epilogue::gelu)
    return finish("matmul_gelu", {getBias(), getOut(), getLinearOut()});
  if (getEpilogue() == Epilogue::gelu_gradient)
    return finish("matmul_gelu_gradient", {getLinear(), getOut(), getSum()});
  if (getBias())
    return finish("matmul_bias", {getBias(), getOut()});
  if (getSum())
    return finish(getSummed() == Summed::a ? "matmul_sum_a" : "matmul_sum_b", {getOut(), getSum()});
  return finish(getInit() ? "matmul_add" : "matmul", {getOut()});
}

std::string MatmulOp::describe() {
  std::string text = llvm::formatv("matmul {0} x {1} x {2}", getM(), getN(), getK());
  int64_t batches = 1;
  for (int64_t size : getBatch())
    batches *= size;
  if (batches > 1)
    text += llvm::formatv(", {0} times", batches);
  return text + (getInit() ? ", added" : "") + epilogueText();
}

// ---- cost and memory

/// Elements of the matrices; what a batch dimension repeats counts once.
static int64_t elementsOf(MatrixAttr matrix, ArrayRef<int64_t> batch, int64_t elements) {
  for (auto [size, stride] : llvm::zip(batch, matrix.getBatchStrides()))
    elements *= stride != 0 ? size : 1;
  return elements;
}

StepCost MatmulOp::cost(SymbolTableCollection &) {
  int64_t m = getM(), n = getN(), k = getK();
  int64_t width = elementBytes(elementOf(getOut())), operands = elementBytes(elementOf(getA()));
  int64_t result = elementsOf(getMatrixC(), getBatch(), m * n);
  StepCost cost;
  cost.flops = flopsOf(getBatch(), m, n, k) + static_cast<double>(getInit() ? result : 0);
  cost.reads = {operands * elementsOf(getMatrixA(), getBatch(), m * k),
                operands * elementsOf(getMatrixB(), getBatch(), k * n)};
  if (getInit())
    cost.reads.push_back(width * result);
  for (Value operand : {getBias(), getLinear()})
    if (operand)
      cost.reads.push_back(bytesOf(operand.getType()));
  cost.writes.push_back(width * result);
  for (Value other : getResults().drop_front())
    cost.writes.push_back(bytesOf(other.getType()));
  return cost;
}

std::optional<unsigned> MatmulOp::operandTaken(unsigned) {
  return getInit() ? std::optional(2U) : std::nullopt; // after a and b
}

bool MatmulOp::accumulateInto(Value init) {
  if (getInit() || hasEpilogue())
    return false;
  getInitMutable().assign(init);
  return true;
}

bool MatmulOp::takesRowPitch(Value tensor, const RowPitch &pitch) {
  if (tensor == getOut())
    return !hasEpilogue() && !getInit() && pitch.isTaken(getMatrixC(), getBatch(), getM(), getN());
  if (llvm::is_contained({getInit(), getBias(), getLinear()}, tensor))
    return false;
  return (tensor != getA() || pitch.isTaken(getMatrixA(), getBatch(), getM(), getK())) &&
         (tensor != getB() || pitch.isTaken(getMatrixB(), getBatch(), getK(), getN()));
}

void MatmulOp::setRowPitch(Value tensor, const RowPitch &pitch) {
  if (tensor == getOut())
    setMatrixCAttr(pitch.of(getMatrixC()));
  if (tensor == getA())
    setMatrixAAttr(pitch.of(getMatrixA()));
  if (tensor == getB())
    setMatrixBAttr(pitch.of(getMatrixB()));
}

bool MatmulOp::writeRounded(Type element) {
  if (getInit() || hasEpilogue() || !isNarrowFloat(element))
    return false;
  auto type = cast<RankedTensorType>(getOut().getType());
  getOut().setType(type.clone(element));
  return true;
}

} // namespace trainc::kernel
