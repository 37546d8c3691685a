// SPDX-License-Identifier: Apache-2.0
//
// Elementary functions for emitted kernels. The f32 ones are inline, free of
// branches and written with explicit fused multiply-adds, so a simd loop
// vectorises them on every instruction set and its remainder gives the same bits
// as its body. Largest errors are stated in ulp of the f32 result, measured
// against the f64 functions of the C library by tests/unit/kernels/math_test.cpp.
// NaN gives NaN everywhere. The f64 ones are the C library's.
#pragma once

#include "runtime/kernels/infinity.h"
#include "runtime/kernels/inline.h"
#include "runtime/kernels/narrow_float.h"

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <type_traits>

namespace trainc {

// Conditions are joined by | and & below: short-circuit operators are branches.

// One comparison a selection, which is one vector instruction: GCC 12 leaves whole loops scalar
// where the two are joined. NOLINTBEGIN(misc-redundant-expression): a NaN differs from itself
template <typename T> TRAINC_INLINE T maximum(T a, T b) {
  const T larger = a > b ? a : b; // b where one is NaN
  return a != a ? a : larger;
}
template <typename T> TRAINC_INLINE T minimum(T a, T b) {
  const T smaller = a < b ? a : b;
  return a != a ? a : smaller;
}
// These two return the other operand where one is NaN.
template <typename T> TRAINC_INLINE T maximum_number(T a, T b) {
  const T larger = a > b ? a : b;
  return b != b ? a : larger;
}
template <typename T> TRAINC_INLINE T minimum_number(T a, T b) {
  const T smaller = a < b ? a : b;
  return b != b ? a : smaller;
}
// NOLINTEND(misc-redundant-expression)

// `a` where `first`, else `b`, without a condition: GCC 12 leaves a loop scalar that selects by a
// value from outside and stores numbers of 8 or 16 bits.
TRAINC_INLINE int64_t chosen(bool first, int64_t a, int64_t b) {
#ifdef __CUDA_ARCH__
  return first ? a : b;
#else
  const int64_t mask = -static_cast<int64_t>(first);
  return (a & mask) | (b & ~mask);
#endif
}
TRAINC_INLINE double chosen(bool first, double a, double b) { return first ? a : b; }
TRAINC_INLINE float chosen(bool first, float a, float b) {
#ifdef __CUDA_ARCH__
  return first ? a : b;
#else
  const uint32_t mask = 0u - static_cast<uint32_t>(first);
  return std::bit_cast<float>((std::bit_cast<uint32_t>(a) & mask) |
                              (std::bit_cast<uint32_t>(b) & ~mask));
#endif
}

// 64-bit integer as a 32-bit one, for comparison with a value that is neither of int's limits.
TRAINC_INLINE int narrow(int64_t value) {
  constexpr int64_t low = std::numeric_limits<int>::min(), high = std::numeric_limits<int>::max();
  return static_cast<int>(value < low ? low : value > high ? high : value);
}

// Integer division that never traps, as the records of div and remainder say (pointwise.td): by
// zero the quotient is 0 and the remainder a; the quotient of the least number and -1 wraps.
template <typename A, typename B> TRAINC_INLINE std::common_type_t<A, B> quotient(A a, B b) {
  using T = std::common_type_t<A, B>;
  using U = std::make_unsigned_t<T>;
  return b == 0 ? 0 : b == -1 ? static_cast<T>(-static_cast<U>(a)) : static_cast<T>(a / b);
}
template <typename A, typename B> TRAINC_INLINE std::common_type_t<A, B> remainder(A a, B b) {
  return b == 0 ? a : b == -1 ? 0 : a % b;
}

// The integer towards zero; beyond the integers of T the nearest of them, of NaN 0.
template <typename T, typename From> TRAINC_INLINE T truncated(From x) {
  constexpr T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  constexpr From end = -static_cast<From>(low); // a power of two, hence exact
  return x >= end ? high : x >= -end ? static_cast<T>(x) : x < -end ? low : 0;
}

TRAINC_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TRAINC_INLINE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
TRAINC_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
TRAINC_INLINE double sqrt(double x) { return __builtin_sqrt(x); }
TRAINC_INLINE float abs(float x) { return __builtin_fabsf(x); }
TRAINC_INLINE double abs(double x) { return __builtin_fabs(x); }
TRAINC_INLINE float floor(float x) { return __builtin_floorf(x); }
TRAINC_INLINE double floor(double x) { return __builtin_floor(x); }
TRAINC_INLINE float ceil(float x) { return __builtin_ceilf(x); }
TRAINC_INLINE double ceil(double x) { return __builtin_ceil(x); }
TRAINC_INLINE float trunc(float x) { return __builtin_truncf(x); }
TRAINC_INLINE double trunc(double x) { return __builtin_trunc(x); }
// Half to even.
TRAINC_INLINE float round_even(float x) { return __builtin_rintf(x); }
TRAINC_INLINE double round_even(double x) { return __builtin_rint(x); }
TRAINC_INLINE float copy_sign(float x, float sign) { return __builtin_copysignf(x, sign); }
TRAINC_INLINE double copy_sign(double x, double sign) { return __builtin_copysign(x, sign); }

// Adding it to |x| < 2^22 rounds x to an integer, which the low bits then hold.
constexpr float rounding_f32 = 0x1.8p23f;
constexpr double rounding_f64 = 0x1.8p52;

// 2^n for n in [-126, 127].
TRAINC_INLINE float power_of_two(int32_t n) { return std::bit_cast<float>((n + 127) << 23); }

// 1.1 ulp. 0 below -103.97, infinity above 88.73; denormal results are kept. Under a mask many x
// are -infinity: what would underflow, at a hundred cycles a vector, is not computed. A GPU has an
// instruction for 2^x, which its library's function refines to 1 ulp.
TRAINC_INLINE float exp(float x) {
#ifdef __CUDA_ARCH__
  return ::expf(x);
#else
  const bool vanishes = x <= -0x1.9fe36ap6f; // the largest whose result rounds to 0
  float clamped = vanishes ? 0.0f : x;
  clamped = clamped > 90.0f ? 90.0f : clamped;
  const float shifted = fma(clamped, 0x1.715476p0f, rounding_f32); // x / ln 2
  const int32_t n = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(rounding_f32);
  const float whole = shifted - rounding_f32;
  float r = fma(whole, -0x1.62e400p-1f, clamped); // ln 2 in two parts
  r = fma(whole, -0x1.7f7d1cp-20f, r);
  float p = 0.0013950587f; // minimax for (exp(r) - 1 - r) / r^2 on [-ln 2 / 2, ln 2 / 2]
  p = fma(p, r, 0.008368953f);
  p = fma(p, r, 0.041666206f);
  p = fma(p, r, 0.16666518f);
  p = fma(p, r, 0.5f);
  p = fma(p, r * r, r) + 1.0f;
  // In two steps: 2^n itself can be out of range where the result is not.
  const int32_t half = n >> 1;
  const float result = p * power_of_two(half) * power_of_two(n - half);
  return vanishes ? 0.0f : result;
#endif
}

// 1.5 ulp. exp(x) - 1 without cancellation: -1 below -17.4, infinity above 88.73.
TRAINC_INLINE float expm1(float x) {
  float clamped = x < -20.0f ? -20.0f : x;
  clamped = clamped > 89.0f ? 89.0f : clamped;
  const float shifted = fma(clamped, 0x1.715476p0f, rounding_f32); // x / ln 2
  const int32_t n = std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(rounding_f32);
  const float whole = shifted - rounding_f32;
  float r = fma(whole, -0x1.62e400p-1f, clamped); // ln 2 in two parts
  r = fma(whole, -0x1.7f7d1cp-20f, r);
  float p = 0.00019915623f; // minimax for (exp(r) - 1 - r) / r^2 on [-ln 2 / 2, ln 2 / 2]
  p = fma(p, r, 0.0013942046f);
  p = fma(p, r, 0.00833327f);
  p = fma(p, r, 0.041666344f);
  p = fma(p, r, 0.16666667f);
  p = fma(p, r, 0.5f);
  p = fma(p * r, r, r);
  const float half = power_of_two(n - 1); // 2^n itself can be out of range where the result is not
  return copy_sign(2.0f * fma(p, half, half - 0.5f), x); // of -0, too
}

// log(2^exponent (1 + f)) for 1 + f in [sqrt(1/2), sqrt(2)).
TRAINC_INLINE float log_of_parts(float exponent, float f) {
  float p = 0.06915343f; // minimax for (log(1 + f) - f + f^2 / 2) / f^3
  p = fma(p, f, -0.11789723f);
  p = fma(p, f, 0.118729375f);
  p = fma(p, f, -0.1238436f);
  p = fma(p, f, 0.14218666f);
  p = fma(p, f, -0.16669251f);
  p = fma(p, f, 0.20002227f);
  p = fma(p, f, -0.24999987f);
  p = fma(p, f, 0.3333331f);
  const float square = f * f;
  float tail = fma(exponent, -0x1.bd0106p-13f, p * f * square); // ln 2 = 0x1.63p-1 - 0x1.bd01p-13
  tail = fma(square, -0.5f, tail);
  return fma(exponent, 0x1.63p-1f, f + tail);
}

// For numbers of bits: wraps where one is negative, and then nothing uses it.
TRAINC_INLINE int32_t difference(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) - static_cast<uint32_t>(b));
}

