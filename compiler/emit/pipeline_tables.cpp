// SPDX-License-Identifier: Apache-2.0
//
// Rows of the tables, in the order of runtime/pipeline.h.
#include "compiler/emit/pipeline_tables.h"
#include "compiler/emit/gradient_tables.h"
#include "dialects/elements/element_type.h"
#include "passes/sharding/gradient_buckets.h"
#include "passes/sharding/gradient_ranges.h"
#include "passes/stages/pipeline_plan.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

using namespace mlir;
using namespace trainc;

namespace {

using Rows = std::vector<std::string>;

class PipelinePrinter {
public:
  PipelinePrinter(ModuleOp module, ArrayRef<std::string> inputs, SourceWriter &writer)
      : module(module), plan(pipelinePlan(module)), inputs(inputs), writer(writer) {}

  void print() {
    for (auto [number, boundary] : llvm::enumerate(plan.boundaries))
      addBoundary(int(number), boundary);
    table("chunk_boundary", "chunk_boundaries", boundaries);
    train::PipelineAttr pipeline = train::pipelineOf(module);
    for (int chunk = 0; chunk < pipeline.chunks(); ++chunk)
      addChunk(chunk);
    table("chunk_program", "chunk_programs", chunks);
    Rows lists;
    for (int stage = 0; stage < pipeline.getStages(); ++stage)
      lists.push_back(
          table("stage_action", "actions_of_stage_" + std::to_string(stage), actionRows(stage)));
    table("action_list", "action_lists", lists);
    writer.line();
    writer.line("constexpr pipeline step_pipeline = {");
    writer.line(".stages = " + std::to_string(pipeline.getStages()) + ",");
    writer.line(".micro_batches = " + std::to_string(pipeline.getMicroBatches()) + ",");
    writer.line(".schedule = " + stringLiteral(pipeline.getSchedule().getValue()) + ",");
    writer.line(".chunks = chunk_programs,");
    writer.line(".lists = action_lists,");
    writer.line(".boundaries = chunk_boundaries,");
    writer.line(".loss_chunk = " + std::to_string(lossChunk) + ",");
    for (const std::string &line : scalars)
      writer.line(line);
    writer.line("};");
  }

private:
  /// Name of a table, which is written where it has rows.
  std::string table(StringRef type, const std::string &name, const Rows &rows) {
    if (rows.empty())
      return "{}";
    writer.line();
    writer.line(("constexpr " + type + " " + name + "[] = {").str());
    for (const std::string &row : rows)
      writer.line(row + ",");
    writer.line("};");
    return name;
  }

  static Rows tensorRows(const std::vector<CrossingTensor> &tensors) {
    Rows rows;
    for (const CrossingTensor &tensor : tensors)
      rows.push_back(llvm::formatv("{{{0}, {1}, {2}, {3}}", stringLiteral(tensor.name),
                                   tensor.from.getOffset(), tensor.to.getOffset(),
                                   bytesOf(tensor.type)));
    return rows;
  }

  void addBoundary(int number, const ChunkBoundary &boundary) {
    std::string pair = std::to_string(boundary.from) + "_to_" + std::to_string(boundary.to);
    std::string activations =
        table("crossing_tensor", "activations_" + pair, tensorRows(boundary.activations));
    std::string gradients =
        table("crossing_tensor", "gradients_" + pair, tensorRows(boundary.gradients));
    boundaries.push_back(llvm::formatv(
        "{{{0}, {1}, {2}, {3}, {4}, {5}}", boundary.from, boundary.to, activations, gradients,
        plan.schedule.activationPlaces[number], plan.schedule.gradientPlaces[number]));
  }

  Rows inputRows(int chunk) {
    std::map<int, std::string> rows; // by number
    for (train::ChunkPass pass : {train::ChunkPass::forward, train::ChunkPass::backward,
                                  train::ChunkPass::weight_gradient}) {
      func::FuncOp function = train::chunkFunction(module, pass, chunk);
      for (unsigned i = 0; function && i < function.getNumArguments(); ++i)
        if (isa_and_nonnull<train::InputAttr, train::LabelAttr>(train::roleOf(function, i))) {
          auto place = function.getArgAttrOfType<kernel::PlaceAttr>(i, "kernel.place");
          auto number = int(llvm::find(inputs, train::nameOf(function, i)) - inputs.begin());
          rows[number] = llvm::formatv("{{{0}, {1}}", number, place.getOffset());
        }
    }
    Rows texts;
    for (auto &[number, text] : rows)
      texts.push_back(text);
    return texts;
  }

