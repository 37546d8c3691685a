// SPDX-License-Identifier: Apache-2.0
//
// The progress bar and its plain form. Text is put together on the stack.
#include "runtime/run/progress.h"

#include "runtime/files/file_operations.h"
#include "runtime/process/clock.h"
#include "runtime/ranks/launcher.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace trainc {
namespace {

constexpr double seconds_between_lines = 10;
constexpr double seconds_between_bars = 0.1;
constexpr double smoothing = 0.1;
constexpr int64_t steps_before_estimate = 3; // with the first, whose time does not count

// Nothing of the run waits for somebody who reads no more: what has no room is left out.
void put(const char *text, int length) {
  pollfd output = {STDOUT_FILENO, POLLOUT, 0};
  if (poll(&output, 1, /*timeout=*/0) == 0)
    return;
  real_file_operations().write_all(STDOUT_FILENO, text, static_cast<size_t>(length));
}

// "1:02:03" or "2:03"
void print_duration(char *text, size_t size, double seconds) {
  auto whole = static_cast<int64_t>(std::lround(seconds));
  if (whole >= 3600)
    snprintf(text, size, "%" PRId64 ":%02" PRId64 ":%02" PRId64, whole / 3600, whole / 60 % 60,
             whole % 60);
  else
    snprintf(text, size, "%" PRId64 ":%02" PRId64, whole / 60, whole % 60);
}

void print_speed(char *text, size_t size, const step_record &record) {
  bool tokens = record.tokens_per_second > 0;
  double speed = tokens ? record.tokens_per_second : record.samples_per_second;
  snprintf(text, size, speed < 100 ? "%.1f %s/s" : "%.0f %s/s", speed, tokens ? "tok" : "samples");
}

// Whether standard output ends at a terminal; of a rank, whether its launcher's does (which passes
// on what ranks print; mpirun gives them pseudo-terminals of its own). `width` gets the number of
// columns.
bool output_is_terminal(int *width) {
  int file = STDOUT_FILENO, opened = -1;
  if (const launch launch = find_launch();
      launch.started && (launch.is_open_mpi || !isatty(STDOUT_FILENO))) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/1", launcher_process());
    char target[128];
    ssize_t length = readlink(path, target, sizeof target - 1);
    target[std::max<ssize_t>(length, 0)] = '\0';
    if (strncmp(target, "/dev/pts/", 9) != 0 && strncmp(target, "/dev/tty", 8) != 0)
      return false;
    file = opened = ::open(target, O_WRONLY | O_NOCTTY | O_CLOEXEC);
  }
  winsize size = {};
  bool terminal = file >= 0 && isatty(file);
  if (terminal && ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    *width = size.ws_col;
  if (opened >= 0)
    ::close(opened);
  return terminal;
}

} // namespace

progress::progress(bool silent, int64_t first, int64_t last, int64_t display_every)
    : silent_(silent), first_(first), last_(last), display_every_(display_every) {
  if (!silent_)
    terminal_ = output_is_terminal(&width_);
}

void progress::step(const step_record &record, bool is_evaluated) {
  double seconds = record.milliseconds * 1e-3;
  if (record.step > first_ + 1)
    smoothed_seconds_ = smoothed_seconds_ == 0
                            ? seconds
                            : smoothed_seconds_ + smoothing * (seconds - smoothed_seconds_);
  if (silent_)
    return;
  double now = seconds_now();
  if (line_is_due(record.step, now)) {
    line(record, is_evaluated);
    last_line_ = now;
  } else if (terminal_ && now - last_bar_ > seconds_between_bars) {
    output_is_terminal(&width_); // it may have another size now
    bar(record);
    last_bar_ = now;
  }
}

bool progress::line_is_due(int64_t step, double now) const {
  if (step == last_)
    return true;
  if (display_every_ > 0)
    return (step - first_) % display_every_ == 0;
  return !terminal_ && (step == first_ + 1 || now - last_line_ >= seconds_between_lines);
}

