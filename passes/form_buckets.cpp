// SPDX-License-Identifier: Apache-2.0
//
// form-buckets: lays the parameters out in the flat arenas.
//
// Parameters, gradients and each optimizer state share one layout, so that the
// update is a flat loop and a gradient range is one collective. There are three
// runs: parameters with weight decay, without, and frozen ones (which have no
// gradient and lie last). Within a run the order is that in which the backward
// pass completes the gradients (PyTorch's DistributedDataParallel buckets follow
// the same idea), so a prefix of a run is complete while the rest is computed.
// Known weakness: decaying and other parameters complete interleaved, so an
// overlapped all-reduce would need two ranges per bucket.
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/passes.h"

using namespace mlir;

namespace {

constexpr int64_t kAlignment = 16; // elements: 64 bytes of f32, a cache line

struct Placed {
  StringAttr name;
  int64_t count;
  int run;          // 0 decaying, 1 not decaying, 2 frozen
  size_t completed; // rank of the gradient in the program
};

struct FormBuckets : PassWrapper<FormBuckets, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FormBuckets)
  StringRef getArgument() const override { return "form-buckets"; }
  StringRef getDescription() const override {
    return "order the parameters in the flat arenas by completion of their gradients";
  }

  void runOnOperation() override {
    auto function = getOperation().lookupSymbol<func::FuncOp>("forward_backward");
    if (!function) {
      getOperation().emitError(
          "form-buckets expects a function @forward_backward; run differentiate first");
      return signalPassFailure();
    }
    llvm::StringMap<size_t> completed = completionOrder(function);
    std::vector<Placed> placed;
    for (unsigned i = 0; i < function.getNumArguments(); ++i) {
      auto kind = function.getArgAttrOfType<StringAttr>(i, "train.kind");
      if (!kind || kind.getValue() != "parameter")
        continue;
      auto name = function.getArgAttrOfType<StringAttr>(i, "train.name");
      int run = function.getArgAttr(i, "train.frozen")  ? 2
                : function.getArgAttr(i, "train.decay") ? 0
                                                        : 1;
      int64_t count = cast<RankedTensorType>(function.getArgument(i).getType()).getNumElements();
      placed.push_back({name, count, run, completed.lookup(name.getValue())});
    }
    llvm::stable_sort(placed, [](const Placed &a, const Placed &b) {
      return std::tie(a.run, a.completed) < std::tie(b.run, b.completed);
    });
    writeLayout(placed);
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
      auto kind = function.getResultAttrOfType<StringAttr>(i, "train.kind");
      if (!kind || kind.getValue() != "gradient")
        continue;
      Operation *producer = terminator->getOperand(i).getDefiningOp();
      completed[function.getResultAttrOfType<StringAttr>(i, "train.name").getValue()] =
          producer ? position.lookup(producer) : 0;
    }
    return completed;
  }

  void writeLayout(ArrayRef<Placed> placed) {
    Builder builder(&getContext());
    SmallVector<Attribute> layout;
    int64_t offset = 0, runs[3] = {0, 0, 0};
    for (const Placed &parameter : placed) {
      layout.push_back(builder.getDictionaryAttr({
          builder.getNamedAttr("name", parameter.name),
          builder.getNamedAttr("offset", builder.getI64IntegerAttr(offset)),
          builder.getNamedAttr("count", builder.getI64IntegerAttr(parameter.count)),
          builder.getNamedAttr("decay", builder.getBoolAttr(parameter.run == 0)),
          builder.getNamedAttr("frozen", builder.getBoolAttr(parameter.run == 2)),
      }));
      int64_t padded = llvm::alignTo(parameter.count, kAlignment);
      runs[parameter.run] += padded;
      offset += padded;
    }
    getOperation()->setAttr("train.layout", builder.getArrayAttr(layout));
    getOperation()->setAttr("train.runs", builder.getDenseI64ArrayAttr(runs));
  }
};

const PassRegistration<FormBuckets> registration;

} // namespace

std::unique_ptr<Pass> trainc::createFormBucketsPass() { return std::make_unique<FormBuckets>(); }
