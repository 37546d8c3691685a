// SPDX-License-Identifier: Apache-2.0
//
// From tensors to scalars at a point (kernel_builder.h).
//
// Code is made on demand: the scalar of a tensor value at an index map is the
// operation applied to the scalars of its operands at their maps; a tensor from
// above becomes a load whose strides are the map's. Where a reshape cuts through
// an iteration dimension, the dimension is split and the kernel is built anew.
// In row form, what does not depend on the walked dimensions is computed once
// per row. Reductions of the same depth share a loop.
#include "passes/kernels/kernel_builder.h"
#include "dialects/errors/internal_error.h"
#include "dialects/nn/reduction.h"
#include "dialects/nn/scalar_code.h"
#include "passes/kernels/value_views.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"
#include <map>

using namespace mlir;

namespace trainc {
namespace {

using planning::Affine;
using planning::IndexMap;
using planning::Sizes;
using planning::Split;

class KernelBuilder {
public:
  KernelBuilder(kernel::GroupOp group, const Sizes &dims, size_t outer)
      : group(group), builder(group.getContext()), dims(dims), outer(outer), space(dims) {}

  /// Null where `split` must be applied first, or (without split) on failure.
  kernel::FunctionOp build(std::optional<Split> &split);
  SmallVector<Value> inputs;

private:
  // Where code stands: in the body of the function, or in the region of a loop.
  struct Scope {
    std::map<std::vector<int64_t>, Value> values;
    bool walks = false;
  };
  using Key = std::vector<int64_t>;

  Value scalar(Value value, const IndexMap &map, Value predicate);
  Value compute(Value value, const IndexMap &map, Value predicate);
  Value randomBits(nn::RandomBitsOp random, const IndexMap &map, Value predicate);
  Value throughPad(nn::PadOp pad, const IndexMap &map, Value predicate);
  Value throughConcat(nn::ConcatOp concat, const IndexMap &map, Value predicate);
  Value throughGather(nn::GatherOp gather, const IndexMap &map, Value predicate);
  Value load(Value tensor, const Affine &position, Value predicate);
  Value throughView(Operation *view, const IndexMap &map, Value predicate);
  IndexMap divide(const Affine &position, const Sizes &shape);
  Value indexValue(const Affine &index);
  Value computeIndex(const Affine &index);
  Value both(Value a, Value b) {
    return !a ? b : !b ? a : builder.create<arith::AndIOp>(location, a, b).getResult();
  }
  Value condition(const Affine &index, int64_t low, int64_t size, Value &predicate);
  bool dependsOnWalk(const IndexMap &map);
  bool isRowLevel(const IndexMap &map, Value predicate);
  bool isCanonical(const Affine &position);
  bool isPlainLoad(Value value);
  Key keyOf(Value value, const IndexMap &map, Value predicate);
  std::optional<IndexMap> mapOver(Value value, size_t begin, size_t end);
  std::optional<IndexMap> operandOfReduction(Operation *reduction);
  std::optional<IndexMap> mapOfWhole(Value value);
  size_t addSymbol(Value value, int64_t range);
  BlockArgument inputArgument(Value tensor, kernel::AccessAttr access);
  kernel::AccessAttr access(const Affine &position);

  bool buildReductions();
  bool buildStores();
  bool isStoredPerPoint(Value value);
  void storeWhole(int phase);
  void store(Value value, unsigned output, const std::optional<IndexMap> &map);
  int phaseOf(Value value);
  bool fail(std::optional<Split> wanted);
  kernel::FunctionOp finish();
  /// Whether an operation of the group computes the value.
  bool isComputed(Value value) {
    return value.getDefiningOp() && value.getDefiningOp()->getParentOp() == group;
  }

