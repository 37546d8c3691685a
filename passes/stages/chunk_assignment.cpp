// SPDX-License-Identifier: Apache-2.0
//
// Nodes and their costs, cuts, and the chunks of operations (chunk_assignment.h).
#include "passes/stages/chunk_assignment.h"
#include "dialects/names/node_name.h"
#include "dialects/nn/reduction.h"
#include "dialects/nn/views.h"
#include "passes/kernels/fusion_roots.h"
#include "passes/planning/fusion_groups.h"
#include "passes/plans/tensor_places.h"
#include "passes/recompute/forward_part.h"
#include <limits>

using namespace mlir;

namespace trainc {

bool isOfForwardPass(train::RoleAttrInterface role) {
  return isa_and_nonnull<train::LossAttr, train::LossWeightAttr, train::IndexCheckAttr>(role);
}

ChunkAssignment::ChunkAssignment(func::FuncOp function) : function(function) {
  findForward();
  findRepeated();
  findNodes();
  findCrossing();
  findHeld();
}

void ChunkAssignment::findForward() {
  forward = operationsFor(function, [&](unsigned result) {
    return isOfForwardPass(train::resultRoleOf(function, result));
  });
  for (Operation &op : function.front()) {
    bool isMade = llvm::all_of(op.getOperands(), [&](Value operand) {
      Operation *maker = operand.getDefiningOp();
      return !maker || isa<nn::ConstantOp>(maker) || fromInputs.contains(maker);
    });
    if (isMade && forward.contains(&op) && !isStep(&op) && !nn::isReduction(&op) &&
        !isa<nn::ConstantOp, nn::GatherOp>(op) && op.getNumResults() == 1)
      fromInputs.insert(&op);
  }
}

/// As fuse weighs it where forward and backward pass are one function: at the price at which it
/// holds a tensor. Steps are left to plan-recompute.
void ChunkAssignment::findRepeated() {
  ForwardPart part(function, "");
  planning::ForwardGraph graph = part.graph();
  for (auto [op, operation] : llvm::zip(part.all(), graph.operations))
    operation.isRepeatable &= !isStep(op);
  std::vector<bool> answer =
      planning::repeatedOperations(graph, planning::FusionOptions().peakPrice);
  for (auto [op, isRepeated] : llvm::zip(part.all(), answer))
    if (isRepeated && forward.contains(op))
      repeated.insert(op);
}

bool ChunkAssignment::isRepeated(Operation *op, train::ChunkPass reader) const {
  if (op->hasAttr(repetitionAttribute))
    return true;
  return fromInputs.contains(op) || (reader != train::ChunkPass::forward && repeated.contains(op));
}

/// The node that a gradient's operation is of; -1 where no forward operation is of it.
int ChunkAssignment::numberOf(Operation *op) const {
  if (auto known = nodeOf.find(op); known != nodeOf.end())
    return known->second;
  auto found = nodeNumbers.find(nodeName(op->getLoc()).node);
  return found == nodeNumbers.end() ? -1 : found->second;
}

void ChunkAssignment::findNodes() {
  SymbolTableCollection symbols;
  for (Operation &op : function.front()) {
    if (!forward.contains(&op) || isa<nn::ConstantOp>(op))
      continue;
    std::string name = nodeName(op.getLoc()).node;
    int number = nodes.empty() ? 0 : int(nodes.size()) - 1; // of a nameless one: the one before
    if (!name.empty() || nodes.empty()) {
      auto [entry, isNew] = nodeNumbers.try_emplace(name, int(nodes.size()));
      if (isNew)
        nodes.push_back({name});
      number = entry->second;
    }
    nodeOf[&op] = number;
  }
  for (Operation &op : function.front())
    if (!isa<nn::ConstantOp>(op) && !op.hasTrait<OpTrait::IsTerminator>())
      if (int number = numberOf(&op); number >= 0)
        nodes[number].time += trafficOf(&op, symbols);
}

void ChunkAssignment::findCrossing() {
  for (auto [op, number] : nodeOf) {
    if (fromInputs.contains(op))
      continue;
    for (Value result : op->getResults()) {
      int last = number;
      bool isKept = false;
      for (Operation *reader : result.getUsers()) {
        auto known = nodeOf.find(reader);
        last = known == nodeOf.end() ? last : std::max(last, known->second);
        isKept |= !forward.contains(reader) && !repeated.contains(op);
      }
      for (int i = number; i < last; ++i)
        nodes[i].crossing += bytesOf(result.getType());
      nodes[number].kept += isKept ? bytesOf(result.getType()) : 0;
    }
  }
}

void ChunkAssignment::findHeld() {
  int64_t parameters = 0, state = 0; // of the model
  auto update = function->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>("update");
  for (unsigned i = 0; update && i < update.getNumArguments(); ++i)
    if (train::roleAs<train::StateAttr>(update, i))
      state += bytesOf(update.getArgument(i).getType());
  llvm::DenseMap<StringAttr, BlockArgument> copies; // by the parameter's name
  for (BlockArgument argument : function.getArguments())
    if (auto copy = train::roleAs<train::ParameterCopyAttr>(function, argument.getArgNumber()))
      copies[copy.getParameter()] = argument;
  llvm::SmallVector<std::pair<int, int64_t>> held; // by first node
  for (BlockArgument argument : function.getArguments()) {
    auto role = train::roleAs<train::ParameterAttr>(function, argument.getArgNumber());
    if (!role)
      continue;
    int first = int(nodes.size());
    auto findFirst = [&](BlockArgument value) {
      for (Operation *reader : value.getUsers())
        if (auto known = nodeOf.find(reader); known != nodeOf.end())
          first = std::min(first, known->second);
    };
    findFirst(argument);
    if (BlockArgument copy = copies.lookup(role.getName())) // products read it in 16 bits
      findFirst(copy);
    parameters += bytesOf(argument.getType());
    if (first < int(nodes.size()))
      held.push_back({first, bytesOf(argument.getType())});
  }
  for (auto [node, bytes] : held) // with the gradient
    nodes[node].held += 2 * bytes + int64_t(double(state) * double(bytes) / double(parameters));
}

/// Nodes after which no more crosses than after their neighbours.
std::vector<int> ChunkAssignment::narrowCuts() const {
  std::vector<int> cuts;
  for (int i = 0; i + 1 < int(nodes.size()); ++i) {
    bool isNarrow = (i == 0 || nodes[i].crossing <= nodes[i - 1].crossing) &&
                    (i + 2 == int(nodes.size()) || nodes[i].crossing <= nodes[i + 1].crossing);
    if (isNarrow && nodes[i].crossing > 0)
      cuts.push_back(i);
  }
  return cuts;
}

FailureOr<std::vector<int>> ChunkAssignment::chosenCuts(ArrayRef<std::string> names) {
  std::vector<int> first{0};
  for (const std::string &name : names) {
    auto found = nodeNumbers.find(name);
    if (found == nodeNumbers.end()) {
      (emitError(UnknownLoc::get(function.getContext()))
       << "no node of the forward pass is called '" << name << "'")
              .attachNote()
          << "try: --cut with one of those that trainc-inspect OUTPUT schedule shows of "
             "--stages "
          << names.size() + 1;
      return failure();
    }
    int next = found->second + 1;
    if (next >= int(nodes.size()) || next <= first.back()) {
      (emitError(UnknownLoc::get(function.getContext()))
       << "there is no cut after node '" << name
       << "': " << (next >= int(nodes.size()) ? "it is the last" : "another cut is at or after it"))
              .attachNote()
          << "try: cuts in the order of the model";
      return failure();
    }
    first.push_back(next);
  }
  return first;
}

FailureOr<std::vector<int>> ChunkAssignment::enoughCuts(const StageOptions &options) {
  std::vector<int> cuts = narrowCuts();
  if (int64_t(cuts.size()) + 1 >= options.chunks())
    return cuts;
  InFlightDiagnostic error = emitError(UnknownLoc::get(function.getContext()));
  error << "the model has " << cuts.size() << " narrow cuts, too few for " << options.stages
        << " stages";
  if (options.chunksPerStage > 1)
    error << " of " << options.chunksPerStage << " chunks";
  error.attachNote() << "try: --stages " << (int64_t(cuts.size()) + 1) / options.chunksPerStage
                     << " or fewer, or --cut NODE";
  return failure();
}

planning::Chain ChunkAssignment::chainOf(const StageOptions &options,
                                         const std::vector<int> &cuts) const {
  planning::Chain chain;
  chain.inFlight = [schedule = options.schedule, count = int(options.microBatches)](int chunk,
                                                                                    int chunks) {
    return schedule == "gpipe" ? count : chunks - chunk;
  };
  int node = 0;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    planning::Segment segment;
    for (int end = i < cuts.size() ? cuts[i] + 1 : int(nodes.size()); node < end; ++node) {
      segment.seconds += nodes[node].time;
      segment.stashBytes += nodes[node].kept;
      if (options.target != "cuda") // there every rank holds all
        segment.parameterBytes += nodes[node].held;
    }
    chain.segments.push_back(segment);
    if (i < cuts.size()) // in either direction, written and read on either side
      chain.cutSeconds.push_back(4.0 * double(nodes[cuts[i]].crossing));
  }
  return chain;
}

