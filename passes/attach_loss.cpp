// SPDX-License-Identifier: Apache-2.0
//
// attach-loss: makes the scalar that training minimises the model's first result.
//
// The module's `train.losses` names one or several losses (dialects/train/losses), each with the
// output that it is computed from, its settings and its factor (loss_term.h); the loss is their
// sum. Labels become arguments; the model's outputs stay results, for evaluation. A mean over those
// labels that are not ignored has its weight as a further result, so that a step's loss is that of
// its samples however they are split; a loss of elements has that of each sample, for the last
// batch of an evaluation. Terms that weigh alike in every micro-batch are one mean. Where others
// remain, each is a part of the loss with its own weight.
#include "dialects/nn/raised_pattern.h"
#include "dialects/nn/views.h"
#include "dialects/train/loss_term.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/module_pass.h"
#include "passes/passes.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace trainc;

namespace {

/// A loss and what it is computed from.
struct Term {
  train::LossTerm recipe;
  unsigned output = 0;           // result of the model
  std::optional<unsigned> other; // likewise, where the loss is of two
  train::Labels labels;
  Value label; // the argument; null where the loss takes none
};

/// A mean, or a sum, of the micro-batch.
struct Part {
  Value value;
  Value weight;    // null: always 1
  Value perSample; // null: samples cannot be told apart
  bool isSum = false;
};

struct AttachLoss : ModulePass<AttachLoss> {
  static constexpr StringLiteral flag = "attach-loss";
  static constexpr StringLiteral description = "add the loss as the model's first result";

  void runOnOperation() override {
    model = getOperation().lookupSymbol<func::FuncOp>("model");
    if (!model) {
      emitError(getOperation().getLoc(), "attach-loss expects a function @model");
      return signalPassFailure();
    }
    terms.clear();
    if (failed(findTerms()) || failed(addLabels()))
      return signalPassFailure();
    train::setObjective(getOperation(), objective());
    attach();
    auto texts = llvm::map_range(terms, [&](const Term &term) {
      return terms.size() == 1 ? term.recipe.name() : term.recipe.text();
    });
    train::setLossName(getOperation(), llvm::join(texts, " + "));
  }

private:
  LogicalResult error(const Twine &message, const Twine &advice = "") {
    InFlightDiagnostic diagnostic = emitError(getOperation().getLoc(), message);
    if (!advice.isTriviallyEmpty())
      diagnostic.attachNote() << "try: " << advice;
    return diagnostic;
  }

  /// The recipe's; without any its default.
  SmallVector<std::string> losses() {
    SmallVector<std::string> texts = train::lossesOf(getOperation());
    train::setLosses(getOperation(), {});
    return texts.empty() ? SmallVector<std::string>{train::kDefaultLoss.str()} : texts;
  }

  LogicalResult findTerms() {
    for (const std::string &text : losses()) {
      train::LossProblem problem;
      auto noFile = [](const std::string &path, std::string &unread) {
        unread = path + ": this pass reads no files";
        return std::vector<double>();
      };
      std::optional<train::LossTerm> recipe = train::parseLossTerm(text, noFile, problem);
      if (!recipe)
        return error("--loss " + problem.message, problem.advice);
      std::optional<unsigned> output = findOutput(*recipe);
      if (!output)
        return failure();
      for (const Term &other : terms)
        if (other.output == *output && other.recipe.loss == recipe->loss)
          return error("loss '" + recipe->loss->name + "' of output '" +
                           train::resultNameOf(model, *output) + "' is given twice",
                       "one of the two");
      FailureOr<std::optional<unsigned>> other = findOther(*recipe, *output);
      if (failed(other))
        return failure();
      terms.push_back({*recipe, *output, *other, {}, nullptr});
    }
    return success();
  }

  /// The second output of a loss of two.
  FailureOr<std::optional<unsigned>> findOther(const train::LossTerm &term, unsigned first) {
    const train::LossSetting *setting = term.loss->otherOutput();
    if (!setting)
      return std::optional<unsigned>();
    StringRef name = term.settings.output(setting->name);
    for (unsigned i = 0; i < model.getNumResults(); ++i) {
      if (!isOutput(i) || train::resultNameOf(model, i) != name)
        continue;
      Type type = model.getResultTypes()[i], firstType = model.getResultTypes()[first];
      if (type == firstType)
        return std::optional<unsigned>(i);
      std::string found;
      llvm::raw_string_ostream(found) << firstType << " and " << type;
      return error("loss '" + term.loss->name + "' needs two outputs of one type, but '" +
                   train::resultNameOf(model, first) + "' and '" + name + "' are " + found);
    }
    return error("the model has no output '" + name + "', which " + setting->name + " of loss '" +
                     term.loss->name + "' names",
                 setting->name + "=OUTPUT, with OUTPUT one of those of the model");
  }

