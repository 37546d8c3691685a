// SPDX-License-Identifier: Apache-2.0
//
// One __global__ function. A point of a pointwise kernel is a thread's, four
// points where vectors are accessed; a row is a thread's, a warp's or a block's by
// its length. All phases of a row give a point to the same thread, so an output
// that takes the place of an input needs no barrier. Reductions: first the points
// of a thread in order, then runtime/cuda/kernels/reduce.h.
#include "compiler/emit/device_function.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace trainc;

namespace {

constexpr int64_t kVector = 4;         // elements of a vector access: 16 bytes of f32
constexpr int64_t kThreads = 256;      // of a block; at most 255 registers each fit
constexpr int64_t kMostBlocks = 4096;  // of a pointwise kernel: the rest is a loop
constexpr int64_t kThreadRow = 16;     // longest row that one thread walks
constexpr int64_t kWarpRow = 1024;     // longest row that one warp walks
constexpr int64_t kWarpsOfBlock = 4;   // in kernels where a warp has a row
constexpr int64_t kManyColumns = 4096; // fewer columns leave a device idle with a thread each
constexpr int64_t kColumns = 32;       // of a block that sums columns
constexpr int64_t kFewRows = 64;       // fewer rows are summed by one thread

int64_t quotient(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::string number(int64_t value) { return std::to_string(value); }

unsigned argumentOf(Operation *access) {
  auto load = dyn_cast<kernel::LoadOp>(access);
  Value buffer = load ? load.getBuffer() : cast<kernel::StoreOp>(access).getBuffer();
  return cast<BlockArgument>(buffer).getArgNumber();
}

} // namespace

DeviceFunction::DeviceFunction(kernel::FunctionOp function, const KernelNames &names,
                               SourceWriter &writer, Stage stage)
    : KernelPrinter(function, names, writer), stage(stage), cut(partialResults(function)) {
  chooseOperations();
  splitDimensions();
  llvm::DenseSet<unsigned> used;
  for (Operation *op : wanted)
    if (isa<kernel::LoadOp, kernel::StoreOp>(op))
      used.insert(argumentOf(op));
  for (unsigned i = 0; i < names.buffers.size(); ++i)
    if (used.contains(i))
      buffers.push_back(i);
  size_t rank = nest.sizes.size();
  bool lastIsWalked =
      function.getForm() == kernel::Form::pointwise || llvm::is_contained(walked, rank - 1);
  if (rank > 0 && lastIsWalked && nest.sizes.back() % kVector == 0 &&
      llvm::any_of(wanted, [&](Operation *op) { return isVector(op); }))
    step = kVector;
  share = chooseShare();
  if (stage == Stage::whole)
    return;
  partElements = cut.parts * (kept.empty() ? 1 : points(kept));
  eachReduction(onlyReduction(function), [&](kernel::Reduction kind, Value, size_t) {
    parts.push_back(code.names.unique(std::string(reductionText(kind).result) + "_of_part"));
  });
}

/// Stage parts: the reduction and what it needs. Stage total: what is stored behind it.
void DeviceFunction::chooseOperations() {
  SmallVector<Operation *> open;
  function.getBody().walk([&](Operation *op) {
    bool inReduction = isa<kernel::ReduceOp>(op) || isa<kernel::ReduceOp>(op->getParentOp());
    if (stage == Stage::whole || (stage == Stage::parts ? inReduction : isa<kernel::StoreOp>(op)))
      open.push_back(op);
  });
  while (!open.empty()) {
    Operation *op = open.pop_back_val();
    if (!wanted.insert(op).second || (stage == Stage::total && isa<kernel::ReduceOp>(op)))
      continue;
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        open.push_back(producer);
  }
}

void DeviceFunction::splitDimensions() {
  kernel::Form form = function.getForm();
  for (size_t d = 0; d < nest.sizes.size(); ++d) {
    bool leading = d < nest.outer;
    bool isKept = form == kernel::Form::pointwise || (form == kernel::Form::row && leading) ||
                  (form == kernel::Form::column && !leading);
    (isKept ? kept : walked).push_back(d);
    if (isKept)
      keptMask |= bit(d);
  }
}

DeviceFunction::Share DeviceFunction::chooseShare() {
  if (function.getForm() == kernel::Form::pointwise)
    return Share::thread;
  int64_t length = points(walked);
  // Neighbouring threads read neighbouring columns.
  bool across = function.getForm() == kernel::Form::column && !kept.empty();
  if (length <= kThreadRow || (across && (points(kept) >= kManyColumns || length <= kFewRows)))
    return Share::thread;
  return length <= kWarpRow ? Share::warp : Share::block;
}

std::string DeviceFunction::suffix() {
  if (stage == Stage::parts)
    return "_parts";
  if (stage == Stage::total || function.getForm() == kernel::Form::full)
    return "_total";
  return function.getForm() == kernel::Form::pointwise ? "_points"
         : function.getForm() == kernel::Form::row     ? "_rows"
                                                       : "_columns";
}

/// Whether four neighbours along the last dimension are one aligned vector. Tensors
/// begin at multiples of 64 bytes.
bool DeviceFunction::isVector(Operation *access) const {
  if (!isa<kernel::LoadOp, kernel::StoreOp>(access))
    return false;
  unsigned argument = argumentOf(access);
  ArrayRef<int64_t> strides = nest.strides[argument];
  if (strides.empty() || strides.back() != 1 || nest.offsets[argument] % kVector != 0 ||
      llvm::any_of(strides.drop_back(), [](int64_t stride) { return stride % kVector != 0; }))
    return false;
  auto load = dyn_cast<kernel::LoadOp>(access);
  if (!load)
    return true;
  if (load.getPredicate())
    return false;
  if (!load.getIndex())
    return true;
  Operation *index = load.getIndex().getDefiningOp();
  return static_cast<int64_t>(load.getIndexStride()) % kVector == 0 && index &&
         (nest.dependence(index) & bit(strides.size() - 1)) == 0;
}

void DeviceFunction::print() {
  SmallVector<std::string> parameters;
  auto addBuffers = [&] {
    for (unsigned i : buffers)
      parameters.push_back(bufferParameter(function, i, code.buffer(i)));
  };
  if (stage == Stage::parts)
    addBuffers();
  if (stage != Stage::whole)
    eachReduction(onlyReduction(function), [&](kernel::Reduction, Value result, size_t k) {
      parameters.push_back((stage == Stage::total ? "const " : "") +
                           elementType(result.getType()).str() + " *" + parts[k]);
    });
  if (stage != Stage::parts)
    addBuffers();
  writer.call("static __global__ void " + name, parameters, " {");
  printPrologue([&](Operation *op) { return wanted.contains(op); });
  for (Operation *op : wanted)
    if (auto load = dyn_cast<kernel::LoadOp>(op); load && isPrologue(*op))
      read.insert(load.getBuffer());
  emit();
  writer.line("}");
}

// ---- points and their indexes

int64_t DeviceFunction::points(ArrayRef<size_t> dims) const {
  int64_t count = 1;
  for (size_t d : dims)
    count *= nest.sizes[d];
  return count;
}

bool DeviceFunction::isUsed(size_t d) const {
  return llvm::any_of(wanted, [&](Operation *op) {
    if (auto index = dyn_cast<kernel::IndexOp>(op))
      return nest.dimension[index.getDimension()] == int(d);
    return isa<kernel::LoadOp, kernel::StoreOp>(op) && nest.strides[argumentOf(op)][d] != 0;
  });
}

/// Declares the indexes of `dims` that the flat index `flat` stands for, whose unit is
/// `step` elements of the last.
void DeviceFunction::printIndices(ArrayRef<size_t> dims, StringRef flat, int64_t step) {
  if (dims.size() < 2)
    return; // `flat` is the index
  int64_t below = points(dims) / step;
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

void DeviceFunction::returnIf(const Twine &condition) {
  writer.line("if (" + condition + ")");
  writer.indent();
  writer.line("return;");
  writer.outdent();
}

/// One thread for each `step` points; the others return.
void DeviceFunction::openPoints(ArrayRef<size_t> dims, StringRef name, int64_t step) {
  if (dims.empty())
    return returnIf("threadIdx.x != 0");
  int64_t count = points(dims) / step;
  threads = std::min(kThreads, quotient(count, 32) * 32);
  blocks = quotient(count, threads);
  std::string flat = nameFlat(dims, name), value = "threadIdx.x";
  if (blocks != 1)
    value = blockNumber() + " * " + number(threads) + " + " + value;
  bool scaled = dims.size() == 1 && step != 1;
  if (scaled)
    value = (blocks == 1 ? value : "(" + value + ")") + " * " + number(step);
  writer.line("const " + indexType + " " + flat + " = " + value + ";");
  if (count % threads != 0)
    returnIf(flat + " >= " + number(scaled ? count * step : count));
  printIndices(dims, flat, step);
}

/// A loop over all points, which the threads of all blocks share.
void DeviceFunction::openGrid(ArrayRef<size_t> dims, int64_t blockCount) {
  int64_t count = points(dims) / step, scale = dims.size() == 1 ? step : 1;
  threads = kThreads;
  blocks = blockCount;
  std::string flat = nameFlat(dims, "point");
  std::string first = blockNumber() + " * " + number(threads) + " + threadIdx.x";
  writer.line("for (" + indexType + " " + flat + " = " +
              (scale == 1 ? first : "(" + first + ") * " + number(scale)) + "; " + flat + " < " +
              number(count * scale) + "; " + flat + " += " + number(blocks * threads * scale) +
              ") {");
  printIndices(dims, flat, step);
}

/// A loop over the walked points from `first` on, shared among `workers`.
void DeviceFunction::openWalk(const std::string &first, int64_t workers, const std::string &end) {
  std::string flat = nameFlat(walked, "element");
  int64_t scale = walked.size() == 1 ? step : 1;
  std::string begin = scale == 1 || first == "0" ? first : first + " * " + number(scale);
  std::string limit = end.empty() ? number(points(walked) / step * scale) : end;
  int64_t stride = workers * scale;
  writer.line("for (" + indexType + " " + flat + " = " + begin + "; " + flat + " < " + limit +
              "; " + (stride == 1 ? "++" + flat : flat + " += " + number(stride)) + ") {");
  printIndices(walked, flat, step);
}

// ---- bodies

/// The operations of a block for the points of a thread side by side, without those
/// printed for the dimensions `printed`: vectors are read before and written behind a
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
    if (!isVector(&op))
      continue;
    unsigned argument = argumentOf(&op);
    auto type = cast<kernel::BufferType>(function.getBody().getArgument(argument).getType());
    std::string vector = "four<" + elementType(type.getElement()).str() + ">";
    std::string name = code.names.unique((code.buffer(argument) + "_" + number(kVector)).str());
    std::string element = code.element(&op);
    if (isa<kernel::StoreOp>(op)) {
      declarations.push_back(vector + " " + name + ";");
      stores.push_back("store_four(&" + element + ", " + name + ");");
    } else {
      writer.line("const " + vector + " " + name + " = load_four(&" + element + ");");
    }
    code.setElement(&op, name + "[lane]");
  }
  for (const std::string &text : declarations)
    writer.line(text);
  std::string index = code.index(last).str();
  writer.directive("#pragma unroll");
  writer.line("for (int lane = 0; lane < " + number(step) + "; ++lane) {");
  code.setIndex(last, index + " + lane");
  printAt(block, everything, others);
  end();
  close(1);
  code.setIndex(last, index);
  for (const std::string &text : stores)
    writer.line(text);
}

