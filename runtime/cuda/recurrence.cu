// SPDX-License-Identifier: Apache-2.0
//
// A step is a product, added to the gates where they lie, and a kernel with a thread for each
// element of the state; of a gradient the product is added to that of the state. Steps follow each
// other on the compute stream.
#include "runtime/cuda/launch.h"
#include "runtime/failure.h"
#include "runtime/kernels/gru.h"
#include "runtime/kernels/lstm.h"
#include "runtime/kernels/matmul.h"
#include "runtime/kernels/recurrent_cells.h"
#include "runtime/kernels/rnn.h"

namespace trainc {
namespace {

constexpr int block_threads = 256;

launch_shape threads_for(const recurrence_sizes &sizes) {
  const int64_t blocks = (sizes.batch * sizes.hidden + block_threads - 1) / block_threads;
  if (blocks > INT32_MAX)
    throw failure(exit_machine, "a recurrent layer's state has more elements than a GPU's grid of "
                                "blocks\n  try: a smaller batch, or trainc --target cpu");
  return {static_cast<unsigned>(blocks), block_threads};
}

template <typename T> void copy(const T *from, int64_t count, T *to) {
  if (!only_planning())
    check_cuda(cudaMemcpyAsync(to, from, static_cast<size_t>(count) * sizeof(T),
                               cudaMemcpyDeviceToDevice, compute_stream()),
               "copy of a recurrent layer's state");
}

template <typename T> void set_zero(T *tensor, int64_t count) {
  if (!only_planning())
    check_cuda(cudaMemsetAsync(tensor, 0, static_cast<size_t>(count) * sizeof(T), compute_stream()),
               "zeroing of a recurrent layer's gradient");
}

// What a thread works on: element j of the state of a sequence.
struct cell_place {
  int64_t index, sequence, j;
  bool exists;
};
__device__ inline cell_place this_cell(const recurrence_sizes &sizes) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  return {index, index / sizes.hidden, index % sizes.hidden, index < sizes.batch * sizes.hidden};
}

// Tensors of one step.
template <typename T> struct step_view {
  recurrence_sizes sizes;
  step_place place;
  int64_t state;

  step_view(const recurrence_sizes &sizes, const step_place &place)
      : sizes(sizes), place(place), state(sizes.batch * sizes.hidden) {}

  buffer_extent<const T> before(const T *states) const {
    return reads(states + place.before * state, state);
  }
  buffer_extent<const T> behind(const T *states) const {
    return reads(states + place.behind * state, state);
  }
  buffer_extent<T> made(T *states) const { return writes(states + place.behind * state, state); }
  buffer_extent<T> at(T *gates, int64_t blocks = 1) const {
    return writes(gates + place.at * blocks * state, blocks * state);
  }

  // c [batch, columns] += a [batch, hidden] r', r being `columns` rows of the weight.
  void add_product(const T *a, const T *r, int64_t columns, T *c, int64_t leading) const {
    matmul_shape product = forward(columns, leading);
    matmul_add(product, a, r, c);
  }
  void set_product(const T *a, const T *r, int64_t columns, T *c, int64_t leading) const {
    matmul_shape product = forward(columns, leading);
    matmul(product, a, r, c);
  }
  // c [batch, hidden] += gradients [batch, rows] r, r being `rows` rows of the weight.
  void add_gradient(const T *gradients, int64_t leading, const T *r, int64_t rows, T *c) const {
    matmul_add(backward(leading, rows), gradients, r, c);
  }
  void set_gradient(const T *gradients, int64_t leading, const T *r, int64_t rows, T *c) const {
    matmul(backward(leading, rows), gradients, r, c);
  }

private:
  matmul_shape forward(int64_t columns, int64_t leading) const {
    matmul_shape product;
    product.m = sizes.batch;
    product.n = columns;
    product.k = sizes.hidden;
    product.a.row_stride = sizes.hidden;
    product.b.row_stride = 1;
    product.b.column_stride = sizes.hidden;
    product.c.row_stride = leading;
    return product;
  }
  matmul_shape backward(int64_t leading, int64_t rows) const {
    matmul_shape product;
    product.m = sizes.batch;
    product.n = sizes.hidden;
    product.k = rows;
    product.a.row_stride = leading;
    product.b.row_stride = sizes.hidden;
    product.c.row_stride = sizes.hidden;
    return product;
  }
};

// sum += added
template <typename T> __global__ void add_states(recurrence_sizes sizes, const T *added, T *sum) {
  const cell_place cell = this_cell(sizes);
  if (cell.exists)
    sum[cell.index] += added[cell.index];
}

// What the steps left of the initial state's gradient, and its own.
template <typename T>
void add_initial(const recurrence_sizes &sizes, bool reverse, const T *dstates, T *dh) {
  const step_view<T> view(sizes, place_of(sizes, reverse, 0));
  launch("gradient of an initial state", add_states<T>, threads_for(sizes), sizes,
         view.before(dstates), writes(dh, view.state));
}

// ---- lstm

template <typename T> struct lstm_tensors {
  const T *bias, *peepholes;
  const int64_t *lengths;
  T *states, *cells, *gates;
};

template <typename T, bool coupled>
using any_lstm = lstm_cell<T, any_gate<T>, any_gate<T>, any_gate<T>, coupled>;

// Where the elements of a thread's cell are in its row of blocks.
template <typename T> __device__ lstm_gates<T> gates_of(const T *row, int64_t hidden) {
  return {row[0], row[hidden], row[2 * hidden], row[3 * hidden]};
}
template <typename T>
__device__ void put_gates(const lstm_gates<T> &gates, int64_t hidden, T *row) {
  row[0] = gates.i;
  row[hidden] = gates.o;
  row[2 * hidden] = gates.f;
  row[3 * hidden] = gates.g;
}
template <typename T>
__device__ lstm_peepholes<T> peepholes_of(const T *peepholes, int64_t hidden) {
  return {peepholes[0], peepholes[hidden], peepholes[2 * hidden]};
}

template <typename T, bool coupled>
__global__ void lstm_cells(recurrence_sizes sizes, any_lstm<T, coupled> functions, int64_t step,
                           const int64_t *lengths, const T *bias, const T *peepholes,
                           const T *states_before, const T *cells_before, T *gates, T *states,
                           T *cells) {
  const cell_place cell = this_cell(sizes);
  if (!cell.exists)
    return;
  const int64_t hidden = sizes.hidden;
  T *row = gates + cell.sequence * 4 * hidden + cell.j;
  T c = cells_before[cell.index], h = states_before[cell.index];
  lstm_gates<T> values = {};
  if (step < lengths[cell.sequence]) {
    values = gates_of(row, hidden);
    const lstm_gates<T> added = gates_of(bias + cell.j, hidden);
    values = {values.i + added.i, values.o + added.o, values.f + added.f, values.g + added.g};
    h = functions.step(values, peepholes_of(peepholes + cell.j, hidden), c);
  }
  put_gates(values, hidden, row);
  states[cell.index] = h;
  cells[cell.index] = c;
}

template <typename T, bool coupled>
__global__ void lstm_cell_gradients(recurrence_sizes sizes, any_lstm<T, coupled> functions,
                                    int64_t step, const int64_t *lengths, const T *peepholes,
                                    const T *cells_before, const T *cells, const T *dstates,
                                    T *gates, T *dh, T *dc) {
  const cell_place cell = this_cell(sizes);
  if (!cell.exists)
    return;
  const int64_t hidden = sizes.hidden;
  T *row = gates + cell.sequence * 4 * hidden + cell.j;
  T total = dh[cell.index] + dstates[cell.index];
  lstm_gates<T> values = {};
  if (step < lengths[cell.sequence]) {
    values = gates_of(row, hidden);
    T of_cell = dc[cell.index];
    functions.gradient(values, peepholes_of(peepholes + cell.j, hidden), cells_before[cell.index],
                       cells[cell.index], total, of_cell);
    dc[cell.index] = of_cell;
    total = T(0);
  }
  put_gates(values, hidden, row);
  dh[cell.index] = total;
}

// Calls work(cell) with the cell's functions.
template <typename T, typename Work> void with_lstm_cell(RECURRENCE, bool coupled, Work work) {
  (void)sizes, (void)reverse;
  const any_gate<T> gates[] = {any_gate_of<T>(kinds, alphas, betas, 0),
                               any_gate_of<T>(kinds, alphas, betas, 1),
                               any_gate_of<T>(kinds, alphas, betas, 2)};
  if (coupled)
    work(any_lstm<T, true>{{gates[0], clip}, {gates[1], clip}, gates[2]}, lstm_cells<T, true>,
         lstm_cell_gradients<T, true>);
  else
    work(any_lstm<T, false>{{gates[0], clip}, {gates[1], clip}, gates[2]}, lstm_cells<T, false>,
         lstm_cell_gradients<T, false>);
}

template <typename T>
void compute_lstm(RECURRENCE, bool coupled, const T *r, const T *h, const T *c,
                  const lstm_tensors<T> &tensors, T *last_cell, char *) {
  const int64_t hidden = sizes.hidden, state = sizes.batch * hidden;
  const int64_t first = place_of(sizes, reverse, 0).before * state;
  copy(h, state, tensors.states + first);
  copy(c, state, tensors.cells + first);
  with_lstm_cell<T>(RECURRENCE_ARGUMENTS, coupled, [&](const auto &functions, auto cells, auto) {
    for (int64_t step = 0; step < sizes.steps; ++step) {
      const step_view<T> view(sizes, place_of(sizes, reverse, step));
      view.add_product(view.before(tensors.states), r, 4 * hidden, view.at(tensors.gates, 4),
                       4 * hidden);
      launch("LSTM cells", cells, threads_for(sizes), sizes, functions, view.place.at,
             reads(tensors.lengths, sizes.batch), reads(tensors.bias, 4 * hidden),
             reads(tensors.peepholes, 3 * hidden), view.before(tensors.states),
             view.before(tensors.cells), view.at(tensors.gates, 4), view.made(tensors.states),
             view.made(tensors.cells));
    }
  });
  copy(tensors.cells + place_of(sizes, reverse, sizes.steps - 1).behind * state, state, last_cell);
}

template <typename T>
void compute_lstm_gradient(RECURRENCE, bool coupled, const T *r, const lstm_tensors<T> &tensors,
                           const T *dstates, const T *dlast_cell, T *dh, T *dc, char *) {
  const int64_t hidden = sizes.hidden, state = sizes.batch * hidden;
  set_zero(dh, state);
  copy(dlast_cell, state, dc);
  with_lstm_cell<T>(RECURRENCE_ARGUMENTS, coupled,
                    [&](const auto &functions, auto, auto gradients) {
                      for (int64_t step = sizes.steps - 1; step >= 0; --step) {
                        const step_view<T> view(sizes, place_of(sizes, reverse, step));
                        launch("gradients of LSTM cells", gradients, threads_for(sizes), sizes,
                               functions, view.place.at, reads(tensors.lengths, sizes.batch),
                               reads(tensors.peepholes, 3 * hidden), view.before(tensors.cells),
                               view.behind(tensors.cells), view.behind(dstates),
                               view.at(tensors.gates, 4), writes(dh, state), writes(dc, state));
                        view.add_gradient(view.at(tensors.gates, 4), 4 * hidden, r, 4 * hidden, dh);
                      }
                    });
  add_initial(sizes, reverse, dstates, dh);
}

// ---- gru

template <typename T> struct gru_tensors {
  const T *bias;
  const int64_t *lengths;
  T *states, *gates, *candidates;
};

template <typename T> using any_gru = gru_cell<T, any_gate<T>, any_gate<T>>;

// The gates z and r, and what the candidate's product meets, or with `linear` all of the cell.
template <typename T>
__global__ void gru_gates(recurrence_sizes sizes, any_gru<T> functions, int64_t step, bool linear,
                          const int64_t *lengths, const T *bias, const T *states_before, T *gates,
                          T *candidates, T *states) {
  const cell_place cell = this_cell(sizes);
  if (!cell.exists)
    return;
  const int64_t hidden = sizes.hidden;
  T *row = gates + cell.sequence * 3 * hidden + cell.j;
  const T *own = bias + cell.j;
  const T before = states_before[cell.index];
  T z = T(0), r = T(0), n = T(0), candidate = T(0), h = before;
  if (step < lengths[cell.sequence]) {
    z = functions.gate.value(row[0] + own[0]);
    r = functions.gate.value(row[hidden] + own[hidden]);
    n = row[2 * hidden] + own[2 * hidden];
    candidate = linear ? candidates[cell.index] + own[3 * hidden] : r * before;
    if (linear) {
      n = functions.candidate.value(n + r * candidate);
      h = functions.mixed(z, n, before);
    }
  }
  row[0] = z;
  row[hidden] = r;
  row[2 * hidden] = n;
  candidates[cell.index] = candidate;
  if (linear)
    states[cell.index] = h;
}

template <typename T>
__global__ void gru_candidates(recurrence_sizes sizes, any_gru<T> functions, int64_t step,
                               const int64_t *lengths, const T *bias, const T *states_before,
                               T *gates, T *states) {
  const cell_place cell = this_cell(sizes);
  if (!cell.exists)
    return;
  T *row = gates + cell.sequence * 3 * sizes.hidden + cell.j;
  const T before = states_before[cell.index];
  T n = T(0), h = before;
  if (step < lengths[cell.sequence]) {
    n = functions.candidate.value(row[2 * sizes.hidden] + bias[3 * sizes.hidden + cell.j]);
    h = functions.mixed(row[0], n, before);
  }
  row[2 * sizes.hidden] = n;
  states[cell.index] = h;
}

template <typename T>
void compute_gru(RECURRENCE, bool linear, const T *r, const T *h, const gru_tensors<T> &tensors,
                 char *) {
  const int64_t hidden = sizes.hidden, state = sizes.batch * hidden;
  copy(h, state, tensors.states + place_of(sizes, reverse, 0).before * state);
  const any_gru<T> functions{{any_gate_of<T>(kinds, alphas, betas, 0), clip},
                             {any_gate_of<T>(kinds, alphas, betas, 1), clip}};
  const T *of_candidate = r + 2 * hidden * hidden;
  for (int64_t step = 0; step < sizes.steps; ++step) {
    const step_view<T> view(sizes, place_of(sizes, reverse, step));
    T *gates = view.at(tensors.gates, 3), *candidates = view.at(tensors.candidates);
    view.add_product(view.before(tensors.states), r, 2 * hidden, gates, 3 * hidden);
    if (linear)
      view.set_product(view.before(tensors.states), of_candidate, hidden, candidates, hidden);
    launch("GRU gates", gru_gates<T>, threads_for(sizes), sizes, functions, view.place.at, linear,
           reads(tensors.lengths, sizes.batch), reads(tensors.bias, 4 * hidden),
           view.before(tensors.states), view.at(tensors.gates, 3), view.at(tensors.candidates),
           view.made(tensors.states));
    if (linear)
      continue;
    view.add_product(candidates, of_candidate, hidden, gates + 2 * hidden, 3 * hidden);
    launch("GRU candidates", gru_candidates<T>, threads_for(sizes), sizes, functions, view.place.at,
           reads(tensors.lengths, sizes.batch), reads(tensors.bias, 4 * hidden),
           view.before(tensors.states), view.at(tensors.gates, 3), view.made(tensors.states));
  }
}

template <typename T>
__global__ void gru_gate_gradients(recurrence_sizes sizes, any_gru<T> functions, int64_t step,
                                   bool linear, const int64_t *lengths, const T *states_before,
                                   const T *dstates, T *gates, T *candidates, T *dh) {
  const cell_place cell = this_cell(sizes);
  if (!cell.exists)
    return;
  const int64_t hidden = sizes.hidden;
  T *row = gates + cell.sequence * 3 * hidden + cell.j;
  const T total = dh[cell.index] + dstates[cell.index];
  const bool active = step < lengths[cell.sequence];
  const T z = row[0], r = row[hidden], n = row[2 * hidden];
  const T of_n = active ? functions.of_candidate(z, n, total) : T(0);
  row[0] = active ? functions.of_update(z, n, states_before[cell.index], total) : T(0);
  row[2 * hidden] = of_n;
  dh[cell.index] = active ? total * z : total;
  if (linear) {
    row[hidden] = active ? of_n * candidates[cell.index] * functions.gate.slope(r) : T(0);
    candidates[cell.index] = of_n * r;
  }
}

template <typename T>
__global__ void gru_reset_gradients(recurrence_sizes sizes, any_gru<T> functions, int64_t step,
                                    const int64_t *lengths, const T *states_before,
                                    const T *of_reset, T *gates, T *dh) {
  const cell_place cell = this_cell(sizes);
  if (!cell.exists)
    return;
  T &r = gates[cell.sequence * 3 * sizes.hidden + sizes.hidden + cell.j];
  const T given = of_reset[cell.index];
  if (step < lengths[cell.sequence]) {
    dh[cell.index] += given * r;
    r = given * states_before[cell.index] * functions.gate.slope(r);
  } else {
    r = T(0);
  }
}

template <typename T>
void compute_gru_gradient(RECURRENCE, const T *r, const gru_tensors<T> &tensors, const T *dstates,
                          T *dh, char *scratch) {
  const int64_t hidden = sizes.hidden, state = sizes.batch * hidden;
  const bool linear = tensors.candidates != nullptr;
  const any_gru<T> functions{{any_gate_of<T>(kinds, alphas, betas, 0), clip},
                             {any_gate_of<T>(kinds, alphas, betas, 1), clip}};
  const T *of_candidate = r + 2 * hidden * hidden;
  T *of_reset = reinterpret_cast<T *>(scratch);
  set_zero(dh, state);
  for (int64_t step = sizes.steps - 1; step >= 0; --step) {
    const step_view<T> view(sizes, place_of(sizes, reverse, step));
    T *gates = view.at(tensors.gates, 3);
    const auto candidates = linear ? view.at(tensors.candidates) : writes<T>(nullptr, 0);
    launch("gradients of GRU gates", gru_gate_gradients<T>, threads_for(sizes), sizes, functions,
           view.place.at, linear, reads(tensors.lengths, sizes.batch), view.before(tensors.states),
           view.behind(dstates), view.at(tensors.gates, 3), candidates, writes(dh, state));
    if (linear) {
      view.add_gradient(candidates, hidden, of_candidate, hidden, dh);
    } else {
      view.set_gradient(gates + 2 * hidden, 3 * hidden, of_candidate, hidden, of_reset);
      launch("gradients of GRU resets", gru_reset_gradients<T>, threads_for(sizes), sizes,
             functions, view.place.at, reads(tensors.lengths, sizes.batch),
             view.before(tensors.states), reads<T>(of_reset, state), view.at(tensors.gates, 3),
             writes(dh, state));
    }
    view.add_gradient(gates, 3 * hidden, r, 2 * hidden, dh);
  }
  add_initial(sizes, reverse, dstates, dh);
}

// ---- rnn

template <typename T>
__global__ void rnn_cells(recurrence_sizes sizes, bounded<T, any_gate<T>> function, int64_t step,
                          const int64_t *lengths, const T *bias, const T *gates, const T *product,
                          const T *states_before, T *states) {
  const cell_place cell = this_cell(sizes);
  if (cell.exists)
    states[cell.index] =
        step < lengths[cell.sequence]
            ? function.value(gates[cell.index] + bias[cell.j] + product[cell.index])
            : states_before[cell.index];
}

template <typename T>
__global__ void rnn_gradients(recurrence_sizes sizes, bounded<T, any_gate<T>> function,
                              int64_t step, const int64_t *lengths, const T *states,
                              const T *dstates, T *dgates, T *dh) {
  const cell_place cell = this_cell(sizes);
  if (!cell.exists)
    return;
  const bool active = step < lengths[cell.sequence];
  const T total = dh[cell.index] + dstates[cell.index];
  dgates[cell.index] = active ? total * function.slope(states[cell.index]) : T(0);
  dh[cell.index] = active ? T(0) : total;
}

template <typename T>
void compute_rnn(RECURRENCE, const T *gates, const T *r, const T *bias, const T *h,
                 const int64_t *lengths, T *states, char *scratch) {
  const int64_t hidden = sizes.hidden, state = sizes.batch * hidden;
  T *product = reinterpret_cast<T *>(scratch);
  copy(h, state, states + place_of(sizes, reverse, 0).before * state);
  const bounded<T, any_gate<T>> function(any_gate_of<T>(kinds, alphas, betas, 0), clip);
  for (int64_t step = 0; step < sizes.steps; ++step) {
    const step_view<T> view(sizes, place_of(sizes, reverse, step));
    view.set_product(view.before(states), r, hidden, product, hidden);
    launch("cells of a recurrent layer", rnn_cells<T>, threads_for(sizes), sizes, function,
           view.place.at, reads(lengths, sizes.batch), reads(bias, hidden),
           reads(gates + view.place.at * state, state), reads<T>(product, state),
           view.before(states), view.made(states));
  }
}

template <typename T>
void compute_rnn_gradient(RECURRENCE, const T *r, const int64_t *lengths, const T *states,
                          const T *dstates, T *dgates, T *dh, char *) {
  const int64_t hidden = sizes.hidden, state = sizes.batch * hidden;
  set_zero(dh, state);
  const bounded<T, any_gate<T>> function(any_gate_of<T>(kinds, alphas, betas, 0), clip);
  for (int64_t step = sizes.steps - 1; step >= 0; --step) {
    const step_view<T> view(sizes, place_of(sizes, reverse, step));
    launch("gradients of a recurrent layer's cells", rnn_gradients<T>, threads_for(sizes), sizes,
           function, view.place.at, reads(lengths, sizes.batch), view.behind(states),
           view.behind(dstates), view.at(dgates), writes(dh, state));
    view.add_gradient(view.at(dgates), hidden, r, hidden, dh);
  }
  add_initial(sizes, reverse, dstates, dh);
}

} // namespace

DEFINE_LSTM(float)
DEFINE_LSTM(double)
DEFINE_GRU(float)
DEFINE_GRU(double)
DEFINE_RNN(float)
DEFINE_RNN(double)

} // namespace trainc
