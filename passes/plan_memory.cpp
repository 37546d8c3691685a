// SPDX-License-Identifier: Apache-2.0
//
// plan-memory: a place for every tensor of every entry function.
//
// Problem: nothing is allocated at run time, and memory decides the batch that
// fits. Method: arguments and results with a fixed meaning go where
// docs/execution.md says. All other tensors live from the step that writes
// them to the last that reads them. Tensors that may share memory are joined
// first: a product added into another, a kernel's output over an input that dies
// there, a result that has its own place. What is left is placed by
// planning/memory_plan.h. Entry functions never run at once, so they share the
// arenas. Where gradients are sharded, no arena holds them between micro-batches: they are
// activations until the ranks have added them (sharding/gradient_buckets.h). On CUDA the totals are
// gathered at the end of the activations arena, which has room for them after what must last.
// Weakness: a tensor joins the first input that fits, not the best.
#include "dialects/errors/internal_error.h"
#include "dialects/kernel/kernel.h"
#include "dialects/nn/nn.h"
#include "dialects/train/module_state.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/module_pass.h"
#include "passes/passes.h"
#include "passes/planning/memory_plan.h"
#include "passes/plans/tensor_places.h"
#include "passes/sharding/gradient_buckets.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include <map>

using namespace mlir;

namespace trainc {
namespace {

using kernel::Arena;
using planning::alignedBytes;

struct Place {
  Arena arena = Arena::activations;
  int64_t offset = 0;
};

constexpr int arenaCount = 6; // constants last

struct Totals {
  int64_t bytes[arenaCount] = {};
  int64_t lowerBound[arenaCount] = {};
  int64_t activationsOfOthers = 0; // of the functions that all ranks run
  std::map<int64_t, int64_t> activationsOfChunk;

  void makeRoom(Arena arena, int64_t most, int64_t least) {
    bytes[int(arena)] = std::max(bytes[int(arena)], most);
    lowerBound[int(arena)] = std::max(lowerBound[int(arena)], least);
  }
};

/// Places that follow from names alone, the same in all entry functions.
class FixedPlaces {
public:
  explicit FixedPlaces(ModuleOp module) : module(module) {
    readLayout();
    readFrozenFiles();
  }

  Place parameter(StringRef name, Type type, bool gradient) {
    Arena arena = gradient ? Arena::gradients : Arena::parameters;
    if (train::storedTypeOf(module, StringAttr::get(module.getContext(), name)))
      return {Arena::frozen, placeIn(frozen, name, type)};
    elementWidth = widthOf(type);
    if (auto known = offsets.find(name); known != offsets.end())
      return {arena, known->second * elementWidth};
    return {arena, placeIn(loose[int(arena)], name, type)}; // without a layout
  }

  Place run(Arena arena, train::Run run, int64_t group, Type type) {
    elementWidth = widthOf(type);
    return {arena, (layout ? layout.offsetOf(run, group) : 0) * elementWidth};
  }

  /// The place of a run in 16 bits: after all parameters, in order of appearance.
  Place copies(train::Run run, int64_t group, Type type) {
    auto [entry, isNew] = copiedRuns.try_emplace({run, group}, copiedBytes);
    if (isNew)
      copiedBytes += alignedBytes(layout.elementsOf(run, group) * widthOf(type));
    return {Arena::parameters, layout.totalElements() * kMasterBytes + entry->second};
  }

  Place copy(StringRef parameter, Type type) {
    const auto [run, group] = runs.lookup(parameter);
    Place place = copies(run, group, type);
    place.offset += (offsets.lookup(parameter) - layout.offsetOf(run, group)) * widthOf(type);
    return place;
  }

  Place state(train::StateAttr role, Type type) {
    slots = std::max(slots, role.getSlot() + 1);
    if (!ownStates.empty()) {
      const Place place{Arena::optimizer_state, beginOfStates(role)};
      stateBytes = std::max(stateBytes, place.offset + alignedBytes(bytesOf(type)));
      return place;
    }
    Place place = run(Arena::optimizer_state, role.getRun(), role.getGroup(), type);
    place.offset += role.getSlot() * (layout ? layout.trainedElements() : 0) * elementWidth;
    return place;
  }