void DeviceFunction::emitPointwise() {
  bool loops = quotient(points(kept) / step, kThreads) > kMostBlocks;
  if (loops)
    openGrid(kept, kMostBlocks);
  else
    openPoints(kept, "point", step);
  for (Operation &op : function.getBody().front()) {
    if (auto map = dyn_cast<kernel::MapOp>(op))
      printBody(map.getBody().front(), nothing, [] {});
    else if (isa<kernel::StoreOp>(op) && !kept.empty())
      op.emitError("internal error: a pointwise kernel stores outside its map");
    else if (!isPrologue(op))
      code.print(op);
  }
  close(loops ? 1 : 0);
}

/// The row or column that a thread, warp or block works on.
void DeviceFunction::openResults() {
  bool isRow = function.getForm() == kernel::Form::row;
  StringRef name = isRow ? "row" : "column";
  int64_t count = points(kept);
  if (share == Share::thread)
    return openPoints(kept, name, 1);
  int64_t perBlock = share == Share::block ? 1 : std::min(count, kWarpsOfBlock);
  threads = share == Share::block ? kThreads : 32 * perBlock;
  blocks = quotient(count, perBlock);
  if (kept.empty())
    return;
  std::string flat = nameFlat(kept, name);
  std::string value = "blockIdx.x";
  if (perBlock != 1)
    value = blockNumber() + " * " + number(perBlock) + " + threadIdx.x / 32";
  writer.line("const " + indexType + " " + flat + " = " + value + ";");
  if (count % perBlock != 0)
    returnIf(flat + " >= " + number(count));
  printIndices(kept, flat, 1);
}

