// SPDX-License-Identifier: Apache-2.0
//
// What a run keeps in its folder. docs/runs.md has a row for each
// (tests/unit/runtime/run_files_test.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace trainc {

inline std::string configuration_of(const std::string &run) { return run + "/configuration.json"; }
inline std::string log_of(const std::string &run) { return run + "/log.jsonl"; }
inline std::string samples_of(const std::string &run) { return run + "/samples"; }
inline std::string events_of(const std::string &run) { return run + "/tensorboard"; }
inline std::string checkpoints_of(const std::string &run) { return run + "/checkpoints"; }
inline std::string statistics_of(const std::string &run) { return run + "/statistics"; }
inline std::string traces_of(const std::string &run) { return run + "/traces"; }
inline std::string lock_of(const std::string &run) { return run + "/.lock"; }
inline std::string saved_of(const std::string &run) { return run + "/.saved"; }

// Whether a name is of the form, in which k times N stands for k digits or more, or is that of its
// beginning.
inline bool has_form(std::string_view name, std::string_view form) {
  constexpr std::string_view unfinished = ".writing";
  auto is_digit = [&](size_t i) { return i < name.size() && name[i] >= '0' && name[i] <= '9'; };
  if (name.ends_with(unfinished))
    name.remove_suffix(unfinished.size());
  size_t at = 0;
  for (size_t i = 0; i < form.size(); ++i) {
    if (form[i] == 'N' ? !is_digit(at) : at == name.size() || name[at] != form[i])
      return false;
    ++at;
    if (form[i] == 'N' && form.substr(i + 1, 1) != "N")
      while (is_digit(at))
        ++at;
  }
  return at == name.size();
}

// Of what may lie beside other files in that folder.
inline bool is_of_statistics(std::string_view name) {
  return has_form(name, "rank-N.jsonl") || has_form(name, "rank-N-step-NNNNNNNN.safetensors");
}
// Of the steps from `begin` on; `end` is not one of them.
inline std::string trace_of(const std::string &run, int64_t begin, int64_t end) {
  return traces_of(run) + "/steps-" + std::to_string(begin) + "-" + std::to_string(end) + ".json";
}
inline bool is_trace(std::string_view name) { return has_form(name, "steps-N-N.json"); }
// What the names of files in `tensorboard` begin with.
constexpr char event_file_prefix[] = "events.out.tfevents.";

struct run_file {
  const char *name; // in the folder of the run
  bool is_folder;
  const char *what;
};

constexpr run_file run_files[] = {
    {"configuration.json", false,
     "the run's `id`, every option, its ranks, the data it saw (size and a digest of sampled "
     "contents); "
     "`last_start`: `date` in UTC, `host` of the first rank, `device` with a rank's threads, "
     "`command`"},
    {"log.jsonl", false,
     "a line a step, or with `--log-every N` every N steps: step, loss, gradient norm, rate, "
     "milliseconds; held-out losses; warnings; a summary and the machine"},
    {"samples", true,
     "text that a byte-token model wrote after a step, where `--sample-every` asks for it; "
     "complete "
     "and durable, or not there"},
    {"statistics", true,
     "what `--watch` saw of tensors, a file for each rank; a resumed run goes on with them; what "
     "`--dump` wrote, a file for each rank and step"},
    {"tensorboard", true,
     "event files for TensorBoard, unless `--no-tensorboard` is given: what the log has, the "
     "memory "
     "of the first rank, histograms, samples of text and the configuration"},
    {"traces", true, "what `--profile-steps` saw of the ranks, a file for each range of steps"},
    {"checkpoints", true, "parameters and optimizer state with checksums"},
    {".lock", false, "locked while the run is going on"},
    {".saved", false, "there from the first checkpoint on"},
};

} // namespace trainc
