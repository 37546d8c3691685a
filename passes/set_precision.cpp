// SPDX-License-Identifier: Apache-2.0
//
// set-precision: changes the element type in which the program computes.
//
// `to=f64` turns every f32 tensor into f64: parameters, constants, casts. Tests
// use it to compare with finite differences and with PyTorch in double. Known
// weakness: constants were rounded to f32 by the model file already.
//
// `to=bf16` lets matrix products, those of attention too, and convolutions read bf16 and rounds
// what they compute, `to=fp16` f16. Casts say where; all else stays f32: parameters, sums, norms,
// the softmax, losses, the optimizer. A kernel that makes or reads what a product reads or makes
// does the cast on the way, so that it is 16 bits in memory. The gradients of casts are casts, so
// products of the backward pass read as much. Products of nodes and modules that `keep` matches
// stay f32.
#include "dialects/names/node_name.h"
#include "dialects/nn/builder.h"
#include "dialects/nn/views.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/module_pass.h"
#include "passes/options/checked_pass.h"
#include "passes/options/nearest_name.h"
#include "passes/passes.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace trainc {
namespace {

/// The type for a tensor of floats of any width.
Type widened(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !isa<FloatType>(tensor.getElementType()))
    return type;
  return tensor.clone(Float64Type::get(type.getContext()));
}

void widenConstant(nn::ConstantOp constant) {
  auto elements = dyn_cast<DenseFPElementsAttr>(constant.getValue());
  if (!elements)
    return;
  constant.setValueAttr(
      elements.mapValues(Float64Type::get(constant.getContext()), [](const APFloat &value) {
        return APFloat(value.convertToDouble()).bitcastToAPInt();
      }));
}

void widen(func::FuncOp function) {
  SmallVector<Type> inputs = llvm::map_to_vector(function.getArgumentTypes(), widened);
  SmallVector<Type> results = llvm::map_to_vector(function.getResultTypes(), widened);
  function.setFunctionType(FunctionType::get(function.getContext(), inputs, results));
  for (BlockArgument argument : function.getArguments())
    argument.setType(widened(argument.getType()));
  function.getBody().walk([](Operation *op) {
    if (auto constant = dyn_cast<nn::ConstantOp>(op))
      widenConstant(constant);
    for (OpResult result : op->getResults())
      result.setType(widened(result.getType()));
  });
}

/// Rounded in front of the views that lead to it: a product follows these to what is in memory.
Value rounded(nn::Builder &builder, Value value, Type narrow) {
  Operation *view = value.getDefiningOp();
  if (!isView(view))
    return builder.cast(value, narrow);
  Value above = rounded(builder, view->getOperand(0), narrow);
  auto type = cast<RankedTensorType>(value.getType());
  IRMapping operands;
  operands.map(view->getOperand(0), above);
  Operation *copy = builder.op().clone(*view, operands);
  copy->getResult(0).setType(type.clone(narrow));
  return copy->getResult(0);
}

/// Lets a product of two tensors of f32, a convolution too, read 16 bits, and rounds what it makes.
void round(Operation *product, Type narrow) {
  OpBuilder at(product);
  for (Value operand : product->getOperands())
    if (nn::tensorType(operand).getElementType() != at.getF32Type())
      return;
  nn::Builder builder(at, product->getLoc());
  for (OpOperand &operand : product->getOpOperands())
    operand.set(rounded(builder, operand.get(), narrow));
  at.setInsertionPointAfter(product);
  Value sums = product->getResult(0);
  Value few = builder.cast(sums, narrow);
  Value result = builder.cast(few, at.getF32Type());
  sums.replaceAllUsesExcept(result, few.getDefiningOp());
}

/// A node, `h.1.mlp.act`, and the modules around it, from `h.1.mlp` to `h`.
SmallVector<StringRef> namesOf(StringRef node) {
  SmallVector<StringRef> names{node};
  while (names.back().contains('.'))
    names.push_back(names.back().rsplit('.').first);
  return names;
}

