// SPDX-License-Identifier: Apache-2.0
//
// step.cpp: each entry function as the sequence of its steps, one call a step
// under the name of its model node.
#include "compiler/emit/step_program.h"
#include "compiler/emit/expressions.h"
#include "dialects/names/node_name.h"
#include "dialects/nn/nn.h"

using namespace mlir;
using namespace trainc;

static constexpr int kStepsPerFunction = 100; // host compilers are quadratic in the length of one

namespace {

class StepPrinter {
public:
  StepPrinter(ModuleOp module, const MemoryNames &names, const KernelTable &kernels)
      : module(module), names(names), kernels(kernels) {}

  std::string print() {
    for (const std::string &entry : names.entries())
      printEntry(entry);
    std::string text = head();
    return text + body.text() + "} // namespace trainc\n";
  }

private:
  std::string head() {
    SourceWriter writer;
    writer.line(
        "// The entry functions: one call for each step, under the name of its model node.");
    writer.line("#include \"kernels.h\"");
    writer.line("#include \"memory.h\"");
    writer.line("#include \"runtime/kernels/matmul.h\"");
    writer.line("#include \"runtime/kernels/scatter_add.h\"");
    writer.line("#include \"step.h\"");
    writer.line();
    writer.line("namespace trainc {");
    writer.outdent();
    writer.line();
    writer.line("namespace {");
    writer.outdent();
    writer.line();
    writer.line("struct bases {");
    writer.line("char *parameters, *gradients, *optimizer_state, *activations, *workspace;");
    if (!names.constants().empty())
      writer.line("const char *constants;");
    writer.line("};");
    if (!shapeText.text().empty()) {
      writer.line();
      writer.line("// Matrix products [m, k] x [k, n], in elements.");
    }
    std::string text = writer.text() + shapeText.text();
    return text + "\n} // namespace\n";
  }

  std::string pointer(Value value) {
    const PlacedTensor *tensor = names.find(value);
    if (!tensor)
      return "nullptr"; // collect has reported it
    return address(tensor->type.getElementType(), tensor->place.getArena(), tensor->name);
  }

  static std::string address(Type element, kernel::Arena arena, const std::string &offset) {
    // A cast, not a function: there are thousands, and each would be compiled as a call.
    StringRef constant = arena == kernel::Arena::constants ? "const " : "";
    return ("(" + constant + elementType(element) + " *)(m." + kernel::stringifyArena(arena) +
            " + " + offset + ")")
        .str();
  }

  void printEntry(StringRef entry) {
    auto function = module.lookupSymbol<func::FuncOp>(entry);
    SmallVector<Operation *> steps;
    if (function)
      for (Operation &op : function.getBody().front())
        if (MemoryNames::isStep(&op))
          steps.push_back(&op);
    int parts = (steps.size() + kStepsPerFunction - 1) / kStepsPerFunction;
    bool hasNames = !names.ofEntry(entry).empty();
    for (int part = 0; part < parts; ++part) {
      body.line();
      body.line(
          ("static void " + entry + "_" + llvm::Twine(part + 1) + "(const bases &m) {").str());
      body.line("using namespace memory;");
      if (hasNames)
        body.line("using namespace memory::" + entry + ";");
      for (int i = part * kStepsPerFunction;
           i < std::min<int>(steps.size(), (part + 1) * kStepsPerFunction); ++i)
        printStep(steps[i]);
      body.line("}");
    }
    body.line();
    body.line(("void " + entry + "(const arenas &" + (parts == 0 ? "" : "memory") + ") {").str());
    if (parts != 0)
      body.line("const bases m = {memory.base[0], memory.base[1], memory.base[2], memory.base[3], "
                "memory.base[4]" +
                llvm::Twine(names.constants().empty() ? "" : ", memory.constants") + "};");
    for (int part = 0; part < parts; ++part)
      body.line(entry + "_" + llvm::Twine(part + 1) + "(m);");
    body.line("}");
  }

  void printStep(Operation *op) {
    std::string title = nodeName(op->getLoc()).title();
    if (title != lastTitle && !title.empty())
      body.line("// " + commentText(title));
    lastTitle = title;
    if (auto launch = dyn_cast<kernel::LaunchOp>(op))
      printLaunch(launch);
    else if (auto product = dyn_cast<kernel::MatmulOp>(op))
      printProduct(product);
    else
      printScatter(cast<kernel::ScatterAddOp>(op));
  }

