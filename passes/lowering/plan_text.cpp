// SPDX-License-Identifier: Apache-2.0
//
// The memory plan and the kernels as text: what trainc writes to the output
// folder and trainc-inspect shows. Sorted and stable.
#include "dialects/kernel/kernel.h"
#include "dialects/nn/nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/lowering/tensor_places.h"
#include "passes/passes.h"
#include "passes/planning/covered_peak.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

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
      if (auto name = function.getResultAttrOfType<StringAttr>(i, "train.name"))
        if (auto known = numbers.find(value); known != numbers.end())
          tensors[known->second].name =
              (resultKind(function, i) == "gradient" ? "gradient of " : "") + name.str();
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

double flopsOf(Operation &op) {
  if (isa<math::ExpOp, math::LogOp, math::Log1pOp>(op))
    return 10;
  if (isa<math::TanhOp, math::SinOp, math::CosOp>(op))
    return 15;
  if (isa<math::ErfOp>(op))
    return 20;
  if (isa<math::PowFOp>(op))
    return 25;
  bool real = op.getNumResults() == 1 && isa<FloatType>(op.getResult(0).getType());
  bool moves = isa<arith::ConstantOp, kernel::LoadOp, arith::SelectOp>(op);
  return real && !moves ? 1 : 0;
}

struct Cost {
  double flops = 0, bytes = 0;
};

Cost costOf(kernel::FunctionOp function) {
  Cost cost;
  double points = 1, outside = 1;
  ArrayRef<int64_t> dims = function.getDims();
  int64_t reduced = function.getReduced();
  for (auto [d, size] : llvm::enumerate(dims)) {
    points *= size;
    bool walked = function.getForm() == kernel::Form::row
                      ? int64_t(d) >= int64_t(dims.size()) - reduced
                      : int64_t(d) < reduced;
    if (!walked)
      outside *= size;
  }
  for (Operation &op : function.getBody().front()) {
    cost.flops += op.getNumRegions() == 0 ? flopsOf(op) * outside : 0;
    if (auto reduce = dyn_cast<kernel::ReduceOp>(op))
      cost.flops += points * reduce.getKinds().size();
    for (Region &region : op.getRegions())
      for (Operation &inner : region.getOps())
        cost.flops += flopsOf(inner) * points;
  }
  for (auto [argument, attribute] :
       llvm::zip(function.getBody().getArguments(), function.getAccesses())) {
    double elements = 1;
    for (auto [size, stride] : llvm::zip(dims, cast<kernel::AccessAttr>(attribute).getStrides()))
      elements *= stride != 0 ? size : 1;
    cost.bytes +=
        elements * elementBytes(cast<kernel::BufferType>(argument.getType()).getElement());
  }
  return cost;
}

struct Line {
  std::string kind;
  Cost each;
  llvm::MapVector<StringRef, int> launches; // by entry
  std::string sources;
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

std::string kernelListText(ModuleOp module) {
  llvm::MapVector<StringRef, Line> kernels;
  std::map<std::string, Line> steps;
  for (auto function : module.getOps<kernel::FunctionOp>()) {
    Line &line = kernels[function.getSymName()];
    line.kind = kernel::stringifyForm(function.getForm()).str();
    line.each = costOf(function);
    for (auto source : function.getSources().getAsRange<StringAttr>())
      line.sources += (line.sources.empty() ? "" : ", ") + source.str();
  }
  for (auto function : module.getOps<func::FuncOp>())
    function.walk([&](Operation *op) {
      if (auto launch = dyn_cast<kernel::LaunchOp>(op)) {
        ++kernels[launch.getKernel()].launches[function.getName()];
        return;
      }
      double flops = 0, bytes = 0;
      std::string name;
      if (auto product = dyn_cast<kernel::MatmulOp>(op)) {
        double batch = 1;
        for (int64_t size : product.getBatch())
          batch *= size;
        double m = product.getM(), n = product.getN(), k = product.getK();
        flops = 2 * batch * m * n * k;
        int results = product.getInit() || product.getLinear() || product.getLinearOut() ? 2 : 1;
        bytes = batch * (m * k + k * n + m * n * results) *
                elementBytes(nn::tensorType(product.getOut()).getElementType());
        name = llvm::formatv("matmul {0} x {1} x {2}, batch {3}{4}{5}", product.getM(),
                             product.getN(), product.getK(), int64_t(batch),
                             product.getInit() ? ", added" : "", product.epilogueText());
      } else if (auto scatter = dyn_cast<kernel::ScatterAddOp>(op)) {
        flops = double(nn::tensorType(scatter.getUpdates()).getNumElements());
        bytes = 3.0 * bytesOf(scatter.getUpdates().getType());
        name = llvm::formatv("scatter_add {0} x {1}", scatter.getRows(), scatter.getColumns());
      } else {
        return;
      }
      Line &line = steps[name];
      line.kind = "library";
      line.each = {flops, bytes};
      ++line.launches[function.getName()];
    });
  std::string text;
  llvm::raw_string_ostream out(text);
  out << "form       flops each   bytes each  launches\n";
  auto print = [&](StringRef name, const Line &line) {
    out << llvm::format("%-9s %11.0f  %11.0f  ", line.kind.c_str(), line.each.flops,
                        line.each.bytes)
        << name << ":";
    for (auto &[entry, count] : line.launches)
      out << " " << entry << " " << count;
    if (!line.sources.empty())
      out << "  [" << line.sources << "]";
    out << "\n";
  };
  for (auto &[name, line] : kernels)
    print(name, line);
  for (auto &[name, line] : steps)
    print(name, line);
  return text;
}

} // namespace trainc
