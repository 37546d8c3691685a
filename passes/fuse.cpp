// SPDX-License-Identifier: Apache-2.0
//
// fuse: entry functions of nn operations become steps: kernel.group regions,
// each of which becomes one kernel, matrix products and scatters.
//
// Problem: an operation by itself reads and writes memory for a few
// floating-point operations per element. Forward and backward meet here as one
// graph, so both fuse alike.
//
// Method. A *root* is a value that deserves a loop: a reduction, an operand of
// a step or of the return, or a pointwise value worth keeping. All other values
// are written into the expression of each root that uses them. A value with
// several users is a root where storing it moves fewer bytes than computing it
// again: written once and read by all users but one, and memory that is held,
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
#include "dialects/kernel/kernel.h"
#include "dialects/nn/reduction.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/lowering/matrix_products.h"
#include "passes/lowering/tensor_places.h"
#include "passes/lowering/value_views.h"
#include "passes/passes.h"
#include "passes/planning/fusion_groups.h"
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

// Operations of a kernel's loop in the time that a byte takes from or to memory, in f32: 2 cores
// with AVX-512 do about 200 GFLOP/s on vectors and move 20 GB/s, an A100 has 19.5 TFLOP/s to
// 2 TB/s, an H100 67 to 3.4.
constexpr double flopsPerByte = 10;
constexpr double largestExpression = 128; // flops: half of what a kernel holds (FusionOptions)
constexpr double storingOverhead = 1.125; // a stored value may need a kernel that it has to itself
constexpr int largestScalars = 16;        // likewise, values alive in it
constexpr size_t countedTensors = 8;      // that an expression reads: with more, storing is cheaper

bool isStep(Operation *op) { return isa<kernel::MatmulOp, kernel::ScatterAddOp>(op); }

/// In memory before any kernel of the group runs: argument, step's result, table of constants.
bool isInMemory(Value value) {
  Operation *op = value.getDefiningOp();
  return !op || isStep(op) || (isa<nn::ConstantOp>(op) && !isSplatConstant(op));
}

Sizes reducedDimensions(Operation *op) {
  return cast<DenseI64ArrayAttr>(op->getAttr("dimensions")).asArrayRef().vec();
}

double flopsOf(Operation *op) {
  if (auto pointwise = dyn_cast<nn::PointwiseOpInterface>(op))
    return pointwise.flopsPerElement();
  return isa<nn::CastOp, nn::PadOp, nn::ConcatOp>(op) ? 1 : 0;
}

/// Cost of a value's expression, down to roots and tensors in memory.
struct ExpressionCost {
  double flops = 0;             // per element
  int scalars = 1;              // alive at once (Sethi and Ullman's number)
  double gathered = 0;          // bytes read from rows all over a table
  SmallVector<Value, 4> leaves; // tensors read, at most countedTensors and one more

  void read(Value tensor) {
    if (leaves.size() <= countedTensors && !llvm::is_contained(leaves, tensor))
      leaves.push_back(tensor);
  }
};

class Fusion {
public:
  explicit Fusion(func::FuncOp function) : block(function.front()) {}

  LogicalResult run() {
    countUsers();
    markForced();
    do {
      chooseRoots();
      describeRoots();
      auto formed = planning::formGroups(nodes);
      if (!formed)
        return block.getParentOp()->emitError("internal error: fuse: groups wait for each other");
      groups = std::move(*formed);
    } while (repeatCheapRoots());
    build();
    return success();
  }

private:
  void countUsers();
  void chooseRoots();
  ExpressionCost costOf(Operation *op);
  bool deservesRoot(Operation *op, const ExpressionCost &cost);
  bool storingIsCheaper(Operation *op, const ExpressionCost &cost);
  bool isRepeated(Operation *op, const ExpressionCost &cost);
  bool repeatCheapRoots();
  static double partRead(Value tensor, Value value);
  double bytesIfStored(int node, size_t readers);
  double bytesIfRepeated(int node, const llvm::SetVector<int> &readers);
  void markForced();
  void describeRoots();
  void describeUses(Operation *op, FusionNode &node);
  void describe(Operation *op, FusionNode &node);
  void addEdge(Value tensor, Alignment alignment, FusionNode &node);
  bool collectEdges(Value value, const std::optional<IndexMap> &map, FusionNode &node,
                    std::optional<Split> &split);
  void build();
  void buildGroup(const planning::FusionGroup &group, OpBuilder &builder);
  Value cloneInto(Value value, OpBuilder &builder, IRMapping &mapping,
                  const llvm::DenseSet<Operation *> &inside);
  bool isReadOutside(Operation *root, const llvm::DenseSet<Operation *> &inside);