// n where x = 2^n m with m in [sqrt(1/2), sqrt(2)), for the bits of a normal x > 0.
TRAINC_INLINE int32_t exponent_of(int32_t bits) { return difference(bits, 0x3f3504f3) >> 23; }

// 1 ulp. log(0) = -infinity, of a negative number NaN.
TRAINC_INLINE float log(float x) {
  const bool denormal = x < 0x1p-126f;
  const float scaled = denormal ? x * 0x1p23f : x;
  const int32_t bits = std::bit_cast<int32_t>(scaled);
  const int32_t n = exponent_of(bits);
  const float f = std::bit_cast<float>(difference(bits, n << 23)) - 1.0f;
  float y = log_of_parts(static_cast<float>(n) - (denormal ? 23.0f : 0.0f), f);
  y = x < std::numeric_limits<float>::infinity() ? y : x; // infinity and NaN
  y = x == 0.0f ? -std::numeric_limits<float>::infinity() : y;
  return x < 0.0f ? std::numeric_limits<float>::quiet_NaN() : y;
}

// 1.4 ulp. log(1 + x): x where it is tiny, -infinity at -1, below that NaN.
TRAINC_INLINE float log1p(float x) {
  const bool large = x > 0x1p64f; // 1 is nothing to it, and to its 2^-32nd part
  const float reduced = large ? x * 0x1p-32f : x;
  const int32_t n = exponent_of(std::bit_cast<int32_t>(reduced + 1.0f));
  // 1 + f = 2^-n (1 + x), with the bits of x that the sum above has lost
  const float scale = power_of_two(-n);
  const float f = fma(reduced, scale, scale - 1.0f);
  float y = log_of_parts(static_cast<float>(n) + (large ? 32.0f : 0.0f), f);
  y = x < std::numeric_limits<float>::infinity() ? y : x; // infinity and NaN
  y = x == 0.0f ? x : y;                                  // -0
  y = x == -1.0f ? -std::numeric_limits<float>::infinity() : y;
  return x < -1.0f ? std::numeric_limits<float>::quiet_NaN() : y;
}

