// SPDX-License-Identifier: Apache-2.0
//
// Indices of tables and labels of classes stay in range.
//
// Problem: an index beyond its table reads memory that is not the table's, and its gradient would
// be lost. Method: known bounds of every index, by intervals. One that is an input's element,
// moved but not changed, is checked by the loader, which can name the file and the place in it. Any
// other that may be out of range is checked where it is computed: negative ones count from the
// end, as ONNX says, what is beyond is clamped, so that no memory is touched, and the result
// #train.index_check of the model says which index was out of range and what it was; the trainer
// reads that with the loss and stops. Weakness: intervals know no relation between values.
#include "compiler/onnx/import/importer.h"
#include "dialects/names/node_name.h"
#include "dialects/nn/builder.h"
#include "dialects/nn/tensor.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace llvm;
using namespace mlir;

namespace trainc::reader {
namespace {

struct Range {
  int64_t low, high;
  bool within(int64_t least, int64_t greatest) const { return low >= least && high <= greatest; }
  Range with(Range other) const { return {std::min(low, other.low), std::max(high, other.high)}; }
};

Range rangeOfType(Type element) {
  if (element.isInteger(1))
    return {0, 1};
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer || integer.getWidth() >= 64)
    return {INT64_MIN, INT64_MAX};
  if (integer.isUnsigned())
    return {0, (int64_t(1) << integer.getWidth()) - 1};
  return {-(int64_t(1) << (integer.getWidth() - 1)), (int64_t(1) << (integer.getWidth() - 1)) - 1};
}

/// Bounds of the elements of integer tensors.
class Ranges {
public:
  explicit Ranges(func::FuncOp function) : function(function) {}

  Range of(Value value) {
    auto known = ranges.find(value);
    if (known != ranges.end())
      return known->second;
    Range all = rangeOfType(nn::tensorType(value).getElementType());
    Operation *op = value.getDefiningOp();
    Range range = op ? compute(op, all) : ofArgument(cast<BlockArgument>(value), all);
    if (!range.within(all.low, all.high)) // it wraps
      range = all;
    return ranges[value] = range;
  }

  /// Whether `fits` holds for the range of every element.
  static bool allOf(nn::ConstantOp constant, llvm::function_ref<bool(Range)> fits) {
    nn::Tensor tensor = nn::Tensor::of(constant.getValue());
    int64_t distinct = tensor.isSplat() ? std::min<int64_t>(1, tensor.count()) : tensor.count();
    return all_of(seq<int64_t>(0, distinct), [&](int64_t i) {
      return fits({tensor.integer(i), tensor.integer(i)});
    });
  }

private:
  Range ofArgument(BlockArgument argument, Range all) {
    auto input = train::roleAs<train::InputAttr>(function, argument.getArgNumber());
    bool bounded = input && input.getIndexBound() && !input.getIgnoreIndex();
    return bounded ? Range{input.getIndexLow().value_or(0), *input.getIndexBound() - 1} : all;
  }

