// SPDX-License-Identifier: Apache-2.0
//
// Low-rank adapters (Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2021).
//
// A linear layer y = W x becomes y = W x + (alpha / r) B A x, where W is frozen and A [r, in] and
// B [out, r] are trained. B starts as zeros, so that the model starts as it was. What goes in is
// @model as it was read; each product that reads a matched weight, itself or its transpose, gets
// two small ones beside it. All products of one weight share its A and B, as all calls of one layer
// do in PyTorch. Of a convolution A is one like it to r channels, B one by 1 x 1. The names, shapes
// and first values are those of the PEFT library.
//
// Known weakness: embeddings have no adapters, nor have convolutions with groups or dilation and
// products of several matrices at once, as of experts.
#include "compiler/onnx/adapters.h"
#include "dialects/names/node_name.h"
#include "dialects/nn/dropout.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "runtime/files/crc32c.h"
#include "runtime/name_pattern.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/xxhash.h"
#include <cmath>
#include <cstring>

using namespace llvm;
using namespace mlir;

namespace trainc {

namespace {

/// Behind the streams of the model's nodes, which their numbers give.
constexpr int64_t kFirstStream = int64_t{1} << 40;

/// A product or convolution of a weight.
struct LinearUse {
  Operation *layer;
  bool isLeft = false;    // of a product: y = W x, not x W
  bool isInByOut = false; // axes of the weight as the file has it
};

struct Uses {
  SmallVector<LinearUse> layers;
  Operation *other = nullptr; // one beside which no adapter stands
};

bool isAll(ArrayRef<int64_t> numbers, int64_t wanted) {
  return all_of(numbers, [&](int64_t number) { return number == wanted; });
}

/// PEFT has no other convolutions that could be merged.
bool mayHaveAdapter(nn::ConvolutionOp op, Value weight) {
  return op.getW() == weight && op.getGroups() == 1 && isAll(op.getDilations(), 1);
}

void findUses(Value value, bool isTransposed, Uses &uses) {
  const bool isMatrix = nn::tensorType(value).getRank() == 2;
  for (OpOperand &use : value.getUses()) {
    Operation *op = use.getOwner();
    auto convolution = dyn_cast<nn::ConvolutionOp>(op);
    if (auto product = dyn_cast<nn::MatmulOp>(op); product && isMatrix) {
      const bool isLeft = use.getOperandNumber() == 0;
      const bool isTurned =
          (isLeft ? product.getTransposeA() : product.getTransposeB()) != isTransposed;
      uses.layers.push_back({op, isLeft, isLeft == isTurned});
    } else if (convolution && mayHaveAdapter(convolution, value)) {
      uses.layers.push_back({op});
    } else if (isa<nn::TransposeOp>(op) && isMatrix) {
      findUses(op->getResult(0), !isTransposed, uses);
    } else if (isa<nn::CastOp>(op)) {
      findUses(op->getResult(0), isTransposed, uses);
    } else {
      uses.other = op;
    }
  }
}

/// What the module calls the tensor, or else the file.
std::string moduleNameOf(const Parameter &parameter) {
  return parameter.inState.empty() ? parameter.moduleName : parameter.inState[0].name;
}

/// The path of the layer that the parameter is the weight of.
std::string layerOf(const Parameter &parameter) {
  const std::string name = moduleNameOf(parameter);
  StringRef layer = name;
  layer.consume_back(".weight");
  return layer.str();
}

bool matches(const name_pattern &pattern, const Parameter &parameter) {
  auto fits = [&](StringRef name) { return !name.empty() && pattern.matches(name); };
  auto fitsOther = [&](const TensorName &other) { return fits(other.name); };
  return fits(parameter.name) || fits(parameter.moduleName) || any_of(parameter.tied, fitsOther) ||
         any_of(parameter.inState, fitsOther);
}

template <typename Number> std::vector<char> numbersAs(ArrayRef<double> values) {
  std::vector<char> bytes(values.size() * sizeof(Number));
  for (auto [i, value] : enumerate(values)) {
    auto number = static_cast<Number>(value);
    std::memcpy(bytes.data() + i * sizeof number, &number, sizeof number);
  }
  return bytes;
}

/// Kaiming uniform with a = sqrt 5, as PyTorch's linear layers have it. The numbers follow from the
/// name, so that they stay where other layers get adapters, too.
std::vector<double> initialValues(StringRef name, int64_t rank, int64_t in) {
  constexpr int64_t key = 0;
  const uint32_t stream = crc32c(0, name.data(), name.size());
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  std::vector<double> values(static_cast<size_t>(rank * in));
  for (auto [i, value] : enumerate(values)) {
    const uint64_t bits = random_word(key, stream, static_cast<int64_t>(i)) >> 11;
    value = (static_cast<double>(bits) * 0x1p-52 - 1) * bound; // of 53 bits: [-1, 1)
  }
  return values;
}

class AdapterPlacer {
public:
  AdapterPlacer(Model &model, const Recipe &recipe, Report &report)
      : model(model), recipe(recipe), report(report),
        function(model.module->lookupSymbol<func::FuncOp>("model")) {}