// 2 ulp.
TRAINC_INLINE float tanh(float x) {
  const float a = abs(x);
  const float s = a * a;
  float p = -0.005717042f; // minimax for (tanh(a) - a) / a^3 below 0.625
  p = fma(p, s, 0.020650584f);
  p = fma(p, s, -0.053743497f);
  p = fma(p, s, 0.13331491f);
  p = fma(p, s, -0.33333284f);
  const float small = fma(p * s, a, a);
  const float large = 1.0f - 2.0f / (exp(2.0f * (a > 10.0f ? 10.0f : a)) + 1.0f);
  return copy_sign(a > 0.625f ? large : small, x);
}

// 2 ulp.
TRAINC_INLINE float erf(float x) {
  const float a = abs(x);
  const float t = a > 4.0f ? 4.0f : a;
  const float s = t * t;
  float p = -0.0005976888f; // minimax for erf(t) / t - 1 below 0.93
  p = fma(p, s, 0.0049909786f);
  p = fma(p, s, -0.026765566f);
  p = fma(p, s, 0.112818025f);
  p = fma(p, s, -0.37612495f);
  p = fma(p, s, 0.12837915f);
  const float small = fma(p, t, t);
  float q = 1.1231524e-05f; // minimax for -log(1 - erf(t)) / t - 1 on [0.92, 3.93]
  q = fma(q, t, -0.0003228059f);
  q = fma(q, t, 0.0036424669f);
  q = fma(q, t, -0.023762079f);
  q = fma(q, t, 0.1062369f);
  q = fma(q, t, 0.6351513f);
  q = fma(q, t, 0.12864849f);
  const float large = 1.0f - exp(-fma(q, t, t));
  return copy_sign(t > 0.93f ? large : small, x);
}

