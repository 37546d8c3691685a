// SPDX-License-Identifier: Apache-2.0
//
// Matrix products through cuBLASLt, on the stand-in: against plain loops over
// layouts, batches and odd sizes; and what becomes of choices from run to run.
#include "runtime/cuda/launch.h"
#include "runtime/cuda/products/matmul.h"
#include "runtime/cuda/products/product_geometry.h"
#include "runtime/cuda/products/product_plan.h"
#include "runtime/cuda/products/remembered_choices.h"
#include "runtime/cuda/streams.h"
#include "runtime/kernels/matmul.h"
#include "runtime/kernels/matrix_storage.h"
#include "runtime/ranks/communicator.h"
#include "tests/stand_in/runtime/device_copy.h"
#include "tests/stand_in/runtime/planned_products.h"
#include "tests/unit/scratch_folder.h"

#include <cmath>
#include <gtest/gtest.h>
#include <type_traits>

namespace trainc {
namespace {

template <typename T> std::vector<T> random_numbers(int64_t count, uint64_t state) {
  std::vector<T> list(static_cast<size_t>(count));
  for (T &x : list) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x = static_cast<T>(static_cast<double>(static_cast<int64_t>(state >> 40)) / (1 << 23) - 1);
  }
  return list;
}

template <typename T>
double expected(const matmul_shape &shape, const std::vector<T> &a, const std::vector<T> &b,
                int64_t batch, int64_t i, int64_t j) {
  double sum = 0;
  for (int64_t l = 0; l < shape.k; ++l)
    sum += static_cast<double>(
               a[static_cast<size_t>(batch_offset(shape, shape.a, batch) + i * shape.a.row_stride +
                                     l * shape.a.column_stride)]) *
           static_cast<double>(
               b[static_cast<size_t>(batch_offset(shape, shape.b, batch) + l * shape.b.row_stride +
                                     j * shape.b.column_stride)]);
  return sum;
}

// One product of random numbers, and what must come out of it.
template <typename T, typename To = T> class product_case {
public:
  product_case(const matmul_shape &shape, bool adds)
      : shape_(shape), adds_(adds),
        a_(random_numbers<T>(shape.a.offset + geometry_of(shape).a_extent, 1)),
        b_(random_numbers<T>(shape.b.offset + geometry_of(shape).b_extent, 2)),
        before_(random_numbers<To>(shape.c.offset + geometry_of(shape).c_extent, 3)), on_a_(a_),
        on_b_(b_), on_c_(before_) {}

  void queue() const {
    if constexpr (!is_narrow_v<To>)
      if (adds_)
        return matmul_add(shape_, on_a_.data(), on_b_.data(), on_c_.data());
    matmul(shape_, on_a_.data(), on_b_.data(), on_c_.data());
  }

  void check() const {
    const std::vector<To> c = on_c_.values();
    std::vector<bool> written(c.size());
    const double tolerance = (sizeof(To) == 8 ? 1e-15 : 1e-6) * static_cast<double>(shape_.k + 1);
    const double rounding = sizeof(To) == 2 ? 1.0 / 256 : 0; // of bf16, which is the coarser one
    for (int64_t batch = 0; batch < batch_count(shape_); ++batch)
      for (int64_t i = 0; i < shape_.m; ++i)
        for (int64_t j = 0; j < shape_.n; ++j) {
          const auto at = static_cast<size_t>(batch_offset(shape_, shape_.c, batch) +
                                              i * shape_.c.row_stride + j * shape_.c.column_stride);
          const double old = adds_ ? static_cast<double>(before_[at]) : 0;
          const double sum = old + expected(shape_, a_, b_, batch, i, j);
          ASSERT_NEAR(static_cast<double>(c[at]), sum, tolerance + rounding * std::fabs(sum))
              << shape_.m << "x" << shape_.n << "x" << shape_.k << " " << i << "," << j;
          written[at] = true;
        }
    for (size_t at = 0; at < c.size(); ++at)
      ASSERT_TRUE(written[at] || c[at] == before_[at]) << "written outside of c at " << at;
  }

private:
  matmul_shape shape_;
  bool adds_;
  std::vector<T> a_, b_;
  std::vector<To> before_;
  device_copy<T> on_a_, on_b_;
  device_copy<To> on_c_;
};

template <typename T> void check_product(const matmul_shape &shape, bool adds) {
  const product_case<T> one(shape, adds);
  run_planned([&] { one.queue(); });
  one.check();
}

// Bit 0: a transposed, 1: b, 2: c. Lines are `gap` longer than they must be.
matmul_shape make_shape(int64_t m, int64_t n, int64_t k, int layout, int64_t gap = 0) {
  matmul_shape shape;
  shape.m = m;
  shape.n = n;
  shape.k = k;
  shape.batch[0] = 1;
  auto place = [&](matrix_layout &matrix, int64_t rows, int64_t columns, bool transposed) {
    matrix.row_stride = transposed ? 1 : columns + gap;
    matrix.column_stride = transposed ? rows + gap : 1;
  };
  place(shape.a, m, k, layout & 1);
  place(shape.b, k, n, layout & 2);
  place(shape.c, m, n, layout & 4);
  return shape;
}

template <typename T, typename To = T> void check_every_layout() {
  constexpr bool rounds = is_narrow_v<To>; // no sum with what was there
  std::vector<std::unique_ptr<product_case<T, To>>> cases;
  for (auto [m, n, k] : {std::tuple{1, 1, 1}, {7, 5, 3}, {1, 33, 17}, {64, 1, 19}, {32, 48, 16}})
    for (int layout = 0; layout < 8; ++layout)
      for (int64_t gap : {0, 3})
        for (bool adds : {false, !rounds})
          cases.push_back(
              std::make_unique<product_case<T, To>>(make_shape(m, n, k, layout, gap), adds));
  run_planned([&] {
    for (const auto &one : cases)
      one->queue();
  });
  for (const auto &one : cases)
    one->check();
}

TEST(cuda_products, every_layout) {
  check_every_layout<float>();
  check_every_layout<double>();
  check_every_layout<bfloat16, float>();
  check_every_layout<bfloat16>();
  check_every_layout<float16, float>();
  check_every_layout<float16>();
}

TEST(cuda_products, offsets_and_batches) {
  for (int layout = 0; layout < 8; ++layout) {
    matmul_shape shape = make_shape(5, 6, 4, layout);
    shape.a.offset = 3;
    shape.b.offset = 1;
    shape.c.offset = 7;
    shape.batch[0] = 3;
    shape.a.batch_strides[0] = 20;
    shape.b.batch_strides[0] = 0; // one b for all
    shape.c.batch_strides[0] = 31;
    check_product<float>(shape, false);
  }
}

// Attention reads heads out of the middle of a row: two batch dimensions that do not merge.
matmul_shape attention_scores() {
  constexpr int64_t batch = 2, heads = 3, length = 5, width = 4, row = 3 * heads * width;
  matmul_shape shape = make_shape(length, length, width, 2);
  shape.batch[0] = batch;
  shape.batch[1] = heads;
  shape.a.row_stride = shape.b.column_stride = row;
  shape.b.offset = heads * width;
  for (matrix_layout *matrix : {&shape.a, &shape.b}) {
    matrix->batch_strides[0] = length * row;
    matrix->batch_strides[1] = width;
  }
  shape.c.batch_strides[0] = heads * length * length;
  shape.c.batch_strides[1] = length * length;
  return shape;
}

TEST(cuda_products, several_batch_dimensions) {
  check_product<float>(attention_scores(), false);
  check_product<float>(attention_scores(), true);
  matmul_shape shape = make_shape(2, 3, 4, 0);
  for (int d = 0; d < max_batch_rank; ++d)
    shape.batch[d] = d == 3 ? 1 : 2;
  for (int d = 0; d < max_batch_rank; ++d) {
    shape.a.batch_strides[d] = 8 << d; // the other way round
    shape.b.batch_strides[d] = d % 2 ? 12 : 0;
    shape.c.batch_strides[d] = 6 << (max_batch_rank - 1 - d);
  }
  check_product<float>(shape, false);
}

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}
double gelu_slope(double x) { return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5; }