  /// After all that micro-batches and ranks sum.
  Place stepTotals(Type type) {
    elementWidth = widthOf(type);
    totalsBytes = alignedBytes(bytesOf(type));
    return {Arena::gradients, (layout ? layout.summedElements() : 0) * elementWidth};
  }

  /// One place per name, pinned for all entries.
  Place pinned(Arena arena, StringRef name, Type type) {
    return {arena, placeIn(pins[int(arena)], name, type)};
  }

  int64_t pinnedBytes(Arena arena) const { return pins[int(arena)].bytes; }

  /// In a slot of the chunk's stash.
  Place kept(int64_t chunk, StringRef name, Type type) {
    return {Arena::stash, placeIn(stashes[chunk], name, type)};
  }
  /// After what all entries have pinned, so asked for when that is known; no two chunks have some
  /// at once.
  Place passed(int64_t chunk, StringRef name, Type type) {
    return {Arena::activations,
            pinnedBytes(Arena::activations) + placeIn(passedTensors[chunk], name, type)};
  }
  int64_t frozenBytes() const { return frozen.bytes; }
  int64_t passedBytes(int64_t chunk) { return passedTensors[chunk].bytes; }
  int64_t slotBytes(int64_t chunk) { return stashes[chunk].bytes; }

  void addTo(Totals &totals) const {
    if (layout) {
      totals.bytes[int(Arena::parameters)] = layout.totalElements() * elementWidth + copiedBytes;
      totals.bytes[int(Arena::gradients)] = layout.summedElements() * elementWidth + totalsBytes;
      totals.bytes[int(Arena::optimizer_state)] =
          ownStates.empty() ? slots * layout.trainedElements() * elementWidth : stateBytes;
    }
    for (Arena arena : {Arena::parameters, Arena::gradients})
      totals.bytes[int(arena)] = std::max(totals.bytes[int(arena)], loose[int(arena)].bytes);
    for (Arena arena : {Arena::parameters, Arena::gradients, Arena::optimizer_state})
      totals.lowerBound[int(arena)] = totals.bytes[int(arena)];
  }

private:
  /// Tensors in order of appearance.
  struct Named {
    llvm::StringMap<int64_t> offsets;
    int64_t bytes = 0;
  };
  static int64_t widthOf(Type type) {
    return elementBytes(cast<RankedTensorType>(type).getElementType());
  }
  static int64_t placeIn(Named &tensors, StringRef name, Type type) {
    auto [entry, isNew] = tensors.offsets.try_emplace(name, tensors.bytes);
    if (isNew)
      tensors.bytes += alignedBytes(bytesOf(type));
    return entry->second;
  }

  /// Frozen tensors that stay in files have their places from these; the others lie after them.
  void readFrozenFiles() {
    if (ArrayAttr parts = train::frozenPartsOf(module))
      frozen.bytes = cast<DenseI64ArrayAttr>(parts[0])[3];
    if (DictionaryAttr places = train::frozenPlacesOf(module))
      for (NamedAttribute place : places)
        frozen.offsets[place.getName()] = cast<IntegerAttr>(place.getValue()).getInt();
  }

  void readLayout() {
    layout = train::layoutOf(module);
    if (layout)
      for (train::PlacedAttr placed : layout.placed()) {
        offsets[placed.getName().getValue()] = placed.getOffset();
        runs[placed.getName().getValue()] = {placed.getRun(), placed.getGroup()};
      }
    ownStates = train::statePlacesOf(module);
  }

  /// The first of the states in the role's slot that are of its run, in bytes.
  int64_t beginOfStates(train::StateAttr role) {
    for (const train::StatePlace &place : ownStates)
      if (place.slot == role.getSlot() &&
          runs.lookup(place.parameter.getValue()) == std::pair(role.getRun(), role.getGroup()))
        return place.offset;
    return 0;
  }

