// SPDX-License-Identifier: Apache-2.0
//
// Recurrent layers as plain loops in f64, and what the runtime's functions are run on to be
// compared with them.
#pragma once

#include "runtime/kernels/gru.h"
#include "runtime/kernels/lstm.h"
#include "runtime/kernels/recurrent_cells.h"
#include "runtime/kernels/rnn.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace trainc {

using numbers = std::vector<double>;

struct recurrence_case {
  recurrence_sizes sizes;
  bool reverse = false, flag = false; // coupled, or linear before the reset
  double clip = 0;
  bool usual = true, full = true; // functions; lengths

  std::string text() const {
    return std::to_string(sizes.steps) + " x " + std::to_string(sizes.batch) + " x " +
           std::to_string(sizes.hidden) + (reverse ? " reverse" : "") + (flag ? " flag" : "");
  }
  int64_t state() const { return sizes.batch * sizes.hidden; }
  cell_activations kinds() const {
    using enum activation;
    const auto of = [](activation kind) { return static_cast<int64_t>(kind); };
    return usual ? cell_activations{{of(sigmoid), of(tanh), of(tanh)}}
                 : cell_activations{{of(hard_sigmoid), of(softsign), of(scaled_tanh)}};
  }
  activation_numbers alphas() const { return {{0.2, 0, 1.5}}; }
  activation_numbers betas() const { return {{0.5, 0, 0.7}}; }
  any_gate<double> gate(int number) const {
    return any_gate_of<double>(kinds(), alphas(), betas(), number);
  }
  std::vector<int64_t> lengths() const {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < sizes.batch; ++i)
      all.push_back(full ? sizes.steps : i % (sizes.steps + 1));
    return all;
  }
};

// The numbers that every function takes first.
#define RECURRENCE_OF(problem)                                                                     \
  (problem).sizes, (problem).kinds(), (problem).alphas(), (problem).betas(), (problem).clip,       \
      (problem).reverse

inline numbers recurrence_values(int64_t count, uint64_t seed, double scale) {
  numbers values;
  uint64_t state = seed;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    values.push_back(scale * (static_cast<double>(state >> 40) / (1 << 23) - 1));
  }
  return values;
}

// Inputs, forward results and gradients of one problem; `blocks` gates.
struct plain_recurrence {
  plain_recurrence(const recurrence_case &problem, int64_t blocks)
      : problem(problem), blocks(blocks), lengths(problem.lengths()) {
    const auto [steps, batch, hidden] = problem.sizes;
    const double scale = 1 / std::sqrt(static_cast<double>(hidden));
    const int64_t state = problem.state();
    gates = recurrence_values(steps * blocks * state, 1, 1);
    r = recurrence_values(blocks * hidden * hidden, 2, scale);
    bias = recurrence_values((blocks == 3 ? 4 : blocks) * hidden, 3, 0.5);
    peepholes = recurrence_values(3 * hidden, 4, 0.5);
    h = recurrence_values(state, 5, 1);
    c = recurrence_values(state, 6, 1);
    dstates = recurrence_values((steps + 1) * state, 7, 1);
    dlast = recurrence_values(state, 8, 1);
    states.resize(dstates.size());
    cells.resize(dstates.size());
    candidates.resize(static_cast<size_t>(steps * state));
    activated = gates;
    std::copy(h.begin(), h.end(), states.begin() + place(0).before * state);
    std::copy(c.begin(), c.end(), cells.begin() + place(0).before * state);
    for (int64_t step = 0; step < steps; ++step)
      blocks == 4   ? lstm_step(place(step))
      : blocks == 3 ? gru_step(place(step))
                    : rnn_step(place(step));
    const int64_t end = place(steps - 1).behind * state;
    last.assign(cells.begin() + end, cells.begin() + end + state);
    dgates = activated;
    dcandidates = candidates;
    dh.resize(static_cast<size_t>(state));
    dc = dlast;
    for (int64_t step = steps - 1; step >= 0; --step)
      go_back(place(step));
    for (int64_t i = 0; i < state; ++i)
      dh[at(i)] += dstates[at(place(0).before * state + i)];
  }

  recurrence_case problem;
  int64_t blocks;
  std::vector<int64_t> lengths;
  numbers gates, r, bias, peepholes, h, c, dstates, dlast; // given
  numbers states, cells, last, activated, candidates;      // forward
  numbers dgates, dcandidates, dh, dc;                     // gradients

private:
  static size_t at(int64_t index) { return static_cast<size_t>(index); }
  step_place place(int64_t step) const { return place_of(problem.sizes, problem.reverse, step); }

