// SPDX-License-Identifier: Apache-2.0
//
// What the kernel printers of all targets share.
#include "compiler/emit/kernel_printer.h"
#include "compiler/emit/value_names.h"
#include "dialects/elements/element_type.h"
#include "dialects/errors/internal_error.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace trainc;

static ReductionText textOf(kernel::Reduction kind) {
  switch (kind) {
  case kernel::Reduction::add:
    return {"sums", "sum", "sum"};
  case kernel::Reduction::max:
    return {"maxima", "largest", "max"};
  case kernel::Reduction::min:
    return {"minima", "smallest", "min"};
  }
  internalError("a reduction has no text");
}

ReductionText trainc::reductionText(Value result) {
  auto reduce = cast<kernel::ReduceOp>(result.getDefiningOp());
  unsigned number = cast<OpResult>(result).getResultNumber();
  ReductionText text = textOf(cast<kernel::ReductionAttr>(reduce.getKinds()[number]).getValue());
  if (std::string word = valueWord(resultLocation(result)); !word.empty()) {
    text.result = sanitize(word);
    text.partial = text.result + "_parts";
  }
  return text;
}

std::string trainc::neutralText(kernel::Reduction kind, Type type) {
  if (kind == kernel::Reduction::add)
    return elementTypeOf(type).zero.str();
  bool max = kind == kernel::Reduction::max;
  return (max ? elementTypeOf(type).smallest : elementTypeOf(type).largest).str();
}

std::string trainc::combinationText(kernel::Reduction kind, Type type, const std::string &into,
                                    const std::string &value) {
  if (kind == kernel::Reduction::add)
    return into + " += " + value + ";";
  std::string function = kind == kernel::Reduction::max ? "maximum" : "minimum";
  if (isa<IntegerType>(type)) // literals and indices of loops are int
    function += ("<" + scalarType(type) + ">").str();
  return into + " = " + function + "(" + into + ", " + value + ");";
}

std::string trainc::bufferParameter(kernel::FunctionOp function, unsigned argument,
                                    StringRef name) {
  BlockArgument buffer = function.getBody().getArgument(argument);
  bool isInput = argument < function.getBody().getNumArguments() - function.getOutputs();
  auto type = cast<kernel::BufferType>(buffer.getType());
  return ((isInput ? "const " : "") + elementType(type.getElement()) + " *" + name).str();
}

void trainc::kernelSignature(kernel::FunctionOp function, const KernelNames &names, StringRef tail,
                             SourceWriter &writer) {
  SmallVector<std::string> parameters;
  if (names.inParts)
    parameters.push_back(isa_and_nonnull<kernel::CudaScheduleAttr>(function.getScheduleAttr())
                             ? "const ranges_of_run &ranges"
                             : "element_range points");
  auto isUsed = [&](unsigned first) {
    return llvm::any_of(function.getBody().getArguments(), [&](BlockArgument argument) {
      return names.same[argument.getArgNumber()] == first && !argument.use_empty();
    });
  };
  for (auto [i, name] : llvm::enumerate(names.buffers))
    if (names.same[i] == i)
      parameters.push_back((isUsed(i) ? "" : "[[maybe_unused]] ") +
                           bufferParameter(function, i, name));
  if (function.getScratchBytes() > 0)
    parameters.push_back("char *scratch");
  writer.mark();
  writer.call("void " + names.function, parameters, tail);
}

LogicalResult trainc::printKernel(kernel::FunctionOp function, llvm::function_ref<void()> print) {
  bool failed = false;
  ScopedDiagnosticHandler handler(function.getContext(), [&](Diagnostic &) {
    failed = true;
    return failure(); // pass it on
  });
  print();
  return failure(failed);
}

KernelPrinter::KernelPrinter(kernel::FunctionOp function, const KernelNames &names,
                             SourceWriter &writer)
    : function(function), nest(function), writer(writer), code(nest, writer, names),
      indexType(nest.fitsInt() ? "int" : "int64_t") {}

void KernelPrinter::emit() {
  switch (function.getForm()) {
  case kernel::Form::pointwise:
    return emitPointwise();
  case kernel::Form::row:
    return emitRow();
  case kernel::Form::column:
    return emitColumn();
  case kernel::Form::full:
    return emitFull();
  }
}

void KernelPrinter::openLoop(size_t d) {
  StringRef i = code.index(d);
  writer.line("for (" + indexType + " " + i + " = 0; " + i + " < " + size(d) + "; ++" + i + ") {");
}

void KernelPrinter::close(size_t count) {
  for (size_t i = 0; i < count; ++i)
    writer.line("}");
}

void KernelPrinter::printPrologue(llvm::function_ref<bool(Operation *)> wanted) {
  function.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op->getNumRegions() != 0 || isa<kernel::StoreOp, kernel::YieldOp>(op) ||
        nest.dependence(op) != 0 || !wanted(op))
      return;
    prologue.insert(op);
    code.print(*op);
  });
}

void KernelPrinter::printAt(Block &block, uint64_t visible, uint64_t previous) {
  for (Operation &op : block) {
    uint64_t mask = nest.dependence(&op) & ~LoopNest::reduced;
    bool store = isa<kernel::StoreOp>(op);
    if (isPrologue(op) || isa<kernel::YieldOp>(op) || (!store && (mask & ~visible) != 0))
      continue;
    bool printed = previous != nothing && (mask & ~previous) == 0;
    if (store ? visible == everything : !printed)
      code.print(op);
  }
}

void KernelPrinter::eachReduction(kernel::ReduceOp reduce,
                                  llvm::function_ref<void(kernel::Reduction, Value, size_t)> call) {
  for (auto [k, attribute] : llvm::enumerate(reduce.getKinds()))
    call(cast<kernel::ReductionAttr>(attribute).getValue(), reduce.getOuts()[k], k);
}

void KernelPrinter::yieldInto(kernel::ReduceOp reduce, ArrayRef<std::string> partials,
                              StringRef at) {
  auto yield = cast<kernel::YieldOp>(reduce.getBody().front().getTerminator());
  eachReduction(reduce, [&](kernel::Reduction kind, Value result, size_t k) {
    writer.line(combinationText(kind, result.getType(), (partials[k] + at).str(),
                                code.text(yield.getValues()[k])));
  });
}

void KernelPrinter::reduceNothing(kernel::ReduceOp reduce) {
  Block &block = reduce.getBody().front();
  printAt(block, everything, nothing);
  auto yield = cast<kernel::YieldOp>(block.getTerminator());
  for (auto [result, value] : llvm::zip(reduce.getOuts(), yield.getValues()))
    code.setText(result, code.text(value));
}

void KernelPrinter::combineInOrder(
    kernel::ReduceOp reduce,
    llvm::function_ref<std::pair<std::string, std::string>(Type, size_t)> loop) {
  eachReduction(reduce, [&](kernel::Reduction kind, Value result, size_t k) {
    Type type = result.getType();
    std::string total = code.names.value(reductionText(result).result);
    writer.line(scalarType(type) + " " + total + " = " + neutralText(kind, type) + ";");
    auto [head, element] = loop(type, k);
    writer.line(head);
    writer.line(combinationText(kind, type, total, element));
    close(1);
    code.setText(result, total);
  });
}
