// SPDX-License-Identifier: Apache-2.0
//
// Sums of gradients on the device against the order that is promised, bit for bit. Run
// by several ranks, each checks the sum over all of them.
#include "runtime/cuda/gradient_sum.h"

#include "runtime/cuda/bucket_exchange.h"
#include "runtime/cuda/flat_sum.h"
#include "runtime/cuda/gradient_shards.h"
#include "runtime/cuda/launch.h"
#include "runtime/cuda/streams.h"
#include "runtime/files/data_types.h"
#include "tests/stand_in/runtime/device_copy.h"

#include <cstring>
#include <gtest/gtest.h>
#include <string>

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

// Of the step's micro-batches [begin, begin + 2^level), those after the last left out. Ranks have
// neighbours, or take them in turn.
template <typename T, bool in_turn = false>
std::vector<T> pairwise(int64_t begin, int level, int ranks, int64_t micro_batches, int64_t count) {
  if (level == 0 && in_turn)
    return own_gradients<T>(static_cast<int>(begin % ranks), begin / ranks, count);
  if (level == 0)
    return own_gradients<T>(static_cast<int>(begin / micro_batches), begin % micro_batches, count);
  std::vector<T> sum = pairwise<T, in_turn>(begin, level - 1, ranks, micro_batches, count);
  const int64_t middle = begin + (int64_t{1} << (level - 1));
  if (middle >= ranks * micro_batches)
    return sum;
  std::vector<T> right = pairwise<T, in_turn>(middle, level - 1, ranks, micro_batches, count);
  for (size_t i = 0; i < sum.size(); ++i)
    sum[i] += right[i];
  return sum;
}

// Of each rank in turn, and of the ranks [begin, begin + 2^level) pairwise.
template <typename T>
std::vector<T> running(int64_t begin, int level, int ranks, int64_t micro_batches, int64_t count) {
  const auto add = [](std::vector<T> sum, const std::vector<T> &other) {
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] += other[i];
    return sum;
  };
  if (level == 0) {
    const int rank = static_cast<int>(begin);
    std::vector<T> sum = own_gradients<T>(rank, 0, count);
    for (int64_t j = 1; j < micro_batches; ++j)
      sum = add(sum, own_gradients<T>(rank, j, count));
    return sum;
  }
  const int64_t middle = begin + (int64_t{1} << (level - 1));
  const std::vector<T> left = running<T>(begin, level - 1, ranks, micro_batches, count);
  return middle < ranks ? add(left, running<T>(middle, level - 1, ranks, micro_batches, count))
                        : left;
}

// A sum with all that it needs on the device.
template <typename T> struct placed_sum {
  placed_sum(int64_t count, int64_t micro_batches, int64_t piece_bytes, accumulation how)
      : sum(*all_ranks, stage_layout(all_ranks->rank(), all_ranks->size()), type_of<T>(),
            count * static_cast<int64_t>(sizeof(T)), micro_batches, how, /*stages=*/nullptr,
            piece_bytes),
        gradients(std::vector<T>(static_cast<size_t>(count))),
        taken(std::vector<T>(static_cast<size_t>(count))),
        accumulators(bytes(sum.accumulator_bytes())), received(bytes(sum.exchange_bytes())),
        table(bytes(sum.table_bytes())) {
    sum.start();
    sum.place(reinterpret_cast<char *>(gradients.data()), accumulators.data(), received.data(),
              table.data());
  }
  static std::vector<char> bytes(int64_t count) {
    return std::vector<char>(static_cast<size_t>(count));
  }

  streams queues;
  gradient_sum sum;
  device_copy<T> gradients, taken; // taken: by what is queued next
  device_copy<char> accumulators, received, table;
};

template <typename T>
void expect_total(placed_sum<T> &own, int64_t count, int64_t micro_batches, accumulation how,
                  const std::string &of) {
  check_cuda(cudaMemcpyAsync(own.taken.data(), own.gradients.data(),
                             static_cast<size_t>(count) * sizeof(T), cudaMemcpyDeviceToDevice,
                             compute_stream()),
             "a sum");
  check_cuda(cudaStreamSynchronize(compute_stream()), "a sum");
  own.sum.check();
  const std::vector<T> found = own.taken.values();
  const auto order = how == accumulation::running ? running<T> : pairwise<T>;
  const std::vector<T> expected = order(0, 8, all_ranks->size(), micro_batches, count);
  EXPECT_EQ(memcmp(found.data(), expected.data(), found.size() * sizeof(T)), 0)
      << count << " elements, " << micro_batches << " micro-batches, " << of;
  all_ranks->barrier();
}

