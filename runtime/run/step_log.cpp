// SPDX-License-Identifier: Apache-2.0
//
// Writes the JSON lines from buffers on the stack.
#include "runtime/run/step_log.h"

#include "runtime/checkpoint/evaluation_results.h"
#include "runtime/failure.h"
#include "runtime/files/bounded_json.h"
#include "runtime/files/json_text.h"
#include "runtime/files/output_file.h"
#include "runtime/run/log_line.h"

#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace trainc {
namespace {

constexpr const char *loss_member = "loss"; // of a step, not of an evaluation

std::string bytes_of_log(const std::string &path) {
  struct stat information;
  if (stat(path.c_str(), &information) != 0)
    return "";
  input_file file(path, exit_disk);
  std::string text(static_cast<size_t>(file.size()), '\0');
  file.read(0, text.data(), file.size());
  return text;
}

// The complete lines of steps up to `last`; the rest was of work that is redone. `damaged`: there
// is something else than lines, and half a one at the end, as a kill leaves it.
// `reached`: the last step that has one; `evaluated`: the last one with one of an evaluation.
std::string lines_up_to(const std::string &text, int64_t last, bool &damaged, int64_t &reached,
                        int64_t &evaluated) {
  std::string kept;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find('\n', begin);
    if (end == std::string::npos) {
      damaged |= text[begin] != '{';
      break;
    }
    std::string line = text.substr(begin, end - begin + 1);
    auto parsed = bounded_json(line, deepest_line);
    const bool is_line = is_log_line(parsed), is_of_step = is_line && parsed.contains(step_line);
    damaged |= !is_line;
    const char *numbered = is_line ? number_of_line(parsed) : nullptr;
    if (const int64_t step = numbered ? parsed[numbered].get<int64_t>() : last + 1; step <= last) {
      kept += line;
      if (is_of_step)
        reached = std::max(reached, step);
      if (is_of_step && !parsed.contains(loss_member))
        evaluated = std::max(evaluated, step);
    }
    begin = end + 1;
  }
  return kept;
}

// What a damaged log is kept as: ".damaged", ".damaged-2", ...
constexpr const char *damaged_suffix = ".damaged";

bool is_damaged_suffix(const std::string &text) {
  if (text == damaged_suffix)
    return true;
  const std::string begin = std::string(damaged_suffix) + "-";
  return text.size() > begin.size() && text.rfind(begin, 0) == 0 &&
         text.find_first_not_of("0123456789", begin.size()) == std::string::npos;
}

// Under a name that nobody has yet, which is returned.
std::string keep(const std::string &text, const std::string &path, file_operations &files) {
  const std::string first = path + damaged_suffix;
  std::string free = first;
  for (int number = 2; access(free.c_str(), F_OK) == 0; ++number)
    free = first + "-" + std::to_string(number);
  output_file file(free, files);
  file.write(text.data(), static_cast<int64_t>(text.size()));
  file.publish();
  return free;
}

} // namespace

std::vector<std::string> files_of_log(const std::string &path) {
  namespace fs = std::filesystem;
  const fs::path at = path;
  const std::string name = at.filename();
  std::vector<std::string> files;
  std::error_code none; // there may be no such folder
  for (auto &entry : fs::directory_iterator(at.has_parent_path() ? at.parent_path() : ".", none)) {
    const std::string other = entry.path().filename();
    if (other.rfind(name, 0) == 0 &&
        (other == name || is_damaged_suffix(other.substr(name.size()))))
      files.push_back(entry.path());
  }
  return files;
}

step_log::step_log(const std::string &path, int64_t resumed_step, file_operations &files) {
  if (path.empty())
    return;
  auto refuse = [&]() {
    throw failure(exit_disk, path + ": cannot be written: " + strerror(errno));
  };
  if (resumed_step > 0) { // trimmed by way of a second file: a crash loses no line
    const std::string text = bytes_of_log(path);
    bool is_damaged = false;
    const std::string kept =
        lines_up_to(text, resumed_step, is_damaged, last_step_, last_evaluated_);
    if (is_damaged)
      damaged_ = keep(text, path, files);
    output_file trimmed(path, files);
    trimmed.write(kept.data(), static_cast<int64_t>(kept.size()));
    trimmed.publish();
    has_lines_ = !kept.empty();
  }
  if (file_.open(path, /*keeps=*/resumed_step > 0) != 0)
    refuse();
  const std::string folder = std::filesystem::path(path).parent_path();
  if (resumed_step == 0 && files.sync_path(folder.empty() ? "." : folder.c_str()) != 0)
    refuse();
  words_of_process = this;
}

step_log::~step_log() {
  take_end();
  while (are_being_said) // by another thread, to the file
    usleep(1000);
}

// Whether nobody has said how the run ends; the caller does now.
bool step_log::take_end() {
  last_words *own = this;
  return words_of_process.compare_exchange_strong(own, nullptr);
}

void step_log::put(const char *line, int length) {
  if (!waiting_.empty()) {
    file_.append(waiting_.data(), waiting_.size());
    waiting_.clear();
  }
  file_.append(line, static_cast<size_t>(length));
  has_lines_ = true;
}

void step_log::expect(const std::vector<named_number> &results) {
  constexpr size_t number_bytes = 64; // a number and what is around it
  size_t bytes = number_bytes;
  for (const named_number &result : results) {
    held_out_members_.push_back(held_out_member(result.name));
    bytes += held_out_members_.back().size() + number_bytes;
  }
  held_out_line_.resize(bytes);
}

