// SPDX-License-Identifier: Apache-2.0
//
// What an optimizer must answer, and how it registers: a name, its
// hyperparameters with PyTorch's names and defaults, its state, and the update
// built from ordinary nn operations.
#pragma once

#include "dialects/nn/builder.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include <limits>

namespace trainc::train {

/// An option of the trainer. Names are PyTorch's.
struct Hyperparameter {
  std::string name;
  double defaultValue;
  std::string help;
  std::string follows = {}; // whose value it has unless it is given: a hyperparameter, or
                            // `learning_rate`; empty: the default
  // What it may be, as PyTorch has it: numbers from `least` on, below `limit` or up to it.
  double least = 0, limit = std::numeric_limits<double>::infinity();
  bool mayBeLimit = false;
  // Of one that is 0 or 1, no other number: what must be above 0 and what must be 0 where it is 1.
  std::string needsAboveZero = {}, needsZero = {};

  Hyperparameter &&below(double value) && { return limit = value, std::move(*this); }
  Hyperparameter &&upTo(double value) && {
    mayBeLimit = true;
    return limit = value, std::move(*this);
  }
  Hyperparameter &&asSwitch(std::string aboveZero, std::string zero) && {
    needsAboveZero = std::move(aboveZero), needsZero = std::move(zero);
    return std::move(*this).upTo(1);
  }
  Hyperparameter &&ofAnySign() && {
    return least = -std::numeric_limits<double>::infinity(), std::move(*this);
  }
};

/// One update of one flat run of parameters. Tensors have one shape; scalars are
/// rank-0 f64 tensors, so that bias corrections do not lose digits.
class Update {
public:
  /// `segments`: where each parameter of the run begins and ends in it, ascending.
  Update(nn::Builder &builder, nn::Builder &scalarBuilder, mlir::Value parameter,
         mlir::Value gradient, mlir::ValueRange states, const llvm::StringMap<mlir::Value> &scalars,
         llvm::ArrayRef<int64_t> segments, bool decays)
      : parameter(parameter), gradient(gradient), states(states), decays(decays), b(builder),
        s(scalarBuilder), scalars(scalars), segments(segments) {}

  const mlir::Value parameter;
  const mlir::Value gradient; // mean over the step's micro-batches, clipped
  const mlir::ValueRange states;
  const bool decays; // weight decay applies to this run

  nn::Builder &builder() { return b; }
  /// For arithmetic on the f64 scalars; its kernels bear another name.
  nn::Builder &scalarBuilder() { return s; }
  /// A hyperparameter, or `learning_rate` or `step` (1 for the first update), as f64 scalar.
  mlir::Value scalar(llvm::StringRef name) const { return scalars.lookup(name); }
  /// An f64 scalar as a tensor like the parameter.
  mlir::Value spread(mlir::Value f64Scalar) const;

  /// The gradient, with that of the L2 penalty `weight_decay` where it applies to the run.
  mlir::Value penalizedGradient() const;

  /// Euclidean norm of each parameter's part of a tensor like the run: f64, one per parameter. The
  /// parameters are whole on every rank, and so are their norms.
  mlir::Value normPerParameter(mlir::Value flat) const;
  /// One f64 number per parameter as a tensor like the run; 0 in the padding.
  mlir::Value spreadPerParameter(mlir::Value f64Numbers) const;

private:
  mlir::Value segmentTable() const;

  nn::Builder &b, &s;
  const llvm::StringMap<mlir::Value> &scalars;
  llvm::ArrayRef<int64_t> segments;
};

struct UpdateResult {
  mlir::Value parameter;
  llvm::SmallVector<mlir::Value> states;
};

struct Optimizer {
  const char *name;
  const char *summary; // with the source of the formula
  std::vector<Hyperparameter> hyperparameters;
  std::vector<const char *> states; // zero before the first update
  UpdateResult (*build)(Update &);
};

struct OptimizerRegistration {
  explicit OptimizerRegistration(Optimizer optimizer);
};

/// The optimizer's hyperparameters, then those that the groups of parameters in the module's layout
/// have of their own: `learning_rate_of_norms`, and `weight_decay_of_norms` where some of it
/// decays.
std::vector<Hyperparameter> hyperparametersOf(const Optimizer &optimizer, mlir::ModuleOp module);

/// Null where there is none of that name.
const Optimizer *findOptimizer(llvm::StringRef name);
/// Names of all optimizers, sorted.
std::vector<std::string> listOptimizers();
/// Every optimizer with its hyperparameters, by the names that they have as options of a trainer.
std::string optimizerHelp();
/// The same as a table in Markdown.
std::string optimizerDocumentation();

} // namespace trainc::train