  std::optional<unsigned> findOutput(const train::LossTerm &term) {
    SmallVector<std::string> names;
    unsigned only = 0;
    for (unsigned i = 0; i < model.getNumResults(); ++i) {
      if (!isOutput(i))
        continue;
      only = i;
      names.push_back(train::resultNameOf(model, i).str());
      if (!term.output.empty() && names.back() == term.output)
        return i;
    }
    std::string advice =
        "--loss OUTPUT=" + term.name() + ", with OUTPUT one of " + llvm::join(names, ", ");
    if (names.empty())
      (void)error("the model has no outputs to compute a loss from");
    else if (!term.output.empty())
      (void)error("the model has no output '" + term.output + "'", advice);
    else if (names.size() > 1)
      (void)error("the model has " + Twine(names.size()) +
                      " outputs and none is named for the loss",
                  advice);
    else
      return only;
    return std::nullopt;
  }

  /// All terms with the numbers of their outputs, which exporters may name otherwise, and whose
  /// statistics they follow from, which is not in the file.
  std::string objective() {
    auto texts = llvm::map_range(terms, [&](const Term &term) {
      train::LossTerm recipe = term.recipe;
      recipe.output.clear();
      unsigned number = 0;
      for (unsigned i = 0; i < term.output; ++i)
        number += isOutput(i);
      return recipe.text() + " of output " + std::to_string(number);
    });
    bool meets = false;
    model.walk([&](nn::MeanOverRanksOp) { meets = true; });
    return llvm::join(texts, " + ") + (meets ? ", batch norms over all ranks" : "");
  }

  bool isOutput(unsigned result) {
    return !isa_and_nonnull<train::IndexCheckAttr, train::NewValueAttr>(
        train::resultRoleOf(model, result));
  }

  // ---- labels

  LogicalResult addLabels() {
    LogicalResult result = success();
    for (Term &term : terms) {
      auto type = cast<RankedTensorType>(model.getResultTypes()[term.output]);
      std::string problem;
      term.labels = term.recipe.loss->labels(type, term.recipe.settings, problem);
      if (problem.empty())
        continue;
      std::string found;
      llvm::raw_string_ostream(found) << type;
      result = error("loss '" + term.recipe.loss->name + "' " + problem + "; output '" +
                     train::resultNameOf(model, term.output) + "' is " + found);
    }
    if (failed(result))
      return result;
    for (auto [i, term] : llvm::enumerate(terms))
      if (term.labels.type && !isShared(i))
        addArgument(term);
    for (auto [i, term] : llvm::enumerate(terms))
      if (std::optional<size_t> other = isShared(i))
        term.label = terms[*other].label;
    return success();
  }

  /// The first term, before this one, with the same labels of the same output.
  std::optional<size_t> isShared(size_t index) const {
    const Term &term = terms[index];
    for (size_t i = 0; i < index && term.labels.type; ++i)
      if (terms[i].output == term.output && terms[i].labels == term.labels)
        return i;
    return std::nullopt;
  }

  /// `labels` where only one output has some, else `OUTPUT_labels`; where something is called so,
  /// the next name that nothing has.
  std::string labelName(const Term &term) {
    size_t count = 0;
    for (auto [i, other] : llvm::enumerate(terms))
      count += other.labels.type && !isShared(i) ? 1 : 0;
    std::string name = "labels";
    if (count > 1)
      name = (train::resultNameOf(model, term.output) + "_" + name).str();
    llvm::StringSet<> taken;
    for (unsigned i = 0; i < model.getNumArguments(); ++i)
      taken.insert(train::nameOf(model, i));
    if (count > 1 && taken.contains(name))
      name = (train::resultNameOf(model, term.output) + "_" + term.recipe.loss->name + "_labels")
                 .str();
    while (taken.contains(name))
      name = "loss_" + name;
    return name;
  }

