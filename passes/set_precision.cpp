// SPDX-License-Identifier: Apache-2.0
//
// set-precision: changes the element type in which the program computes.
//
// `to=f64` turns every f32 tensor into f64: parameters, constants, casts. Tests
// use it to compare with finite differences and with PyTorch in double. Known
// weakness: constants were rounded to f32 by the model file already.
#include "dialects/nn/builder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/options/checked_pass.h"
#include "passes/passes.h"

using namespace mlir;

namespace {

/// Of a tensor of floats, whatever their type.
Type widened(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !isa<FloatType>(tensor.getElementType()))
    return type;
  return tensor.clone(Float64Type::get(type.getContext()));
}

void widenConstant(trainc::nn::ConstantOp constant) {
  auto elements = dyn_cast<DenseFPElementsAttr>(constant.getValue());
  if (!elements)
    return;
  constant.setValueAttr(
      elements.mapValues(Float64Type::get(constant.getContext()), [](const APFloat &value) {
        return APFloat(value.convertToDouble()).bitcastToAPInt();
      }));
}

struct SetPrecision : PassWrapper<SetPrecision, trainc::CheckedPass> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SetPrecision)
  SetPrecision() = default;
  SetPrecision(const SetPrecision &other) : PassWrapper(other) {}
  explicit SetPrecision(StringRef precision) { to = precision.str(); }

  TextOption to{*this, "to", "name", "f64", "element type: f32 or f64"};

  StringRef getArgument() const override { return "set-precision"; }
  StringRef getDescription() const override { return "change the element type of computation"; }

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<trainc::nn::NNDialect>();
  }

  void checkOptions(trainc::OptionReader &reader) const override {
    reader.choice("to", to, trainc::kPrecisions);
  }

  void runOnOperation() override {
    if (to == "f32") // what the reader makes
      return;
    getOperation().walk([](func::FuncOp function) {
      SmallVector<Type> inputs = llvm::map_to_vector(function.getArgumentTypes(), widened);
      SmallVector<Type> results = llvm::map_to_vector(function.getResultTypes(), widened);
      function.setFunctionType(FunctionType::get(function.getContext(), inputs, results));
      for (BlockArgument argument : function.getArguments())
        argument.setType(widened(argument.getType()));
      function.getBody().walk([](Operation *op) {
        if (auto constant = dyn_cast<trainc::nn::ConstantOp>(op))
          widenConstant(constant);
        for (OpResult result : op->getResults())
          result.setType(widened(result.getType()));
      });
    });
  }
};

PassRegistration<SetPrecision> setPrecisionRegistration;

} // namespace

std::unique_ptr<Pass> trainc::createSetPrecisionPass(StringRef to) {
  return std::make_unique<SetPrecision>(to);
}