bool progress::knows_time_left(int64_t step) const {
  return step >= first_ + steps_before_estimate && step < last_;
}

void progress::line(const step_record &record, bool stays_open) {
  finish();
  char text[320], speed[48], left[32], remaining[40] = "", scale[32] = "";
  print_speed(speed, sizeof speed, record);
  print_duration(left, sizeof left, smoothed_seconds_ * static_cast<double>(last_ - record.step));
  if (knows_time_left(record.step))
    snprintf(remaining, sizeof remaining, "  %s left", left);
  if (record.loss_scale > 0)
    snprintf(scale, sizeof scale, "  scale %.4g", record.loss_scale);
  put(text,
      snprintf(text, sizeof text,
               "step %" PRId64 "/%" PRId64 "  loss %.6g  norm %.4g  rate %.4g%s  %.1f ms  %s%s%s",
               record.step, last_, record.loss, record.gradient_norm, record.learning_rate, scale,
               record.milliseconds, speed, remaining, stays_open ? "" : "\n"));
  line_is_open_ = stays_open;
}

void progress::bar(const step_record &record) {
  char text[512], head[64], tail[160], speed[48], left[32];
  print_speed(speed, sizeof speed, record);
  print_duration(left, sizeof left, smoothed_seconds_ * static_cast<double>(last_ - record.step));
  int head_length = snprintf(head, sizeof head, "step %" PRId64 "/%" PRId64, record.step, last_);
  int percent = static_cast<int>(100 * record.step / last_);
  // What a narrow terminal has no room for goes, from the right.
  int room = width_ - 1 - head_length, tail_length = 0;
  for (int parts = 3; parts >= 0; --parts) {
    tail_length = snprintf(tail, sizeof tail, " %3d%%", percent);
    auto add = [&](const char *pattern, auto value) {
      tail_length += snprintf(tail + tail_length, sizeof tail - static_cast<size_t>(tail_length),
                              pattern, value);
    };
    if (parts > 0)
      add("  loss %.4g", record.loss);
    if (parts > 1 && knows_time_left(record.step))
      add("  %s left", static_cast<const char *>(left));
    if (parts > 2)
      add("  %s", static_cast<const char *>(speed));
    if (tail_length <= room)
      break;
  }
  constexpr int brackets = 3, fewest_cells = 4; // " [" and "]"
  int cells = std::min(room - tail_length - brackets, 60);
  char bar_text[80] = "";
  if (cells >= fewest_cells) {
    char filled[64], rest[64];
    memset(filled, '#', sizeof filled);
    memset(rest, '.', sizeof rest);
    auto full = static_cast<int>(cells * record.step / last_);
    snprintf(bar_text, sizeof bar_text, " [%.*s%.*s]", full, filled, cells - full, rest);
  }
  int length = snprintf(text, sizeof text, "%s%s%s", head, bar_text, tail);
  put("\r\033[K", 4);
  put(text, std::min(length, std::max(width_ - 1, 1)));
  bar_shown_ = true;
}

void progress::finish() {
  if (bar_shown_)
    put("\r\033[K", 4);
  if (line_is_open_)
    put("\n", 1);
  bar_shown_ = line_is_open_ = false;
}

void progress::held_out(int64_t step, const std::vector<named_number> &results) {
  if (silent_)
    return;
  char text[512];
  int length = line_is_open_ ? snprintf(text, sizeof text, "  held-out")
                             : snprintf(text, sizeof text, "step %" PRId64 "/%" PRId64 "  held-out",
                                        step, last_);
  for (const named_number &result : results) { // names may be as long as those of the model
    char *name = text + length;
    const auto room = static_cast<int>(sizeof text) - length;
    const int needed = snprintf(name, static_cast<size_t>(room), "%s %s %.6g",
                                &result == results.data() ? "" : ",", result.name, result.value);
    length += std::min(needed, room - 1);
    std::replace(name, text + length, '_', ' ');
  }
  line_is_open_ = false;
  finish();
  put(text, length);
  put("\n", 1);
}

} // namespace trainc
