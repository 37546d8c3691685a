// SPDX-License-Identifier: Apache-2.0
//
// The memory plan as text: what trainc writes to the output folder and trainc-inspect
// shows. Sorted and stable.
#include "dialects/kernel/kernel.h"
#include "dialects/nn/nn.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/lowering/tensor_places.h"
#include "passes/passes.h"
#include "passes/planning/covered_peak.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace trainc {
namespace {

struct Tensor {
  std::string name;
  kernel::PlaceAttr place;
  int64_t bytes;
  int first, last;
};

class MemoryText {
public:
  explicit MemoryText(llvm::raw_ostream &out) : out(out) {}

  void arenas(ModuleOp module) {
    auto bytes = module->getAttrOfType<DenseI64ArrayAttr>("kernel.arena_bytes");
    auto bound = module->getAttrOfType<DenseI64ArrayAttr>("kernel.arena_lower_bound");
    if (!bytes || !bound)
      return;
    out << "arena                    bytes     lower bound  ratio\n";
    for (int arena = 0; arena < int(bytes.size()); ++arena) {
      double ratio = bound[arena] > 0 ? double(bytes[arena]) / double(bound[arena]) : 1;
      out << llvm::format("%-16s %13lld %15lld  %.3f\n",
                          kernel::stringifyArena(kernel::Arena(arena)).str().c_str(),
                          (long long)bytes[arena], (long long)bound[arena], ratio);
    }
  }

  void entry(func::FuncOp function) {
    std::vector<Tensor> tensors = collect(function);
    int peak = peakStep(tensors);
    out << "\n" << function.getName() << ": " << steps << " steps";
    if (peak >= 0)
      out << ", most activation bytes alive at step " << peak << " (marked *)";
    out << "\n  arena                   offset         bytes  first   last    tensor\n";
    for (const Tensor &tensor : tensors) {
      bool alive = isActivation(tensor) && tensor.first <= peak && peak <= tensor.last;
      out << llvm::format("  %-16s %13lld %13lld %6d %6d  %c ",
                          kernel::stringifyArena(tensor.place.getArena()).str().c_str(),
                          (long long)tensor.place.getOffset(), (long long)tensor.bytes,
                          tensor.first, tensor.last, alive ? '*' : ' ')
          << tensor.name << "\n";
    }
  }

private:
  static bool isActivation(const Tensor &tensor) {
    return tensor.place.getArena() == kernel::Arena::activations;
  }

  std::vector<Tensor> collect(func::FuncOp function) {
    std::vector<Tensor> tensors;
    DenseMap<Value, size_t> numbers;
    auto add = [&](Value value, Attribute place, int step) {
      if (auto at = dyn_cast_or_null<kernel::PlaceAttr>(place)) {
        numbers[value] = tensors.size();
        tensors.push_back({tensorName(value), at, bytesOf(value.getType()), step, step});
      }
    };
    for (BlockArgument argument : function.getArguments())
      add(argument, function.getArgAttr(argument.getArgNumber(), "kernel.place"), 0);
    steps = 0;
    for (Operation &op : function.front()) {
      if (isa<nn::ConstantOp>(op))
        continue;
      for (Value operand : op.getOperands())
        if (auto known = numbers.find(operand); known != numbers.end())
          tensors[known->second].last = std::max(tensors[known->second].last, steps);
      if (auto places = op.getAttrOfType<ArrayAttr>("places"))
        for (auto [result, place] : llvm::zip(op.getResults(), places))
          add(result, place, steps);
      ++steps;
    }
    --steps; // the return
    for (auto [i, value] : llvm::enumerate(function.front().getTerminator()->getOperands()))
      if (StringRef name = train::resultNameOf(function, i); !name.empty())
        if (auto known = numbers.find(value); known != numbers.end())
          tensors[known->second].name =
              (train::resultRoleAs<train::GradientAttr>(function, i) ? "gradient of " : "") +
              name.str();
    llvm::stable_sort(tensors, [](const Tensor &a, const Tensor &b) {
      return std::tuple(int(a.place.getArena()), a.place.getOffset(), a.first, a.last) <
             std::tuple(int(b.place.getArena()), b.place.getOffset(), b.first, b.last);
    });
    return tensors;
  }

  /// Tensors in one place at one time count once.
  static int peakStep(const std::vector<Tensor> &tensors) {
    std::vector<planning::PlacedBuffer> buffers;
    for (const Tensor &tensor : tensors)
      if (isActivation(tensor))
        buffers.push_back({tensor.place.getOffset(), tensor.bytes, tensor.first, tensor.last});
    return planning::coveredPeak(buffers).second;
  }

  llvm::raw_ostream &out;
  int steps = 0;
};

} // namespace

std::string memoryPlanText(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  MemoryText printer(out);
  printer.arenas(module);
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isDeclaration())
      printer.entry(function);
  return text;
}

} // namespace trainc
