// SPDX-License-Identifier: Apache-2.0
//
// Messages follow from the names that results and arguments share (pipeline_plan.h); the schedule
// is proved before anybody uses it.
#include "passes/stages/pipeline_plan.h"
#include "dialects/elements/element_type.h"
#include "dialects/errors/internal_error.h"
#include "passes/planning/schedule_proof.h"
#include "llvm/ADT/StringMap.h"
#include <map>

using namespace mlir;

namespace trainc {

int64_t ChunkBoundary::bytes() const {
  int64_t bytes = 0;
  for (const std::vector<CrossingTensor> *tensors : {&activations, &gradients})
    for (const CrossingTensor &tensor : *tensors)
      bytes += bytesOf(tensor.type);
  return bytes;
}

namespace {

struct Maker {
  int chunk;
  kernel::PlaceAttr place;
};

/// By name, what the functions of one pass make for others.
template <typename Role> llvm::StringMap<Maker> makersOf(ModuleOp module, train::ChunkPass pass) {
  llvm::StringMap<Maker> makers;
  for (auto function : module.getOps<func::FuncOp>()) {
    train::ChunkAttr chunk = train::chunkOf(function);
    if (!chunk || chunk.getChunkPass() != pass)
      continue;
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (train::resultRoleAs<Role>(function, i))
        makers[train::resultNameOf(function, i)] = {
            int(chunk.getNumber()),
            function.getResultAttrOfType<kernel::PlaceAttr>(i, "kernel.place")};
  }
  return makers;
}

/// Calls found(maker, tensor, reader's chunk) for what the functions of one pass read of others.
template <typename Role, typename Found>
void findReads(ModuleOp module, train::ChunkPass pass, Found found) {
  llvm::StringMap<Maker> makers = makersOf<Role>(module, pass);
  for (auto function : module.getOps<func::FuncOp>()) {
    train::ChunkAttr chunk = train::chunkOf(function);
    if (!chunk || chunk.getChunkPass() != pass)
      continue;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (train::roleAs<Role>(function, i)) {
        StringRef name = train::nameOf(function, i);
        auto maker = makers.find(name);
        check(maker != makers.end(), function, "nobody makes '" + name + "'");
        found(maker->second.chunk,
              CrossingTensor{name.str(), cast<RankedTensorType>(function.getArgument(i).getType()),
                             maker->second.place,
                             function.getArgAttrOfType<kernel::PlaceAttr>(i, "kernel.place")},
              int(chunk.getNumber()));
      }
  }
}

} // namespace

PipelinePlan pipelinePlan(ModuleOp module) {
  std::map<std::pair<int, int>, ChunkBoundary> boundaries;
  auto boundary = [&](int from, int to) -> ChunkBoundary & {
    ChunkBoundary &found = boundaries[{from, to}];
    found.from = from;
    found.to = to;
    return found;
  };
  findReads<train::KeptAttr>(module, train::ChunkPass::forward,
                             [&](int maker, CrossingTensor tensor, int reader) {
                               boundary(maker, reader).activations.push_back(std::move(tensor));
                             });
  findReads<train::PassedAttr>(module, train::ChunkPass::backward,
                               [&](int maker, CrossingTensor tensor, int reader) {
                                 boundary(reader, maker).gradients.push_back(std::move(tensor));
                               });
  train::PipelineAttr described = train::pipelineOf(module);
  planning::Pipeline pipeline;
  pipeline.stages = int(described.getStages());
  pipeline.chunksPerStage = int(described.getChunksPerStage());
  pipeline.microBatches = int(described.getMicroBatches());
  PipelinePlan plan;
  for (auto &[chunks, found] : boundaries) {
    pipeline.boundaries.push_back({found.from, found.to});
    plan.boundaries.push_back(std::move(found));
  }
  auto kind = planning::scheduleKind(described.getSchedule().getValue());
  check(kind && planning::unfit(*kind, pipeline).empty(), module, "the schedule does not fit");
  plan.schedule = planning::makeSchedule(*kind, pipeline);
  for (const std::string &fault : planning::faultsOf(plan.schedule, 1))
    internalError(module, "the schedule cannot run: " + fault);
  return plan;
}

} // namespace trainc
