// SPDX-License-Identifier: Apache-2.0
//
// fuse-epilogues: what follows a matrix product becomes part of it, as far as
// cuBLASLt can do it while the sum is still in registers.
//
// Problem: a bias, GELU, its gradient and the sum of a bias's gradient each read
// and write a whole activation for next to no arithmetic. Method: products become
// steps first (lowering/matrix_products.h), so that layouts are known; then, for
// single products with a contiguous result, an added vector becomes its bias, GELU
// in its tanh form its epilogue, a multiplication by GELU's derivative the epilogue
// of the product in front of it, and a sum over lines of that product or of an
// operand along k comes with it. The derivative is recognised by building it once
// more from GELU's own record and comparing expressions. Runs before fuse, which
// makes kernels of what is left; only for targets whose library has epilogues.
// Known weakness: additions to a residual stay kernels; GELU with the exact error
// function gets the bias alone, as the library's is the tanh form.
#include "dialects/kernel/kernel.h"
#include "dialects/names/node_name.h"
#include "dialects/nn/builder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/lowering/matrix_products.h"
#include "passes/lowering/tensor_places.h"
#include "passes/lowering/value_views.h"
#include "passes/passes.h"

using namespace mlir;

namespace trainc {
namespace {

using kernel::MatmulOp;
using planning::Sizes;

// cuBLASLt: "must be divisible by 8", the leading dimension of what GELU was applied to.
constexpr int64_t linearMultiple = 8;

bool isContiguous(Value value, kernel::MatrixAttr matrix, int64_t rows, int64_t columns) {
  bool fits = (matrix.getColumnStride() == 1 && matrix.getRowStride() == columns) ||
              (matrix.getRowStride() == 1 && matrix.getColumnStride() == rows);
  return fits && matrix.getOffset() == 0 &&
         nn::tensorType(value).getNumElements() == rows * columns;
}

/// One product in f32 with a contiguous result, not added to anything. In f64, which
/// serves tests, cuBLASLt has no epilogues.
bool takesEpilogue(MatmulOp product) {
  return nn::tensorType(product.getOut()).getElementType().isF32() && !product.getInit() &&
         llvm::all_of(product.getBatch(), [](int64_t b) { return b == 1; }) && product.getM() > 1 &&
         product.getN() > 1 &&
         isContiguous(product.getOut(), product.getMatrixC(), product.getM(), product.getN());
}

/// Users of a value's memory: through reshapes.
SmallVector<Operation *> usersThroughReshapes(Value value) {
  SmallVector<Operation *> users, open(value.getUsers());
  while (!open.empty()) {
    Operation *user = open.pop_back_val();
    if (isa<nn::ReshapeOp>(user))
      open.append(user->user_begin(), user->user_end());
    else
      users.push_back(user);
  }
  return users;
}

/// The first of the dimensions at the end which hold `elements` together; nothing
/// where no boundary lies there.
std::optional<size_t> beginOfLast(const Sizes &shape, int64_t elements) {
  int64_t covered = 1;
  size_t begin = shape.size();
  while (begin > 0 && covered < elements)
    covered *= shape[--begin];
  return covered == elements ? std::optional(begin) : std::nullopt;
}

/// The vector that `broadcast` repeats for every line of `length` elements.
Value vectorOf(nn::BroadcastOp broadcast, int64_t length) {
  Sizes from = sizesOf(broadcast.getX()), to = sizesOf(broadcast.getResult());
  auto begin = beginOfLast(to, length);
  if (!begin || planning::elementCount(from) != length)
    return Value();
  for (auto [size, dimension] : llvm::zip(from, broadcast.getDimensions()))
    if (size > 1 && (dimension < int64_t(*begin) || size != to[dimension]))
      return Value();
  Value vector = withoutReshapes(broadcast.getX());
  return isSplatConstant(vector.getDefiningOp()) ? Value() : vector;
}

/// Whether the reduction adds up lines of `length` elements each.
bool addsLines(nn::ReduceSumOp sum, int64_t length) {
  Sizes shape = sizesOf(sum.getX());
  auto begin = beginOfLast(shape, length);
  if (!begin)
    return false;
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] > 1 && llvm::is_contained(sum.getDimensions(), int64_t(d)) != (d < *begin))
      return false;
  return true;
}

/// Whether two values are equal expressions over equal values.
bool isSame(Value a, Value b, DenseMap<std::pair<Value, Value>, bool> &known) {
  if (a == b)
    return true;
  Operation *first = a.getDefiningOp(), *second = b.getDefiningOp();
  if (!first || !second || first->getName() != second->getName() ||
      first->getNumOperands() != second->getNumOperands() || a.getType() != b.getType() ||
      first->getAttrDictionary() != second->getAttrDictionary() ||
      !isa<nn::PointwiseOpInterface, nn::ConstantOp>(first))
    return false;
  auto [entry, isNew] = known.try_emplace({a, b}, true);
  if (!isNew)
    return entry->second;
  bool same = true;
  for (auto [x, y] : llvm::zip(first->getOperands(), second->getOperands()))
    same = same && isSame(x, y, known);
  return known[{a, b}] = same;
}