// 2^e in quarter turns (of pi / 2), whole turns left out, for e from 7 on, in two parts: with one
// of 24 bits a product with the first is exact.
struct quarter_turns {
  double high, low;
};
constexpr int32_t first_large_exponent = 30; // of numbers that the table is for

// Row `row` of the table for 2^(first_large_exponent - 23 + row).
TRAINC_INLINE quarter_turns quarter_turns_of(int32_t row) {
  static constexpr quarter_turns table[] = {
      {0x1.7cc1b72p+0, 0x1.c882a53f84eb0p-30},   {-0x1.067c91cp+0, 0x1.c882a53f84eb0p-29},
      {0x1.f306dcap+0, -0x1.bbead603d8a83p-31},  {-0x1.9f246c0p-4, -0x1.bbead603d8a83p-30},
      {-0x1.9f246c0p-3, -0x1.bbead603d8a83p-29}, {-0x1.9f246c8p-2, 0x1.1054a7f09d5f4p-30},
      {-0x1.9f246c8p-1, 0x1.1054a7f09d5f4p-29},  {-0x1.9f246c6p+0, -0x1.df56b01ec5417p-29},
      {0x1.836e4e4p-1, 0x1.054a7f09d5f48p-31},   {0x1.836e4e4p+0, 0x1.054a7f09d5f48p-30},
      {-0x1.f246c70p-1, 0x1.054a7f09d5f48p-29},  {-0x1.f246c6ep+0, -0x1.f56b01ec54170p-29},
      {0x1.b727220p-4, 0x1.529fc2757d1f5p-33},   {0x1.b727220p-3, 0x1.529fc2757d1f5p-32},
      {0x1.b727220p-2, 0x1.529fc2757d1f5p-31},   {0x1.b727220p-1, 0x1.529fc2757d1f5p-30},
      {0x1.b727220p+0, 0x1.529fc2757d1f5p-29},   {-0x1.236377cp-1, -0x1.5ac07b1505c16p-29},
      {-0x1.236377ep+0, 0x1.4a7f09d5f47d5p-29},  {0x1.b939106p+0, -0x1.6b01ec5417056p-29},
      {-0x1.1b1bbecp-1, 0x1.29fc2757d1f53p-29},  {-0x1.1b1bbeap+0, -0x1.ac07b1505c159p-29},
      {0x1.c9c882ap+0, 0x1.4fe13abe8fa9ap-30},   {-0x1.b1bbeb0p-2, 0x1.4fe13abe8fa9ap-29},
      {-0x1.b1bbeacp-1, -0x1.603d8a82e0acbp-29}, {-0x1.b1bbeaep+0, 0x1.3f84eafa3ea6ap-29},
      {0x1.391054cp-1, -0x1.80f62a0b82b2dp-29},  {0x1.391054ap+0, 0x1.fc2757d1f534ep-30},
      {-0x1.8ddf56cp+0, 0x1.fc2757d1f534ep-29},  {0x1.c882a54p-1, -0x1.ec54170565912p-35},
      {0x1.c882a54p+0, -0x1.ec54170565912p-34},  {-0x1.bbead60p-2, -0x1.ec54170565912p-33},
      {-0x1.bbead60p-1, -0x1.ec54170565912p-32}, {-0x1.bbead60p+0, -0x1.ec54170565912p-31},
      {0x1.1054a80p-1, -0x1.ec54170565912p-30},  {0x1.1054a80p+0, -0x1.ec54170565912p-29},
      {-0x1.df56b02p+0, 0x1.3abe8fa9a6ee0p-32},  {0x1.054a7f0p-2, 0x1.3abe8fa9a6ee0p-31},
      {0x1.054a7f0p-1, 0x1.3abe8fa9a6ee0p-30},   {0x1.054a7f0p+0, 0x1.3abe8fa9a6ee0p-29},
      {-0x1.f56b01ep+0, -0x1.8a82e0acb223fp-29}, {0x1.529fc20p-4, 0x1.d5f47d4d37703p-30},
      {0x1.529fc20p-3, 0x1.d5f47d4d37703p-29},   {0x1.529fc28p-2, -0x1.505c1596447e5p-31},
      {0x1.529fc28p-1, -0x1.505c1596447e5p-30},  {0x1.529fc28p+0, -0x1.505c1596447e5p-29},
      {-0x1.5ac07b2p+0, 0x1.5f47d4d377037p-29},  {0x1.4a7f09ep+0, -0x1.4170565911f92p-29},
      {-0x1.6b01ec6p+0, 0x1.7d1f534ddc0dbp-29},  {0x1.29fc276p+0, -0x1.05c1596447e49p-29},
      {-0x1.ac07b16p+0, 0x1.f47d4d377036ep-29},  {0x1.4fe13acp-1, -0x1.70565911f924fp-33},
      {0x1.4fe13acp+0, -0x1.70565911f924fp-32},  {-0x1.603d8a8p+0, -0x1.70565911f924fp-31},
      {0x1.3f84eb0p+0, -0x1.70565911f924fp-30},  {-0x1.80f62a0p+0, -0x1.70565911f924fp-29},
      {0x1.fc2757cp-1, 0x1.1f534ddc0db63p-29},   {0x1.fc2757ep+0, -0x1.c1596447e493bp-29},
      {-0x1.ec54180p-6, 0x1.f534ddc0db629p-31},  {-0x1.ec54180p-5, 0x1.f534ddc0db629p-30},
      {-0x1.ec54180p-4, 0x1.f534ddc0db629p-29},  {-0x1.ec54170p-3, -0x1.596447e493ad5p-33},
      {-0x1.ec54170p-2, -0x1.596447e493ad5p-32}, {-0x1.ec54170p-1, -0x1.596447e493ad5p-31},
      {-0x1.ec54170p+0, -0x1.596447e493ad5p-30}, {0x1.3abe900p-3, -0x1.596447e493ad5p-29},
      {0x1.3abe8f8p-2, 0x1.4d377036d8a56p-29},   {0x1.3abe8fcp-1, -0x1.65911f924eb53p-29},
      {0x1.3abe8fap+0, 0x1.34ddc0db6295ap-29},   {-0x1.8a82e0ap+0, -0x1.96447e493ad4dp-29},
      {0x1.d5f47d4p-1, 0x1.a6ee06db14acdp-30},   {0x1.d5f47d4p+0, 0x1.a6ee06db14acdp-29},
      {-0x1.505c158p-2, -0x1.6447e493ad4cep-30}, {-0x1.505c158p-1, -0x1.6447e493ad4cep-29},
      {-0x1.505c15ap+0, 0x1.377036d8a5665p-29},  {0x1.5f47d4ep+0, -0x1.911f924eb5336p-29},
      {-0x1.4170566p+0, 0x1.bb81b6c52b328p-30},  {0x1.7d1f534p+0, 0x1.bb81b6c52b328p-29},
      {-0x1.05c1596p+0, -0x1.11f924eb53362p-30}, {0x1.f47d4d4p+0, -0x1.11f924eb53362p-29},
      {-0x1.70565a0p-4, 0x1.dc0db6295993cp-29},  {-0x1.7056590p-3, -0x1.1f924eb53361ep-31},
      {-0x1.7056590p-2, -0x1.1f924eb53361ep-30}, {-0x1.7056590p-1, -0x1.1f924eb53361ep-29},
      {-0x1.7056592p+0, 0x1.c0db6295993c4p-29},  {0x1.1f534dep+0, -0x1.f924eb53361dep-31},
      {-0x1.c159644p+0, -0x1.f924eb53361dep-30}, {0x1.f534de0p-2, -0x1.f924eb53361dep-29},
      {0x1.f534ddcp-1, 0x1.b6c52b3278872p-34},   {0x1.f534ddcp+0, 0x1.b6c52b3278872p-33},
      {-0x1.5964480p-4, 0x1.b6c52b3278872p-32},  {-0x1.5964480p-3, 0x1.b6c52b3278872p-31},
      {-0x1.5964480p-2, 0x1.b6c52b3278872p-30},  {-0x1.5964480p-1, 0x1.b6c52b3278872p-29},
      {-0x1.596447ep+0, -0x1.24eb53361de38p-30}, {0x1.4d37704p+0, -0x1.24eb53361de38p-29},
      {-0x1.65911fap+0, 0x1.b6295993c4390p-29},  {0x1.34ddc0ep+0, -0x1.275a99b0ef1bfp-30}};
  return table[row];
}

