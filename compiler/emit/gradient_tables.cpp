// SPDX-License-Identifier: Apache-2.0
//
// Rows of the tables, in the order of runtime/gradient_exchange.h.
#include "compiler/emit/gradient_tables.h"
#include "dialects/elements/element_type.h"
#include "dialects/kernel/kernel.h"
#include "dialects/train/train.h"
#include "passes/sharding/gradient_buckets.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

using namespace mlir;
using namespace trainc;

/// First element and number of elements of the gradients arena.
static std::pair<int64_t, int64_t> elementsOf(func::FuncOp function, unsigned result) {
  train::LayoutAttr layout = train::layoutOf(function->getParentOfType<ModuleOp>());
  train::RoleAttrInterface role = train::resultRoleOf(function, result);
  if (isa<train::StepTotalsAttr>(role))
    return {layout.summedElements(), train::kStepTotals};
  for (train::PlacedAttr placed : layout.placed())
    if (placed.getName() == role.getName())
      return {placed.getOffset(), placed.getCount()};
  return {0, 0};
}

namespace {

struct Piece {
  int64_t offset, begin, end; // bytes of its arena, elements of the gradients arena
};

} // namespace

static kernel::PlaceAttr placeOf(func::FuncOp function, unsigned result) {
  return function.getResultAttrOfType<kernel::PlaceAttr>(result, "kernel.place");
}

static SmallVector<Piece> piecesOf(func::FuncOp function, const GradientBucket &bucket) {
  SmallVector<Piece> pieces;
  for (unsigned result : bucket.gradients) {
    auto [begin, count] = elementsOf(function, result);
    pieces.push_back({placeOf(function, result).getOffset(), begin, begin + count});
  }
  return pieces;
}

/// Where the bucket's gradients lie in their arena, each with what lies before the next: all
/// buckets together are the whole arena. Neighbours are one piece.
static SmallVector<Piece> piecesOfArena(func::FuncOp function, const GradientBucket &bucket,
                                        const std::map<int64_t, int64_t> &ends, int64_t width) {
  SmallVector<Piece> pieces, joined;
  for (unsigned result : bucket.gradients) {
    auto at = ends.find(placeOf(function, result).getOffset());
    const int64_t begin = at == ends.begin() ? 0 : at->first;
    pieces.push_back({begin, begin / width, at->second / width});
  }
  llvm::sort(pieces, [](const Piece &a, const Piece &b) { return a.begin < b.begin; });
  for (const Piece &piece : pieces)
    if (!joined.empty() && joined.back().end == piece.begin)
      joined.back().end = piece.end;
    else
      joined.push_back(piece);
  return joined;
}

static std::vector<SmallVector<Piece>> tableOf(func::FuncOp function) {
  const auto buckets = bucketsToldBy(function);
  std::vector<SmallVector<Piece>> table;
  auto module = function->getParentOfType<ModuleOp>();
  if (gradientsAreActivations(module)) {
    for (const GradientBucket &bucket : buckets)
      table.push_back(piecesOf(function, bucket));
    return table;
  }
  std::map<int64_t, int64_t> ends; // of what begins at so many bytes
  for (const GradientBucket &bucket : buckets)
    for (unsigned result : bucket.gradients)
      ends[placeOf(function, result).getOffset()] = 0;
  auto bytes = module->getAttrOfType<DenseI64ArrayAttr>("kernel.arena_bytes");
  for (auto at = ends.begin(); at != ends.end(); ++at)
    at->second = std::next(at) == ends.end() ? bytes[size_t(kernel::Arena::gradients)]
                                             : std::next(at)->first;
  for (const GradientBucket &bucket : buckets) {
    auto result = function.getResultTypes()[bucket.gradients.front()];
    const int64_t width = bytesOf(result) / cast<RankedTensorType>(result).getNumElements();
    table.push_back(piecesOfArena(function, bucket, ends, width));
  }
  return table;
}

std::string trainc::printBuckets(func::FuncOp function, SourceWriter &writer) {
  const auto buckets = tableOf(function);
  if (buckets.empty())
    return "";
  const std::string pieces = ("gradients_of_" + function.getName()).str();
  std::string table = ("buckets_of_" + function.getName()).str();
  std::vector<std::string> rows;
  size_t first = 0;
  writer.line();
  writer.line("constexpr gradient_piece " + pieces + "[] = {");
  for (const SmallVector<Piece> &bucket : buckets) {
    for (const Piece &piece : bucket)
      writer.line(
          llvm::formatv("{{{0}, {{{1}, {2}}},", piece.offset, piece.begin, piece.end).str());
    rows.push_back(llvm::formatv("{{{0} + {1}, {2}},", pieces, first, bucket.size()));
    first += bucket.size();
  }
  writer.line("};");
  writer.line();
  writer.line("constexpr gradient_bucket " + table + "[] = {");
  for (const std::string &row : rows)
    writer.line(row);
  writer.line("};");
  return table;
}
