// SPDX-License-Identifier: Apache-2.0
//
// A thread for each element that is written: of the result its window, of a gradient the windows
// that it is part of, in order of points. Nothing is added by two threads.
#include "runtime/kernels/pool.h"

#include "runtime/cuda/launch.h"
#include "runtime/cuda/memory.h"
#include "runtime/failure.h"

namespace trainc {
namespace {

constexpr int block_threads = 256;

// Where point `point` of the result and tap `tap` meet in a plane of the input; -1 outside.
__device__ inline int64_t meeting(const pool_windows &windows, int64_t point, int64_t tap) {
  int64_t place = 0, stride = 1;
  bool inside = true;
  for (int d = max_space - 1; d >= 0; --d) {
    const int64_t at = point % windows.result.of[d] * windows.stride.of[d] +
                       tap % windows.kernel.of[d] * windows.dilation.of[d] - windows.before.of[d];
    inside &= (at >= 0) & (at < windows.input.of[d]);
    place += at * stride;
    stride *= windows.input.of[d];
    point /= windows.result.of[d];
    tap /= windows.kernel.of[d];
  }
  return inside ? place : -1;
}

// The point of the result whose tap `tap` meets element `place` of the input; -1 where none does.
__device__ inline int64_t point_meeting(const pool_windows &windows, int64_t place, int64_t tap) {
  int64_t point = 0, stride = 1;
  bool meets = true;
  for (int d = max_space - 1; d >= 0; --d) {
    const int64_t from = place % windows.input.of[d] + windows.before.of[d] -
                         tap % windows.kernel.of[d] * windows.dilation.of[d];
    const int64_t at = from / windows.stride.of[d];
    meets &= (from >= 0) & (from % windows.stride.of[d] == 0) & (at < windows.result.of[d]);
    point += at * stride;
    stride *= windows.result.of[d];
    place /= windows.input.of[d];
    tap /= windows.kernel.of[d];
  }
  return meets ? point : -1;
}

// Where in its plane `x` the window of `point` is largest.
template <typename T>
__device__ int64_t largest_place(const pool_windows &windows, const T *x, int64_t point) {
  int64_t largest = -1;
  T best = T(0);
  for (int64_t tap = 0; tap < windows.kernel.count(); ++tap) {
    const int64_t place = meeting(windows, point, tap);
    if (place < 0)
      continue;
    const T value = x[place];
    if ((largest < 0) | (value > best) | (value != value)) {
      largest = place;
      best = value;
    }
  }
  return largest;
}

template <typename T, typename V>
__global__ void pick_largest_values(pool_windows windows, const T *x, const V *values, V *picked) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= windows.planes * windows.result.count())
    return;
  const int64_t plane = index / windows.result.count() * windows.input.count();
  const int64_t place = largest_place(windows, x + plane, index % windows.result.count());
  if (place >= 0)
    picked[index] = values[plane + place];
}

// Positions in the planes of x.
template <typename T>
__global__ void find_largest(pool_windows windows, const T *x, int64_t *places) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= windows.planes * windows.result.count())
    return;
  const int64_t plane = index / windows.result.count() * windows.input.count();
  places[index] = largest_place(windows, x + plane, index % windows.result.count());
}

// The last taps meet the first points.
template <typename T>
__global__ void add_where_largest(pool_windows windows, const int64_t *places, const T *dy, T *dx) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= windows.planes * windows.input.count())
    return;
  const int64_t place = index % windows.input.count();
  const int64_t begin = index / windows.input.count() * windows.result.count();
  T sum = T(0);
  for (int64_t tap = windows.kernel.count() - 1; tap >= 0; --tap) {
    const int64_t point = point_meeting(windows, place, tap);
    if (point >= 0)
      if (places[begin + point] == place)
        sum += dy[begin + point];
  }
  dx[index] = sum;
}

template <typename T> __global__ void sum_windows(pool_windows windows, const T *x, T *y) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= windows.planes * windows.result.count())
    return;
  const T *plane = x + index / windows.result.count() * windows.input.count();
  T sum = T(0);
  for (int64_t tap = 0; tap < windows.kernel.count(); ++tap) {
    const int64_t place = meeting(windows, index % windows.result.count(), tap);
    if (place >= 0)
      sum += plane[place];
  }
  y[index] = sum;
}

template <typename T> __global__ void sum_over_windows(pool_windows windows, const T *dy, T *dx) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (index >= windows.planes * windows.input.count())
    return;
  const T *plane = dy + index / windows.input.count() * windows.result.count();
  T sum = T(0);
  for (int64_t tap = windows.kernel.count() - 1; tap >= 0; --tap) {
    const int64_t point = point_meeting(windows, index % windows.input.count(), tap);
    if (point >= 0)
      sum += plane[point];
  }
  dx[index] = sum;
}

launch_shape threads_for(int64_t elements) {
  const int64_t blocks = (elements + block_threads - 1) / block_threads;
  if (blocks > INT32_MAX)
    throw failure(exit_machine, "a pool has more elements than a GPU's grid of blocks"
                                "\n  try: a smaller batch, or trainc --target cpu");
  return {static_cast<unsigned>(blocks), block_threads};
}

int64_t inputs_of(const pool_windows &windows) { return windows.planes * windows.input.count(); }
int64_t results_of(const pool_windows &windows) { return windows.planes * windows.result.count(); }

template <typename T, typename V>
void pick_largest(const pool_windows &windows, const T *x, const V *values, V *picked) {
  launch("largest elements of windows", pick_largest_values<T, V>, threads_for(results_of(windows)),
         windows, reads(x, inputs_of(windows)), reads(values, inputs_of(windows)),
         writes(picked, results_of(windows)));
}

template <typename T>
void add_largest(const pool_windows &windows, const T *x, const T *dy, T *dx) {
  const int64_t results = results_of(windows);
  plan_scratch(results * static_cast<int64_t>(sizeof(int64_t)));
  auto *places = reinterpret_cast<int64_t *>(scratch());
  launch("places of windows' largest elements", find_largest<T>, threads_for(results), windows,
         reads(x, inputs_of(windows)), writes(places, results));
  launch("gradient of windows' largest elements", add_where_largest<T>,
         threads_for(inputs_of(windows)), windows,
         reads(static_cast<const int64_t *>(places), results), reads(dy, results),
         writes(dx, inputs_of(windows)));
}

template <typename T> void add_windows(const pool_windows &windows, const T *x, T *y) {
  launch("sums of windows", sum_windows<T>, threads_for(results_of(windows)), windows,
         reads(x, inputs_of(windows)), writes(y, results_of(windows)));
}

template <typename T> void spread_windows(const pool_windows &windows, const T *dy, T *dx) {
  launch("gradient of windows' sums", sum_over_windows<T>, threads_for(inputs_of(windows)), windows,
         reads(dy, results_of(windows)), writes(dx, inputs_of(windows)));
}

} // namespace

DEFINE_POOLS(float)
DEFINE_POOLS(double)

} // namespace trainc
