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
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace trainc {
namespace {

using kernel::RowPitch;
using kernel::StepOpInterface;

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
    forEachStep([&](StepOpInterface step) {
      for (Value result : step->getResults())
        consider(result);
    });
    while (dropDivided()) {
    }
    for (auto [value, length] : chosen)
      pad(value, length);
    for (auto function : module.getOps<kernel::FunctionOp>())
      padAccesses(function);
  }

private:
  using Argument = std::pair<Operation *, unsigned>; // of a kernel

  void forEachStep(llvm::function_ref<void(StepOpInterface)> visit) {
    for (auto function : module.getOps<func::FuncOp>())
      for (auto step : llvm::to_vector(function.getOps<StepOpInterface>()))
        visit(step);
  }
  void forEachArgument(StepOpInterface step, llvm::function_ref<void(Value, Argument)> visit);
  void consider(Value value);
  bool isTaken(Operation *op, Value value, int64_t length);
  bool keepsArgument(Argument argument, int64_t length);
  bool dropDivided();
  void pad(Value value, int64_t length);
  void padAccesses(kernel::FunctionOp function);

  ModuleOp module;
  SymbolTableCollection symbols;
  llvm::MapVector<Value, int64_t> chosen; // with the length of their rows
  DenseMap<Argument, int64_t> lengths;
};

/// The tensors that a kernel gets in this step, inputs and then outputs.
void RowPadding::forEachArgument(StepOpInterface step,
                                 llvm::function_ref<void(Value, Argument)> visit) {
  Operation *kernel = symbols.lookupNearestSymbolFrom(step, step.calledKernel());
  unsigned number = 0;
  for (Value operand : step->getOperands())
    visit(operand, {kernel, number++});
  for (Value result : step->getResults())
    visit(result, {kernel, number++});
}

void RowPadding::consider(Value value) {
  RankedTensorType type = nn::tensorType(value);
  if (!isNarrowFloat(type.getElementType()) || type.getRank() < 2)
    return;
  const int64_t length = type.getShape().back();
  if (length < kShortestRow || pitchOf(length) == length ||
      !isTaken(value.getDefiningOp(), value, length))
    return;
  if (llvm::all_of(value.getUsers(),
                   [&](Operation *reader) { return isTaken(reader, value, length); }))
    chosen[value] = length;
}

bool RowPadding::isTaken(Operation *op, Value value, int64_t length) {
  auto step = dyn_cast<StepOpInterface>(op);
  if (!step || !step.calledKernel())
    return step && step.takesRowPitch(value, paddingOf(length));
  bool isTaken = true;
  forEachArgument(step, [&](Value tensor, Argument argument) {
    isTaken = isTaken && (tensor != value || keepsArgument(argument, length));
  });
  return isTaken;
}

bool RowPadding::keepsArgument(Argument argument, int64_t length) {
  auto function = cast<kernel::FunctionOp>(argument.first);
  for (Operation *user : function.getBody().getArgument(argument.second).getUsers())
    if (auto load = dyn_cast<kernel::LoadOp>(user); load && load.getIndex())
      return false;
  auto access = cast<kernel::AccessAttr>(function.getAccesses()[argument.second]);
  return paddingOf(length).isTaken(function.getDims(), access.getStrides(), access.getOffset());
}

/// A kernel's argument has one pitch in all launches: drops tensors where another one is as it was.
bool RowPadding::dropDivided() {
  lengths.clear();
  DenseMap<Argument, bool> isDivided;
  SmallVector<std::pair<Value, Argument>> uses;
  forEachStep([&](StepOpInterface step) {
    if (!step.calledKernel())
      return;
    forEachArgument(step, [&](Value tensor, Argument argument) {
      const auto found = chosen.find(tensor);
      const int64_t length = found == chosen.end() ? 0 : found->second;
      uses.push_back({tensor, argument});
      if (lengths.try_emplace(argument, length).first->second != length)
        isDivided[argument] = true;
    });
  });
  bool dropped = false;
  for (auto [value, argument] : uses)
    dropped |= isDivided.lookup(argument) && chosen.erase(value);
  return dropped;
}

void RowPadding::pad(Value value, int64_t length) {
  const RowPitch padding = paddingOf(length);
  value.setType(withRowPitch(nn::tensorType(value), padding.pitch));
  cast<StepOpInterface>(value.getDefiningOp()).setRowPitch(value, padding);
  for (Operation *reader :
       llvm::SmallSetVector<Operation *, 4>(value.user_begin(), value.user_end()))
    cast<StepOpInterface>(reader).setRowPitch(value, padding);
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
