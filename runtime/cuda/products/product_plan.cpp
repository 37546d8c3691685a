// SPDX-License-Identifier: Apache-2.0
//
// Descriptors of a matrix product, the library's proposals for it, and its call.
#include "runtime/cuda/products/product_plan.h"

#include "runtime/cuda/errors.h"
#include "runtime/cuda/products/epilogue.h"
#include "runtime/cuda/products/matmul.h"
#include "runtime/failure.h"
#include "runtime/kernels/matrix_storage.h"

namespace trainc {
namespace {

void check_cublas(cublasStatus_t status, const char *operation) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw failure(exit_machine, format_text("%s: cuBLASLt reports: %s", operation,
                                            cublasLtGetStatusString(status)));
}

const char *epilogue_name(product_epilogue epilogue) {
  switch (epilogue) {
  case product_epilogue::none:
    return "none";
  case product_epilogue::bias:
    return "bias";
  case product_epilogue::gelu:
    return "gelu";
  case product_epilogue::gelu_gradient:
    return "gelu_gradient";
  case product_epilogue::sum_of_a:
    return "sum_of_a";
  case product_epilogue::sum_of_b:
    return "sum_of_b";
  }
  return "";
}

cudaDataType library_type(product_number number) {
  switch (number) {
  case product_number::f64:
    return CUDA_R_64F;
  case product_number::f32:
    return CUDA_R_32F;
  case product_number::bf16:
    return CUDA_R_16BF;
  case product_number::f16:
    return CUDA_R_16F;
  }
  return CUDA_R_32F;
}

cublasComputeType_t library_compute(product_number operands, bool tf32) {
  if (operands == product_number::f64)
    return CUBLAS_COMPUTE_64F;
  return operands == product_number::f32 && tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                 : CUBLAS_COMPUTE_32F;
}

// In the file of choices.
std::string math_name(const product_key &key, bool tf32) {
  if (key.operands == product_number::f64)
    return "f64";
  if (key.operands == product_number::f32)
    return tf32 ? "tf32" : "f32";
  const std::string name = key.operands == product_number::bf16 ? "bf16" : "f16";
  return key.result == product_number::f32 ? name + " to f32" : name;
}

cublasLtEpilogue_t library_epilogue(const product_key &key, bool swapped) {
  const bool vector = key.alignment[3] != 0, linear = key.alignment[4] != 0;
  switch (key.epilogue) {
  case product_epilogue::none:
    return CUBLASLT_EPILOGUE_DEFAULT;
  case product_epilogue::bias:
    return CUBLASLT_EPILOGUE_BIAS;
  case product_epilogue::gelu:
    if (linear)
      return vector ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    return vector ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  case product_epilogue::gelu_gradient:
    return vector ? CUBLASLT_EPILOGUE_DGELU_BGRAD : CUBLASLT_EPILOGUE_DGELU;
  case product_epilogue::sum_of_a:
    return swapped ? CUBLASLT_EPILOGUE_BGRADB : CUBLASLT_EPILOGUE_BGRADA;
  case product_epilogue::sum_of_b:
    return swapped ? CUBLASLT_EPILOGUE_BGRADA : CUBLASLT_EPILOGUE_BGRADB;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

} // namespace

std::string text_of(const cublasLtMatmulAlgo_t &algorithm) {
  std::string text;
  for (uint64_t word : algorithm.data)
    text += format_text("%016llx", static_cast<unsigned long long>(word));
  return text;
}

std::optional<cublasLtMatmulAlgo_t> algorithm_of(const std::string &text) {
  constexpr size_t digits = 16;
  cublasLtMatmulAlgo_t algorithm = {};
  if (text.size() != digits * std::size(algorithm.data) ||
      text.find_first_not_of("0123456789abcdef") != std::string::npos)
    return std::nullopt;
  for (size_t i = 0; i < std::size(algorithm.data); ++i)
    algorithm.data[i] = std::stoull(text.substr(i * digits, digits), nullptr, 16);
  return algorithm;
}

product_plan::product_plan(const product_key &key, bool tf32)
    : key_(key), geometry_(geometry_of(key.shape)), tf32_(tf32) {
  const matmul_shape &shape = key.shape;
  name_ = format_text("matrix product %ldx%ldx%ld", static_cast<long>(shape.m),
                      static_cast<long>(shape.n), static_cast<long>(shape.k));
  name_problem();

  const cudaDataType scale = key.operands == product_number::f64 ? CUDA_R_64F : CUDA_R_32F;
  check_cublas(
      cublasLtMatmulDescCreate(&product_.handle, library_compute(key.operands, tf32), scale),
      name_.c_str());
  set(CUBLASLT_MATMUL_DESC_TRANSA, geometry_.left.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, geometry_.right.transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
  describe(geometry_.left, key.operands, left_);
  describe(geometry_.right, key.operands, right_);
  describe(geometry_.result, key.result, result_);
  set_epilogue();
}

void product_plan::name_problem() {
  problem_ = math_name(key_, tf32_) + (key_.adds ? " add " : " set ") + geometry_text(geometry_) +
             " epilogue " + epilogue_name(is_apart_ ? product_epilogue::none : key_.epilogue) +
             " aligned";
  for (int64_t alignment : key_.alignment)
    problem_ += " " + std::to_string(alignment);
}

void product_plan::part_epilogue() {
  is_apart_ = true;
  name_problem();
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);
  const void *nothing = nullptr;
  set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, nothing);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, nothing);
  check_cuda(find_epilogue_kernels(), "loading of the kernels that follow a matrix product");
}