// Arrays of one product with an epilogue; `line` is the length of c's lines.
template <typename T> struct epilogue_case {
  explicit epilogue_case(int layout, int64_t m = 24, int64_t n = 40, int64_t k = 9)
      : shape(make_shape(m, n, k, layout)), line(layout & 4 ? m : n),
        a(random_numbers<T>(m * k, 1)), b(random_numbers<T>(k * n, 2)),
        bias(random_numbers<T>(line, 3)), linear(random_numbers<T>(m * n, 4)), on_a(a), on_b(b),
        on_bias(bias), on_linear(linear), on_c(std::vector<T>(linear.size())),
        on_wide(std::vector<float>(linear.size())),
        on_sum(std::vector<float>(static_cast<size_t>(std::max(m, n)))) {}

  // Element (i, j) of c; its place in memory.
  double product(int64_t i, int64_t j) const { return expected(shape, a, b, 0, i, j); }
  size_t place(int64_t i, int64_t j) const {
    return static_cast<size_t>(i * shape.c.row_stride + j * shape.c.column_stride);
  }
  double bias_at(int64_t i, int64_t j) const {
    return static_cast<double>(bias[static_cast<size_t>(line == shape.n ? j : i)]);
  }
  template <typename Check> void each(Check check) const {
    for (int64_t i = 0; i < shape.m; ++i)
      for (int64_t j = 0; j < shape.n; ++j)
        check(i, j);
  }

  matmul_shape shape;
  int64_t line;
  std::vector<T> a, b, bias, linear;
  device_copy<T> on_a, on_b, on_bias, on_linear, on_c;
  device_copy<float> on_wide, on_sum; // a result in f32, and sums
};

