// SPDX-License-Identifier: Apache-2.0
//
// One matrix product as cuBLASLt runs it: descriptors and the chosen algorithm.
#pragma once

#include "runtime/cuda/products/product_geometry.h"
#include "runtime/kernels/narrow_float.h"

#include <cublasLt.h>

#include <optional>
#include <string>
#include <vector>

namespace trainc {

// What happens to the sum before it is written; matmul.h describes the functions.
enum class product_epilogue : int64_t {
  none,
  bias,
  gelu,          // with a bias where there is a vector, keeping `linear` where there is one
  gelu_gradient, // with the sum of the result where there is a vector
  sum_of_a,
  sum_of_b
};

enum class product_number : int64_t { f32, f64, bf16, f16 };
constexpr int64_t bytes_of(product_number number) {
  return number == product_number::f64 ? 8 : number == product_number::f32 ? 4 : 2;
}

template <typename T> inline constexpr product_number number_of = product_number::f32;
template <> inline constexpr product_number number_of<double> = product_number::f64;
template <> inline constexpr product_number number_of<bfloat16> = product_number::bf16;
template <> inline constexpr product_number number_of<float16> = product_number::f16;

// What tells one plan from another. Integers alone, so that it compares as bytes.
struct product_key {
  matmul_shape shape;
  product_number operands; // elements of a and b
  product_number result;   // those of c, the vector and `linear`
  int64_t adds;            // c += a b
  product_epilogue epilogue;
  int64_t alignment[5]; // a, b, c, vector, linear; 0: there is none
};

struct product_operands {
  const void *a, *b;
  void *c;
  const void *vector = nullptr; // the bias, or where a sum goes
  const void *linear = nullptr; // what GELU is applied to
};

// A library call's descriptor that is destroyed with its owner.
template <typename Handle, cublasStatus_t (*Destroy)(Handle)> class cublas_descriptor {
public:
  cublas_descriptor() = default;
  ~cublas_descriptor() {
    if (handle)
      Destroy(handle);
  }
  cublas_descriptor(const cublas_descriptor &) = delete;
  cublas_descriptor &operator=(const cublas_descriptor &) = delete;
  Handle handle = nullptr;
};

using product_descriptor = cublas_descriptor<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using layout_descriptor = cublas_descriptor<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using preference_descriptor =
    cublas_descriptor<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

// An algorithm as a word in a file of choices, and back; nothing of another word.
std::string text_of(const cublasLtMatmulAlgo_t &algorithm);
std::optional<cublasLtMatmulAlgo_t> algorithm_of(const std::string &text);

class product_plan {
public:
  product_plan(const product_key &key, bool tf32);

  const product_key &key() const { return key_; }
  const product_geometry &geometry() const { return geometry_; }
  // For messages: "matrix product 512x768x3072".
  const std::string &name() const { return name_; }
  // Everything that an algorithm may depend on, as text on one line.
  const std::string &problem() const { return problem_; }

  // The library's proposals, best first, as far as they give the same bits every time.
  std::vector<cublasLtMatmulAlgo_t> proposals(cublasLtHandle_t library, int count) const;
  // Whether the algorithm can compute this product here.
  bool accepts(cublasLtHandle_t library, const cublasLtMatmulAlgo_t &algorithm) const;
  void adopt(const cublasLtMatmulAlgo_t &algorithm) { algorithm_ = algorithm; }
  // Whether the library computes an epilogue with the product.
  bool joins_epilogue() const { return key_.epilogue != product_epilogue::none && !is_apart_; }
  // From now on the product is one without, and kernels of our own do the rest (epilogue.h).
  void part_epilogue();

  // Queues the product with the adopted algorithm, and what follows it.
  void run(cublasLtHandle_t library, const product_operands &operands, char *workspace,
           cudaStream_t stream);

private:
  void name_problem();
  void describe(const column_major_matrix &matrix, product_number number,
                layout_descriptor &layout);
  void set_epilogue();
  void set_pointers(const product_operands &operands);
  void run_once(cublasLtHandle_t library, const char *a, const char *b, char *c, char *workspace,
                cudaStream_t stream);
  void run_loops(cublasLtHandle_t library, size_t depth, const char *a, const char *b, char *c,
                 char *workspace, cudaStream_t stream);
  template <typename T> void set(cublasLtMatmulDescAttributes_t attribute, const T &value);

  product_key key_;
  product_geometry geometry_;
  bool tf32_, is_apart_ = false;
  std::string name_, problem_;
  product_descriptor product_;
  layout_descriptor left_, right_, result_;
  cublasLtMatmulAlgo_t algorithm_ = {};
};

} // namespace trainc
