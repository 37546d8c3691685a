// SPDX-License-Identifier: Apache-2.0
//
// Kernels as C++ functions with OpenMP loops. Threads share the points of the
// parallel dimensions, blocks of columns or blocks of fixed size; which thread
// computes a result never changes how. Reductions follow runtime/kernels/lanes.h.
#include "compiler/emit/cpu_kernels.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace trainc;

namespace {

constexpr int64_t kParallelPoints = 8192; // below this, waking threads costs more than the work
constexpr int64_t kBlock = 4096;          // elements of a block of a flat loop
constexpr int64_t kMaxBlocks = 1024;  // partial results that a full reduction keeps on the stack
constexpr int64_t kColumnBlock = 256; // columns of a block: 1 KB of each row of f32
constexpr int64_t kFewBlocks = 16;    // fewer blocks of columns than this: rows are cut too
constexpr int64_t kChunkRows = 64;    // least rows of a chunk then
constexpr int64_t kStackBytes = 256 << 10; // most that a kernel's partial results take

class CpuKernel : public KernelPrinter {
public:
  CpuKernel(kernel::FunctionOp function, const KernelNames &names, SourceWriter &writer)
      : KernelPrinter(function, names, writer) {}

private:
  using Operations = SmallVector<Operation *>;

  bool parallel() const { return nest.points() >= kParallelPoints; }
  void openParallel(size_t begin, size_t end, int extra = 0);
  void printLoops(Block &block, ArrayRef<size_t> dims, bool lastIsSimd);

  void emitPointwise() override;
  void emitRow() override;
  void emitColumn() override;
  void emitFull() override;

  void rowReduce(kernel::ReduceOp reduce, ArrayRef<size_t> dims);
  void declarePartials(kernel::ReduceOp reduce, StringRef count, SmallVector<std::string> &names);

  void columnPhases(uint64_t outer);
  void columnLoops(Block &block, uint64_t outer, llvm::function_ref<void()> end);
  void columnScalars(ArrayRef<Operation *> operations, uint64_t outer);
  bool cutsRows(int64_t &chunks, int64_t &chunkRows);
  void emitColumnChunks(int64_t chunks, int64_t chunkRows);

  void fullReduce(kernel::ReduceOp reduce);
  void fullMap(kernel::MapOp map);