/// GELU's derivative at the operand of `gelu`, built from its record and erased again.
class Derivative {
public:
  explicit Derivative(nn::GeluTanhOp gelu) {
    Operation *terminator = gelu->getBlock()->getTerminator();
    Operation *before = terminator->getPrevNode();
    OpBuilder at(terminator);
    nn::Builder builder(at, gelu.getLoc());
    Value result = gelu.getResult();
    SmallVector<Value> gradients(1);
    auto differentiable = cast<nn::DifferentiableOpInterface>(gelu.getOperation());
    bool isBuilt = succeeded(
        differentiable.buildGradient(builder, {result}, llvm::SmallBitVector(1, true), gradients));
    for (Operation *op = before->getNextNode(); op != terminator; op = op->getNextNode())
      built.push_back(op);
    // The record's expression is `dy * derivative`.
    auto product = isBuilt ? gradients[0].getDefiningOp<nn::MulOp>() : nn::MulOp();
    if (product && product.getA() == result)
      derivative = product.getB();
  }
  ~Derivative() {
    for (Operation *op : llvm::reverse(built))
      op->erase();
  }
  Derivative(const Derivative &) = delete;
  Derivative &operator=(const Derivative &) = delete;

  bool matches(Value value) {
    DenseMap<std::pair<Value, Value>, bool> known;
    return derivative && isSame(value, derivative, known);
  }

private:
  SmallVector<Operation *> built;
  Value derivative;
};

class EpilogueFusion {
public:
  explicit EpilogueFusion(func::FuncOp function) : block(function.front()) {}

  void run() {
    for (MatmulOp product : products())
      fuseBias(product);
    // The derivative's expression names what GELU is applied to, so it comes first.
    SmallVector<nn::GeluTanhOp> gelus(block.getOps<nn::GeluTanhOp>());
    for (nn::GeluTanhOp gelu : gelus)
      fuseGradient(gelu);
    eraseDead(); // what is left of derivatives reads the same value
    for (MatmulOp product : products())
      fuseGelu(product);
    for (MatmulOp product : products())
      fuseSumOfOperand(product);
    readInPlace();
    eraseDead();
  }

private:
  SmallVector<MatmulOp> products() { return SmallVector<MatmulOp>(block.getOps<MatmulOp>()); }

  void eraseDead() {
    IRRewriter rewriter(block.getParentOp()->getContext());
    (void)runRegionDCE(rewriter, block.getParentOp()->getRegions());
  }

  /// Steps read positions in memory: a reshape in front of one would be a copy.
  void readInPlace() {
    for (MatmulOp product : products())
      for (OpOperand &operand : product->getOpOperands())
        operand.set(withoutReshapes(operand.get()));
  }

  void fuseBias(MatmulOp product);
  void fuseGradient(nn::GeluTanhOp gelu);
  void fuseGelu(MatmulOp product);
  void fuseSumOfOperand(MatmulOp product);
  nn::ReduceSumOp sumOfLines(Value tensor, int64_t length, MatmulOp product);
  void takeSum(MatmulOp product, nn::ReduceSumOp sum, kernel::Summed summed);

  Block &block;
};

/// `result_names` of a product: the nodes that its results are the values of.
void nameResults(MatmulOp product, ArrayRef<Attribute> names) {
  product->setAttr("result_names", ArrayAttr::get(product.getContext(), names));
}
Attribute nameAfter(Operation *op) {
  return StringAttr::get(op->getContext(), nodeName(op->getLoc()).title());
}
SmallVector<Attribute> namesOf(MatmulOp product) {
  if (auto names = product->getAttrOfType<ArrayAttr>("result_names"))
    return SmallVector<Attribute>(names.getValue());
  return {nameAfter(product)};
}

/// The same product with more results, in front of the old one.
MatmulOp withResults(MatmulOp old, Type linear, Type sum) {
  OpBuilder builder(old);
  return builder.create<MatmulOp>(old.getLoc(), old.getOut().getType(), linear, sum, old.getA(),
                                  old.getB(), old.getInit(), old.getBias(), old.getLinear(),
                                  old.getM(), old.getN(), old.getK(), old.getBatch(),
                                  old.getMatrixA(), old.getMatrixB(), old.getMatrixC(),
                                  old.getEpilogueAttr(), old.getSummedAttr(), ArrayAttr());
}

void EpilogueFusion::fuseBias(MatmulOp product) {
  if (!takesEpilogue(product) || product.hasEpilogue() || !product.getOut().hasOneUse())
    return;
  auto add = dyn_cast<nn::AddOp>(*product.getOut().getUsers().begin());
  if (!add)
    return;
  Value other = add.getA() == product.getOut() ? add.getB() : add.getA();
  auto broadcast = other.getDefiningOp<nn::BroadcastOp>();
  Value vector = broadcast ? vectorOf(broadcast, product.getLength()) : Value();
  if (!vector)
    return;
  product->moveBefore(add);
  product.getBiasMutable().assign(vector);
  nameResults(product, {nameAfter(add)});
  add.getResult().replaceAllUsesWith(product.getOut());
  add.erase();
}

