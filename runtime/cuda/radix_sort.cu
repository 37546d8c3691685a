// SPDX-License-Identifier: Apache-2.0
//
// Least significant digit first, one byte per pass: blocks count the digits of their
// tiles, one block turns the counts into places, blocks move their elements there.
// Integer additions alone are atomic, so the result depends on no order of threads.
#include "runtime/cuda/radix_sort.h"

#include "runtime/cuda/launch.h"

namespace trainc {
namespace {

constexpr int digit_bits = 8;
constexpr int digits = 1 << digit_bits;
constexpr int warp_lanes = 32;
constexpr int block_threads = 256; // one per digit
constexpr int block_warps = block_threads / warp_lanes;
constexpr int warp_rounds = 8; // elements of a thread
constexpr int warp_elements = warp_rounds * warp_lanes;
constexpr int tile_elements = block_warps * warp_elements;
constexpr int scan_threads = 1024;
static_assert(block_threads == digits);

int64_t tiles_of(int64_t count) { return (count + tile_elements - 1) / tile_elements; }

__device__ int digit_of(uint32_t key, int shift) {
  return static_cast<int>(key >> shift) & (digits - 1);
}

// counts[digit * tiles + tile]: how often a digit occurs in a tile.
__global__ void count_digits(const uint32_t *keys, int64_t count, int shift, uint32_t *counts) {
  __shared__ uint32_t histogram[digits];
  histogram[threadIdx.x] = 0;
  __syncthreads();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * tile_elements;
  for (int step = 0; step < tile_elements; step += block_threads) {
    const int64_t i = first + step + threadIdx.x;
    if (i < count)
      atomicAdd(&histogram[digit_of(keys[i], shift)], 1u);
  }
  __syncthreads();
  counts[static_cast<int64_t>(threadIdx.x) * gridDim.x + blockIdx.x] = histogram[threadIdx.x];
}

// Replaces each count by the sum of those before it. One block; each thread takes
// neighbouring counts.
__global__ void sum_counts_before(uint32_t *counts, int64_t total) {
  __shared__ uint32_t sums[scan_threads];
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t share = (total + scan_threads - 1) / scan_threads;
  const int64_t begin = thread * share;
  const int64_t end = begin + share < total ? begin + share : total;
  uint32_t own = 0;
  for (int64_t i = begin; i < end; ++i)
    own += counts[i];
  sums[thread] = own;
  __syncthreads();
  for (int distance = 1; distance < scan_threads; distance *= 2) {
    const uint32_t before = thread >= distance ? sums[thread - distance] : 0;
    __syncthreads();
    sums[thread] += before;
    __syncthreads();
  }
  uint32_t running = sums[thread] - own;
  for (int64_t i = begin; i < end; ++i) {
    const uint32_t here = counts[i];
    counts[i] = running;
    running += here;
  }
}

// Lanes whose element has the same digit as this lane's; a lane without an element
// has none of these.
__device__ unsigned lanes_with(int digit, bool has_element) {
  const unsigned holders = __ballot_sync(0xffffffffu, has_element);
  unsigned peers = has_element ? holders : ~holders;
  for (int bit = 0; bit < digit_bits; ++bit) {
    const bool set = (digit >> bit & 1) != 0;
    const unsigned setters = __ballot_sync(0xffffffffu, set);
    peers &= set ? setters : ~setters;
  }
  return peers;
}

// Each warp of a block takes neighbouring elements of the tile, so that an element's
// place is after those of all elements before it with the same digit.
__global__ void move_by_digit(const uint32_t *keys, const uint32_t *positions, int64_t count,
                              int shift, const uint32_t *places, uint32_t *keys_out,
                              uint32_t *positions_out) {
  __shared__ uint32_t used[block_warps][digits];
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / warp_lanes, lane = thread % warp_lanes;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * tile_elements + warp * warp_elements;
  for (int digit = lane; digit < digits; digit += warp_lanes)
    used[warp][digit] = 0;
  __syncwarp();

  uint32_t before[warp_rounds]; // elements of the warp with the same digit before this one
  for (int round = 0; round < warp_rounds; ++round) {
    const int64_t i = first + round * warp_lanes + lane;
    const bool has_element = i < count;
    const int digit = has_element ? digit_of(keys[i], shift) : 0;
    const unsigned peers = lanes_with(digit, has_element);
    const unsigned earlier = peers & ((1u << lane) - 1);
    before[round] = used[warp][digit] + static_cast<uint32_t>(__popc(earlier));
    __syncwarp();
    if (has_element && earlier == 0)
      used[warp][digit] += static_cast<uint32_t>(__popc(peers));
    __syncwarp();
  }
  __syncthreads();
  uint32_t place = places[static_cast<int64_t>(thread) * gridDim.x + blockIdx.x];
  for (int other = 0; other < block_warps; ++other) {
    const uint32_t here = used[other][thread];
    used[other][thread] = place;
    place += here;
  }
  __syncthreads();
  for (int round = 0; round < warp_rounds; ++round) {
    const int64_t i = first + round * warp_lanes + lane;
    if (i >= count)
      continue;
    const uint32_t to = used[warp][digit_of(keys[i], shift)] + before[round];
    keys_out[to] = keys[i];
    positions_out[to] = positions[i];
  }
}

} // namespace

int64_t radix_sort_bytes(int64_t count) {
  return (4 * count + digits * tiles_of(count)) * static_cast<int64_t>(sizeof(uint32_t));
}

sort_storage::sort_storage(char *base, int64_t count) {
  auto *words = reinterpret_cast<uint32_t *>(base);
  first = {words, words + count};
  second = {words + 2 * count, words + 3 * count};
  digit_counts = words + 4 * count;
}

sorted_positions queue_radix_sort(const sort_storage &storage, int64_t count, int key_bits) {
  const int64_t tiles = tiles_of(count);
  const auto blocks = static_cast<unsigned>(tiles);
  sorted_positions from = storage.first, to = storage.second;
  for (int shift = 0; shift < key_bits; shift += digit_bits) {
    launch("digits of indexes", count_digits, {blocks, block_threads}, reads(from.keys, count),
           count, shift, writes(storage.digit_counts, digits * tiles));
    launch("places of digits", sum_counts_before, {1, scan_threads},
           writes(storage.digit_counts, digits * tiles), digits * tiles);
    launch("sort of indexes", move_by_digit, {blocks, block_threads}, reads(from.keys, count),
           reads(from.positions, count), count, shift, reads(storage.digit_counts, digits * tiles),
           writes(to.keys, count), writes(to.positions, count));
    const sorted_positions sorted = to;
    to = from;
    from = sorted;
  }
  return from;
}

} // namespace trainc