template <typename T>
void check_sum(int64_t count, int64_t micro_batches, int64_t piece_bytes,
               accumulation how = accumulation::pairwise) {
  placed_sum<T> own(count, micro_batches, piece_bytes, how);
  for (int64_t j = 0; j < micro_batches; ++j) {
    own.gradients.set(own_gradients<T>(all_ranks->rank(), j, count));
    own.sum.queue(j);
  }
  expect_total(own, count, micro_batches, how, "pieces of " + std::to_string(piece_bytes));
}

// Steps of a function that makes the last gradients bucket by bucket: as it is, recorded, replayed.
template <typename T>
void check_buckets(int64_t micro_batches, accumulation how = accumulation::pairwise) {
  constexpr int64_t count = 5008;
  static constexpr gradient_piece pieces[] = {
      {0, {4000, 5008}}, {0, {0, 16}}, {0, {2000, 4000}}, {0, {16, 2000}}};
  static constexpr gradient_bucket buckets[] = {{pieces, 1}, {pieces + 1, 2}, {pieces + 3, 1}};
  placed_sum<T> own(count, micro_batches, gradient_sum::piece_bytes, how);
  const std::vector<T> last = own_gradients<T>(all_ranks->rank(), micro_batches - 1, count);
  device_copy<T> made(last);
  graphs recorded;
  recorded.allow(1);
  bucket_exchange beside(recorded, /*memory_is_lent=*/false,
                         [&](int number) { own.sum.queue_last(buckets[number]); });
  const auto make = [&] {
    for (int number = 0; number < 3; ++number) {
      for (const gradient_piece &piece : buckets[number])
        check_cuda(cudaMemcpyAsync(own.gradients.data() + piece.elements.begin,
                                   made.data() + piece.elements.begin,
                                   static_cast<size_t>(piece.elements.end - piece.elements.begin) *
                                       sizeof(T),
                                   cudaMemcpyDeviceToDevice, compute_stream()),
                   "a gradient");
      beside.complete(number);
    }
  };
  for (const char *step : {"as it is", "recorded", "replayed"}) {
    for (int64_t j = 0; j < micro_batches - 1; ++j) {
      own.gradients.set(own_gradients<T>(all_ranks->rank(), j, count));
      own.sum.queue(j);
    }
    recorded.run(0, make);
    beside.finish();
    expect_total(own, count, micro_batches, how, step);
  }
}

// Gradients of two buckets, which lie in activations in another order, with a hole before the last.
constexpr int64_t shard_elements = 9040;
constexpr gradient_piece shard_pieces[] = {
    {0, {6000, 8000}}, {8192, {0, 1008}}, {12352, {1008, 6000}}, {32384, {8016, 9040}}};
constexpr gradient_bucket shard_buckets[] = {{shard_pieces, 2}, {shard_pieces + 2, 2}};
constexpr int64_t shard_activations = 9200;

program sharded_program() {
  program prog = {};
  prog.parameter_type = data_type::f32;
  prog.summed_bytes = shard_elements * 4;
  prog.shards_gradients = true;
  prog.buckets = shard_buckets;
  return prog;
}

void set_activations(device_copy<float> &activations, int64_t micro_batch) {
  const std::vector<float> own =
      own_gradients<float>(all_ranks->rank(), micro_batch, shard_elements);
  std::vector<float> values(shard_activations);
  for (const gradient_piece &piece : shard_pieces)
    std::copy(own.begin() + piece.elements.begin, own.begin() + piece.elements.end,
              values.begin() + piece.offset / 4);
  activations.set(values);
}

void check_shards(int64_t micro_batches) {
  streams queues;
  const program prog = sharded_program();
  gradient_shards shards(*all_ranks, prog, micro_batches, accumulation::pairwise);
  shards.start();
  auto bytes = [](int64_t count) { return std::vector<char>(static_cast<size_t>(count)); };
  device_copy<float> activations{std::vector<float>(shard_activations)},
      total{std::vector<float>(shard_elements)};
  device_copy<char> accumulators(bytes(shards.accumulator_addresses())),
      received(bytes(shards.exchange_bytes())), table(bytes(shards.table_bytes()));
  shards.place(reinterpret_cast<char *>(activations.data()), accumulators.data(), received.data(),
               table.data());
  shards.meet();
  for (int64_t j = 0; j < micro_batches; ++j) {
    set_activations(activations, j);
    shards.queue(j, 0);
    shards.queue(j, 1);
  }
  shards.gather(reinterpret_cast<char *>(total.data()));
  check_cuda(cudaStreamSynchronize(compute_stream()), "a sum");
  shards.check();
  const std::vector<float> found = total.values();
  std::vector<float> expected =
      pairwise<float, true>(0, 8, all_ranks->size(), micro_batches, shard_elements);
  std::fill(expected.begin() + 8000, expected.begin() + 8016, 0.0f); // between gradients
  EXPECT_EQ(memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0)
      << micro_batches << " micro-batches";
  all_ranks->barrier();
}