  kernel::GroupOp group;
  OpBuilder builder;
  Location location{withoutRole(group.getLoc())};
  Sizes dims;   // iteration space
  size_t outer; // dimensions not walked (row), walked (column)
  Sizes space;  // dims and symbols
  std::vector<Value> symbols;
  llvm::DenseMap<Value, size_t> symbolNumbers;
  llvm::DenseMap<Value, Value> reduced; // reduction's result -> scalar
  llvm::DenseMap<Value, int> phases;
  Block body;
  Scope function, region;
  Scope *scope = &function;
  std::optional<Split> wantedSplit;
  bool failed = false;
  SmallVector<std::pair<Value, kernel::AccessAttr>> loaded; // by argument
  SmallVector<kernel::AccessAttr> stored;                   // by output; null: not yet
  SmallVector<BlockArgument> outputs;
};

kernel::Reduction kindOf(Operation *op) {
  return TypeSwitch<Operation *, kernel::Reduction>(op)
      .Case([](nn::ReduceSumOp) { return kernel::Reduction::add; })
      .Case([](nn::ReduceMaxOp) { return kernel::Reduction::max; })
      .Case([](nn::ReduceMinOp) { return kernel::Reduction::min; })
      .Default([](Operation *other) -> kernel::Reduction {
        internalError(other, "no loop combines as this reduction does");
      });
}

bool KernelBuilder::fail(std::optional<Split> wanted) {
  if (!failed)
    wantedSplit = wanted;
  failed = true;
  return false;
}

/// The map of a tensor whose elements follow dimensions [begin, end) in order.
std::optional<IndexMap> KernelBuilder::mapOver(Value value, size_t begin, size_t end) {
  std::optional<Split> split;
  auto indices =
      planning::delinearise(planning::linearIndex(dims, begin, end), dims, sizesOf(value), split);
  if (!indices) {
    fail(split);
    return std::nullopt;
  }
  return IndexMap{space, *indices};
}

/// Kept dimensions follow the rows (columns), reduced ones the walk.
std::optional<IndexMap> KernelBuilder::operandOfReduction(Operation *reduction) {
  const Sizes shape = sizesOf(reduction->getOperand(0));
  auto over = cast<DenseI64ArrayAttr>(reduction->getAttr("dimensions")).asArrayRef();
  IndexMap map{space, std::vector<Affine>(shape.size())};
  bool column = group.getForm() == kernel::Form::column;
  for (bool walked : {false, true}) {
    Sizes part, dimensions;
    for (int64_t d = 0; d < int64_t(shape.size()); ++d)
      if (llvm::is_contained(over, d) == walked) {
        part.push_back(shape[d]);
        dimensions.push_back(d);
      }
    bool front = walked == column;
    if (group.getForm() == kernel::Form::full)
      front = !walked;
    size_t begin = front ? 0 : outer, end = front ? outer : dims.size();
    std::optional<Split> split;
    auto indices =
        planning::delinearise(planning::linearIndex(dims, begin, end), dims, part, split);
    if (!indices) {
      fail(split);
      return std::nullopt;
    }
    for (size_t i = 0; i < dimensions.size(); ++i)
      map.index[dimensions[i]] = (*indices)[i];
  }
  return map;
}

bool KernelBuilder::dependsOnWalk(const IndexMap &map) {
  for (const Affine &index : map.index) {
    for (size_t d = outer; d < dims.size(); ++d)
      if (index.coefficient(d) != 0)
        return true;
    // Symbols made in this region belong to the point.
    for (size_t d = dims.size(); d < space.size(); ++d)
      if (index.coefficient(d) != 0 && symbols[d - dims.size()].getParentBlock() != &body)
        return true;
  }
  return false;
}

bool KernelBuilder::isRowLevel(const IndexMap &map, Value predicate) {
  return group.getForm() == kernel::Form::row && scope->walks && !dependsOnWalk(map) &&
         (!predicate || predicate.getParentBlock() == &body);
}

/// Whether the position is that of the current row's, column's or the only reduction.
bool KernelBuilder::isCanonical(const Affine &position) {
  kernel::Form form = group.getForm();
  return position == (form == kernel::Form::row ? planning::linearIndex(dims, 0, outer)
                      : form == kernel::Form::column
                          ? planning::linearIndex(dims, outer, dims.size())
                          : Affine());
}

KernelBuilder::Key KernelBuilder::keyOf(Value value, const IndexMap &map, Value predicate) {
  Key key{int64_t(reinterpret_cast<intptr_t>(value.getAsOpaquePointer())),
          int64_t(reinterpret_cast<intptr_t>(predicate.getAsOpaquePointer()))};
  for (const Affine &index : map.index) {
    key.push_back(index.offset);
    for (size_t d = 0; d < space.size(); ++d)
      if (int64_t c = index.coefficient(d)) {
        key.push_back(d);
        key.push_back(c);
      }
    key.push_back(-1);
  }
  return key;
}

/// The scalar of `value` at `map`; where `predicate` does not hold it may be anything.
Value KernelBuilder::scalar(Value value, const IndexMap &map, Value predicate) {
  if (failed)
    return {};
  if (isRowLevel(map, predicate)) {
    Operation *loop = builder.getInsertionBlock()->getParentOp();
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(loop);
    Scope *inner = scope;
    scope = &function;
    Value result = scalar(value, map, predicate);
    scope = inner;
    return result;
  }
  Key key = keyOf(value, map, predicate);
  for (Scope *known : {scope, &function})
    if (auto found = known->values.find(key); found != known->values.end())
      return found->second;
  Value result = compute(value, map, predicate);
  scope->values[key] = result;
  return result;
}

Value KernelBuilder::compute(Value value, const IndexMap &map, Value predicate) {
  if (!isComputed(value))
    return load(value, map.linear(sizesOf(value)), predicate);
  Operation *op = value.getDefiningOp();
  if (Value result = reduced.lookup(value)) {
    if (!isCanonical(map.linear(sizesOf(value))))
      fail(std::nullopt);
    return result;
  }
  Type type = scalarTypeOf(nn::tensorType(value).getElementType());
  if (auto constant = dyn_cast<nn::ConstantOp>(op)) {
    auto splat = cast<SplatElementsAttr>(constant.getValue()).getSplatValue<Attribute>();
    if (isa<IntegerType>(type) && !type.isInteger(1))
      splat = builder.getIntegerAttr(type, nn::Tensor::of(constant.getValue()).integer(0));
    else if (isa<FloatType>(type))
      splat = builder.getFloatAttr(type, nn::Tensor::of(constant.getValue()).real(0));
    return builder.create<arith::ConstantOp>(op->getLoc(), cast<TypedAttr>(splat));
  }
  if (auto iota = dyn_cast<nn::IotaOp>(op))
    return castScalar(builder, location, indexValue(map.index[iota.getDimension()]), type);
  if (auto random = dyn_cast<nn::RandomBitsOp>(op))
    return randomBits(random, map, predicate);
  if (isView(op))
    return throughView(op, map, predicate);
  if (auto pad = dyn_cast<nn::PadOp>(op))
    return throughPad(pad, map, predicate);
  if (auto concat = dyn_cast<nn::ConcatOp>(op))
    return throughConcat(concat, map, predicate);
  if (auto gather = dyn_cast<nn::GatherOp>(op))
    return throughGather(gather, map, predicate);
  if (nn::isReduction(op)) {
    fail(std::nullopt);
    return {};
  }
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(scalar(operand, map, predicate));
    if (failed)
      return {};
  }
  return buildScalar(builder, op, operands);
}

/// An element of the tensor is the number of its own position, in every kernel that computes it.
Value KernelBuilder::randomBits(nn::RandomBitsOp random, const IndexMap &map, Value predicate) {
  Type type = builder.getI64Type();
  Value key = random.getKeys() ? scalar(random.getKeys(), map, predicate)
                               : scalarConstant(builder, location, 0, type);
  if (failed)
    return {};
  Value element = indexValue(map.linear(sizesOf(random.getResult())));
  return builder.create<kernel::RandomBitsOp>(random.getLoc(), type, key, element,
                                              random.getStream(), random.getBits());
}

Value KernelBuilder::throughView(Operation *view, const IndexMap &map, Value predicate) {
  Value operand = view->getOperand(0);
  if (isa<nn::ReshapeOp>(view)) {
    // Memory knows no shape: only the position counts.
    Affine position = map.linear(sizesOf(view->getResult(0)));
    while (isComputed(operand) && operand.getDefiningOp<nn::ReshapeOp>())
      operand = operand.getDefiningOp()->getOperand(0);
    if (!isComputed(operand))
      return load(operand, position, predicate);
    if (Value result = reduced.lookup(operand); result && isCanonical(position))
      return result;
    operand = view->getOperand(0);
  }
  std::optional<Split> split;
  auto next = operandMap(view, map, split);
  if (!next && split && split->dimension < dims.size()) { // symbols cannot be split
    fail(split);
    return {};
  }
  if (!next)
    next = divide(map.linear(sizesOf(view->getResult(0))), sizesOf(operand));
  return scalar(operand, *next, predicate);
}

/// Index of element `position`, by division: where no split of the space serves.
IndexMap KernelBuilder::divide(const Affine &position, const Sizes &shape) {
  Sizes strides = planning::rowMajorStrides(shape);
  Type type = builder.getI64Type();
  Value rest = indexValue(position);
  IndexMap map{space, {}};
  for (size_t d = 0; d < shape.size(); ++d) {
    Affine index;
    if (shape[d] > 1) {
      Value block = scalarConstant(builder, location, strides[d], type);
      Value quotient = rest;
      if (strides[d] > 1) {
        quotient = builder.create<arith::DivSIOp>(location, rest, block);
        rest = builder.create<arith::RemSIOp>(location, rest, block);
      }
      index.add(addSymbol(quotient, shape[d]), 1);
    }
    map.index.push_back(index);
  }
  map.space = space;
  return map;
}

/// Computes an affine index as an i64.
Value KernelBuilder::indexValue(const Affine &index) {
  Key key = keyOf(Value(), IndexMap{space, {index}}, Value());
  Value &known = scope->values[key];
  if (!known)
    known = computeIndex(index);
  return known;
}

Value KernelBuilder::computeIndex(const Affine &index) {
  Type type = builder.getI64Type();
  Value sum;
  for (size_t d = 0; d < space.size(); ++d) {
    int64_t c = index.coefficient(d);
    if (c == 0)
      continue;
    Value term = d < dims.size() ? builder.create<kernel::IndexOp>(location, type, d).getResult()
                                 : symbols[d - dims.size()];
    if (c != 1)
      term =
          builder.create<arith::MulIOp>(location, term, scalarConstant(builder, location, c, type));
    sum = sum ? builder.create<arith::AddIOp>(location, sum, term).getResult() : term;
  }
  if (!sum)
    return scalarConstant(builder, location, index.offset, type);
  if (index.offset != 0)
    sum = builder.create<arith::AddIOp>(location, sum,
                                        scalarConstant(builder, location, index.offset, type));
  return sum;
}

size_t KernelBuilder::addSymbol(Value value, int64_t range) {
  auto [entry, isNew] = symbolNumbers.try_emplace(value, space.size());
  if (isNew) {
    symbols.push_back(value);
    space.push_back(range);
  }
  return entry->second;
}

/// Adds `low <= index < low + size` to the predicate where it does not always
/// hold; returns what was added, if anything.
Value KernelBuilder::condition(const Affine &index, int64_t low, int64_t size, Value &predicate) {
  planning::Range range = planning::rangeOf(index, space);
  Value added;
  Type type = builder.getI64Type();
  auto compare = [&](arith::CmpIPredicate kind, int64_t bound) {
    Value holds = builder.create<arith::CmpIOp>(location, kind, indexValue(index),
                                                scalarConstant(builder, location, bound, type));
    added = both(added, holds);
  };
  if (range.low < low)
    compare(arith::CmpIPredicate::sge, low);
  if (range.high >= low + size)
    compare(arith::CmpIPredicate::slt, low + size);
  predicate = both(predicate, added);
  return added;
}

/// A loaded element is 0 where its predicate fails; anything else is selected.
bool KernelBuilder::isPlainLoad(Value value) {
  while (isComputed(value) && isView(value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return !isComputed(value);
}

Value KernelBuilder::throughPad(nn::PadOp pad, const IndexMap &map, Value predicate) {
  Sizes operandShape = sizesOf(pad.getX());
  IndexMap operand{space, {}};
  Value outside = predicate;
  Type type = builder.getI64Type();
  for (size_t d = 0; d < operandShape.size(); ++d) {
    int64_t step = pad.getInterior()[d] + 1;
    Affine index = map.index[d].scaled(1, -pad.getLow()[d]);
    condition(index, 0, (operandShape[d] - 1) * step + 1, predicate);
    bool divides = index.offset % step == 0;
    for (int64_t c : index.coefficients)
      divides &= c % step == 0;
    if (divides) {
      index.offset /= step;
      for (int64_t &c : index.coefficients)
        c /= step;
    } else {
      Value at = indexValue(index), by = scalarConstant(builder, location, step, type);
      Value rest = builder.create<arith::RemSIOp>(location, at, by);
      predicate = both(predicate,
                       builder.create<arith::CmpIOp>(location, arith::CmpIPredicate::eq, rest,
                                                     scalarConstant(builder, location, 0, type)));
      index = Affine();
      index.add(addSymbol(builder.create<arith::DivSIOp>(location, at, by), operandShape[d]), 1);
    }
    operand.index.push_back(index);
  }
  operand.space = space;
  Value value = scalar(pad.getX(), operand, predicate);
  if (failed || predicate == outside || isPlainLoad(pad.getX()))
    return value;
  Value zero = scalarConstant(builder, location, 0, value.getType());
  return builder.create<arith::SelectOp>(location, predicate, value, zero);
}

Value KernelBuilder::throughConcat(nn::ConcatOp concat, const IndexMap &map, Value predicate) {
  size_t d = concat.getDimension();
  planning::Range range = planning::rangeOf(map.index[d], space);
  int64_t end = sizesOf(concat.getResult())[d];
  Value result;
  for (Value part : llvm::reverse(concat.getInputs())) {
    int64_t size = sizesOf(part)[d], begin = end - size;
    end = begin;
    if (size == 0 || range.high < begin || range.low >= begin + size)
      continue;
    Value inside = predicate;
    IndexMap operand = map;
    operand.index[d] = map.index[d].scaled(1, -begin);
    condition(map.index[d], begin, size, inside);
    Value value = scalar(part, operand, inside);
    if (failed)
      return {};
    if (!result) {
      result = value;
      continue;
    }
    // Parts further back are there already: this one is in front of them.
    Value before = builder.create<arith::CmpIOp>(
        location, arith::CmpIPredicate::slt, indexValue(map.index[d]),
        scalarConstant(builder, location, begin + size, builder.getI64Type()));
    result = builder.create<arith::SelectOp>(location, before, value, result);
  }
  if (result)
    return result;
  // Where the predicate of a padding is false, the position may be in none of the parts.
  Type element = nn::tensorType(concat.getResult()).getElementType();
  return scalarConstant(builder, location, 0, scalarTypeOf(element));
}

Value KernelBuilder::throughGather(nn::GatherOp gather, const IndexMap &map, Value predicate) {
  size_t rank = sizesOf(gather.getIndices()).size();
  Sizes table = sizesOf(gather.getTable());
  IndexMap indices{space, {map.index.begin(), map.index.begin() + rank}};
  Value index = scalar(gather.getIndices(), indices, predicate);
  if (failed)
    return {};
  IndexMap operand{space, std::vector<Affine>(1)};
  operand.index[0].add(addSymbol(index, table[0]), 1);
  operand.space = space;
  operand.index.insert(operand.index.end(), map.index.begin() + rank, map.index.end());
  return scalar(gather.getTable(), operand, predicate);
}

kernel::AccessAttr KernelBuilder::access(const Affine &position) {
  SmallVector<int64_t> strides;
  for (size_t d = 0; d < dims.size(); ++d)
    strides.push_back(position.coefficient(d));
  return kernel::AccessAttr::get(builder.getContext(), strides, position.offset);
}

BlockArgument KernelBuilder::inputArgument(Value tensor, kernel::AccessAttr at) {
  for (auto [i, known] : llvm::enumerate(loaded))
    if (known.first == tensor && known.second == at)
      return body.getArgument(outputs.size() + i);
  loaded.push_back({tensor, at});
  Type element = nn::tensorType(tensor).getElementType();
  return body.addArgument(kernel::BufferType::get(builder.getContext(), element), location);
}

Value KernelBuilder::load(Value tensor, const Affine &position, Value predicate) {
  Value index;
  int64_t stride = 0;
  SmallVector<size_t> used;
  for (size_t d = dims.size(); d < space.size(); ++d)
    if (position.coefficient(d) != 0)
      used.push_back(d);
  if (used.size() == 1) {
    index = symbols[used[0] - dims.size()];
    stride = position.coefficient(used[0]);
  } else if (!used.empty()) {
    Affine sum;
    for (size_t d : used)
      sum.add(d, position.coefficient(d));
    index = indexValue(sum);
    stride = 1;
  }
  BlockArgument buffer = inputArgument(tensor, access(position));
  Type element = nn::tensorType(tensor).getElementType(), scalar = scalarTypeOf(element);
  Value value = builder.create<kernel::LoadOp>(tensor.getLoc(),
                                               element.isUnsignedInteger() ? scalar : element,
                                               buffer, index, predicate, stride);
  if (value.getType() == scalar)
    return value;
  if (isa<FloatType>(scalar))
    return builder.create<arith::ExtFOp>(tensor.getLoc(), scalar, value);
  return builder.create<arith::ExtSIOp>(tensor.getLoc(), scalar, value);
}

int KernelBuilder::phaseOf(Value value) {
  if (!isComputed(value))
    return 0;
  Operation *op = value.getDefiningOp();
  if (auto known = phases.find(value); known != phases.end())
    return known->second;
  int phase = 0;
  for (Value operand : op->getOperands())
    phase = std::max(phase, phaseOf(operand));
  phase += nn::isReduction(op) ? 1 : 0;
  phases[value] = phase;
  return phase;
}

bool KernelBuilder::buildReductions() {
  std::map<int, SmallVector<Operation *>> byPhase;
  for (Operation &op : group.getBody().front())
    if (nn::isReduction(&op))
      byPhase[phaseOf(op.getResult(0))].push_back(&op);
  for (auto &[phase, operations] : byPhase) {
    SmallVector<Type> types;
    SmallVector<Attribute> kinds;
    SmallVector<Location> locations;
    for (Operation *op : operations) {
      locations.push_back(op->getLoc());
      types.push_back(scalarTypeOf(nn::tensorType(op->getResult(0)).getElementType()));
      kinds.push_back(kernel::ReductionAttr::get(builder.getContext(), kindOf(op)));
    }
    auto reduce = builder.create<kernel::ReduceOp>(locationOfResults(locations), types,
                                                   builder.getArrayAttr(kinds));
    Block &block = reduce.getBody().emplaceBlock();
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(&block);
    region = Scope{{}, true};
    scope = &region;
    SmallVector<Value> yielded;
    for (Operation *op : operations) {
      auto map = operandOfReduction(op);
      Value value = map ? scalar(op->getOperand(0), *map, Value()) : Value();
      if (!value)
        return false;
      yielded.push_back(value);
    }
    storeWhole(phase);
    builder.create<kernel::YieldOp>(location, yielded);
    scope = &function;
    for (auto [op, result] : llvm::zip(operations, reduce.getOuts()))
      reduced[op->getResult(0)] = result;
  }
  return true;
}

void KernelBuilder::store(Value value, unsigned output, const std::optional<IndexMap> &map) {
  Value result = map ? scalar(value, *map, Value()) : Value();
  if (!result)
    return;
  Type element = nn::tensorType(value).getElementType();
  if (auto rounded = result.getDefiningOp<arith::ExtFOp>();
      rounded && rounded.getIn().getType() == element)
    result = rounded.getIn();
  else if (scalarTypeOf(element) != element && isa<FloatType>(element))
    result = builder.create<arith::TruncFOp>(location, element, result);
  else if (scalarTypeOf(element) != element && !element.isUnsignedInteger())
    result = builder.create<arith::TruncIOp>(location, element, result);
  stored[output] = access(map->linear(sizesOf(value)));
  builder.create<kernel::StoreOp>(value.getLoc(), result, outputs[output]);
}

/// Whether the value has an element for every point; else it has one for every row or column.
bool KernelBuilder::isStoredPerPoint(Value value) {
  kernel::Form form = group.getForm();
  if (form == kernel::Form::pointwise)
    return true;
  size_t begin = form == kernel::Form::row ? outer : 0;
  size_t end = form == kernel::Form::column ? outer : dims.size();
  return planning::elementCount(sizesOf(value)) == planning::elementCount(dims) &&
         planning::elementCount({dims.begin() + begin, dims.begin() + end}) > 1;
}

/// The map of a value with an element for every point.
std::optional<IndexMap> KernelBuilder::mapOfWhole(Value value) {
  if (group.getForm() == kernel::Form::column)
    for (Operation &op : group.getBody().front())
      if (nn::isReduction(&op) && sizesOf(op.getOperand(0)) == sizesOf(value))
        return operandOfReduction(&op);
  return mapOver(value, 0, dims.size());
}

/// In form column or full, what has an element for every point is stored in the loop of the
/// first reduction that comes after all that it needs: there its operands are at hand, and
/// a reduction with its stores still stands alone.
void KernelBuilder::storeWhole(int phase) {
  if (group.getForm() == kernel::Form::row)
    return;
  for (auto [i, value] : llvm::enumerate(group.getBody().front().getTerminator()->getOperands()))
    if (!stored[i] && isStoredPerPoint(value) && phaseOf(value) < phase)
      store(value, i, mapOfWhole(value));
}

bool KernelBuilder::buildStores() {
  auto yielded = group.getBody().front().getTerminator()->getOperands();
  kernel::Form form = group.getForm();
  SmallVector<unsigned> whole;
  size_t begin = form == kernel::Form::row ? 0 : outer;
  size_t end = form == kernel::Form::row ? outer : dims.size();
  if (form == kernel::Form::full)
    begin = end = 0;
  for (auto [i, value] : llvm::enumerate(yielded)) {
    if (isStoredPerPoint(value))
      whole.push_back(i);
    else
      store(value, i, mapOver(value, begin, end));
  }
  llvm::erase_if(whole, [&](unsigned i) { return bool(stored[i]); });
  if (!whole.empty()) {
    auto map = builder.create<kernel::MapOp>(location);
    Block &block = map.getBody().emplaceBlock();
    builder.setInsertionPointToEnd(&block);
    region = Scope{{}, true};
    scope = &region;
    for (unsigned i : whole)
      store(yielded[i], i, mapOfWhole(yielded[i]));
    scope = &function;
  }
  return !failed;
}

kernel::FunctionOp KernelBuilder::build(std::optional<Split> &split) {
  builder.setInsertionPointToEnd(&body);
  for (Type type : group.getResultTypes()) {
    Type element = cast<RankedTensorType>(type).getElementType();
    outputs.push_back(
        body.addArgument(kernel::BufferType::get(builder.getContext(), element), location));
    stored.push_back({});
  }
  if (!buildReductions() || !buildStores()) {
    split = wantedSplit;
    body.dropAllReferences();
    return {};
  }
  return finish();
}

kernel::FunctionOp KernelBuilder::finish() {
  SmallVector<Attribute> accesses;
  for (auto &[tensor, at] : loaded) {
    inputs.push_back(tensor);
    accesses.push_back(at);
  }
  for (BlockArgument output : outputs) {
    BlockArgument last = body.addArgument(output.getType(), output.getLoc());
    output.replaceAllUsesWith(last);
  }
  body.eraseArguments(0, outputs.size());
  for (kernel::AccessAttr at : stored)
    accesses.push_back(at);
  builder.clearInsertionPoint();
  auto function = builder.create<kernel::FunctionOp>(
      location, "kernel", group.getForm(), dims, /*reduced=*/0, outputs.size(),
      builder.getArrayAttr(accesses), builder.getStrArrayAttr({}), FloatAttr(), Attribute());
  Block &block = function.getBody().emplaceBlock();
  for (BlockArgument argument : body.getArguments())
    argument.replaceAllUsesWith(block.addArgument(argument.getType(), argument.getLoc()));
  block.getOperations().splice(block.end(), body.getOperations());
  mergeDimensions(function, outer); // which counts the reduced ones
  return function;
}

/// Sizes of the iteration space before any split, and how many lead.
std::pair<Sizes, size_t> initialSpace(kernel::GroupOp group) {
  for (Operation &op : group.getBody().front()) {
    if (!nn::isReduction(&op))
      continue;
    int64_t kept = planning::elementCount(sizesOf(op.getResult(0)));
    int64_t all = planning::elementCount(sizesOf(op.getOperand(0)));
    int64_t walked = kept == 0 ? 0 : all / kept;
    switch (group.getForm()) {
    case kernel::Form::row:
      return {{kept, walked}, 1};
    case kernel::Form::column:
      return {{walked, kept}, 1};
    case kernel::Form::full:
      return {{all}, 0};
    case kernel::Form::pointwise:
      internalError(group, "a group that reduces nothing holds a reduction");
    }
  }
  Value first = group.getBody().front().getTerminator()->getOperand(0);
  return {{planning::elementCount(sizesOf(first))}, 0};
}

} // namespace

BuiltKernel buildKernel(kernel::GroupOp group) {
  auto [dims, outer] = initialSpace(group);
  for (int attempt = 0; attempt < planning::kMostSplits; ++attempt) {
    std::optional<Split> split;
    KernelBuilder builder(group, dims, outer);
    if (kernel::FunctionOp function = builder.build(split))
      return {function, builder.inputs};
    if (!split)
      internalError(group, "the values do not share an iteration space");
    applySplit(dims, *split);
    outer += split->dimension < outer;
  }
  internalError(group, "no number of splits of its iteration space serves its values");
}

} // namespace trainc