  template <typename Visit> void for_cells(const step_place &place, Visit visit) {
    for (int64_t b = 0; b < problem.sizes.batch; ++b)
      for (int64_t j = 0; j < problem.sizes.hidden; ++j)
        visit(b, j, place.at < lengths[at(b)]);
  }
  double &gate(numbers &all, const step_place &place, int64_t b, int64_t block, int64_t j) {
    const auto [steps, batch, hidden] = problem.sizes;
    return all[at(((place.at * batch + b) * blocks + block) * hidden + j)];
  }
  // Row j of a block of r times a vector.
  double product(int64_t block, int64_t j, const double *vector) const {
    const int64_t hidden = problem.sizes.hidden;
    double total = 0;
    for (int64_t k = 0; k < hidden; ++k)
      total += vector[k] * r[at((block * hidden + j) * hidden + k)];
    return total;
  }
  const double *state_before(const step_place &place, int64_t b) const {
    return states.data() + place.before * problem.state() + b * problem.sizes.hidden;
  }

  template <bool coupled>
  lstm_cell<double, any_gate<double>, any_gate<double>, any_gate<double>, coupled> lstm() const {
    return {{problem.gate(0), problem.clip}, {problem.gate(1), problem.clip}, problem.gate(2)};
  }
  gru_cell<double, any_gate<double>, any_gate<double>> gru() const {
    return {{problem.gate(0), problem.clip}, {problem.gate(1), problem.clip}};
  }
  lstm_peepholes<double> peepholes_of(int64_t j) const {
    const int64_t hidden = problem.sizes.hidden;
    return {peepholes[at(j)], peepholes[at(hidden + j)], peepholes[at(2 * hidden + j)]};
  }

  void lstm_step(const step_place &place) {
    for_cells(place, [&](int64_t b, int64_t j, bool active) {
      const int64_t own = b * problem.sizes.hidden + j, to = place.behind * problem.state() + own;
      double x[4] = {}, cell = cells[at(place.before * problem.state() + own)];
      for (int64_t block = 0; block < 4; ++block)
        x[block] = gate(activated, place, b, block, j) +
                   bias[at(block * problem.sizes.hidden + j)] +
                   product(block, j, state_before(place, b));
      lstm_gates<double> all = {x[0], x[1], x[2], x[3]};
      double out = state_before(place, b)[j];
      if (active)
        out = problem.flag ? lstm<true>().step(all, peepholes_of(j), cell)
                           : lstm<false>().step(all, peepholes_of(j), cell);
      else
        all = {};
      cells[at(to)] = cell;
      states[at(to)] = out;
      const double values[] = {all.i, all.o, all.f, all.g};
      for (int64_t block = 0; block < 4; ++block)
        gate(activated, place, b, block, j) = values[block];
    });
  }

  void gru_step(const step_place &place) {
    const int64_t hidden = problem.sizes.hidden;
    const auto cell = gru();
    double *met = candidates.data() + place.at * problem.state();
    for_cells(place, [&](int64_t b, int64_t j, bool active) {
      double &z = gate(activated, place, b, 0, j), &r = gate(activated, place, b, 1, j);
      const double *before = state_before(place, b);
      z = active ? cell.gate.value(z + bias[at(j)] + product(0, j, before)) : 0;
      r = active ? cell.gate.value(r + bias[at(hidden + j)] + product(1, j, before)) : 0;
      const double linear = product(2, j, before) + bias[at(3 * hidden + j)];
      met[b * hidden + j] = !active ? 0 : problem.flag ? linear : r * before[j];
    });
    for_cells(place, [&](int64_t b, int64_t j, bool active) {
      double &n = gate(activated, place, b, 2, j);
      const double meets = problem.flag
                               ? gate(activated, place, b, 1, j) * met[b * hidden + j]
                               : product(2, j, met + b * hidden) + bias[at(3 * hidden + j)];
      n = active ? cell.candidate.value(n + bias[at(2 * hidden + j)] + meets) : 0;
      const double before = state_before(place, b)[j];
      states[at(place.behind * problem.state() + b * hidden + j)] =
          active ? cell.mixed(gate(activated, place, b, 0, j), n, before) : before;
    });
  }

