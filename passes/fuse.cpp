// SPDX-License-Identifier: Apache-2.0
//
// fuse: what form-products left of entry functions becomes kernel.group regions, and each
// region one kernel.
//
// Problem: an operation by itself reads and writes memory for a few
// floating-point operations per element. Forward and backward meet here as one
// graph, so both fuse alike.
//
// Method. A *root* is a value that deserves a loop: a reduction, an operand of
// a step or of the return, or a pointwise value worth keeping. All other values
// are written into the expression of each root that uses them. A value with
// several users is a root where storing it moves fewer bytes than recomputing
// it: written once and read by all users but one, and memory that is held,
// against the tensors that its expression reads again (twice where this function
// made them, because they are then held longer) and its operations, as the bytes
// that could be moved in their time. So layer normalisation's gradient reads x,
// mean and deviation, and the gradient of GELU its input. A value is also a root
// where it is computed per row and the row repeats it oftener than reading it
// would cost, and where its expression is half a kernel. Views belong to
// expressions. Roots are then grouped by planning/fusion_groups.h; roots of a
// group which nobody else reads are never stored.
//
// Ideas from XLA's multi-output fusion and Inductor's persistent reductions.
// Weakness: greedy; roots are chosen as if each user were another kernel; a
// reduction is never recomputed, even where that would join two kernels.
#include "dialects/errors/internal_error.h"
#include "dialects/kernel/kernel.h"
#include "dialects/nn/reduction.h"
#include "dialects/train/optimizer.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/kernels/fusion_roots.h"
#include "passes/kernels/value_views.h"
#include "passes/module_pass.h"
#include "passes/passes.h"
#include "passes/planning/fusion_groups.h"
#include "passes/plans/tensor_places.h"
#include "passes/recompute/forward_part.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace trainc {
namespace {

using planning::Alignment;
using planning::FusionEdge;
using planning::FusionNode;
using planning::IndexMap;
using planning::Sizes;
using planning::Split;

Sizes reducedDimensions(Operation *op) {
  return cast<DenseI64ArrayAttr>(op->getAttr("dimensions")).asArrayRef().vec();
}

class Fusion {
public:
  explicit Fusion(func::FuncOp function)
      : block(function.front()), storesLittle(hasNarrowStates(function)),
        roots(block, storesLittle) {}

  void run() {
    for (auto [position, op] : llvm::enumerate(block))
      positions[&op] = int(position);
    do {
      roots.choose();
      describeRoots();
      auto formed = planning::formGroups(nodes, options());
      check(formed.has_value(), block.getParentOp(), "groups wait for each other");
      groups = std::move(*formed);
    } while (!corrected && repeatCheapRoots());
    build();
  }

private:
  /// Whether it is an update whose states have fewer bits: a value in f32 that is kept for another
  /// kernel would take the memory that they save.
  static bool hasNarrowStates(func::FuncOp function) {
    const train::Optimizer *optimizer =
        train::findOptimizer(train::optimizerNameOf(function->getParentOfType<ModuleOp>()));
    return train::isUpdate(function) && optimizer && !optimizer->kinds.empty();
  }
  planning::FusionOptions options() const {
    planning::FusionOptions options;
    if (storesLittle) { // so a kernel may be as large as it gets
      options.liveScalars = std::numeric_limits<int>::max() / 2;
      options.largestKernel = std::numeric_limits<double>::infinity();
    }
    return options;
  }
  bool repeatCheapRoots();
  double bytesIfStored(int node, size_t readers);
  double bytesIfRepeated(int node, const llvm::SetVector<int> &readers);
  void describeRoots();
  void describeUses(Operation *op, FusionNode &node);
  void describe(Operation *op, FusionNode &node);
  void addEdge(Value tensor, Alignment alignment, FusionNode &node);
  bool collectEdges(Value value, const std::optional<IndexMap> &map, FusionNode &node,
                    std::optional<Split> &split);
  bool collectOperands(Operation *op, const std::optional<IndexMap> &map, FusionNode &node,
                       std::optional<Split> &split);
  void build();
  void buildGroup(const planning::FusionGroup &group, OpBuilder &builder);
  Value cloneInto(Value value, OpBuilder &builder, IRMapping &mapping,
                  const llvm::DenseSet<Operation *> &inside);
  bool isReadOutside(Operation *root, const llvm::DenseSet<Operation *> &inside);

