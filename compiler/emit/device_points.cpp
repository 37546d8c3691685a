// SPDX-License-Identifier: Apache-2.0
//
// Which points a thread of a device function has, and how their indexes and vectors
// are written.
#include "compiler/emit/device_function.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace trainc;
using kernel::Stage;
using kernel::Worker;

bool DeviceFunction::isUsed(size_t d) const {
  return llvm::any_of(wanted, [&](Operation *op) {
    if (auto index = dyn_cast<kernel::IndexOp>(op))
      return index.getDimension() == d;
    return isa<kernel::LoadOp, kernel::StoreOp>(op) && nest.strides[argumentOf(op)][d] != 0;
  });
}

/// Declares the indexes of `dims` that the flat index `flat` stands for, whose unit is
/// `step` elements of the last.
void DeviceFunction::printIndices(ArrayRef<size_t> dims, StringRef flat, int64_t step) {
  if (dims.size() < 2)
    return; // `flat` is the index
  int64_t below = nest.points(dims) / step;
  for (auto [i, d] : llvm::enumerate(dims)) {
    bool last = i + 1 == dims.size();
    int64_t size = nest.sizes[d] / (last ? step : 1);
    below /= size;
    if (!isUsed(d))
      continue;
    std::string value = below == 1 ? flat.str() : (flat + " / " + number(below)).str();
    if (i != 0)
      value += " % " + number(size);
    if (last && step != 1)
      value += " * " + number(step);
    writer.line("const " + indexType + " " + code.index(d) + " = " + value + ";");
  }
}

/// What a flat index over `dims` is called: the index itself where there is one dimension.
std::string DeviceFunction::nameFlat(ArrayRef<size_t> dims, StringRef name) const {
  return dims.size() == 1 ? code.index(dims.front()).str() : name.str();
}

std::string DeviceFunction::blockNumber() const {
  return nest.fitsInt() ? "blockIdx.x" : "static_cast<int64_t>(blockIdx.x)";
}

void DeviceFunction::leaveIf(const Twine &condition, const char *how) {
  writer.line("if (" + condition + ")");
  writer.indent();
  writer.line(how);
  writer.outdent();
}

/// One thread for each `step` points; the others return.
void DeviceFunction::openPoints(ArrayRef<size_t> dims, StringRef name, int64_t step) {
  if (dims.empty())
    return leaveIf("threadIdx.x != 0");
  int64_t count = nest.points(dims) / step, threads = schedule.getThreads();
  int64_t blocks = schedule.getBlocks();
  std::string flat = nameFlat(dims, name), value = "threadIdx.x";
  if (blocks != 1 || inParts)
    value = blockNumber() + " * " + number(threads) + " + " + value;
  bool scaled = dims.size() == 1 && step != 1;
  if (scaled)
    value = (blocks == 1 && !inParts ? value : "(" + value + ")") + " * " + number(step);
  writer.line("const " + indexType + " " + flat + " = " + value + ";");
  if (inParts)
    leaveIf(flat + " >= points");
  else if (blocks * threads != count)
    leaveIf(flat + " >= " + number(scaled ? count * step : count));
  printIndices(dims, flat, step);
}

/// A loop over all points, which the threads of all blocks share.
void DeviceFunction::openGrid(ArrayRef<size_t> dims) {
  int64_t count = nest.points(dims) / step, scale = dims.size() == 1 ? step : 1;
  int64_t threads = schedule.getThreads();
  std::string flat = nameFlat(dims, "point");
  std::string first = blockNumber() + " * " + number(threads) + " + threadIdx.x";
  std::string end = number(count * scale), stride = number(schedule.getBlocks() * threads * scale);
  if (inParts) {
    end = "points";
    stride = "gridDim.x * " + number(threads * scale);
  }
  writer.line("for (" + indexType + " " + flat + " = " +
              (scale == 1 ? first : "(" + first + ") * " + number(scale)) + "; " + flat + " < " +
              end + "; " + flat + " += " + stride + ") {");
  printIndices(dims, flat, step);
}

/// A loop over the nest.walked points from `first` on, shared among `workers`, `width` side by
/// side.
void DeviceFunction::openWalk(const std::string &first, int64_t workers, int64_t width,
                              const std::string &end) {
  std::string flat = nameFlat(nest.walked, "element");
  int64_t scale = nest.walked.size() == 1 ? width : 1;
  std::string begin = scale == 1 || first == "0" ? first : first + " * " + number(scale);
  std::string limit = end.empty() ? number(nest.points(nest.walked) / width * scale) : end;
  int64_t stride = workers * scale;
  writer.line("for (" + indexType + " " + flat + " = " + begin + "; " + flat + " < " + limit +
              "; " + (stride == 1 ? "++" + flat : flat + " += " + number(stride)) + ") {");
  printIndices(nest.walked, flat, width);
}