  LogicalResult run() {
    if (!readPatterns())
      return failure();
    for (size_t i = 0; i < model.parameters.size(); ++i)
      plan(i);
    for (size_t number = 0; number < patterns.size(); ++number)
      checkChoice(number);
    if (!report.empty())
      return failure();
    for (const Planned &planned : plans)
      add(planned);
    describe();
    return success(checkNames());
  }

private:
  struct Planned {
    size_t weight; // parameter and argument
    size_t choice; // of the recipe
    Uses uses;
    int64_t in, out;
  };

  bool readPatterns() {
    const size_t before = report.size();
    for (const AdapterChoice &choice : recipe.adapters) {
      std::string why;
      if (std::optional<name_pattern> pattern = name_pattern::parse(choice.pattern, why))
        patterns.push_back(std::move(*pattern));
      else
        (void)report.error(ExitCode::usage, Subject::ofOption("--lora"),
                           "'" + choice.pattern + "' is not a regular expression: " + why);
    }
    used.resize(patterns.size());
    return report.size() == before;
  }

  /// What is matched and no linear layer is passed over, as PEFT does with norms.
  void plan(size_t index) {
    const Parameter &parameter = model.parameters[index];
    Uses uses;
    findUses(function.getArgument(index), false, uses);
    if (uses.layers.empty())
      return;
    const bool clear = isClear(uses);
    if (clear)
      layers.push_back(moduleNameOf(parameter));
    auto found = find_if(patterns, [&](const auto &one) { return matches(one, parameter); });
    if (found == patterns.end())
      return;
    if (!clear)
      return warnOfOther(parameter, uses);
    const size_t number = found - patterns.begin();
    used[number] = true;
    const int64_t first = parameter.shape.front();
    const int64_t others = nn::tensorType(function.getArgument(index)).getNumElements() / first;
    const bool isInByOut = uses.layers.front().isInByOut;
    plans.push_back(
        {index, number, std::move(uses), isInByOut ? first : others, isInByOut ? others : first});
  }

  /// Whether one A and B are an adapter of all that the weight does: else a merged weight would be
  /// another model.
  static bool isClear(const Uses &uses) {
    return !uses.other &&
           all_equal(map_range(uses.layers, [](const auto &use) { return use.isInByOut; }));
  }

  void warnOfOther(const Parameter &parameter, const Uses &uses) {
    report.warning(Finding::noAdapter, Subject::ofOption("--lora"),
                   "'" + moduleNameOf(parameter) + "' gets no adapter: " +
                       (uses.other ? "node '" + nodeName(uses.other->getLoc()).node +
                                         "' reads it beside the linear layer"
                                   : "of two layers one reads it transposed"));
  }

  void checkChoice(size_t number) {
    const AdapterChoice &choice = recipe.adapters[number];
    if (!used[number])
      return refusePattern(choice);
    std::vector<std::string> small;
    int64_t largest = choice.rank;
    for (const Planned &planned : plans)
      if (const int64_t size = std::min(planned.in, planned.out);
          planned.choice == number && size < choice.rank) {
        small.push_back(moduleNameOf(model.parameters[planned.weight]));
        largest = std::min(largest, size);
      }
    if (!small.empty())
      refuseRank(choice, small, largest);
  }

  void refuseRank(const AdapterChoice &choice, ArrayRef<std::string> small, int64_t largest) {
    (void)report.error(ExitCode::usage, Subject::ofOption("--lora-rank"),
                       "rank " + Twine(choice.rank) + " is above the least size of " +
                           quotedList(small, 4),
                       "at most " + Twine(largest) + ", or --lora 'PATTERN,rank=" + Twine(largest) +
                           "' for these before the others");
  }

  void refusePattern(const AdapterChoice &choice) {
    (void)report.error(ExitCode::usage, Subject::ofOption("--lora"),
                       "'" + choice.pattern +
                           "' matches no weight of a linear layer that no pattern before it does",
                       layers.empty() ? "a model with linear layers"
                                      : "a pattern that matches the whole of such names as " +
                                            quotedList(layers, 4));
  }

