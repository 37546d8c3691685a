// SPDX-License-Identifier: Apache-2.0
//
// step.cpp: each entry function as the sequence of its steps, one call a step
// under the name of its model node.
#include "compiler/emit/step_program.h"
#include "compiler/emit/expressions.h"
#include "dialects/elements/element_type.h"
#include "dialects/names/node_name.h"
#include "dialects/nn/nn.h"
#include "dialects/train/train.h"
#include "passes/sharding/gradient_buckets.h"
#include "passes/sharding/update_parts.h"
#include <set>

using namespace mlir;
using namespace trainc;

static constexpr int kStepsPerFunction = 100; // host compilers are quadratic in the length of one

namespace {

class StepPrinter {
public:
  StepPrinter(ModuleOp module, const MemoryNames &names, const KernelTable &kernels,
              StringRef target, source_map &map)
      : names(names), kernels(kernels), map(map), parts(updatesInParts(module)),
        isCuda(target == "cuda") {}

  std::string print() {
    for (func::FuncOp entry : names.entries())
      printEntry(entry);
    std::string text = head();
    const int above = int(StringRef(text).count('\n'));
    for (mapped_entry &entry : map.entries)
      for (mapped_step &step : entry.steps) {
        step.lines.first += above;
        step.lines.last += above;
      }
    return text + body.text() + "} // namespace trainc\n";
  }

private:
  /// A user's function has its own.
  static std::string headerOf(StringRef library) {
    return library.contains('/') ? library.str() : ("runtime/kernels/" + library + ".h").str();
  }

  /// Libraries of the runtime that steps call: `matmul` for runtime/kernels/matmul.h.
  std::set<std::string> calledLibraries() const {
    std::set<std::string> libraries;
    for (func::FuncOp entry : names.entries())
      for (auto step : entry.getBody().getOps<kernel::StepOpInterface>())
        if (std::string library = step.call().library; !library.empty())
          libraries.insert(library);
    return libraries;
  }

  std::string head() {
    SourceWriter writer;
    writer.line(
        "// The entry functions: one call for each step, under the name of its model node.");
    writer.line("#include \"kernels.h\"");
    writer.line("#include \"memory.h\"");
    for (const std::string &library : calledLibraries())
      writer.line("#include \"" + headerOf(library) + "\"");
    writer.line("#include \"runtime/entry_memory.h\"");
    writer.line("#include \"step.h\"");
    writer.line();
    writer.openNamespace("trainc");
    if (constants.empty())
      return writer.text();
    writer.line();
    writer.line("namespace {");
    std::string text = writer.text();
    for (auto &[type, list] : constants)
      text += "\n" + list.text();
    return text + "\n} // namespace\n";
  }

  std::string pointer(Value value) {
    const PlacedTensor *tensor = names.find(value);
    if (!tensor)
      return "nullptr"; // collect has reported it
    return "m[at::" + tensor->name + "]";
  }

  void printEntry(func::FuncOp function) {
    const StringRef entry = function.getName();
    const auto steps = llvm::to_vector(function.getBody().getOps<kernel::StepOpInterface>());
    const int functions = (steps.size() + kStepsPerFunction - 1) / kStepsPerFunction;
    map.entries.emplace_back().name = entry.str();
    const GradientBuckets buckets = bucketsToldBy(function);
    size_t bucket = 0; // the next
    for (int part = 0; part < functions; ++part) {
      body.line();
      body.line(("static void " + entry + "_" + llvm::Twine(part + 1) + "(const entry_memory &m) {")
                    .str());
      body.line("namespace at = memory::" + entry + ";");
      for (int i = part * kStepsPerFunction;
           i < std::min<int>(steps.size(), (part + 1) * kStepsPerFunction); ++i) {
        printStep(steps[i], i);
        if (bucket < buckets.size() && buckets[bucket].step == i)
          body.line("m.complete(" + std::to_string(bucket++) + ");");
      }
      body.line("}");
    }
    body.line();
    body.line(
        ("void " + entry + "(const arenas &" + (functions == 0 ? "" : "memory") + ") {").str());
    if (functions != 0)
      body.line("const entry_memory m(memory, " + stringLiteral(entry) + ");");
    for (int part = 0; part < functions; ++part)
      body.line(entry + "_" + llvm::Twine(part + 1) + "(m);");
    if (functions != 0)
      body.line("m.leave();");
    body.line("}");
  }

