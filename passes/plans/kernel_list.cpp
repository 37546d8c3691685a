// SPDX-License-Identifier: Apache-2.0
//
// The steps of each entry function, and what they cost. Steps that do the same are one kernel;
// those which move most bytes come first.
#include "dialects/elements/element_type.h"
#include "dialects/kernel/kernel.h"
#include "dialects/names/node_name.h"
#include "dialects/nn/nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/plan_tables.h"
#include <numeric>

using namespace mlir;

namespace trainc {
namespace {

class EntryCost {
public:
  EntryCost(func::FuncOp function, SymbolTableCollection &symbols) : symbols(symbols) {
    entry.name = function.getName().str();
    for (auto step : function.front().getOps<kernel::StepOpInterface>())
      add(step);
    for (const planned_kernel &line : entry.kernels) {
      entry.flops += line.count * line.flops;
      entry.bytes += line.count * line.bytes;
    }
    entry.least_bytes = leastBytes();
    sort();
  }

  planned_entry entry;

private:
  void sort() {
    std::vector<int> order(entry.kernels.size()), places(order.size());
    std::iota(order.begin(), order.end(), 0);
    std::vector<std::string> texts;
    for (const planned_kernel &line : entry.kernels)
      texts.push_back(line.whole_text());
    llvm::stable_sort(order, [&](int i, int j) {
      const planned_kernel &a = entry.kernels[i], &b = entry.kernels[j];
      return std::tuple(-a.count * a.bytes, std::tie(texts[i], a.flops)) <
             std::tuple(-b.count * b.bytes, std::tie(texts[j], b.flops));
    });
    std::vector<planned_kernel> sorted;
    for (int number : order) {
      places[number] = int(sorted.size());
      sorted.push_back(std::move(entry.kernels[number]));
    }
    entry.kernels = std::move(sorted);
    for (planned_step &step : entry.steps)
      step.kernel = places[step.kernel];
  }

  void add(kernel::StepOpInterface step) {
    kernel::StepCost cost = step.cost(symbols);
    planned_kernel line{"library", step.describe(), "", cost.flops, cost.bytes()};
    if (FlatSymbolRefAttr kernel = step.calledKernel())
      if (auto callee = symbols.lookupNearestSymbolFrom<kernel::FunctionOp>(step, kernel)) {
        line.form = kernel::stringifyForm(callee.getForm()).str();
        for (auto source : callee.getSources().getAsRange<StringAttr>())
          line.sources += (line.sources.empty() ? "" : ", ") + source.str();
      }
    auto [number, isNew] =
        numbers.try_emplace({line.whole_text(), line.flops, line.bytes}, entry.kernels.size());
    if (isNew)
      entry.kernels.push_back(line);
    ++entry.kernels[number->second].count;
    entry.steps.push_back({int(number->second), nodeTitles(step->getLoc())});
    for (auto [operand, read] : llvm::zip(step->getOperands(), cost.reads))
      reads[operand] += read;
    for (auto [result, written] : llvm::zip(step->getResults(), cost.writes))
      writes += std::min(written, bytesOf(result.getType()));
  }

  /// What moves where caches hold every tensor between its uses.
  int64_t leastBytes() const {
    int64_t bytes = writes;
    for (auto &[tensor, read] : reads)
      bytes += std::min(read, bytesOf(tensor.getType()));
    return bytes;
  }

  SymbolTableCollection &symbols;
  std::map<std::tuple<std::string, double, int64_t>, size_t> numbers; // of kernels
  DenseMap<Value, int64_t> reads; // bytes of each tensor, over all steps
  int64_t writes = 0;
};

} // namespace

std::vector<planned_entry> describeKernels(ModuleOp module) {
  std::vector<planned_entry> entries;
  SymbolTableCollection symbols;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isDeclaration())
      entries.push_back(EntryCost(function, symbols).entry);
  return entries;
}

} // namespace trainc