  void addArgument(Term &term) {
    auto name = StringAttr::get(&getContext(), labelName(term));
    auto role = train::LabelAttr::get(&getContext(), name, term.labels.bound, term.labels.ignored);
    unsigned position = model.getNumArguments();
    model.insertArgument(position, term.labels.type, train::attributesOf(role), NameLoc::get(name));
    term.label = model.getArgument(position);
  }

  // ---- the loss

  void attach() {
    Operation *terminator = model.getBody().front().getTerminator();
    OpBuilder at(terminator);
    SmallVector<Part> parts;
    for (Term &term : terms) {
      nn::Builder builder(at, NameLoc::get(at.getStringAttr(title(term, "loss"))));
      for (const Part &part : buildTerm(builder, term))
        add(builder, parts, part);
    }
    nn::Builder builder(at, NameLoc::get(at.getStringAttr("loss")));
    Value total = parts.front().value;
    for (const Part &part : ArrayRef(parts).drop_front())
      total = builder.add(total, part.value);
    SmallVector<std::pair<Value, train::RoleAttrInterface>> metrics = buildMetrics(at, parts);
    eraseOwnLosses(terminator);
    terminator->insertOperands(0, total);
    auto role = train::LossAttr::get(&getContext());
    model.insertResult(0, total.getType(), train::attributesOf(role));
    bool isSingle = parts.size() == 1 && !parts.front().isSum;
    for (auto [i, part] : llvm::enumerate(parts))
      addPart(part, isSingle ? std::nullopt : std::optional<int64_t>(i));
    for (auto [value, metric] : metrics)
      addResult(value, metric);
  }

  /// `accuracy`; of several losses `OUTPUT_accuracy`.
  std::string title(const Term &term, StringRef what) {
    return terms.size() == 1 ? what.str()
                             : (train::resultNameOf(model, term.output) + "_" + what).str();
  }

  /// One part; of a loss of the model's own as many as it is the sum of.
  SmallVector<Part> buildTerm(nn::Builder &builder, const Term &term) {
    Operation *terminator = model.getBody().front().getTerminator();
    Value output = terminator->getOperand(term.output);
    Value other = term.other ? terminator->getOperand(*term.other) : Value();
    const train::LossTerm &recipe = term.recipe;
    train::LossValue value =
        recipe.loss->build({builder, output, term.label, recipe.settings, other});
    SmallVector<Part> parts;
    apart.clear();
    if (isOwn(term))
      parts = partsOf(builder, value.scalar);
    else if (value.scalar)
      parts = {weigh(builder, value.scalar)};
    else
      parts = {reduce(builder, value.elements,
                      recipe.loss->findSetting("reduction") ? recipe.settings.word("reduction")
                                                            : "mean")};
    if (recipe.factor != 1)
      for (Part &part : parts) {
        part.value = builder.named("weighted", builder.scale(part.value, recipe.factor));
        if (part.perSample)
          part.perSample = builder.scale(part.perSample, recipe.factor);
      }
    return parts;
  }

  static bool isOwn(const Term &term) { return term.recipe.loss->name == "output"; }

  /// What the model's own loss is the sum of. Terms that weigh alike stay together, as the model
  /// computes them. A sum that is divided by a number, or multiplied by another one than 1 and -1,
  /// may be a mean over the micro-batch.
  SmallVector<Part> partsOf(nn::Builder &builder, Value loss, bool isDivided = false) {
    loss = builder.reshape(loss, {});
    Operation *op = withoutReshapes(loss).getDefiningOp();
    if (!apart.insert(op).second) // else a chain of doublings would take forever
      return {weigh(builder, loss)};
    SmallVector<Part> parts;
    auto append = [&](Value term, double factor) {
      for (Part part : partsOf(builder, term, isDivided || std::abs(factor) != 1)) {
        part.value = factor == 1 ? part.value : builder.scale(part.value, factor);
        parts.push_back(part);
      }
    };
    auto number = [](Value value) { return nn::splatOfFloats(withoutReshapes(value)); };
    if (auto sum = dyn_cast_or_null<nn::AddOp>(op)) {
      append(sum.getA(), 1);
      append(sum.getB(), 1);
    } else if (auto difference = dyn_cast_or_null<nn::SubOp>(op)) {
      append(difference.getA(), 1);
      append(difference.getB(), -1);
    } else if (auto negative = dyn_cast_or_null<nn::NegOp>(op)) {
      append(negative.getX(), -1);
    } else if (auto product = dyn_cast_or_null<nn::MulOp>(op); product && number(product.getA())) {
      append(product.getB(), *number(product.getA()));
    } else if (product && number(product.getB())) {
      append(product.getA(), *number(product.getB()));
    } else if (auto quotient = dyn_cast_or_null<nn::DivOp>(op);
               quotient && number(quotient.getB()).value_or(0) != 0) {
      append(quotient.getA(), 1 / *number(quotient.getB()));
    } else if (!isDivided && isSumOfLabels(loss)) {
      return {{loss, nullptr, nullptr, /*isSum=*/true}};
    } else {
      return {weigh(builder, loss)};
    }
    bool weighAlike =
        llvm::none_of(parts, [](const Part &part) { return part.weight || part.isSum; });
    return weighAlike ? SmallVector<Part>{{loss, nullptr, nullptr}} : parts;
  }

