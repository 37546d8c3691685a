// SPDX-License-Identifier: Apache-2.0
//
// pad-rows: rows of 16-bit matrices begin at multiples of 16 bytes.
//
// Problem: the logits of GPT-2 have rows of 50257 numbers. Every other one begins at an odd
// address, so neither a kernel nor a matrix product reads 16 bytes at once. Method: a matrix in
// 16 bits that only products and kernels touch, each by strides that tell row from column, gets a
// row pitch above its length (rowPitch). Its type keeps its shape; strides of products and kernels
// are those of the pitch. Nobody sees the room between rows: what leaves the program, inputs,
// outputs and parameters, is never padded. Weakness: a kernel that walks the matrix as one flat
// line keeps it as it is.
#include "dialects/elements/element_type.h"
#include "dialects/kernel/kernel.h"
#include "dialects/kernel/row_pitch.h"
#include "dialects/nn/nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/module_pass.h"
#include "passes/passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace trainc {
namespace {

using kernel::RowPitch;

constexpr int64_t kMultiple = 8;      // elements of 16 bytes
constexpr int64_t kLongMultiple = 64; // of rows that are long: as tensor cores like them
constexpr int64_t kLongRow = 4096;
constexpr int64_t kShortestRow = 128; // of shorter ones the room would be a part of the traffic

/// How far rows of this length are apart.
int64_t pitchOf(int64_t length) {
  return int64_t(llvm::alignTo(length, length >= kLongRow ? kLongMultiple : kMultiple));
}

RowPitch paddingOf(int64_t length) { return {length, pitchOf(length)}; }

class RowPadding {
public:
  explicit RowPadding(ModuleOp module) : module(module) {}

  void run() {
    for (auto function : module.getOps<func::FuncOp>())
      for (Operation &op : function.getOps())
        if (isa<kernel::MatmulOp, kernel::LaunchOp>(op))
          for (Value result : op.getResults())
            consider(result);
    while (dropDivided()) {
    }
    for (auto [value, length] : chosen)
      pad(value, length);
    for (auto function : module.getOps<kernel::FunctionOp>())
      padAccesses(function);
  }

private:
  void consider(Value value);
  bool isTaken(Value value, int64_t length);
  bool isTakenBy(OpOperand &use, int64_t length);
  bool keepsArgument(kernel::FunctionOp function, unsigned argument, int64_t length);
  bool dropDivided();
  void pad(Value value, int64_t length);
  void padAccesses(kernel::FunctionOp function);
  kernel::FunctionOp calleeOf(kernel::LaunchOp launch) {
    return symbols.lookupNearestSymbolFrom<kernel::FunctionOp>(launch, launch.getKernelAttr());
  }

