// SPDX-License-Identifier: Apache-2.0
//
// order-operations: the steps of each entry function in an order with little
// memory alive.
//
// The program order is kept unless a greedy order needs less (planning/step_order.h):
// there, steps that free at least what they allocate run as soon as they can, as
// a weight's gradient, whose result has a place of its own. A step that writes
// an argument in place (a parameter, an optimizer state) comes after all who
// read the old value; ordered steps keep their order. Weakness: the scheduler does not look ahead.
#include "dialects/errors/internal_error.h"
#include "dialects/kernel/kernel.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/module_pass.h"
#include "passes/passes.h"
#include "passes/planning/memory_plan.h"
#include "passes/planning/step_order.h"
#include "passes/plans/tensor_places.h"

using namespace mlir;

namespace trainc {
namespace {

class Ordering {
public:
  explicit Ordering(func::FuncOp function) : function(function), block(function.front()) {}

  void run() {
    collect();
    addOverwrites();
    std::vector<int> order = planning::orderSteps(steps, bytes, kept);
    check(order.size() == steps.size(), function, "an argument is overwritten before it is read");
    for (int step : order)
      operations[step]->moveBefore(block.getTerminator());
  }

private:
  void collect() {
    int ordered = -1;
    for (auto op : block.getOps<kernel::StepOpInterface>()) {
      int number = int(steps.size());
      operations.push_back(op);
      stepOf[op] = number;
      planning::Step step;
      for (Value operand : op->getOperands())
        if (auto known = tensors.find(operand); known != tensors.end())
          step.reads.push_back(known->second);
      if (op.isOrdered()) {
        if (ordered >= 0)
          step.after.push_back(ordered);
        ordered = number;
      }
      for (Value result : op->getResults()) {
        tensors[result] = int(bytes.size());
        step.writes.push_back(int(bytes.size()));
        bytes.push_back(planning::alignedBytes(bytesOf(result.getType())));
        kept.push_back(false);
      }
      steps.push_back(std::move(step));
    }
    for (OpOperand &operand : block.getTerminator()->getOpOperands())
      if (auto known = tensors.find(operand.get()); known != tensors.end()) {
        kept[known->second] = true;
        if (hasPlaceOfItsOwn(function, operand.getOperandNumber()))
          bytes[known->second] = 0; // it has a place of its own
      }
  }

  void addOverwrites() {
    for (OpOperand &operand : block.getTerminator()->getOpOperands()) {
      auto argument = train::overwrittenArgument(function, operand.getOperandNumber());
      Operation *writer = operand.get().getDefiningOp();
      if (!argument || !stepOf.count(writer))
        continue;
      for (Operation *reader : function.getArgument(*argument).getUsers())
        if (reader != writer && stepOf.count(reader))
          steps[stepOf[writer]].after.push_back(stepOf[reader]);
    }
  }

  func::FuncOp function;
  Block &block;
  SmallVector<Operation *> operations;
  DenseMap<Operation *, int> stepOf;
  DenseMap<Value, int> tensors;
  std::vector<planning::Step> steps;
  std::vector<int64_t> bytes;
  std::vector<bool> kept;
};

struct OrderOperations : ModulePass<OrderOperations> {
  static constexpr StringLiteral flag = "order-operations";
  static constexpr StringLiteral description =
      "Order the steps of each entry function so that little memory is alive";

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isDeclaration())
        Ordering(function).run();
  }
};

PassRegistration<OrderOperations> orderOperationsRegistration;

} // namespace

std::unique_ptr<Pass> createOrderOperationsPass() { return std::make_unique<OrderOperations>(); }

} // namespace trainc
