// SPDX-License-Identifier: Apache-2.0
//
// What the commands share: ranks, the device, parameters, and how a command talks
// to its user.
#pragma once

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/data/loader.h"
#include "runtime/device.h"
#include "runtime/options/trainer_table.h"
#include "runtime/ranks/communicator.h"
#include "runtime/ranks/rank_memory.h"
#include "runtime/ranks/watchdog.h"
#include "runtime/run/frozen_weights.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace trainc {

struct run {
  run(const program &program, const trainer_table &table, const trainer_options &options,
      communicator &ranks, watchdog &watch);

  const program &prog;
  const trainer_table &table;
  const trainer_options &options;
  std::string folder; // of the binary, where the compiler put its files
  communicator &ranks;
  watchdog &watch;
  device target;

  bool is_first() const { return ranks.rank() == 0; }
  const arenas &places() const { return target.places(); }

  // Collective; before a step. Of a program in stages throws `failure` (exit_usage) where the ranks
  // or --micro-batches are not what it was made for.
  void check_layout() const;
  // Collective.
  void load_initial_parameters();
  // Collective. Of a program with frozen weights: makes their arena. Before parameters are loaded.
  void map_frozen_weights();
  // As --checkpoint says; returns what it was, for the user.
  std::string load_chosen_parameters();
  // Of --data and --tokens, for `open`.
  data_request request_of_data(bool shuffle, uint64_t seed, bool partial_batches) const;
  // Collective, as all that open data.
  loader open(const data_request &request);
  // Of --validation-data and --validation-tokens; nothing where neither is given.
  std::optional<loader> open_validation_data();
  loader open_prediction_data();
  // Inputs without data are left as they are.
  loader open_available_data();
  // Says which value of `count` batches from `first` on is not finite; empty: none is, or the files
  // are gone. With a loader of its own, since another may be at work. For one rank alone.
  std::string not_finite_data(const data_request &request, data_part part, int64_t first,
                              int64_t count) const;

  // What was planned for a rank of each stage, of as many micro-batches a step as are asked for or
  // as the program has.
  std::vector<rank_memory> planned_memory(int64_t micro_batches) const;

  // From the first rank alone. Warnings go to standard error and to who hears them.
  void warn(const std::string &text) const;
  // From this rank, where another has no part in what the text is about. Of others than the first
  // it goes to standard error alone, with their name where there are several hosts.
  void warn_here(const std::string &text) const;
  // From here on, and those that nobody has heard. Null: nobody does any more.
  void hear_warnings(std::function<void(const std::string &)> hear);
  // The model, what the command says of its work, the machine and every option.
  // `micro_batches` of a rank and step, which may be others than were asked for.
  void print_table(const table_rows &more, int64_t micro_batches) const;

private:
  std::optional<frozen_weights> frozen_;
  std::function<void(const std::string &)> hear_;
  mutable std::vector<std::string> unheard_;
};

// The model.
table_rows describe(const program &program);

} // namespace trainc
