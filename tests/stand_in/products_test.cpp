// SPDX-License-Identifier: Apache-2.0
//
// Products and their epilogues against plain loops, and what is refused.
#include "test_kernels.h"

#include <cublasLt.h>

#include <cmath>

namespace trainc::stand_in {
namespace {

struct matrix {
  int64_t rows, columns, leading;
};

template <typename T> constexpr cudaDataType type_of() {
  return sizeof(T) == 8 ? CUDA_R_64F : CUDA_R_32F;
}

// Column-major, small numbers with a pattern.
template <typename T> std::vector<T> pattern(const matrix &m, int64_t batch, int seed) {
  std::vector<T> values(static_cast<size_t>(m.leading * m.columns * batch));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>((static_cast<int>(i) * 7 + seed * 13) % 17 - 8) / 8;
  return values;
}

template <typename T> struct product_test {
  int64_t m = 6, n = 5, k = 7, batch = 1;
  bool transpose_a = false, transpose_b = false;
  double beta = 0;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  cublasComputeType_t compute = sizeof(T) == 8 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;

  matrix a() const { return transpose_a ? matrix{k, m, k + 1} : matrix{m, k, m + 1}; }
  matrix b() const { return transpose_b ? matrix{n, k, n + 2} : matrix{k, n, k + 2}; }
  matrix d() const { return {m, n, m + 3}; }
  static constexpr int64_t auxiliary_leading = 8;

  // The product in f64, before its epilogue, element (i, j) at j * m + i.
  std::vector<double> expected(const std::vector<T> &a_values, const std::vector<T> &b_values,
                               const std::vector<T> &c_values, int64_t entry) const {
    std::vector<double> result;
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l) {
          const int64_t at_a = transpose_a ? i * a().leading + l : l * a().leading + i;
          const int64_t at_b = transpose_b ? l * b().leading + j : j * b().leading + l;
          sum += static_cast<double>(a_values[entry * a().leading * a().columns + at_a]) *
                 static_cast<double>(b_values[entry * b().leading * b().columns + at_b]);
        }
        const int64_t at_c = entry * d().leading * n + j * d().leading + i;
        result.push_back(sum + beta * static_cast<double>(c_values[at_c]));
      }
    return result;
  }

  std::vector<T> a_values = pattern<T>(a(), batch, 1), b_values = pattern<T>(b(), batch, 2),
                 d_values = pattern<T>(d(), batch, 3), bias = pattern<T>({8, 1, 8}, 1, 4),
                 auxiliary = pattern<T>({8, n, 8}, 1, 5);

  cublasStatus_t run(int64_t d_elements = -1) {
    a_values = pattern<T>(a(), batch, 1);
    b_values = pattern<T>(b(), batch, 2);
    device_values a_device(a_values), b_device(b_values), d_device(d_values), bias_device(bias),
        auxiliary_device(auxiliary), workspace(std::vector<T>(8192));
    if (d_elements >= 0)
      d_device.shrink(d_elements);
    cublasLtHandle_t handle;
    cublasLtMatmulDesc_t description;
    cublasLtMatrixLayout_t layouts[3];
    EXPECT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatmulDescCreate(&description, compute, type_of<T>()), CUBLAS_STATUS_SUCCESS);
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, auto value) {
      EXPECT_EQ(cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value),
                CUBLAS_STATUS_SUCCESS);
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_TRANSB, transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias_device.data);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, auxiliary_device.data);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, auxiliary_leading);
    const matrix shapes[] = {a(), b(), d()};
    for (int i = 0; i < 3; ++i)
      describe(layouts[i], shapes[i]);
    const T alpha = 1, beta_value = static_cast<T>(beta);
    const cublasStatus_t status =
        cublasLtMatmul(handle, description, &alpha, a_device.data, layouts[0], b_device.data,
                       layouts[1], &beta_value, d_device.data, layouts[2], d_device.data,
                       layouts[2], nullptr, workspace.data, 8192 * sizeof(T), nullptr);
    result = d_device.host();
    bias = bias_device.host();
    auxiliary = auxiliary_device.host();
    EXPECT_EQ(cublasLtDestroy(handle), CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatmulDescDestroy(description), CUBLAS_STATUS_SUCCESS);
    for (cublasLtMatrixLayout_t layout : layouts)
      EXPECT_EQ(cublasLtMatrixLayoutDestroy(layout), CUBLAS_STATUS_SUCCESS);
    return status;
  }
  std::vector<T> result;

private:
  struct device_values : device_buffer<T> {
    explicit device_values(const std::vector<T> &values)
        : device_buffer<T>(static_cast<int64_t>(values.size()), false) {
      EXPECT_EQ(
          cudaMemcpy(this->data, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
          cudaSuccess);
    }
    void shrink(int64_t count) {
      EXPECT_EQ(cudaFree(this->data), cudaSuccess);
      this->elements = count;
      EXPECT_EQ(cudaMalloc(&this->data, count * sizeof(T)), cudaSuccess);
    }
  };
  void describe(cublasLtMatrixLayout_t &layout, const matrix &shape) {
    EXPECT_EQ(
        cublasLtMatrixLayoutCreate(&layout, type_of<T>(), shape.rows, shape.columns, shape.leading),
        CUBLAS_STATUS_SUCCESS);
    const auto count = static_cast<int32_t>(batch);
    const int64_t stride = shape.leading * shape.columns;
    EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                               sizeof count),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                               &stride, sizeof stride),
              CUBLAS_STATUS_SUCCESS);
  }
};