template <typename T>
void product_plan::set(cublasLtMatmulDescAttributes_t attribute, const T &value) {
  check_cublas(cublasLtMatmulDescSetAttribute(product_.handle, attribute, &value, sizeof value),
               name_.c_str());
}

void product_plan::describe(const column_major_matrix &matrix, product_number number,
                            layout_descriptor &layout) {
  check_cublas(cublasLtMatrixLayoutCreate(&layout.handle, library_type(number),
                                          static_cast<uint64_t>(matrix.rows),
                                          static_cast<uint64_t>(matrix.columns), matrix.leading),
               name_.c_str());
  const auto count = static_cast<int32_t>(geometry_.batch);
  check_cublas(cublasLtMatrixLayoutSetAttribute(layout.handle, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                &count, sizeof count),
               name_.c_str());
  check_cublas(cublasLtMatrixLayoutSetAttribute(layout.handle,
                                                CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                &matrix.batch_stride, sizeof matrix.batch_stride),
               name_.c_str());
}

void product_plan::set_epilogue() {
  if (key_.epilogue == product_epilogue::none)
    return;
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, library_epilogue(key_, geometry_.swapped));
  if (key_.alignment[4] != 0)
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, geometry_.result.rows);
  // The library judges the alignment by the address, which it does not follow yet.
  product_operands operands = {};
  operands.vector = reinterpret_cast<const void *>(key_.alignment[3]);
  operands.linear = reinterpret_cast<const void *>(key_.alignment[4]);
  set_pointers(operands);
}

void product_plan::set_pointers(const product_operands &operands) {
  if (operands.vector)
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.vector);
  if (operands.linear)
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.linear);
}

