// SPDX-License-Identifier: Apache-2.0
//
// Which data a command reads: those that options name, opened and checked by all ranks.
#include "runtime/run/agreement.h"
#include "runtime/run/run.h"

namespace trainc {

// Of these files, read as the options say.
static data_request request_of(const trainer_options &options, const std::vector<std::string> &data,
                               const std::vector<std::string> &tokens) {
  data_request request;
  request.data = data;
  request.constants = options.constant;
  request.tokens = tokens;
  request.token_type = options.token_type;
  request.label_shift = options.label_shift;
  return request;
}

data_request run::request_of_data(bool shuffle, uint64_t seed, bool partial_batches) const {
  data_request request = request_of(options, options.data, options.tokens);
  request.partial_batches = partial_batches;
  request.holdout = options.holdout;
  if (options.command->bit & command_train) {
    request.training_batches = options.overfit;
    request.rest = options.rest;
    std::string why; // none: the option's row has looked
    augmentation::parse(options.augment, request.changes, why);
  }
  request.shuffle = shuffle;
  request.seed = seed;
  return request;
}

std::string run::not_finite_data(const data_request &request, data_part part, int64_t first,
                                 int64_t count) const {
  std::string found;
  try {
    loader data(prog, request);
    for (int64_t i = 0; i < count && found.empty(); ++i)
      found = data.not_finite_in(part, first + i);
  } catch (const std::exception &) { // it says why, and must not be another reason
  }
  return found;
}

std::optional<loader> run::open_validation_data() {
  if (options.validation_data.empty() && options.validation_tokens.empty())
    return std::nullopt;
  data_request request = request_of(options, options.validation_data, options.validation_tokens);
  request.partial_batches = true;
  return open(request);
}

loader run::open_prediction_data() {
  data_request request = request_of(options, options.data, options.tokens);
  request.for_prediction = true;
  return open(request);
}

loader run::open_available_data() {
  data_request request = request_of(options, options.data, options.tokens);
  request.may_lack_data = true;
  return open(request);
}

loader run::open(const data_request &request) {
  std::optional<loader> result;
  ranks.together([&] { result.emplace(prog, request); });
  refuse_differences(ranks, properties_of_data(result->identities()), exit_data);
  for (const std::string &note : result->notes())
    if (is_first())
      fprintf(stderr, "%s\n", note.c_str());
  ranks.together([&] {
    result->check_values(ranks.rank(), ranks.size());
    if (options.check_data) {
      // Each host its own files.
      result->check_contents(ranks.rank_on_host(), ranks.ranks_on_host());
      result->check_finite(ranks.rank_on_host(), ranks.ranks_on_host());
    }
  });
  return std::move(*result);
}

} // namespace trainc
