// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/backward_update.h"

#include "runtime/cpu/sum_of_squares.h"
#include "runtime/files/data_types.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace trainc {
namespace {

constexpr int64_t elements_of_block = 1 << 16; // of a sum, for any number of threads

int64_t elements_of(const gradient_piece &piece) {
  return piece.elements.end - piece.elements.begin;
}

} // namespace

backward_update::backward_update(const program &program) : program_(program) {
  int64_t blocks = 0;
  for (const gradient_bucket &bucket : program.buckets)
    for (const gradient_piece &piece : bucket)
      blocks = std::max(blocks, (elements_of(piece) + elements_of_block - 1) / elements_of_block);
  last_row_.resize(static_cast<size_t>(program.update_row * bytes_of(program.parameter_type)));
  sums_.resize(static_cast<size_t>(blocks));
}

void backward_update::begin(const arenas &memory, bool with_update) {
  memory_ = memory;
  memory_.exchange = nullptr;
  memory_.clock = nullptr; // its time is not of a step of forward_backward
  with_update_ = with_update;
  sum_of_squares_ = 0;
}

void backward_update::complete(int bucket) {
  const int64_t trained = program_.optimizer_slot_bytes / bytes_of(program_.parameter_type);
  for (const gradient_piece &piece : program_.buckets[bucket]) {
    const char *gradient = memory_[arena_kind::activations] + piece.offset;
    if (piece.elements.begin < trained) // else a new value of a buffer
      sum_of_squares_ += squares_of(piece, gradient);
    if (with_update_ && std::isfinite(sum_of_squares_))
      update(piece, gradient);
  }
}

double backward_update::squares_of(const gradient_piece &piece, const char *gradient) {
  const int64_t count = elements_of(piece),
                blocks = (count + elements_of_block - 1) / elements_of_block;
  const auto add = [&](const auto *numbers) {
#pragma omp parallel for schedule(static)
    for (int64_t block = 0; block < blocks; ++block)
      sums_[static_cast<size_t>(block)] = trainc::sum_of_squares(
          numbers, block * elements_of_block, std::min(count, (block + 1) * elements_of_block));
  };
  if (program_.parameter_type == data_type::f64)
    add(reinterpret_cast<const double *>(gradient));
  else
    add(reinterpret_cast<const float *>(gradient));
  double sum = 0;
  for (int64_t block = 0; block < blocks; ++block)
    sum += sums_[static_cast<size_t>(block)];
  return sum;
}

void backward_update::update(const gradient_piece &piece, const char *gradient) {
  const int64_t width = bytes_of(program_.parameter_type), row = program_.update_row,
                rest = elements_of(piece) % row, whole = elements_of(piece) - rest;
  const int64_t middle = piece.elements.begin + whole;
  if (whole > 0)
    update_elements({piece.elements.begin, middle}, gradient);
  if (rest == 0)
    return;
  memcpy(last_row_.data(), gradient + whole * width, static_cast<size_t>(rest * width));
  memset(last_row_.data() + rest * width, 0, static_cast<size_t>((row - rest) * width));
  update_elements({middle, piece.elements.end}, last_row_.data());
}

void backward_update::update_elements(const element_range &elements, const char *gradient) {
  // Addressed so that each element is found under its number in an arena of all gradients.
  memory_.base[static_cast<int>(arena_kind::gradients)] =
      const_cast<char *>(gradient) - elements.begin * bytes_of(program_.parameter_type);
  memory_.updated = elements;
  call(program_, entry::update, memory_);
}

} // namespace trainc
