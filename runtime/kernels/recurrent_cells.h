// SPDX-License-Identifier: Apache-2.0
//
// What a recurrent cell computes for one element of its state, and the gradient of that: executed
// by both targets and the reference interpreter, each with products and loops of its own.
#pragma once

#include "runtime/kernels/math.h"
#include "runtime/kernels/recurrence.h"

namespace trainc {

// In the order of `activation_names`.
enum class activation : int64_t {
  sigmoid,
  tanh,
  relu,
  affine,
  leaky_relu,
  thresholded_relu,
  scaled_tanh,
  hard_sigmoid,
  elu,
  softsign,
  softplus
};
// ONNX's, in lower case.
constexpr const char *activation_names[] = {
    "sigmoid",    "tanh",        "relu", "affine",   "leakyrelu", "thresholdedrelu",
    "scaledtanh", "hardsigmoid", "elu",  "softsign", "softplus"};

template <typename T> TRAINC_INLINE T logistic(T x) { return T(1) / (T(1) + exp(-x)); }

// A function of a gate, and its slope where it has the value y.
struct sigmoid_gate {
  template <typename T> TRAINC_INLINE T value(T x) const { return logistic(x); }
  template <typename T> TRAINC_INLINE T slope(T y) const { return y * (T(1) - y); }
};
struct tanh_gate {
  template <typename T> TRAINC_INLINE T value(T x) const { return tanh(x); }
  template <typename T> TRAINC_INLINE T slope(T y) const { return T(1) - y * y; }
};
struct relu_gate {
  template <typename T> TRAINC_INLINE T value(T x) const { return maximum(x, T(0)); }
  template <typename T> TRAINC_INLINE T slope(T y) const { return y > T(0) ? T(1) : y * T(0); }
};

// Any of them, by a call: a loop over it would not vectorise anyway. The slope follows from y
// because what would need x is refused by nn.
#ifdef __CUDACC__
#define TRAINC_CALLED __host__ __device__ inline
#else
#define TRAINC_CALLED __attribute__((noinline))
#endif
template <typename T> struct any_gate {
  activation kind;
  T alpha, beta;

  TRAINC_CALLED T value(T x) const {
    switch (kind) {
    case activation::sigmoid:
      return logistic(x);
    case activation::tanh:
      return tanh(x);
    case activation::relu:
      return maximum(x, T(0));
    case activation::affine:
      return alpha * x + beta;
    case activation::leaky_relu:
      return x < T(0) ? alpha * x : x;
    case activation::thresholded_relu:
      return x <= alpha ? T(0) : x;
    case activation::scaled_tanh:
      return alpha * tanh(beta * x);
    case activation::hard_sigmoid:
      return maximum(T(0), minimum(T(1), alpha * x + beta));
    case activation::elu:
      return x < T(0) ? alpha * expm1(x) : x;
    case activation::softsign:
      return x / (T(1) + abs(x));
    case activation::softplus:
      return maximum(x, T(0)) + log1p(exp(-abs(x)));
    }
    return x;
  }

  TRAINC_CALLED T slope(T y) const {
    switch (kind) {
    case activation::sigmoid:
      return y * (T(1) - y);
    case activation::tanh:
      return T(1) - y * y;
    case activation::relu:
      return y > T(0) ? T(1) : y * T(0);
    case activation::affine:
      return alpha;
    case activation::leaky_relu:
      return y < T(0) ? alpha : T(1);
    case activation::thresholded_relu:
      return y == T(0) ? T(0) : T(1);
    case activation::scaled_tanh:
      return alpha * beta * (T(1) - y / alpha * (y / alpha));
    case activation::hard_sigmoid:
      return (y <= T(0)) | (y >= T(1)) ? T(0) : alpha;
    case activation::elu:
      return y < T(0) ? y + alpha : T(1);
    case activation::softsign:
      return (T(1) - abs(y)) * (T(1) - abs(y));
    case activation::softplus:
      return -expm1(-y);
    }
    return y;
  }
};

// A function of what is bounded first; beyond the bounds the slope is zero.
template <typename T, typename Function> class bounded {
public:
  TRAINC_INLINE bounded(Function function, double clip)
      : function(function), clip(clip > 0 ? static_cast<T>(clip) : infinity), low(-infinity),
        high(infinity) {
    if (clip > 0) {
      const T ends[] = {function.value(-this->clip), function.value(this->clip)};
      low = minimum(ends[0], ends[1]);
      high = maximum(ends[0], ends[1]);
    }
  }
  TRAINC_INLINE T value(T x) const {
    return function.value(x < -clip ? -clip : x > clip ? clip : x);
  }
  TRAINC_INLINE T slope(T y) const { return (y <= low) | (y >= high) ? T(0) : function.slope(y); }

private:
  static constexpr T infinity = std::numeric_limits<T>::infinity();
  Function function;
  T clip, low, high;
};

// Elements of the blocks of gates and peepholes.
template <typename T> struct lstm_gates { T i, o, f, g; };
template <typename T> struct lstm_peepholes { T i, o, f; };

template <typename T, typename F, typename G, typename H, bool coupled> struct lstm_cell {
  bounded<T, F> gate;
  bounded<T, G> input;
  H output; // of the cell, which has no bound

  // From gates before their functions to those after; c becomes the new cell.
  TRAINC_INLINE T step(lstm_gates<T> &gates, const lstm_peepholes<T> &peepholes, T &c) const {
    gates.i = gate.value(gates.i + peepholes.i * c);
    const T own = gate.value(gates.f + peepholes.f * c);
    gates.f = coupled ? T(1) - gates.i : own;
    gates.g = input.value(gates.g);
    c = gates.f * c + gates.i * gates.g;
    gates.o = gate.value(gates.o + peepholes.o * c);
    return gates.o * output.value(c);
  }

  // From the gates after their functions to their gradients; dc, that of the cell, becomes that
  // of the one before.
  TRAINC_INLINE void gradient(lstm_gates<T> &gates, const lstm_peepholes<T> &peepholes, T before,
                              T c, T dh, T &dc) const {
    const T out = output.value(c);
    const T d_o = dh * out * gate.slope(gates.o);
    const T of_cell = dc + dh * gates.o * output.slope(out) + d_o * peepholes.o;
    const T of_f = of_cell * before;
    const T of_i = of_cell * gates.g - (coupled ? of_f : T(0));
    const T d_f = coupled ? T(0) : of_f * gate.slope(gates.f);
    const T d_i = of_i * gate.slope(gates.i);
    dc = of_cell * gates.f + d_i * peepholes.i + d_f * peepholes.f;
    gates = {d_i, d_o, d_f, of_cell * gates.i * input.slope(gates.g)};
  }
};

template <typename T, typename F, typename G> struct gru_cell {
  bounded<T, F> gate;
  bounded<T, G> candidate;

  TRAINC_INLINE static T mixed(T z, T n, T h) { return (T(1) - z) * n + z * h; }
  // The gradients of gates z and n before their functions.
  TRAINC_INLINE T of_update(T z, T n, T h, T dh) const { return dh * (h - n) * gate.slope(z); }
  TRAINC_INLINE T of_candidate(T z, T n, T dh) const {
    return dh * (T(1) - z) * candidate.slope(n);
  }
};

template <typename T>
any_gate<T> any_gate_of(const cell_activations &kinds, const activation_numbers &alphas,
                        const activation_numbers &betas, int number) {
  return {static_cast<activation>(kinds.of[number]), static_cast<T>(alphas.of[number]),
          static_cast<T>(betas.of[number])};
}

} // namespace trainc