// Sine of x + quarters * pi / 2: the angle in f64 as whole quarter turns and a rest of at most one
// half, whose error is below 2^-55.
TRAINC_INLINE float sine(float x, int32_t quarters) {
  const double shifted = fma(static_cast<double>(x), 0x1.45f306dc9c883p-1, rounding_f64); // 2 / pi
  const double whole = shifted - rounding_f64;
  double r = fma(whole, -0x1.921fb54442d18p0, static_cast<double>(x)); // pi / 2 in two parts
  r = fma(whole, -0x1.1a62633145c07p-54, r);
  // From 2^30 on x = m 2^e with m of 24 bits, and e says how many quarter turns 2^e is.
  const int32_t exponent = (std::bit_cast<int32_t>(abs(x)) >> 23) - 127;
  const bool large = exponent >= first_large_exponent;
  const int32_t row = large ? (exponent > 127 ? 127 : exponent) - first_large_exponent : 0;
  const quarter_turns unit = quarter_turns_of(row);
  const double m = static_cast<double>(x * power_of_two(23 - first_large_exponent - row));
  const double turned = m * unit.high + rounding_f64;
  const double rest = fma(m, unit.low, m * unit.high - (turned - rounding_f64));
  r = large ? rest * 0x1.921fb54442d18p0 : r;
  const int32_t n =
      static_cast<int32_t>(std::bit_cast<int64_t>(large ? turned : shifted)) + quarters;
  const double s = r * r;
  double odd = fma(s, 2.755731922398589e-06, -1.984126984126984e-04); // Taylor, |r| <= pi / 4
  odd = fma(odd, s, 8.333333333333333e-03);
  odd = fma(odd, s, -1.6666666666666666e-01);
  const double sin_r = fma(odd, s, 1.0) * r; // -0 where r is
  double even = fma(s, -2.755731922398589e-07, 2.48015873015873e-05);
  even = fma(even, s, -1.3888888888888889e-03);
  even = fma(even, s, 4.1666666666666664e-02);
  even = fma(even, s, -0.5);
  const double cos_r = fma(even, s, 1.0);
  const double y = (n & 1) != 0 ? cos_r : sin_r;
  return static_cast<float>((n & 2) != 0 ? -y : y);
}