  void add(const Planned &planned) {
    const Parameter weight = model.parameters[planned.weight];
    const std::string layer = layerOf(weight);
    const AdapterChoice &choice = recipe.adapters[planned.choice];
    const int64_t rank = choice.rank;
    AdapterEntry entry{layer, weight.name, layer + ".lora_A.weight", layer + ".lora_B.weight"};
    entry.alpha = choice.alpha;
    entry.dropout = recipe.adapterDropout;
    entry.layers = planned.uses.layers.size();
    entry.isInByOut = planned.uses.layers.front().isInByOut;
    const bool isTransposed = !weight.inState.empty() && weight.inState[0].transposed;
    entry.isModulesInByOut = entry.isInByOut != isTransposed;
    auto [shapeOfA, shapeOfB] = shapesOf(weight.shape, rank, entry.isInByOut);
    Value a = addParameter(entry.a, shapeOfA, weight, initialValues(entry.a, rank, planned.in));
    Value b = addParameter(entry.b, shapeOfB, weight,
                           std::vector<double>(static_cast<size_t>(planned.out * rank)));
    for (const LinearUse &use : planned.uses.layers)
      adapt(use, a, b, entry.alpha / static_cast<double>(rank));
    model.adapters.push_back(std::move(entry));
  }

  /// [r, in] and [out, r]; of a convolution with the axes of its kernel, which B has as 1.
  static std::pair<std::vector<int64_t>, std::vector<int64_t>>
  shapesOf(const std::vector<int64_t> &weight, int64_t rank, bool isInByOut) {
    if (isInByOut)
      return {{rank, weight[0]}, {weight[1], rank}};
    std::vector<int64_t> a = weight, b(weight.size(), 1);
    a[0] = b[1] = rank;
    b[0] = weight[0];
    return {a, b};
  }

  /// Behind all other parameters and before the inputs.
  Value addParameter(const std::string &name, std::vector<int64_t> shape, const Parameter &weight,
                     ArrayRef<double> values) {
    Builder builder(function.getContext());
    Parameter parameter;
    parameter.name = parameter.moduleName = name;
    parameter.inState = {{name}};
    parameter.role = Role::trained;
    parameter.shape = std::move(shape);
    parameter.isDouble = weight.isDouble;
    parameter.decays = decays(name);
    parameter.reason = "adapter of " + moduleNameOf(weight);
    parameter.isOfAdapter = true;
    model.adapterValues.push_back(weight.isDouble ? numbersAs<double>(values)
                                                  : numbersAs<float>(values));
    parameter.bytes = model.adapterValues.back();
    const auto index = static_cast<unsigned>(model.parameters.size());
    const Type element = weight.isDouble ? Type(builder.getF64Type()) : builder.getF32Type();
    StringAttr own = builder.getStringAttr(name);
    auto role = train::ParameterAttr::get(
        function.getContext(), own, parameter.decays ? train::Run::decayed : train::Run::undecayed,
        StringAttr(), /*group=*/0);
    function.insertArgument(index, RankedTensorType::get(parameter.shape, element),
                            train::attributesOf(role), NameLoc::get(own));
    model.parameters.push_back(std::move(parameter));
    return function.getArgument(index);
  }

  bool decays(const std::string &name) const {
    return recipe.decay.empty() || any_of(recipe.decay, [&](const std::string &text) {
             std::string why;
             std::optional<name_pattern> pattern = name_pattern::parse(text, why);
             return pattern && pattern->matches(name);
           });
  }

  void adapt(const LinearUse &use, Value a, Value b, double scale) {
    OpBuilder at(use.layer->getContext());
    at.setInsertionPointAfter(use.layer);
    nn::Builder builder(at, use.layer->getLoc());
    auto product = dyn_cast<nn::MatmulOp>(use.layer);
    Value y = use.layer->getResult(0);
    Value outer = product
                      ? besideProduct(builder, product, use.isLeft, a, b, scale)
                      : besideConvolution(builder, cast<nn::ConvolutionOp>(use.layer), a, b, scale);
    outer = builder.named("lora_B", outer);
    Value sum = builder.named("adapted", builder.add(y, outer));
    y.replaceAllUsesExcept(sum, sum.getDefiningOp());
    for (NamedValue &value : model.values)
      if (value.tensor == y)
        value.tensor = sum;
  }