/// The points of a row that a thread has, a pack of neighbours a round, written out one after the
/// other: an array with an element for each round then is in registers.
void DeviceFunction::openRounds() {
  const size_t last = nest.walked.front();
  const bool isWarps = worker == Worker::warp;
  const int64_t workers = isWarps ? kernel::warpThreads : schedule.getThreads();
  const int64_t size = nest.sizes[last];
  const std::string j = code.index(last).str();
  writer.directive("#pragma unroll");
  writer.line("for (int round = 0; round < " + number(schedule.getRounds()) + "; ++round) {");
  writer.line("const " + indexType + " " + j + " = (round * " + number(workers) +
              (isWarps ? " + threadIdx.x % 32) * " : " + threadIdx.x) * ") + number(step) + ";");
  const int64_t whole = size / (workers * step); // rounds in which every thread has a pack
  const std::string isLast = whole > 0 ? "round >= " + number(whole) + " && " : "";
  if (schedule.getRounds() * workers * step >= size + step)
    leaveIf(isLast + j + " >= " + number(size), "continue;");
  if (isCut())
    writer.line("const int count = " +
                (whole > 0 ? "round < " + number(whole) + " ? " + number(step) + " : " : "") +
                "minimum<" + indexType + ">(" + number(step) + ", " + number(size) + " - " + j +
                ");");
}

/// The row or column that a thread, warp or block works on.
void DeviceFunction::openResults() {
  StringRef name = function.getForm() == kernel::Form::row ? "row" : "column";
  if (worker == Worker::thread)
    return openPoints(nest.kept, name, 1);
  if (nest.kept.empty())
    return;
  int64_t perBlock = kernel::resultsOfBlock(schedule), count = nest.points(nest.kept);
  std::string flat = nameFlat(nest.kept, name);
  std::string value = "blockIdx.x";
  if (perBlock != 1)
    value = blockNumber() + " * " + number(perBlock) + " + threadIdx.x / 32";
  writer.line("const " + indexType + " " + flat + " = " + value + ";");
  if (schedule.getBlocks() * perBlock != count)
    leaveIf(flat + " >= " + number(count));
  printIndices(nest.kept, flat, 1);
}

std::string DeviceFunction::packType(unsigned argument) const {
  kernel::FunctionOp of = function;
  auto type = cast<kernel::BufferType>(of.getBody().getArgument(argument).getType());
  return "pack<" + elementType(type.getElement()).str() + ", " + number(step) + ">";
}

/// `load_pack<8>(&`, of the elements that are there.
std::string DeviceFunction::packCall(StringRef verb) const {
  return (verb + (isCut() ? "_part<" : "_pack<") + Twine(step) + ">(" +
          (isCut() ? "count, &" : "&"))
      .str();
}

/// Reads a pack, where no phase has yet, and names it.
std::string DeviceFunction::packOf(Operation *access) {
  const unsigned argument = argumentOf(access);
  const std::string call = packCall("load") + code.element(access) + ");";
  if (auto row = held.find(argument); row != held.end()) {
    std::string name = row->second + "[round]";
    if (filled.insert(argument).second)
      writer.line(name + " = " + call);
    return name;
  }
  std::string name = code.names.unique((code.buffer(argument) + "_" + number(step)).str());
  writer.line("const " + packType(argument) + " " + name + " = " + call);
  return name;
}

/// The operations of a block for the points of a thread side by side, without those
/// printed for the dimensions `printed`: vectors are read before and written after a
/// loop over lanes.
void DeviceFunction::printBody(Block &block, uint64_t printed, llvm::function_ref<void()> end) {
  if (step == 1) {
    printAt(block, everything, printed);
    return end();
  }
  size_t last = nest.sizes.size() - 1;
  uint64_t others = everything & ~bit(last);
  printAt(block, others, printed);
  SmallVector<std::string> declarations, stores;
  for (Operation &op : block) {
    if (!nest.isVector(&op, step))
      continue;
    std::string name;
    if (isa<kernel::StoreOp>(op)) {
      const unsigned argument = argumentOf(&op);
      name = code.names.unique((code.buffer(argument) + "_" + number(step)).str());
      declarations.push_back(packType(argument) + " " + name + ";");
      stores.push_back(packCall("store") + code.element(&op) + ", " + name + ");");
    } else {
      name = packOf(&op);
    }
    code.setElement(&op, name + "[lane]");
  }
  for (const std::string &text : declarations)
    writer.line(text);
  std::string index = code.index(last).str();
  writer.directive("#pragma unroll");
  writer.line("for (int lane = 0; lane < " + number(step) + "; ++lane) {");
  if (isCut())
    writer.line("if (lane < count) {");
  code.setIndex(last, index + " + lane");
  printAt(block, everything, others);
  end();
  close(isCut() ? 2 : 1);
  code.setIndex(last, index);
  for (const std::string &text : stores)
    writer.line(text);
}