constexpr double epilogue_tolerance = 1e-5;

// Near enough to `wanted` for a number of T; of 16 bits that is rounded twice, where the library
// does not do it all.
template <typename T> void expect_near(T found, double wanted) {
  const double last_bit = std::is_same_v<T, bfloat16> ? 1.0 / 128 : 1.0 / 1024;
  const double tolerance =
      is_narrow_v<T> ? 2 * last_bit * std::max(1.0, std::abs(wanted)) : epilogue_tolerance;
  ASSERT_NEAR(static_cast<double>(static_cast<float>(found)), wanted, tolerance);
}

template <typename T> class cuda_epilogues : public testing::Test {};
using epilogue_types = testing::Types<float, bfloat16, float16>;
TYPED_TEST_SUITE(cuda_epilogues, epilogue_types, );

// With the library's epilogues, and with kernels that follow the product.
template <typename Check> void with_and_without_epilogues(Check check) {
  for (bool by_library : {true, false}) {
    product_settings settings = untimed();
    settings.epilogues = by_library;
    check(settings);
  }
}

TYPED_TEST(cuda_epilogues, bias) {
  with_and_without_epilogues([](const product_settings &settings) {
    for (int layout = 0; layout < 8; ++layout) {
      epilogue_case<TypeParam> with(layout, 5, 7);
      run_planned(
          [&] {
            matmul_bias(with.shape, with.on_a.data(), with.on_b.data(), with.on_bias.data(),
                        with.on_c.data());
          },
          settings);
      const std::vector<TypeParam> c = with.on_c.values();
      with.each([&](int64_t i, int64_t j) {
        expect_near(c[with.place(i, j)], with.product(i, j) + with.bias_at(i, j));
      });
    }
  });
}

