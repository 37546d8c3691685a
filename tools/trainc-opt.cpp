// SPDX-License-Identifier: Apache-2.0
//
// trainc-opt: runs passes one by one on textual IR. The passes are those linked
// in; each registers itself.
#include "dialects/kernel/kernel.h"
#include "dialects/nn/nn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<trainc::nn::NNDialect, trainc::kernel::KernelDialect, mlir::func::FuncDialect,
                  mlir::arith::ArithDialect, mlir::math::MathDialect>();
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  return mlir::failed(mlir::MlirOptMain(argc, argv, "trainc's passes, one by one\n", registry));
}