  ModuleOp module;
  SymbolTableCollection symbols;
  llvm::MapVector<Value, int64_t> chosen;                      // with the length of their rows
  DenseMap<std::pair<Operation *, unsigned>, int64_t> lengths; // of arguments of kernels
};

void RowPadding::consider(Value value) {
  RankedTensorType type = nn::tensorType(value);
  if (!isNarrowFloat(type.getElementType()) || type.getRank() < 2)
    return;
  const int64_t length = type.getShape().back();
  if (length >= kShortestRow && pitchOf(length) != length && isTaken(value, length))
    chosen[value] = length;
}

bool RowPadding::isTaken(Value value, int64_t length) {
  Operation *maker = value.getDefiningOp();
  if (auto product = dyn_cast<kernel::MatmulOp>(maker)) {
    if (product.hasEpilogue() || product.getInit() ||
        !paddingOf(length).isTaken(product.getMatrixC(), product.getBatch(), product.getM(),
                                   product.getN()))
      return false;
  } else {
    auto launch = cast<kernel::LaunchOp>(maker);
    kernel::FunctionOp callee = calleeOf(launch);
    const unsigned argument = launch.getInputs().size() + cast<OpResult>(value).getResultNumber();
    if (!callee || !keepsArgument(callee, argument, length))
      return false;
  }
  return llvm::all_of(value.getUses(), [&](OpOperand &use) { return isTakenBy(use, length); });
}

bool RowPadding::isTakenBy(OpOperand &use, int64_t length) {
  const unsigned number = use.getOperandNumber();
  if (auto launch = dyn_cast<kernel::LaunchOp>(use.getOwner())) {
    kernel::FunctionOp callee = calleeOf(launch);
    return callee && keepsArgument(callee, number, length);
  }
  auto product = dyn_cast<kernel::MatmulOp>(use.getOwner());
  if (!product || number > 1)
    return false;
  const RowPitch padding = paddingOf(length);
  return number == 0 ? padding.isTaken(product.getMatrixA(), product.getBatch(), product.getM(),
                                       product.getK())
                     : padding.isTaken(product.getMatrixB(), product.getBatch(), product.getK(),
                                       product.getN());
}

bool RowPadding::keepsArgument(kernel::FunctionOp function, unsigned argument, int64_t length) {
  for (Operation *user : function.getBody().getArgument(argument).getUsers())
    if (auto load = dyn_cast<kernel::LoadOp>(user); load && load.getIndex())
      return false;
  auto access = cast<kernel::AccessAttr>(function.getAccesses()[argument]);
  return paddingOf(length).isTaken(function.getDims(), access.getStrides(), access.getOffset());
}

/// A kernel's argument has one pitch in all launches: drops tensors where another one is as it was.
bool RowPadding::dropDivided() {
  lengths.clear();
  DenseMap<std::pair<Operation *, unsigned>, bool> isDivided;
  SmallVector<std::pair<Value, std::pair<Operation *, unsigned>>> uses;
  for (auto function : module.getOps<func::FuncOp>())
    for (auto launch : function.getOps<kernel::LaunchOp>()) {
      Operation *callee = calleeOf(launch);
      unsigned argument = 0;
      auto note = [&](Value value) {
        const std::pair<Operation *, unsigned> place = {callee, argument++};
        auto found = chosen.find(value);
        const int64_t length = found == chosen.end() ? 0 : found->second;
        uses.push_back({value, place});
        if (lengths.try_emplace(place, length).first->second != length)
          isDivided[place] = true;
      };
      llvm::for_each(launch.getInputs(), note);
      llvm::for_each(launch.getOuts(), note);
    }
  bool dropped = false;
  for (auto [value, place] : uses)
    dropped |= isDivided.lookup(place) && chosen.erase(value);
  return dropped;
}

void RowPadding::pad(Value value, int64_t length) {
  const RowPitch padding = paddingOf(length);
  value.setType(withRowPitch(nn::tensorType(value), padding.pitch));
  if (auto product = value.getDefiningOp<kernel::MatmulOp>())
    product.setMatrixCAttr(padding.of(product.getMatrixC()));
  for (OpOperand &use : value.getUses())
    if (auto product = dyn_cast<kernel::MatmulOp>(use.getOwner())) {
      if (use.getOperandNumber() == 0)
        product.setMatrixAAttr(padding.of(product.getMatrixA()));
      else
        product.setMatrixBAttr(padding.of(product.getMatrixB()));
    }
}

void RowPadding::padAccesses(kernel::FunctionOp function) {
  SmallVector<Attribute> accesses(function.getAccesses().getValue());
  for (auto [argument, attribute] : llvm::enumerate(accesses)) {
    const int64_t length = lengths.lookup({function, unsigned(argument)});
    if (length == 0)
      continue;
    auto access = cast<kernel::AccessAttr>(attribute);
    const RowPitch padding = paddingOf(length);
    attribute = kernel::AccessAttr::get(function.getContext(), padding.of(access.getStrides()),
                                        padding.of(access.getOffset()));
  }
  function.setAccessesAttr(ArrayAttr::get(function.getContext(), accesses));
}

struct PadRows : ModulePass<PadRows> {
  static constexpr StringLiteral flag = "pad-rows";
  static constexpr StringLiteral description =
      "Let rows of 16-bit matrices begin at multiples of 16 bytes";

  void runOnOperation() override { RowPadding(getOperation()).run(); }
};

PassRegistration<PadRows> padRowsRegistration;

} // namespace

std::unique_ptr<Pass> createPadRowsPass() { return std::make_unique<PadRows>(); }

} // namespace trainc