  void rnn_step(const step_place &place) {
    const bounded<double, any_gate<double>> function(problem.gate(0), problem.clip);
    for_cells(place, [&](int64_t b, int64_t j, bool active) {
      const double *before = state_before(place, b);
      states[at(place.behind * problem.state() + b * problem.sizes.hidden + j)] =
          active ? function.value(gate(activated, place, b, 0, j) + bias[at(j)] +
                                  product(0, j, before))
                 : before[j];
    });
  }

  // Adds a block's gradient to that of the state before, or of what the block met instead.
  void add_row(int64_t block, int64_t j, double value, double *to) const {
    const int64_t hidden = problem.sizes.hidden;
    for (int64_t k = 0; k < hidden; ++k)
      to[k] += value * r[at((block * hidden + j) * hidden + k)];
  }

  void go_back(const step_place &place) {
    const int64_t hidden = problem.sizes.hidden, state = problem.state();
    numbers before(at(state)), reset(at(state));
    for_cells(place, [&](int64_t b, int64_t j, bool active) {
      const int64_t own = b * hidden + j;
      const double total = dh[at(own)] + dstates[at(place.behind * state + own)];
      if (!active) {
        before[at(own)] += total;
        for (int64_t block = 0; block < blocks; ++block)
          gate(dgates, place, b, block, j) = 0;
      } else if (blocks == 4) {
        lstm_back(place, b, j, total);
      } else if (blocks == 3) {
        double &z = gate(dgates, place, b, 0, j), &n = gate(dgates, place, b, 2, j);
        before[at(own)] += total * z;
        const double of_z = gru().of_update(z, n, state_before(place, b)[j], total);
        n = gru().of_candidate(z, n, total);
        z = of_z;
      } else {
        const bounded<double, any_gate<double>> function(problem.gate(0), problem.clip);
        gate(dgates, place, b, 0, j) =
            total * function.slope(states[at(place.behind * state + own)]);
      }
      const bool is_candidate = blocks == 3;
      for (int64_t block = 0; block < (is_candidate ? 1 : blocks); ++block)
        add_row(block, j, gate(dgates, place, b, block, j), &before[at(b * hidden)]);
      if (is_candidate)
        add_row(2, j, gate(dgates, place, b, 2, j), &reset[at(b * hidden)]);
    });
    if (blocks == 3)
      reset_back(place, before, reset);
    dh = before;
  }

  void lstm_back(const step_place &place, int64_t b, int64_t j, double total) {
    const int64_t own = b * problem.sizes.hidden + j, state = problem.state();
    lstm_gates<double> x = {gate(dgates, place, b, 0, j), gate(dgates, place, b, 1, j),
                            gate(dgates, place, b, 2, j), gate(dgates, place, b, 3, j)};
    const double from = cells[at(place.before * state + own)],
                 to = cells[at(place.behind * state + own)];
    if (problem.flag)
      lstm<true>().gradient(x, peepholes_of(j), from, to, total, dc[at(own)]);
    else
      lstm<false>().gradient(x, peepholes_of(j), from, to, total, dc[at(own)]);
    const double values[] = {x.i, x.o, x.f, x.g};
    for (int64_t block = 0; block < 4; ++block)
      gate(dgates, place, b, block, j) = values[block];
  }

  void reset_back(const step_place &place, numbers &before, const numbers &reset) {
    const int64_t hidden = problem.sizes.hidden;
    for_cells(place, [&](int64_t b, int64_t j, bool active) {
      const int64_t own = b * hidden + j;
      double &r = gate(dgates, place, b, 1, j),
             &met = dcandidates[at(place.at * problem.state() + own)];
      const double value = r, slope = active ? gru().gate.slope(value) : 0;
      const double n = gate(dgates, place, b, 2, j);
      if (problem.flag) {
        r = n * met * slope;
        met = n * value;
        add_row(2, j, met, &before[at(b * hidden)]);
      } else {
        before[at(own)] += active ? reset[at(own)] * value : 0;
        r = reset[at(own)] * state_before(place, b)[j] * slope;
      }
      add_row(1, j, r, &before[at(b * hidden)]);
    });
  }
};

