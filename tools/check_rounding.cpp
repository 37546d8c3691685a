// SPDX-License-Identifier: Apache-2.0
#include "tools/check_rounding.h"
#include "dialects/nn/builder.h"
#include "dialects/nn/interpreter.h"
#include "dialects/nn/nn.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace trainc {
namespace {

constexpr double kUnit = std::numeric_limits<float>::epsilon(); // last place of 1, relative

bool isFloat(const nn::Tensor &tensor) { return isa<FloatType>(tensor.type().getElementType()); }

class Sampler {
public:
  /// `number` 0 evaluates exactly.
  explicit Sampler(uint64_t number)
      : interpreter(nn::kLargestFolded), state(number << 32), exact(number == 0) {}

  LogicalResult run(Block &block, nn::TensorValues &values) {
    for (Operation &op : block) {
      if (op.hasTrait<OpTrait::IsTerminator>())
        break;
      SmallVector<nn::Tensor> operands;
      for (Value operand : op.getOperands())
        operands.push_back(values.lookup(operand));
      auto computed = evaluateResults(&op, operands);
      if (failed(computed))
        return llvm::failure();
      for (auto [result, value] : llvm::zip_equal(op.getResults(), *computed))
        values[result] = value;
    }
    return success();
  }

private:
  FailureOr<nn::Tensor> evaluate(Operation *op, SmallVectorImpl<nn::Tensor> &operands) {
    if (exact)
      return interpreter.evaluate(op, operands);
    if (auto composite = dyn_cast<nn::DecomposableOpInterface>(op);
        composite && !isa<nn::InterpretedOpInterface>(op))
      return evaluateParts(composite, operands);
    if (auto pointwise = dyn_cast<nn::PointwiseOpInterface>(op)) {
      nn::Accuracy accuracy = pointwise.accuracy();
      return erring(interpreter.evaluate(op, operands), std::max(accuracy.ulp, 0.0),
                    accuracy.cancels ? ArrayRef<nn::Tensor>(operands) : ArrayRef<nn::Tensor>());
    }
    if (isa<nn::CastOp, nn::ConstantOp>(op))
      return erring(interpreter.evaluate(op, operands), 0.5, {});
    auto values = evaluateTerms(op, operands);
    if (failed(values))
      return llvm::failure();
    return values->front();
  }

  FailureOr<SmallVector<nn::Tensor>> evaluateResults(Operation *op,
                                                     SmallVectorImpl<nn::Tensor> &operands) {
    if (op->getNumResults() > 1)
      return exact ? interpreter.evaluateResults(op, operands) : evaluateTerms(op, operands);
    auto value = evaluate(op, operands);
    if (failed(value))
      return llvm::failure();
    return SmallVector<nn::Tensor>{*value};
  }

  /// Of an operation that sums as many terms as it costs per element.
  FailureOr<SmallVector<nn::Tensor>> evaluateTerms(Operation *op,
                                                   SmallVectorImpl<nn::Tensor> &operands) {
    double terms = cast<nn::CostOpInterface>(op).flops() /
                   std::max<double>(1, nn::tensorType(op->getResult(0)).getNumElements());
    if (terms == 0)
      return interpreter.evaluateResults(op, operands);
    for (nn::Tensor &operand : operands)
      operand = *erring(operand, terms / 2, {});
    auto values = interpreter.evaluateResults(op, operands);
    if (failed(values))
      return llvm::failure();
    for (nn::Tensor &value : *values)
      value = *erring(value, 0.5, {});
    return values;
  }

  FailureOr<nn::Tensor> evaluateParts(nn::DecomposableOpInterface composite,
                                      ArrayRef<nn::Tensor> operands) {
    Block parts;
    OpBuilder at(composite->getContext());
    at.setInsertionPointToEnd(&parts);
    nn::Builder builder(at, composite->getLoc());
    Value result = composite.decompose(builder).front();
    nn::TensorValues values;
    for (auto [operand, tensor] : llvm::zip_equal(composite->getOperands(), operands))
      values[operand] = tensor;
    if (failed(run(parts, values)))
      return llvm::failure();
    return values.lookup(result);
  }

