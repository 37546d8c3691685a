// SPDX-License-Identifier: Apache-2.0
//
// Sums of gradients on the device against the order that is promised, bit for bit. Run
// by several ranks, each checks the sum over all of them.
#include "runtime/cuda/gradient_sum.h"

#include "runtime/cuda/flat_sum.h"
#include "runtime/cuda/launch.h"
#include "runtime/cuda/streams.h"
#include "runtime/data_types.h"
#include "tests/stand_in/runtime/device_copy.h"

#include <cstring>
#include <gtest/gtest.h>

namespace trainc {
namespace {

communicator *all_ranks = nullptr;

// A gradient whose sums depend on their order.
template <typename T> T gradient(int rank, int64_t micro_batch, int64_t element) {
  auto hash = static_cast<uint32_t>(rank * 7919 + micro_batch * 104729 + element * 31 + 17);
  hash = (hash ^ (hash >> 15)) * 2246822519u;
  hash ^= hash >> 13;
  return static_cast<T>(hash % 20011) / static_cast<T>(1 + hash % 97) - static_cast<T>(5000);
}

template <typename T> constexpr data_type type_of() {
  return sizeof(T) == 8 ? data_type::f64 : data_type::f32;
}

template <typename T> std::vector<T> own_gradients(int rank, int64_t micro_batch, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] = gradient<T>(rank, micro_batch, i);
  return values;
}

template <typename T> void check_sum(int64_t count, int64_t micro_batches, int64_t piece_bytes) {
  communicator &ranks = *all_ranks;
  streams queues;
  gradient_sum sum(ranks, type_of<T>(), count * static_cast<int64_t>(sizeof(T)), micro_batches,
                   piece_bytes);
  sum.start();
  device_copy<T> gradients(std::vector<T>(static_cast<size_t>(count)));
  device_copy<char> accumulator(std::vector<char>(static_cast<size_t>(sum.accumulator_bytes())));
  device_copy<char> received(std::vector<char>(static_cast<size_t>(sum.exchange_bytes())));
  sum.place(reinterpret_cast<char *>(gradients.data()), accumulator.data(), received.data());
  for (int64_t j = 0; j < micro_batches; ++j) {
    gradients.set(own_gradients<T>(ranks.rank(), j, count));
    sum.queue(j == 0, j == micro_batches - 1);
  }
  sum.finish();
  std::vector<T> found = gradients.values();

  std::vector<T> expected = own_gradients<T>(0, 0, count);
  for (int64_t j = 0; j < micro_batches; ++j)
    for (int rank = j == 0 ? 1 : 0; rank < ranks.size(); ++rank)
      for (int64_t i = 0; i < count; ++i)
        expected[static_cast<size_t>(i)] += gradient<T>(rank, j, i);
  EXPECT_EQ(memcmp(found.data(), expected.data(), found.size() * sizeof(T)), 0)
      << count << " elements, " << micro_batches << " micro-batches, pieces of " << piece_bytes;
  ranks.barrier();
}

TEST(gradient_sum_test, keeps_the_order_of_ranks_and_micro_batches) {
  for (int64_t count : {16, 1008, 5008}) {
    for (int64_t micro_batches : {1, 2, 3}) {
      check_sum<float>(count, micro_batches, gradient_sum::piece_bytes);
      check_sum<double>(count, micro_batches, gradient_sum::piece_bytes);
    }
  }
}

TEST(gradient_sum_test, exchanges_parts_in_several_rounds) {
  check_sum<float>(9008, 2, 4096);
  check_sum<double>(9008, 2, 8192);
}

TEST(gradient_sum_test, adds_any_number_of_ranks) {
  streams queues;
  const int64_t count = 1027, stride = 1032;
  for (int size : {1, 2, 5})
    for (int rank = 0; rank < size; ++rank)
      for (bool with_initial : {false, true}) {
        std::vector<float> received;
        for (int other = 0; other < size; ++other) {
          std::vector<float> values = own_gradients<float>(other, 0, stride);
          if (other != rank)
            received.insert(received.end(), values.begin(), values.end());
        }
        device_copy<float> own(own_gradients<float>(rank, 0, count)), others(received);
        device_copy<float> initial(own_gradients<float>(size, 1, count));
        auto bytes = [](const device_copy<float> &array) {
          return reinterpret_cast<char *>(array.data());
        };
        queue_flat_sum(data_type::f32,
                       {with_initial ? bytes(initial) : nullptr, bytes(own), bytes(others), stride,
                        rank, size},
                       count, bytes(own));
        std::vector<float> found = own.values();
        for (int64_t i = 0; i < count; ++i) {
          float total = gradient<float>(0, 0, i);
          if (with_initial)
            total = gradient<float>(size, 1, i) + total;
          for (int other = 1; other < size; ++other)
            total += gradient<float>(other, 0, i);
          ASSERT_EQ(found[static_cast<size_t>(i)], total) << "element " << i << ", rank " << rank;
        }
      }
}

} // namespace
} // namespace trainc

int main(int count, char **arguments) {
  testing::InitGoogleTest(&count, arguments);
  trainc::communicator ranks;
  trainc::all_ranks = &ranks;
  if (ranks.size() > 1 && cudaSetDevice(ranks.rank_on_host()) != cudaSuccess)
    return 1;
  return RUN_ALL_TESTS();
}