FailureOr<std::vector<int>> ChunkAssignment::plannedCuts(const StageOptions &options) {
  FailureOr<std::vector<int>> cuts = enoughCuts(options);
  if (failed(cuts))
    return failure();
  planning::Partition partition =
      planning::partitionChain(chainOf(options, *cuts), int(options.chunks()));
  std::vector<int> first{0};
  for (size_t chunk = 1; chunk < partition.first.size(); ++chunk)
    first.push_back((*cuts)[partition.first[chunk] - 1] + 1);
  return first;
}

FailureOr<std::vector<std::vector<std::string>>>
ChunkAssignment::candidates(const StageOptions &options) {
  FailureOr<std::vector<int>> cuts = enoughCuts(options);
  if (failed(cuts))
    return failure();
  planning::Chain chain = chainOf(options, *cuts);
  int chunks = int(options.chunks());
  planning::Partition fastest = planning::partitionChain(chain, chunks);
  int64_t most = 0;
  for (int chunk = 0; chunk < chunks; ++chunk)
    most = std::max(most, planning::stageBytes(chain, fastest.first[chunk],
                                               chunk + 1 < chunks ? fastest.first[chunk + 1]
                                                                  : int(cuts->size()) + 1,
                                               chunk, chunks));
  std::vector<std::vector<std::string>> found;
  constexpr int limits = 6;
  for (int i = 0; i < limits; ++i) {
    chain.memoryLimit = most - (most - fastest.leastMemory) * i / (limits - 1);
    std::vector<std::string> names;
    planning::Partition partition = planning::partitionChain(chain, chunks);
    for (int first : llvm::drop_begin(partition.first))
      names.push_back(nodes[(*cuts)[first - 1]].name);
    if (!llvm::is_contained(found, names))
      found.push_back(names);
  }
  return found;
}