  Value besideProduct(nn::Builder &builder, nn::MatmulOp product, bool isLeft, Value a, Value b,
                      double scale) {
    Value x = dropped(builder, isLeft ? product.getB() : product.getA());
    auto matrix = [&](Value parameter) {
      SmallVector<int64_t> shape(nn::tensorType(x).getShape().drop_back(2));
      append_range(shape, nn::tensorType(parameter).getShape());
      return builder.broadcastTo(ofType(builder, parameter, x), shape);
    };
    Value inner = isLeft ? builder.matmul(matrix(a), x, false, product.getTransposeB())
                         : builder.matmul(x, matrix(a), product.getTransposeA(), true);
    inner = scaled(builder, inner, scale);
    return isLeft ? builder.matmul(matrix(b), inner)
                  : builder.matmul(inner, matrix(b), false, true);
  }

  Value besideConvolution(nn::Builder &builder, nn::ConvolutionOp like, Value a, Value b,
                          double scale) {
    Value x = dropped(builder, like.getX());
    Value inner = builder.create<nn::ConvolutionOp>(x, ofType(builder, a, x), like.getStridesAttr(),
                                                    like.getDilationsAttr(), like.getPadsAttr(),
                                                    like.getGroupsAttr());
    inner = scaled(builder, inner, scale);
    const size_t space = like.getStrides().size();
    return builder.create<nn::ConvolutionOp>(
        inner, ofType(builder, b, x), SmallVector<int64_t>(space, 1),
        SmallVector<int64_t>(space, 1), SmallVector<int64_t>(2 * space, 0), /*groups=*/1);
  }

  static Value ofType(nn::Builder &builder, Value parameter, Value x) {
    return builder.cast(parameter, nn::tensorType(x).getElementType());
  }

  static Value scaled(nn::Builder &builder, Value inner, double scale) {
    inner = builder.named("lora_A", inner);
    return scale == 1 ? inner : builder.named("lora_scaled", builder.scale(inner, scale));
  }

  /// As an ONNX Dropout that the file trains.
  Value dropped(nn::Builder &builder, Value x) {
    const auto count =
        static_cast<int64_t>(std::round(std::ldexp(recipe.adapterDropout, nn::kDropoutBits)));
    if (count == 0)
      return x;
    RankedTensorType type = nn::tensorType(x);
    auto integers = type.clone(builder.op().getI64Type());
    Value random = builder.named("lora_random",
                                 builder.create<nn::RandomBitsOp>(integers, Value(), nextStream++,
                                                                  int64_t{nn::kDropoutBits}));
    Value keep = builder.named("lora_keep", nn::keptElements(builder, random, count));
    Value mask = builder.named("lora_mask", nn::dropoutMask(builder, keep, count, type));
    return builder.named("lora_dropout",
                         builder.create<nn::TrainingFormOp>(builder.mul(x, mask), x));
  }

  /// As of a module that has adapters of PEFT already.
  bool checkNames() {
    llvm::StringSet<> names;
    for (const Parameter &parameter : model.parameters)
      if (!names.insert(parameter.name).second)
        (void)report.error(ExitCode::usage, Subject::ofOption("--lora"),
                           "two parameters would have the name '" + parameter.name + "'",
                           "an export of the model without adapters, or a pattern without it");
    return report.empty();
  }

  /// What the plan and checkpoints say of them. The digest knows what names and shapes do not tell.
  void describe() {
    std::string text;
    raw_string_ostream stream(text);
    for (const AdapterEntry &adapter : model.adapters)
      stream << "adapted   " << adapter.weight << " by " << adapter.a << " and " << adapter.b
             << ", alpha " << format("%g", adapter.alpha) << ", dropout "
             << format("%g", adapter.dropout) << '\n';
    model.parameterTable += text;
    StringRef digest = train::graphDigestOf(*model.module);
    if (!digest.empty())
      train::setGraphDigest(*model.module,
                            digest.take_front(2).str() +
                                utohexstr(xxh3_64bits((digest + text).str()), true, 16));
  }

  Model &model;
  const Recipe &recipe;
  Report &report;
  func::FuncOp function;
  std::vector<name_pattern> patterns;
  std::vector<bool> used; // by pattern
  std::vector<Planned> plans;
  std::vector<std::string> layers; // weights of all linear layers
  int64_t nextStream = kFirstStream;
};

} // namespace

LogicalResult addAdapters(Model &model, const Recipe &recipe, Report &report) {
  return recipe.adapters.empty() ? success() : AdapterPlacer(model, recipe, report).run();
}

} // namespace trainc
