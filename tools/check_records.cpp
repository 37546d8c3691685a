// SPDX-License-Identifier: Apache-2.0
#include "tools/check_records.h"
#include "dialects/nn/builder.h"
#include <bit>
#include <limits>

using namespace mlir;

namespace trainc {
namespace {

constexpr int64_t kOperands = 1 << 16;
constexpr float kOrdinary = 32; // half of the operands lie in [-32, 32]

/// Operand number `which`: no two operands go through their numbers in the same order.
std::vector<float> sweep(unsigned which) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  static const float special[] = {
      0.0f,  -0.0f,  1.0f,     -1.0f,     0.5f,   2.0f,
      -2.0f, 3.0f,   infinity, -infinity, 1e-40f, std::numeric_limits<float>::quiet_NaN(),
      1e38f, -1e38f, 7.0f};
  constexpr int64_t count = std::size(special);
  std::vector<float> values(kOperands);
  uint64_t state = which + 1;
  for (int64_t i = 0; i < kOperands; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto random = static_cast<uint32_t>(state >> 32);
    if (i < count * count) // all pairs of them
      values[i] = special[which % 2 == 0 ? i % count : i / count];
    else if (i % 2 == 0)
      values[i] = (static_cast<float>(random >> 8) * 0x1p-23f - 1.0f) * kOrdinary;
    else // every sign, exponent and leading bits in turn; shuffled for the second operand
      values[i] = std::bit_cast<float>(
          which % 2 == 0 ? static_cast<uint32_t>(i) << 16 | random >> 16 : random);
  }
  return values;
}

Value apply(nn::Builder &builder, OperationName name, ArrayRef<Value> operands, Type element) {
  auto type = nn::tensorType(operands.back()).clone(element);
  OperationState state(builder.location(), name);
  state.addOperands(operands);
  state.addTypes(type);
  return builder.op().create(state)->getResult(0);
}

func::FuncOp buildFunction(OpBuilder &at, OperationName name, unsigned operands) {
  auto f32 = RankedTensorType::get(kOperands, at.getF32Type());
  auto location = NameLoc::get(at.getStringAttr(name.getStringRef()));
  bool selects = operands == 3; // the first operand is a condition
  SmallVector<Type> types(operands, f32);
  SmallVector<Attribute> inputs;
  for (unsigned i = 0; i < operands; ++i) {
    std::vector<float> values = sweep(i);
    if (selects && i == 0) {
      types[i] = f32.clone(at.getI1Type());
      SmallVector<bool> conditions;
      for (float value : values)
        conditions.push_back(value > 0);
      inputs.push_back(DenseElementsAttr::get(cast<ShapedType>(types[i]), ArrayRef(conditions)));
    } else {
      inputs.push_back(DenseElementsAttr::get(f32, ArrayRef(values)));
    }
  }
  auto function = at.create<func::FuncOp>(location, ("numbers_" + name.stripDialect()).str(),
                                          at.getFunctionType(types, {}));
  function->setAttr("check.inputs", at.getArrayAttr(inputs));
  OpBuilder inside = OpBuilder::atBlockBegin(function.addEntryBlock());
  nn::Builder builder(inside, location);
  SmallVector<Value> narrow(function.getArguments().begin(), function.getArguments().end()), wide;
  for (Value operand : narrow)
    wide.push_back(operand.getType() == f32 ? builder.cast(operand, at.getF64Type()) : operand);
  auto *inference = name.getInterface<InferTypeOpInterface>();
  SmallVector<Type> result;
  (void)inference->inferReturnTypes(at.getContext(), location, narrow,
                                    DictionaryAttr::get(at.getContext()), nullptr, {}, result);
  bool predicate = cast<RankedTensorType>(result[0]).getElementType().isInteger(1);
  SmallVector<Value> results = {
      apply(builder, name, narrow, predicate ? at.getI1Type() : Type(at.getF32Type())),
      apply(builder, name, wide, predicate ? at.getI1Type() : Type(at.getF64Type()))};
  inside.create<func::ReturnOp>(location, results);
  function.setFunctionType(at.getFunctionType(types, ValueRange(results).getTypes()));
  return function;
}

} // namespace

std::vector<RecordCheck> recordFunctions(MLIRContext &context, OwningOpRef<ModuleOp> &module) {
  module = ModuleOp::create(UnknownLoc::get(&context));
  OpBuilder at = OpBuilder::atBlockBegin(module->getBody());
  std::vector<RecordCheck> records;
  for (RegisteredOperationName name : context.getRegisteredOperations()) {
    auto *record = name.getInterface<nn::PointwiseOpInterface>();
    if (!record || record->accuracy().ulp < 0)
      continue;
    records.push_back({name.stripDialect().str(), record->accuracy(),
                       buildFunction(at, name, record->operandNames().size())});
  }
  return records;
}

double errorInUnits(double found, double exact, ArrayRef<double> operands, bool cancels) {
  const auto rounded = static_cast<float>(exact);
  if (std::isnan(found) || std::isnan(rounded))
    return std::isnan(found) == std::isnan(rounded) ? 0 : INFINITY;
  if (std::isinf(found) || std::isinf(rounded))
    return found == rounded ? 0 : INFINITY;
  float largest = std::abs(rounded);
  if (cancels)
    for (double operand : operands)
      if (std::isfinite(operand))
        largest = std::max(largest, static_cast<float>(std::abs(operand)));
  constexpr float smallestNormal = std::numeric_limits<float>::min();
  if (largest < smallestNormal)
    return std::abs(found - exact) / smallestNormal;
  const double ulp = std::ldexp(1.0, std::ilogb(largest) - 23);
  return std::abs(found - exact) / ulp;
}

} // namespace trainc