  ModuleOp module;
  llvm::StringMap<int64_t> offsets; // elements
  llvm::StringMap<std::pair<train::Run, int64_t>> runs;
  SmallVector<train::StatePlace> ownStates; // where they are not like the parameters
  train::LayoutAttr layout;
  static constexpr int64_t kMasterBytes = 4;                    // of an element that has a copy
  std::map<std::pair<train::Run, int64_t>, int64_t> copiedRuns; // bytes after the parameters
  int64_t copiedBytes = 0;
  int64_t slots = 0, elementWidth = 4, totalsBytes = 0, stateBytes = 0;
  Named loose[arenaCount], pins[arenaCount], frozen;
  std::map<int64_t, Named> stashes, passedTensors; // by chunk
};

/// Tensors that share memory: alive from the first write to the last read.
struct Storage {
  int64_t bytes = 0;
  int first = 0, last = 0;
  std::optional<Place> place;
  bool isArgument = false;
  bool isOfOtherRanks = false; // who read it after a step, as long as it is alive
};

class EntryPlan {
public:
  EntryPlan(func::FuncOp function, FixedPlaces &fixed, SymbolTableCollection &symbols)
      : function(function), block(function.front()), fixed(fixed), symbols(symbols),
        arena(train::isUpdate(function) ? Arena::workspace : Arena::activations),
        chunk(train::chunkOf(function)) {
    for (Operation &op : block)
      if (!isa<nn::ConstantOp>(op))
        operations.push_back(&op);
  }

  /// First of all entries: pinned places, so that their sizes are known.
  void placeArguments();
  LogicalResult joinTensors();
  void placeRest(Totals &totals);

private:
  Place placeOf(train::RoleAttrInterface role, Type type, const llvm::Twine &fallback);
  Place placeOfRun(train::RoleAttrInterface role, Type type);
  /// An activation that lives on after its last reader.
  bool isOutput(unsigned result) {
    return bool(train::resultRoleAs<train::OutputAttr>(function, result)) || isSharded(result);
  }
  bool isSharded(unsigned result) const { return sharded.contains(result); }
  void findLastReads();
  void addResults(kernel::StepOpInterface step, int number);
  void overwrite(kernel::StepOpInterface step, OpResult result, int number);
  std::optional<int> storageToReuse(kernel::StepOpInterface step, unsigned result, int number);
  void annotate();

