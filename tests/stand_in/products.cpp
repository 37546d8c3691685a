// SPDX-License-Identifier: Apache-2.0
//
// Matrix products for cuBLASLt's callers: f32 through oneDNN on one thread, f64 by a
// plain loop, bf16 and f16 as f32 whose result is rounded. Every byte that a product touches is
// checked as a kernel's would be.
#include "products.h"
#include "memory.h"
#include "numbers.h"
#include "operations.h"
#include "report.h"

#include <cmath>
#include <cstring>
#include <dnnl.h>
#include <omp.h>
#include <string>
#include <vector>

namespace trainc::stand_in {

namespace {

// A matrix of one batch entry as rows of contiguous elements: `transposed` where the
// rows of these are the columns of the operand.
struct operand {
  const char *data;
  int64_t lines, elements, leading; // lines of elements each
  bool transposed;
};

char *entry(const char *data, const cublasLtMatrixDescription &layout, int64_t batch) {
  if (layout.batch_mode == CUBLASLT_BATCH_MODE_STRIDED)
    return const_cast<char *>(data) + batch * layout.batch_stride * size_of(layout.type);
  const char *pointer = data + batch * static_cast<int64_t>(sizeof(char *));
  read_range(pointer, sizeof(char *), "an array of matrix addresses");
  char *address;
  std::memcpy(&address, pointer, sizeof address);
  return address;
}

operand stored(const char *data, const cublasLtMatrixDescription &layout, bool transposed) {
  const auto rows = static_cast<int64_t>(layout.rows),
             columns = static_cast<int64_t>(layout.columns);
  if (layout.order == CUBLASLT_ORDER_ROW)
    return {data, rows, columns, layout.leading, transposed};
  return {data, columns, rows, layout.leading, !transposed};
}

template <typename Visit> void each_line(const operand &m, int64_t size, Visit visit) {
  if (m.leading == m.elements)
    return visit(m.data, static_cast<size_t>(m.lines * m.elements * size));
  for (int64_t i = 0; i < m.lines; ++i)
    visit(m.data + i * m.leading * size, static_cast<size_t>(m.elements * size));
}

void read_matrix(const operand &m, int64_t size, const char *what) {
  each_line(m, size, [&](const char *line, size_t bytes) { read_range(line, bytes, what); });
}

// Also refuses a result over what the product has just read.
void write_matrix(const operand &m, int64_t size, const char *what) {
  each_line(m, size, [&](const char *line, size_t bytes) {
    write_range(const_cast<char *>(line), bytes, what);
  });
}

void refuse_overlap(const operand &d, int64_t size) {
  each_line(d, size, [&](const char *line, size_t bytes) {
    if (!is_allocated(line, bytes))
      return; // write_matrix says so
    const size_t first = (reinterpret_cast<uintptr_t>(line) - device_region.base) / 4;
    for (size_t word = first; word < first + bytes / 4; ++word)
      if (device_region.words[word].read == current.now)
        fail(current_operation(),
             "the result overlaps an operand, at " + describe_device(line + (word - first) * 4));
  });
}

struct narrow_type {
  float (*widened)(uint16_t);
  uint16_t (*rounded)(float);
};

// Elements of an operand, one line after the other, each as `number` makes it.
template <typename T> std::vector<float> each(const operand &m, float (*number)(T)) {
  std::vector<float> result;
  const auto *data = reinterpret_cast<const T *>(m.data);
  for (int64_t i = 0; i < m.lines; ++i)
    for (int64_t j = 0; j < m.elements; ++j)
      result.push_back(number(data[i * m.leading + j]));
  return result;
}

// Such elements in the operand's place.
operand packed(const operand &m, const std::vector<float> &elements) {
  return {reinterpret_cast<const char *>(elements.data()), m.lines, m.elements, m.elements,
          m.transposed};
}

struct sizes {
  int64_t rows, columns, k; // of the result as lines of contiguous elements
};

void multiply_f32(const sizes &s, operand left, operand right, const operand &d, float alpha,
                  float beta, bool tf32) {
  std::vector<float> rounded_left, rounded_right;
  if (tf32) {
    rounded_left = each(left, rounded_to_tf32);
    rounded_right = each(right, rounded_to_tf32);
    left = packed(left, rounded_left);
    right = packed(right, rounded_right);
  }
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);
  const dnnl_status_t status =
      dnnl_sgemm(left.transposed ? 'T' : 'N', right.transposed ? 'T' : 'N', s.rows, s.columns, s.k,
                 alpha, reinterpret_cast<const float *>(left.data), left.leading,
                 reinterpret_cast<const float *>(right.data), right.leading, beta,
                 reinterpret_cast<float *>(const_cast<char *>(d.data)), d.leading);
  omp_set_num_threads(threads);
  if (status != dnnl_success)
    fail(current_operation(), "oneDNN refuses the product");
}

void multiply_narrow(const narrow_type &type, const sizes &s, const operand &left,
                     const operand &right, const operand &d, float alpha, float beta) {
  const std::vector<float> wide_left = each(left, type.widened),
                           wide_right = each(right, type.widened);
  multiply_f32(s, packed(left, wide_left), packed(right, wide_right), d, alpha, beta, false);
}

// A result that is rounded after the epilogue, in f32 up to then.
std::vector<float> in_f32(const operand &d, const narrow_type &type, float beta) {
  if (beta == 0) // nothing is read
    return std::vector<float>(static_cast<size_t>(d.lines * d.elements));
  return each(d, type.widened);
}

void round_result(const operand &d, const narrow_type &type, const std::vector<float> &sums) {
  auto *result = reinterpret_cast<uint16_t *>(const_cast<char *>(d.data));
  for (int64_t i = 0; i < d.lines; ++i)
    for (int64_t j = 0; j < d.elements; ++j)
      result[i * d.leading + j] = type.rounded(sums[static_cast<size_t>(i * d.elements + j)]);
}

void multiply_f64(const sizes &s, const operand &left, const operand &right, const operand &d,
                  double alpha, double beta) {
  const auto *a = reinterpret_cast<const double *>(left.data);
  const auto *b = reinterpret_cast<const double *>(right.data);
  auto *result = reinterpret_cast<double *>(const_cast<char *>(d.data));
  const int64_t a_row = left.transposed ? 1 : left.leading;
  const int64_t a_k = left.transposed ? left.leading : 1;
  const int64_t b_k = right.transposed ? 1 : right.leading;
  const int64_t b_column = right.transposed ? right.leading : 1;
  for (int64_t i = 0; i < s.rows; ++i)
    for (int64_t j = 0; j < s.columns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < s.k; ++k)
        sum += a[i * a_row + k * a_k] * b[k * b_k + j * b_column];
      double &to = result[i * d.leading + j];
      to = alpha * sum + (beta == 0 ? 0 : beta * to);
    }
}

