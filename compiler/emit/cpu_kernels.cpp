// SPDX-License-Identifier: Apache-2.0
//
// Kernels as C++ functions with OpenMP loops: the forms whose points or rows threads
// share, and what all forms print.
#include "compiler/emit/cpu_kernels.h"
#include "compiler/emit/cpu_kernel.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace trainc;

/// Before the loops that threads share as the schedule says.
void CpuKernel::shareLoops() {
  int64_t loops = schedule.getParallel();
  if (loops == 0)
    return;
  std::string clauses = loops > 1 ? " collapse(" + std::to_string(loops) + ")" : "";
  if (storesBytes(function)) // which might change what the threads share, for all that C++ says
    clauses += " default(firstprivate)";
  writer.directive("#pragma omp parallel for" + clauses + " schedule(static)");
}

void CpuKernel::openLoops(ArrayRef<size_t> dims) {
  for (size_t d : dims)
    openLoop(d);
}

/// Nested loops over `dims`, the last in vectors, with every operation as far out as it may
/// stand. The caller closes them.
void CpuKernel::printLoops(Block &block, ArrayRef<size_t> dims) {
  uint64_t visible = everything & ~LoopNest::bits(dims);
  printAt(block, dims.empty() ? everything : visible, nothing);
  outsideLoops = code.names;
  for (auto [i, d] : llvm::enumerate(dims)) {
    bool last = i + 1 == dims.size();
    if (last)
      writer.directive("#pragma omp simd");
    openLoop(d);
    uint64_t previous = visible;
    visible |= bit(d);
    printAt(block, last ? everything : visible, previous);
  }
}

/// Loops over all points.
void CpuKernel::mapPoints(kernel::MapOp map) {
  Block &block = map.getBody().front();
  size_t rank = nest.sizes.size();
  if (inParts && rank == 2) {
    openRowsOfPart();
    printLoops(block, {1});
    return close(rank);
  }
  if (inParts) {
    StringRef threads = schedule.getParallel() > 0 ? "parallel for simd schedule(static)" : "simd";
    writer.directive("#pragma omp " + threads);
    StringRef i = code.index(0);
    writer.line("for (int64_t " + i + " = points.begin; " + i + " < points.end; ++" + i + ") {");
    printAt(block, everything, nothing);
    return close(1);
  }
  if (rank == 1 && schedule.getParallel() > 0) {
    writer.directive("#pragma omp parallel for simd schedule(static)");
    openLoop(0);
    printAt(block, everything, nothing);
    return close(1);
  }
  SmallVector<size_t> dims = llvm::to_vector(llvm::seq<size_t>(0, rank));
  ArrayRef<size_t> last = ArrayRef(dims).take_back(1);
  shareLoops();
  openLoops(ArrayRef(dims).drop_back(last.size()));
  printLoops(block, last);
  close(rank);
}

void CpuKernel::emitPointwise() {
  printPrologue();
  for (Operation &op : function.getBody().front()) {
    if (auto map = dyn_cast<kernel::MapOp>(op))
      mapPoints(map);
    else if (op.getNumRegions() == 0 && !isPrologue(op))
      code.print(op);
  }
}

// ---- rows

SmallVector<std::string> CpuKernel::declarePartials(kernel::ReduceOp reduce, StringRef count) {
  SmallVector<std::string> partials;
  eachReduction(reduce, [&](kernel::Reduction kind, Value result, size_t) {
    std::string name = code.names.value(reductionText(result).partial);
    StringRef type = scalarType(result.getType());
    if (kind == kernel::Reduction::add) {
      writer.line(type + " " + name + "[" + count + "] = {};");
    } else {
      writer.line(type + " " + name + "[" + count + "];");
      writer.line("set_lanes<" + type + ">(" + name + ", " + count + ", " +
                  neutralText(kind, result.getType()) + ");");
    }
    partials.push_back(name);
  });
  return partials;
}

/// Dimension `d` in lanes, which `});` closes. Its index is unused where all of `block` is the same
/// along it.
void CpuKernel::openLanes(Block &block, size_t d, StringRef begin, StringRef end) {
  bool used = llvm::any_of(block, [&](Operation &op) {
    return !isPrologue(op) && (nest.dependence(&op) & bit(d)) != 0;
  });
  StringRef unused = used ? "" : "[[maybe_unused]] ";
  writer.line("in_lanes<" + indexType + ">(" + begin + ", " + end + ", [&](" + unused + indexType +
              " " + code.index(d) + ", int lane) ALWAYS_INLINED {");
}

void CpuKernel::reduceRow(kernel::ReduceOp reduce, ArrayRef<size_t> dims) {
  Block &block = reduce.getBody().front();
  if (dims.empty())
    return reduceNothing(reduce);
  const SmallVector<std::string> partials = declarePartials(reduce, "lanes");
  ArrayRef<size_t> loops = dims.drop_back();
  size_t last = dims.back();
  uint64_t visible = everything & ~LoopNest::bits(dims);
  printAt(block, visible, nothing);
  NameTable outside = code.names; // names of the loops end with them
  for (size_t d : loops) {
    openLoop(d);
    printAt(block, visible | bit(d), visible);
    visible |= bit(d);
  }
  openLanes(block, last, "0", size(last));
  printAt(block, visible | bit(last), visible);
  yieldInto(reduce, partials, "[lane]");
  writer.line("});");
  close(loops.size());
  code.names = outside;
  for (auto [partial, result] : llvm::zip(partials, reduce.getOuts())) {
    ReductionText text = reductionText(result);
    std::string name = code.names.value(text.result);
    StringRef unused = result.use_empty() ? "[[maybe_unused]] " : "";
    writer.line(unused + "const " + scalarType(result.getType()) + " " + name + " = " + text.verb +
                "_lanes(" + partial + ");");
    code.setText(result, name);
  }
}

/// The rows whose first elements are among the points.
void CpuKernel::openRowsOfPart() {
  const std::string i = code.index(0).str(), last = size(1);
  auto rowFrom = [&](StringRef point) {
    return ("(" + point + " + " + last + " - 1) / " + last).str();
  };
  shareLoops();
  writer.line("for (int64_t " + i + " = " + rowFrom("points.begin") + "; " + i + " < " +
              rowFrom("points.end") + "; ++" + i + ") {");
}

void CpuKernel::emitRow() {
  printPrologue();
  if (inParts) {
    openRowsOfPart();
  } else {
    shareLoops();
    openLoops(nest.kept);
  }
  for (Operation &op : function.getBody().front()) {
    if (auto reduce = dyn_cast<kernel::ReduceOp>(op)) {
      reduceRow(reduce, nest.walked);
    } else if (auto map = dyn_cast<kernel::MapOp>(op)) {
      printLoops(map.getBody().front(), nest.walked);
      close(nest.walked.size());
      code.names = outsideLoops;
    } else if (!isPrologue(op)) {
      code.print(op);
    }
  }
  close(nest.kept.size());
}

LogicalResult trainc::emitCpuKernel(kernel::FunctionOp function, const KernelNames &names,
                                    SourceWriter &writer) {
  auto schedule = dyn_cast_or_null<kernel::CpuScheduleAttr>(function.getScheduleAttr());
  if (!schedule)
    return function.emitOpError("has no schedule for cpu; run schedule-kernels --target=cpu first");
  return printKernel(function, [&] {
    kernelSignature(function, names, " {", writer);
    CpuKernel(function, names, writer, schedule).emit();
    writer.line("}");
  });
}
