// SPDX-License-Identifier: Apache-2.0
//
// fuse-epilogues: what follows a matrix product becomes part of it, as far as
// cuBLASLt can do it while the sum is still in registers.
//
// Problem: a bias, GELU, its gradient and the sum of a bias's gradient each read
// and write a whole activation for next to no arithmetic. Method: form-products has
// made steps of products, so layouts are known; for single products with a
// contiguous result, an added vector becomes its bias, GELU in its tanh form its
// epilogue, a multiplication by GELU's derivative the epilogue of the product in
// front of it, and a sum over lines of that product or of an operand along k comes
// with it. The derivative is recognised by building it once more from GELU's own
// record and comparing expressions. Runs before fuse, which makes kernels of what is
// left; only for targets whose library has epilogues.
// Known weakness: additions to a residual stay kernels; GELU with the exact error
// function gets the bias alone, as the library's is the tanh form.
#include "dialects/kernel/kernel.h"
#include "dialects/names/node_name.h"
#include "dialects/nn/builder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/kernels/value_views.h"
#include "passes/module_pass.h"
#include "passes/passes.h"
#include "passes/plans/tensor_places.h"

using namespace mlir;

namespace trainc {
namespace {

using kernel::EpilogueOpInterface;
using planning::Sizes;

bool isNarrow(Value value) { return isNarrowFloat(nn::tensorType(value).getElementType()); }

/// A cast of numbers of 16 bits, which changes none of them.
bool isWidening(Operation *op) {
  auto cast = dyn_cast_or_null<nn::CastOp>(op);
  return cast && isNarrow(cast.getX()) && !isNarrow(cast.getResult());
}

/// The tensor in memory whose numbers these are.
Value inMemory(Value value) {
  value = withoutReshapes(value);
  return isWidening(value.getDefiningOp()) ? withoutReshapes(value.getDefiningOp()->getOperand(0))
                                           : value;
}

/// The only reader of a step's numbers, through what only hands them on; null where there are more.
Operation *onlyReader(Value value) {
  while (value.hasOneUse()) {
    Operation *user = *value.getUsers().begin();
    if (!isa<nn::ReshapeOp>(user) && !isWidening(user))
      return user;
    value = user->getResult(0);
  }
  return nullptr;
}

/// Erases what handed numbers on to a reader that is gone, up to where they come from.
void eraseUnread(Value value, Value from) {
  while (value != from && value.use_empty()) {
    Operation *op = value.getDefiningOp();
    value = op->getOperand(0);
    op->erase();
  }
}

/// Users of a tensor's numbers: through reshapes, and what widens them.
SmallVector<Operation *> usersThroughReshapes(Value value) {
  SmallVector<Operation *> users, open(value.getUsers());
  while (!open.empty()) {
    Operation *user = open.pop_back_val();
    if (isa<nn::ReshapeOp>(user) || isWidening(user))
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
  Value vector = inMemory(broadcast.getX());
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
    for (EpilogueOpInterface step : steps())
      fuseBias(step);
    // The derivative's expression names what GELU is applied to, so it comes first.
    SmallVector<nn::GeluTanhOp> gelus(block.getOps<nn::GeluTanhOp>());
    for (nn::GeluTanhOp gelu : gelus)
      fuseGradient(gelu);
    eraseDead(); // what is left of derivatives reads the same value
    for (EpilogueOpInterface step : steps())
      fuseGelu(step);
    for (EpilogueOpInterface step : steps())
      fuseSum(step);
    foldCasts();
    readInPlace();
    eraseDead();
  }

private:
  SmallVector<EpilogueOpInterface> steps() {
    return SmallVector<EpilogueOpInterface>(block.getOps<EpilogueOpInterface>());
  }

  void eraseDead() {
    IRRewriter rewriter(block.getParentOp()->getContext());
    (void)runRegionDCE(rewriter, block.getParentOp()->getRegions());
  }

  Value asReadBefore(Value result, Value before);
  void foldCasts();

  /// Steps read positions in memory: a reshape in front of one would be a copy.
  void readInPlace() {
    for (auto step : block.getOps<kernel::StepOpInterface>())
      for (OpOperand &operand : step->getOpOperands())
        operand.set(withoutReshapes(operand.get()));
  }

  void fuseBias(EpilogueOpInterface step);
  void fuseGradient(nn::GeluTanhOp gelu);
  void fuseGelu(EpilogueOpInterface step);
  void fuseSum(EpilogueOpInterface step);

  Block &block;
};

/// `result_names` of a step: the nodes that its results are the values of.
void nameResults(Operation *step, ArrayRef<Attribute> names) {
  step->setAttr("result_names", ArrayAttr::get(step->getContext(), names));
}
/// The step computes it besides what it computed.
void takesOn(Operation *step, Operation *other) {
  step->setLoc(jointLocation(step->getLoc(), other->getLoc()));
}
Attribute nameAfter(Operation *op) {
  return StringAttr::get(op->getContext(), nodeName(op->getLoc()).value());
}
SmallVector<Attribute> namesOf(Operation *step) {
  if (auto names = step->getAttrOfType<ArrayAttr>("result_names"))
    return SmallVector<Attribute>(names.getValue());
  return {nameAfter(step)};
}

/// A step's result in the type and shape of what it takes the place of.
Value EpilogueFusion::asReadBefore(Value result, Value before) {
  OpBuilder builder(before.getContext());
  builder.setInsertionPointAfterValue(result);
  nn::Builder at(builder, before.getLoc());
  if (isNarrow(result))
    result = at.cast(result, nn::tensorType(before).getElementType());
  return at.reshape(result, sizesOf(before));
}

/// Numbers that were widened are not rounded once more where they are in memory.
void EpilogueFusion::foldCasts() {
  for (nn::CastOp cast : SmallVector<nn::CastOp>(block.getOps<nn::CastOp>())) {
    Value before = inMemory(cast.getX());
    if (!isNarrow(cast.getResult()) ||
        nn::tensorType(before).getElementType() != cast.getType().getElementType())
      continue;
    OpBuilder builder(cast);
    nn::Builder at(builder, cast.getLoc());
    cast.getResult().replaceAllUsesWith(at.reshape(before, sizesOf(cast.getResult())));
  }
}

void EpilogueFusion::fuseBias(EpilogueOpInterface step) {
  Value result = step->getResult(0);
  int64_t length = step.epilogueLength();
  auto add = length == 0 ? nn::AddOp() : dyn_cast_or_null<nn::AddOp>(onlyReader(result));
  if (!add)
    return;
  const bool isFirst = inMemory(add.getA()) == result;
  Value read = isFirst ? add.getA() : add.getB(), other = isFirst ? add.getB() : add.getA();
  auto broadcast = other.getDefiningOp<nn::BroadcastOp>();
  Value vector = broadcast ? vectorOf(broadcast, length) : Value();
  if (!vector || !step.addBias(vector))
    return;
  step->moveBefore(add);
  nameResults(step, {nameAfter(add)});
  takesOn(step, add);
  add.getResult().replaceAllUsesWith(asReadBefore(result, add.getResult()));
  add.erase();
  eraseUnread(read, result);
}

void EpilogueFusion::fuseGradient(nn::GeluTanhOp gelu) {
  Derivative derivative(gelu);
  for (EpilogueOpInterface step : steps()) {
    Value result = step->getResult(0);
    auto scaled =
        step.epilogueLength() == 0 ? nn::MulOp() : dyn_cast_or_null<nn::MulOp>(onlyReader(result));
    if (!scaled)
      continue;
    const bool isFirst = inMemory(scaled.getA()) == result;
    Value read = isFirst ? scaled.getA() : scaled.getB(),
          factor = isFirst ? scaled.getB() : scaled.getA();
    if (!derivative.matches(factor) || !step.scaleByGeluGradient(inMemory(gelu.getX())))
      continue;
    step->moveBefore(scaled);
    nameResults(step, {nameAfter(scaled)});
    takesOn(step, scaled);
    scaled.getResult().replaceAllUsesWith(asReadBefore(result, scaled.getResult()));
    scaled.erase();
    eraseUnread(read, result);
    fuseSum(step);
  }
}

void EpilogueFusion::fuseGelu(EpilogueOpInterface step) {
  nn::GeluTanhOp gelu;
  Value result = step->getResult(0);
  bool isKept = false; // somebody else reads what GELU is applied to
  for (Operation *user : usersThroughReshapes(result)) {
    auto found = dyn_cast<nn::GeluTanhOp>(user);
    if (found && !gelu)
      gelu = found;
    else
      isKept = true;
  }
  EpilogueOpInterface fused = gelu ? step.applyGelu(isKept) : EpilogueOpInterface();
  if (!fused)
    return;
  SmallVector<Attribute> names{nameAfter(gelu)};
  if (isKept)
    names.append(namesOf(step));
  nameResults(fused, names);
  takesOn(fused, gelu);
  gelu.getResult().replaceAllUsesWith(asReadBefore(fused->getResult(0), gelu.getResult()));
  gelu.erase();
  result.replaceAllUsesWith(fused->getResult(isKept ? 1 : 0));
  step.erase();
}

/// A sum over all lines of the tensor, which the step may compute in its place. Of a tensor that
/// was rounded for products that is the sum of the rounded numbers, as PyTorch has it.
nn::ReduceSumOp sumOfLines(const kernel::SummableLines &lines, Operation *step) {
  Value tensor = withoutReshapes(lines.tensor);
  SmallVector<Operation *> users = usersThroughReshapes(tensor);
  if (auto rounded = tensor.getDefiningOp<nn::CastOp>(); rounded && isNarrow(tensor))
    users.append(usersThroughReshapes(withoutReshapes(rounded.getX())));
  for (Operation *user : users)
    if (auto sum = dyn_cast<nn::ReduceSumOp>(user);
        sum && addsLines(sum, lines.length) &&
        llvm::all_of(sum->getUsers(),
                     [&](Operation *reader) { return step->isBeforeInBlock(reader); }))
      return sum;
  return nullptr;
}

/// The gradient of a bias with that of the weight: both are made of the result's gradient.
void EpilogueFusion::fuseSum(EpilogueOpInterface step) {
  for (const kernel::SummableLines &lines : step.summableLines()) {
    nn::ReduceSumOp sum = sumOfLines(lines, step);
    if (!sum)
      continue;
    EpilogueOpInterface fused = step.addSum(lines, sum.getResult().getType());
    SmallVector<Attribute> names = namesOf(step);
    names.push_back(nameAfter(sum));
    nameResults(fused, names);
    takesOn(fused, sum);
    sum.getResult().replaceAllUsesWith(fused->getResults().back());
    sum.erase();
    step->getResult(0).replaceAllUsesWith(fused->getResult(0));
    step.erase();
    return;
  }
}

struct FuseEpilogues : ModulePass<FuseEpilogues> {
  static constexpr StringLiteral flag = "fuse-epilogues";
  static constexpr StringLiteral description =
      "Make bias, GELU, its gradient and bias gradients part of matrix products";

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isDeclaration())
        continue;
      EpilogueFusion(function).run();
    }
  }
};

PassRegistration<FuseEpilogues> fuseEpiloguesRegistration;

} // namespace

std::unique_ptr<Pass> createFuseEpiloguesPass() { return std::make_unique<FuseEpilogues>(); }

} // namespace trainc
