// SPDX-License-Identifier: Apache-2.0
//
// The entry functions as text: one line for each step, in order.
#include "compiler/step_list.h"
#include "dialects/kernel/kernel.h"
#include "dialects/names/node_name.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace trainc {

/// What a step runs; empty for what takes no time (constants, the return).
static std::string action(Operation &op) {
  return llvm::TypeSwitch<Operation *, std::string>(&op)
      .Case([](kernel::LaunchOp launch) { return launch.getKernel().str(); })
      .Case([](kernel::MatmulOp product) {
        int64_t batches = 1;
        for (int64_t size : product.getBatch())
          batches *= size;
        std::string text =
            llvm::formatv("matmul {0} x {1} x {2}", product.getM(), product.getN(), product.getK());
        if (batches > 1)
          text += llvm::formatv(", {0} times", batches);
        return text + (product.getInit() ? ", added" : "") + product.epilogueText();
      })
      .Case([](kernel::ScatterAddOp scatter) -> std::string {
        return llvm::formatv("scatter_add {0} x {1}", scatter.getRows(), scatter.getColumns());
      })
      .Default(std::string());
}

std::string stepListText(ModuleOp module) {
  std::string text;
  for (auto function : module.getOps<func::FuncOp>()) {
    std::string lines;
    int steps = 0;
    for (Operation &op : function.front())
      if (std::string does = action(op); !does.empty())
        lines +=
            llvm::formatv("  {0,5}  {1,-44} {2}\n", steps++, does, nodeName(op.getLoc()).title());
    text += llvm::formatv("{0}: {1} steps\n{2}\n", function.getName(), steps, lines);
  }
  return text;
}

} // namespace trainc