void DeviceFunction::emitShared() {
  openResults();
  for (Operation &op : function.getBody().front()) {
    if (op.getNumRegions() == 0) {
      printScalar(op);
      continue;
    }
    storeScalars();
    noteLoads(op.getRegion(0).front());
    if (auto reduce = dyn_cast<kernel::ReduceOp>(op))
      reduceShared(reduce);
    else
      walk(op.getRegion(0).front(), [] {});
  }
  storeScalars();
}

/// A loop over the walked points with a phase's code.
void DeviceFunction::walk(Block &block, llvm::function_ref<void()> end) {
  printAt(block, keptMask, nothing);
  NameTable outside = code.names;
  if (walked.empty()) {
    printAt(block, everything, keptMask);
    return end();
  }
  if (share == Share::thread)
    openWalk("0", 1);
  else if (share == Share::warp)
    openWalk("threadIdx.x % 32", 32);
  else
    openWalk("threadIdx.x", kThreads);
  printBody(block, keptMask, end);
  close(1);
  code.names = outside;
}

/// Declares what a thread reduces its points to.
SmallVector<std::string> DeviceFunction::declareOwn(kernel::ReduceOp reduce) {
  SmallVector<std::string> own;
  eachReduction(reduce, [&](kernel::Reduction kind, Value result, size_t) {
    std::string name = reductionText(kind).result;
    own.push_back(code.names.unique(share == Share::thread ? name : name + "_of_thread"));
    writer.line(scalarType(result.getType()) + " " + own.back() + " = " +
                neutralText(kind, result.getType()) + ";");
  });
  return own;
}

