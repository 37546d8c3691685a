// SPDX-License-Identifier: Apache-2.0
#include "runtime/run/same_data.h"

#include "runtime/failure.h"

#include <algorithm>
#include <cinttypes>
#include <map>

namespace trainc {

sample_choice choice_of(const trainer_options &options) {
  return {options.holdout, !options.no_shuffle, options.rest, options.overfit};
}

void check_same_choice(const sample_choice &before, const sample_choice &now) {
  std::string problem;
  if (before.holdout != now.holdout)
    problem = format_text("option --holdout: the run has %g", before.holdout);
  else if (before.shuffles != now.shuffles)
    problem = std::string("option --no-shuffle: the run's data are ") +
              (before.shuffles ? "shuffled" : "in order");
  else if (before.rest != now.rest)
    problem =
        std::string("option --leftovers: the run has ") + word_of(leftover_words, before.rest);
  else if (before.overfit != now.overfit)
    problem = format_text("option --overfit: the run has %" PRId64, before.overfit);
  if (!problem.empty())
    throw failure(exit_usage, problem + "; another would change which samples are trained on when"
                                        "\n  try: --new-data, with which their order begins anew");
}

static void check_same_file(const data_identity &old, const data_identity &now,
                            const char *advice) {
  if (now.bytes != old.bytes || now.digest != old.digest)
    throw failure(exit_data,
                  format_text("%s: is not what the run was trained on: %s of %" PRId64
                              " bytes then, other contents of %" PRId64 " bytes now%s",
                              now.path.c_str(), old.path.c_str(), old.bytes, now.bytes, advice));
  if (!old.type.empty() && now.type != old.type)
    throw failure(exit_data,
                  format_text("%s: was read as %s, and is read as %s now%s", now.path.c_str(),
                              old.type.c_str(), now.type.c_str(), advice));
  auto share_text = [](int64_t share) {
    return share == 0 ? "what its length gives it"
                      : format_text("%.2f %%", static_cast<double>(share) / 100);
  };
  if (now.share != old.share)
    throw failure(exit_data, format_text("%s: its share of the samples was %s, and is %s now%s",
                                         now.path.c_str(), share_text(old.share).c_str(),
                                         share_text(now.share).c_str(), advice));
}

std::vector<std::string> check_same_data(const run_configuration &kept, data_use use,
                                         const std::vector<data_identity> &data) {
  std::vector<std::string> rewritten;
  const std::string &configuration = kept.path;
  const bool trains = use == data_use::training;
  const auto &of_run = trains ? kept.data : kept.validation;
  if (!of_run)
    return rewritten; // written by hand, or there was no validation
  // An input may have several files, whose order counts.
  std::map<std::string, std::vector<data_identity>> before, now;
  for (const data_identity &file : *of_run)
    before[file.input].push_back(file);
  for (const data_identity &file : data)
    now[file.input].push_back(file);
  const char *advice = trains ? "\n  try: the same data, or --new-data to go on with others"
                              : "\n  try: the same data, or --validation-data or "
                                "--validation-tokens again to validate on others";
  for (auto &[input, files] : now) {
    const std::vector<data_identity> &old = before[input];
    if (old.empty())
      throw failure(exit_data, configuration + ": does not say what data input '" + input +
                                   "' had\n  try: --new-data to go on with " + files[0].path);
    for (size_t i = 0; i < std::min(old.size(), files.size()); ++i) {
      check_same_file(old[i], files[i], advice);
      const bool is_known = old[i].modified != 0 && files[i].path == old[i].path;
      if (is_known && files[i].modified != old[i].modified)
        rewritten.push_back(files[i].path);
    }
    if (files.size() != old.size())
      throw failure(exit_data,
                    format_text("%s: input '%s' has %s, and had %zu%s", configuration.c_str(),
                                input.c_str(),
                                counted(static_cast<int64_t>(files.size()), "file").c_str(),
                                old.size(), advice));
  }
  return rewritten;
}

} // namespace trainc