// 0.6 ulp, wherever x is. NaN at infinity.
TRAINC_INLINE float sin(float x) { return sine(x, 0); }
TRAINC_INLINE float cos(float x) { return sine(x, 1); }

// 1.4 ulp. Above 1 it is pi / 2 - atan(1 / a).
TRAINC_INLINE float atan(float x) {
  const float a = abs(x);
  const bool large = a > 1.0f;
  const float t = large ? -1.0f / a : a;
  const float s = t * t;
  float p = -0.0018272123f; // minimax for (atan(t) / t - 1) / t^2
  p = fma(p, s, 0.011064438f);
  p = fma(p, s, -0.0314557f);
  p = fma(p, s, 0.05823455f);
  p = fma(p, s, -0.08419459f);
  p = fma(p, s, 0.10957576f);
  p = fma(p, s, -0.14265245f);
  p = fma(p, s, 0.19998638f);
  p = fma(p, s, -0.33333302f);
  const float rest = fma(p * s, t, t);
  const float y = large ? 0x1.921fb6p0f + (rest - 0x1.777a5cp-25f) : rest; // pi / 2 in two parts
  return copy_sign(y, x);
}

// asin(t) for t = sqrt(s) in [0, 0.5].
TRAINC_INLINE float small_asin(float t, float s) {
  float p = 0.04223055f; // minimax for (asin(t) / t - 1) / t^2
  p = fma(p, s, 0.024140986f);
  p = fma(p, s, 0.045478344f);
  p = fma(p, s, 0.07495233f);
  p = fma(p, s, 0.16666754f);
  return fma(p * s, t, t);
}

