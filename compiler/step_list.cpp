// SPDX-License-Identifier: Apache-2.0
//
// The entry functions as text: one line for each step, in order.
#include "compiler/step_list.h"
#include "dialects/kernel/kernel.h"
#include "dialects/names/node_name.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace trainc {

std::string stepListText(ModuleOp module) {
  std::string text;
  for (auto function : module.getOps<func::FuncOp>()) {
    std::string lines;
    int steps = 0;
    for (auto step : function.front().getOps<kernel::StepOpInterface>())
      lines += llvm::formatv("  {0,5}  {1,-44} {2}\n", steps++, step.describe(),
                             nodeName(step->getLoc()).title());
    text += llvm::formatv("{0}: {1} steps\n{2}\n", function.getName(), steps, lines);
  }
  return text;
}

} // namespace trainc
