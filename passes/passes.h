// SPDX-License-Identifier: Apache-2.0
//
// Constructors of the passes, in the order in which compiler/pipeline.cpp runs
// them. Each pass has the file, the test and the command-line flag of its name.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/StringExtras.h"
#include <memory>
#include <string>

namespace trainc {

std::unique_ptr<mlir::Pass> createRaisePatternsPass();
std::unique_ptr<mlir::Pass> createAttachLossPass(llvm::StringRef kind, llvm::StringRef output = "");
std::unique_ptr<mlir::Pass> createSetPrecisionPass(llvm::StringRef to);
/// `only`: the model is not trained, @model goes.
std::unique_ptr<mlir::Pass> createDeriveEvaluatePass(bool only = false);
std::unique_ptr<mlir::Pass> createDifferentiatePass();
std::unique_ptr<mlir::Pass> createFormBucketsPass();
std::unique_ptr<mlir::Pass> createAttachOptimizerPass(llvm::StringRef kind);
std::unique_ptr<mlir::Pass> createDecomposePass();
std::unique_ptr<mlir::Pass> createFormProductsPass();
std::unique_ptr<mlir::Pass> createFuseEpiloguesPass();
std::unique_ptr<mlir::Pass> createFusePass();
std::unique_ptr<mlir::Pass> createLowerToKernelsPass();
std::unique_ptr<mlir::Pass> createScheduleKernelsPass(llvm::StringRef target);
std::unique_ptr<mlir::Pass> createOrderOperationsPass();
std::unique_ptr<mlir::Pass> createPlanMemoryPass();

/// The memory plan as text, one line per tensor; see plan_memory.cpp.
std::string memoryPlanText(mlir::ModuleOp module);
/// What the steps of each entry function cost, one line each kind; see kernel_list.cpp.
std::string kernelListText(mlir::ModuleOp module);

} // namespace trainc
