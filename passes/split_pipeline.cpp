// SPDX-License-Identifier: Apache-2.0
//
// split-pipeline: @forward_backward as a forward and a backward function for each chunk.
//
// Problem: a model that does not fit one rank, or that several shall train at once without each
// taking a batch of its own, is cut along its depth; micro-batches follow each other through the
// stages (GPipe, 1811.06965; PipeDream-flush). Method: chunks, one or several for each stage
// (2104.04473), are cut where little crosses, so that the slowest is as fast as can be
// (planning/pipeline_partition.h), or where the user says. What crosses from one function to
// another becomes an argument and a result with a name: `#train.kept` what a micro-batch's forward
// pass leaves in a slot of the chunk's stash, and what it sends to later ones; `#train.passed` what
// the backward function of a chunk sends to an earlier one. A tensor goes straight to each chunk
// that reads it, past those between. What fuse would recompute for the backward pass, and what
// follows from inputs alone, is cloned rather than kept or sent. Operations stay what they are, so
// the bits do. A parameter that several chunks use has one gradient, in the earliest: the others'
// contributions travel and are added in the order of the unsplit program. Weakness: these
// contributions are as large as the parameter.
//
// zb-h1 (2401.10241) has a third function for each chunk: what no other waits for, weight
// gradients, with what it reads of the backward function in the slot. What plan-recompute repeats
// is repeated in either.
#include "dialects/errors/internal_error.h"
#include "dialects/kernel/kernel.h"
#include "dialects/names/node_name.h"
#include "dialects/names/recomputed_name.h"
#include "dialects/nn/builder.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Pass/PassManager.h"
#include "passes/module_pass.h"
#include "passes/options/checked_pass.h"
#include "passes/passes.h"
#include "passes/recompute/forward_part.h"
#include "passes/stages/chunk_assignment.h"
#include "passes/stages/pipeline_plan.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace trainc {
namespace {

using train::ChunkPass;

constexpr StringLiteral kGradientEntry = "forward_backward";

/// One function that is being made.
struct Part {
  Part(ChunkPass pass, int64_t chunk) : pass(pass), chunk(chunk) {}

  ChunkPass pass;
  int64_t chunk;
  SmallVector<Operation *> operations; // in program order
  llvm::SetVector<Value> reads;        // what other functions make
  llvm::SetVector<Value> sends;        // what functions of other chunks read, or the backward one
  llvm::SetVector<Value> keeps;     // of a backward function, what that of weight gradients reads
  llvm::SetVector<Value> arguments; // of @forward_backward
  SmallVector<unsigned> results;    // of @forward_backward
  llvm::DenseSet<Value> visited;
};

class Splitter {
public:
  Splitter(func::FuncOp function, const ChunkAssignment &assignment, int64_t chunks,
           bool separatesWeightGradients)
      : function(function), assignment(assignment), chunks(chunks),
        separatesWeightGradients(separatesWeightGradients) {
    for (ChunkPass pass : {ChunkPass::forward, ChunkPass::backward, ChunkPass::weight_gradient})
      if (pass != ChunkPass::weight_gradient || separatesWeightGradients)
        for (int64_t chunk = 0; chunk < chunks; ++chunk)
          parts.emplace_back(pass, chunk);
  }

  LogicalResult run() {
    if (separatesWeightGradients)
      findWeightGradients();
    for (Operation &op : function.front().without_terminator())
      if (!isa<nn::ConstantOp>(op) && !op.hasAttr(repetitionAttribute))
        partOf(&op).operations.push_back(&op);
    assignResults();
    for (Part &part : parts)
      findReads(part);
    for (int64_t chunk = chunks; chunk-- > 0;)
      if (failed(connect(chunk)))
        return failure();
    nameKept();
    for (Part &part : parts)
      build(part);
    function.erase();
    return success();
  }

private:
  Part &part(ChunkPass pass, int64_t chunk) { return parts[int64_t(pass) * chunks + chunk]; }
  Part &partOf(Operation *op) {
    ChunkPass pass = assignment.isForward(op)       ? ChunkPass::forward
                     : weightGradients.contains(op) ? ChunkPass::weight_gradient
                                                    : ChunkPass::backward;
    return part(pass, assignment.chunkOf(op));
  }
  bool isRepeatedIn(const Part &reader, Operation *op) {
    Part &maker = partOf(op);
    bool isHere = &maker == &reader && !op->hasAttr(repetitionAttribute);
    return !isHere && assignment.isRepeated(op, reader.pass);
  }

