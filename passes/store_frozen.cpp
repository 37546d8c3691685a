// SPDX-License-Identifier: Apache-2.0
//
// store-frozen: frozen weights as they are in their file.
//
// Problem: a frozen weight never changes, so it needs no place among the parameters and no wider
// type than its file has. Method: the parameters that train.frozen_storage names leave the layout
// and become arguments of the type that is stored; plan-memory gives them an arena of their own,
// which the trainer maps. A product in 16 bits reads a weight of that type as it is. Every other
// reader has a cast of its own, so that a widened weight lives for one step alone: equal casts must
// not be merged again, so nothing after this pass simplifies. A weight that is integers with scales
// is dequantized in the place of a cast; of a table only the rows that are gathered. Weakness: a
// product of another type than its weight widens or rounds the whole weight in front of it.
#include "dialects/elements/element_type.h"
#include "dialects/kernel/kernel.h"
#include "dialects/names/node_name.h"
#include "dialects/nn/builder.h"
#include "dialects/nn/views.h"
#include "dialects/train/module_state.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/module_pass.h"
#include "passes/passes.h"

using namespace mlir;

namespace trainc {
namespace {

struct StoreFrozen : ModulePass<StoreFrozen> {
  static constexpr StringLiteral flag = "store-frozen";
  static constexpr StringLiteral description =
      "read frozen weights in the type that their file has";

  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto function : module.getOps<func::FuncOp>()) {
      parts.clear();
      for (unsigned i = 0; !function.isDeclaration() && i < function.getNumArguments(); ++i)
        if (auto role = train::roleAs<train::ParameterAttr>(function, i)) {
          if (auto form = train::quantizedFormOf(module, role.getName()))
            storeIntegers(function, i, form);
          else if (Type stored = train::storedTypeOf(module, role.getName()))
            store(function, i, stored);
        }
    }
    leaveLayout(module);
  }

private:
  llvm::StringMap<BlockArgument> parts; // scales and zero points of the function's weights

  static void setType(func::FuncOp function, unsigned index, Type type) {
    function.getArgument(index).setType(type);
    SmallVector<Type> inputs = llvm::to_vector(function.getArgumentTypes());
    inputs[index] = type;
    function.setFunctionType(
        FunctionType::get(function.getContext(), inputs, function.getResultTypes()));
  }

  static void store(func::FuncOp function, unsigned index, Type stored) {
    BlockArgument weight = function.getArgument(index);
    auto wide = cast<RankedTensorType>(weight.getType());
    if (wide.getElementType() != stored) {
      setType(function, index, wide.clone(stored));
      readAsStored(weight, wide);
    }
    for (Operation *reader : llvm::to_vector(weight.getUsers()))
      if (isa<nn::CastOp>(reader))
        separate(reader);
  }

  /// What cast the wide weight to the stored type reads it; all else reads one cast.
  static void readAsStored(BlockArgument weight, RankedTensorType wide) {
    OpBuilder at = OpBuilder::atBlockBegin(weight.getOwner());
    nn::Builder builder(at, weight.getLoc());
    Value widened = builder.cast(weight, wide.getElementType());
    for (OpOperand &use : llvm::make_early_inc_range(weight.getUses())) {
      auto cast = dyn_cast<nn::CastOp>(use.getOwner());
      if (cast && cast.getResult() == widened)
        continue;
      if (cast && cast.getType() == weight.getType()) {
        cast.replaceAllUsesWith(static_cast<Value>(weight));
        cast.erase();
      } else {
        use.set(widened);
      }
    }
    if (widened.use_empty())
      widened.getDefiningOp()->erase();
  }

  /// Gives each reader an operation of its own, through the views that lead to it.
  static void separate(Operation *op) {
    for (Operation *reader : llvm::to_vector(op->getUsers()))
      if (isView(reader))
        separate(reader);
    for (OpOperand &use : llvm::make_early_inc_range(op->getUses())) {
      OpBuilder at(use.getOwner());
      Operation *own = at.clone(*op);
      own->setLoc(roleLocation("weight", withoutRole(use.getOwner()->getLoc())));
      use.set(own->getResult(0));
    }
    op->erase();
  }

  /// A weight that is integers, as one function sees it.
  struct Integers {
    train::QuantizedAttr form;
    RankedTensorType wide;
    Value integers, scales, zeros;
    quantized_layout layout() const { return train::layoutOf(form); }
  };

  void storeIntegers(func::FuncOp function, unsigned index, train::QuantizedAttr form) {
    BlockArgument weight = function.getArgument(index);
    Integers own{form, cast<RankedTensorType>(weight.getType()), weight, {}, {}};
    setType(function, index, form.getIntegers());
    own.scales = part(function, form.getScales(), form.getScalesType());
    if (form.getZeros())
      own.zeros = part(function, form.getZeros(), form.getZerosType());
    SmallVector<Operation *> way;
    read(weight, way, own);
  }

  /// The argument of that name, after the weights.
  Value part(func::FuncOp function, StringAttr name, Type type) {
    BlockArgument &argument = parts[name.getValue()];
    if (argument)
      return argument;
    unsigned index = 0;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (train::roleAs<train::ParameterAttr>(function, i))
        index = i + 1;
    auto role = train::ParameterAttr::get(function.getContext(), name, train::Run::frozen,
                                          StringAttr(), /*group=*/0);
    function.insertArgument(index, type, train::attributesOf(role), NameLoc::get(name));
    return argument = function.getArgument(index);
  }