  Range compute(Operation *op, Range all) {
    if (!isa<IntegerType>(nn::tensorType(op->getResult(0)).getElementType()))
      return all;
    auto operand = [&](unsigned i) { return of(op->getOperand(i)); };
    return llvm::TypeSwitch<Operation *, Range>(op)
        .Case([&](nn::ConstantOp constant) { return ofConstant(constant, all); })
        .Case([&](nn::IotaOp iota) {
          return Range{0, iota.getResult().getType().getDimSize(iota.getDimension()) - 1};
        })
        .Case([&](nn::CastOp cast) {
          Type from = cast.getX().getType().getElementType();
          return isa<IntegerType>(from) && !all.within(0, 1) ? operand(0) : all;
        })
        .Case<nn::ReshapeOp, nn::BroadcastOp, nn::SliceOp, nn::TransposeOp, nn::ReverseOp,
              nn::GatherOp, nn::ReduceMaxOp, nn::ReduceMinOp>([&](auto) { return operand(0); })
        .Case([&](nn::PadOp) {
          return operand(0).with({0, 0});
        })
        .Case([&](nn::MaxPoolOp) { return operand(1); })
        .Case([&](nn::ConcatOp concat) {
          Range range = operand(0);
          for (Value part : concat.getInputs().drop_front())
            range = range.with(of(part));
          return range;
        })
        .Case([&](nn::SelectOp) { return operand(1).with(operand(2)); })
        .Case([&](nn::ReduceSumOp sum) {
          int64_t terms = sum.getX().getType().getNumElements() /
                          std::max<int64_t>(1, sum.getResult().getType().getNumElements());
          return combine(operand(0), {0, terms}, all, MulOverflow<int64_t>);
        })
        .Case([&](nn::AddOp) { return combine(operand(0), operand(1), all, AddOverflow<int64_t>); })
        .Case([&](nn::SubOp) { return combine(operand(0), operand(1), all, SubOverflow<int64_t>); })
        .Case([&](nn::MulOp) { return combine(operand(0), operand(1), all, MulOverflow<int64_t>); })
        .Case([&](nn::NegOp) {
          return combine({0, 0}, operand(0), all, SubOverflow<int64_t>);
        })
        .Case([&](nn::AbsOp) {
          Range x = operand(0);
          return x.low < -INT64_MAX ? all : Range{x.low > 0 ? x.low : 0, std::max(-x.low, x.high)};
        })
        .Case([&](nn::MinimumOp) {
          return Range{std::min(operand(0).low, operand(1).low),
                       std::min(operand(0).high, operand(1).high)};
        })
        .Case([&](nn::MaximumOp) {
          return Range{std::max(operand(0).low, operand(1).low),
                       std::max(operand(0).high, operand(1).high)};
        })
        .Case([&](nn::RemainderOp) { // has the sign of the dividend
          Range x = operand(0), by = operand(1);
          if (by.low < -INT64_MAX)
            return all;
          int64_t most = std::max<int64_t>({-by.low, by.high, 1}) - 1;
          Range range = {x.low < 0 ? -most : 0, x.high > 0 ? most : 0};
          return by.low <= 0 && by.high >= 0 ? range.with(x) : range; // by zero: the dividend
        })
        .Default([&](Operation *) { return all; });
  }

  static Range ofConstant(nn::ConstantOp constant, Range all) {
    nn::Tensor tensor = nn::Tensor::of(constant.getValue());
    if (tensor.count() == 0)
      return all;
    Range range = {tensor.integer(0), tensor.integer(0)};
    for (int64_t i = 1; i < (tensor.isSplat() ? 1 : tensor.count()); ++i)
      range = range.with({tensor.integer(i), tensor.integer(i)});
    return range;
  }

  /// Over the corners; everything where one overflows.
  template <typename Operation>
  static Range combine(Range a, Range b, Range all, Operation overflows) {
    std::optional<Range> range;
    for (int64_t x : {a.low, a.high})
      for (int64_t y : {b.low, b.high}) {
        int64_t value;
        if (overflows(x, y, value))
          return all;
        range = range ? range->with({value, value}) : Range{value, value};
      }
    return *range;
  }

  func::FuncOp function;
  llvm::DenseMap<Value, Range> ranges;
};

/// What an operation indexes with.
struct Index {
  OpOperand *operand;
  Value table;                    // what is indexed; classes
  int64_t size;                   // of that
  bool fromEnd;                   // negative ones count from the end
  std::optional<int64_t> ignored; // is allowed besides
};

std::optional<Index> indexOf(Operation *op) {
  auto ofLabels = [](OpOperand &labels, Value classes, std::optional<uint64_t> ignored) {
    return Index{&labels, classes, nn::tensorType(classes).getShape().back(), false,
                 ignored ? std::optional<int64_t>(*ignored) : std::nullopt};
  };
  if (auto gather = dyn_cast<nn::GatherOp>(op))
    return Index{&gather.getIndicesMutable(),
                 gather.getTable(),
                 gather.getTable().getType().getDimSize(0),
                 true,
                 {}};
  if (auto loss = dyn_cast<nn::CrossEntropyOp>(op))
    return ofLabels(loss.getLabelsMutable(), loss.getLogits(), loss.getIgnoreIndex());
  if (auto mask = dyn_cast<nn::LabelMaskOp>(op))
    return ofLabels(mask.getLabelsMutable(), mask.getResult(), mask.getIgnoreIndex());
  return std::nullopt;
}

/// Where an index's elements come from, if they are moved and not changed on their way.
struct Sources {
  llvm::SetVector<BlockArgument> arguments;
  SmallVector<Value> others; // constants, positions
};

class IndexChecks {
public:
  explicit IndexChecks(func::FuncOp function) : function(function), ranges(function) {}

