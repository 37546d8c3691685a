// SPDX-License-Identifier: Apache-2.0
//
// What the steps of each entry function cost, as text: what trainc writes to the output
// folder and trainc-inspect shows. Steps that do the same are a line; those which move
// most bytes come first.
#include "dialects/elements/element_type.h"
#include "dialects/kernel/kernel.h"
#include "dialects/nn/nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/passes.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace trainc {
namespace {

struct Line {
  std::string kind, text;
  double flops;  // of one
  int64_t bytes; // of one
  int count = 0;
};

class EntryCost {
public:
  EntryCost(func::FuncOp function, SymbolTableCollection &symbols)
      : name(function.getName().str()), symbols(symbols) {
    for (auto step : function.front().getOps<kernel::StepOpInterface>())
      add(step);
    llvm::stable_sort(lines, [](const Line &a, const Line &b) {
      return std::tuple(-a.count * a.bytes, std::tie(a.text, a.flops)) <
             std::tuple(-b.count * b.bytes, std::tie(b.text, b.flops));
    });
  }

  void print(llvm::raw_ostream &out) const {
    double flops = 0;
    int64_t bytes = 0;
    for (const Line &line : lines) {
      flops += line.count * line.flops;
      bytes += line.count * line.bytes;
    }
    out << llvm::format("%s: %d steps, %.0f flops, %lld bytes; with each tensor written once and "
                        "read once: %lld bytes\n",
                        name.c_str(), steps, flops, (long long)bytes, (long long)leastBytes());
    out << "   times    flops each    bytes each   flops in all   bytes in all  form       step\n";
    for (const Line &line : lines)
      out << llvm::format("%8d  %12.0f  %12lld  %13.0f  %13lld  ", line.count, line.flops,
                          (long long)line.bytes, line.count * line.flops,
                          (long long)(line.count * line.bytes))
          << llvm::format("%-9s  ", line.kind.c_str()) << line.text << "\n";
  }

private:
  void add(kernel::StepOpInterface step) {
    kernel::StepCost cost = step.cost(symbols);
    Line line{"library", step.describe(), cost.flops, cost.bytes()};
    if (FlatSymbolRefAttr kernel = step.calledKernel())
      if (auto callee = symbols.lookupNearestSymbolFrom<kernel::FunctionOp>(step, kernel)) {
        line.kind = kernel::stringifyForm(callee.getForm()).str();
        std::string sources;
        for (auto source : callee.getSources().getAsRange<StringAttr>())
          sources += (sources.empty() ? "" : ", ") + source.str();
        line.text += sources.empty() ? "" : "  [" + sources + "]";
      }
    auto [number, isNew] = numbers.try_emplace({line.text, line.flops, line.bytes}, lines.size());
    if (isNew)
      lines.push_back(line);
    ++lines[number->second].count;
    ++steps;
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

  std::string name;
  SymbolTableCollection &symbols;
  std::vector<Line> lines;
  std::map<std::tuple<std::string, double, int64_t>, size_t> numbers; // of lines
  DenseMap<Value, int64_t> reads; // bytes of each tensor, over all steps
  int64_t writes = 0;
  int steps = 0;
};

} // namespace

std::string kernelListText(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  SymbolTableCollection symbols;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isDeclaration())
      continue;
    out << (text.empty() ? "" : "\n");
    EntryCost(function, symbols).print(out);
  }
  return text;
}

} // namespace trainc
