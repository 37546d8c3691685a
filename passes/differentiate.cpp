// SPDX-License-Identifier: Apache-2.0
//
// differentiate: reverse-mode gradients of the loss for every trainable parameter.
//
// One sweep backwards over @model (Linnainmaa 1970; as in Griewank and Walther,
// "Evaluating Derivatives", 2008, chapter 3): each operation builds the gradients
// of its operands from those of its results; contributions to a value with
// several uses are summed. Only values that depend on a trainable parameter and
// reach the loss are visited, so frozen parts cost nothing. The result is
// @forward_backward. Parameters that reach it not, of a second head for instance,
// are frozen with a warning; so are, as a known weakness, those whose gradient is
// zero for a structural reason (after a floor). Where a value has floats of little
// range, all gradients are times #train.loss_scale, so that small ones are not 0.
#include "dialects/elements/element_type.h"
#include "dialects/errors/internal_error.h"
#include "dialects/names/node_name.h"
#include "dialects/nn/builder.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/module_pass.h"
#include "passes/options/checked_pass.h"
#include "passes/passes.h"
#include "passes/simplify.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace trainc {
namespace {

bool isFloat(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && isa<FloatType>(type.getElementType());
}

/// A part of a value's gradient, and the node whose operand the value is there.
struct Contribution {
  Value gradient;
  std::string through;
};

Value addScalar(func::FuncOp function, train::RoleAttrInterface role, StringRef name) {
  MLIRContext *context = function.getContext();
  unsigned index = function.getNumArguments();
  function.insertArgument(index, RankedTensorType::get({}, Float64Type::get(context)),
                          train::attributesOf(role), NameLoc::get(StringAttr::get(context, name)));
  return function.getArgument(index);
}

/// Values of nodes that a pattern asks for (`trainc --keep`), each with the node's name: what comes
/// out of a node, not what its operations hand to each other, and not a view of another value.
std::vector<std::pair<std::string, Value>> namedValues(func::FuncOp function,
                                                       const name_pattern &names) {
  std::vector<std::pair<std::string, Value>> found;
  llvm::StringSet<> known;
  Operation *terminator = function.getBody().front().getTerminator();
  for (Operation &op : function.getBody().front().without_terminator()) {
    NodeName name = nodeName(op.getLoc());
    if (isa<nn::ConstantOp, nn::ReshapeOp, nn::TransposeOp, nn::BroadcastOp>(op) ||
        op.getNumResults() != 1 || name.node.empty() || !name.role.empty() ||
        !names.matches(name.node))
      continue;
    Value value = op.getResult(0);
    bool comesOut = llvm::any_of(value.getUsers(), [&](Operation *user) {
      return user == terminator || withoutRole(user->getLoc()) != withoutRole(op.getLoc());
    });
    bool isLoss = terminator->getOperand(0) == value;
    if (comesOut && !isLoss && known.insert(name.node).second)
      found.emplace_back(name.node, value);
  }
  return found;
}

/// Whether the trainer asks for plain means.
Value addMeanPerBatch(func::FuncOp function, nn::Builder &builder) {
  auto role = train::MeanPerBatchAttr::get(function.getContext());
  Value plain = addScalar(function, role, "mean_per_batch");
  return builder.create<nn::GreaterOp>(plain, builder.constant(0, plain.getType()));
}

/// Makes a loss of several parts what the micro-batch adds to that of the step. A part's divisor is
/// that of the whole step, which the trainer knows before: it runs @count_labels over all
/// micro-batches. So the step's loss is the plain mean of theirs, and its gradient too.
class PartSum {
public:
  explicit PartSum(func::FuncOp function)
      : function(function), terminator(function.getBody().front().getTerminator()), at(terminator),
        builder(at, NameLoc::get(at.getStringAttr("loss"))) {}