// 2.4 ulp. Above 0.5 it is pi / 2 - 2 asin(sqrt((1 - a) / 2)); NaN above 1.
TRAINC_INLINE float asin(float x) {
  const float a = abs(x);
  const bool large = a > 0.5f;
  const float s = large ? fma(a, -0.5f, 0.5f) : a * a;
  const float r = small_asin(large ? sqrt(s) : a, s);
  const float y = large ? 0x1.921fb6p0f - fma(2.0f, r, 0x1.777a5cp-25f) : r; // pi / 2 in two parts
  return copy_sign(y, x);
}

// 1.2 ulp. By the same halves of its domain; NaN outside of [-1, 1].
TRAINC_INLINE float acos(float x) {
  const float a = abs(x);
  const bool large = a > 0.5f;
  const float s = large ? fma(a, -0.5f, 0.5f) : a * a;
  const float r = small_asin(large ? sqrt(s) : a, s);
  const float near_one = 2.0f * r;
  const float near_minus_one = 0x1.921fb6p1f - fma(2.0f, r, 0x1.777a5cp-24f); // pi in two parts
  const float middle = 0x1.921fb6p0f - (copy_sign(r, x) + 0x1.777a5cp-25f);
  return large ? (x < 0.0f ? near_minus_one : near_one) : middle;
}

// log2(a) for a > 0 finite, in f64 with an error below 1e-12.
TRAINC_INLINE double log2_f64(float a) {
  const double x = a;
  const int64_t bits = std::bit_cast<int64_t>(x);
  const int32_t n = static_cast<int32_t>((bits - 0x3fe6a09e667f3bcd) >> 52);
  const double m = std::bit_cast<double>(bits - (static_cast<int64_t>(n) << 52));
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double p = 1.0 / 17; // log(m) = 2 (s + s^3 / 3 + s^5 / 5 + ...)
  p = fma(p, z, 1.0 / 15);
  p = fma(p, z, 1.0 / 13);
  p = fma(p, z, 1.0 / 11);
  p = fma(p, z, 1.0 / 9);
  p = fma(p, z, 1.0 / 7);
  p = fma(p, z, 1.0 / 5);
  p = fma(p, z, 1.0 / 3);
  return fma(fma(p * z, s, s), 2.0 * 1.4426950408889634, static_cast<double>(n));
}