  Block &block;
  DenseMap<Operation *, int> users; // expressions that use the value, through views
  DenseMap<Operation *, ExpressionCost> costs;
  DenseMap<Operation *, int> nodeOf;  // roots and steps
  llvm::DenseSet<Operation *> forced; // operands of steps and of the return
  llvm::DenseSet<Operation *> cheap;  // roots no longer: cheaper to compute again in each group
  SmallVector<Operation *> rootOps;   // by node
  DenseMap<Value, int> leafNumbers;
  std::vector<FusionNode> nodes;
  std::vector<planning::FusionGroup> groups;
  std::vector<int> groupOf;                  // by node
  std::vector<llvm::DenseSet<int>> leavesOf; // tensors that a group reads
  DenseMap<Value, Value> results;            // root's value -> result of its group
  DenseMap<Operation *, int> positions;
  llvm::DenseSet<std::pair<Operation *, Value>> seenEdges;
  std::vector<SmallVector<Operation *>> readersOf; // of a node: roots and steps
};

void Fusion::countUsers() {
  int position = 0;
  for (Operation &op : block)
    positions[&op] = position++;
  for (Operation &op : llvm::reverse(block)) {
    int count = 0;
    llvm::SmallPtrSet<Operation *, 4> seen;
    for (Operation *user : op.getUsers())
      if (seen.insert(user).second)
        count += isView(user) ? users.lookup(user) : 1;
    users[&op] = count;
  }
}

void Fusion::markForced() {
  for (Operation &op : block)
    if (isStep(&op) || op.hasTrait<OpTrait::IsTerminator>())
      for (Value operand : op.getOperands())
        if (!isInMemory(operand))
          forced.insert(operand.getDefiningOp());
}

ExpressionCost Fusion::costOf(Operation *op) {
  ExpressionCost cost;
  cost.flops = flopsOf(op);
  if (isa<nn::GatherOp>(op))
    cost.gathered = double(bytesOf(op->getResult(0).getType()));
  SmallVector<int, 4> needs;
  for (Value operand : op->getOperands()) {
    Operation *source = operand.getDefiningOp();
    if (isInMemory(operand) || nodeOf.count(source)) {
      cost.read(operand);
      needs.push_back(1);
      continue;
    }
    const ExpressionCost &inner = costs[source];
    cost.flops += inner.flops;
    cost.gathered += inner.gathered;
    needs.push_back(inner.scalars);
    for (Value tensor : inner.leaves)
      cost.read(tensor);
  }
  llvm::sort(needs, std::greater<int>()); // the one that needs most comes first
  for (auto [i, need] : llvm::enumerate(needs))
    cost.scalars = std::max(cost.scalars, need + int(i));
  return cost;
}

/// The value has several users: whether to keep it or to compute it again for each.
bool Fusion::storingIsCheaper(Operation *op, const ExpressionCost &cost) {
  double repetitions = users.lookup(op) - 1;
  if (repetitions < 1)
    return false;
  if (cost.leaves.size() > countedTensors)
    return true;
  Value value = op->getResult(0);
  int64_t elements = planning::elementCount(sizesOf(value));
  double again = cost.flops * double(elements) / flopsPerByte + 2 * cost.gathered;
  for (Value tensor : cost.leaves) {
    // Arguments and constants are held anyway.
    Operation *source = tensor.getDefiningOp();
    bool made = source && !isa<nn::ConstantOp>(source);
    again += (made ? 1 + 1 / repetitions : 1) * partRead(tensor, value);
  }
  double stored = double(bytesOf(value.getType()));
  return storingOverhead * stored * (repetitions + 2) <= again * repetitions;
}

/// Computed per row (or once) and repeated: at every point where it is no root.
bool Fusion::isRepeated(Operation *op, const ExpressionCost &cost) {
  if (cost.flops == 0)
    return false;
  Value value = op->getResult(0);
  double stored = 2 * double(bytesOf(value.getType())); // written and read
  SmallVector<Operation *> below(op->getUsers());
  while (!below.empty()) {
    Operation *user = below.pop_back_val();
    if (!isView(user))
      continue;
    int64_t points = planning::elementCount(sizesOf(user->getResult(0)));
    if (points > planning::elementCount(sizesOf(value)) &&
        cost.flops * double(points) / flopsPerByte >= stored)
      return true;
    below.append(user->user_begin(), user->user_end());
  }
  return false;
}