  void run() {
    Value total;
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (auto part = train::resultRoleAs<train::LossPartAttr>(function, i)) {
        Value share = shareOf(part, terminator->getOperand(i));
        total = total ? builder.add(total, share) : share;
      }
    if (total)
      terminator->setOperand(0, total);
  }

private:
  Value shareOf(train::LossPartAttr part, Value value) {
    Value weight = weightOf(part.getPart());
    if (!weight && !part.getIsSum())
      return value;
    std::string name = "part_scale_" + std::to_string(part.getPart());
    auto role = train::PartScaleAttr::get(function.getContext(), part.getPart());
    Value scale = addScalar(function, role, name);
    Value share = builder.cast(scale, nn::tensorType(value).getElementType());
    if (!weight)
      return builder.mul(value, share);
    // Where no label counts the mean is NaN, and adds nothing; the share is 0 then, or where no
    // label of the step does, 0 times infinity.
    share = builder.named("share_of_step", builder.mul(weight, share));
    Value counts = builder.create<nn::GreaterOp>(weight, builder.constant(0, weight.getType()));
    Value weighed = builder.select(counts, builder.mul(value, share), share);
    if (!isPlain)
      isPlain = addMeanPerBatch(function, builder);
    return builder.named("part", builder.select(isPlain, value, weighed));
  }

  Value weightOf(int64_t part) {
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (auto weight = train::resultRoleAs<train::LossWeightAttr>(function, i);
          weight && weight.getPart() == part)
        return terminator->getOperand(i);
    return nullptr;
  }

  func::FuncOp function;
  Operation *terminator;
  OpBuilder at;
  nn::Builder builder;
  Value isPlain;
};

class Differentiator {
public:
  explicit Differentiator(func::FuncOp function) : function(function) {
    terminator = function.getBody().front().getTerminator();
    findActive();
  }

  /// Builds gradients of all trainable parameters after the forward operations.
  LogicalResult run() {
    if (failed(checkOperations()))
      return failure();
    OpBuilder at(terminator);
    Value loss = terminator->getOperand(0);
    if (isActive(loss)) {
      nn::Builder builder(at, gradientLocation(loss.getLoc()));
      Value weight = weightOfLoss(builder), scale = scaleOfLoss(builder, loss.getType());
      Value factor = weight && scale ? builder.mul(weight, scale) : weight ? weight : scale;
      contributions[loss].push_back({factor ? factor : builder.constant(1, loss.getType()), ""});
    }
    for (Operation *op : llvm::reverse(forward))
      if (failed(visit(at, op)))
        return failure();
    return collect(at);
  }

  /// Makes these values and their gradients results of the function.
  void keep(std::vector<std::pair<std::string, Value>> values) { kept = std::move(values); }

private:
  bool isActive(Value value) const { return active.contains(value); }

  std::string nameOf(BlockArgument argument) {
    return train::nameOf(function, argument.getArgNumber()).str();
  }

  train::ParameterAttr roleOf(BlockArgument argument) {
    return train::roleAs<train::ParameterAttr>(function, argument.getArgNumber());
  }

  bool isTrainable(BlockArgument argument) {
    train::ParameterAttr parameter = roleOf(argument);
    return parameter && !parameter.isFrozen();
  }

  // A value is active where a trainable parameter influences it smoothly.
  void findActive() {
    for (BlockArgument argument : function.getArguments())
      if (isTrainable(argument))
        active.insert(argument);
    for (Operation &op : function.getBody().front().without_terminator()) {
      forward.push_back(&op);
      if (op.hasTrait<nn::NotDifferentiable>() ||
          llvm::none_of(op.getOperands(), [&](Value operand) { return isActive(operand); }))
        continue;
      for (Value result : op.getResults())
        if (isFloat(result))
          active.insert(result);
    }
  }