  void printLaunch(kernel::LaunchOp launch) {
    SmallVector<std::string> arguments;
    for (Value value : launch.getInputs())
      arguments.push_back(pointer(value));
    for (Value value : launch.getOuts())
      arguments.push_back(pointer(value));
    if (auto scratch = cast_or_null<kernel::PlaceAttr>(launch.getScratchAttr()))
      arguments.push_back("m.workspace" + (scratch.getOffset() == 0
                                               ? ""
                                               : " + " + std::to_string(scratch.getOffset())));
    auto found = kernels.find(launch.getKernel());
    body.call(found == kernels.end() ? sanitize(launch.getKernel()) : found->second.function,
              arguments, ";");
  }

  static std::string matrix(StringRef name, kernel::MatrixAttr matrix) {
    std::string text = ("." + name + " = {").str();
    if (matrix.getOffset() != 0)
      text += ".offset = " + std::to_string(matrix.getOffset()) + ", ";
    text += ".row_stride = " + std::to_string(matrix.getRowStride()) +
            ", .column_stride = " + std::to_string(matrix.getColumnStride());
    return text + batch(".batch_strides", matrix.getBatchStrides()) + "}";
  }

  static std::string batch(StringRef name, ArrayRef<int64_t> values) {
    if (llvm::all_of(values, [&](int64_t v) { return v == (name == ".batch" ? 1 : 0); }))
      return "";
    std::string text = (", " + name + " = {").str();
    for (auto [i, value] : llvm::enumerate(values))
      text += (i ? ", " : "") + std::to_string(value);
    return text + "}";
  }

  /// The name of the product's shape; equal shapes share one.
  std::string shapeName(kernel::MatmulOp op) {
    // Dimensions of size one say nothing.
    std::string text = ".m = " + std::to_string(op.getM()) + ", .n = " + std::to_string(op.getN()) +
                       ", .k = " + std::to_string(op.getK()) + batch(".batch", op.getBatch());
    SmallVector<std::string> lines = {text, matrix("a", op.getMatrixA()),
                                      matrix("b", op.getMatrixB()), matrix("c", op.getMatrixC())};
    std::string key = llvm::join(lines, ",");
    std::string &name = shapes[key];
    if (!name.empty())
      return name;
    name = shapeNames.unique("product_" + std::to_string(op.getM()) + "x" +
                             std::to_string(op.getN()) + "x" + std::to_string(op.getK()));
    shapeText.line("constexpr matmul_shape " + name + " = {");
    for (size_t i = 0; i < lines.size(); ++i)
      shapeText.line("  " + lines[i] + (i + 1 < lines.size() ? "," : ""));
    shapeText.line("};");
    return name;
  }

  void printProduct(kernel::MatmulOp op) {
    auto optional = [&](Value value) { return value ? pointer(value) : "nullptr"; };
    SmallVector<std::string> arguments{shapeName(op), pointer(op.getA()), pointer(op.getB())};
    StringRef function = "matmul";
    auto epilogue = op.getEpilogue();
    if (epilogue == kernel::Epilogue::gelu) {
      function = "matmul_gelu";
      arguments.append({optional(op.getBias()), pointer(op.getOut()), optional(op.getLinearOut())});
    } else if (epilogue == kernel::Epilogue::gelu_gradient) {
      function = "matmul_gelu_gradient";
      arguments.append({pointer(op.getLinear()), pointer(op.getOut()), optional(op.getSum())});
    } else if (op.getBias()) {
      function = "matmul_bias";
      arguments.append({pointer(op.getBias()), pointer(op.getOut())});
    } else if (op.getSum()) {
      function = op.getSummed() == kernel::Summed::a ? "matmul_sum_a" : "matmul_sum_b";
      arguments.append({pointer(op.getOut()), pointer(op.getSum())});
    } else {
      if (op.getInit())
        function = "matmul_add";
      arguments.push_back(pointer(op.getOut()));
    }
    body.call(function, arguments, ";");
  }

  void printScatter(kernel::ScatterAddOp op) {
    int64_t count = cast<RankedTensorType>(op.getIndices().getType()).getNumElements();
    body.call(op.getInit() ? "scatter_add" : "scatter_add_from_zero",
              {std::to_string(count), std::to_string(op.getRows()), std::to_string(op.getColumns()),
               pointer(op.getIndices()), pointer(op.getUpdates()), pointer(op.getOut())},
              ";");
  }

  ModuleOp module;
  const MemoryNames &names;
  const KernelTable &kernels;
  SourceWriter body, shapeText;
  NameTable shapeNames;
  llvm::StringMap<std::string> shapes;
  std::string lastTitle;
};

} // namespace

std::string trainc::stepProgram(ModuleOp module, const MemoryNames &names,
                                const KernelTable &kernels) {
  return StepPrinter(module, names, kernels).print();
}
