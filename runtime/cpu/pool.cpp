// SPDX-License-Identifier: Apache-2.0
//
// Threads share the planes. Of each row of the result, first the rows of the input that its windows
// meet become one row of columns, then each window joins those that it meets: so every loop is over
// contiguous elements or ones of a constant stride, and a window of 3 x 3 costs six steps, not
// nine. Columns that lie outside hold what changes nothing.
#include "runtime/kernels/pool.h"
#include "runtime/cpu/thread_memory.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

namespace trainc {

namespace {

constexpr int64_t parallel_elements = 8192; // visited in all; fewer are not worth a second thread
constexpr int last = max_space - 1;         // dimension, that of rows

// The rows that the windows of one row of the result meet, and the columns made of them.
class row_of_windows {
public:
  explicit row_of_windows(const pool_windows &windows)
      : windows_(windows), columns_((windows.result.of[last] - 1) * windows.stride.of[last] +
                                    (windows.kernel.of[last] - 1) * windows.dilation.of[last] + 1),
        first_(std::min(windows.before.of[last], columns_)),
        count_(std::min(windows.input.of[last], columns_ - first_)) {}

  // Calls visit(where a row begins in its plane), in order of taps, for row (a, b) of the result.
  template <typename Visit> void for_each_row(int64_t a, int64_t b, Visit visit) const {
    const auto &[planes, input, kernel, result, stride, dilation, before] = windows_;
    for (int64_t depth = 0; depth < kernel.of[0]; ++depth)
      for (int64_t row = 0; row < kernel.of[1]; ++row) {
        const int64_t i = a * stride.of[0] + depth * dilation.of[0] - before.of[0];
        const int64_t j = b * stride.of[1] + row * dilation.of[1] - before.of[1];
        if ((i >= 0) & (i < input.of[0]) & (j >= 0) & (j < input.of[1]))
          visit((i * input.of[1] + j) * input.of[2]);
      }
  }