  // Every operation between a parameter and the loss has a gradient or says that it has none.
  LogicalResult checkOperations() {
    llvm::DenseSet<Value> reaching{terminator->getOperand(0)};
    LogicalResult result = success();
    for (Operation *op : llvm::reverse(forward)) {
      if (llvm::none_of(op->getResults(),
                        [&](Value value) { return reaching.contains(value) && isActive(value); }))
        continue;
      reaching.insert(op->operand_begin(), op->operand_end());
      if (!isa<nn::DifferentiableOpInterface>(op))
        result = op->emitError("operation ") << op->getName() << " has no gradient";
    }
    return result;
  }

  /// The gradient is that of the micro-batch's part in the step's loss: its mean loss times its
  /// weight, unless the trainer asks for plain means. Null where every weight is 1.
  Value weightOfLoss(nn::Builder &builder) {
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      auto role = train::resultRoleAs<train::LossWeightAttr>(function, i);
      if (!role || role.getPart())
        continue;
      Value share = terminator->getOperand(i), isPlain = addMeanPerBatch(function, builder);
      Value weight = builder.named(
          "loss_weight", builder.select(isPlain, builder.constant(1, share.getType()), share));
      terminator->setOperand(i, weight);
      return weight;
    }
    return nullptr;
  }

  /// Null where gradients need none.
  Value scaleOfLoss(nn::Builder &builder, Type type) {
    const bool isOfLittleRange = llvm::any_of(forward, [](Operation *op) {
      return llvm::any_of(op->getResultTypes(),
                          [](Type result) { return elementTypeOf(result).isOfLittleRange; });
    });
    if (!isOfLittleRange)
      return nullptr;
    auto role = train::LossScaleAttr::get(function.getContext());
    Value scale = addScalar(function, role, "loss_scale");
    return builder.named("loss_scale",
                         builder.cast(scale, cast<RankedTensorType>(type).getElementType()));
  }