/// From the threads' results to that of the row.
void DeviceFunction::combineOwn(kernel::ReduceOp reduce, ArrayRef<std::string> own) {
  eachReduction(reduce, [&](kernel::Reduction kind, Value result, size_t k) {
    if (share == Share::thread)
      return code.setText(result, own[k]);
    ReductionText text = reductionText(kind);
    StringRef type = scalarType(result.getType());
    std::string call = std::string(text.verb) + "_of_warp(" + own[k] + ")";
    if (share == Share::block) {
      std::string shared = code.names.unique(text.partial);
      writer.line("__shared__ " + type + " " + shared + "[" + number(kThreads / 32) + "];");
      call = std::string(text.verb) + "_of_block(" + own[k] + ", " + shared + ")";
    }
    std::string name = code.names.unique(text.result);
    writer.line((result.use_empty() ? "[[maybe_unused]] " : "") + ("const " + type).str() + " " +
                name + " = " + call + ";");
    code.setText(result, name);
  });
  if (share == Share::block)
    read.clear(); // behind the barrier
}

void DeviceFunction::reduceShared(kernel::ReduceOp reduce) {
  if (walked.empty())
    return reduceNothing(reduce);
  SmallVector<std::string> own = declareOwn(reduce);
  walk(reduce.getBody().front(), [&] { yieldInto(reduce, own, ""); });
  combineOwn(reduce, own);
}