  /// A sum with a summand for each label of one of ONNX's loss nodes, weighed by data alone: by
  /// what is not divided by a sum, as it may be normalised in the micro-batch already.
  bool isSumOfLabels(Value value) {
    nn::ReduceSumOp sum = sumOfAll(value);
    Value summand = sum ? sum.getX() : Value();
    while (summand) {
      summand = withoutReshapes(summand);
      auto product = summand.getDefiningOp<nn::MulOp>();
      if (auto negative = summand.getDefiningOp<nn::NegOp>())
        summand = negative.getX();
      else if (product && isPlainWeight(product.getB()))
        summand = product.getA();
      else if (product && isPlainWeight(product.getA()))
        summand = product.getB();
      else
        break;
    }
    auto picked = summand ? summand.getDefiningOp<nn::ReduceSumOp>() : nullptr;
    auto chosen = picked ? picked.getX().getDefiningOp<nn::SelectOp>() : nullptr;
    return chosen && chosen.getCondition().getDefiningOp<nn::LabelMaskOp>();
  }

  /// Computed from data, without a division.
  bool isPlainWeight(Value weight) {
    if (!dependsOnDataAlone(weight).value_or(false))
      return false;
    llvm::SetVector<Value> values;
    values.insert(weight);
    for (size_t i = 0; i < values.size(); ++i) // grows meanwhile
      if (Operation *op = values[i].getDefiningOp()) {
        if (isa<nn::DivOp>(op))
          return false;
        values.insert(op->operand_begin(), op->operand_end());
      }
    return true;
  }

  Part weigh(nn::Builder &builder, Value scalar) {
    Part part{scalar, countedShare(builder, scalar), nullptr};
    if (!part.weight)
      part.weight = divideByCount(builder, part.value);
    return part;
  }

  /// `batchmean` divides by the samples alone, as PyTorch's.
  static Part reduce(nn::Builder &builder, Value elements, StringRef reduction) {
    RankedTensorType type = nn::tensorType(elements);
    auto axes = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
    auto inSample = ArrayRef(axes).drop_front(axes.empty() ? 0 : 1);
    if (reduction == "mean")
      return {builder.reduceMean(elements, axes), nullptr,
              axes.empty() ? Value() : builder.reduceMean(elements, inSample, "sample")};
    Value sum = builder.named("sum", builder.reduceSum(elements, axes));
    Value perSample =
        axes.empty() ? Value() : builder.named("sample_sum", builder.reduceSum(elements, inSample));
    if (reduction == "sum")
      return {sum, nullptr, perSample, /*isSum=*/true};
    auto samples = static_cast<double>(axes.empty() ? 1 : type.getShape().front());
    return {builder.div(sum, builder.constant(samples, sum.getType())), nullptr, perSample};
  }

  /// What weighs alike in every micro-batch is one part.
  static void add(nn::Builder &builder, SmallVectorImpl<Part> &parts, const Part &part) {
    for (Part &other : parts) {
      if (part.weight || other.weight || part.isSum != other.isSum)
        continue;
      other.value = builder.add(other.value, part.value);
      bool fits = part.perSample && other.perSample &&
                  part.perSample.getType() == other.perSample.getType();
      other.perSample = fits ? builder.add(other.perSample, part.perSample) : Value();
      return;
    }
    parts.push_back(part);
  }

  void addPart(const Part &part, std::optional<int64_t> number) {
    MLIRContext *context = &getContext();
    if (number)
      addResult(part.value, train::LossPartAttr::get(context, *number, part.isSum));
    if (part.weight)
      addResult(part.weight, train::LossWeightAttr::get(context, number));
    if (part.perSample)
      addResult(part.perSample, train::SampleLossesAttr::get(context, number));
  }

