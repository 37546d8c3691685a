// SPDX-License-Identifier: Apache-2.0
//
// attach-loss: makes the scalar that training minimises the model's first result.
//
// The recipe names a loss (dialects/train/losses) and, where the model has
// several outputs, the one it is computed from. The labels become an argument
// `labels`; the model's outputs stay results, for evaluation. A mean over those labels that are not
// ignored has its weight as a further result, so that a step's loss is that of its samples however
// they are split; a loss of elements has that of each sample, for the last batch of an evaluation.
#include "dialects/train/loss.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/passes.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace {

struct AttachLoss : PassWrapper<AttachLoss, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AttachLoss)
  AttachLoss() = default;
  AttachLoss(const AttachLoss &other) : PassWrapper(other) {}
  AttachLoss(StringRef lossKind, StringRef outputName) {
    kind = lossKind.str();
    output = outputName.str();
  }

  Option<std::string> kind{*this, "kind", llvm::cl::desc("name of the loss"),
                           llvm::cl::init("cross_entropy")};
  Option<std::string> output{*this, "output",
                             llvm::cl::desc("model output that the loss is computed from")};

  StringRef getArgument() const override { return "attach-loss"; }
  StringRef getDescription() const override { return "add the loss as the model's first result"; }

  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<trainc::nn::NNDialect, trainc::train::TrainDialect>();
  }

  void runOnOperation() override {
    auto model = getOperation().lookupSymbol<func::FuncOp>("model");
    if (!model) {
      getOperation().emitError("attach-loss expects a function @model");
      return signalPassFailure();
    }
    const trainc::train::Loss *loss = findLoss();
    std::optional<unsigned> result = findOutput(model);
    if (!loss || !result || failed(attach(model, *loss, *result)))
      return signalPassFailure();
    trainc::train::setLossName(getOperation(), kind);
  }

