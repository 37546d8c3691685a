// SPDX-License-Identifier: Apache-2.0
//
// form-buckets: lays the parameters out in the flat arenas.
//
// Parameters, gradients and each optimizer state share one layout, so that the
// update is a flat loop and a gradient range is one collective. There are four
// runs: parameters with weight decay, without, buffers (whose new values travel like
// gradients), and frozen ones (which have no gradient and lie last). Each group of parameters with
// a rate of its own has the first two for itself. Within a run the order is that
// in which the backward pass completes the gradients (PyTorch's DistributedDataParallel buckets
// follow the same idea), so a prefix of a run is complete while the rest is computed. Known
// weakness: decaying and other parameters complete interleaved, so an overlapped all-reduce would
// need two ranges per bucket.
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/module_pass.h"
#include "passes/options/checked_pass.h"
#include "passes/passes.h"

using namespace mlir;
using namespace trainc;
using train::Run;

namespace {

constexpr int64_t kAlignedBytes = 64; // a cache line
constexpr int64_t kMostMultiple = 1 << 20;

struct Placed {
  StringAttr name;
  int64_t count;
  Run run;
  int64_t group;
  size_t completed; // rank of the gradient in the program
};

struct FormBuckets : ModulePass<FormBuckets, CheckedPass> {
  FormBuckets() = default;
  static constexpr StringLiteral flag = "form-buckets";
  static constexpr StringLiteral description =
      "order the parameters in the flat arenas by completion of their gradients";

  TextOption multiple{*this, "multiple", "n", "1",
                      "elements that each parameter begins at a multiple of"};

  void checkOptions(OptionReader &reader) const override {
    (void)reader.number("multiple", multiple, kMostMultiple);
  }

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("forward_backward");
    if (!function) {
      emitError(getOperation().getLoc(),
                "form-buckets expects a function @forward_backward; run differentiate first");
      return signalPassFailure();
    }
    const auto groups = static_cast<int64_t>(train::groupsOf(getOperation()).size()) + 1;
    llvm::StringMap<size_t> completed = completionOrder(function);
    std::vector<Placed> placed;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      train::RoleAttrInterface role = train::roleOf(function, i);
      auto parameter = dyn_cast_or_null<train::ParameterAttr>(role);
      if (!parameter && !isa_and_nonnull<train::BufferAttr>(role))
        continue;
      StringAttr name = role.getName();
      Run run = parameter ? parameter.getRun() : Run::buffer;
      int64_t count = cast<RankedTensorType>(function.getArgument(i).getType()).getNumElements();
      const int64_t group = parameter ? parameter.getGroup() : 0;
      if (group >= groups) {
        function.emitError("form-buckets: the parameter ")
            << name << " is in group " << group << ", of " << groups - 1 << " that have names";
        return signalPassFailure();
      }
      placed.push_back({name, count, run, group, completed.lookup(name.getValue())});
    }
    auto place = [groups](const Placed &parameter) {
      return std::pair(train::LayoutAttr::indexOf(parameter.run, parameter.group, groups),
                       parameter.completed);
    };
    llvm::stable_sort(placed,
                      [&](const Placed &a, const Placed &b) { return place(a) < place(b); });
    writeLayout(placed, groups);
  }

private:
  /// Position in the program of the operation that completes each gradient.
  static llvm::StringMap<size_t> completionOrder(func::FuncOp function) {
    llvm::DenseMap<Operation *, size_t> position;
    for (Operation &op : function.front())
      position.try_emplace(&op, position.size());
    llvm::StringMap<size_t> completed;
    Operation *terminator = function.front().getTerminator();
    for (unsigned i = 0; i < terminator->getNumOperands(); ++i) {
      auto gradient = train::resultRoleAs<train::GradientAttr>(function, i);
      if (!gradient)
        continue;
      Operation *producer = terminator->getOperand(i).getDefiningOp();
      completed[gradient.getName()] = producer ? position.lookup(producer) : 0;
    }
    return completed;
  }

  void writeLayout(ArrayRef<Placed> placed, int64_t groups) {
    using train::LayoutAttr;
    SmallVector<Attribute> layout;
    // Copies in 16 bits (copy-parameters) have these offsets, too.
    const bool hasCopies = train::isNarrow(train::precisionOf(getOperation()));
    OptionReader reader = silentReader();
    const int64_t own = reader.number("multiple", multiple, kMostMultiple);
    const int64_t alignment =
        std::max<int64_t>(own, kAlignedBytes / (hasCopies ? 2 : 4)); // elements
    int64_t offset = 0;
    SmallVector<int64_t> runs(groups * LayoutAttr::kTrainedRuns + LayoutAttr::kOtherRuns, 0);
    for (auto [number, parameter] : llvm::enumerate(placed)) {
      layout.push_back(train::PlacedAttr::get(&getContext(), parameter.name, parameter.run, offset,
                                              parameter.count, parameter.group));
      int64_t padded = llvm::alignTo(parameter.count, alignment);
      const int64_t run = LayoutAttr::indexOf(parameter.run, parameter.group, groups);
      const Placed *next = number + 1 < placed.size() ? &placed[number + 1] : nullptr;
      const bool isLast = !next || LayoutAttr::indexOf(next->run, next->group, groups) != run;
      if (own > 1 && isLast && runs[run] + padded == own)
        padded += own; // two rows at least: what one has is not of a row but of all
      runs[run] += padded;
      offset += padded;
    }
    auto entries = ArrayAttr::get(&getContext(), layout);
    train::setLayout(getOperation(), LayoutAttr::get(&getContext(), runs, entries));
  }
};

const PassRegistration<FormBuckets> formBucketsRegistration;

} // namespace

std::unique_ptr<Pass> trainc::createFormBucketsPass(int64_t multiple) {
  auto pass = std::make_unique<FormBuckets>();
  pass->multiple = std::to_string(multiple);
  return pass;
}