  /// An output that is the loss now is not an output beside it.
  void eraseOwnLosses(Operation *terminator) {
    std::set<unsigned, std::greater<>> own;
    for (const Term &term : terms)
      if (isOwn(term))
        own.insert(term.output);
    for (unsigned index : own) {
      terminator->eraseOperand(index);
      model.eraseResult(index);
    }
  }

  // ---- metrics

  SmallVector<std::pair<Value, train::RoleAttrInterface>> buildMetrics(OpBuilder &at,
                                                                       ArrayRef<Part> parts) {
    SmallVector<std::pair<Value, train::RoleAttrInterface>> results;
    llvm::StringSet<> known;
    int64_t weights = 0;
    for (const Term &term : terms) {
      if (!term.recipe.loss->buildMetrics)
        continue;
      nn::Builder builder(at, NameLoc::get(at.getStringAttr(title(term, "loss"))));
      Value output = model.getBody().front().getTerminator()->getOperand(term.output);
      std::vector<train::Metric> metrics =
          term.recipe.loss->buildMetrics({builder, output, term.label, term.recipe.settings});
      Value counts = countedLabels(builder, term), count;
      // The mean of a loss that weighs its labels alike weighs as many as its metrics'.
      bool isOfLoss = parts.size() == 1 && parts.front().weight && terms.size() == 1 &&
                      !term.recipe.settings.hasNumbers("class_weights");
      for (const train::Metric &metric : metrics) {
        std::string name = title(term, metric.name);
        Value mean = known.insert(name).second ? meanOf(builder, metric, counts, count) : Value();
        if (!mean)
          continue;
        auto weight = counts && !isOfLoss ? std::optional(weights) : std::nullopt;
        results.push_back(
            {mean, train::MetricAttr::get(&getContext(), at.getStringAttr(name), weight)});
      }
      if (count && !isOfLoss)
        results.push_back({count, train::MetricWeightAttr::get(&getContext(), weights++)});
    }
    return results;
  }

  /// Where labels are classes, those that are not ignored.
  static Value countedLabels(nn::Builder &builder, const Term &term) {
    if (!term.labels.ignored)
      return nullptr;
    Value none = builder.constant(static_cast<double>(*term.labels.ignored), term.label.getType());
    return builder.create<nn::NotOp>(builder.create<nn::EqualOp>(term.label, none));
  }

  /// Over the labels that count where they are classes (`count` becomes their number), else of
  /// each sample; null where there are no samples to tell apart.
  static Value meanOf(nn::Builder &builder, const train::Metric &metric, Value counts,
                      Value &count) {
    auto type = nn::tensorType(metric.values);
    SmallVector<int64_t> axes = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
    if (!counts)
      return axes.empty()
                 ? Value()
                 : builder.reduceMean(metric.values, llvm::to_vector(llvm::drop_begin(axes)),
                                      metric.name);
    Value zero = builder.constant(0, type);
    std::string role = (metric.name + "_of_label").str();
    Value values = builder.named(role, builder.select(counts, metric.values, zero));
    Value total = builder.reduceSum(values, axes);
    if (!count)
      count = builder.reduceSum(builder.cast(counts, type.getElementType()), axes);
    return builder.named(metric.name, builder.div(total, count));
  }

  // ---- weights

  /// What a loss weighs that is a mean over some of its labels, the model's own too. Null: always
  /// the same.
  static Value countedShare(nn::Builder &builder, Value loss) {
    auto mean = withoutReshapes(loss).getDefiningOp<nn::CountingMeanOpInterface>();
    return mean ? mean.buildCountedShare(builder) : Value();
  }