void step_log::write(const step_record &record) {
  if (!file_.is_open())
    return;
  char line[512], loss[32], norm[32], rate[32];
  int length =
      snprintf(line, sizeof line,
               "{\"%s\": %" PRId64 ", \"%s\": %s, \"gradient_norm\": %s, "
               "\"learning_rate\": %s, \"milliseconds\": %.3f, "
               "\"samples_per_second\": %.3f",
               step_line, record.step, loss_member, json_number(loss, record.loss),
               json_number(norm, record.gradient_norm), json_number(rate, record.learning_rate),
               record.milliseconds, record.samples_per_second);
  if (record.tokens_per_second > 0)
    length += snprintf(line + length, sizeof line - static_cast<size_t>(length),
                       ", \"tokens_per_second\": %.3f", record.tokens_per_second);
  if (record.loss_scale > 0)
    length += snprintf(line + length, sizeof line - static_cast<size_t>(length),
                       ", \"loss_scale\": %s", json_number(norm, record.loss_scale));
  if (const exchange_times &of = record.exchange; of.end > 0)
    length += snprintf(line + length, sizeof line - static_cast<size_t>(length),
                       ", \"exchange_begin\": %.6f, \"exchange_end\": %.6f, "
                       "\"exchange_exposed\": %.6f",
                       of.begin, of.end, of.exposed);
  if (!record.group_norms.empty())
    return put(line, length, record);
  length += snprintf(line + length, sizeof line - static_cast<size_t>(length), "%s}\n",
                     record.skipped ? ", \"skipped\": true" : "");
  put(line, length);
}

void step_log::write_memory(int64_t step, int rank, const char *phase,
                            std::span<const std::pair<const char *, int64_t>> bytes) {
  if (!file_.is_open())
    return;
  std::string line = format_text("{\"%s\": %" PRId64 ", \"rank\": %d, \"phase\": \"%s\"",
                                 memory_line, step, rank, phase);
  for (const auto &[name, value] : bytes)
    line += format_text(", \"%s\": %" PRId64, name, value);
  put(line + "}\n");
}

void step_log::write_warning(int64_t step, const std::string &text) {
  if (!file_.is_open())
    return;
  const std::string line =
      format_text("{\"%s\": %" PRId64 ", \"%s\": ", warning_line, step, warning_text) +
      json_text(text) + "}\n";
  if (has_lines_)
    put(line);
  else
    waiting_ += line;
}

// With what few steps have, which takes memory.
void step_log::put(const char *line, int length, const step_record &record) {
  std::string whole(line, static_cast<size_t>(length));
  char number[32];
  for (const group_norm &of : record.group_norms)
    whole += ", \"gradient_norm_of_" + of.group + "\": " + json_number(number, of.norm);
  put(whole + (record.skipped ? ", \"skipped\": true}\n" : "}\n"));
}

void step_log::write_held_out(int64_t step, const std::vector<named_number> &results) {
  if (step <= last_evaluated_)
    return;
  char number[32], *line = held_out_line_.data();
  const size_t room = held_out_line_.size();
  int length = snprintf(line, room, "{\"%s\": %" PRId64, step_line, step);
  for (size_t i = 0; i < results.size(); ++i)
    length += snprintf(line + length, room - static_cast<size_t>(length), ", %s: %s",
                       held_out_members_[i].c_str(), json_number(number, results[i].value));
  length += snprintf(line + length, room - static_cast<size_t>(length), "}\n");
  put(line, length);
}

void step_log::write_summary(const run_summary &summary) {
  const bool is_failure = !summary.reason.empty();
  if (!take_end() || (is_failure && !has_lines_))
    return;
  char line[640]; // on the stack but for a reason: the steps' end allocates nothing
  int length =
      snprintf(line, sizeof line,
               "{\"%s\": true, \"ended\": \"%s\", \"exit_code\": %d, \"steps\": %" PRId64
               ", \"skipped_steps\": %" PRId64
               ", \"seconds\": %.3f, \"seconds_computing\": %.3f, \"seconds_data\": %.3f, "
               "\"seconds_exchanging\": %.3f, \"seconds_evaluating\": %.3f, "
               "\"seconds_saving\": %.3f, \"peak_resident_bytes\": %" PRId64,
               summary_line, summary.ended, summary.exit_code, summary.steps, summary.skipped_steps,
               summary.seconds, summary.computing, summary.data, summary.exchanging,
               summary.evaluating, summary.saving, summary.peak_resident_bytes);
  if (summary.rate > 0)
    length += snprintf(line + length, sizeof line - static_cast<size_t>(length),
                       ", \"gflops_per_rank\": %.6g", summary.rate * 1e-9);
  if (is_failure)
    return put(std::string(line, static_cast<size_t>(length)) +
               ", \"reason\": " + json_text(summary.reason) + "}\n");
  length += snprintf(line + length, sizeof line - static_cast<size_t>(length), "}\n");
  put(line, length);
}

// On the stack: memory may be what the process ends of.
void step_log::say(int code, const char *why) {
  if (!has_lines_)
    return;
  constexpr size_t room = 512;
  char line[room + 8]; // and the end
  auto length = static_cast<size_t>(snprintf(
      line, room, "{\"%s\": true, \"ended\": \"failed\", \"exit_code\": %d, \"reason\": \"",
      summary_line, code));
  for (; *why != '\0' && *why != '\n' && length < room; ++why) {
    const bool is_plain = *why >= ' ' && *why <= '~' && *why != '"' && *why != '\\';
    line[length++] = is_plain ? *why : '?';
  }
  strcpy(line + length, "\"}\n");
  file_.append(line, strlen(line));
}

void step_log::write_machine(double product_rate, double share) {
  char line[128];
  put(line, snprintf(line, sizeof line,
                     "{\"%s\": true, \"gflops_of_product\": %.6g, \"share_of_product\": %.6g}\n",
                     machine_line, product_rate * 1e-9, share));
}

} // namespace trainc