  /// What the module calls a value.
  std::string valueName(Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument)
      return nodeName(value.getLoc()).value();
    train::RoleAttrInterface role = train::roleOf(function, argument.getArgNumber());
    return role && role.getName() ? role.getTitle().str() : "";
  }

  /// The name of an operand as it was before the operation's node gave it another shape.
  std::string operandName(Operation *op, unsigned index) {
    Value value = op->getOperand(index);
    bool repeated = false;
    for (Operation *view = value.getDefiningOp();
         view && view->getLoc() == op->getLoc() &&
         isa<nn::ReshapeOp, nn::TransposeOp, nn::BroadcastOp>(view);
         view = value.getDefiningOp()) {
      repeated |= isa<nn::BroadcastOp>(view);
      value = view->getOperand(0);
    }
    return valueName(value) + (repeated ? " per element" : "");
  }

  /// Calls operations at `from` which make `gradient` the gradient of the value `of`.
  static void nameGradient(Value gradient, Location from, StringRef of) {
    Location location = gradientOfLocation(of, withoutRole(from));
    for (Operation *op = gradient.getDefiningOp(); op && op->getLoc() == from;) {
      op->setLoc(location);
      bool isView = isa<nn::ReshapeOp, nn::TransposeOp>(op);
      op = isView ? op->getOperand(0).getDefiningOp() : nullptr;
    }
  }

  /// Contributions that are each another part of the value along one dimension, one after the
  /// other, with zeros where none is; else null. A sum reads all of them at every place, so
  /// from a few on it costs more: of a loop that was unrolled there is one for each step.
  static Value joined(nn::Builder &builder, ArrayRef<Contribution> parts) {
    constexpr size_t kFew = 4;
    if (parts.size() <= kFew)
      return nullptr;
    SmallVector<nn::PadOp> pads;
    std::optional<unsigned> along;
    for (const Contribution &part : parts) {
      auto pad = part.gradient.getDefiningOp<nn::PadOp>();
      if (!pad || llvm::any_of(pad.getInterior(), [](int64_t step) { return step != 0; }))
        return nullptr;
      for (unsigned d = 0; d < pad.getLow().size(); ++d)
        if (pad.getLow()[d] != 0 || pad.getHigh()[d] != 0) {
          if (along && *along != d)
            return nullptr;
          along = d;
        }
      pads.push_back(pad);
    }
    if (!along)
      return nullptr;
    llvm::sort(pads,
               [&](nn::PadOp a, nn::PadOp b) { return a.getLow()[*along] < b.getLow()[*along]; });
    RankedTensorType type = pads[0].getType();
    SmallVector<Value> pieces;
    int64_t end = 0;
    auto fillTo = [&](int64_t begin) {
      SmallVector<int64_t> shape(type.getShape());
      shape[*along] = begin - end;
      if (begin > end)
        pieces.push_back(builder.constant(0, type.clone(shape)));
      end = begin;
    };
    for (nn::PadOp pad : pads) {
      if (pad.getLow()[*along] < end)
        return nullptr;
      fillTo(pad.getLow()[*along]);
      pieces.push_back(pad.getX());
      end += pad.getX().getType().getDimSize(*along);
    }
    fillTo(type.getDimSize(*along));
    return builder.create<nn::ConcatOp>(pieces, int64_t(*along));
  }

  /// Several contributions are told apart by the nodes that they came through.
  Value sum(OpBuilder &at, Value value, Location location) {
    auto found = contributions.find(value);
    if (found == contributions.end())
      return nullptr;
    ArrayRef<Contribution> parts = found->second;
    std::string name = valueName(value);
    if (parts.size() > 1)
      for (const Contribution &part : parts)
        nameGradient(part.gradient, gradientOfLocation(name, withoutRole(part.gradient.getLoc())),
                     name + " through " + part.through);
    nn::Builder builder(at, location);
    if (Value all = joined(builder, parts)) {
      nameGradient(all, location, name);
      return all;
    }
    Value total = parts.front().gradient;
    for (const Contribution &part : parts.drop_front())
      total = builder.add(total, part.gradient);
    nameGradient(total, location, name);
    return total;
  }

  LogicalResult visit(OpBuilder &at, Operation *op) {
    Location location = gradientLocation(op->getLoc());
    SmallVector<Value> results, operands;
    for (Value result : op->getResults()) {
      results.push_back(sum(at, result, location));
      totals[result] = results.back();
    }
    llvm::SmallBitVector needed(op->getNumOperands());
    for (unsigned i = 0; i < op->getNumOperands(); ++i)
      needed[i] = isActive(op->getOperand(i));
    if (needed.none() || llvm::none_of(results, [](Value value) { return value != nullptr; }))
      return success();
    nn::Builder builder(at, location);
    auto differentiable = cast<nn::DifferentiableOpInterface>(op);
    bool hasSaid = false;
    ScopedDiagnosticHandler handler(op->getContext(), [&](Diagnostic &) {
      hasSaid = true;
      return failure(); // others print it
    });
    if (failed(differentiable.buildGradient(builder, results, needed, operands)))
      return hasSaid
                 ? failure()
                 : op->emitError("operation ") << op->getName() << " failed to build its gradient";
    for (unsigned i = 0; i < operands.size(); ++i) {
      if (!operands[i] || !needed[i])
        continue;
      if (operands[i].getType() != op->getOperand(i).getType())
        return op->emitError("gradient of operand ")
               << i << " of " << op->getName() << " has type " << operands[i].getType();
      nameGradient(operands[i], location, operandName(op, i));
      std::string node = nodeName(op->getLoc()).node;
      contributions[op->getOperand(i)].push_back(
          {operands[i], StringRef(node).rsplit('.').second.empty()
                            ? node
                            : StringRef(node).rsplit('.').second.str()});
    }
    return success();
  }

  // The nodes between a trainable parameter and the loss that no gradient passes.
  std::string whereItStops() {
    llvm::DenseSet<Value> reaching{terminator->getOperand(0)};
    llvm::StringSet<> nodes;
    std::string first;
    for (Operation *op : llvm::reverse(forward)) {
      if (llvm::none_of(op->getResults(), [&](Value value) { return reaching.contains(value); }))
        continue;
      reaching.insert(op->operand_begin(), op->operand_end());
      if (op->hasTrait<nn::NotDifferentiable>() &&
          llvm::any_of(op->getOperands(), [&](Value operand) { return isActive(operand); }))
        nodes.insert(first = nodeName(op->getLoc()).node);
    }
    if (nodes.empty())
      return "";
    return ", as no gradient passes node '" + first + "'" + (nodes.size() > 1 ? " and others" : "");
  }

  // What has no gradient keeps its value, as in PyTorch; its user is told.
  LogicalResult freeze(ArrayRef<train::ParameterAttr> unreached) {
    constexpr size_t kShown = 8;
    std::string names =
        llvm::join(llvm::map_range(unreached.take_front(kShown),
                                   [](auto role) { return "'" + role.getName().str() + "'"; }),
                   ", ");
    if (unreached.size() > kShown)
      names += " and " + std::to_string(unreached.size() - kShown) + " more";
    Location ofModel = UnknownLoc::get(function.getContext()); // of no node
    const char *subject = unreached.size() == 1 ? "parameter " : "parameters ";
    const char *rest =
        unreached.size() == 1 ? " does not reach the loss" : " do not reach the loss";
    bool isAny = llvm::any_of(function.getArguments(), [&](BlockArgument argument) {
      return isTrainable(argument) && !llvm::is_contained(unreached, roleOf(argument));
    });
    if (!isAny)
      return mlir::emitError(ofModel)
             << subject << names << rest << whereItStops() << ": nothing is left to train";
    mlir::emitWarning(ofModel) << subject << names << rest
                               << (unreached.size() == 1 ? ": it keeps its value"
                                                         : ": they keep their values");
    for (auto other : function->getParentOfType<ModuleOp>().getOps<func::FuncOp>())
      for (unsigned i = 0; i < other.getNumArguments(); ++i)
        if (auto role = train::roleAs<train::ParameterAttr>(other, i);
            role && llvm::is_contained(unreached, role))
          train::setRole(other, i,
                         train::ParameterAttr::get(function.getContext(), role.getName(),
                                                   train::Run::frozen, role.getModule(),
                                                   /*group=*/0));
    return success();
  }

  /// A result that @forward_backward has besides the loss and the gradients.
  static bool isBesides(train::RoleAttrInterface role) {
    if (auto weight = dyn_cast_or_null<train::LossWeightAttr>(role))
      return !weight.getPart();
    return isa_and_nonnull<train::NewValueAttr, train::IndexCheckAttr>(role);
  }

  // Parameters' gradients become the results after the loss.
  LogicalResult collect(OpBuilder &at) {
    SmallVector<Value> results{terminator->getOperand(0)};
    SmallVector<DictionaryAttr> attributes{function.getResultAttrDict(0)};
    SmallVector<train::ParameterAttr> unreached;
    for (BlockArgument argument : function.getArguments()) {
      if (!isTrainable(argument))
        continue;
      StringAttr name = at.getStringAttr(nameOf(argument));
      Value gradient = sum(at, argument, gradientLocation(NameLoc::get(name)));
      if (!gradient) {
        unreached.push_back(roleOf(argument));
        continue;
      }
      results.push_back(gradient);
      attributes.push_back(
          train::attributesOf(train::GradientAttr::get(function.getContext(), name)));
    }
    for (auto [i, value] : llvm::enumerate(terminator->getOperands()))
      if (isBesides(train::resultRoleOf(function, i))) {
        results.push_back(value);
        attributes.push_back(function.getResultAttrDict(i));
      }
    auto add = [&](Value value, const std::string &name) {
      results.push_back(value);
      attributes.push_back(train::attributesOf(
          train::OutputAttr::get(function.getContext(), at.getStringAttr(name))));
    };
    for (const auto &[name, value] : kept) {
      add(value, name);
      if (Value gradient = totals.lookup(value))
        add(gradient, "gradient of " + name);
    }
    if (!unreached.empty() && failed(freeze(unreached)))
      return failure();
    terminator->setOperands(results);
    SmallVector<Type> types =
        llvm::map_to_vector(results, [](Value value) { return value.getType(); });
    function.setFunctionType(
        FunctionType::get(function.getContext(), function.getArgumentTypes(), types));
    function.setAllResultAttrs(attributes);
    return success();
  }

  func::FuncOp function;
  Operation *terminator;
  std::vector<Operation *> forward;
  llvm::DenseSet<Value> active;
  llvm::DenseMap<Value, SmallVector<Contribution>> contributions;
  llvm::DenseMap<Value, Value> totals; // gradients of operations' results
  std::vector<std::pair<std::string, Value>> kept;
};