  /// A range_list of the gradients that a function makes.
  std::string ranges(const std::string &name, func::FuncOp function) {
    Rows rows;
    for (ElementRange range : gradientRangesOf(function))
      rows.push_back(llvm::formatv("{{{0}, {1}}", range.begin, range.end));
    std::string list = table("element_range", name, rows);
    return rows.empty() ? list : "{" + list + ", " + std::to_string(rows.size()) + "}";
  }

  Rows actionRows(int stage) {
    Rows rows;
    for (const planning::Action &action : plan.schedule.actions[stage]) {
      bool isMessage = planning::isSend(action.kind) || planning::isReceive(action.kind);
      int slot = action.slot;
      if (isMessage)
        slot = action.microBatch % plan.schedule.stashSlots[action.chunk];
      rows.push_back(llvm::formatv("{{stage_action_kind::{0}, {1}, {2}, {3}, {4}, {5}}",
                                   sanitize(planning::nameOf(action.kind)), action.chunk,
                                   action.microBatch, slot, action.boundary,
                                   isMessage ? action.slot : -1));
    }
    return rows;
  }

  void addScalars(func::FuncOp function, int chunk) {
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      train::RoleAttrInterface role = train::resultRoleOf(function, i);
      auto place = function.getResultAttrOfType<kernel::PlaceAttr>(i, "kernel.place");
      StringRef name = isa_and_nonnull<train::LossAttr>(role)         ? "loss_offset"
                       : isa_and_nonnull<train::LossWeightAttr>(role) ? "loss_weight_offset"
                       : isa_and_nonnull<train::IndexCheckAttr>(role) ? "index_check_offset"
                                                                      : "";
      if (name.empty())
        continue;
      scalars.push_back(llvm::formatv(".{0} = {1},", name, place.getOffset()));
      if (isa<train::LossAttr>(role))
        lossChunk = chunk;
    }
  }

  void addChunk(int chunk) {
    func::FuncOp forward = train::chunkFunction(module, train::ChunkPass::forward, chunk);
    func::FuncOp backward = train::chunkFunction(module, train::ChunkPass::backward, chunk);
    func::FuncOp weights = train::chunkFunction(module, train::ChunkPass::weight_gradient, chunk);
    addScalars(forward, chunk);
    auto bytes = forward->getAttrOfType<DenseI64ArrayAttr>("kernel.chunk_bytes");
    std::string suffix = "_of_chunk_" + std::to_string(chunk);
    std::string read = table("chunk_input", "inputs" + suffix, inputRows(chunk));
    std::string first = ranges("gradients" + suffix, backward);
    std::string second = weights ? ranges("weight_gradients" + suffix, weights) : "{}";
    auto bucketsOf = [&](func::FuncOp function) {
      std::string buckets = function ? printBuckets(function, writer) : "";
      return ", " + (buckets.empty() ? "{}" : buckets);
    };
    std::string sharded;
    if (shardsGradients(module))
      sharded = bucketsOf(backward) + bucketsOf(weights);
    chunks.push_back(llvm::formatv(
        "{{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}{9}}", forward.getName(), backward.getName(),
        weights ? weights.getName() : StringRef("nullptr"), bytes[0], bytes[1],
        plan.schedule.stashSlots[chunk], read, first, second, sharded));
  }

  ModuleOp module;
  PipelinePlan plan;
  ArrayRef<std::string> inputs;
  SourceWriter &writer;
  Rows boundaries, chunks, scalars;
  int lossChunk = 0;
};

} // namespace

void trainc::printPipelineTables(ModuleOp module, ArrayRef<std::string> inputs,
                                 SourceWriter &writer) {
  if (train::pipelineOf(module))
    PipelinePrinter(module, inputs, writer).print();
}
