// SPDX-License-Identifier: Apache-2.0
//
// Adafactor (Shazeer and Stern 2018, arXiv 1804.04235) with the arithmetic of
// torch.optim.Adafactor: the second moment of a matrix is the product of its rows' and columns'
// means, of a tensor of more axes that of each matrix of its last two; that of a vector is whole.
#include "dialects/train/adam.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include <cmath>

using namespace mlir;

namespace trainc::train {

static constexpr size_t kRowSlot = 0, kColumnSlot = 1;

static bool isFactored(const UpdatedParameter &parameter) { return parameter.shape.size() >= 2; }

static std::optional<StateTensor> adafactorState(const UpdatedParameter &parameter, size_t slot) {
  if (!isFactored(parameter))
    return slot == kRowSlot ? std::optional(StateTensor{"variance", parameter.shape})
                            : std::nullopt;
  StateTensor state{slot == kRowSlot ? "row_var" : "col_var", parameter.shape};
  state.shape[state.shape.size() - (slot == kRowSlot ? 1 : 2)] = 1;
  return state;
}

/// The two means of squares, and the tables that they and their product are computed by.
struct FactoredTables {
  SmallVector<int64_t> rows, columns, products;

  explicit FactoredTables(ArrayRef<UpdatedParameter> parameters) {
    for (const UpdatedParameter &each : parameters) {
      const int64_t toRow = each.states[kRowSlot], count = each.end - each.begin;
      if (!isFactored(each)) {
        rows.append({each.begin, toRow, 1, count, 1, 1, 1});
        products.append({each.begin, toRow, -1, 1, count, 1});
        continue;
      }
      const int64_t width = each.shape.back(), height = each.shape[each.shape.size() - 2];
      const int64_t outer = count / (width * height), toColumn = each.states[kColumnSlot];
      rows.append({each.begin, toRow, outer, height, width, width, 1});
      columns.append({each.begin, toColumn, outer, width, 1, height, width});
      products.append({each.begin, toRow, toColumn, outer, height, width});
    }
  }
};

/// `state` moved towards `now` by `share`.
static Value movedMean(Update &update, StringRef name, Value state, Value now, Value share) {
  nn::Builder &b = update.builder(), &s = update.scalarBuilder();
  RankedTensorType type = nn::tensorType(state);
  auto spread = [&](Value scalar) {
    return b.broadcast(s.cast(scalar, type.getElementType()), {}, type.getShape());
  };
  Value kept = s.named("beta2", s.sub(s.constant(1, share.getType()), share));
  return b.named(name, b.add(b.mul(state, spread(kept)), b.mul(now, spread(share))));
}

/// The root of the mean square of each parameter's part, f64.
static Value rootMeanSquares(Update &update, Value flat) {
  Value roots = update.numberPerParameter([](const UpdatedParameter &each) {
    return 1 / std::sqrt(static_cast<double>(std::max<int64_t>(each.end - each.begin, 1)));
  });
  return update.scalarBuilder().mul(update.normPerParameter(flat), roots);
}

static UpdateResult buildAdafactor(Update &update) {
  nn::Builder &b = update.builder(), &s = update.scalarBuilder();
  Value step = update.scalar("step"), learningRate = update.scalar("learning_rate");
  Value eps1 = update.scalar("eps1"), gradient = update.gradient, parameter = update.parameter;
  Value one = s.constant(1, step.getType());
  Value share = s.named("one_minus_beta2", s.create<nn::PowOp>(step, update.scalar("beta2_decay")));
  Value parameterSize = s.named("parameter_rms", rootMeanSquares(update, parameter));
  parameter = decayedParameter(update);

  const FactoredTables tables(update.parameters);
  auto moved = [&](StringRef name, size_t slot, ArrayRef<int64_t> table) -> Value {
    Value state = update.states[slot];
    if (!state || table.empty())
      return state;
    Value now = update.meanSquares(gradient, table, nn::tensorType(state).getNumElements());
    return movedMean(update, name, state, now, share);
  };
  Value rows = moved("row_var", kRowSlot, tables.rows);
  Value columns = moved("col_var", kColumnSlot, tables.columns);
  Type element = nn::tensorType(gradient).getElementType();
  Value least = s.named("eps1_rounded", s.cast(eps1, element));
  Value square = tables.products.empty()
                     ? b.mul(gradient, gradient) // a run without parameters
                     : update.multiplyRows(rows, columns ? columns : rows, least, tables.products);
  Value bound = update.spread(s.named("least_square", s.mul(eps1, eps1)));
  Value root = b.create<nn::RsqrtOp>(b.create<nn::MaximumOp>(square, bound));
  Value direction = b.named("direction", b.mul(root, gradient));

  auto forEach = [&](Value scalar) { return update.repeatPerParameter(scalar); };
  Value atMost = s.create<nn::MinimumOp>(learningRate, s.create<nn::RsqrtOp>(step));
  Value size = s.create<nn::MaximumOp>(parameterSize, forEach(update.scalar("eps2")));
  Value excess = s.div(rootMeanSquares(update, direction), forEach(update.scalar("d")));
  Value clipped = s.named("clip", s.create<nn::MaximumOp>(excess, forEach(one)));
  Value steps = s.named("step_size", s.div(s.mul(size, forEach(atMost)), clipped));
  Value rate = b.named("rate", update.spreadPerParameter(steps));
  return {b.named("parameter", b.sub(parameter, b.mul(rate, direction))), {rows, columns}};
}

static const OptimizerRegistration adafactorRegistration({
    "adafactor",
    "Adafactor, whose second moments of matrices are those of rows and columns (Shazeer and Stern "
    "2018)",
    {Hyperparameter{"beta2_decay", -0.8,
                    "the second moment's share of a step is its number to this"}
         .ofAnySign()
         .upTo(0),
     {"eps1", 1.1920928955078125e-07, "least root of the second moment"},
     {"eps2", 1e-3, "least root mean square of a parameter, which its step is in proportion to"},
     {"d", 1, "greatest root mean square of a parameter's direction", {}, 1},
     {"weight_decay", 0, "decoupled weight decay of the parameters that decay"}},
    {"row_var", "col_var"},
    buildAdafactor,
    adafactorState,
});

} // namespace trainc::train