  void printStep(kernel::StepOpInterface step, int number) {
    std::string title = nodeName(step->getLoc()).title();
    if (title != lastTitle && !title.empty())
      body.line("// " + commentText(title));
    lastTitle = title;
    kernel::StepCall call = step.call();
    SmallVector<std::string> arguments;
    if (step.isOrdered())
      arguments.push_back("m.ranks");
    if (auto part = parts.find(step.getOperation()); part != parts.end())
      arguments.push_back((isCuda ? "m.updated_ranges.within(" : "m.updated.within(") +
                          std::to_string(part->second.first) + ", " +
                          std::to_string(part->second.count) + ")");
    auto kernel = kernels.find(call.function);
    const bool isKernel = step.calledKernel() && kernel != kernels.end();
    for (auto [i, argument] : llvm::enumerate(call.arguments))
      if (!isKernel || kernel->second.same[i] == i)
        arguments.push_back(std::visit([&](const auto &a) { return text(a); }, argument));
    if (kernel::PlaceAttr scratch = step.scratchPlace())
      arguments.push_back("m.scratch(" + std::to_string(scratch.getOffset()) + ")");
    const int first = body.lines() + 1;
    body.line("m.step(" + std::to_string(number) + ");");
    body.call(isKernel ? "kernels::" + resolved(kernel->second.function)
              : StringRef(call.function).starts_with("::") ? call.function // a user's
                                                           : sanitize(call.function),
              arguments, ";");
    map.entries.back().steps.push_back(
        {{first, body.lines()}, isKernel ? kernel->second.number : -1});
  }

  std::string text(Value tensor) { return tensor ? pointer(tensor) : "nullptr"; }

  static std::string text(Attribute number) {
    if (auto list = dyn_cast<DenseI64ArrayAttr>(number)) {
      std::string text = "{";
      llvm::raw_string_ostream stream(text);
      llvm::interleaveComma(list.asArrayRef(), stream);
      return text + "}";
    }
    if (auto list = dyn_cast<DenseF64ArrayAttr>(number)) {
      OpBuilder builder(number.getContext());
      auto element = [&](double value) { return literal(builder.getF64FloatAttr(value)); };
      return "{" + llvm::join(llvm::map_range(list.asArrayRef(), element), ", ") + "}";
    }
    return literal(number);
  }

  /// The constant's name; equal ones are one.
  std::string text(const kernel::StepConstant &constant) {
    std::string key = constant.type + " " + llvm::join(constant.fields, ",");
    std::string &name = constantNames[key];
    if (!name.empty())
      return name;
    name = shapeNames.unique(constant.name);
    SourceWriter &writer = constants[constant.type];
    if (writer.text().empty())
      writer.comment(constant.meaning);
    writer.line("constexpr " + constant.type + " " + name + " = {");
    for (size_t i = 0; i < constant.fields.size(); ++i)
      writer.line("  " + constant.fields[i] + (i + 1 < constant.fields.size() ? "," : ""));
    writer.line("};");
    return name;
  }

  const MemoryNames &names;
  const KernelTable &kernels;
  source_map &map;
  const PartedLaunches parts;
  const bool isCuda;
  SourceWriter body;
  std::map<std::string, SourceWriter> constants; // by type
  NameTable shapeNames;
  llvm::StringMap<std::string> constantNames;
  std::string lastTitle;
};

} // namespace

int64_t trainc::rankExchangeBytes(ModuleOp module) {
  int64_t bytes = 0;
  module.walk([&](kernel::StepOpInterface step) {
    if (!step.isOrdered())
      return;
    bytes = std::max<int64_t>(bytes, 1);
    for (Value operand : step->getOperands())
      bytes = std::max(bytes, bytesOf(operand.getType()));
  });
  return bytes;
}

std::string trainc::stepProgram(ModuleOp module, const MemoryNames &names,
                                const KernelTable &kernels, StringRef target, source_map &map) {
  return StepPrinter(module, names, kernels, target, map).print();
}
