// SPDX-License-Identifier: Apache-2.0
//
// Composites whose decomposition holds composites. The dialect has none today, so
// pointwise operations get decompositions here.
#include "dialects/nn/builder.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/passes.h"

#include <gtest/gtest.h>

namespace {

using namespace mlir;
using namespace trainc;

// gelu as a relu, relu as a softmax: three levels.
struct GeluParts : nn::DecomposableOpInterface::ExternalModel<GeluParts, nn::GeluOp> {
  static SmallVector<Value> decompose(Operation *op, nn::Builder &builder) {
    return {builder.create<nn::ReluOp>(op->getOperand(0))};
  }
};
struct ReluParts : nn::DecomposableOpInterface::ExternalModel<ReluParts, nn::ReluOp> {
  static SmallVector<Value> decompose(Operation *op, nn::Builder &builder) {
    return {builder.create<nn::SoftmaxOp>(op->getOperand(0), /*masked_to_zero=*/false)};
  }
};
struct SelfParts : nn::DecomposableOpInterface::ExternalModel<SelfParts, nn::GeluOp> {
  static SmallVector<Value> decompose(Operation *op, nn::Builder &builder) {
    return {builder.create<nn::GeluOp>(op->getOperand(0))};
  }
};

constexpr const char *text = R"(
func.func @model(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = nn.gelu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
})";

class decompose : public testing::Test {
protected:
  decompose() { context.loadDialect<nn::NNDialect, func::FuncDialect>(); }

  LogicalResult run() {
    module = parseSourceString<ModuleOp>(text, &context);
    PassManager manager(&context);
    manager.addPass(createDecomposePass());
    return manager.run(*module);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(decompose, composites_of_composites) {
  nn::GeluOp::attachInterface<GeluParts>(context);
  nn::ReluOp::attachInterface<ReluParts>(context);
  ASSERT_TRUE(succeeded(run()));
  module->walk([](nn::DecomposableOpInterface op) {
    ADD_FAILURE() << op->getName().getStringRef().str() << " is left";
  });
  int exponentials = 0;
  module->walk([&](nn::ExpOp) { ++exponentials; });
  EXPECT_EQ(exponentials, 1);
}

TEST_F(decompose, a_composite_of_itself_is_an_error) {
  nn::GeluOp::attachInterface<SelfParts>(context);
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    message += diagnostic.str();
    return success();
  });
  EXPECT_TRUE(failed(run()));
  EXPECT_NE(message.find("decompose: the decomposition of 'nn.gelu' leads back to itself"),
            std::string::npos)
      << message;
}

} // namespace