// 2^x as f64 with a relative error below 1e-12, for x in [-200, 200].
TRAINC_INLINE double exp2_f64(double x) {
  const double shifted = x + rounding_f64;
  const int64_t n = std::bit_cast<int64_t>(shifted) - std::bit_cast<int64_t>(rounding_f64);
  const double r = (x - (shifted - rounding_f64)) * 0.6931471805599453;
  double p = 1.0 / 39916800;
  p = fma(p, r, 1.0 / 3628800);
  p = fma(p, r, 1.0 / 362880);
  p = fma(p, r, 1.0 / 40320);
  p = fma(p, r, 1.0 / 5040);
  p = fma(p, r, 1.0 / 720);
  p = fma(p, r, 1.0 / 120);
  p = fma(p, r, 1.0 / 24);
  p = fma(p, r, 1.0 / 6);
  p = fma(p, r, 0.5);
  p = fma(p, r, 1.0);
  p = fma(p, r, 1.0);
  return p * std::bit_cast<double>((n + 1023) << 52);
}

// 1 ulp. Special cases as C has them: pow(x, 0) = pow(1, e) = 1, a negative base
// with an exponent that is not an integer gives NaN.
TRAINC_INLINE float pow(float x, float e) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float a = abs(x);
  const bool base_normal = (a > 0.0f) & (a < infinity);
  double product = static_cast<double>(e) * log2_f64(base_normal ? a : 1.0f);
  product = product > 200.0 ? 200.0 : product;
  product = product < -200.0 ? -200.0 : product;
  float y = static_cast<float>(exp2_f64(product));
  y = a == 0.0f ? (e < 0.0f ? infinity : 0.0f) : y;
  y = a == infinity ? (e < 0.0f ? 0.0f : infinity) : y;
  const bool integer = trunc(e) == e;
  const bool odd = integer & (trunc(e * 0.5f) != e * 0.5f);
  const bool negative = copy_sign(1.0f, x) < 0.0f;
  y = negative & odd ? -y : y;
  y = (x < 0.0f) & !integer & (a < infinity) ? std::numeric_limits<float>::quiet_NaN() : y;
  y = (abs(e) == infinity) & (a == 1.0f) ? 1.0f : y;
  y = (x != x) | (e != e) ? x + e : y;
  return (e == 0.0f) | (x == 1.0f) ? 1.0f : y;
}

// Functions of the C library, declared without its headers, which take longer to read than emitted
// code.
#ifdef __CUDACC__
#define TRAINC_OF_C(name) ::name
#else
#define TRAINC_OF_C(name) __builtin_##name
#endif
TRAINC_INLINE double exp(double x) { return TRAINC_OF_C(exp)(x); }
TRAINC_INLINE double log(double x) { return TRAINC_OF_C(log)(x); }
TRAINC_INLINE double log1p(double x) { return TRAINC_OF_C(log1p)(x); }
TRAINC_INLINE double tanh(double x) { return TRAINC_OF_C(tanh)(x); }
TRAINC_INLINE double erf(double x) { return TRAINC_OF_C(erf)(x); }
TRAINC_INLINE double sin(double x) { return TRAINC_OF_C(sin)(x); }
TRAINC_INLINE double cos(double x) { return TRAINC_OF_C(cos)(x); }
TRAINC_INLINE double atan(double x) { return TRAINC_OF_C(atan)(x); }
TRAINC_INLINE double asin(double x) { return TRAINC_OF_C(asin)(x); }
TRAINC_INLINE double acos(double x) { return TRAINC_OF_C(acos)(x); }
TRAINC_INLINE double expm1(double x) { return TRAINC_OF_C(expm1)(x); }
TRAINC_INLINE double pow(double x, double e) { return TRAINC_OF_C(pow)(x, e); }
TRAINC_INLINE float fmod(float x, float y) { return TRAINC_OF_C(fmodf)(x, y); }
TRAINC_INLINE double fmod(double x, double y) { return TRAINC_OF_C(fmod)(x, y); }
#undef TRAINC_OF_C

} // namespace trainc