TYPED_TEST(cuda_epilogues, gelu) {
  with_and_without_epilogues([](const product_settings &settings) {
    for (int layout = 0; layout < 8; ++layout)
      for (bool adds : {false, true})
        for (bool keeps : {false, true}) {
          epilogue_case<TypeParam> with(layout);
          run_planned(
              [&] {
                matmul_gelu(with.shape, with.on_a.data(), with.on_b.data(),
                            adds ? with.on_bias.data() : nullptr, with.on_c.data(),
                            keeps ? with.on_linear.data() : nullptr);
              },
              settings);
          const std::vector<TypeParam> c = with.on_c.values(), linear = with.on_linear.values();
          with.each([&](int64_t i, int64_t j) {
            const double x = with.product(i, j) + (adds ? with.bias_at(i, j) : 0);
            const size_t at = with.place(i, j);
            expect_near(c[at], gelu(x));
            expect_near(linear[at], keeps ? x : static_cast<double>(with.linear[at]));
          });
        }
  });
}

TYPED_TEST(cuda_epilogues, gradient_of_gelu) {
  with_and_without_epilogues([](const product_settings &settings) {
    for (int layout = 0; layout < 8; ++layout) {
      epilogue_case<TypeParam> with(layout);
      run_planned(
          [&] {
            matmul_gelu_gradient(with.shape, with.on_a.data(), with.on_b.data(),
                                 with.on_linear.data(), with.on_c.data(), nullptr);
          },
          settings);
      const std::vector<TypeParam> c = with.on_c.values();
      with.each([&](int64_t i, int64_t j) {
        const double x = static_cast<double>(with.linear[with.place(i, j)]);
        expect_near(c[with.place(i, j)], with.product(i, j) * gelu_slope(x));
      });
    }
  });
}

TEST(cuda_products, gradient_of_gelu_with_the_sum_of_its_lines) {
  for (int layout = 0; layout < 8; ++layout) {
    epilogue_case<float> with(layout);
    run_planned([&] {
      matmul_gelu_gradient(with.shape, with.on_a.data(), with.on_b.data(), with.on_linear.data(),
                           with.on_c.data(), with.on_sum.data());
    });
    const std::vector<float> sum = with.on_sum.values();
    std::vector<double> total(sum.size());
    with.each([&](int64_t i, int64_t j) {
      const double x = static_cast<double>(with.linear[with.place(i, j)]);
      total[static_cast<size_t>(with.line == with.shape.n ? j : i)] +=
          with.product(i, j) * gelu_slope(x);
    });
    for (size_t i = 0; i < sum.size(); ++i)
      ASSERT_NEAR(sum[i], total[i], 1e-4);
  }
}

TYPED_TEST(cuda_epilogues, sums_of_operands) {
  with_and_without_epilogues([](const product_settings &settings) {
    for (int layout = 0; layout < 8; ++layout)
      for (int64_t k : {9, 300}) // which is long enough to be cut
        for (bool of_a : {false, true}) {
          epilogue_case<TypeParam> with(layout, 5, 7, k);
          run_planned(
              [&] {
                (of_a ? matmul_sum_a<TypeParam>
                      : matmul_sum_b<TypeParam>)(with.shape, with.on_a.data(), with.on_b.data(),
                                                 with.on_wide.data(), with.on_sum.data());
              },
              settings);
          const double tolerance = epilogue_tolerance * static_cast<double>(k) / 9;
          const std::vector<float> c = with.on_wide.values(), sum = with.on_sum.values();
          with.each([&](int64_t i, int64_t j) {
            ASSERT_NEAR(c[with.place(i, j)], with.product(i, j), tolerance);
          });
          const matrix_layout &matrix = of_a ? with.shape.a : with.shape.b;
          for (int64_t i = 0; i < (of_a ? with.shape.m : with.shape.n); ++i) {
            double total = 0;
            for (int64_t l = 0; l < with.shape.k; ++l)
              total += static_cast<double>((of_a ? with.a : with.b)[static_cast<size_t>(
                  of_a ? i * matrix.row_stride + l * matrix.column_stride
                       : l * matrix.row_stride + i * matrix.column_stride)]);
            ASSERT_NEAR(sum[static_cast<size_t>(i)], total, tolerance);
          }
        }
  });
}