  void findWeightGradients();
  void assignResults();
  void findReads(Part &part);
  void visit(Part &part, Value value);
  void handOver(int64_t chunk);
  LogicalResult connect(int64_t chunk);
  void nameKept();
  void build(Part &part);
  void cloneOperations(Part &part, IRMapping &map, OpBuilder &builder);
  void collectResults(Part &part, IRMapping &map, OpBuilder &builder, SmallVector<Value> &results,
                      SmallVector<DictionaryAttr> &resultAttributes);
  Value lookUp(Part &part, Value value, IRMapping &map, OpBuilder &builder);
  train::RoleAttrInterface roleOfCrossing(Value value, bool isKept);
  SmallVector<std::pair<Value, train::RoleAttrInterface>> carried(const Part &part);
  Value copy(OpBuilder &builder, Value value);

  func::FuncOp function;
  const ChunkAssignment &assignment;
  int64_t chunks;
  bool separatesWeightGradients;
  llvm::DenseSet<Operation *> weightGradients; // operations that have a function of their own
  std::vector<Part> parts;
  DenseMap<Value, std::string> names; // of what crosses
};

/// What no earlier chunk waits for. Of a chunk for which nobody waits it is all: one function has
/// it.
void Splitter::findWeightGradients() {
  llvm::DenseSet<int64_t> awaited; // chunks
  for (Operation &op : llvm::reverse(function.front().without_terminator())) {
    if (assignment.isForward(&op) || isa<nn::ConstantOp>(op) || op.hasAttr(repetitionAttribute))
      continue;
    int64_t chunk = assignment.chunkOf(&op);
    bool isAwaited = llvm::any_of(op.getUsers(), [&](Operation *user) {
      return !user->hasTrait<OpTrait::IsTerminator>() &&
             (assignment.chunkOf(user) < chunk || !weightGradients.contains(user));
    });
    if (isAwaited)
      awaited.insert(chunk);
    else
      weightGradients.insert(&op);
  }
  for (Operation &op : function.front())
    if (!awaited.contains(assignment.chunkOf(&op)))
      weightGradients.erase(&op);
}

void Splitter::assignResults() {
  for (OpOperand &result : function.front().getTerminator()->getOpOperands()) {
    train::RoleAttrInterface role = train::resultRoleOf(function, result.getOperandNumber());
    Operation *maker = result.get().getDefiningOp();
    int64_t chunk = maker && !isa<nn::ConstantOp>(maker) ? assignment.chunkOf(maker) : 0;
    ChunkPass pass = isOfForwardPass(role)             ? ChunkPass::forward
                     : weightGradients.contains(maker) ? ChunkPass::weight_gradient
                                                       : ChunkPass::backward;
    Part &owner = part(pass, chunk);
    owner.results.push_back(result.getOperandNumber());
    // A result refers to an argument by its name.
    for (BlockArgument argument : function.getArguments())
      if (isa_and_nonnull<train::GradientAttr, train::NewValueAttr>(role) &&
          train::nameOf(function, argument.getArgNumber()) == role.getName().getValue())
        owner.arguments.insert(argument);
  }
}

void Splitter::visit(Part &part, Value value) {
  if (!part.visited.insert(value).second)
    return;
  if (isa<BlockArgument>(value)) {
    part.arguments.insert(value);
    return;
  }
  Operation *op = value.getDefiningOp();
  if (isa<nn::ConstantOp>(op))
    return;
  if (isRepeatedIn(part, op))
    for (Value operand : op->getOperands())
      visit(part, operand);
  else if (&partOf(op) != &part)
    part.reads.insert(value);
}

void Splitter::findReads(Part &part) {
  for (Operation *op : part.operations)
    for (Value operand : op->getOperands())
      visit(part, operand);
  for (unsigned result : part.results)
    visit(part, function.front().getTerminator()->getOperand(result));
}

/// The gradients that the function of weight gradients reads go through the backward function.
void Splitter::handOver(int64_t chunk) {
  Part &backward = part(ChunkPass::backward, chunk);
  for (Value value : part(ChunkPass::weight_gradient, chunk).reads) {
    const Part &maker = partOf(value.getDefiningOp());
    if (maker.pass == ChunkPass::forward)
      continue;
    if (&maker != &backward)
      backward.reads.insert(value);
    backward.keeps.insert(value);
  }
}

/// Who sends what the functions of a chunk read; what its backward function reads of earlier chunks
/// comes with the forward pass.
LogicalResult Splitter::connect(int64_t chunk) {
  Part &backward = part(ChunkPass::backward, chunk), &ahead = part(ChunkPass::forward, chunk);
  if (separatesWeightGradients)
    handOver(chunk);
  llvm::SetVector<Value> needed = backward.reads;
  if (separatesWeightGradients)
    for (Value value : part(ChunkPass::weight_gradient, chunk).reads)
      if (assignment.isForward(value.getDefiningOp()))
        needed.insert(value);
  for (Value value : needed) {
    Part &maker = partOf(value.getDefiningOp());
    if (maker.chunk > chunk && maker.pass == ChunkPass::forward)
      return (value.getDefiningOp()->emitError("a gradient of chunk ")
              << chunk << " needs it, which chunk " << maker.chunk << " makes in the forward pass")
                 .attachNote()
             << "try: --cut NODE elsewhere";
    bool staysHere = maker.chunk == chunk;
    if (maker.pass == ChunkPass::backward || staysHere)
      maker.sends.insert(value);
    else
      ahead.reads.insert(value);
  }
  for (Value value : ahead.reads)
    partOf(value.getDefiningOp()).sends.insert(value);
  return success();
}

void Splitter::nameKept() {
  llvm::StringSet<> taken;
  for (BlockArgument argument : function.getArguments())
    taken.insert(train::nameOf(function, argument.getArgNumber()));
  for (StringRef name :
       {StringRef("loss"), StringRef(train::kKeptLossWeight), StringRef(train::kKeptIndexCheck)})
    taken.insert(name);
  for (OpOperand &result : function.front().getTerminator()->getOpOperands()) {
    train::RoleAttrInterface role = train::resultRoleOf(function, result.getOperandNumber());
    if (isa_and_nonnull<train::LossAttr>(role))
      names[result.get()] = "loss";
    else if (isa_and_nonnull<train::LossWeightAttr>(role))
      names[result.get()] = train::kKeptLossWeight.str();
    else if (isa_and_nonnull<train::IndexCheckAttr>(role))
      names[result.get()] = train::kKeptIndexCheck.str();
  }
  for (Part &part : parts)
    for (Value value : llvm::concat<const Value>(part.sends, part.keeps)) {
      std::string name = nodeName(value.getLoc()).value(), unique = name.empty() ? "value" : name;
      if (names.contains(value))
        continue;
      for (int number = 2; !taken.insert(unique).second; ++number)
        unique = name + " " + std::to_string(number);
      names[value] = unique;
    }
}

train::RoleAttrInterface Splitter::roleOfCrossing(Value value, bool isKept) {
  StringAttr name = StringAttr::get(function.getContext(), names[value]);
  if (isKept)
    return train::KeptAttr::get(function.getContext(), name);
  return train::PassedAttr::get(function.getContext(), name);
}

/// What the function gets from others, in the order of the program.
SmallVector<std::pair<Value, train::RoleAttrInterface>> Splitter::carried(const Part &part) {
  SmallVector<Value> values(part.reads.begin(), part.reads.end());
  llvm::sort(values, [](Value a, Value b) {
    Operation *first = a.getDefiningOp(), *second = b.getDefiningOp();
    return first == second
               ? cast<OpResult>(a).getResultNumber() < cast<OpResult>(b).getResultNumber()
               : first->isBeforeInBlock(second);
  });
  SmallVector<std::pair<Value, train::RoleAttrInterface>> found;
  for (Value value : values)
    found.push_back(
        {value, roleOfCrossing(value, part.pass == ChunkPass::weight_gradient ||
                                          assignment.isForward(value.getDefiningOp()))});
  return found;
}

/// The value in the function that is being made; repeats operations where they are first read.
Value Splitter::lookUp(Part &part, Value value, IRMapping &map, OpBuilder &builder) {
  if (Value known = map.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    map.map(operand, lookUp(part, operand, map, builder));
  Operation *clone = builder.clone(*op, map);
  if (!isa<nn::ConstantOp>(op) && part.pass != ChunkPass::forward &&
      !op->hasAttr(repetitionAttribute))
    clone->setLoc(recomputedLocation(op->getLoc()));
  return map.lookup(value);
}

/// In memory of its own. Times 1, which keeps every bit of a number; of a NaN the sign may change.
Value Splitter::copy(OpBuilder &builder, Value value) {
  nn::Builder b(builder, value.getLoc());
  auto type = nn::tensorType(value);
  Value one = b.constant(1, RankedTensorType::get({}, type.getElementType()));
  return b.mul(value, b.broadcast(one, {}, type.getShape()));
}

void Splitter::cloneOperations(Part &part, IRMapping &map, OpBuilder &builder) {
  for (Operation *op : part.operations) {
    for (Value operand : op->getOperands())
      map.map(operand, lookUp(part, operand, map, builder));
    auto step = dyn_cast<kernel::StepOpInterface>(op);
    SmallVector<std::pair<Value, Value>> taken; // and what stands for it elsewhere
    for (unsigned result = 0; step && result < op->getNumResults(); ++result)
      if (auto operand = step.operandTaken(result); operand) {
        Value old = map.lookup(op->getOperand(*operand));
        if (!isa<BlockArgument>(old))
          continue; // else its memory is not the step's to take
        taken.push_back({op->getOperand(*operand), old});
        map.map(op->getOperand(*operand), copy(builder, old));
      }
    builder.clone(*op, map);
    for (auto [value, old] : taken)
      map.map(value, old);
  }
}

void Splitter::collectResults(Part &part, IRMapping &map, OpBuilder &builder,
                              SmallVector<Value> &results,
                              SmallVector<DictionaryAttr> &resultAttributes) {
  llvm::DenseSet<Value> returned;
  auto addResult = [&](Value value, DictionaryAttr described) {
    if (isa<BlockArgument>(value) || !returned.insert(value).second)
      value = copy(builder, value);
    results.push_back(value);
    resultAttributes.push_back(described);
  };
  for (unsigned result : part.results)
    addResult(lookUp(part, function.front().getTerminator()->getOperand(result), map, builder),
              function.getResultAttrDict(result));
  auto hasRole = [&](Value value) { // the loss: one place, one result
    return part.pass == ChunkPass::forward && llvm::any_of(part.results, [&](unsigned result) {
             return function.front().getTerminator()->getOperand(result) == value;
           });
  };
  auto addCrossing = [&](Value value, bool isKept) {
    addResult(map.lookup(value), train::attributesOf(roleOfCrossing(value, isKept)));
  };
  for (Value value : part.sends)
    if (!hasRole(value))
      addCrossing(value, part.pass == ChunkPass::forward);
  for (Value value : part.keeps)
    addCrossing(value, true);
}

void Splitter::build(Part &part) {
  MLIRContext *context = function.getContext();
  OpBuilder builder(function);
  auto created = builder.create<func::FuncOp>(
      function.getLoc(), (train::stringifyChunkPass(part.pass) + "_" + Twine(part.chunk)).str(),
      FunctionType::get(context, {}, {}));
  train::setChunk(created, train::ChunkAttr::get(context, part.pass, part.chunk));
  Block *block = created.addEntryBlock();
  IRMapping map;
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  auto addArgument = [&](Value value, DictionaryAttr described) {
    types.push_back(value.getType());
    attributes.push_back(described);
    map.map(value, block->addArgument(value.getType(), value.getLoc()));
  };
  for (BlockArgument argument : function.getArguments())
    if (part.arguments.contains(argument))
      addArgument(argument, function.getArgAttrDict(argument.getArgNumber()));
  for (auto [value, role] : carried(part))
    addArgument(value, train::attributesOf(role));

  builder.setInsertionPointToStart(block);
  cloneOperations(part, map, builder);
  SmallVector<Value> results;
  SmallVector<DictionaryAttr> resultAttributes;
  collectResults(part, map, builder, results, resultAttributes);
  builder.create<func::ReturnOp>(function.getLoc(), results);
  created.setType(FunctionType::get(context, types, ValueRange(results).getTypes()));
  created.setAllArgAttrs(attributes);
  created.setAllResultAttrs(resultAttributes);
}

LogicalResult split(ModuleOp module, const StageOptions &options) {
  auto function = module.lookupSymbol<func::FuncOp>(kGradientEntry);
  ChunkAssignment assignment(function);
  if (failed(assignment.assign(options)) ||
      failed(Splitter(function, assignment, options.chunks(), options.schedule == "zb-h1").run()))
    return failure();
  Builder builder(module.getContext());
  SmallVector<StringRef> lastNodes(assignment.cuts().begin(), assignment.cuts().end());
  train::setPipeline(module, train::PipelineAttr::get(module.getContext(), options.stages,
                                                      options.chunksPerStage, options.microBatches,
                                                      builder.getStringAttr(options.schedule),
                                                      builder.getStrArrayAttr(lastNodes)));
  return success();
}

/// Bytes of the stage that holds most, once all is placed; nothing where the module cannot be cut
/// so.
std::optional<int64_t> largestStage(ModuleOp module, const StageOptions &options) {
  OwningOpRef<ModuleOp> clone(module.clone());
  if (ScopedDiagnosticHandler quiet(module.getContext(), [](Diagnostic &) { return success(); });
      failed(split(*clone, options)))
    return std::nullopt;
  PassManager manager(module.getContext());
  manager.enableVerifier(false);
  for (std::unique_ptr<Pass> &pass : createPlacementPasses({options.target, /*epilogues=*/false}))
    manager.addPass(std::move(pass));
  check(succeeded(manager.run(*clone)), module, "a cut into stages cannot be placed");
  int64_t most = 0;
  for (const planned_stage &stage : describeStages(*clone, options.target).stages)
    most = std::max(most, stage.memory.bytes());
  return most;
}

/// Cuts with which every stage fits the limit; the fastest such of some. Where none does, those
/// that take least: whoever set the limit looks at what came out.
LogicalResult fitMemory(ModuleOp module, StageOptions &options) {
  if (options.memoryLimit == 0 || !options.cuts.empty())
    return success();
  FailureOr<std::vector<std::vector<std::string>>> candidates =
      ChunkAssignment(module.lookupSymbol<func::FuncOp>(kGradientEntry)).candidates(options);
  if (failed(candidates))
    return failure();
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const std::vector<std::string> &cuts : *candidates) {
    StageOptions tried = options;
    tried.cuts = cuts;
    std::optional<int64_t> bytes = largestStage(module, tried);
    if (!bytes || *bytes >= least)
      continue;
    least = *bytes;
    options.cuts = cuts;
    if (least <= options.memoryLimit)
      break;
  }
  return success();
}

struct SplitPipeline : ModulePass<SplitPipeline, CheckedPass> {
  SplitPipeline() = default;
  explicit SplitPipeline(const StageOptions &options) {
    stages = std::to_string(options.stages);
    chunksPerStage = std::to_string(options.chunksPerStage);
    cuts = llvm::join(options.cuts, ",");
    schedule = options.schedule;
    microBatches = std::to_string(options.microBatches);
    memoryLimit = std::to_string(options.memoryLimit);
    target = options.target;
  }

