// SPDX-License-Identifier: Apache-2.0
//
// Executes the scalar code (scalar_code.h) of a pointwise operation over tensors.
//
// The arithmetic rule, which folding follows too: each scalar operation rounds to its own type.
// What IEEE 754 rounds correctly is computed in that type. The other functions (exp, log, tanh,
// ...) are the C library's in double, rounded once: an f32 result is within 0.501 ulp and the same
// on nearly every machine, where the trainer's own f32 functions (runtime/kernels/math.h) differ by
// the few ulp stated there. So folding at import computes everything, and simplification afterwards
// only what is exact: it must not change what a kernel would have computed. Integers are computed
// in 64 bits and wrapped to their width where a result is stored. NaN behaves as in emitted code.
// Floats out of an integer's range become the least 64-bit one, as on x86.
#pragma once

#include "dialects/nn/tensor.h"
#include "mlir/IR/Operation.h"
#include <functional>

namespace trainc::nn {

/// A register: as many elements as fit the cache together with the other registers'.
union ScalarLanes {
  static constexpr int64_t kCount = 256;
  float f32[kCount];
  double f64[kCount];
  int64_t integer[kCount]; // of every width; bool is 0 or 1
};

class ScalarProgram {
public:
  using Apply =
      std::function<void(const ScalarLanes *const *operands, ScalarLanes &result, int64_t count)>;

  /// The code of a pointwise operation or nn.cast; depends on its name and element types only.
  explicit ScalarProgram(mlir::Operation *op);

  /// True where every step is rounded correctly, so that every machine gives the same bits.
  bool isExact() const { return exact; }

  /// `type` is the result's. Null where an integer is divided by zero.
  Tensor run(llvm::ArrayRef<Tensor> operands, mlir::RankedTensorType type) const;

private:
  struct Step {
    Apply apply;
    llvm::SmallVector<unsigned, 3> operands; // numbers of registers
    unsigned result;
    bool dividesIntegers;
  };

  void addConstant(mlir::Attribute value);
  void addStep(mlir::Operation *op, llvm::ArrayRef<unsigned> operands);
  bool runLanes(std::vector<ScalarLanes> &registers, int64_t count) const;

  std::vector<mlir::Type> inputs; // element types, in registers 0, 1, ...
  std::vector<std::pair<unsigned, ScalarLanes>> constants;
  std::vector<Step> steps;
  unsigned registerCount = 0, result = 0;
  bool exact = true;
};

} // namespace trainc::nn