std::vector<cublasLtMatmulAlgo_t> product_plan::proposals(cublasLtHandle_t library,
                                                          int count) const {
  preference_descriptor preference;
  check_cublas(cublasLtMatmulPreferenceCreate(&preference.handle), name_.c_str());
  auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    check_cublas(
        cublasLtMatmulPreferenceSetAttribute(preference.handle, attribute, &value, sizeof value),
        name_.c_str());
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(product_workspace_bytes));
  // A sum cut along k must be put together in a fixed order: by a step of its own,
  // not by whichever block is done first; and in f32, also where the result is narrower.
  const bool rounds = bytes_of(key_.result) == 2;
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE |
                               (rounds ? 0 : CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)));
  const int left = geometry_.swapped ? 1 : 0;
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, static_cast<uint32_t>(key_.alignment[left]));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
         static_cast<uint32_t>(key_.alignment[1 - left]));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, static_cast<uint32_t>(key_.alignment[2]));
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, static_cast<uint32_t>(key_.alignment[2]));

  std::vector<cublasLtMatmulHeuristicResult_t> results(static_cast<size_t>(count));
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      library, product_.handle, left_.handle, right_.handle, result_.handle, result_.handle,
      preference.handle, count, results.data(), &found);
  if (status != CUBLAS_STATUS_NOT_SUPPORTED)
    check_cublas(status, name_.c_str());
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (int i = 0; i < found; ++i)
    if (results[static_cast<size_t>(i)].state == CUBLAS_STATUS_SUCCESS)
      algorithms.push_back(results[static_cast<size_t>(i)].algo);
  return algorithms;
}

bool product_plan::accepts(cublasLtHandle_t library, const cublasLtMatmulAlgo_t &algorithm) const {
  cublasLtMatmulHeuristicResult_t result = {};
  const cublasStatus_t status =
      cublasLtMatmulAlgoCheck(library, product_.handle, left_.handle, right_.handle, result_.handle,
                              result_.handle, &algorithm, &result);
  return status == CUBLAS_STATUS_SUCCESS &&
         result.workspaceSize <= static_cast<size_t>(product_workspace_bytes);
}

void product_plan::run(cublasLtHandle_t library, const product_operands &operands, char *workspace,
                       cudaStream_t stream) {
  if (joins_epilogue())
    set_pointers(operands);
  const matmul_shape &shape = key_.shape;
  const int64_t bytes = bytes_of(key_.operands), result_bytes = bytes_of(key_.result);
  run_loops(library, 0, static_cast<const char *>(operands.a) + shape.a.offset * bytes,
            static_cast<const char *>(operands.b) + shape.b.offset * bytes,
            static_cast<char *>(operands.c) + shape.c.offset * result_bytes, workspace, stream);
  if (is_apart_)
    queue_epilogue(key_, operands, workspace);
}

void product_plan::run_loops(cublasLtHandle_t library, size_t depth, const char *a, const char *b,
                             char *c, char *workspace, cudaStream_t stream) {
  if (depth == geometry_.loops.size())
    return run_once(library, a, b, c, workspace, stream);
  const batch_loop &loop = geometry_.loops[depth];
  const int64_t bytes = bytes_of(key_.operands), result_bytes = bytes_of(key_.result);
  for (int64_t i = 0; i < loop.size; ++i)
    run_loops(library, depth + 1, a + i * loop.a_stride * bytes, b + i * loop.b_stride * bytes,
              c + i * loop.c_stride * result_bytes, workspace, stream);
}

void product_plan::run_once(cublasLtHandle_t library, const char *a, const char *b, char *c,
                            char *workspace, cudaStream_t stream) {
  const double one = 1, beta = key_.adds ? 1 : 0;
  const float one_f32 = 1, beta_f32 = key_.adds ? 1 : 0;
  const bool is_double = key_.operands == product_number::f64;
  const void *scale_product = is_double ? static_cast<const void *>(&one) : &one_f32;
  const void *scale_before = is_double ? static_cast<const void *>(&beta) : &beta_f32;
  const char *left = geometry_.swapped ? b : a, *right = geometry_.swapped ? a : b;
  check_cublas(cublasLtMatmul(library, product_.handle, scale_product, left, left_.handle, right,
                              right_.handle, scale_before, c, result_.handle, c, result_.handle,
                              &algorithm_, workspace, static_cast<size_t>(product_workspace_bytes),
                              stream),
               name_.c_str());
}

} // namespace trainc