  int64_t columns() const { return columns_; }
  int64_t first() const { return first_; } // column that the input's first element lies in
  int64_t count() const { return count_; } // columns inside
  int64_t points() const { return windows_.result.of[last]; }
  int64_t taps() const { return windows_.kernel.of[last]; }
  int64_t step() const { return windows_.dilation.of[last]; } // columns from tap to tap
  int64_t stride() const { return windows_.stride.of[last]; }

private:
  const pool_windows &windows_;
  int64_t columns_, first_, count_;
};

// Calls body(stride), with a constant where that makes vectors of the loop.
template <typename Body> void with_stride(int64_t stride, Body body) {
  if (stride == 1)
    body(std::integral_constant<int64_t, 1>());
  else if (stride == 2)
    body(std::integral_constant<int64_t, 2>());
  else
    body(stride);
}

// NOLINTNEXTLINE(misc-redundant-expression): a NaN differs from itself
template <typename T> inline bool is_none(T value) { return value != value; }

// Functions as types, which loops take in.
struct larger {
  template <typename T> T operator()(T a, T b) const { return (b > a) | is_none(b) ? b : a; }
};
struct sum {
  template <typename T> T operator()(T a, T b) const { return a + b; }
};

// joined[p] = all that window p meets, in order.
template <typename T, typename Join>
void join_columns(const row_of_windows &row, const T *columns, T *joined, Join join) {
  const int64_t points = row.points(), taps = row.taps(), step = row.step();
  with_stride(row.stride(), [&](auto stride) {
    if (taps == 2) {
#pragma omp simd
      for (int64_t p = 0; p < points; ++p)
        joined[p] = join(columns[p * stride], columns[p * stride + step]);
      return;
    }
    if (taps == 3) {
#pragma omp simd
      for (int64_t p = 0; p < points; ++p)
        joined[p] = join(join(columns[p * stride], columns[p * stride + step]),
                         columns[p * stride + 2 * step]);
      return;
    }
    for (int64_t p = 0; p < points; ++p)
      joined[p] = columns[p * stride];
    for (int64_t tap = 1; tap < taps; ++tap) {
#pragma omp simd
      for (int64_t p = 0; p < points; ++p)
        joined[p] = join(joined[p], columns[p * stride + tap * step]);
    }
  });
}

template <typename Work> void for_each_plane(const pool_windows &windows, Work work) {
  const int64_t visited = windows.planes * windows.result.count() * windows.kernel.count();
#pragma omp parallel for schedule(static) if (visited > parallel_elements)
  for (int64_t plane = 0; plane < windows.planes; ++plane)
    work(plane);
}

// Calls work(a, b, where the row begins in its plane) for the rows of a plane of the result.
template <typename Work> void for_each_result_row(const pool_windows &windows, Work work) {
  const space_sizes &result = windows.result;
  for (int64_t a = 0; a < result.of[0]; ++a)
    for (int64_t b = 0; b < result.of[1]; ++b)
      work(a, b, (a * result.of[1] + b) * result.of[last]);
}

// Joins the windows of a plane of x.
template <typename T, typename Join>
void join_windows(const pool_windows &windows, const T *x, T *y, T nothing, Join join) {
  const row_of_windows row(windows);
  T *columns = thread_memory<T>(static_cast<size_t>(row.columns()));
  std::fill_n(columns, row.columns(), nothing);
  T *inside = columns + row.first();
  for_each_result_row(windows, [&](int64_t a, int64_t b, int64_t begin) {
    std::fill_n(inside, row.count(), nothing);
    row.for_each_row(a, b, [&](int64_t from) {
      const T *elements = x + from;
#pragma omp simd
      for (int64_t c = 0; c < row.count(); ++c)
        inside[c] = join(inside[c], elements[c]);
    });
    join_columns(row, columns, y + begin, join);
  });
}

// Where the windows of a row are largest. Of each column the place of its largest element goes
// along, as the place where that row begins: in row-major order rows count before columns.
template <typename T, typename Place> class largest_places {
public:
  explicit largest_places(const pool_windows &windows)
      : row_(windows),
        values_(thread_memory<T>(static_cast<size_t>(row_.columns() + row_.points()))),
        rows_(thread_memory<Place>(static_cast<size_t>(row_.columns() + 2 * row_.points()))),
        best_(values_ + row_.columns()), best_rows_(rows_ + row_.columns()),
        places_(best_rows_ + row_.points()) {
    std::fill_n(values_, row_.columns(), lowest);
    std::fill_n(rows_, row_.columns(), nowhere);
  }

  // Places in the plane of x.
  const Place *find(const T *x, int64_t a, int64_t b) {
    T *values = values_ + row_.first();
    Place *rows = rows_ + row_.first();
    std::fill_n(values, row_.count(), lowest);
    std::fill_n(rows, row_.count(), nowhere);
    row_.for_each_row(a, b, [&](int64_t from) {
      const T *elements = x + from;
      const Place place = static_cast<Place>(from);
#pragma omp simd
      for (int64_t c = 0; c < row_.count(); ++c) {
        const T value = elements[c];
        const bool takes = (value > values[c]) | is_none(value) | (rows[c] == nowhere);
        values[c] = takes ? value : values[c];
        rows[c] = takes ? place : rows[c];
      }
    });
    with_stride(row_.stride(), [&](auto stride) { choose(stride); });
    return places_;
  }

private:
  static constexpr T lowest = -std::numeric_limits<T>::infinity();
  static constexpr Place nowhere = std::numeric_limits<Place>::max(); // after all rows

  template <typename Stride> void choose(Stride stride) {
    T *best = best_;
    Place *best_rows = best_rows_, *places = places_;
    for (int64_t p = 0; p < row_.points(); ++p) {
      best[p] = values_[p * stride];
      best_rows[p] = rows_[p * stride];
      places[p] = static_cast<Place>(p * stride);
    }
    for (int64_t tap = 1; tap < row_.taps(); ++tap) {
      const int64_t ahead = tap * row_.step();
      const T *values = values_ + ahead;
      const Place *rows = rows_ + ahead;
#pragma omp simd
      for (int64_t p = 0; p < row_.points(); ++p) {
        const T value = values[p * stride];
        const Place row = rows[p * stride];
        const bool none = is_none(value), best_is_none = is_none(best[p]);
        // Of equal ones the first, of several that are not numbers the last.
        const bool takes = (value > best[p]) | ((value == best[p]) & (row < best_rows[p])) |
                           (none & (!best_is_none | (row >= best_rows[p])));
        best[p] = takes ? value : best[p];
        best_rows[p] = takes ? row : best_rows[p];
        places[p] = takes ? static_cast<Place>(p * stride + ahead) : places[p];
      }
    }
    const Place first = static_cast<Place>(row_.first());
    for (int64_t p = 0; p < row_.points(); ++p)
      places[p] += best_rows[p] - first;
  }

  row_of_windows row_;
  // Of the thread: of each column, then of each window.
  T *values_;
  Place *rows_;
  T *best_;
  Place *best_rows_, *places_;
};

// Calls work(places of the row's windows, where it begins in its plane) for the rows of a plane of
// x.
template <typename T, typename Work>
void for_each_largest(const pool_windows &windows, const T *x, Work work) {
  auto walk = [&](auto place) {
    largest_places<T, decltype(place)> places(windows);
    for_each_result_row(
        windows, [&](int64_t a, int64_t b, int64_t begin) { work(places.find(x, a, b), begin); });
  };
  // Places as wide as f32 share its vectors.
  if (windows.input.count() < INT32_MAX) // NOLINT(bugprone-branch-clone): of two types
    walk(int32_t());
  else
    walk(int64_t());
}

template <typename T, typename V>
void pick_largest(const pool_windows &windows, const T *x, const V *values, V *picked) {
  for_each_plane(windows, [&](int64_t plane) {
    const T *of_x = x + plane * windows.input.count();
    const V *of_values = values + plane * windows.input.count();
    V *to = picked + plane * windows.result.count();
    if constexpr (std::is_same_v<T, V>)
      if (x == values)
        return join_windows(windows, of_x, to, -std::numeric_limits<T>::infinity(), larger());
    for_each_largest(windows, of_x, [&](const auto *places, int64_t begin) {
      for (int64_t p = 0; p < windows.result.of[last]; ++p)
        to[begin + p] = of_values[places[p]];
    });
  });
}

template <typename T>
void add_largest(const pool_windows &windows, const T *x, const T *dy, T *dx) {
  for_each_plane(windows, [&](int64_t plane) {
    const T *of_dy = dy + plane * windows.result.count();
    T *to = dx + plane * windows.input.count();
    std::memset(to, 0, static_cast<size_t>(windows.input.count()) * sizeof(T));
    for_each_largest(windows, x + plane * windows.input.count(),
                     [&](const auto *places, int64_t begin) {
                       for (int64_t p = 0; p < windows.result.of[last]; ++p)
                         to[places[p]] += of_dy[begin + p];
                     });
  });
}

template <typename T> void add_windows(const pool_windows &windows, const T *x, T *y) {
  for_each_plane(windows, [&](int64_t plane) {
    join_windows(windows, x + plane * windows.input.count(), y + plane * windows.result.count(),
                 T(0), sum());
  });
}

template <typename T> void spread_windows(const pool_windows &windows, const T *dy, T *dx) {
  for_each_plane(windows, [&](int64_t plane) {
    const row_of_windows row(windows);
    T *columns = thread_memory<T>(static_cast<size_t>(row.columns()));
    T *to = dx + plane * windows.input.count();
    std::memset(to, 0, static_cast<size_t>(windows.input.count()) * sizeof(T));
    for_each_result_row(windows, [&](int64_t a, int64_t b, int64_t begin) {
      const T *from = dy + plane * windows.result.count() + begin;
      std::fill_n(columns, row.columns(), T(0));
      for (int64_t tap = 0; tap < row.taps(); ++tap)
        with_stride(row.stride(), [&](auto stride) {
          T *sums = columns + tap * row.step();
#pragma omp simd
          for (int64_t p = 0; p < row.points(); ++p)
            sums[p * stride] += from[p];
        });
      const T *inside = columns + row.first();
      row.for_each_row(a, b, [&](int64_t met) {
        T *elements = to + met;
#pragma omp simd
        for (int64_t c = 0; c < row.count(); ++c)
          elements[c] += inside[c];
      });
    });
  });
}

} // namespace

DEFINE_POOLS(float)
DEFINE_POOLS(double)

} // namespace trainc