  TextOption stages{*this, "stages", "number", "1", "how many; 1: the step is not cut"};
  TextOption chunksPerStage{*this, "chunks-per-stage", "number", "1",
                            "above 1: for interleaved only"};
  TextOption cuts{*this, "cuts", "nodes", "", "nodes behind which to cut, between commas"};
  TextOption schedule{*this, "schedule", "name", "1f1b", "gpipe, 1f1b, interleaved or zb-h1"};
  TextOption microBatches{*this, "micro-batches", "number", "",
                          "of a step and replica; default: four for each stage"};
  TextOption memoryLimit{*this, "memory-limit", "size", "0",
                         "bytes of a rank that the planner's cuts keep to where they can; 0: none"};
  TextOption target{*this, "target", "name", "cpu", "cpu or cuda"};

  static constexpr StringLiteral flag = "split-pipeline";
  static constexpr StringLiteral description =
      "Cut @forward_backward into the functions of a pipeline's chunks";

  StageOptions read(OptionReader &reader) const {
    StageTexts texts{stages, chunksPerStage, reader.choice("schedule", schedule, kSchedules),
                     microBatches, splitNames(cuts)};
    if (texts.chunksPerStage == "1" && texts.schedule != "interleaved")
      texts.chunksPerStage.clear(); // as pipelines print what is not given
    StageOptions options = readStages(texts, reader);
    options.memoryLimit = reader.bytesOrZero("memory-limit", memoryLimit, "2GiB");
    options.target = reader.choice("target", target, kTargets);
    if (reader.good())
      checkStages(options, reader);
    return options;
  }
  void checkOptions(OptionReader &reader) const override { read(reader); }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    OptionReader reader = silentReader();
    StageOptions options = read(reader);
    auto function = module.lookupSymbol<func::FuncOp>(kGradientEntry);
    if (options.stages == 1 || !function)
      return;
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (train::resultRoleAs<train::LossPartAttr>(function, i)) {
        emitError(UnknownLoc::get(&getContext()),
                  "a loss of several parts cannot be cut into stages yet")
                .attachNote()
            << "try: --stages 1";
        return signalPassFailure();
      }
    if (failed(fitMemory(module, options)) || failed(split(module, options)))
      return signalPassFailure();
  }
};

PassRegistration<SplitPipeline> splitPipelineRegistration;

} // namespace

std::unique_ptr<Pass> createSplitPipelinePass(const StageOptions &options) {
  return std::make_unique<SplitPipeline>(options);
}

} // namespace trainc