bool Fusion::deservesRoot(Operation *op, const ExpressionCost &cost) {
  if (nn::isReduction(op) || forced.contains(op))
    return true;
  if (isView(op) || isa<nn::ConstantOp, nn::IotaOp>(op))
    return false;
  return cost.flops > largestExpression || cost.scalars > largestScalars ||
         (!cheap.contains(op) && (storingIsCheaper(op, cost) || isRepeated(op, cost)));
}

void Fusion::chooseRoots() {
  nodeOf.clear();
  rootOps.clear();
  costs.clear();
  for (Operation &op : block) {
    if (op.hasTrait<OpTrait::IsTerminator>() || (isa<nn::ConstantOp>(op) && !isSplatConstant(&op)))
      continue;
    bool root = isStep(&op);
    if (!root) {
      ExpressionCost cost = costOf(&op);
      root = users.lookup(&op) > 0 && deservesRoot(&op, cost);
      costs[&op] = std::move(cost);
    }
    if (root) {
      nodeOf[&op] = int(rootOps.size());
      rootOps.push_back(&op);
    }
  }
}

void Fusion::addEdge(Value tensor, Alignment alignment, FusionNode &node) {
  int leaf = leafNumbers.try_emplace(tensor, leafNumbers.size()).first->second;
  for (const FusionEdge &edge : node.inputs)
    if (edge.leaf == leaf && edge.alignment == alignment)
      return;
  auto found = nodeOf.find(tensor.getDefiningOp());
  int producer = found != nodeOf.end() ? found->second : -1;
  node.inputs.push_back({leaf, producer, alignment, planning::elementCount(sizesOf(tensor)),
                         bytesOf(tensor.getType())});
}