void EpilogueFusion::fuseGradient(nn::GeluTanhOp gelu) {
  Derivative derivative(gelu);
  for (MatmulOp product : products()) {
    if (!takesEpilogue(product) || product.hasEpilogue() || !product.getOut().hasOneUse() ||
        product.getLength() % linearMultiple != 0)
      continue;
    auto scaled = dyn_cast<nn::MulOp>(*product.getOut().getUsers().begin());
    if (!scaled)
      continue;
    Value factor = scaled.getA() == product.getOut() ? scaled.getB() : scaled.getA();
    if (!derivative.matches(factor))
      continue;
    product->moveBefore(scaled);
    product.getLinearMutable().assign(withoutReshapes(gelu.getX()));
    product.setEpilogue(kernel::Epilogue::gelu_gradient);
    nameResults(product, {nameAfter(scaled)});
    scaled.getResult().replaceAllUsesWith(product.getOut());
    scaled.erase();
    if (auto sum = sumOfLines(product.getOut(), product.getLength(), product))
      takeSum(product, sum, kernel::Summed::result);
  }
}

void EpilogueFusion::fuseGelu(MatmulOp product) {
  if (!takesEpilogue(product) || product.getEpilogue() || product.getSummed() ||
      product.getLength() % linearMultiple != 0)
    return;
  nn::GeluTanhOp gelu;
  bool isKept = false; // somebody else reads what GELU is applied to
  for (Operation *user : usersThroughReshapes(product.getOut())) {
    auto found = dyn_cast<nn::GeluTanhOp>(user);
    if (found && !gelu)
      gelu = found;
    else
      isKept = true;
  }
  if (!gelu)
    return;
  MatmulOp fused = withResults(product, isKept ? product.getOut().getType() : Type(), Type());
  fused.setEpilogue(kernel::Epilogue::gelu);
  SmallVector<Attribute> names{nameAfter(gelu)};
  if (isKept)
    names.append(namesOf(product));
  nameResults(fused, names);
  OpBuilder builder(gelu);
  nn::Builder at(builder, gelu.getLoc());
  gelu.getResult().replaceAllUsesWith(at.reshape(fused.getOut(), sizesOf(gelu.getResult())));
  gelu.erase();
  product.getOut().replaceAllUsesWith(isKept ? fused.getLinearOut() : fused.getOut());
  product.erase();
}

/// A sum over all lines of the tensor, which the product may compute in its place.
nn::ReduceSumOp EpilogueFusion::sumOfLines(Value tensor, int64_t length, MatmulOp product) {
  for (Operation *user : usersThroughReshapes(withoutReshapes(tensor)))
    if (auto sum = dyn_cast<nn::ReduceSumOp>(user);
        sum && addsLines(sum, length) && llvm::all_of(sum->getUsers(), [&](Operation *reader) {
          return product->isBeforeInBlock(reader);
        }))
      return sum;
  return nullptr;
}

void EpilogueFusion::takeSum(MatmulOp product, nn::ReduceSumOp sum, kernel::Summed summed) {
  MatmulOp fused = withResults(product, Type(), sum.getResult().getType());
  fused.setSummed(summed);
  SmallVector<Attribute> names = namesOf(product);
  names.push_back(nameAfter(sum));
  nameResults(fused, names);
  sum.getResult().replaceAllUsesWith(fused.getSum());
  sum.erase();
  product.getOut().replaceAllUsesWith(fused.getOut());
  product.erase();
}

/// The gradient of a bias with that of the weight: both are made of the result's gradient.
void EpilogueFusion::fuseSumOfOperand(MatmulOp product) {
  int64_t m = product.getM(), n = product.getN(), k = product.getK();
  if (!takesEpilogue(product) || product.hasEpilogue() || k == 1)
    return;
  kernel::MatrixAttr a = product.getMatrixA(), b = product.getMatrixB();
  if (b.getColumnStride() == 1 && isContiguous(product.getB(), b, k, n)) {
    if (auto sum = sumOfLines(product.getB(), n, product))
      return takeSum(product, sum, kernel::Summed::b);
  }
  if (a.getRowStride() == 1 && isContiguous(product.getA(), a, m, k)) {
    if (auto sum = sumOfLines(product.getA(), m, product))
      return takeSum(product, sum, kernel::Summed::a);
  }
}

struct FuseEpilogues : PassWrapper<FuseEpilogues, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FuseEpilogues)
  StringRef getArgument() const override { return "fuse-epilogues"; }
  StringRef getDescription() const override {
    return "Make bias, GELU, its gradient and bias gradients part of matrix products";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<kernel::KernelDialect, nn::NNDialect>();
  }
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isDeclaration())
        continue;
      formMatrixProducts(function);
      EpilogueFusion(function).run();
    }
  }
};

PassRegistration<FuseEpilogues> registration;

} // namespace

std::unique_ptr<Pass> createFuseEpiloguesPass() { return std::make_unique<FuseEpilogues>(); }

} // namespace trainc
