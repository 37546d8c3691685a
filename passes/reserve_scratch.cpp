// SPDX-License-Identifier: Apache-2.0
//
// reserve-scratch: memory for partial results of reductions.
//
// Problem: on a device one column or one sum over everything would be the work of a
// few threads. Method: such a reduction is cut into parts (lowering/partial_results.h)
// whose results a second kernel combines in order; this pass writes into
// `scratch_bytes` what lies between the two. Weakness: a kernel of several dependent
// reductions is not cut.
#include "passes/lowering/partial_results.h"
#include "passes/passes.h"

using namespace mlir;

namespace trainc {
namespace {

struct ReserveScratch : PassWrapper<ReserveScratch, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReserveScratch)
  StringRef getArgument() const override { return "reserve-scratch"; }
  StringRef getDescription() const override {
    return "Give kernels memory for the partial results of reductions on a device";
  }
  void runOnOperation() override {
    for (auto function : getOperation().getOps<kernel::FunctionOp>())
      if (int64_t bytes = partialResults(function).bytes)
        function.setScratchBytes(bytes);
  }
};

PassRegistration<ReserveScratch> registration;

} // namespace

std::unique_ptr<Pass> createReserveScratchPass() { return std::make_unique<ReserveScratch>(); }

} // namespace trainc