// ---- epilogues, on a column-major result in f32

constexpr double gelu_scale = 0.79788456080286535588, gelu_cubic = 0.044715;

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(gelu_scale * (x + gelu_cubic * x * x * x)));
}
double gelu_slope(double x) {
  const double t = std::tanh(gelu_scale * (x + gelu_cubic * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * gelu_scale * (1 + 3 * gelu_cubic * x * x);
}

bool has(cublasLtEpilogue_t epilogue, cublasLtEpilogue_t part) {
  return epilogue != CUBLASLT_EPILOGUE_DEFAULT && (epilogue & part) == part;
}

// Numbers of an epilogue in memory, as f32.
struct epilogue_numbers {
  const narrow_type *narrow; // null: f32
  size_t size() const { return narrow != nullptr ? 2 : 4; }
  float read(const char *at, int64_t i) const {
    if (narrow != nullptr)
      return narrow->widened(reinterpret_cast<const uint16_t *>(at)[i]);
    return reinterpret_cast<const float *>(at)[i];
  }
  void write(char *at, int64_t i, float value) const {
    if (narrow != nullptr)
      reinterpret_cast<uint16_t *>(at)[i] = narrow->rounded(value);
    else
      reinterpret_cast<float *>(at)[i] = value;
  }
};

void forward_epilogue(const cublasLtMatmulDescription &by, const epilogue_numbers &numbers,
                      const operand &d, char *bias, char *auxiliary) {
  const size_t size = numbers.size(), rows = static_cast<size_t>(d.elements) * size;
  const bool adds = has(by.epilogue, CUBLASLT_EPILOGUE_BIAS);
  const bool gelus = has(by.epilogue, CUBLASLT_EPILOGUE_GELU);
  const bool keeps = has(by.epilogue, CUBLASLT_EPILOGUE_GELU_AUX);
  if (adds)
    read_range(bias, rows, "the bias");
  for (int64_t j = 0; j < d.lines; ++j) {
    auto *line = reinterpret_cast<float *>(const_cast<char *>(d.data)) + j * d.leading;
    char *kept = auxiliary + j * by.auxiliary_leading * static_cast<int64_t>(size);
    if (keeps)
      write_range(kept, rows, "the epilogue's auxiliary matrix");
    for (int64_t i = 0; i < d.elements; ++i) {
      if (adds)
        line[i] += numbers.read(bias, i);
      if (keeps)
        numbers.write(kept, i, line[i]);
      if (gelus)
        line[i] = static_cast<float>(gelu(line[i]));
    }
  }
}

void backward_epilogue(const cublasLtMatmulDescription &by, const epilogue_numbers &numbers,
                       const operand &d, char *bias, const char *auxiliary) {
  const size_t size = numbers.size(), rows = static_cast<size_t>(d.elements) * size;
  std::vector<double> sums(static_cast<size_t>(d.elements));
  for (int64_t j = 0; j < d.lines; ++j) {
    auto *line = reinterpret_cast<float *>(const_cast<char *>(d.data)) + j * d.leading;
    const char *kept = auxiliary + j * by.auxiliary_leading * static_cast<int64_t>(size);
    read_range(kept, rows, "the epilogue's auxiliary matrix");
    for (int64_t i = 0; i < d.elements; ++i) {
      line[i] = static_cast<float>(line[i] * gelu_slope(numbers.read(kept, i)));
      sums[i] += line[i];
    }
  }
  if (!has(by.epilogue, CUBLASLT_EPILOGUE_DGELU_BGRAD))
    return;
  write_range(bias, rows, "the bias gradient");
  for (int64_t i = 0; i < d.elements; ++i)
    numbers.write(bias, i, static_cast<float>(sums[i]));
}

// Sums of an operand along k: `result` has one element for each of the others; f32.
void sum_along_k(const operand &m, const epilogue_numbers &numbers, bool k_is_line, char *bias) {
  const int64_t count = k_is_line ? m.elements : m.lines, k = k_is_line ? m.lines : m.elements;
  write_range(bias, static_cast<size_t>(count) * 4, "the bias gradient");
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < k; ++j)
      sum += numbers.read(m.data, k_is_line ? j * m.leading + i : i * m.leading + j);
    reinterpret_cast<float *>(bias)[i] = static_cast<float>(sum);
  }
}