void round(nn::AttentionOp attention, Type narrow) {
  OpBuilder at(attention);
  if (attention.getQ().getType().getElementType() != at.getF32Type())
    return;
  nn::Builder builder(at, attention.getLoc());
  for (unsigned i : {0, 1, 2}) // queries, keys, values
    attention->setOperand(i, rounded(builder, attention->getOperand(i), narrow));
  TypedValue<RankedTensorType> result = attention.getResult();
  result.setType(result.getType().clone(narrow));
  at.setInsertionPointAfter(attention);
  Value wide = builder.cast(result, at.getF32Type());
  result.replaceAllUsesExcept(wide, wide.getDefiningOp());
}

struct SetPrecision : ModulePass<SetPrecision, CheckedPass> {
  SetPrecision() = default;
  SetPrecision(StringRef precision, StringRef kept) {
    to = precision.str();
    keep = kept.str();
  }

  TextOption to{*this, "to", "name", "f64",
                "element type: f32, f64, or bf16 or fp16 for what products read and make"};
  TextOption keep{*this, "keep", "pattern", "", "nodes and modules whose products stay f32"};

  static constexpr StringLiteral flag = "set-precision";
  static constexpr StringLiteral description = "change the element type of computation";

  void checkOptions(OptionReader &reader) const override {
    reader.choice("to", to, kPrecisions);
    checkPattern(reader, keep);
  }

  void runOnOperation() override {
    train::setPrecision(getOperation(), to);
    Builder types(&getContext());
    const Type narrow = llvm::StringSwitch<Type>(to)
                            .Case("bf16", types.getBF16Type())
                            .Case("fp16", types.getF16Type())
                            .Default(nullptr);
    if (to == "f64") // f32 is what the reader makes
      for (auto function : getOperation().getOps<func::FuncOp>())
        widen(function);
    if (narrow)
      roundProducts(narrow);
  }

private:
  void roundProducts(Type narrow) {
    const std::optional<name_pattern> kept = patternOf(keep);
    llvm::StringSet<> names;
    bool keepsAny = false;
    SmallVector<Operation *> products;
    getOperation().walk([&](Operation *op) {
      if (isa<nn::MatmulOp, nn::ConvolutionOp, nn::ConvolutionInputGradientOp,
              nn::ConvolutionWeightGradientOp, nn::AttentionOp>(op))
        products.push_back(op);
    });
    for (Operation *product : products) {
      const std::string node = nodeName(product->getLoc()).node;
      bool isKept = false;
      for (StringRef name : namesOf(node)) {
        names.insert(name);
        isKept |= kept && kept->matches(name);
      }
      keepsAny |= isKept;
      if (isKept)
        continue;
      if (auto attention = dyn_cast<nn::AttentionOp>(product))
        round(attention, narrow);
      else
        round(product, narrow);
    }
    if (kept && !keepsAny)
      tellOf(names);
  }

  /// A pattern that is misspelt would do nothing.
  void tellOf(const llvm::StringSet<> &names) {
    std::vector<StringRef> known(names.keys().begin(), names.keys().end());
    llvm::sort(known);
    std::vector<std::string> near = nearestNames(known, keep, 3);
    emitError(UnknownLoc::get(&getContext()))
            .append("no product is of a node or module whose name '", keep.getValue(),
                    "' matches as a whole")
            .attachNote()
        << "try: "
        << (near.empty() ? "a `name` among the nodes of plan/plan.json of an output without it"
                         : "one of " + llvm::join(near, ", "));
    signalPassFailure();
  }
};

PassRegistration<SetPrecision> setPrecisionRegistration;

} // namespace

std::unique_ptr<Pass> createSetPrecisionPass(StringRef to, StringRef kept) {
  return std::make_unique<SetPrecision>(to, kept);
}

} // namespace trainc