TEST(gradient_shards_test, keeps_the_order_of_ranks_and_micro_batches) {
  for (int64_t micro_batches : {1, 2, 3, 4, 7})
    check_shards(micro_batches);
}

TEST(gradient_shards_test, shares_are_all_gradients_and_of_like_size) {
  const program prog = sharded_program();
  const gradient_shards shards(*all_ranks, prog, 1, accumulation::pairwise);
  std::vector<int64_t> sizes(static_cast<size_t>(all_ranks->size()));
  int64_t end = 0;
  for (const update_share &each : shards.shares()) {
    EXPECT_EQ(each.range.begin, end);
    end = each.range.end;
    sizes[static_cast<size_t>(each.replica)] += each.range.end - each.range.begin;
  }
  EXPECT_EQ(end, shard_elements);
  constexpr int64_t unit = 1024; // at which gradients are cut, of two in each of two buckets
  for (const int64_t size : sizes)
    EXPECT_NEAR(static_cast<double>(size), static_cast<double>(shard_elements / all_ranks->size()),
                4.0 * unit);
}

TEST(gradient_sum_test, keeps_the_order_of_ranks_and_micro_batches) {
  for (int64_t count : {16, 1008, 5008}) {
    for (int64_t micro_batches : {1, 2, 3, 4, 7}) {
      check_sum<float>(count, micro_batches, gradient_sum::piece_bytes);
      check_sum<double>(count, micro_batches, gradient_sum::piece_bytes);
      check_sum<float>(count, micro_batches, gradient_sum::piece_bytes, accumulation::running);
    }
  }
}

TEST(gradient_sum_test, exchanges_parts_in_several_rounds) {
  check_sum<float>(9008, 2, 4096);
  check_sum<double>(9008, 2, 8192);
}

TEST(gradient_sum_test, exchanges_buckets_as_soon_as_they_are_whole) {
  for (int64_t micro_batches : {1, 2, 3, 4}) {
    check_buckets<float>(micro_batches);
    check_buckets<double>(micro_batches);
    check_buckets<float>(micro_batches, accumulation::running);
  }
}

TEST(gradient_sum_test, adds_arrays_in_the_order_of_a_list) {
  streams queues;
  const int64_t count = 1027, stride = 1032;
  auto value = [](int array, int64_t i) { return gradient<float>(array, 0, i); };
  std::vector<float> sources;
  for (int array = 0; array < 5; ++array) {
    std::vector<float> values = own_gradients<float>(array, 0, stride);
    sources.insert(sources.end(), values.begin(), values.end());
  }
  // Arrays 0 and 1 are accumulators, 2 the gradients, 3 and 4 were received.
  using kinds = summand;
  device_copy<summand> list({{0, 0, kinds::of_accumulators},
                             {1, 0, kinds::of_accumulators},
                             {-1, 2, kinds::of_accumulators},
                             {0, 0, kinds::of_received},
                             {1, 2, kinds::of_received}});
  auto part = [&](int first, int last) {
    return std::vector<float>(sources.begin() + first * stride, sources.begin() + last * stride);
  };
  device_copy<float> accumulators(part(0, 2)), own(part(2, 3)), received(part(3, 5));
  auto bytes = [](const device_copy<float> &array) {
    return reinterpret_cast<char *>(array.data());
  };
  queue_flat_sum(data_type::f32, {bytes(own), bytes(accumulators), stride, bytes(received), stride},
                 {list.data(), 5, 2, 2}, count, bytes(own));
  std::vector<float> found = own.values();
  for (int64_t i = 0; i < count; ++i)
    ASSERT_EQ(found[static_cast<size_t>(i)],
              (value(0, i) + (value(1, i) + value(2, i))) + (value(3, i) + value(4, i)))
        << "element " << i;
  EXPECT_EQ(found.back(), value(2, stride - 1)) << "behind the last element";
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
