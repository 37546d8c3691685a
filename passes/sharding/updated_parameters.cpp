// SPDX-License-Identifier: Apache-2.0
#include "passes/sharding/updated_parameters.h"
#include "dialects/nn/nn.h"
#include "dialects/train/module_state.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;

namespace trainc {
namespace {

constexpr int64_t stateAlignment = 16; // elements: 64 bytes of f32
constexpr int64_t stateAlignedBytes = 64;

/// Whether a product contracts the first axis of a matrix, so that its outputs are along the last:
/// what a file stores as PyTorch's Linear has it is the other way round. None: no product says.
std::optional<bool> fansOutLast(Value matrix) {
  for (OpOperand &use : matrix.getUses()) {
    if (auto product = dyn_cast<nn::MatmulOp>(use.getOwner()))
      return use.getOperandNumber() == 1 ? !product.getTransposeB() : product.getTransposeA();
    std::optional<bool> further;
    if (auto transposed = dyn_cast<nn::TransposeOp>(use.getOwner())) {
      further = fansOutLast(transposed.getResult());
      if (further && transposed.getPermutation()[0] == 1)
        further = !*further;
    }
    if (further)
      return further;
  }
  return std::nullopt;
}

/// The argument of a forward pass: in others gradients read the parameter, too. Null: none has it.
Value forwardArgument(ModuleOp module, StringRef name) {
  for (StringRef entry : {"evaluate", "model", "forward_backward"})
    if (auto function = module.lookupSymbol<func::FuncOp>(entry))
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        if (train::roleAs<train::ParameterAttr>(function, i) && train::nameOf(function, i) == name)
          return function.getArgument(i);
  return nullptr;
}

/// What a parameter has in a slot.
std::optional<train::StateTensor> stateTensorOf(const train::Optimizer &optimizer,
                                                const train::UpdatedParameter &parameter,
                                                size_t slot) {
  if (optimizer.stateOf)
    return optimizer.stateOf(parameter, slot);
  train::StateTensor state{optimizer.states[slot], parameter.shape};
  if (const int64_t sharing = optimizer.kindOf(slot).sharing; sharing > 1)
    state.shape = {(computeProduct(parameter.shape) + sharing - 1) / sharing};
  return state;
}

} // namespace

UpdatedRun describeRun(ModuleOp module, const train::Optimizer &optimizer, train::Run run,
                       int64_t group, Type element) {
  train::LayoutAttr layout = train::layoutOf(module);
  SmallVector<StringRef> groups = train::groupsOf(module);
  UpdatedRun described;
  int64_t start = -1;
  for (train::PlacedAttr placed : layout.placed()) {
    if (placed.getRun() != run || placed.getGroup() != group)
      continue;
    start = start < 0 ? placed.getOffset() : start; // of the run: its first parameter's
    train::UpdatedParameter parameter;
    parameter.name = placed.getName().str();
    if (group > 0)
      parameter.group = groups[group - 1].str();
    parameter.begin = placed.getOffset() - start;
    parameter.end = parameter.begin + placed.getCount();
    parameter.shape = {placed.getCount()};
    if (Value argument = forwardArgument(module, parameter.name)) {
      auto type = nn::tensorType(argument);
      if (type.getNumElements() == placed.getCount())
        parameter.shape.assign(type.getShape().begin(), type.getShape().end());
      if (type.getRank() == 2)
        parameter.fansOutLast = fansOutLast(argument).value_or(false);
    }
    described.parameters.push_back(parameter);
  }
  for (size_t slot = 0; slot < optimizer.states.size(); ++slot) {
    const train::StateKind kind = optimizer.kindOf(slot);
    described.stateTypes.push_back(train::elementTypeOf(kind.element, element));
    if (kind.sharing > 1) {
      described.stateElements.push_back(layout.elementsOf(run, group) / kind.sharing);
      for (train::UpdatedParameter &parameter : described.parameters)
        parameter.states.push_back(parameter.begin / kind.sharing);
      continue;
    }
    bool likeParameters = true;
    SmallVector<int64_t> begins;
    int64_t packed = 0;
    for (const train::UpdatedParameter &parameter : described.parameters) {
      auto state = stateTensorOf(optimizer, parameter, slot);
      begins.push_back(state ? packed : -1);
      if (state)
        packed += llvm::alignTo(computeProduct(state->shape), stateAlignment);
      likeParameters &= state && state->shape == parameter.shape;
    }
    described.stateElements.push_back(likeParameters ? layout.elementsOf(run, group) : packed);
    for (auto [parameter, begin] : llvm::zip(described.parameters, begins))
      parameter.states.push_back(likeParameters ? parameter.begin : begin);
  }
  return described;
}

void writeStateLayout(ModuleOp module, const train::Optimizer &optimizer,
                      ArrayRef<UpdatedRun> runs) {
  SmallVector<Attribute> rows;
  int64_t offset = 0;
  if (optimizer.stateOf || !optimizer.kinds.empty())
    for (size_t slot = 0; slot < optimizer.states.size(); ++slot)
      for (const UpdatedRun &run : runs) {
        const Type element = run.stateTypes[slot];
        const int64_t width = element.getIntOrFloatBitWidth() / 8;
        for (const train::UpdatedParameter &parameter : run.parameters)
          if (auto state = stateTensorOf(optimizer, parameter, slot))
            rows.push_back(train::rowOf({StringAttr::get(module.getContext(), state->name),
                                         StringAttr::get(module.getContext(), parameter.name),
                                         element, static_cast<int64_t>(slot),
                                         offset + parameter.states[slot] * width, state->shape}));
        offset += llvm::alignTo(run.stateElements[slot] * width, stateAlignedBytes);
      }
  train::setStateLayout(module, rows);
}

} // namespace trainc
