// SPDX-License-Identifier: Apache-2.0
//
// Which inputs index tables, and how far: the loader checks every index that comes from data, so
// an index must reach its table unchanged.
#include "compiler/onnx/importer.h"
#include "dialects/names/node_name.h"
#include "dialects/nn/nn.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace llvm;
using namespace mlir;

namespace trainc::reader {

// The arguments that `index` takes its elements from; false where arithmetic is in between.
static bool sourcesOf(Value index, SmallVectorImpl<BlockArgument> &sources) {
  if (auto argument = dyn_cast<BlockArgument>(index)) {
    sources.push_back(argument);
    return true;
  }
  Operation *operation = index.getDefiningOp();
  if (isa<nn::ConstantOp, nn::IotaOp>(operation))
    return true;
  if (!isa<nn::CastOp, nn::ReshapeOp, nn::BroadcastOp, nn::SliceOp, nn::TransposeOp, nn::ConcatOp,
           nn::ReverseOp>(operation))
    return false;
  return all_of(operation->getOperands(),
                [&](Value operand) { return sourcesOf(operand, sources); });
}

static void setBound(func::FuncOp function, BlockArgument argument, int64_t rows,
                     std::optional<int64_t> ignored) {
  unsigned index = argument.getArgNumber();
  if (auto input = train::roleAs<train::InputAttr>(function, index))
    train::setRole(function, index,
                   train::InputAttr::get(function.getContext(), input.getName(),
                                         std::min(input.getIndexBound().value_or(rows), rows),
                                         ignored ? ignored : input.getIgnoreIndex()));
}

bool boundIndices(ModuleOp module, const ModelFile &file, Report &report) {
  bool good = true;
  auto bound = [&](func::FuncOp function, Operation *user, Value index, int64_t rows,
                   std::optional<int64_t> ignored) {
    SmallVector<BlockArgument> sources;
    if (!sourcesOf(index, sources)) {
      good = succeeded(report.error(
          ExitCode::unsupportedModel, subjectAt(file.path(), user->getLoc()),
          "indices are computed from the data, so they cannot be checked against the table's " +
              Twine(rows) + " rows",
          "an input of the model that holds the indices themselves"));
    }
    for (BlockArgument source : sources)
      setBound(function, source, rows, ignored);
  };
  module.walk([&](func::FuncOp function) {
    function.walk([&](nn::GatherOp gather) {
      bound(function, gather, gather.getIndices(), nn::tensorType(gather.getTable()).getDimSize(0),
            std::nullopt);
    });
    function.walk([&](nn::CrossEntropyOp loss) {
      std::optional<uint64_t> ignored = loss.getIgnoreIndex();
      bound(function, loss, loss.getLabels(), nn::tensorType(loss.getLogits()).getShape().back(),
            ignored ? std::optional<int64_t>(*ignored) : std::nullopt);
    });
  });
  return good;
}

} // namespace trainc::reader