// On `d`, whose numbers are f32 still.
void apply_epilogue(const product &p, const narrow_type *narrow, const operand &a, const operand &b,
                    const operand &d, int64_t batch) {
  const cublasLtMatmulDescription &by = p.description;
  if (by.epilogue == CUBLASLT_EPILOGUE_DEFAULT)
    return;
  const epilogue_numbers of_operands = {narrow},
                         of_result = {size_of(p.d_layout.type) == 2 ? narrow : nullptr};
  const auto size = static_cast<int64_t>(of_result.size());
  char *bias = static_cast<char *>(by.bias) + batch * by.bias_batch_stride * size;
  char *auxiliary = static_cast<char *>(by.auxiliary) + batch * by.auxiliary_batch_stride * size;
  if (by.epilogue == CUBLASLT_EPILOGUE_BGRADA) // a is m x k; transposed: its lines run along m
    sum_along_k(a, of_operands, a.transposed, bias);
  else if (by.epilogue == CUBLASLT_EPILOGUE_BGRADB)
    sum_along_k(b, of_operands, !b.transposed, bias);
  else if (has(by.epilogue, CUBLASLT_EPILOGUE_DGELU))
    backward_epilogue(by, of_result, d, bias, auxiliary);
  else
    forward_epilogue(by, of_result, d, bias, auxiliary);
}

