// SPDX-License-Identifier: Apache-2.0
//
// Writes the JSON lines from buffers on the stack.
#include "runtime/run/step_log.h"

#include "runtime/checkpoint/evaluation_results.h"
#include "runtime/failure.h"
#include "runtime/files/json_text.h"
#include "runtime/files/output_file.h"
#include "runtime/run/log_line.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <unistd.h>

namespace trainc {
namespace {

constexpr const char *loss_member = "loss"; // of a step, not of an evaluation

// By its shape alone, since a log may have millions.
struct line_shape {
  bool is_line = false, is_numbered = false;
  const char *kind = nullptr;
  int64_t number = 0; // of a step
  bool has_loss = false;
};

bool takes(std::string_view &text, std::string_view begin) {
  if (!text.starts_with(begin))
    return false;
  text.remove_prefix(begin.size());
  return true;
}

line_shape shape_of(std::string_view line) {
  auto least = static_cast<unsigned char>(' ');
  for (char c : line) // all of them: such a loop is vectorised
    least = std::min(least, static_cast<unsigned char>(c));
  if (least < ' ' || !line.ends_with('}') || !takes(line, "{\""))
    return {};
  for (const char *kind : {step_line, memory_line, warning_line, summary_line, machine_line}) {
    std::string_view rest = line;
    if (!takes(rest, kind) || !takes(rest, "\": "))
      continue;
    line_shape shape = {true, kind != summary_line && kind != machine_line, kind};
    if (!shape.is_numbered)
      return shape;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), shape.number);
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    shape.is_line = error == std::errc() && (rest.starts_with(',') || rest == "}");
    shape.has_loss = takes(rest, ", \"") && takes(rest, loss_member) && rest.starts_with('"');
    return shape;
  }
  return {};
}

constexpr int64_t at_once = 1 << 20; // bytes that are read

// Calls `see(offset, line)` for each line of the file, without its end, and for as much of one that
// does not end. Returns what is after the last line.
template <typename See> std::string each_line(const input_file &file, const See &see) {
  std::string text; // read, and not seen yet
  for (int64_t read = 0; read < file.size();) {
    const int64_t bytes = std::min(at_once, file.size() - read);
    const size_t left = text.size();
    text.resize(left + static_cast<size_t>(bytes));
    file.read(read, text.data() + left, bytes);
    read += bytes;
    auto offset = [&](size_t at) { return read - static_cast<int64_t>(text.size() - at); };
    size_t begin = 0;
    for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
      see(offset(begin), std::string_view(text).substr(begin, end - begin));
    if (begin == 0 && text.size() > at_once) {
      see(offset(0), text);
      begin = text.size();
    }
    text.erase(0, begin);
  }
  return text;
}

// What a run that goes on after a step has of its log.
struct kept_log {
  int64_t bytes = 0; // up to the first line of a later step, or of the end
  bool has_lines = false;
  int64_t reached = 0, evaluated = 0; // the last step with a line, with one of an evaluation
  // There is something else than lines, and half a one at the end, as a kill leaves it.
  bool is_damaged = false;
};

kept_log log_up_to(const input_file &file, int64_t last) {
  kept_log kept;
  bool is_cut = false;
  const std::string rest = each_line(file, [&](int64_t offset, std::string_view line) {
    const line_shape shape = shape_of(line);
    kept.is_damaged |= !shape.is_line;
    if (!is_cut)
      kept.bytes = offset;
    is_cut |= shape.is_line && (!shape.is_numbered || shape.number > last);
    kept.has_lines |= shape.is_line && !is_cut;
    if (is_cut || shape.kind != step_line)
      return;
    kept.reached = std::max(kept.reached, shape.number);
    if (!shape.has_loss)
      kept.evaluated = std::max(kept.evaluated, shape.number);
  });
  if (!is_cut)
    kept.bytes = file.size() - static_cast<int64_t>(rest.size());
  kept.is_damaged |= !rest.empty() && rest[0] != '{';
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
std::string keep(const input_file &log, file_operations &files) {
  const std::string first = log.path() + damaged_suffix;
  std::string free = first;
  for (int number = 2; access(free.c_str(), F_OK) == 0; ++number)
    free = first + "-" + std::to_string(number);
  output_file copy(free, files);
  std::vector<char> block(static_cast<size_t>(at_once));
  for (int64_t begin = 0; begin < log.size(); begin += at_once) {
    const int64_t bytes = std::min(at_once, log.size() - begin);
    log.read(begin, block.data(), bytes);
    copy.write(block.data(), bytes);
  }
  copy.publish();
  return free;
}

// By way of a second file: a crash loses no line.
void write_lines_again(const input_file &log, int64_t last, file_operations &files) {
  output_file lines(log.path(), files);
  each_line(log, [&](int64_t, std::string_view line) {
    const line_shape shape = shape_of(line);
    if (!shape.is_line || !shape.is_numbered || shape.number > last)
      return;
    lines.write(line);
    lines.write("\n", 1);
  });
  lines.publish();
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
  if (resumed_step > 0 && exists(path))
    cut(path, resumed_step, files);
  if (file_.open(path, /*keeps=*/resumed_step > 0) != 0)
    refuse();
  const std::string folder = std::filesystem::path(path).parent_path();
  if (files.sync_path(folder.empty() ? "." : folder.c_str()) != 0)
    refuse();
  words_of_process = this;
}

// Leaves the lines up to the step.
void step_log::cut(const std::string &path, int64_t last, file_operations &files) {
  const input_file log(path, exit_disk);
  const kept_log kept = log_up_to(log, last);
  if (kept.is_damaged) {
    damaged_ = keep(log, files);
    write_lines_again(log, last, files);
  } else if (kept.bytes < log.size() && ::truncate(path.c_str(), kept.bytes) != 0)
    throw failure(exit_disk, path + ": cannot be cut: " + strerror(errno));
  last_step_ = kept.reached;
  last_evaluated_ = kept.evaluated;
  has_lines_ = kept.has_lines;
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