LogicalResult ChunkAssignment::assign(const StageOptions &options) {
  FailureOr<std::vector<int>> first =
      options.cuts.empty() ? plannedCuts(options) : chosenCuts(options.cuts);
  if (failed(first))
    return failure();
  for (size_t chunk = 1; chunk < first->size(); ++chunk)
    lastNodes.push_back(nodes[(*first)[chunk] - 1].name);
  spread(*first);
  return success();
}

/// A sum of gradients that all come from later chunks is added in the earliest of those, so that it
/// travels once; else in the chunk it has.
int64_t ChunkAssignment::sumChunk(Operation *op, int64_t chunk) const {
  if (!isa<nn::AddOp>(op))
    return chunk;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (Value operand : op->getOperands()) {
    Operation *maker = operand.getDefiningOp();
    if (!maker || isForward(maker) || !chunks.contains(maker))
      return chunk;
    least = std::min(least, chunkOf(maker));
  }
  return std::max(chunk, least);
}

/// Forward operations run no earlier than what they read, the others no later.
void ChunkAssignment::spread(const std::vector<int> &firstNodes) {
  int64_t last = int64_t(firstNodes.size()) - 1;
  auto chunkOfNode = [&](int node) {
    return std::upper_bound(firstNodes.begin(), firstNodes.end(), node) - firstNodes.begin() - 1;
  };
  for (Operation &op : function.front()) {
    if (isa<nn::ConstantOp>(op) || op.hasTrait<OpTrait::IsTerminator>())
      continue;
    bool isAhead = isForward(&op);
    int node = numberOf(&op);
    int64_t chunk = node >= 0 ? chunkOfNode(node) : isAhead ? 0 : last;
    for (Value operand : op.getOperands()) {
      Operation *maker = operand.getDefiningOp();
      if (!maker || !chunks.contains(maker))
        continue;
      if (isAhead)
        chunk = std::max(chunk, chunkOf(maker));
      else if (!isForward(maker) && !maker->hasAttr(repetitionAttribute))
        chunk = std::min(chunk, chunkOf(maker));
    }
    chunks[&op] = isAhead ? chunk : sumChunk(&op, chunk);
  }
}

} // namespace trainc
