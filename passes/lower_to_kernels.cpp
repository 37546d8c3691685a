// SPDX-License-Identifier: Apache-2.0
//
// lower-to-kernels: each kernel.group becomes a launch of a kernel.function.
//
// Equal groups share a function: first by the text of their nn operations, so
// that a repeated layer is built once, then by the text of the function itself.
// A function is named after the node of its main operation, `h_1_mlp_act`; where
// several nodes share it, the numbers in which they differ are left out,
// `h_mlp_act`; `_gradient` marks backward. Kernels of one node are told apart by what
// they compute, `ln_f_weight_and_bias_gradient`. A launch keeps the names of its
// results in `result_names`.
#include "dialects/kernel/kernel.h"
#include "dialects/names/node_name.h"
#include "dialects/names/unique_names.h"
#include "dialects/nn/nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/kernels/kernel_builder.h"
#include "passes/module_pass.h"
#include "passes/passes.h"
#include "passes/plans/tensor_places.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace trainc {
namespace {

/// A C identifier from a node's name.
std::string identifier(StringRef node) {
  std::string result;
  for (char c : node)
    if (llvm::isAlnum(c))
      result += llvm::toLower(c);
    else if (!result.empty() && result.back() != '_')
      result += '_';
  while (!result.empty() && result.back() == '_')
    result.pop_back();
  if (result.empty())
    return "kernel";
  return llvm::isDigit(result.front()) ? "node_" + result : result;
}

/// `h.0.mlp.act` and `h.1.mlp.act` give `h.mlp.act`.
std::string commonName(ArrayRef<std::string> nodes) {
  SmallVector<StringRef> parts;
  StringRef first = nodes.front();
  auto split = [](StringRef text, SmallVectorImpl<StringRef> &into) {
    while (!text.empty()) {
      into.push_back(text.take_until([](char c) { return c == '.' || c == '/' || c == '_'; }));
      text = text.drop_front(std::min(text.size(), into.back().size() + 1));
    }
  };
  split(first, parts);
  std::vector<bool> varies(parts.size(), false);
  for (StringRef node : nodes.drop_front()) {
    SmallVector<StringRef> others;
    split(node, others);
    if (others.size() != parts.size())
      continue; // another kind of node: the first one names the kernel
    bool sameButNumbers = true;
    for (auto [a, b] : llvm::zip(parts, others))
      sameButNumbers &=
          a == b || (llvm::all_of(a, llvm::isDigit) && llvm::all_of(b, llvm::isDigit));
    for (size_t i = 0; sameButNumbers && i < parts.size(); ++i)
      varies[i] = varies[i] || parts[i] != others[i];
  }
  std::string result;
  for (size_t i = 0; i < parts.size(); ++i)
    if (!varies[i])
      result += (result.empty() ? "" : ".") + parts[i].str();
  return result;
}

struct Kernel {
  kernel::FunctionOp function;
  SmallVector<std::string> nodes; // main nodes of its launches
  bool gradient = false;
  std::string entry;    // function of its first launch
  std::string computes; // what its first launch makes, within the main node: `weight_and_bias`
};

/// The roles of what a group computes. Of gradients: the parameters', else `input`. Nothing where
/// the node's own value is among it.
std::string whatComputes(kernel::GroupOp group) {
  SmallVector<std::string> words;
  auto yielded = group.getBody().front().getTerminator()->getOperands();
  for (auto [value, result] : llvm::zip(yielded, group.getOuts())) {
    NodeName name = nodeName(value.getLoc());
    std::string word = name.role;
    if (!name.of.empty()) {
      bool returned = llvm::any_of(result.getUsers(), [](Operation *user) {
        return user->hasTrait<OpTrait::IsTerminator>();
      });
      word = returned ? StringRef(name.of).rsplit('.').second.str() : "input";
    }
    if (name.role.empty() && name.of.empty() && name.node == nodeName(group.getLoc()).node)
      return "";
    if (!word.empty() && !llvm::is_contained(words, word))
      words.push_back(word);
  }
  if (words.size() > 2)
    words.resize(2);
  return llvm::join(words, "_and_");
}

class Lowering {
public:
  explicit Lowering(ModuleOp module) : module(module) {}