TEST(cuda_products, what_the_library_cannot_do_follows_the_product) {
  epilogue_case<float> with(0, 5, 7); // lines of 7: no multiple of 8
  testing::internal::CaptureStderr();
  run_planned([&] {
    matmul_gelu(with.shape, with.on_a.data(), with.on_b.data(), nullptr, with.on_c.data(),
                with.on_linear.data());
  });
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("no algorithm for the matrix product 5x7x9 with what follows"),
            std::string::npos)
      << said;
  const std::vector<float> c = with.on_c.values(), linear = with.on_linear.values();
  with.each([&](int64_t i, int64_t j) {
    const size_t at = with.place(i, j);
    ASSERT_NEAR(linear[at], with.product(i, j), epilogue_tolerance);
    ASSERT_NEAR(c[at], gelu(with.product(i, j)), epilogue_tolerance);
  });
}

TEST(cuda_products, geometry) {
  // Heads in one call for each sample; merged where strides allow.
  product_geometry geometry = geometry_of(attention_scores());
  EXPECT_EQ(geometry.batch, 3);
  ASSERT_EQ(geometry.loops.size(), 1u);
  EXPECT_EQ(geometry.loops[0].size, 2);
  EXPECT_TRUE(geometry.swapped);
  EXPECT_TRUE(geometry.left.transposed);

  matmul_shape shape = make_shape(4, 5, 6, 0);
  shape.batch[0] = 2;
  shape.batch[1] = 7;
  const int64_t sizes[] = {24, 30, 20};
  matrix_layout *matrices[] = {&shape.a, &shape.b, &shape.c};
  for (int i = 0; i < 3; ++i) {
    matrices[i]->batch_strides[0] = 7 * sizes[i];
    matrices[i]->batch_strides[1] = sizes[i];
  }
  geometry = geometry_of(shape);
  EXPECT_EQ(geometry.batch, 14);
  EXPECT_TRUE(geometry.loops.empty());
  EXPECT_EQ(geometry.a_extent, 14 * 24);
}

// Plans alone: such a matrix has 10 GB.
TEST(cuda_products, more_than_2_to_31_elements) {
  constexpr int64_t rows = 65536, columns = 40000;
  static_assert(rows * columns > int64_t(1) << 31);
  matmul_shape logits = make_shape(rows, columns, 8, 0), of_input = make_shape(rows, 8, columns, 2),
               of_weight = make_shape(8, columns, rows, 1), batches = make_shape(64, columns, 8, 0);
  batches.batch[0] = rows / 64;
  batches.a.batch_strides[0] = 64 * 8;
  batches.c.batch_strides[0] = 64 * columns;
  logits.c.offset = rows * columns; // behind another one
  EXPECT_EQ(geometry_of(logits).c_extent, rows * columns);
  EXPECT_EQ(geometry_of(of_input).a_extent, rows * columns);
  EXPECT_EQ(geometry_of(of_weight).b_extent, rows * columns);
  EXPECT_EQ(geometry_of(batches).c_extent, rows * columns);
  streams queues;
  communicator alone;
  plan_products(untimed(), alone, [&](const arenas &) {
    const auto *in = reinterpret_cast<const float *>(uintptr_t(1) << 40);
    auto *out = reinterpret_cast<float *>(uintptr_t(1) << 41);
    for (const matmul_shape &shape : {logits, of_input, of_weight, batches})
      matmul(shape, in, in, out);
  });
  EXPECT_TRUE(own_work().products);
  own_work().products.reset();
}

TEST(cuda_products, alignment) {
  matmul_shape shape = make_shape(4, 5, 6, 0);
  const auto *base = reinterpret_cast<const char *>(uintptr_t(1) << 20);
  EXPECT_EQ(operand_alignment(shape, shape.a, base, 4), 64);
  EXPECT_EQ(operand_alignment(shape, shape.a, base + 8, 4), 8);
  shape.a.offset = 4;
  EXPECT_EQ(operand_alignment(shape, shape.a, base, 4), 16);
  shape.batch[0] = 2;
  shape.a.batch_strides[0] = 1;
  EXPECT_EQ(operand_alignment(shape, shape.a, base, 4), 4);
}