struct Differentiate : ModulePass<Differentiate, CheckedPass> {
  Differentiate() = default;
  explicit Differentiate(StringRef pattern) { keep = pattern.str(); }
  static constexpr StringLiteral flag = "differentiate";
  static constexpr StringLiteral description = "make @forward_backward from @model and its loss";

  TextOption keep{*this, "keep", "pattern", "",
                  "values of nodes that become results, with their gradients"};

  void checkOptions(OptionReader &reader) const override { checkPattern(reader, keep); }

  void runOnOperation() override {
    auto model = getOperation().lookupSymbol<func::FuncOp>("model");
    if (!model || model.getNumResults() == 0 || !isScalarLoss(model)) {
      emitError(getOperation().getLoc(),
                "differentiate expects a function @model whose first result is a scalar loss");
      return signalPassFailure();
    }
    if (failed(checkBuffers(model)))
      return signalPassFailure();
    model.setName("forward_backward");
    PartSum(model).run();
    Differentiator differentiator(model);
    if (const std::optional<name_pattern> names = patternOf(keep)) {
      std::vector<std::pair<std::string, Value>> values = namedValues(model, *names);
      if (values.empty()) {
        tellOfNoValue();
        return signalPassFailure();
      }
      differentiator.keep(std::move(values));
    }
    if (failed(differentiator.run()) || failed(simplify(model)))
      signalPassFailure();
  }

private:
  /// A pattern of such nodes alone would do nothing.
  void tellOfNoValue() {
    emitError(UnknownLoc::get(&getContext()))
            .append("no value of the nodes whose names '", keep.getValue(),
                    "' matches is there to keep: they are constants, views of other values, or "
                    "part of an operation that several nodes became")
            .attachNote()
        << "try: the name of what reads them, or of the module around them";
  }

  /// A buffer without a new value would be replaced by nothing.
  static LogicalResult checkBuffers(func::FuncOp model) {
    llvm::StringSet<> replaced;
    for (unsigned i = 0; i < model.getNumResults(); ++i)
      if (auto value = train::resultRoleAs<train::NewValueAttr>(model, i))
        replaced.insert(value.getName());
    for (unsigned i = 0; i < model.getNumArguments(); ++i)
      if (auto buffer = train::roleAs<train::BufferAttr>(model, i);
          buffer && !replaced.contains(buffer.getName()))
        return model.emitError("buffer ") << buffer.getName() << " gets no new value";
    return success();
  }

  static bool isScalarLoss(func::FuncOp model) {
    auto type = dyn_cast<RankedTensorType>(model.getResultTypes().front());
    return type && type.getRank() == 0 && isa<FloatType>(type.getElementType()) &&
           train::resultRoleAs<train::LossAttr>(model, 0);
  }
};

PassRegistration<Differentiate> differentiateRegistration;

} // namespace

std::unique_ptr<Pass> createDifferentiatePass(StringRef kept) {
  return std::make_unique<Differentiate>(kept);
}

} // namespace trainc
