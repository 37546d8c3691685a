// SPDX-License-Identifier: Apache-2.0
//
// What all passes have in common.
#pragma once

#include "dialects/kernel/kernel.h"
#include "dialects/nn/nn.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace trainc {

/// The base of a pass of modules, which has a `flag` and a `description` in words. A pass with
/// options has CheckedPass as its `Base`.
template <typename Derived, typename Base = mlir::OperationPass<mlir::ModuleOp>>
class ModulePass : public Base {
public:
  ModulePass() : Base(mlir::TypeID::get<Derived>()) {}

  static mlir::TypeID resolveTypeID() {
    static mlir::SelfOwningTypeID id;
    return id;
  }
  llvm::StringRef getName() const override { return llvm::getTypeName<Derived>(); }
  llvm::StringRef getArgument() const override { return Derived::flag; }
  llvm::StringRef getDescription() const override { return Derived::description; }
  void getDependentDialects(mlir::DialectRegistry &registry) const override {
    registry.insert<nn::NNDialect, train::TrainDialect, kernel::KernelDialect,
                    mlir::func::FuncDialect, mlir::arith::ArithDialect, mlir::math::MathDialect>();
  }
  /// What differs between passes of a kind is their options, which `clone` copies.
  std::unique_ptr<mlir::Pass> clonePass() const override { return std::make_unique<Derived>(); }
};

} // namespace trainc