  void run() {
    SmallVector<Index> indices;
    function.walk([&](Operation *op) {
      if (auto index = indexOf(op))
        indices.push_back(*index);
    });
    // All bounds of inputs before the first range is asked for: one input may have several users.
    SmallVector<std::optional<Sources>> sources;
    for (const Index &index : indices) {
      sources.push_back(sourcesOf(index.operand->get()));
      if (sources.back())
        for (BlockArgument argument : sources.back()->arguments)
          setBound(argument, index);
    }
    for (auto [index, from] : zip_equal(indices, sources))
      if (!from || !isKnown(index, *from))
        bring(index);
    if (!found.empty())
      addResult();
  }

private:
  /// None where arithmetic is in between, or a part is taken: the rest may not be an index. Nor
  /// where a cast may change the number.
  static std::optional<Sources> sourcesOf(Value index) {
    Sources sources;
    llvm::SetVector<Value> values;
    values.insert(index);
    for (size_t i = 0; i < values.size(); ++i) { // grows meanwhile
      Value value = values[i];
      Operation *op = value.getDefiningOp();
      if (!isa<IntegerType>(nn::tensorType(value).getElementType()))
        return std::nullopt;
      if (!op)
        sources.arguments.insert(cast<BlockArgument>(value));
      else if (isa<nn::ConstantOp, nn::IotaOp>(op))
        sources.others.push_back(value);
      else if (isa<nn::CastOp, nn::ReshapeOp, nn::BroadcastOp, nn::TransposeOp, nn::ConcatOp,
                   nn::ReverseOp>(op) &&
               !narrows(op))
        values.insert(op->operand_begin(), op->operand_end());
      else
        return std::nullopt;
    }
    return sources;
  }

  /// A cast of integers to a type that does not have all of them.
  static bool narrows(Operation *op) {
    auto cast = dyn_cast<nn::CastOp>(op);
    if (!cast)
      return false;
    const Range from = rangeOfType(nn::tensorType(cast.getOperand()).getElementType()),
                to = rangeOfType(nn::tensorType(cast.getResult()).getElementType());
    return !from.within(to.low, to.high);
  }

  /// True where the loader's checks are enough for what comes from inputs, and everything else is
  /// in range or ignored.
  bool isKnown(const Index &index, const Sources &sources) {
    auto fits = [&](Range range) {
      return range.within(0, index.size - 1) ||
             (index.ignored && range.within(*index.ignored, *index.ignored));
    };
    auto isChecked = [&](BlockArgument argument) {
      auto input = train::roleAs<train::InputAttr>(function, argument.getArgNumber());
      return input && !input.getIndexLow() &&
             (!input.getIgnoreIndex() || input.getIgnoreIndex() == index.ignored);
    };
    auto isFitting = [&](Value other) {
      auto constant = other.getDefiningOp<nn::ConstantOp>();
      return constant ? Ranges::allOf(constant, fits) : fits(ranges.of(other));
    };
    return all_of(sources.arguments, isChecked) && all_of(sources.others, isFitting);
  }

  /// Several users leave what all of them allow.
  void setBound(BlockArgument argument, const Index &index) {
    unsigned number = argument.getArgNumber();
    auto input = train::roleAs<train::InputAttr>(function, number);
    if (!input)
      return;
    int64_t bound = input.getIndexBound().value_or(index.size), low = 0;
    if (index.fromEnd && !isParameter(index.table))
      low = input.getIndexBound() ? std::max(-index.size, input.getIndexLow().value_or(0))
                                  : -index.size;
    train::setRole(function, number,
                   train::InputAttr::get(function.getContext(), input.getName(),
                                         std::min(bound, index.size),
                                         index.ignored ? index.ignored : input.getIgnoreIndex(),
                                         low ? std::optional(low) : std::nullopt));
  }