  NameTable outsideLoops; // names visible behind the loops that printLoops opened
};

/// Loops over dimensions [begin, end), shared among the threads. `extra` counts
/// further loops that the caller opens and that are shared too.
void CpuKernel::openParallel(size_t begin, size_t end, int extra) {
  size_t count = end - begin + extra;
  if (parallel() && count > 0) {
    std::string collapse = count > 1 ? " collapse(" + std::to_string(count) + ")" : "";
    writer.directive("#pragma omp parallel for" + collapse + " schedule(static)");
  }
  for (size_t d = begin; d < end; ++d)
    openLoop(d);
}

/// Nested loops over `dims` with every operation as far out as it may stand. The caller closes
/// them.
void CpuKernel::printLoops(Block &block, ArrayRef<size_t> dims, bool lastIsSimd) {
  uint64_t visible = everything;
  for (size_t d : dims)
    visible &= ~bit(d);
  if (dims.empty()) {
    printAt(block, everything, nothing);
    outsideLoops = code.names;
    return;
  }
  printAt(block, visible, nothing);
  outsideLoops = code.names;
  for (auto [i, d] : llvm::enumerate(dims)) {
    bool last = i + 1 == dims.size();
    if (last && lastIsSimd)
      writer.directive("#pragma omp simd");
    openLoop(d);
    uint64_t previous = visible;
    visible |= bit(d);
    printAt(block, last ? everything : visible, previous);
  }
}

// ---- pointwise

void CpuKernel::emitPointwise() {
  printPrologue();
  size_t rank = nest.sizes.size();
  for (Operation &op : function.getBody().front()) {
    auto map = dyn_cast<kernel::MapOp>(op);
    if (!map) {
      if (op.getNumRegions() == 0 && !isPrologue(op))
        code.print(op);
      continue;
    }
    Block &block = map.getBody().front();
    if (rank == 0) {
      printAt(block, everything, nothing);
    } else if (rank == 1) {
      if (parallel())
        writer.directive("#pragma omp parallel for simd schedule(static)");
      else
        writer.directive("#pragma omp simd");
      openLoop(0);
      printAt(block, everything, nothing);
      close(1);
    } else {
      openParallel(0, rank - 1);
      printLoops(block, {rank - 1}, true);
      close(rank);
    }
  }
}

// ---- rows

void CpuKernel::declarePartials(kernel::ReduceOp reduce, StringRef count,
                                SmallVector<std::string> &partials) {
  for (auto [attribute, result] : llvm::zip(reduce.getKinds(), reduce.getOuts())) {
    auto kind = cast<kernel::ReductionAttr>(attribute).getValue();
    std::string name = code.names.unique(reductionText(kind).partial);
    StringRef type = scalarType(result.getType());
    if (kind == kernel::Reduction::add) {
      writer.line(type + " " + name + "[" + count + "] = {};");
    } else {
      writer.line(type + " " + name + "[" + count + "];");
      writer.line("set_lanes<" + type + ">(" + name + ", " + count + ", " +
                  neutralText(kind, result.getType()) + ");");
    }
    partials.push_back(name);
  }
}

void CpuKernel::rowReduce(kernel::ReduceOp reduce, ArrayRef<size_t> dims) {
  Block &block = reduce.getBody().front();
  SmallVector<std::string> partials;
  if (dims.empty())
    return reduceNothing(reduce);
  declarePartials(reduce, "lanes", partials);
  ArrayRef<size_t> loops = dims.drop_back();
  size_t last = dims.back();
  uint64_t visible = everything;
  for (size_t d : dims)
    visible &= ~bit(d);
  printAt(block, visible, nothing);
  NameTable outside = code.names; // names of the loops end with them
  for (size_t d : loops) {
    openLoop(d);
    printAt(block, visible | bit(d), visible);
    visible |= bit(d);
  }
  writer.line("in_lanes<" + indexType + ">(0, " + size(last) + ", [&](" + indexType + " " +
              code.index(last) + ", int lane) ALWAYS_INLINED {");
  printAt(block, visible | bit(last), visible);
  yieldInto(reduce, partials, "[lane]");
  writer.line("});");
  close(loops.size());
  code.names = outside;
  for (auto [attribute, partial, result] :
       llvm::zip(reduce.getKinds(), partials, reduce.getOuts())) {
    ReductionText text = reductionText(cast<kernel::ReductionAttr>(attribute).getValue());
    std::string name = code.names.unique(text.result);
    StringRef unused = result.use_empty() ? "[[maybe_unused]] " : "";
    writer.line(unused + "const " + scalarType(result.getType()) + " " + name + " = " + text.verb +
                "_lanes(" + partial + ");");
    code.setText(result, name);
  }
}

void CpuKernel::emitRow() {
  printPrologue();
  openParallel(0, nest.outer);
  SmallVector<size_t> walked;
  for (size_t d = nest.outer; d < nest.sizes.size(); ++d)
    walked.push_back(d);
  for (Operation &op : function.getBody().front()) {
    if (auto reduce = dyn_cast<kernel::ReduceOp>(op)) {
      rowReduce(reduce, walked);
    } else if (auto map = dyn_cast<kernel::MapOp>(op)) {
      printLoops(map.getBody().front(), walked, true);
      close(walked.size());
      code.names = outsideLoops;
    } else if (!isPrologue(op)) {
      code.print(op);
    }
  }
  close(nest.outer);
}

// ---- columns

/// Loops of a region in form column: walked dimensions, then the lanes of a block of
/// columns innermost. `end` prints behind the last operation of the innermost loop.
void CpuKernel::columnLoops(Block &block, uint64_t outer, llvm::function_ref<void()> end) {
  uint64_t visible = outer;
  printAt(block, visible, nothing);
  for (size_t d = 0; d < nest.outer; ++d) {
    openLoop(d);
    printAt(block, visible | bit(d), visible);
    visible |= bit(d);
  }
  writer.directive("#pragma omp simd");
  writer.line("for (int lane = 0; lane < width; ++lane) {");
  printAt(block, everything, visible);
  end();
  close(1 + nest.outer);
}

/// Scalar operations between phases: one loop over the lanes. What later phases use is kept per
/// lane.
void CpuKernel::columnScalars(ArrayRef<Operation *> operations, uint64_t outer) {
  SmallVector<Operation *> perLane;
  llvm::DenseSet<Operation *> together;
  for (Operation *op : operations) {
    bool lane = (nest.dependence(op) & ~outer & ~LoopNest::reduced) != 0;
    if (!lane && !isa<kernel::StoreOp>(op)) {
      code.print(*op);
      continue;
    }
    perLane.push_back(op);
    together.insert(op);
  }
  if (perLane.empty())
    return;
  SmallVector<std::pair<Operation *, std::string>> kept;
  for (Operation *op : perLane) {
    bool usedLater =
        llvm::any_of(op->getUsers(), [&](Operation *user) { return !together.contains(user); });
    if (!usedLater || op->getNumResults() != 1)
      continue;
    std::string name = code.names.unique("column_value");
    writer.line(scalarType(op->getResult(0).getType()) + " " + name + "[block];");
    kept.push_back({op, name});
  }
  writer.directive("#pragma omp simd");
  writer.line("for (int lane = 0; lane < width; ++lane) {");
  for (Operation *op : perLane)
    code.print(*op);
  for (auto &[op, name] : kept)
    writer.line(name + "[lane] = " + code.text(op->getResult(0)) + ";");
  close(1);
  for (auto &[op, name] : kept)
    code.setText(op->getResult(0), name + "[lane]");
}

void CpuKernel::columnPhases(uint64_t outer) {
  Operations scalars;
  auto flush = [&] {
    columnScalars(scalars, outer);
    scalars.clear();
  };
  for (Operation &op : function.getBody().front()) {
    if (auto reduce = dyn_cast<kernel::ReduceOp>(op)) {
      flush();
      SmallVector<std::string> partials;
      declarePartials(reduce, "block", partials);
      columnLoops(reduce.getBody().front(), outer, [&] { yieldInto(reduce, partials, "[lane]"); });
      for (auto [result, partial] : llvm::zip(reduce.getOuts(), partials))
        code.setText(result, partial + "[lane]");
    } else if (auto map = dyn_cast<kernel::MapOp>(op)) {
      flush();
      columnLoops(map.getBody().front(), outer, [] {});
    } else if (!isPrologue(op)) {
      scalars.push_back(&op);
    }
  }
  flush();
}

/// Whether rows are cut into chunks that threads sum apart: few columns, many rows.
bool CpuKernel::cutsRows(int64_t &chunks, int64_t &chunkRows) {
  if (nest.outer != 1 || !parallel())
    return false;
  int64_t columns = nest.points() / nest.sizes[0], rows = nest.sizes[0];
  int64_t reductions = 0, phases = 0;
  for (Operation &op : function.getBody().front()) {
    phases += op.getNumRegions();
    if (auto reduce = dyn_cast<kernel::ReduceOp>(op))
      reductions += reduce.getNumResults();
    else if (isa<kernel::MapOp>(op))
      return false;
  }
  int64_t blocks = (columns + kColumnBlock - 1) / kColumnBlock;
  if (phases != 1 || nest.sizes.size() != 2 || blocks >= kFewBlocks || rows < 2 * kChunkRows)
    return false;
  chunks = std::min(rows / kChunkRows, (kFewBlocks + blocks - 1) / blocks);
  chunks = std::min(chunks, kStackBytes / (columns * reductions * 8));
  if (chunks < 2)
    return false;
  chunkRows = (rows + chunks - 1) / chunks;
  chunks = (rows + chunkRows - 1) / chunkRows;
  return true;
}

/// Chunks of rows side by side, then their partial results in order.
void CpuKernel::emitColumnChunks(int64_t chunks, int64_t chunkRows) {
  kernel::ReduceOp reduce = *function.getBody().front().getOps<kernel::ReduceOp>().begin();
  std::string columns = size(1), chunk = std::to_string(chunkRows);
  SmallVector<std::string> parts, partials, totals;
  for (auto [attribute, result] : llvm::zip(reduce.getKinds(), reduce.getOuts())) {
    auto kind = cast<kernel::ReductionAttr>(attribute).getValue();
    parts.push_back(code.names.unique(std::string(reductionText(kind).result) + "_of_chunk"));
    writer.line(scalarType(result.getType()) + " " + parts.back() + "[" + std::to_string(chunks) +
                "][" + columns + "];");
  }
  writer.directive("#pragma omp parallel for collapse(2) schedule(static)");
  writer.line("for (int chunk = 0; chunk < " + std::to_string(chunks) + "; ++chunk) {");
  writer.line("for (int first = 0; first < " + columns + "; first += block) {");
  writer.line("const int width = minimum(block, " + columns + " - first);");
  declarePartials(reduce, "block", partials);
  Block &block = reduce.getBody().front();
  StringRef i = code.index(0);
  std::string end = "minimum(" + size(0) + ", (chunk + 1) * " + chunk + ")";
  printAt(block, 0, nothing);
  writer.line("for (int " + i + " = chunk * " + chunk + "; " + i + " < " + end + "; ++" + i +
              ") {");
  printAt(block, bit(0), 0);
  writer.directive("#pragma omp simd");
  writer.line("for (int lane = 0; lane < width; ++lane) {");
  printAt(block, everything, bit(0));
  yieldInto(reduce, partials, "[lane]");
  close(2);
  writer.line("for (int lane = 0; lane < width; ++lane) {");
  for (auto [part, partial] : llvm::zip(parts, partials))
    writer.line(part + "[chunk][first + lane] = " + partial + "[lane];");
  close(3);

  code.setIndex(1, "column");
  writer.line("for (int column = 0; column < " + columns + "; ++column) {");
  combineInOrder(reduce, [&](Type, size_t k) {
    return std::pair{"for (const auto &of_chunk : " + parts[k] + ") {",
                     std::string("of_chunk[column]")};
  });
  for (Operation &op : function.getBody().front())
    if (op.getNumRegions() == 0 && !isPrologue(op))
      code.print(op);
  close(1);
}

void CpuKernel::emitColumn() {
  if (nest.sizes.size() == nest.outer) { // a single column: its dimensions are walked by one row
    nest.outer = 0;
    return emitRow();
  }
  printPrologue();
  size_t last = nest.sizes.size() - 1;
  code.setIndex(last, "first + lane");
  int64_t width = std::min(nest.sizes[last], kColumnBlock);
  writer.line("constexpr int block = " + std::to_string(width) + "; // columns");
  int64_t chunks, chunkRows;
  if (cutsRows(chunks, chunkRows))
    return emitColumnChunks(chunks, chunkRows);
  openParallel(nest.outer, last, 1);
  writer.line("for (" + indexType + " first = 0; first < " + size(last) + "; first += block) {");
  if (nest.sizes[last] % width == 0)
    writer.line("constexpr int width = block;");
  else
    writer.line("const int width = static_cast<int>(minimum<" + indexType + ">(block, " +
                size(last) + " - first));");
  uint64_t outer = 0;
  for (size_t d = nest.outer; d < last; ++d)
    outer |= bit(d);
  columnPhases(outer);
  close(1 + last - nest.outer);
}

// ---- full

/// Blocks of fixed size side by side, then their partial results in order.
void CpuKernel::fullReduce(kernel::ReduceOp reduce) {
  Block &block = reduce.getBody().front();
  size_t rank = nest.sizes.size();
  int64_t inner = rank == 0 ? 1 : nest.sizes.back();
  int64_t rows = nest.points() / inner;
  if (!parallel()) {
    SmallVector<size_t> all;
    for (size_t d = 0; d < rank; ++d)
      all.push_back(d);
    return rowReduce(reduce, all);
  }
  // Elements of the only dimension, or else whole rows of the last.
  int64_t units = rank == 1 ? inner : rows, unit = rank == 1 ? 1 : inner;
  int64_t perBlock =
      std::max<int64_t>((kBlock + unit - 1) / unit, (units + kMaxBlocks - 1) / kMaxBlocks);
  if (rank == 1)
    perBlock = (perBlock + 15) / 16 * 16;
  int64_t blocks = (units + perBlock - 1) / perBlock;
  std::string count = std::to_string(blocks), per = std::to_string(perBlock);

  SmallVector<std::string> parts, partials;
  for (auto [attribute, result] : llvm::zip(reduce.getKinds(), reduce.getOuts())) {
    auto kind = cast<kernel::ReductionAttr>(attribute).getValue();
    parts.push_back(code.names.unique(std::string(reductionText(kind).result) + "_of_block"));
    writer.line(scalarType(result.getType()) + " " + parts.back() + "[" + count + "];");
  }
  printAt(block, 0, nothing);
  writer.directive("#pragma omp parallel for schedule(static)");
  writer.line("for (" + indexType + " block = 0; block < " + count + "; ++block) {");
  declarePartials(reduce, "lanes", partials);
  std::string begin = "0", end = std::to_string(inner);
  if (rank == 1) {
    writer.line("const " + indexType + " begin = block * " + per + ";");
    writer.line("const " + indexType + " end = minimum<" + indexType + ">(" + end + ", begin + " +
                per + ");");
    begin = "begin";
    end = "end";
  } else {
    writer.line("for (" + indexType + " row = block * " + per + "; row < minimum<" + indexType +
                ">(" + std::to_string(rows) + ", block * " + per + " + " + per + "); ++row) {");
    int64_t below = rows;
    uint64_t visible = 0;
    for (size_t d = 0; d + 1 < rank; ++d) {
      below /= nest.sizes[d];
      std::string value = below == 1 ? "row" : "row / " + std::to_string(below);
      if (d != 0)
        value += " % " + size(d);
      writer.line("[[maybe_unused]] const " + indexType + " " + code.index(d) + " = " + value +
                  ";");
      visible |= bit(d);
    }
    printAt(block, visible, 0);
  }
  size_t last = rank - 1;
  writer.line("in_lanes<" + indexType + ">(" + begin + ", " + end + ", [&](" + indexType + " " +
              code.index(last) + ", int lane) ALWAYS_INLINED {");
  printAt(block, everything, bit(last) - 1);
  yieldInto(reduce, partials, "[lane]");
  writer.line("});");
  if (rank > 1)
    close(1);
  for (auto [attribute, part, partial] : llvm::zip(reduce.getKinds(), parts, partials))
    writer.line(part + "[block] = " +
                reductionText(cast<kernel::ReductionAttr>(attribute).getValue()).verb + "_lanes(" +
                partial + ");");
  close(1);
  combineInOrder(reduce, [&](Type type, size_t k) {
    return std::pair{"for (const " + scalarType(type).str() + " of_block : " + parts[k] + ") {",
                     std::string("of_block")};
  });
}

void CpuKernel::fullMap(kernel::MapOp map) {
  SmallVector<size_t> dims;
  size_t rank = nest.sizes.size();
  if (rank > 1)
    openParallel(0, rank - 1);
  if (rank > 0)
    dims.push_back(rank - 1);
  printLoops(map.getBody().front(), dims, true);
  close(rank);
}

void CpuKernel::emitFull() {
  printPrologue();
  for (Operation &op : function.getBody().front()) {
    if (auto reduce = dyn_cast<kernel::ReduceOp>(op))
      fullReduce(reduce);
    else if (auto map = dyn_cast<kernel::MapOp>(op))
      fullMap(map);
    else if (!isPrologue(op))
      code.print(op);
  }
}

} // namespace

LogicalResult trainc::emitCpuKernel(kernel::FunctionOp function, const KernelNames &names,
                                    SourceWriter &writer) {
  return printKernel(function, [&] {
    kernelSignature(function, names, " {", writer);
    CpuKernel(function, names, writer).emit();
    writer.line("}");
  });
}