private:
  LogicalResult error(const Twine &message, const Twine &advice = "") {
    InFlightDiagnostic diagnostic = getOperation().emitError(message);
    if (!advice.isTriviallyEmpty())
      diagnostic.attachNote() << "try: " << advice;
    return diagnostic;
  }

  const trainc::train::Loss *findLoss() {
    const trainc::train::Loss *loss = trainc::train::findLoss(kind);
    if (!loss) {
      std::vector<const trainc::train::Loss *> losses = trainc::train::listLosses();
      auto names =
          llvm::map_range(losses, [](const trainc::train::Loss *known) { return known->name; });
      (void)error("unknown loss '" + kind + "'", "--loss with one of " + llvm::join(names, ", "));
    }
    return loss;
  }

  std::optional<unsigned> findOutput(func::FuncOp model) {
    SmallVector<std::string> names;
    unsigned only = 0;
    for (unsigned i = 0; i < model.getNumResults(); ++i) {
      if (isa_and_nonnull<trainc::train::IndexCheckAttr, trainc::train::NewValueAttr>(
              trainc::train::resultRoleOf(model, i)))
        continue;
      only = i;
      names.push_back(trainc::train::resultNameOf(model, i).str());
      if (!output.empty() && names.back() == output)
        return i;
    }
    std::string candidates = llvm::join(names, ", ");
    if (names.empty())
      (void)error("the model has no outputs to compute a loss from");
    else if (!output.empty())
      (void)error("the model has no output '" + output + "'",
                  "--loss-output with one of " + candidates);
    else if (names.size() > 1)
      (void)error("the model has " + Twine(names.size()) +
                      " outputs and none is named for the loss",
                  "--loss-output with one of " + candidates);
    else
      return only;
    return std::nullopt;
  }

  // `labels`, or where a file calls something so, the next name that nothing has.
  static StringAttr labelName(func::FuncOp model) {
    std::set<StringRef> taken;
    for (unsigned i = 0; i < model.getNumArguments(); ++i)
      taken.insert(trainc::train::nameOf(model, i));
    std::string name = "labels";
    while (taken.count(name))
      name = "loss_" + name;
    return StringAttr::get(model.getContext(), name);
  }

  // The argument `labels` of the type that the loss asks for; null where it takes none.
  FailureOr<Value> addLabels(func::FuncOp model, const trainc::train::Loss &loss, unsigned index) {
    auto outputType = cast<RankedTensorType>(model.getResultTypes()[index]);
    std::string problem;
    RankedTensorType labelType = loss.labelType(outputType, problem);
    if (!problem.empty()) {
      std::string found;
      llvm::raw_string_ostream(found) << outputType;
      return error("loss '" + kind + "' " + problem + ", but output '" +
                   trainc::train::resultNameOf(model, index) + "' is " + found);
    }
    if (!labelType)
      return Value();
    StringAttr name = labelName(model);
    std::optional<int64_t> bound, ignored;
    if (loss.labelsAreClasses) {
      bound = outputType.getShape().back();
      ignored = trainc::train::kIgnoreIndex;
    }
    auto role = trainc::train::LabelAttr::get(&getContext(), name, bound, ignored);
    unsigned position = model.getNumArguments();
    model.insertArgument(position, labelType, trainc::train::attributesOf(role),
                         NameLoc::get(name));
    return Value(model.getArgument(position));
  }

  LogicalResult attach(func::FuncOp model, const trainc::train::Loss &loss, unsigned index) {
    auto labels = addLabels(model, loss, index);
    if (failed(labels))
      return failure();
    Operation *terminator = model.getBody().front().getTerminator();
    OpBuilder at(terminator);
    trainc::nn::Builder builder(at, NameLoc::get(at.getStringAttr("loss")));
    Value output = terminator->getOperand(index), value, perSample;
    if (loss.build) {
      value = loss.build(builder, output, *labels);
    } else {
      Value elements = loss.buildElements(builder, output, *labels);
      auto axes = llvm::seq<int64_t>(0, trainc::nn::tensorType(output).getRank());
      value = builder.reduceMean(elements, llvm::to_vector(axes));
      if (!axes.empty())
        perSample = builder.reduceMean(elements, llvm::to_vector(llvm::drop_begin(axes)), "sample");
    }
    Value weight = countedShare(builder, value);
    if (!weight)
      weight = divideByCount(builder, model, value);
    if (kind == "output") { // it is the loss now, not an output beside it
      terminator->eraseOperand(index);
      model.eraseResult(index);
    }
    terminator->insertOperands(0, value);
    auto role = trainc::train::LossAttr::get(&getContext());
    model.insertResult(0, value.getType(), trainc::train::attributesOf(role));
    if (weight)
      addResult(model, weight, trainc::train::LossWeightAttr::get(&getContext()));
    if (perSample)
      addResult(model, perSample, trainc::train::SampleLossesAttr::get(&getContext()));
    if (loss.buildMetrics)
      for (const trainc::train::Metric &metric : loss.buildMetrics(builder, output, *labels))
        if (Value mean = meanOf(builder, metric, loss.labelsAreClasses ? *labels : Value()))
          addResult(model, mean,
                    trainc::train::MetricAttr::get(&getContext(), at.getStringAttr(metric.name)));
    return success();
  }

  /// Over the labels that count where they are classes, else of each sample; null where there are
  /// no samples to tell apart.
  static Value meanOf(trainc::nn::Builder &builder, const trainc::train::Metric &metric,
                      Value classLabels) {
    auto type = trainc::nn::tensorType(metric.values);
    SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
    if (!classLabels)
      return axes.empty()
                 ? Value()
                 : builder.reduceMean(metric.values, llvm::to_vector(llvm::drop_begin(axes)),
                                      metric.name);
    auto ignored = static_cast<double>(trainc::train::kIgnoreIndex);
    Value none = builder.constant(ignored, classLabels.getType());
    Value counts =
        builder.create<trainc::nn::NotOp>(builder.create<trainc::nn::EqualOp>(classLabels, none));
    Value zero = builder.constant(0, type);
    std::string role = (metric.name + "_of_label").str();
    Value values = builder.named(role, builder.select(counts, metric.values, zero));
    Value total = builder.reduceSum(values, axes);
    Value count = builder.reduceSum(builder.cast(counts, type.getElementType()), axes);
    return builder.named(metric.name, builder.div(total, count));
  }

  /// What a loss weighs that is a mean over some of its labels, the model's own too. Null: always
  /// the same. Known weakness, here and below: of a loss with further terms, no part is seen to be
  /// such a mean.
  static Value countedShare(trainc::nn::Builder &builder, Value loss) {
    auto mean = behindViews(loss).getDefiningOp<trainc::nn::CountingMeanOpInterface>();
    return mean ? mean.buildCountedShare(builder) : Value();
  }

  /// The same of a mean that a model writes as one sum over another, which its data decide: masked
  /// losses, labels with weights. Returns the divisor's share of what it would be if all counted
  /// fully, or null. The loss becomes one whose gradient is 0 where nothing counts, and not NaN as
  /// its value is.
  static Value divideByCount(trainc::nn::Builder &builder, func::FuncOp model, Value &loss) {
    auto mean = behindViews(loss).getDefiningOp<trainc::nn::DivOp>();
    auto type = cast<RankedTensorType>(loss.getType());
    auto sum = mean ? sumOfAll(mean.getA()) : nullptr,
         counts = mean ? sumOfAll(mean.getB()) : nullptr;
    if (!sum || !counts ||
        trainc::nn::tensorType(mean.getB()).getElementType() != type.getElementType())
      return nullptr;
    std::optional<bool> isOfData = dependsOnDataAlone(model, mean.getB());
    if (!isOfData || !*isOfData)
      return nullptr;
    Value total = builder.reshape(mean.getA(), type.getShape());
    Value count = builder.reshape(mean.getB(), type.getShape());
    Value zero = builder.constant(0, type), one = builder.constant(1, type);
    Value none = builder.named("counts_none", builder.create<trainc::nn::EqualOp>(count, zero));
    Value divided = builder.div(total, builder.select(none, one, count));
    loss = builder.select(none, builder.div(zero, count), divided);
    auto all = static_cast<double>(trainc::nn::tensorType(counts.getOperand()).getNumElements());
    return builder.named("counted_share", builder.div(count, builder.constant(all, type)));
  }

  static Value behindViews(Value value) {
    while (auto view = value.getDefiningOp<trainc::nn::ReshapeOp>())
      value = view.getX();
    return value;
  }

  /// The sum that leaves one element, of which the value is a view or a cast.
  static trainc::nn::ReduceSumOp sumOfAll(Value value) {
    value = behindViews(value);
    if (auto cast = value.getDefiningOp<trainc::nn::CastOp>())
      value = behindViews(cast->getOperand(0));
    auto sum = value.getDefiningOp<trainc::nn::ReduceSumOp>();
    return sum && trainc::nn::tensorType(value).getNumElements() == 1 ? sum : nullptr;
  }

  /// Whether the value depends on inputs; nothing where on what training changes too.
  static std::optional<bool> dependsOnDataAlone(func::FuncOp model, Value value) {
    bool isOfData = false;
    llvm::SetVector<Value> reached;
    reached.insert(value);
    for (size_t i = 0; i < reached.size(); ++i) {
      if (Operation *op = reached[i].getDefiningOp()) {
        reached.insert(op->operand_begin(), op->operand_end());
        continue;
      }
      unsigned number = cast<BlockArgument>(reached[i]).getArgNumber();
      auto role = trainc::train::roleOf(model, number);
      auto parameter = dyn_cast_or_null<trainc::train::ParameterAttr>(role);
      bool isData = isa_and_nonnull<trainc::train::InputAttr, trainc::train::LabelAttr>(role);
      if (!isData && !(parameter && parameter.isFrozen()))
        return std::nullopt;
      isOfData |= isData;
    }
    return isOfData;
  }

  static void addResult(func::FuncOp model, Value value, trainc::train::RoleAttrInterface role) {
    Operation *terminator = model.getBody().front().getTerminator();
    terminator->insertOperands(terminator->getNumOperands(), value);
    model.insertResult(model.getNumResults(), value.getType(), trainc::train::attributesOf(role));
  }
};

PassRegistration<AttachLoss> registration;

} // namespace

std::unique_ptr<Pass> trainc::createAttachLossPass(StringRef kind, StringRef output) {
  return std::make_unique<AttachLoss>(kind, output);
}
