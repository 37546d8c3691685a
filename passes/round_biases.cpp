// SPDX-License-Identifier: Apache-2.0
//
// round-biases: biases of products in 16 bits are rounded to them, for libraries that add them.
//
// Problem: set-precision rounds what a product computes and leaves the bias in f32, but cuBLASLt
// adds a bias to a result of 16 bits in those alone. Method: where a parameter is added to each
// line of a product's rounded result, it is rounded, as PyTorch's autocast does; copy-parameters
// then keeps the rounded numbers, so that it costs nothing in a step. Runs before copy-parameters,
// and only where fuse-epilogues follows. The gradients stay as they are: a cast's is 1.
#include "dialects/elements/element_type.h"
#include "dialects/nn/builder.h"
#include "dialects/nn/views.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/module_pass.h"
#include "passes/passes.h"

using namespace mlir;

namespace trainc {
namespace {

/// The 16-bit type that a product's result was rounded to on its way here; null where it was not.
Type roundedTypeOfProduct(Value value) {
  Type type;
  while (Operation *op = value.getDefiningOp()) {
    if (isa<nn::MatmulOp>(op))
      return type;
    if (!isa<nn::ReshapeOp, nn::CastOp>(op))
      return Type();
    Type element = nn::tensorType(value).getElementType();
    if (isNarrowFloat(element))
      type = element;
    value = op->getOperand(0);
  }
  return Type();
}

void roundBias(nn::AddOp add, OpOperand &bias, Value other) {
  auto broadcast = bias.get().getDefiningOp<nn::BroadcastOp>();
  auto parameter =
      broadcast ? dyn_cast<BlockArgument>(withoutReshapes(broadcast.getX())) : BlockArgument();
  Type type = parameter ? roundedTypeOfProduct(other) : Type();
  auto function = add->getParentOfType<func::FuncOp>();
  Type element = parameter ? nn::tensorType(parameter).getElementType() : Type();
  if (!type || isNarrowFloat(element) ||
      !train::roleAs<train::ParameterAttr>(function, parameter.getArgNumber()))
    return;
  OpBuilder builder(add);
  nn::Builder at(builder, add.getLoc());
  Value rounded = at.cast(at.cast(parameter, type), element);
  bias.set(at.broadcast(at.reshape(rounded, nn::tensorType(broadcast.getX()).getShape()),
                        broadcast.getDimensions(), broadcast.getType().getShape()));
}

struct RoundBiases : ModulePass<RoundBiases> {
  static constexpr StringLiteral flag = "round-biases";
  static constexpr StringLiteral description =
      "round biases of 16-bit products, as libraries add them";

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      for (auto add : SmallVector<nn::AddOp>(function.getOps<nn::AddOp>())) {
        roundBias(add, add->getOpOperand(0), add.getB());
        roundBias(add, add->getOpOperand(1), add.getA());
      }
  }
};

PassRegistration<RoundBiases> roundBiasesRegistration;

} // namespace

std::unique_ptr<Pass> createRoundBiasesPass() { return std::make_unique<RoundBiases>(); }

} // namespace trainc