  Block &block;
  bool storesLittle;
  FusionRoots roots; // each is a node
  bool corrected = false;
  DenseMap<Value, int> leafNumbers;
  std::vector<FusionNode> nodes;
  std::vector<planning::FusionGroup> groups;
  std::vector<int> groupOf;                  // by node
  std::vector<llvm::DenseSet<int>> leavesOf; // tensors that a group reads
  DenseMap<Value, Value> results;            // root's value -> result of its group
  DenseMap<Operation *, int> positions;
  std::vector<SmallVector<Operation *>> readersOf; // of a node: roots and steps
};

void Fusion::addEdge(Value tensor, Alignment alignment, FusionNode &node) {
  int leaf = leafNumbers.try_emplace(tensor, leafNumbers.size()).first->second;
  for (const FusionEdge &edge : node.inputs)
    if (edge.leaf == leaf && edge.alignment == alignment)
      return;
  int producer = roots.numberOf(tensor.getDefiningOp());
  node.inputs.push_back({leaf, producer, alignment, planning::elementCount(sizesOf(tensor)),
                         bytesOf(tensor.getType())});
}

/// Adds the tensors that the expression of `value` reads. Without a map it is
/// only known that they are read out of order. False: `split` the space first.
bool Fusion::collectEdges(Value value, const std::optional<IndexMap> &map, FusionNode &node,
                          std::optional<Split> &split) {
  Operation *op = value.getDefiningOp();
  if (isInMemory(value) || roots.contains(op)) {
    Alignment alignment = Alignment::other;
    if (map)
      alignment = planning::alignmentOf(map->linear(sizesOf(value)), map->space,
                                        planning::elementCount(sizesOf(value)));
    addEdge(value, alignment, node);
    return true;
  }
  return collectOperands(op, map, node, split);
}

/// Adds the edges of what the operation itself reads.
bool Fusion::collectOperands(Operation *op, const std::optional<IndexMap> &map, FusionNode &node,
                             std::optional<Split> &split) {
  if (isa<nn::ConstantOp, nn::IotaOp>(op))
    return true;
  if (isView(op)) {
    std::optional<IndexMap> next;
    Value source = op->getOperand(0);
    while (isa<nn::ReshapeOp>(op) && source.getDefiningOp<nn::ReshapeOp>() &&
           !roots.contains(source.getDefiningOp()))
      source = source.getDefiningOp()->getOperand(0);
    if (map && isa<nn::ReshapeOp>(op) &&
        (isInMemory(source) || roots.contains(source.getDefiningOp()))) {
      addEdge(source,
              planning::alignmentOf(map->linear(sizesOf(op->getResult(0))), map->space,
                                    planning::elementCount(sizesOf(source))),
              node);
      return true;
    }
    if (map) {
      next = operandMap(op, *map, split);
      if (!next && split)
        return false;
    }
    return collectEdges(op->getOperand(0), next, node, split);
  }
  const std::optional<IndexMap> outOfOrder;
  if (auto gather = dyn_cast<nn::GatherOp>(op)) {
    std::optional<IndexMap> ofIndices = map;
    if (map)
      ofIndices->index.resize(sizesOf(gather.getIndices()).size());
    return collectEdges(gather.getTable(), outOfOrder, node, split) &&
           collectEdges(gather.getIndices(), ofIndices, node, split);
  }
  const std::optional<IndexMap> &next = isa<nn::PadOp, nn::ConcatOp>(op) ? outOfOrder : map;
  return llvm::all_of(op->getOperands(),
                      [&](Value operand) { return collectEdges(operand, next, node, split); });
}

/// The form of the kernel that an operation alone would be, and the order of its dimensions there.
static Sizes formOf(Operation *op, ArrayRef<int64_t> shape, FusionNode &node) {
  Sizes order, kept;
  if (nn::isReduction(op)) {
    Sizes reduced = reducedDimensions(op);
    bool lastReduced = false;
    for (int64_t d = 0; d < int64_t(shape.size()); ++d) {
      bool isReduced = llvm::is_contained(reduced, d);
      (isReduced ? node.reduced : node.kept) *= shape[d];
      if (!isReduced)
        kept.push_back(d);
      if (shape[d] > 1)
        lastReduced = isReduced;
    }
    node.kind = node.kept == 1 ? FusionNode::Kind::full
                : lastReduced  ? FusionNode::Kind::row
                               : FusionNode::Kind::column;
    // The walked dimensions of a column kernel come first.
    bool column = node.kind == FusionNode::Kind::column;
    order = column ? reduced : kept;
    order.insert(order.end(), (column ? kept : reduced).begin(), (column ? kept : reduced).end());
  } else {
    node.kind = FusionNode::Kind::pointwise;
    node.kept = planning::elementCount(shape);
    for (size_t d = 0; d < shape.size(); ++d)
      order.push_back(d);
  }
  return order;
}

void Fusion::describe(Operation *op, FusionNode &node) {
  Sizes shape = sizesOf(nn::isReduction(op) ? op->getOperand(0) : op->getResult(0));
  const Sizes order = formOf(op, shape, node);
  Sizes ordered;
  for (int64_t d : order)
    ordered.push_back(shape[d]);
  Sizes space = ordered;
  // Each split is at a boundary of some tensor's dimensions, so there are few.
  for (int attempt = 0; attempt < planning::kMostSplits; ++attempt) {
    node.inputs.clear();
    std::optional<Split> split;
    auto indices =
        planning::delinearise(planning::linearIndex(space, 0, space.size()), space, ordered, split);
    IndexMap map{space, std::vector<planning::Affine>(shape.size())};
    for (size_t i = 0; i < order.size(); ++i)
      map.index[order[i]] = (*indices)[i];
    bool done = nn::isReduction(op) ? collectEdges(op->getOperand(0), map, node, split)
                                    : collectOperands(op, map, node, split);
    if (done) {
      int64_t product = 1;
      for (int64_t size : llvm::reverse(space))
        node.cuts.push_back(product *= size);
      return;
    }
    if (!split)
      break;
    applySplit(space, *split);
  }
  internalError(op, "no split of its iteration space lets it read its operands");
}

/// What is returned lives to the end, in a place of its own or among the activations.
void Fusion::describeUses(Operation *op, FusionNode &node) {
  node.held = node.bytes;
  auto function = cast<func::FuncOp>(block.getParentOp());
  for (OpOperand &use : op->getUses()) {
    if (use.getOwner() != block.getTerminator())
      continue;
    node.isReturned = true;
    if (hasPlaceOfItsOwn(function, use.getOperandNumber()))
      node.held = 0;
  }
}

void Fusion::describeRoots() {
  nodes.assign(roots.all().size(), {});
  leafNumbers.clear();
  auto isRepetition = [](Operation &op) { return op.hasAttr(repetitionAttribute); };
  auto repetition = llvm::find_if(block, isRepetition);
  for (size_t n = 0; n < roots.all().size(); ++n) {
    Operation *op = roots.all()[n];
    FusionNode &node = nodes[n];
    node.position = positions[op];
    if (isRepetition(*op))
      node.earliest = positions[&*repetition];
    for (Value result : op->getResults())
      node.bytes += bytesOf(result.getType());
    describeUses(op, node);
    if (!isStep(op)) {
      node.flops = std::max(1.0, roots.costOf(op).flops);
      node.scalars = roots.costOf(op).scalars;
      describe(op, node);
      continue;
    }
    node.kind = FusionNode::Kind::barrier;
    for (Value operand : op->getOperands()) {
      std::optional<Split> split;
      collectEdges(operand, std::nullopt, node, split);
    }
  }
  readersOf.assign(nodes.size(), {});
  for (size_t n = 0; n < nodes.size(); ++n)
    for (const FusionEdge &edge : nodes[n].inputs)
      if (edge.producer >= 0)
        readersOf[edge.producer].push_back(roots.all()[n]);
}

/// Traffic for a root that this many other groups read, and what the root's own loop costs.
double Fusion::bytesIfStored(int node, size_t readers) {
  Value value = roots.all()[node]->getResult(0);
  double bytes = double(bytesOf(value.getType()) * int64_t(1 + readers));
  if (groups[groupOf[node]].nodes.size() > 1)
    return bytes;
  for (Value tensor : roots.costOf(roots.all()[node]).leaves)
    bytes += bytesRead(tensor, value);
  return bytes + planning::FusionOptions().launchBytes;
}

double Fusion::bytesIfRepeated(int node, const llvm::SetVector<int> &readers) {
  Value value = roots.all()[node]->getResult(0);
  const ExpressionCost &cost = roots.costOf(roots.all()[node]);
  double bytes = cost.again(value) * double(readers.size());
  for (Value tensor : cost.leaves) {
    int leaf = leafNumbers.lookup(tensor), lastRead = 0;
    for (int group : readers)
      if (!leavesOf[group].contains(leaf))
        bytes += bytesRead(tensor, value);
    int made = roots.numberOf(tensor.getDefiningOp());
    if (made < 0)
      continue;
    for (Operation *reader : readersOf[made])
      lastRead = std::max(lastRead, positions[reader]);
    if (llvm::any_of(readers, [&](int group) {
          return nodes[groups[group].nodes.front()].position > lastRead;
        }))
      bytes += double(nodes[made].held); // longer than now
  }
  return bytes;
}

/// Now that the groups are known: stored roots that are cheaper to recompute where they are read
/// become part of the expressions there. False where there are none, or no more.
bool Fusion::repeatCheapRoots() {
  corrected = true; // one correction: each could give rise to another
  groupOf.assign(nodes.size(), -1);
  leavesOf.assign(groups.size(), {});
  for (auto [g, group] : llvm::enumerate(groups))
    for (int n : group.nodes) {
      groupOf[n] = int(g);
      for (const FusionEdge &edge : nodes[n].inputs)
        leavesOf[g].insert(edge.leaf);
    }
  bool found = false;
  for (size_t n = 0; n < nodes.size(); ++n) {
    Operation *op = roots.all()[n];
    if (nodes[n].kind != FusionNode::Kind::pointwise || roots.isForced(op))
      continue;
    llvm::SetVector<int> readers; // groups
    for (Operation *reader : readersOf[n])
      if (int group = groupOf[roots.numberOf(reader)]; group != groupOf[n])
        readers.insert(group);
    if (!readers.empty() &&
        bytesIfRepeated(int(n), readers) < bytesIfStored(int(n), readers.size())) {
      roots.repeat(op);
      found = true;
    }
  }
  return found;
}

Value Fusion::cloneInto(Value value, OpBuilder &builder, IRMapping &mapping,
                        const llvm::DenseSet<Operation *> &inside) {
  if (Value clone = mapping.lookupOrNull(value))
    return clone;
  if (isInMemory(value))
    return results.count(value) ? results[value] : value;
  Operation *op = value.getDefiningOp();
  if (roots.contains(op) && !inside.contains(op))
    return results[value];
  for (Value operand : op->getOperands())
    mapping.map(operand, cloneInto(operand, builder, mapping, inside));
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

bool Fusion::isReadOutside(Operation *root, const llvm::DenseSet<Operation *> &inside) {
  return roots.isForced(root) ||
         llvm::any_of(readersOf[roots.numberOf(root)],
                      [&](Operation *reader) { return !inside.contains(reader); });
}

/// Node after which the kernel is named: a reduction's, else that of the dearest operation.
Location mainLocation(Block &body, Operation *lastRoot) {
  Operation *main = nullptr;
  for (Operation &op : body)
    if (!isView(&op) && !isa<nn::ConstantOp>(op))
      if (!main || flopsPerElement(&op) > flopsPerElement(main) ||
          (nn::isReduction(&op) && !nn::isReduction(main))) {
        if (main && nn::isReduction(main) && !nn::isReduction(&op))
          continue;
        main = &op;
      }
  return main && (nn::isReduction(main) || flopsPerElement(main) > 1) ? main->getLoc()
                                                                      : lastRoot->getLoc();
}

void Fusion::buildGroup(const planning::FusionGroup &group, OpBuilder &builder) {
  SmallVector<Operation *> members;
  for (int n : group.nodes)
    members.push_back(roots.all()[n]);
  if (members.size() == 1 && isStep(members.front())) {
    Operation *step = members.front();
    step->moveBefore(block.getTerminator());
    for (OpOperand &operand : step->getOpOperands())
      if (Value result = results.lookup(operand.get()))
        operand.set(result);
    return;
  }
  llvm::DenseSet<Operation *> inside(members.begin(), members.end());
  using Kind = FusionNode::Kind;
  kernel::Form form = group.kind == Kind::row      ? kernel::Form::row
                      : group.kind == Kind::column ? kernel::Form::column
                      : group.kind == Kind::full   ? kernel::Form::full
                                                   : kernel::Form::pointwise;
  SmallVector<Operation *> stored;
  SmallVector<Type> types;
  for (Operation *root : members)
    if (isReadOutside(root, inside)) {
      stored.push_back(root);
      types.push_back(root->getResult(0).getType());
    }
  builder.setInsertionPoint(block.getTerminator());
  auto op = builder.create<kernel::GroupOp>(members.back()->getLoc(), types, form);
  Block &body = op.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(&body);
  IRMapping mapping;
  SmallVector<Value> yielded;
  for (Operation *root : members)
    cloneInto(root->getResult(0), builder, mapping, inside);
  for (Operation *root : stored)
    yielded.push_back(mapping.lookup(root->getResult(0)));
  builder.create<kernel::YieldOp>(op.getLoc(), yielded);
  op->setLoc(mainLocation(body, members.back()));
  for (auto [root, result] : llvm::zip(stored, op.getOuts()))
    results[root->getResult(0)] = result;
}

void Fusion::build() {
  OpBuilder builder(block.getParent()->getContext());
  SmallVector<Operation *> old;
  for (Operation &op : block)
    if (!isStep(&op) && !op.hasTrait<OpTrait::IsTerminator>() && !isInMemory(op.getResult(0)))
      old.push_back(&op);
  for (const planning::FusionGroup &group : groups)
    buildGroup(group, builder);
  for (OpOperand &operand : block.getTerminator()->getOpOperands())
    if (Value result = results.lookup(operand.get()))
      operand.set(result);
  for (Operation *op : llvm::reverse(old))
    op->erase();
  for (Operation &op : llvm::make_early_inc_range(block))
    if (isa<nn::ConstantOp>(op) && op.use_empty())
      op.erase();
}

/// Every returned value gets a tensor of its own: no argument, constant or
/// second mention of a value. A reshape of a step's result is the step's.
void separateResults(func::FuncOp function) {
  Operation *terminator = function.front().getTerminator();
  llvm::DenseSet<Value> returned;
  OpBuilder builder(terminator);
  for (OpOperand &operand : terminator->getOpOperands()) {
    Value value = operand.get();
    if (auto reshape = value.getDefiningOp<nn::ReshapeOp>()) {
      Value source = reshape.getX();
      if (source.getDefiningOp() && isStep(source.getDefiningOp()) && source.hasOneUse()) {
        source.setType(value.getType());
        value.replaceAllUsesWith(source);
        reshape.erase();
        value = source;
      }
    }
    if (isa<BlockArgument>(value) || value.getDefiningOp<nn::ConstantOp>() ||
        !returned.insert(value).second)
      operand.set(builder.create<nn::ReshapeOp>(value.getLoc(), value.getType(), value));
  }
}

struct Fuse : ModulePass<Fuse> {
  static constexpr StringLiteral flag = "fuse";
  static constexpr StringLiteral description = "Group nn operations into kernels";

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isDeclaration())
        continue;
      if (!function.getOps<kernel::GroupOp>().empty()) {
        function.emitError("fuse expects operations that are in no group; it ran already");
        return signalPassFailure();
      }
      separateResults(function);
      Fusion(function).run();
    }
  }
};

PassRegistration<Fuse> fuseRegistration;

} // namespace

std::unique_ptr<Pass> createFusePass() { return std::make_unique<Fuse>(); }

} // namespace trainc
