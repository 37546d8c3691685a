// SPDX-License-Identifier: Apache-2.0
//
// Rows of the tables, in the order of runtime/gradient_exchange.h.
#include "compiler/emit/gradient_tables.h"
#include "dialects/kernel/kernel.h"
#include "dialects/train/train.h"
#include "passes/lowering/gradient_buckets.h"
#include "llvm/Support/FormatVariadic.h"

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

std::string trainc::printBuckets(func::FuncOp function, SourceWriter &writer) {
  const auto buckets = gradientBucketsOf(function);
  if (buckets.empty())
    return "{}";
  const std::string pieces = ("gradients_of_" + function.getName()).str();
  const std::string table = ("buckets_of_" + function.getName()).str();
  std::vector<std::string> rows;
  size_t first = 0;
  writer.line();
  writer.line("constexpr gradient_piece " + pieces + "[] = {");
  for (const GradientBucket &bucket : buckets) {
    for (unsigned result : bucket.gradients) {
      auto place = function.getResultAttrOfType<kernel::PlaceAttr>(result, "kernel.place");
      auto [begin, count] = elementsOf(function, result);
      writer.line(
          llvm::formatv("{{{0}, {{{1}, {2}}},", place.getOffset(), begin, begin + count).str());
    }
    rows.push_back(llvm::formatv("{{{0} + {1}, {2}},", pieces, first, bucket.gradients.size()));
    first += bucket.gradients.size();
  }
  writer.line("};");
  writer.line();
  writer.line("constexpr gradient_bucket " + table + "[] = {");
  for (const std::string &row : rows)
    writer.line(row);
  writer.line("};");
  return "{" + table + ", " + std::to_string(rows.size()) + "}";
}