  /// Each float of `value` off by up to `ulp` units of itself, or of the largest of `alike`.
  FailureOr<nn::Tensor> erring(FailureOr<nn::Tensor> value, double ulp,
                               ArrayRef<nn::Tensor> alike) {
    if (failed(value) || !isFloat(*value))
      return value;
    std::vector<double> elements = value->reals();
    for (auto [i, element] : llvm::enumerate(elements)) {
      double largest = std::abs(element);
      for (const nn::Tensor &operand : alike)
        largest = std::max(largest, std::abs(operand.real(i)));
      element += largest * ulp * kUnit * random();
    }
    return nn::Tensor::ofReals(value->type(), elements);
  }

  /// In [-1, 1), by splitmix64 (Steele et al. 2014): the streams of neighbouring samples must
  /// differ at every element.
  double random() {
    state += 0x9e3779b97f4a7c15u;
    uint64_t mixed = state;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return static_cast<double>((mixed ^ mixed >> 31) >> 11) * 0x1p-52 - 1;
  }

  nn::Interpreter interpreter;
  uint64_t state;
  bool exact;
};

FailureOr<std::vector<nn::Tensor>> evaluate(func::FuncOp function, ArrayRef<nn::Tensor> arguments,
                                            uint64_t number) {
  Block &block = function.getBody().front();
  nn::TensorValues values;
  for (auto [argument, tensor] : llvm::zip_equal(block.getArguments(), arguments))
    values[argument] = tensor;
  if (failed(Sampler(number).run(block, values)))
    return llvm::failure();
  std::vector<nn::Tensor> results;
  for (Value value : block.getTerminator()->getOperands())
    results.push_back(values.lookup(value));
  return results;
}

Type narrow(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !isa<FloatType>(tensor.getElementType()))
    return type;
  return tensor.clone(Float32Type::get(type.getContext()));
}

} // namespace

FailureOr<RoundedResults> sampleRounding(func::FuncOp function, ArrayRef<nn::Tensor> arguments,
                                         int samples) {
  FailureOr<std::vector<nn::Tensor>> exact = evaluate(function, arguments, 0);
  if (failed(exact))
    return llvm::failure();
  RoundedResults results{*exact, {}};
  for (const nn::Tensor &tensor : *exact)
    results.deviation.emplace_back(tensor.count(), 0.0);
  for (int number = 1; number <= samples; ++number) {
    FailureOr<std::vector<nn::Tensor>> sample = evaluate(function, arguments, number);
    if (failed(sample))
      return llvm::failure();
    for (auto [tensor, of, deviation] : llvm::zip(*sample, *exact, results.deviation))
      for (int64_t i = 0; i < of.count(); ++i)
        deviation[i] = std::max(deviation[i], std::abs(tensor.real(i) - of.real(i)));
  }
  return results;
}

OwningOpRef<func::FuncOp> narrowed(func::FuncOp function) {
  OwningOpRef<func::FuncOp> result = cast<func::FuncOp>(function->clone());
  (*result)->removeAttr("check.inputs");
  (*result)->removeAttr("check.results");
  SmallVector<Type> inputs = llvm::map_to_vector(function.getArgumentTypes(), narrow);
  SmallVector<Type> outputs = llvm::map_to_vector(function.getResultTypes(), narrow);
  result->setFunctionType(FunctionType::get(function.getContext(), inputs, outputs));
  for (BlockArgument argument : result->getArguments())
    argument.setType(narrow(argument.getType()));
  result->getBody().walk([](Operation *op) {
    if (auto constant = dyn_cast<nn::ConstantOp>(op);
        constant && narrow(constant.getType()) != constant.getType())
      constant.setValueAttr(nn::Tensor::ofReals(cast<RankedTensorType>(narrow(constant.getType())),
                                                nn::Tensor::of(constant.getValue()).reals())
                                .attribute());
    for (OpResult value : op->getResults())
      value.setType(narrow(value.getType()));
  });
  return result;
}

} // namespace trainc