void compute_entry(const product &p, int64_t batch) {
  const int64_t size = size_of(p.d_layout.type), operand_size = size_of(p.a_layout.type);
  const operand a =
      stored(entry(p.a, p.a_layout, batch), p.a_layout, p.description.transpose_a != CUBLAS_OP_N);
  const operand b =
      stored(entry(p.b, p.b_layout, batch), p.b_layout, p.description.transpose_b != CUBLAS_OP_N);
  const operand d = stored(entry(p.d, p.d_layout, batch), p.d_layout, false);
  read_matrix(a, operand_size, "matrix A");
  read_matrix(b, operand_size, "matrix B");
  refuse_overlap(d, size);
  if (p.beta != 0) {
    const operand c = stored(entry(p.c, p.c_layout, batch), p.c_layout, false);
    read_matrix(c, size, "matrix C");
    write_matrix(d, size, "matrix D");
    if (c.data != d.data)
      for (int64_t i = 0; i < d.lines; ++i)
        std::memcpy(const_cast<char *>(d.data) + i * d.leading * size,
                    c.data + i * c.leading * size, static_cast<size_t>(d.elements * size));
  } else
    write_matrix(d, size, "matrix D");
  // Lines of a column-major result are its columns: the transposed product gives them.
  const bool row_major = p.d_layout.order == CUBLASLT_ORDER_ROW;
  const int64_t k = p.description.transpose_a == CUBLAS_OP_N
                        ? static_cast<int64_t>(p.a_layout.columns)
                        : static_cast<int64_t>(p.a_layout.rows);
  const sizes s = {d.lines, d.elements, k};
  operand left = row_major ? a : b, right = row_major ? b : a;
  if (!row_major) {
    left.transposed = !left.transposed;
    right.transposed = !right.transposed;
  }
  if (p.d_layout.type == CUDA_R_64F)
    return multiply_f64(s, left, right, d, p.alpha, p.beta);
  const auto alpha = static_cast<float>(p.alpha), beta = static_cast<float>(p.beta);
  if (operand_size == 4) {
    multiply_f32(s, left, right, d, alpha, beta,
                 p.description.compute == CUBLAS_COMPUTE_32F_FAST_TF32);
    return apply_epilogue(p, nullptr, a, b, d, batch);
  }
  const narrow_type type = p.a_layout.type == CUDA_R_16BF
                               ? narrow_type{widened, rounded_to_bf16}
                               : narrow_type{widened_f16, rounded_to_f16};
  const bool rounds = size == 2;
  std::vector<float> sums = rounds ? in_f32(d, type, beta) : std::vector<float>();
  const operand wide = rounds ? packed(d, sums) : d;
  multiply_narrow(type, s, left, right, wide, alpha, beta);
  apply_epilogue(p, &type, a, b, wide, batch);
  if (rounds)
    round_result(d, type, sums);
}

} // namespace

void compute(const product &p) {
  // As if the algorithm had used it: nothing of the caller's may be in there.
  write_range(p.workspace, workspace_bytes, "the workspace");
  std::memset(p.workspace, 0xff, workspace_bytes);
  for (int64_t batch = 0; batch < p.d_layout.batch; ++batch)
    compute_entry(p, batch);
}

} // namespace trainc::stand_in