// Runs the runtime's functions of element type T on a problem and hands each result to
// expect(name, found, expected). `Memory` holds a vector's elements where the functions want them
// and has data() and values().
template <typename T, template <typename> typename Memory, typename Run, typename Expect>
void check_recurrence(const plain_recurrence &plain, Run run, Expect expect) {
  const recurrence_case &problem = plain.problem;
  const auto copy = [](const numbers &of) { return std::vector<T>(of.begin(), of.end()); };
  const auto empty = [](const numbers &like) { return std::vector<T>(like.size(), T(NAN)); };
  Memory<T> gates(copy(plain.gates)), r(copy(plain.r)), bias(copy(plain.bias)),
      peepholes(copy(plain.peepholes)), h(copy(plain.h)), c(copy(plain.c)),
      dstates(copy(plain.dstates)), dlast(copy(plain.dlast)), states(empty(plain.states)),
      cells(empty(plain.cells)), last(empty(plain.last)), candidates(empty(plain.candidates)),
      dh(empty(plain.dh)), dc(empty(plain.dc)), dgates(empty(plain.gates));
  Memory<int64_t> lengths(plain.lengths);
  Memory<char> scratch(std::vector<char>(
      static_cast<size_t>(recurrence_scratch_bytes(plain.blocks, problem.sizes, sizeof(T)))));
  run([&] {
    if (plain.blocks == 4)
      lstm(RECURRENCE_OF(problem), problem.flag, r.data(), bias.data(), peepholes.data(), h.data(),
           c.data(), lengths.data(), states.data(), last.data(), cells.data(), gates.data(),
           scratch.data());
    else if (plain.blocks == 3)
      gru(RECURRENCE_OF(problem), problem.flag, r.data(), bias.data(), h.data(), lengths.data(),
          states.data(), gates.data(), candidates.data(), scratch.data());
    else
      rnn(RECURRENCE_OF(problem), gates.data(), r.data(), bias.data(), h.data(), lengths.data(),
          states.data(), scratch.data());
  });
  expect("states", states.values(), plain.states);
  if (plain.blocks > 1)
    expect("gates", gates.values(), plain.activated);
  if (plain.blocks == 4) {
    expect("cells", cells.values(), plain.cells);
    expect("last cell", last.values(), plain.last);
  }
  if (plain.blocks == 3)
    expect("candidates", candidates.values(), plain.candidates);
  run([&] {
    if (plain.blocks == 4)
      lstm_gradient(RECURRENCE_OF(problem), problem.flag, r.data(), peepholes.data(),
                    lengths.data(), cells.data(), dstates.data(), dlast.data(), gates.data(),
                    dh.data(), dc.data(), scratch.data());
    else if (plain.blocks == 3 && problem.flag)
      linear_gru_gradient(RECURRENCE_OF(problem), r.data(), lengths.data(), states.data(),
                          dstates.data(), gates.data(), dh.data(), candidates.data(),
                          scratch.data());
    else if (plain.blocks == 3)
      gru_gradient(RECURRENCE_OF(problem), r.data(), lengths.data(), states.data(), dstates.data(),
                   gates.data(), dh.data(), scratch.data());
    else
      rnn_gradient(RECURRENCE_OF(problem), r.data(), lengths.data(), states.data(), dstates.data(),
                   dgates.data(), dh.data(), scratch.data());
  });
  expect("gradient of gates", plain.blocks == 1 ? dgates.values() : gates.values(), plain.dgates);
  expect("gradient of h", dh.values(), plain.dh);
  if (plain.blocks == 4)
    expect("gradient of c", dc.values(), plain.dc);
  if (plain.blocks == 3 && problem.flag)
    expect("gradient of candidates", candidates.values(), plain.dcandidates);
}

// Of each kind the ways to go through a sequence; `sizes` are tried with all.
inline std::vector<recurrence_case> recurrence_cases(std::vector<recurrence_sizes> sizes) {
  std::vector<recurrence_case> cases;
  for (const recurrence_sizes &size : sizes)
    for (bool flag : {false, true})
      cases.push_back({size, flag, flag, flag ? 0.8 : 0, true, !flag});
  cases.push_back({sizes.front(), true, false, 0, false, true});
  cases.push_back({sizes.front(), false, true, 1.1, false, false});
  return cases;
}

// That each number is within `tolerance` of the largest one, or of 1.
template <typename T>
void expect_recurrence(const plain_recurrence &plain, const std::string &name,
                       const std::vector<T> &found, const numbers &expected, double tolerance) {
  double largest = 1;
  for (double value : expected)
    largest = std::max(largest, std::fabs(value));
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(static_cast<double>(found[i]), expected[i], tolerance * largest)
        << name << " " << i << " of " << plain.blocks << " blocks, " << plain.problem.text();
}

} // namespace trainc
