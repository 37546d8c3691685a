// SPDX-License-Identifier: Apache-2.0
//
// What an optimizer must answer, and how it registers: a name, its
// hyperparameters with PyTorch's names and defaults, its state, and the update
// built from ordinary nn operations.
#pragma once

#include "dialects/nn/builder.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include <functional>
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
  // For one that is 0 or 1 alone: what must be above 0 and what must be 0 where it is 1.
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

/// A parameter of a run, and where it and its states lie in the run's flat tensors.
struct UpdatedParameter {
  std::string name;
  std::string group; // empty: none
  llvm::SmallVector<int64_t> shape;
  bool fansOutLast = false; // of a matrix: the last axis is that of outputs, not the first
  int64_t begin = 0, end = 0;
  llvm::SmallVector<int64_t> states; // begin, by slot; -1 where it has none there
};

/// A state of a parameter that does not look like the parameter, or bears another name.
struct StateTensor {
  std::string name;
  llvm::SmallVector<int64_t> shape;
};

/// What a state's elements are, and how many elements of a parameter share one of them.
enum class StateElement { ofParameter, bf16, i8, ui8 };
struct StateKind {
  StateElement element = StateElement::ofParameter;
  int64_t sharing = 1;
};
mlir::Type elementTypeOf(StateElement element, mlir::Type ofParameter);

/// One update of one flat run of parameters. Tensors have one shape, but states whose optimizer
/// says so; scalars are rank-0 f64 tensors, so that bias corrections do not lose digits.
class Update {
public:
  /// `parameters`: those of the run, ascending.
  Update(nn::Builder &builder, nn::Builder &scalarBuilder, mlir::Value parameter,
         mlir::Value gradient, llvm::ArrayRef<mlir::Value> states,
         const llvm::StringMap<mlir::Value> &scalars, llvm::ArrayRef<UpdatedParameter> parameters,
         bool decays)
      : parameter(parameter), gradient(gradient), states(states), parameters(parameters),
        decays(decays), b(builder), s(scalarBuilder), scalars(scalars) {}

  const mlir::Value parameter;
  const mlir::Value gradient;               // mean over the step's micro-batches, clipped
  const llvm::ArrayRef<mlir::Value> states; // null: no parameter of the run has any in the slot
  const llvm::ArrayRef<UpdatedParameter> parameters;
  const bool decays; // weight decay applies to this run

  /// An update of other states.
  Update with(llvm::ArrayRef<mlir::Value> others) const {
    return {b, s, parameter, gradient, others, scalars, parameters, decays};
  }

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
  /// One f64 number for each parameter, known here.
  mlir::Value numberPerParameter(llvm::function_ref<double(const UpdatedParameter &)> number) const;
  /// An f64 scalar, one for each parameter.
  mlir::Value repeatPerParameter(mlir::Value f64Scalar) const;
  /// What a function of runtime/kernels/LIBRARY.h makes of the inputs.
  llvm::SmallVector<mlir::Value> call(llvm::StringRef function, llvm::StringRef library,
                                      llvm::ArrayRef<mlir::Attribute> numbers,
                                      mlir::ValueRange inputs, llvm::ArrayRef<mlir::Type> results,
                                      double flops);
  mlir::Value meanSquares(mlir::Value flat, llvm::ArrayRef<int64_t> table, int64_t elements);
  mlir::Value multiplyRows(mlir::Value row, mlir::Value column, mlir::Value least,
                           llvm::ArrayRef<int64_t> table);
  /// Rows of i64 for functions that work on parts of flat tensors.
  mlir::Value partTable(llvm::StringRef name, llvm::ArrayRef<int64_t> numbers,
                        int64_t columns) const;

private:
  mlir::Value segmentTable() const;

  nn::Builder &b, &s;
  const llvm::StringMap<mlir::Value> &scalars;
};

struct UpdateResult {
  mlir::Value parameter;
  llvm::SmallVector<mlir::Value> states; // null where the run has none
};

struct Optimizer {
  const char *name;
  const char *summary; // with the source of the formula
  std::vector<Hyperparameter> hyperparameters;
  std::vector<std::string> states; // zero before the first update
  std::function<UpdateResult(Update &)> build;
  // What a parameter has in a slot, where that is not a tensor of its shape by the slot's name;
  // none: it has no state there.
  std::function<std::optional<StateTensor>(const UpdatedParameter &, size_t slot)> stateOf = {};
  // Whether states that may be kept in fewer bits (narrow_states.h) are squares, by slot,
  // which are never negative; none: they may not.
  std::vector<bool> squares = {};
  // By slot; none: elements are as of the parameter.
  std::vector<StateKind> kinds = {};
  // The update sees each run as rows of so many elements, and each parameter begins one; 1: flat.
  int64_t row = 1;

  StateKind kindOf(size_t slot) const { return kinds.empty() ? StateKind() : kinds[slot]; }
};

struct OptimizerRegistration {
  explicit OptimizerRegistration(Optimizer optimizer);
};

/// The optimizer's hyperparameters, then those that the groups of parameters in the module's layout
/// have of their own: `learning_rate_of_norms`, and `weight_decay_of_norms` where some of it
/// decays.
std::vector<Hyperparameter> hyperparametersOf(const Optimizer &optimizer, mlir::ModuleOp module);

/// After the name of an optimizer: its states in 16 or 8 bits (narrow_states.h).
constexpr llvm::StringLiteral kWithBf16States = "+bf16", kWith8BitStates = "+8bit";

/// After the name of an optimizer, and after these: with a moving average of the parameters
/// (parameter_average.h).
constexpr llvm::StringLiteral kWithAverage = "+ema";

/// Null where there is none of that name, or of that before what follows a name.
const Optimizer *findOptimizer(llvm::StringRef name);
/// The name without what follows it.
llvm::StringRef ownNameOf(llvm::StringRef name);
/// Names of the optimizers whose states may be kept in fewer bits, sorted.
std::vector<std::string> listNarrowableOptimizers();
/// Names of all optimizers, sorted.
std::vector<std::string> listOptimizers();
/// Every optimizer with its hyperparameters, by the names that they have as options of a trainer.
std::string optimizerHelp();
/// All optimizers as a table in Markdown.
std::string optimizerDocumentation();

} // namespace trainc::train
