// SPDX-License-Identifier: Apache-2.0
//
// One __global__ function: what it is given, and pointwise kernels. All phases of a row
// give a point to the same thread, so an output that takes the place of an input needs no
// barrier. Reductions: first the points of a thread in order, then
// runtime/cuda/kernels/reduce.h.
#include "compiler/emit/device_function.h"
#include "dialects/errors/internal_error.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace trainc;
using kernel::Stage;

DeviceFunction::DeviceFunction(kernel::FunctionOp function, const KernelNames &names,
                               SourceWriter &writer, kernel::CudaScheduleAttr kernelSchedule,
                               size_t number)
    : KernelPrinter(function, names, writer), name(names.deviceFunctions[number]),
      schedule(kernelSchedule.getFunctions()[number]), stage(schedule.getStage()),
      inParts(names.inParts), cut(kernelSchedule.getParts()),
      wanted(kernel::operationsOfStage(function, stage)), keptMask(LoopNest::bits(nest.kept)),
      step(schedule.getVector()), worker(schedule.getWorker()) {
  llvm::DenseSet<unsigned> used;
  for (Operation *op : wanted)
    if (isa<kernel::LoadOp, kernel::StoreOp>(op))
      used.insert(names.same[argumentOf(op)]);
  for (unsigned i = 0; i < names.buffers.size(); ++i)
    if (used.contains(i))
      buffers.push_back(i);
  if (stage == Stage::whole)
    return;
  partElements = cut.getCount() * nest.points(nest.kept);
  eachReduction(nest.onlyReduction(), [&](kernel::Reduction, Value result, size_t) {
    parts.push_back(code.names.unique(reductionText(result).result + "_of_part"));
  });
}

StringRef trainc::deviceSuffix(kernel::FunctionOp function, Stage stage) {
  if (stage == Stage::parts)
    return "_parts";
  if (stage == Stage::total || function.getForm() == kernel::Form::full)
    return "_total";
  return function.getForm() == kernel::Form::pointwise ? "_points"
         : function.getForm() == kernel::Form::row     ? "_rows"
                                                       : "_columns";
}

void DeviceFunction::print() {
  SmallVector<std::string> parameters;
  if (inParts)
    parameters.push_back(pointType() + " points");
  auto addBuffers = [&] {
    for (unsigned i : buffers)
      parameters.push_back(bufferParameter(function, i, code.buffer(i)));
  };
  if (stage == Stage::parts)
    addBuffers();
  if (stage != Stage::whole)
    eachReduction(nest.onlyReduction(), [&](kernel::Reduction, Value result, size_t k) {
      parameters.push_back((stage == Stage::total ? "const " : "") +
                           elementType(result.getType()).str() + " *" + parts[k]);
    });
  if (stage != Stage::parts)
    addBuffers();
  // Blocks of more threads than usual have fewer registers for each.
  constexpr int64_t usualThreads = 256;
  const std::string bounds = schedule.getThreads() > usualThreads
                                 ? "__launch_bounds__(" + number(schedule.getThreads()) + ") "
                                 : "";
  writer.call("static __global__ void " + bounds + name, parameters, " {");
  printPrologue([&](Operation *op) { return wanted.contains(op); });
  for (Operation *op : wanted)
    if (auto load = dyn_cast<kernel::LoadOp>(op); load && isPrologue(*op))
      read.insert(load.getBuffer());
  emit();
  writer.line("}");
}

void DeviceFunction::emitPointwise() {
  int64_t threads = schedule.getBlocks() * schedule.getThreads();
  bool loops = threads * step < nest.points();
  if (loops)
    openGrid(nest.kept);
  else
    openPoints(nest.kept, "point", step);
  for (Operation &op : function.getBody().front()) {
    if (auto map = dyn_cast<kernel::MapOp>(op))
      printBody(map.getBody().front(), nothing, [] {});
    else if (isa<kernel::StoreOp>(op) && !nest.kept.empty())
      internalError(&op, "a pointwise kernel stores outside its map");
    else if (!isPrologue(op))
      code.print(op);
  }
  close(loops ? 1 : 0);
}

void DeviceFunction::emitColumn() {
  if (nest.kept.empty())
    return emitFull();
  kernel::ReduceOp reduce = nest.onlyReduction();
  if (stage == Stage::total)
    return emitColumnTotal(reduce);
  if (schedule.getColumns() > 1)
    return emitColumnRows(reduce);
  emitShared();
}

void DeviceFunction::emitFull() {
  kernel::ReduceOp reduce = nest.onlyReduction();
  if (stage == Stage::parts)
    return emitFullParts(reduce);
  if (stage == Stage::total)
    return emitFullTotal(reduce);
  emitShared();
}