  func::FuncOp function;
  Block &block;
  FixedPlaces &fixed;
  SymbolTableCollection &symbols;
  Arena arena;
  train::ChunkAttr chunk;              // null: of none
  std::vector<Operation *> operations; // steps by number, then the return
  std::vector<Storage> storages;
  llvm::MapVector<Value, int> storageOf;
  DenseMap<Value, int> lastRead;
  DenseMap<Value, unsigned> returned;     // value -> result index
  DenseMap<unsigned, int> sharded;        // result index -> the last step that must leave it
  DenseMap<Operation *, int64_t> scratch; // offset in the workspace
  SmallVector<Place> resultPlaces;
};

Place EntryPlan::placeOf(train::RoleAttrInterface role, Type type, const llvm::Twine &fallback) {
  // A plain function, as tests have them: arguments and results one after the other.
  auto own = [&] { return fixed.pinned(arena, (function.getName() + fallback).str(), type); };
  if (!role)
    return own();
  // Other micro-batches are on their way through the chunk meanwhile.
  if (const std::string kept = chunk ? role.getKeptName() : ""; !kept.empty())
    return fixed.kept(chunk.getNumber(), kept, type);
  if (chunk && isa<train::PassedAttr>(role))
    return fixed.passed(chunk.getNumber(), role.getName(), type);
  switch (role.getPlacement()) {
  case train::Placement::own:
    return own();
  case train::Placement::parameter:
    return fixed.parameter(role.getName(), type, /*gradient=*/false);
  case train::Placement::gradient:
    return fixed.parameter(role.getName(), type, /*gradient=*/true);
  case train::Placement::copy:
    return fixed.copy(cast<train::ParameterCopyAttr>(role).getParameter(), type);
  case train::Placement::flat:
    return placeOfRun(role, type);
  case train::Placement::totals:
    return updatesInBackward(function->getParentOfType<ModuleOp>())
               ? fixed.pinned(Arena::activations, "step_totals", type)
               : fixed.stepTotals(type);
  case train::Placement::activations:
    return fixed.pinned(Arena::activations, role.getPlaceName(), type);
  case train::Placement::workspace:
    return fixed.pinned(Arena::workspace, role.getPlaceName(), type);
  }
  llvm_unreachable("a placement that is not in the list");
}

Place EntryPlan::placeOfRun(train::RoleAttrInterface role, Type type) {
  if (auto state = dyn_cast<train::StateAttr>(role))
    return fixed.state(state, type);
  if (auto run = dyn_cast<train::RunGradientsAttr>(role))
    return fixed.run(Arena::gradients, run.getRun(), run.getGroup(), type);
  if (auto run = dyn_cast<train::RunCopiesAttr>(role))
    return fixed.copies(run.getRun(), run.getGroup(), type);
  auto run = cast<train::RunParametersAttr>(role);
  return fixed.run(Arena::parameters, run.getRun(), run.getGroup(), type);
}

void EntryPlan::placeArguments() {
  for (BlockArgument argument : function.getArguments()) {
    unsigned i = argument.getArgNumber();
    Storage storage;
    storage.bytes = bytesOf(argument.getType());
    storage.isArgument = true;
    storage.place =
        placeOf(train::roleOf(function, i), argument.getType(), " argument " + Twine(i));
    storageOf[argument] = int(storages.size());
    storages.push_back(storage);
  }
  for (const GradientBucket &bucket : gradientBucketsOf(function))
    for (unsigned gradient : bucket.gradients)
      sharded[gradient] = bucket.until;
  for (auto [i, value] : llvm::enumerate(block.getTerminator()->getOperands())) {
    returned[value] = i;
    // Sharded gradients have one, too: the arena has them once they are added.
    Place place =
        train::resultRoleAs<train::OutputAttr>(function, i)
            ? Place()
            : placeOf(train::resultRoleOf(function, i), value.getType(), " result " + Twine(i));
    resultPlaces.push_back(place);
  }
}

void EntryPlan::findLastReads() {
  for (auto [number, op] : llvm::enumerate(operations))
    for (OpOperand &operand : op->getOpOperands())
      if (!op->hasTrait<OpTrait::IsTerminator>() || !isSharded(operand.getOperandNumber()))
        lastRead[operand.get()] = int(number);
  for (auto [value, result] : returned)
    if (isSharded(result))
      lastRead[value] = std::max(lastRead[value], sharded[result]);
}

/// Memory of an operand which the result takes: where it must, or may and the operand dies here.
std::optional<int> EntryPlan::storageToReuse(kernel::StepOpInterface step, unsigned result,
                                             int number) {
  if (auto operand = step.operandTaken(result)) {
    auto known = storageOf.find(step->getOperand(*operand));
    bool dies = known != storageOf.end() && storages[known->second].last == number &&
                !storages[known->second].isOfOtherRanks;
    return dies ? std::optional(known->second) : std::nullopt;
  }
  auto own = returned.find(step->getResult(result));
  bool fixedPlace = own != returned.end() && !isOutput(own->second);
  if (fixedPlace && train::overwrittenArgument(function, own->second))
    return std::nullopt;
  for (Value input : step->getOperands()) {
    auto known = storageOf.find(input);
    if (known == storageOf.end())
      continue;
    const Storage &storage = storages[known->second];
    if (storage.isArgument || storage.place || storage.isOfOtherRanks || storage.last != number ||
        storage.bytes != bytesOf(step->getResult(result).getType()))
      continue;
    auto shares = [&](Value other) {
      auto entry = storageOf.find(other);
      return entry != storageOf.end() && entry->second == known->second;
    };
    if (step.mayWriteOver(result, shares, symbols))
      return known->second;
  }
  return std::nullopt;
}

/// A result that lies where an argument does: the argument's old value is read before.
void EntryPlan::overwrite(kernel::StepOpInterface step, OpResult result, int number) {
  auto argument = train::overwrittenArgument(function, returned[result]);
  if (!argument)
    return;
  Value old = function.getArgument(*argument);
  auto isOld = [&](Value other) { return other == old; };
  check(!lastRead.count(old) || lastRead[old] <= number, step,
        "the old value is read after it is overwritten");
  check(llvm::none_of(step->getOperands(), isOld) ||
            step.mayWriteOver(result.getResultNumber(), isOld, symbols),
        step, "the step cannot write in place");
}

void EntryPlan::addResults(kernel::StepOpInterface step, int number) {
  llvm::SmallDenseSet<int> taken;
  for (OpResult result : step->getResults()) {
    auto reuse = storageToReuse(step, result.getResultNumber(), number);
    if (reuse && !taken.insert(*reuse).second)
      reuse = std::nullopt;
    check(reuse || !step.operandTaken(result.getResultNumber()), step,
          "it takes the memory of a tensor that is read later");
    if (!reuse) {
      reuse = int(storages.size());
      storages.push_back({bytesOf(result.getType()), number, number, std::nullopt, false});
    }
    Storage &storage = storages[*reuse];
    storageOf[result] = *reuse;
    auto read = lastRead.find(result);
    storage.last = std::max(storage.last, read == lastRead.end() ? number : read->second);
    auto own = returned.find(result);
    if (own != returned.end() && isSharded(own->second))
      storage.isOfOtherRanks = true;
    if (own == returned.end() || isOutput(own->second))
      continue;
    check(!storage.place && !storage.isArgument, step, "two fixed places for one tensor");
    storage.place = resultPlaces[own->second];
    overwrite(step, result, number);
  }
}

LogicalResult EntryPlan::joinTensors() {
  findLastReads();
  for (auto [number, op] : llvm::enumerate(operations)) {
    auto step = dyn_cast<kernel::StepOpInterface>(op);
    if (!step && !op->hasTrait<OpTrait::IsTerminator>())
      return op->emitError("plan-memory expects steps and constants; run lower-to-kernels first");
    if (step)
      addResults(step, int(number));
  }
  return success();
}

void EntryPlan::placeRest(Totals &totals) {
  std::vector<planning::Buffer> buffers, scratches;
  std::vector<Storage *> movable;
  for (Storage &storage : storages)
    if (!storage.place) {
      movable.push_back(&storage);
      buffers.push_back({storage.bytes, storage.first, storage.last});
    }
  // Scratch of a kernel lives for its one step, in the workspace.
  std::vector<planning::Buffer> &work = arena == Arena::workspace ? buffers : scratches;
  size_t firstScratch = work.size();
  SmallVector<Operation *> scratchSteps;
  for (auto [number, op] : llvm::enumerate(operations)) {
    auto step = dyn_cast<kernel::StepOpInterface>(op);
    if (int64_t bytes = step ? step.scratchBytes(symbols) : 0) {
      scratchSteps.push_back(op);
      work.push_back({bytes, int(number), int(number)});
    }
  }
  auto add = [&](Arena where, const planning::MemoryPlan &plan) {
    int64_t base = fixed.pinnedBytes(where);
    if (chunk && where == Arena::activations)
      base += fixed.passedBytes(chunk.getNumber());
    totals.makeRoom(where, base + plan.bytes, base + plan.lowerBound);
    if (chunk && where == Arena::activations) {
      int64_t &most = totals.activationsOfChunk[chunk.getNumber()];
      most = std::max({most, base + plan.bytes, totals.activationsOfOthers});
    }
    if (!chunk)
      totals.activationsOfOthers = totals.bytes[int(Arena::activations)];
    return base;
  };
  planning::MemoryPlan plan = planning::planMemory(buffers);
  int64_t base = add(arena, plan);
  for (size_t i = 0; i < movable.size(); ++i)
    movable[i]->place = Place{arena, base + plan.offsets[i]};
  planning::MemoryPlan extra = arena == Arena::workspace ? plan : planning::planMemory(scratches);
  base = add(Arena::workspace, extra);
  for (size_t i = 0; i < scratchSteps.size(); ++i)
    scratch[scratchSteps[i]] = base + extra.offsets[firstScratch + i];
  annotate();
}

void EntryPlan::annotate() {
  MLIRContext *context = function.getContext();
  auto attribute = [&](Place place) {
    return kernel::PlaceAttr::get(context, place.arena, place.offset);
  };
  // All at once: setting one argument's attribute makes the list of all anew.
  auto withPlace = [&](DictionaryAttr attributes, Place place) {
    NamedAttrList list(attributes);
    list.set("kernel.place", attribute(place));
    return list.getDictionary(context);
  };
  SmallVector<DictionaryAttr> arguments, results;
  for (BlockArgument argument : function.getArguments())
    arguments.push_back(withPlace(function.getArgAttrDict(argument.getArgNumber()),
                                  *storages[storageOf[argument]].place));
  function.setAllArgAttrs(arguments);
  for (auto step : block.getOps<kernel::StepOpInterface>()) {
    SmallVector<Attribute> places;
    for (Value result : step->getResults())
      places.push_back(attribute(*storages[storageOf[result]].place));
    auto own = scratch.find(step);
    step.setPlaces(places, own == scratch.end() ? kernel::PlaceAttr()
                                                : attribute({Arena::workspace, own->second}));
  }
  for (auto [i, value] : llvm::enumerate(block.getTerminator()->getOperands())) {
    auto known = storageOf.find(value);
    DictionaryAttr attributes = function.getResultAttrDict(i);
    results.push_back(known == storageOf.end()
                          ? DictionaryAttr::get(context, attributes ? attributes.getValue()
                                                                    : ArrayRef<NamedAttribute>())
                          : withPlace(attributes, *storages[known->second].place));
  }
  function.setAllResultAttrs(results);
}

/// Tables of constants, equal ones once.
void placeConstants(ModuleOp module, Totals &totals) {
  DenseMap<Attribute, int64_t> offsets;
  int64_t bytes = 0;
  MLIRContext *context = module.getContext();
  module.walk([&](nn::ConstantOp op) {
    if (op->use_empty())
      return;
    auto [entry, isNew] = offsets.try_emplace(op.getValue(), bytes);
    if (isNew)
      bytes += alignedBytes(bytesOf(op.getResult().getType()));
    op->setAttr("places", ArrayAttr::get(context, {kernel::PlaceAttr::get(context, Arena::constants,
                                                                          entry->second)}));
  });
  totals.bytes[int(Arena::constants)] = totals.lowerBound[int(Arena::constants)] = bytes;
}

struct PlanMemory : ModulePass<PlanMemory> {
  static constexpr StringLiteral flag = "plan-memory";
  static constexpr StringLiteral description =
      "Give every tensor of the entry functions a place in one of the arenas";

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTableCollection symbols;
    FixedPlaces fixed(module);
    Totals totals;
    for (auto function : module.getOps<func::FuncOp>())
      if (gradientsAreActivations(module) && !function.isDeclaration())
        formGradientBuckets(function);
    std::vector<EntryPlan> plans;
    for (bool ofChunks : {false, true}) // whose passed tensors lie after what the others pin
      for (auto function : module.getOps<func::FuncOp>())
        if (!function.isDeclaration() && bool(train::chunkOf(function)) == ofChunks)
          plans.emplace_back(function, fixed, symbols);
    for (EntryPlan &plan : plans)
      plan.placeArguments();
    for (EntryPlan &plan : plans) {
      if (failed(plan.joinTensors()))
        return signalPassFailure();
      plan.placeRest(totals);
    }
    placeConstants(module, totals);
    fixed.addTo(totals);
    if (updatesInBackward(module))
      totals.bytes[int(Arena::gradients)] = totals.lowerBound[int(Arena::gradients)] = 0;
    if (gathersGradients(module)) {
      const int64_t room = alignedBytes(fixed.pinnedBytes(Arena::activations)) +
                           alignedBytes(totals.bytes[int(Arena::gradients)]);
      totals.makeRoom(Arena::activations, room, room);
    }
    setBytes(module, fixed, totals);
  }

  static void setBytes(ModuleOp module, FixedPlaces &fixed, Totals &totals) {
    Builder builder(module.getContext());
    module->setAttr("kernel.arena_bytes", builder.getDenseI64ArrayAttr(totals.bytes));
    if (fixed.frozenBytes() > 0)
      module->setAttr("kernel.frozen_bytes", builder.getI64IntegerAttr(fixed.frozenBytes()));
    module->setAttr("kernel.arena_lower_bound", builder.getDenseI64ArrayAttr(totals.lowerBound));
    for (auto function : module.getOps<func::FuncOp>())
      if (train::ChunkAttr chunk = train::chunkOf(function)) {
        const int64_t number = chunk.getNumber(), activations = totals.activationsOfChunk[number];
        function->setAttr("kernel.chunk_bytes",
                          builder.getDenseI64ArrayAttr({activations, fixed.slotBytes(number)}));
      }
  }
};

PassRegistration<PlanMemory> planMemoryRegistration;

} // namespace

std::unique_ptr<Pass> createPlanMemoryPass() { return std::make_unique<PlanMemory>(); }

} // namespace trainc
