// SPDX-License-Identifier: Apache-2.0
//
// What the steps of each entry function cost, as a table and as text: what trainc writes to the
// output folder and trainc-inspect shows. Steps that do the same are a line; those which move most
// bytes come first.
#include "dialects/elements/element_type.h"
#include "dialects/kernel/kernel.h"
#include "dialects/nn/nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/passes.h"
#include "passes/plan_tables.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace trainc {
namespace {

class EntryCost {
public:
  EntryCost(func::FuncOp function, SymbolTableCollection &symbols) : symbols(symbols) {
    entry.name = function.getName().str();
    for (auto step : function.front().getOps<kernel::StepOpInterface>())
      add(step);
    for (const ListedKernel &line : entry.kernels) {
      entry.flops += line.count * line.flops;
      entry.bytes += line.count * line.bytes;
    }
    entry.leastBytes = leastBytes();
    llvm::stable_sort(entry.kernels, [](const ListedKernel &a, const ListedKernel &b) {
      return std::tuple(-a.count * a.bytes, std::tie(a.text, a.flops)) <
             std::tuple(-b.count * b.bytes, std::tie(b.text, b.flops));
    });
  }

  ListedEntry entry;

private:
  void add(kernel::StepOpInterface step) {
    kernel::StepCost cost = step.cost(symbols);
    ListedKernel line{"library", step.describe(), cost.flops, cost.bytes()};
    if (FlatSymbolRefAttr kernel = step.calledKernel())
      if (auto callee = symbols.lookupNearestSymbolFrom<kernel::FunctionOp>(step, kernel)) {
        line.form = kernel::stringifyForm(callee.getForm()).str();
        std::string sources;
        for (auto source : callee.getSources().getAsRange<StringAttr>())
          sources += (sources.empty() ? "" : ", ") + source.str();
        line.text += sources.empty() ? "" : "  [" + sources + "]";
      }
    auto [number, isNew] =
        numbers.try_emplace({line.text, line.flops, line.bytes}, entry.kernels.size());
    if (isNew)
      entry.kernels.push_back(line);
    ++entry.kernels[number->second].count;
    ++entry.steps;
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

std::vector<ListedEntry> describeKernels(ModuleOp module) {
  std::vector<ListedEntry> entries;
  SymbolTableCollection symbols;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isDeclaration())
      entries.push_back(EntryCost(function, symbols).entry);
  return entries;
}

std::string kernelListText(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  for (const ListedEntry &entry : describeKernels(module)) {
    out << (text.empty() ? "" : "\n");
    out << llvm::format("%s: %d steps, %.0f flops, %lld bytes; with each tensor written once and "
                        "read once: %lld bytes\n",
                        entry.name.c_str(), entry.steps, entry.flops, (long long)entry.bytes,
                        (long long)entry.leastBytes);
    out << "   times    flops each    bytes each   flops in all   bytes in all  form       step\n";
    for (const ListedKernel &line : entry.kernels)
      out << llvm::format("%8d  %12.0f  %12lld  %13.0f  %13lld  ", line.count, line.flops,
                          (long long)line.bytes, line.count * line.flops,
                          (long long)(line.count * line.bytes))
          << llvm::format("%-9s  ", line.form.c_str()) << line.text << "\n";
  }
  return text;
}

} // namespace trainc
