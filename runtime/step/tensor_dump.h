// SPDX-License-Identifier: Apache-2.0
//
// Writes the tensors that are watched themselves: of each step a safetensors file for each rank.
#pragma once

#include "runtime/files/safetensors.h"
#include "runtime/step/tensor_watch.h"

#include <set>

namespace trainc {

class tensor_dump final : public tensor_sink {
public:
  tensor_dump(std::string folder, int rank) : folder_(std::move(folder)), rank_(rank) {}

  void take(const watched_values &values, statistics_taker &taker) override;
  // What was taken of the step, which is forgotten then.
  void write(int64_t step);
  // What went wrong, once; else empty. Nothing is taken from then on.
  std::string take_problem();

private:
  void hold(const watched_values &values);
  void write_file(const std::string &path, int64_t step) const;
  void give_up(std::string problem);
  void forget();

  std::string folder_;
  int rank_;
  std::vector<tensor_view> tensors_; // in the order in which they were made
  std::vector<std::vector<char>> contents_;
  std::set<std::string> known_;
  bool has_failed_ = false;
  std::string problem_; // that was not told
};

} // namespace trainc
