// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/backward_update.h"

#include "runtime/cpu/sum_of_squares.h"
#include "runtime/files/data_types.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace trainc {
namespace {

constexpr int64_t elements_of_block = 1 << 16; // of a sum, whatever the threads

int64_t elements_of(const gradient_piece &piece) {
  return piece.elements.end - piece.elements.begin;
}

// Up to the end of the last row.
int64_t padding_of(const gradient_piece &piece, int64_t row) {
  const int64_t rest = elements_of(piece) % row;
  return rest == 0 ? 0 : row - rest;
}

} // namespace

backward_update::backward_update(const program &program) : program_(program) {
  int64_t padded = 0, blocks = 0;
  for (const gradient_bucket &bucket : program.buckets)
    for (const gradient_piece &piece : bucket) {
      blocks = std::max(blocks, (elements_of(piece) + elements_of_block - 1) / elements_of_block);
      if (const int64_t padding = padding_of(piece, program.update_row); padding > 0)
        padded = std::max(padded, elements_of(piece) + padding);
    }
  padded_.resize(static_cast<size_t>(padded * bytes_of(program.parameter_type)));
  sums_.resize(static_cast<size_t>(blocks));
}

void backward_update::begin(const arenas &memory, bool with_update) {
  memory_ = memory;
  memory_.exchange = nullptr;
  memory_.clock = nullptr; // its time is no step's of forward_backward
  with_update_ = with_update;
  sum_of_squares_ = 0;
}

void backward_update::complete(int bucket) {
  const int64_t trained = program_.optimizer_slot_bytes / bytes_of(program_.parameter_type);
  for (const gradient_piece &piece : program_.buckets.buckets[bucket]) {
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
  const int64_t width = bytes_of(program_.parameter_type);
  if (const int64_t padding = padding_of(piece, program_.update_row); padding > 0) {
    const int64_t bytes = elements_of(piece) * width;
    memcpy(padded_.data(), gradient, static_cast<size_t>(bytes));
    memset(padded_.data() + bytes, 0, static_cast<size_t>(padding * width));
    gradient = padded_.data();
  }
  // Addressed so that each element is found under its number in an arena of all gradients.
  memory_.base[static_cast<int>(arena_kind::gradients)] =
      const_cast<char *>(gradient) - piece.elements.begin * width;
  memory_.updated = piece.elements;
  call(program_, entry::update, memory_);
}

} // namespace trainc
