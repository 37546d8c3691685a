// SPDX-License-Identifier: Apache-2.0
//
// set-precision: changes the element type in which the program computes.
//
// `to=f64` turns every f32 tensor into f64: parameters, constants, casts. Tests
// use it to compare with finite differences and with PyTorch in double. Known
// weakness: constants were rounded to f32 by the model file already.
//
// `to=bf16` lets matrix products, those of attention too, read bf16 and rounds what they compute.
// Casts say where; all else stays f32: parameters, sums, norms, the softmax, losses, the optimizer.
// A kernel that makes or reads what a product reads or makes does the cast on the way, so that it
// is 16 bits in memory. The gradients of casts are casts, so products of the backward pass read
// bf16 too.
#include "dialects/nn/builder.h"
#include "dialects/nn/views.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/options/checked_pass.h"
#include "passes/passes.h"

using namespace mlir;

namespace trainc {
namespace {

/// Of a tensor of floats, whatever their type.
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
Value rounded(nn::Builder &builder, Value value) {
  Operation *view = value.getDefiningOp();
  if (!isView(view))
    return builder.cast(value, builder.op().getBF16Type());
  Value above = rounded(builder, view->getOperand(0));
  auto type = cast<RankedTensorType>(value.getType());
  IRMapping operands;
  operands.map(view->getOperand(0), above);
  Operation *copy = builder.op().clone(*view, operands);
  copy->getResult(0).setType(type.clone(builder.op().getBF16Type()));
  return copy->getResult(0);
}

void round(nn::MatmulOp product) {
  OpBuilder at(product);
  if (product.getA().getType().getElementType() != at.getF32Type())
    return;
  nn::Builder builder(at, product.getLoc());
  Value a = rounded(builder, product.getA()), b = rounded(builder, product.getB());
  Value sums = builder.matmul(a, b, product.getTransposeA(), product.getTransposeB());
  Value result = builder.cast(builder.cast(sums, at.getBF16Type()), at.getF32Type());
  product.getResult().replaceAllUsesWith(result);
  product.erase();
}

void round(nn::AttentionOp attention) {
  OpBuilder at(attention);
  if (attention.getQ().getType().getElementType() != at.getF32Type())
    return;
  nn::Builder builder(at, attention.getLoc());
  Value q = rounded(builder, attention.getQ()), k = rounded(builder, attention.getK()),
        v = rounded(builder, attention.getV());
  auto of = at.create<nn::AttentionOp>(attention.getLoc(), q, k, v, attention.getMasks(),
                                       attention.getScaleAttr(), attention.getReachAttr(),
                                       attention.getMaskedToZeroAttr());
  Value results[] = {builder.cast(of.getResult(), at.getF32Type()), of.getLogSum()};
  attention->replaceAllUsesWith(ValueRange(results));
  attention.erase();
}

struct SetPrecision : PassWrapper<SetPrecision, CheckedPass> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SetPrecision)
  SetPrecision() = default;
  SetPrecision(const SetPrecision &other) : PassWrapper(other) {}
  explicit SetPrecision(StringRef precision) { to = precision.str(); }

  TextOption to{*this, "to", "name", "f64",
                "element type: f32, f64, or bf16 for what products read and make"};

  StringRef getArgument() const override { return "set-precision"; }
  StringRef getDescription() const override { return "change the element type of computation"; }

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<nn::NNDialect>();
  }

  void checkOptions(OptionReader &reader) const override { reader.choice("to", to, kPrecisions); }

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (to == "f64") // f32 is what the reader makes
        widen(function);
      else if (to == "bf16") {
        for (nn::MatmulOp product : llvm::to_vector(function.getOps<nn::MatmulOp>()))
          round(product);
        for (nn::AttentionOp attention : llvm::to_vector(function.getOps<nn::AttentionOp>()))
          round(attention);
      }
    }
  }
};

PassRegistration<SetPrecision> setPrecisionRegistration;

} // namespace

std::unique_ptr<Pass> createSetPrecisionPass(StringRef to) {
  return std::make_unique<SetPrecision>(to);
}

} // namespace trainc
