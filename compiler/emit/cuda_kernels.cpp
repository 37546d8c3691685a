// SPDX-License-Identifier: Apache-2.0
//
// Kernels as CUDA C++. Launches say how much of each buffer a kernel may touch.
#include "compiler/emit/cuda_kernels.h"
#include "compiler/emit/device_function.h"
#include <memory>

using namespace mlir;
using namespace trainc;

namespace {

/// Elements from the buffer's address on that the kernel may touch: what its access
/// reaches, or the whole tensor where an index or a condition decides.
std::string extentText(kernel::FunctionOp function, unsigned first, const KernelNames &names,
                       ArrayRef<int64_t> elements) {
  int64_t extent = 0;
  for (BlockArgument argument : function.getBody().getArguments()) {
    if (names.same[argument.getArgNumber()] != first)
      continue;
    for (Operation *user : argument.getUsers())
      if (auto load = dyn_cast<kernel::LoadOp>(user);
          load && (load.getIndex() || load.getPredicate()))
        return first < elements.size() && elements[first] >= 0 ? std::to_string(elements[first])
                                                               : "unknown_extent";
    auto access = cast<kernel::AccessAttr>(function.getAccesses()[argument.getArgNumber()]);
    int64_t last = access.getOffset();
    for (auto [size, stride] : llvm::zip(function.getDims(), access.getStrides()))
      last += std::max<int64_t>(0, stride * (size - 1));
    extent = std::max(extent, last + 1);
  }
  return std::to_string(extent);
}

void printLaunch(kernel::FunctionOp function, const KernelNames &names, ArrayRef<int64_t> elements,
                 const DeviceFunction &device, SourceWriter &writer) {
  std::string shape = "{.blocks = " + std::to_string(device.schedule.getBlocks()) +
                      ", .threads = " + std::to_string(device.schedule.getThreads());
  if (device.schedule.getBlocksY() != 1)
    shape += ", .blocks_y = " + std::to_string(device.schedule.getBlocksY());
  if (names.inParts) // points from `first` on
    shape = "{.blocks = blocks_for(points, " +
            std::to_string(device.schedule.getThreads() * device.schedule.getVector()) + ", " +
            std::to_string(device.schedule.getBlocks()) +
            "), .threads = " + std::to_string(device.schedule.getThreads());
  SmallVector<std::string> arguments = {stringLiteral(resolved(names.function)), device.name,
                                        shape + "}"};
  if (names.inParts)
    arguments.push_back("static_cast<" + device.pointType() + ">(points)");
  size_t inputs = names.buffers.size() - function.getOutputs();
  auto buffer = [&](bool isInput, const std::string &name, const std::string &extent) {
    arguments.push_back((isInput ? "reads(" : "writes(") + name + ", " + extent + ")");
  };
  auto parts = [&] {
    for (const std::string &part : device.parts)
      buffer(device.stage == kernel::Stage::total, part, std::to_string(device.partElements));
  };
  if (device.stage == kernel::Stage::total)
    parts();
  for (unsigned i : device.buffers) {
    auto access = cast<kernel::AccessAttr>(function.getAccesses()[i]);
    if (names.inParts && access.getStrides() == ArrayRef<int64_t>{1})
      buffer(i < inputs, names.buffers[i] + " + first", "points");
    else
      buffer(i < inputs, names.buffers[i], extentText(function, i, names, elements));
  }
  if (device.stage == kernel::Stage::parts)
    parts();
  writer.call("launch", arguments, ";");
}

void printKernelStages(kernel::FunctionOp function, kernel::CudaScheduleAttr schedule,
                       const KernelNames &names, ArrayRef<int64_t> elements, SourceWriter &writer) {
  kernel::PartsAttr cut = schedule.getParts();
  std::vector<std::unique_ptr<DeviceFunction>> devices;
  for (size_t part = 0; part < schedule.getFunctions().size(); ++part) {
    devices.push_back(std::make_unique<DeviceFunction>(function, names, writer, schedule, part));
    devices.back()->print();
    writer.line();
  }
  kernelSignature(function, names, " {", writer);
  if (cut)
    for (auto [part, offset, result] : llvm::zip(devices[0]->parts, cut.getOffsets(),
                                                 LoopNest(function).onlyReduction().getOuts())) {
      std::string type = elementType(result.getType()).str() + " *";
      writer.line(type + part + " = reinterpret_cast<" + type + ">(scratch" +
                  (offset == 0 ? "" : " + " + std::to_string(offset)) + ");");
    }
  if (names.inParts)
    writer.line("ranges.for_each([&](int64_t first, int64_t points) {");
  for (auto &device : devices)
    printLaunch(function, names, elements, *device, writer);
  if (names.inParts)
    writer.line("});");
  writer.line("}");
}

} // namespace

LogicalResult trainc::emitCudaKernel(kernel::FunctionOp function, const KernelNames &names,
                                     ArrayRef<int64_t> elements, SourceWriter &writer) {
  auto schedule = dyn_cast_or_null<kernel::CudaScheduleAttr>(function.getScheduleAttr());
  if (!schedule)
    return function.emitOpError(
        "has no schedule for cuda; run schedule-kernels --target=cuda first");
  return printKernel(function,
                     [&] { printKernelStages(function, schedule, names, elements, writer); });
}