  /// Gives each reader of a value that stands for the weight floats of its own, by the `way` of
  /// casts and views that leads to it.
  static void read(Value value, SmallVectorImpl<Operation *> &way, const Integers &own) {
    for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
      Operation *reader = use.getOwner();
      auto gather = dyn_cast<nn::GatherOp>(reader);
      if (isa<nn::CastOp>(reader) || isView(reader)) {
        way.push_back(reader);
        read(reader->getResult(0), way, own);
        way.pop_back();
        reader->erase();
      } else if (gather && use.getOperandNumber() == 0 && way.empty() && hasRows(own)) {
        readRows(gather, own);
      } else {
        OpBuilder at(reader);
        use.set(floatsBehind(at, reader->getLoc(), way, own));
      }
    }
  }

  static Value floatsBehind(OpBuilder &at, Location location, ArrayRef<Operation *> way,
                            const Integers &own) {
    Type element = own.wide.getElementType();
    auto rounded = way.empty() ? nn::CastOp() : dyn_cast<nn::CastOp>(way.front());
    if (rounded && isNarrowFloat(rounded.getType().getElementType())) {
      element = rounded.getType().getElementType();
      way = way.drop_front();
    }
    const Location ofWeight = roleLocation("weight", withoutRole(location));
    RankedTensorType wide = own.wide;
    Value floats = dequantize(at, ofWeight, own, own.layout(),
                              {own.integers, own.scales, own.zeros}, wide.clone(element));
    for (Operation *step : way) {
      IRMapping mapping;
      mapping.map(step->getOperand(0), floats);
      Operation *copy = at.clone(*step, mapping);
      copy->setLoc(ofWeight);
      floats = copy->getResult(0);
    }
    return floats;
  }

  /// `tensors`: integers, scales, and zero points or null.
  static Value dequantize(OpBuilder &at, Location location, const Integers &own,
                          const quantized_layout &layout, ArrayRef<Value> tensors,
                          RankedTensorType result) {
    SmallVector<Value> inputs(tensors.take_front(own.zeros ? 3 : 2));
    auto call = at.create<kernel::CallOp>(location, TypeRange{result}, "dequantize", "dequantize",
                                          ArrayRef<int64_t>(), inputs);
    call.setNumbersAttr(at.getArrayAttr({at.getDenseI64ArrayAttr(train::numbersOf(layout))}));
    constexpr double kEach = 2; // a subtraction and a product
    call.setFlops(APFloat(kEach * static_cast<double>(result.getNumElements())));
    return call.getOuts().front();
  }

  // ---- rows of a table

  static bool isInteger(Value tensor) {
    return !isa<FloatType>(nn::tensorType(tensor).getElementType());
  }

  /// How many elements of memory a row of numbers takes; an integer has `bits`.
  static int64_t rowOf(Value tensor, int64_t numbers, int64_t bits) {
    return isInteger(tensor) ? numbers * bits / 8 : numbers;
  }

  /// Whether each row has numbers of its own, in whole bytes.
  static bool hasRows(const Integers &own) {
    const quantized_layout layout = own.layout();
    return own.wide.getRank() == 2 && layout.inner == 1 && layout.scale_outer > 0 &&
           layout.outer == own.wide.getDimSize(0) && layout.row * layout.bits % 8 == 0 &&
           (!own.zeros || !isInteger(own.zeros) || layout.zero_outer * layout.bits % 8 == 0);
  }

  /// The rows that are asked for, as floats: not those of a table as floats.
  static void readRows(nn::GatherOp gather, const Integers &own) {
    OpBuilder at(gather);
    nn::Builder builder(at, roleLocation("rows", withoutRole(gather.getLoc())));
    quantized_layout layout = own.layout();
    const int64_t rows = layout.outer;
    auto take = [&](Value table, int64_t numbers) -> Value {
      if (!table)
        return table;
      Value flat = builder.reshape(table, {rows, rowOf(table, numbers, layout.bits)});
      return builder.create<nn::GatherOp>(flat, gather.getIndices());
    };
    SmallVector<Value> tensors{take(own.integers, layout.row), take(own.scales, layout.scale_outer),
                               take(own.zeros, layout.zero_outer)};
    layout.outer = nn::tensorType(gather.getIndices()).getNumElements();
    Value result = dequantize(at, gather.getLoc(), own, layout, tensors, gather.getType());
    gather.replaceAllUsesWith(result);
    gather.erase();
  }

  static void leaveLayout(ModuleOp module) {
    train::LayoutAttr layout = train::layoutOf(module);
    if (!layout)
      return;
    SmallVector<Attribute> staying;
    SmallVector<int64_t> runs = llvm::to_vector(layout.getRuns());
    int64_t frozen = 0; // elements of those that stay, which lie last
    for (train::PlacedAttr placed : layout.placed()) {
      if (train::storedTypeOf(module, placed.getName()))
        continue;
      if (placed.getRun() == train::Run::frozen) {
        placed = train::PlacedAttr::get(module.getContext(), placed.getName(), placed.getRun(),
                                        layout.summedElements() + frozen, placed.getCount(),
                                        placed.getGroup());
        frozen += llvm::alignTo(placed.getCount(), kAlignedElements);
      }
      staying.push_back(placed);
    }
    runs.back() = frozen;
    train::setLayout(module, train::LayoutAttr::get(module.getContext(), runs,
                                                    ArrayAttr::get(module.getContext(), staying)));
  }

  static constexpr int64_t kAlignedElements = 32; // 64 bytes, of 16 bits too
};

PassRegistration<StoreFrozen> storeFrozenRegistration;

} // namespace

std::unique_ptr<Pass> createStoreFrozenPass() { return std::make_unique<StoreFrozen>(); }

} // namespace trainc