TEST(cuda_products, unplanned_product_is_an_error) {
  const std::vector<float> zeros(64);
  device_copy<float> a(zeros), b(zeros), c(zeros);
  bool planned = true;
  EXPECT_THROW(run_planned([&] {
                 matmul(make_shape(2, 2, planned ? 2 : 3, 0), a.data(), b.data(), c.data());
                 planned = false;
               }),
               std::logic_error);
  own_work().products.reset();
}

void run_with_file(const std::string &path, bool timed = true) {
  const std::vector<float> zeros(64);
  device_copy<float> a(zeros), b(zeros), c(zeros);
  product_settings settings;
  settings.choice_file = path;
  settings.timed = timed;
  run_planned([&] { matmul(make_shape(4, 4, 4, 0), a.data(), b.data(), c.data()); }, settings);
}

TEST(cuda_remembered_choices, are_kept_and_found_again) {
  scratch_folder folder;
  const std::string path = folder / "choices.txt";
  run_with_file(path, false);
  EXPECT_EQ(read_bytes(path), ""); // nothing was measured
  run_with_file(path);
  const std::string first = read_bytes(path);
  EXPECT_NE(first.find("f32 set 4x4x4"), std::string::npos) << first;
  run_with_file(path);
  EXPECT_EQ(read_bytes(path), first);
}

TEST(cuda_remembered_choices, damaged_lines_are_reported_and_chosen_anew) {
  scratch_folder folder;
  const std::string path = folder / "choices.txt";
  run_with_file(path);
  std::string text = read_bytes(path);
  text[text.size() - 20] ^= 1;
  std::ofstream(path) << text << "no line of ours\n";
  testing::internal::CaptureStderr();
  run_with_file(path);
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_NE(warning.find("2 damaged lines"), std::string::npos) << warning;
  testing::internal::CaptureStderr();
  run_with_file(path);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(cuda_remembered_choices, other_devices_and_libraries_stay) {
  remembered_choices other("GPU; one", "130100"), own("GPU two", "130100");
  other.add("some product", "algorithm_3");
  EXPECT_EQ(own.add_lines(other.text()), 0);
  EXPECT_EQ(own.find("some product"), nullptr);
  own.add("another", "algorithm_4");
  EXPECT_EQ(own.own_lines().find("some"), std::string::npos);

  remembered_choices again("GPU; one", "130100");
  EXPECT_EQ(again.add_lines(own.text()), 0);
  ASSERT_NE(again.find("some product"), nullptr);
  EXPECT_EQ(*again.find("some product"), "algorithm_3");
  EXPECT_EQ(again.find("another"), nullptr);
  for (const char *version : {"130200", "cuDNN 130100"}) {
    remembered_choices newer("GPU; one", version);
    EXPECT_EQ(newer.add_lines(own.text()), 0);
    EXPECT_EQ(newer.find("some product"), nullptr);
  }
}

TEST(cuda_remembered_choices, an_algorithm_is_a_word_and_back) {
  cublasLtMatmulAlgo_t algorithm = {};
  algorithm.data[3] = 0x123456789abcdef0;
  const auto again = algorithm_of(text_of(algorithm));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->data[3], algorithm.data[3]);
  EXPECT_FALSE(algorithm_of("products"));
  EXPECT_FALSE(algorithm_of(std::string(128, 'x')));
}

TEST(cuda_remembered_choices, a_folder_that_cannot_be_written) {
  remembered_choices choices("GPU", "1");
  testing::internal::CaptureStderr();
  write_choices("/nowhere/choices.txt", choices);
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_NE(warning.find("/nowhere/choices.txt: the chosen algorithms cannot be kept"),
            std::string::npos)
      << warning;
  EXPECT_NE(warning.find("\n  try: --product-choices"), std::string::npos);
}

} // namespace
} // namespace trainc