/// Adds the tensors that the expression of `value` reads. Without a map it is
/// only known that they are read out of order. False: `split` the space first.
bool Fusion::collectEdges(Value value, const std::optional<IndexMap> &map, FusionNode &node,
                          std::optional<Split> &split) {
  Operation *op = value.getDefiningOp();
  if (isInMemory(value) || nodeOf.count(op)) {
    Alignment alignment = Alignment::other;
    if (map)
      alignment = planning::alignmentOf(map->linear(sizesOf(value)), map->space,
                                        planning::elementCount(sizesOf(value)));
    addEdge(value, alignment, node);
    return true;
  }
  if (isa<nn::ConstantOp, nn::IotaOp>(op))
    return true;
  std::optional<IndexMap> next = map;
  if (isView(op)) {
    Value source = op->getOperand(0);
    while (isa<nn::ReshapeOp>(op) && source.getDefiningOp<nn::ReshapeOp>() &&
           !nodeOf.count(source.getDefiningOp()))
      source = source.getDefiningOp()->getOperand(0);
    if (map && isa<nn::ReshapeOp>(op) &&
        (isInMemory(source) || nodeOf.count(source.getDefiningOp()))) {
      addEdge(source,
              planning::alignmentOf(map->linear(sizesOf(value)), map->space,
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
  if (isa<nn::PadOp, nn::ConcatOp>(op))
    next = std::nullopt;
  for (Value operand : op->getOperands()) {
    std::optional<IndexMap> operandIndex = next;
    if (auto gather = dyn_cast<nn::GatherOp>(op); gather && map) {
      operandIndex = std::nullopt;
      if (operand == gather.getIndices()) {
        operandIndex = *map;
        operandIndex->index.resize(sizesOf(operand).size());
      }
    }
    if (!collectEdges(operand, operandIndex, node, split))
      return false;
  }
  return true;
}

void Fusion::describe(Operation *op, FusionNode &node) {
  Sizes shape = sizesOf(nn::isReduction(op) ? op->getOperand(0) : op->getResult(0));
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
  Sizes space;
  for (int64_t d : order)
    space.push_back(shape[d]);
  int64_t product = 1;
  for (int64_t size : llvm::reverse(space))
    node.cuts.push_back(product *= size);
  for (int attempt = 0; attempt < 32; ++attempt) {
    node.inputs.clear();
    std::optional<Split> split;
    Sizes ordered;
    for (int64_t d : order)
      ordered.push_back(shape[d]);
    auto indices =
        planning::delinearise(planning::linearIndex(space, 0, space.size()), space, ordered, split);
    IndexMap map{space, std::vector<planning::Affine>(shape.size())};
    for (size_t i = 0; i < order.size(); ++i)
      map.index[order[i]] = (*indices)[i];
    bool done = true;
    if (nn::isReduction(op)) {
      done = collectEdges(op->getOperand(0), map, node, split);
    } else {
      // The root's own operation is not a leaf of itself.
      auto own = nodeOf.find(op);
      int number = own->second;
      nodeOf.erase(own);
      done = collectEdges(op->getResult(0), map, node, split);
      nodeOf[op] = number;
    }
    if (done)
      return;
    applySplit(space, *split);
  }
}

/// What is returned lives to the end, in a place of its own or among the activations.
void Fusion::describeUses(Operation *op, FusionNode &node) {
  node.held = node.bytes;
  auto function = cast<func::FuncOp>(block.getParentOp());
  for (OpOperand &use : op->getUses()) {
    if (use.getOwner() != block.getTerminator())
      continue;
    node.isReturned = true;
    StringRef kind = resultKind(function, use.getOperandNumber());
    if (kind == "gradient" || kind == "loss" || kind.starts_with("run_"))
      node.held = 0;
  }
}

void Fusion::describeRoots() {
  nodes.assign(rootOps.size(), {});
  leafNumbers.clear();
  for (size_t n = 0; n < rootOps.size(); ++n) {
    Operation *op = rootOps[n];
    FusionNode &node = nodes[n];
    node.position = positions[op];
    for (Value result : op->getResults())
      node.bytes += bytesOf(result.getType());
    describeUses(op, node);
    if (!isStep(op)) {
      node.flops = std::max(1.0, costs[op].flops);
      node.scalars = costs[op].scalars;
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
        readersOf[edge.producer].push_back(rootOps[n]);
}

/// Of a tensor that a value's expression reads only the part that the value's elements need.
double Fusion::partRead(Value tensor, Value value) {
  int64_t elements =
      std::min(planning::elementCount(sizesOf(value)), planning::elementCount(sizesOf(tensor)));
  return double(elements * elementBytes(nn::tensorType(tensor).getElementType()));
}

/// Traffic for a root that this many other groups read, and what the root's own loop costs.
double Fusion::bytesIfStored(int node, size_t readers) {
  Value value = rootOps[node]->getResult(0);
  double bytes = double(bytesOf(value.getType()) * int64_t(1 + readers));
  if (groups[groupOf[node]].nodes.size() > 1)
    return bytes;
  for (Value tensor : costs[rootOps[node]].leaves)
    bytes += partRead(tensor, value);
  return bytes + planning::FusionOptions().launchBytes;
}

double Fusion::bytesIfRepeated(int node, const llvm::SetVector<int> &readers) {
  Value value = rootOps[node]->getResult(0);
  const ExpressionCost &cost = costs[rootOps[node]];
  double again = cost.flops * double(planning::elementCount(sizesOf(value))) / flopsPerByte +
                 2 * cost.gathered;
  double bytes = again * double(readers.size());
  for (Value tensor : cost.leaves) {
    int leaf = leafNumbers.lookup(tensor), lastRead = 0;
    for (int group : readers)
      if (!leavesOf[group].contains(leaf))
        bytes += partRead(tensor, value);
    auto made = nodeOf.find(tensor.getDefiningOp());
    if (made == nodeOf.end())
      continue;
    for (Operation *reader : readersOf[made->second])
      lastRead = std::max(lastRead, positions[reader]);
    if (llvm::any_of(readers, [&](int group) {
          return nodes[groups[group].nodes.front()].position > lastRead;
        }))
      bytes += double(nodes[made->second].held); // longer than now
  }
  return bytes;
}

/// Now that the groups are known: stored roots that are cheaper to compute again where they are
/// read become part of the expressions there. False where there are none, or no more.
bool Fusion::repeatCheapRoots() {
  if (!cheap.empty())
    return false; // one correction: each could give rise to another
  groupOf.assign(nodes.size(), -1);
  leavesOf.assign(groups.size(), {});
  for (auto [g, group] : llvm::enumerate(groups))
    for (int n : group.nodes) {
      groupOf[n] = int(g);
      for (const FusionEdge &edge : nodes[n].inputs)
        leavesOf[g].insert(edge.leaf);
    }
  for (size_t n = 0; n < nodes.size(); ++n) {
    Operation *op = rootOps[n];
    if (nodes[n].kind != FusionNode::Kind::pointwise || forced.contains(op) ||
        costs[op].leaves.size() > countedTensors)
      continue;
    llvm::SetVector<int> readers; // groups
    for (Operation *reader : readersOf[n])
      if (int group = groupOf[nodeOf[reader]]; group != groupOf[n])
        readers.insert(group);
    if (!readers.empty() &&
        bytesIfRepeated(int(n), readers) < bytesIfStored(int(n), readers.size()))
      cheap.insert(op);
  }
  return !cheap.empty();
}

Value Fusion::cloneInto(Value value, OpBuilder &builder, IRMapping &mapping,
                        const llvm::DenseSet<Operation *> &inside) {
  if (Value clone = mapping.lookupOrNull(value))
    return clone;
  if (isInMemory(value))
    return results.count(value) ? results[value] : value;
  Operation *op = value.getDefiningOp();
  if (nodeOf.count(op) && !inside.contains(op))
    return results[value];
  for (Value operand : op->getOperands())
    mapping.map(operand, cloneInto(operand, builder, mapping, inside));
  builder.clone(*op, mapping);
  return mapping.lookup(value);
}

bool Fusion::isReadOutside(Operation *root, const llvm::DenseSet<Operation *> &inside) {
  return forced.contains(root) || llvm::any_of(readersOf[nodeOf[root]], [&](Operation *reader) {
           return !inside.contains(reader);
         });
}

/// Node after which the kernel is named: a reduction's, else that of the dearest operation.
Location mainLocation(Block &body, Operation *lastRoot) {
  Operation *main = nullptr;
  for (Operation &op : body)
    if (!isView(&op) && !isa<nn::ConstantOp>(op))
      if (!main || flopsOf(&op) > flopsOf(main) ||
          (nn::isReduction(&op) && !nn::isReduction(main))) {
        if (main && nn::isReduction(main) && !nn::isReduction(&op))
          continue;
        main = &op;
      }
  return main && (nn::isReduction(main) || flopsOf(main) > 1) ? main->getLoc() : lastRoot->getLoc();
}

void Fusion::buildGroup(const planning::FusionGroup &group, OpBuilder &builder) {
  SmallVector<Operation *> roots;
  for (int n : group.nodes)
    roots.push_back(rootOps[n]);
  if (roots.size() == 1 && isStep(roots.front())) {
    Operation *step = roots.front();
    step->moveBefore(block.getTerminator());
    for (OpOperand &operand : step->getOpOperands())
      if (Value result = results.lookup(operand.get()))
        operand.set(result);
    return;
  }
  llvm::DenseSet<Operation *> inside(roots.begin(), roots.end());
  using Kind = FusionNode::Kind;
  kernel::Form form = group.kind == Kind::row      ? kernel::Form::row
                      : group.kind == Kind::column ? kernel::Form::column
                      : group.kind == Kind::full   ? kernel::Form::full
                                                   : kernel::Form::pointwise;
  SmallVector<Operation *> stored;
  SmallVector<Type> types;
  for (Operation *root : roots)
    if (isReadOutside(root, inside)) {
      stored.push_back(root);
      types.push_back(root->getResult(0).getType());
    }
  builder.setInsertionPoint(block.getTerminator());
  auto op = builder.create<kernel::GroupOp>(roots.back()->getLoc(), types, form);
  Block &body = op.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(&body);
  IRMapping mapping;
  SmallVector<Value> yielded;
  SmallVector<Attribute> names;
  for (Operation *root : roots)
    cloneInto(root->getResult(0), builder, mapping, inside);
  for (Operation *root : stored)
    yielded.push_back(mapping.lookup(root->getResult(0)));
  builder.create<kernel::YieldOp>(op.getLoc(), yielded);
  op->setLoc(mainLocation(body, roots.back()));
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

struct Fuse : PassWrapper<Fuse, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(Fuse)
  StringRef getArgument() const override { return "fuse"; }
  StringRef getDescription() const override {
    return "Group nn operations into kernels; matrix products become steps";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<kernel::KernelDialect>();
  }
  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (function.isDeclaration())
        continue;
      formMatrixProducts(function);
      separateResults(function);
      if (failed(Fusion(function).run()))
        return signalPassFailure();
    }
  }
};

PassRegistration<Fuse> registration;

} // namespace

std::unique_ptr<Pass> createFusePass() { return std::make_unique<Fuse>(); }

} // namespace trainc
