// SPDX-License-Identifier: Apache-2.0
//
// Text that a byte-token language model writes, by the compiled evaluation of a whole window.
#pragma once

#include "runtime/run/run.h"

#include <functional>
#include <string>
#include <vector>

namespace trainc {

// The places that text generation needs.
struct text_model {
  const tensor_place *tokens = nullptr; // [batch, window]
  const tensor_place *logits = nullptr; // [batch, window, vocabulary]
  int64_t window() const { return tokens->shape[1]; }
  int64_t vocabulary() const { return logits->shape[2]; }
};

// Draws from softmax(logits / temperature) over the `top` likeliest.
class sampler {
public:
  sampler(const trainer_options &options, uint64_t seed, int64_t vocabulary);
  // The same for the same logits and position. Allocates nothing.
  int64_t operator()(const std::vector<double> &logits, uint64_t position);

private:
  uint64_t seed_;
  double temperature_;
  size_t top_;
  std::vector<size_t> order_;
  std::vector<double> weights_;
};

class text_writer {
public:
  // Takes all memory but the device's. Throws `failure` where the model writes no bytes or cannot
  // read the prompt; `who` asks: "generate". The seed need not be the options': a branch has its
  // checkpoint's.
  text_writer(run &run, uint64_t seed, const std::string &who);

  // Continues --prompt by --length bytes with the parameters as they are, each drawn by the seed,
  // `number` and its position, while `put` wants more; returns whether it took all. Of one rank
  // alone; the batch that lies on the device is lost. Allocates nothing.
  bool operator()(uint64_t number, const std::function<bool(char)> &put);

private:
  void place_window();
  void read_logits(int64_t position);

  run &run_;
  text_model model_;
  sampler sample_;
  std::string text_;
  std::vector<double> logits_;
};

} // namespace trainc