  void run() {
    module.walk([&](kernel::GroupOp group) { lower(group); });
    nameKernels();
  }

private:
  void lower(kernel::GroupOp group);
  std::string textOf(kernel::GroupOp group, SmallVectorImpl<Value> &outside);
  size_t intern(kernel::FunctionOp function);
  void nameKernels();
  static SmallVector<Attribute> sourcesOf(kernel::GroupOp group);
  static double flopsOf(kernel::GroupOp group);
  static ArrayAttr resultNames(kernel::GroupOp group);
  static Location launchLocation(kernel::GroupOp group);

  // A group seen before: its kernel, and which outside values are the inputs.
  struct Known {
    size_t kernel;
    SmallVector<unsigned> inputs;
  };

  ModuleOp module;
  std::vector<Kernel> kernels;
  llvm::StringMap<size_t> byText;
  llvm::StringMap<Known> groupsByText;
  SmallVector<std::pair<kernel::LaunchOp, size_t>> launches;
};

/// What the group computes, with values numbered; equal for equal layers. Names of operations,
/// types and attributes stand as their addresses: equal ones are one object.
std::string Lowering::textOf(kernel::GroupOp group, SmallVectorImpl<Value> &outside) {
  std::string text;
  llvm::raw_string_ostream out(text);
  DenseMap<Value, int> numbers;
  auto number = [&](Value value) {
    auto [entry, isNew] = numbers.try_emplace(value, numbers.size());
    if (isNew) {
      outside.push_back(value);
      out << 'o' << value.getType().getAsOpaquePointer();
    }
    return entry->second;
  };
  out << int(group.getForm()) << '\n';
  for (Operation &op : group.getBody().front()) {
    out << op.getName().getAsOpaquePointer();
    for (Value operand : op.getOperands())
      out << ' ' << number(operand);
    for (NamedAttribute attribute : op.getAttrDictionary())
      out << ' ' << attribute.getName().getAsOpaquePointer()
          << attribute.getValue().getAsOpaquePointer();
    for (Value result : op.getResults()) {
      numbers.try_emplace(result, numbers.size());
      out << ':' << result.getType().getAsOpaquePointer();
    }
    out << '\n';
  }
  return text;
}

SmallVector<Attribute> Lowering::sourcesOf(kernel::GroupOp group) {
  llvm::StringSet<> seen;
  SmallVector<Attribute> sources;
  for (Operation &op : group.getBody().front()) {
    NodeName name = nodeName(op.getLoc());
    if (name.node.empty() || op.hasTrait<OpTrait::IsTerminator>() ||
        op.hasTrait<OpTrait::ConstantLike>())
      continue;
    if (std::string title = name.title(); seen.insert(title).second)
      sources.push_back(StringAttr::get(op.getContext(), title));
  }
  return sources;
}

/// What one execution computes.
double Lowering::flopsOf(kernel::GroupOp group) {
  double flops = 0;
  for (auto op : group.getBody().front().getOps<nn::CostOpInterface>())
    flops += op.flops();
  return flops;
}

ArrayAttr Lowering::resultNames(kernel::GroupOp group) {
  SmallVector<Attribute> names;
  for (Value value : group.getBody().front().getTerminator()->getOperands())
    names.push_back(StringAttr::get(group.getContext(), nodeName(value.getLoc()).value()));
  return ArrayAttr::get(group.getContext(), names);
}

/// Names all that the group computes: equal groups are one function, which has the names of the
/// first of them.
Location Lowering::launchLocation(kernel::GroupOp group) {
  SmallVector<Location> computations;
  for (Operation &op : group.getBody().front())
    if (!op.hasTrait<OpTrait::IsTerminator>() && !op.hasTrait<OpTrait::ConstantLike>())
      computations.push_back(op.getLoc());
  return jointLocation(group.getLoc(), computations);
}

/// The kernel with this function's text, the function itself where it is new.
size_t Lowering::intern(kernel::FunctionOp function) {
  std::string text;
  llvm::raw_string_ostream out(text);
  ArrayAttr sources = function.getSourcesAttr();
  FloatAttr flops = function.getFlopsAttr();
  function.setSourcesAttr(ArrayAttr::get(function.getContext(), {}));
  function.removeFlopsAttr();
  // Even where a command line asks for them: locations differ between equal layers.
  function->print(out, OpPrintingFlags().useLocalScope().enableDebugInfo(false));
  function.setSourcesAttr(sources);
  function.setFlopsAttr(flops);
  auto [entry, isNew] = byText.try_emplace(text, kernels.size());
  if (isNew)
    kernels.push_back({function, {}, false, "", ""});
  else
    function.erase();
  return entry->second;
}

void Lowering::lower(kernel::GroupOp group) {
  SmallVector<Value> outside, inputs;
  std::string text = textOf(group, outside);
  auto known = groupsByText.find(text);
  size_t number;
  if (known != groupsByText.end()) {
    number = known->second.kernel;
    for (unsigned i : known->second.inputs)
      inputs.push_back(outside[i]);
  } else {
    auto [function, read] = buildKernel(group);
    function.setSourcesAttr(ArrayAttr::get(group.getContext(), sourcesOf(group)));
    function.setFlops(APFloat(flopsOf(group)));
    number = intern(function);
    Known entry{number, {}};
    inputs = read;
    for (Value input : inputs)
      entry.inputs.push_back(llvm::find(outside, input) - outside.begin());
    groupsByText[text] = entry;
  }
  NodeName name = nodeName(group.getLoc());
  kernels[number].nodes.push_back(name.node);
  if (kernels[number].nodes.size() == 1) {
    kernels[number].gradient = name.gradient;
    kernels[number].entry = group->getParentOfType<func::FuncOp>().getName().str();
    kernels[number].computes = whatComputes(group);
  }
  OpBuilder builder(group);
  auto launch = builder.create<kernel::LaunchOp>(launchLocation(group), group.getResultTypes(),
                                                 "kernel", inputs, ArrayAttr(), Attribute());
  launch->setAttr("result_names", resultNames(group));
  launches.push_back({launch, number});
  group.replaceAllUsesWith(launch.getOuts());
  group.erase();
}

/// Kernels of one name are told apart by what they compute, then by the entry function, if that
/// is not where the first of them stands; only kernels that compute the same by numbers.
void Lowering::nameKernels() {
  UniqueNames names;
  for (Operation &op : module.getBody()->getOperations())
    if (auto symbol = dyn_cast<SymbolOpInterface>(op))
      names.take(symbol.getName());
  auto assemble = [](const Kernel &kernel, const std::string &base, bool withWhat) {
    return base + (withWhat && !kernel.computes.empty() ? "_" + identifier(kernel.computes) : "") +
           (kernel.gradient ? "_gradient" : "");
  };
  std::vector<std::string> bases;
  llvm::StringMap<unsigned> uses;
  for (const Kernel &entry : kernels) {
    bases.push_back(identifier(commonName(entry.nodes)));
    ++uses[assemble(entry, bases.back(), false)];
  }
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  for (auto [entry, base] : llvm::zip(kernels, bases)) {
    bool shared = uses.lookup(assemble(entry, base, false)) > 1;
    std::string name = assemble(entry, base, shared);
    if (shared && names.contains(name) && entry.entry != kernels.front().entry)
      name += "_" + entry.entry;
    entry.function.setSymName(names.unique(name));
    builder.insert(entry.function);
  }
  for (auto &[launch, number] : launches)
    launch.setKernel(kernels[number].function.getSymName());
}

struct LowerToKernels : ModulePass<LowerToKernels> {
  static constexpr StringLiteral flag = "lower-to-kernels";
  static constexpr StringLiteral description =
      "Turn groups into kernels with scalar code, one for all equal groups";

  void runOnOperation() override { Lowering(getOperation()).run(); }
};

PassRegistration<LowerToKernels> lowerToKernelsRegistration;

} // namespace

std::unique_ptr<Pass> createLowerToKernelsPass() { return std::make_unique<LowerToKernels>(); }

} // namespace trainc