void DeviceFunction::printScalar(Operation &op) {
  if (isPrologue(op) || !wanted.contains(&op))
    return;
  if (auto store = dyn_cast<kernel::StoreOp>(op)) {
    pending.push_back(store);
    return;
  }
  if (auto load = dyn_cast<kernel::LoadOp>(op))
    read.insert(load.getBuffer());
  code.print(op);
}

void DeviceFunction::printTail() {
  for (Operation &op : function.getBody().front())
    if (op.getNumRegions() == 0)
      printScalar(op);
  storeScalars();
}

/// Which buffers a phase reads once per row.
void DeviceFunction::noteLoads(Block &block) {
  for (auto load : block.getOps<kernel::LoadOp>())
    if ((nest.dependence(load) & ~LoopNest::reduced & ~keptMask) == 0)
      read.insert(load.getBuffer());
}

/// The row's results, by one of its threads. One that may take the place of an input waits
/// until all threads have read that.
void DeviceFunction::storeScalars() {
  if (pending.empty())
    return;
  bool waits = llvm::any_of(pending, [&](kernel::StoreOp store) {
    return llvm::any_of(read, [&](Value input) {
      return function.getAccesses()[cast<BlockArgument>(input).getArgNumber()] ==
                 function.getAccesses()[argumentOf(store)] &&
             input.getType() == store.getBuffer().getType();
    });
  });
  if (waits && share != Share::thread) {
    writer.line(share == Share::warp ? "__syncwarp();" : "__syncthreads();");
    read.clear();
  }
  if (share != Share::thread)
    writer.line(share == Share::warp ? "if (threadIdx.x % 32 == 0) {" : "if (threadIdx.x == 0) {");
  for (kernel::StoreOp store : pending)
    code.print(*store);
  if (share != Share::thread)
    close(1);
  pending.clear();
}

// ---- columns

void DeviceFunction::emitColumn() {
  if (kept.empty())
    return emitFull();
  kernel::ReduceOp reduce = onlyReduction(function);
  if (stage == Stage::total)
    return emitColumnTotal(reduce);
  if (reduce && points(walked) >= kFewRows)
    return emitColumnRows(reduce);
  emitShared();
}