template <typename T> void check_all_layouts() {
  for (int bits = 0; bits < 16; ++bits) {
    product_test<T> test;
    test.transpose_a = (bits & 1) != 0;
    test.transpose_b = (bits & 2) != 0;
    test.beta = (bits & 4) != 0 ? 1 : 0;
    test.batch = (bits & 8) != 0 ? 3 : 1;
    test.d_values = pattern<T>(test.d(), test.batch, 3);
    ASSERT_EQ(test.run(), CUBLAS_STATUS_SUCCESS);
    for (int64_t entry = 0; entry < test.batch; ++entry) {
      const auto expected = test.expected(test.a_values, test.b_values, test.d_values, entry);
      const matrix d = test.d();
      for (int64_t j = 0; j < test.n; ++j)
        for (int64_t i = 0; i < test.m; ++i)
          EXPECT_NEAR(test.result[entry * d.leading * d.columns + j * d.leading + i],
                      expected[j * test.m + i], 1e-6);
    }
  }
}

TEST(Products, EveryLayout) {
  check_all_layouts<float>();
  check_all_layouts<double>();
}

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

TEST(Products, ForwardEpilogues) {
  for (cublasLtEpilogue_t epilogue :
       {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU_BIAS, CUBLASLT_EPILOGUE_GELU_AUX_BIAS}) {
    product_test<float> test;
    test.epilogue = epilogue;
    ASSERT_EQ(test.run(), CUBLAS_STATUS_SUCCESS);
    const auto sums = test.expected(test.a_values, test.b_values, test.d_values, 0);
    for (int64_t j = 0; j < test.n; ++j)
      for (int64_t i = 0; i < test.m; ++i) {
        const double before = sums[j * test.m + i] + static_cast<double>(test.bias[i]);
        const bool gelus = epilogue != CUBLASLT_EPILOGUE_BIAS;
        EXPECT_NEAR(test.result[j * test.d().leading + i], gelus ? gelu(before) : before, 1e-6);
        if (epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS) {
          EXPECT_NEAR(test.auxiliary[j * 8 + i], before, 1e-6);
        }
      }
  }
}

TEST(Products, BackwardEpilogues) {
  for (cublasLtEpilogue_t epilogue : {CUBLASLT_EPILOGUE_DGELU, CUBLASLT_EPILOGUE_DGELU_BGRAD}) {
    product_test<float> test;
    test.epilogue = epilogue;
    ASSERT_EQ(test.run(), CUBLAS_STATUS_SUCCESS);
    const auto sums = test.expected(test.a_values, test.b_values, test.d_values, 0);
    std::vector<double> gradient(test.m);
    for (int64_t j = 0; j < test.n; ++j)
      for (int64_t i = 0; i < test.m; ++i) {
        const double x = test.auxiliary[j * 8 + i], step = 1e-5;
        const double slope = (gelu(x + step) - gelu(x - step)) / (2 * step);
        const double expected = sums[j * test.m + i] * slope;
        EXPECT_NEAR(test.result[j * test.d().leading + i], expected, 1e-5);
        gradient[i] += expected;
      }
    for (int64_t i = 0; epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD && i < test.m; ++i)
      EXPECT_NEAR(test.bias[i], gradient[i], 1e-5);
  }
}

TEST(Products, SumsOfOperands) {
  for (int bits = 0; bits < 8; ++bits) {
    product_test<float> test;
    test.transpose_a = (bits & 1) != 0;
    test.transpose_b = (bits & 2) != 0;
    const bool of_a = (bits & 4) != 0;
    test.epilogue = of_a ? CUBLASLT_EPILOGUE_BGRADA : CUBLASLT_EPILOGUE_BGRADB;
    ASSERT_EQ(test.run(), CUBLAS_STATUS_SUCCESS);
    const matrix m = of_a ? test.a() : test.b();
    const auto &values = of_a ? test.a_values : test.b_values;
    // Whether k goes from column to column.
    const bool along_columns = of_a ? !test.transpose_a : test.transpose_b;
    for (int64_t i = 0; i < (of_a ? test.m : test.n); ++i) {
      double sum = 0;
      for (int64_t l = 0; l < test.k; ++l)
        sum += static_cast<double>(along_columns ? values[l * m.leading + i]
                                                 : values[i * m.leading + l]);
      EXPECT_NEAR(test.bias[i], sum, 1e-6);
    }
  }
}

TEST(Products, TensorCoresKeepElevenBits) {
  product_test<float> exact, rounded;
  rounded.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  ASSERT_EQ(exact.run(), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(rounded.run(), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(exact.result, rounded.result); // the pattern needs fewer
}

TEST(Products, Refused) {
  product_test<float> test;
  EXPECT_FAULT(test.run(8), "matrix product on the default stream: matrix D \\([0-9]+ bytes\\) "
                            "reaches outside device memory");
  test.epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  test.m = 9; // more than the auxiliary matrix has
  test.d_values = pattern<float>(test.d(), 1, 3);
  EXPECT_EQ(test.run(), CUBLAS_STATUS_NOT_SUPPORTED);
  cublasLtHandle_t handle;
  set_options("cublas=fail");
  EXPECT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_NOT_INITIALIZED);
  set_options("");
}

} // namespace
} // namespace trainc::stand_in
