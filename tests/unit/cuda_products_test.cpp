// SPDX-License-Identifier: Apache-2.0
//
// Matrix products through cuBLASLt, on the stand-in: against plain loops over
// layouts, batches and odd sizes; and what becomes of choices from run to run.
#include "runtime/communicator.h"
#include "runtime/cuda/launch.h"
#include "runtime/cuda/matmul.h"
#include "runtime/cuda/product_choices.h"
#include "runtime/cuda/product_geometry.h"
#include "runtime/cuda/streams.h"
#include "runtime/kernels/matmul.h"
#include "runtime/kernels/matrix_storage.h"
#include "tests/unit/scratch_folder.h"

#include <cmath>
#include <gtest/gtest.h>

namespace {

using namespace trainc;

template <typename T> std::vector<T> random_numbers(int64_t count, uint64_t state) {
  std::vector<T> list(static_cast<size_t>(count));
  for (T &x : list) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x = static_cast<T>(static_cast<int64_t>(state >> 40) - (1 << 23)) / (1 << 23);
  }
  return list;
}

// Device memory with given contents.
template <typename T> class device_array {
public:
  explicit device_array(const std::vector<T> &host) : size_(host.size()) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void **>(&data), size_ * sizeof(T)), cudaSuccess);
    cudaMemcpy(data, host.data(), size_ * sizeof(T), cudaMemcpyHostToDevice);
  }
  ~device_array() { cudaFree(data); }
  device_array(const device_array &) = delete;
  device_array &operator=(const device_array &) = delete;
  std::vector<T> host() const {
    std::vector<T> copy(size_);
    cudaMemcpy(copy.data(), data, size_ * sizeof(T), cudaMemcpyDeviceToHost);
    return copy;
  }
  T *data = nullptr;

private:
  size_t size_;
};

// The device's part around products: plans for `work`, then runs it.
void run_planned(const std::function<void()> &work, const product_settings &settings = {}) {
  streams queues;
  communicator alone;
  plan_products(settings, alone, [&](const arenas &) { work(); });
  const std::vector<char> zeros(product_workspace_bytes);
  device_array<char> workspace(zeros);
  set_product_workspace(workspace.data);
  work();
  EXPECT_EQ(cudaStreamSynchronize(compute_stream()), cudaSuccess);
  forget_products();
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

template <typename T> void check_product(const matmul_shape &shape, bool adds) {
  const product_geometry geometry = geometry_of(shape);
  const auto a = random_numbers<T>(shape.a.offset + geometry.a_extent, 1);
  const auto b = random_numbers<T>(shape.b.offset + geometry.b_extent, 2);
  const auto before = random_numbers<T>(shape.c.offset + geometry.c_extent, 3);
  device_array<T> on_a(a), on_b(b), on_c(before);
  run_planned([&] {
    if (adds)
      matmul_add(shape, on_a.data, on_b.data, on_c.data);
    else
      matmul(shape, on_a.data, on_b.data, on_c.data);
  });
  const std::vector<T> c = on_c.host();
  std::vector<bool> written(c.size());
  const double tolerance = (sizeof(T) == 8 ? 1e-15 : 1e-6) * static_cast<double>(shape.k + 1);
  for (int64_t batch = 0; batch < batch_count(shape); ++batch)
    for (int64_t i = 0; i < shape.m; ++i)
      for (int64_t j = 0; j < shape.n; ++j) {
        const auto at = static_cast<size_t>(batch_offset(shape, shape.c, batch) +
                                            i * shape.c.row_stride + j * shape.c.column_stride);
        const double old = adds ? static_cast<double>(before[at]) : 0;
        ASSERT_NEAR(static_cast<double>(c[at]), old + expected(shape, a, b, batch, i, j), tolerance)
            << shape.m << "x" << shape.n << "x" << shape.k << " " << i << "," << j;
        written[at] = true;
      }
  for (size_t at = 0; at < c.size(); ++at)
    ASSERT_TRUE(written[at] || c[at] == before[at]) << "written outside of c at " << at;
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

TEST(cuda_products, every_layout) {
  for (auto [m, n, k] : {std::tuple{1, 1, 1}, {7, 5, 3}, {1, 33, 17}, {64, 1, 19}, {32, 48, 16}})
    for (int layout = 0; layout < 8; ++layout)
      for (int64_t gap : {0, 3})
        for (bool adds : {false, true}) {
          check_product<float>(make_shape(m, n, k, layout, gap), adds);
          check_product<double>(make_shape(m, n, k, layout, gap), adds);
        }
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
  device_array<float> a(zeros), b(zeros), c(zeros);
  bool planned = true;
  EXPECT_THROW(run_planned([&] {
                 matmul(make_shape(2, 2, planned ? 2 : 3, 0), a.data, b.data, c.data);
                 planned = false;
               }),
               std::logic_error);
  forget_products();
}

void run_with_file(const std::string &path, bool timed = true) {
  const std::vector<float> zeros(64);
  device_array<float> a(zeros), b(zeros), c(zeros);
  product_settings settings;
  settings.choice_file = path;
  settings.timed = timed;
  run_planned([&] { matmul(make_shape(4, 4, 4, 0), a.data, b.data, c.data); }, settings);
}

TEST(cuda_product_choices, are_kept_and_found_again) {
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

TEST(cuda_product_choices, damaged_lines_are_reported_and_chosen_anew) {
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

TEST(cuda_product_choices, other_devices_stay) {
  cublasLtMatmulAlgo_t algorithm = {};
  algorithm.data[3] = 0x123456789abcdef0;
  product_choices other("GPU; one", 130100), own("GPU two", 130100);
  other.add("some product", algorithm);
  EXPECT_EQ(own.add_lines(other.text()), 0);
  EXPECT_EQ(own.find("some product"), nullptr);
  own.add("another", algorithm);
  EXPECT_EQ(own.own_lines().find("some"), std::string::npos);

  product_choices again("GPU; one", 130100);
  EXPECT_EQ(again.add_lines(own.text()), 0);
  ASSERT_NE(again.find("some product"), nullptr);
  EXPECT_EQ(again.find("some product")->data[3], algorithm.data[3]);
  EXPECT_EQ(again.find("another"), nullptr);
  product_choices newer("GPU; one", 130200);
  EXPECT_EQ(newer.add_lines(own.text()), 0);
  EXPECT_EQ(newer.find("some product"), nullptr);
}

TEST(cuda_product_choices, a_folder_that_cannot_be_written) {
  product_choices choices("GPU", 1);
  testing::internal::CaptureStderr();
  write_choices("/nowhere/choices.txt", choices);
  const std::string warning = testing::internal::GetCapturedStderr();
  EXPECT_NE(warning.find("/nowhere/choices.txt: the chosen algorithms cannot be kept"),
            std::string::npos)
      << warning;
  EXPECT_NE(warning.find("\n  try: --product-choices"), std::string::npos);
}

} // namespace