/// Blocks of 32 columns by 8 rows at a time, for one part of the rows each.
void DeviceFunction::emitColumnRows(kernel::ReduceOp reduce) {
  int64_t columns = points(kept), rows = points(walked);
  threads = kThreads;
  blocks = quotient(columns, kColumns);
  std::string column = nameFlat(kept, "column"), row = "threadIdx.x / 32", end;
  writer.line("const " + indexType + " " + column + " = " + blockNumber() + " * " +
              number(kColumns) + " + threadIdx.x % 32;");
  if (stage == Stage::parts) {
    blocksY = cut.parts;
    writer.line("const " + indexType + " part = blockIdx.y;");
    row = "part * " + number(cut.share) + " + " + row;
    end = "(part + 1) * " + number(cut.share);
    if (rows % cut.share != 0)
      end = ("minimum<" + indexType + ">(" + end + ", ").str() + number(rows) + ")";
  }
  share = Share::block;
  SmallVector<std::string> own = declareOwn(reduce);
  bool partial = columns % kColumns != 0;
  if (partial)
    writer.line("if (" + column + " < " + number(columns) + ") {");
  printIndices(kept, column, 1);
  Block &block = reduce.getBody().front();
  printAt(block, keptMask, nothing);
  openWalk(row, kThreads / 32, end);
  printBody(block, keptMask, [&] { yieldInto(reduce, own, ""); });
  close(partial ? 2 : 1);
  SmallVector<std::string> shared;
  eachReduction(reduce, [&](kernel::Reduction kind, Value result, size_t k) {
    shared.push_back(code.names.unique(reductionText(kind).partial));
    writer.line("__shared__ " + scalarType(result.getType()) + " " + shared[k] + "[" +
                number(kThreads) + "];");
    writer.line(shared[k] + "[threadIdx.x] = " + own[k] + ";");
  });
  writer.line("__syncthreads();");
  returnIf("threadIdx.x >= 32" + (partial ? " || " + column + " >= " + number(columns) : ""));
  combineInOrder(reduce, [&](Type, size_t k) {
    return std::pair{"for (int thread = threadIdx.x; thread < " + number(kThreads) +
                         "; thread += 32) {",
                     shared[k] + "[thread]"};
  });
  share = Share::thread;
  if (stage == Stage::whole) {
    if (kept.size() > 1 && partial)
      printIndices(kept, column, 1);
    return printTail();
  }
  eachReduction(reduce, [&](kernel::Reduction, Value result, size_t k) {
    writer.line(parts[k] + "[part * " + number(columns) + " + " + column +
                "] = " + code.text(result) + ";");
  });
}

/// The parts of a column in order, then what is left to do with their sum.
void DeviceFunction::emitColumnTotal(kernel::ReduceOp reduce) {
  openPoints(kept, "column", 1);
  std::string column = nameFlat(kept, "column");
  share = Share::thread;
  combineInOrder(reduce, [&](Type, size_t k) {
    return std::pair{"for (int part = 0; part < " + number(cut.parts) + "; ++part) {",
                     parts[k] + "[part * " + number(points(kept)) + " + " + column + "]"};
  });
  printTail();
}

// ---- full

void DeviceFunction::emitFull() {
  kernel::ReduceOp reduce = onlyReduction(function);
  if (stage == Stage::parts)
    return emitFullParts(reduce);
  if (stage == Stage::total)
    return emitFullTotal(reduce);
  emitShared();
}

/// Every block reduces an equal share of the points, strewn over all of them.
void DeviceFunction::emitFullParts(kernel::ReduceOp reduce) {
  share = Share::block;
  SmallVector<std::string> own = declareOwn(reduce);
  Block &block = reduce.getBody().front();
  NameTable outside = code.names;
  openGrid(walked, cut.parts);
  printBody(block, nothing, [&] { yieldInto(reduce, own, ""); });
  close(1);
  code.names = outside;
  combineOwn(reduce, own);
  writer.line("if (threadIdx.x == 0) {");
  eachReduction(reduce, [&](kernel::Reduction, Value result, size_t k) {
    writer.line(parts[k] + "[blockIdx.x] = " + code.text(result) + ";");
  });
  close(1);
}

void DeviceFunction::emitFullTotal(kernel::ReduceOp reduce) {
  share = Share::block;
  threads = kThreads;
  SmallVector<std::string> own = declareOwn(reduce);
  writer.line("for (int part = threadIdx.x; part < " + number(cut.parts) +
              "; part += " + number(kThreads) + ") {");
  eachReduction(reduce, [&](kernel::Reduction kind, Value, size_t k) {
    writer.line(combinationText(kind, own[k], parts[k] + "[part]"));
  });
  close(1);
  combineOwn(reduce, own);
  printTail();
}