  /// Corrects a mean that is written as one sum over another, which the data decide: labels with
  /// weights, masked losses of the model's own. Returns the divisor's share of what it would be if
  /// all counted fully, or null. The loss becomes one whose gradient is 0 where nothing counts, and
  /// not NaN as its value is; one with a least divisor has that already.
  Value divideByCount(nn::Builder &builder, Value &loss) {
    auto mean = withoutReshapes(loss).getDefiningOp<nn::DivOp>();
    auto type = cast<RankedTensorType>(loss.getType());
    Value divisor = mean ? withoutLeast(mean.getB()) : Value();
    auto sum = mean ? sumOfAll(mean.getA()) : nullptr, counts = mean ? sumOfAll(divisor) : nullptr;
    if (!sum || !counts || nn::tensorType(mean.getB()).getElementType() != type.getElementType())
      return nullptr;
    std::optional<bool> isOfData = dependsOnDataAlone(divisor);
    if (!isOfData || !*isOfData)
      return nullptr;
    Value total = builder.reshape(mean.getA(), type.getShape());
    Value count = builder.reshape(divisor, type.getShape());
    Value zero = builder.constant(0, type), one = builder.constant(1, type);
    Value none = builder.named("counts_none", builder.create<nn::EqualOp>(count, zero));
    if (divisor == mean.getB()) {
      Value divided = builder.div(total, builder.select(none, one, count));
      loss = builder.select(none, builder.div(zero, count), divided);
    } else { // where nothing counts in the whole step, its loss is 0 as well
      constexpr double kNext = 1e-20; // to nothing beside any count
      count = builder.select(none, builder.constant(kNext, type), count);
    }
    auto all = static_cast<double>(nn::tensorType(counts.getOperand()).getNumElements());
    return builder.named("counted_share", builder.div(count, builder.constant(all, type)));
  }

  /// The divisor that the model keeps from being 0: max(value, e), value + e, or clip(value, e). A
  /// larger e than one label, or than what rounding hides beside it, is another mean.
  static Value withoutLeast(Value divisor) {
    Operation *op = withoutReshapes(divisor).getDefiningOp();
    const double largest = isa_and_nonnull<nn::AddOp>(op) ? 1e-3 : 1;
    auto isLeast = [&](Value value) {
      const double least = nn::splatOfFloats(withoutReshapes(value)).value_or(0);
      return least > 0 && least <= largest;
    };
    if (isa_and_nonnull<nn::MaximumOp, nn::AddOp>(op)) {
      if (isLeast(op->getOperand(1)))
        return op->getOperand(0);
      return isLeast(op->getOperand(0)) ? op->getOperand(1) : divisor;
    }
    auto clip = dyn_cast_or_null<nn::SelectOp>(op);
    auto isBelow = clip ? clip.getCondition().getDefiningOp<nn::LessOrEqualOp>() : nullptr;
    const bool isClip = isBelow && isBelow.getA() == clip.getB() && isBelow.getB() == clip.getA() &&
                        isLeast(clip.getA());
    return isClip ? clip.getB() : divisor;
  }

  /// The sum to one element that the value is a view or a cast of.
  static nn::ReduceSumOp sumOfAll(Value value) {
    value = withoutReshapes(value);
    if (auto cast = value.getDefiningOp<nn::CastOp>())
      value = withoutReshapes(cast->getOperand(0));
    auto sum = value.getDefiningOp<nn::ReduceSumOp>();
    return sum && nn::tensorType(value).getNumElements() == 1 ? sum : nullptr;
  }

  /// Whether the value depends on inputs; nothing where on what training changes too.
  std::optional<bool> dependsOnDataAlone(Value value) {
    bool isOfData = false;
    llvm::SetVector<Value> reached;
    reached.insert(value);
    for (size_t i = 0; i < reached.size(); ++i) {
      if (Operation *op = reached[i].getDefiningOp()) {
        reached.insert(op->operand_begin(), op->operand_end());
        continue;
      }
      unsigned number = cast<BlockArgument>(reached[i]).getArgNumber();
      auto role = train::roleOf(model, number);
      auto parameter = dyn_cast_or_null<train::ParameterAttr>(role);
      bool isData = isa_and_nonnull<train::InputAttr, train::LabelAttr>(role);
      if (!isData && !(parameter && parameter.isFrozen()))
        return std::nullopt;
      isOfData |= isData;
    }
    return isOfData;
  }

  void addResult(Value value, train::RoleAttrInterface role) {
    Operation *terminator = model.getBody().front().getTerminator();
    terminator->insertOperands(terminator->getNumOperands(), value);
    model.insertResult(model.getNumResults(), value.getType(), train::attributesOf(role));
  }

  func::FuncOp model;
  std::vector<Term> terms;
  llvm::SmallPtrSet<Operation *, 16> apart; // sums and factors of a loss of the model's own
};

const PassRegistration<AttachLoss> attachLossRegistration;

} // namespace

std::unique_ptr<Pass> trainc::createAttachLossPass() { return std::make_unique<AttachLoss>(); }