  /// A parameter, also in another form: PyTorch's embeddings take no negative indices.
  bool isParameter(Value table) {
    while (Operation *op = table.getDefiningOp()) {
      if (!isa<nn::ReshapeOp, nn::SliceOp, nn::TransposeOp, nn::CastOp>(op))
        return false;
      table = op->getOperand(0);
    }
    auto argument = dyn_cast<BlockArgument>(table);
    return argument && train::roleAs<train::ParameterAttr>(function, argument.getArgNumber());
  }

  /// Brings an index into range, and notes it where it could be outside.
  void bring(const Index &index) {
    Operation *user = index.operand->getOwner();
    Value value = index.operand->get();
    Range range = ranges.of(value);
    OpBuilder at(user);
    nn::Builder builder(at, user->getLoc());
    Type type = value.getType();
    int64_t low = index.fromEnd ? -index.size : 0;
    if (!range.within(low, index.size - 1)) {
      note(index, builder, low);
      value = builder.create<nn::MinimumOp>(
          builder.create<nn::MaximumOp>(value, builder.constant(low, type)),
          builder.constant(index.size - 1, type));
    }
    if (range.low < 0 && index.fromEnd)
      value = builder.select(builder.create<nn::LessOp>(value, builder.constant(0, type)),
                             builder.add(value, builder.constant(index.size, type)), value);
    if (index.fromEnd) // a loss reads no memory by its labels
      index.operand->set(builder.named("row", value));
  }

  /// The least or greatest element that is out of range; 0, which never is, where there is none.
  void note(const Index &index, nn::Builder &builder, int64_t low) {
    Value value = builder.cast(index.operand->get(), builder.op().getI64Type());
    Type type = value.getType();
    Value outside = builder.create<nn::OrOp>(
        builder.create<nn::LessOp>(value, builder.constant(low, type)),
        builder.create<nn::GreaterOrEqualOp>(value, builder.constant(index.size, type)));
    if (index.ignored)
      outside =
          builder.create<nn::AndOp>(outside, builder.create<nn::NotOp>(builder.create<nn::EqualOp>(
                                                 value, builder.constant(*index.ignored, type))));
    value = builder.select(outside, value, builder.constant(0, type));
    SmallVector<int64_t> all = to_vector(seq<int64_t>(0, nn::tensorType(value).getRank()));
    Value least = value, greatest = value;
    if (!all.empty()) {
      least = builder.create<nn::ReduceMinOp>(value, all);
      greatest = builder.reduceMax(value, all);
    }
    Value zero = builder.constant(0, least.getType());
    found.push_back(
        builder.named("index_out_of_range",
                      builder.select(builder.create<nn::EqualOp>(least, zero), greatest, least)));
    checks.push_back(train::CheckedIndexAttr::get(
        function.getContext(),
        builder.op().getStringAttr(nodeName(index.operand->getOwner()->getLoc()).node), low,
        index.size));
  }

  /// The first of `found` that is not 0: its number, from 1, and its value.
  void addResult() {
    Operation *terminator = function.getBody().front().getTerminator();
    OpBuilder at(terminator);
    auto name = at.getStringAttr("index_check");
    nn::Builder builder(at, NameLoc::get(name));
    auto scalar = RankedTensorType::get({}, at.getI64Type());
    Value zero = builder.constant(0, scalar), number = zero, value = zero;
    for (size_t i = found.size(); i-- > 0;) {
      Value none = builder.create<nn::EqualOp>(found[i], zero);
      number = builder.select(none, number, builder.constant(i + 1, scalar));
      value = builder.select(none, value, found[i]);
    }
    SmallVector<Value> parts;
    for (Value part : {number, value})
      parts.push_back(builder.reshape(builder.cast(part, at.getF64Type()), {1}));
    Value check = builder.create<nn::ConcatOp>(parts, 0);
    unsigned index = function.getNumResults();
    terminator->insertOperands(index, check);
    auto role = train::IndexCheckAttr::get(function.getContext(),
                                           at.getArrayAttr(SmallVector<Attribute>(checks)));
    function.insertResult(index, check.getType(), train::attributesOf(role));
  }

  func::FuncOp function;
  Ranges ranges;
  SmallVector<Value> found; // scalars, i64
  SmallVector<Attribute> checks;
};

} // namespace

void checkIndices(ModuleOp module) {
  module.walk([](func::FuncOp function) { IndexChecks(function).run(); });
}

} // namespace trainc::reader
