// SPDX-License-Identifier: Apache-2.0
//
// The progress bar and its plain form. Text is put together on the stack.
#include "runtime/progress.h"

#include "runtime/clock.h"
#include "runtime/file_operations.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace trainc {
namespace {

constexpr int64_t lines_per_run = 20;
constexpr double seconds_between_bars = 0.1;
constexpr double smoothing = 0.1;

void put(const char *text, int length) {
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

} // namespace

bool output_is_terminal(int *width) {
  int file = STDOUT_FILENO, opened = -1;
  if (getenv("OMPI_COMM_WORLD_SIZE")) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd/1", static_cast<int>(getppid()));
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

progress::progress(bool silent, int64_t first, int64_t last)
    : silent_(silent), first_(first), last_(last),
      line_every_(std::max<int64_t>(1, (last - first) / lines_per_run)) {
  if (!silent_)
    terminal_ = output_is_terminal(&width_);
}

void progress::step(const step_record &record) {
  double seconds = record.milliseconds * 1e-3;
  smoothed_seconds_ = smoothed_seconds_ == 0
                          ? seconds
                          : smoothed_seconds_ + smoothing * (seconds - smoothed_seconds_);
  if (silent_)
    return;
  bool last = record.step == last_;
  if (!terminal_ || last) {
    if (last || record.step == first_ + 1 || (record.step - first_) % line_every_ == 0)
      line(record);
  } else if (double now = seconds_now(); now - last_shown_ > seconds_between_bars) {
    bar(record);
    last_shown_ = now;
  }
}

void progress::line(const step_record &record) {
  clear();
  char text[256], speed[48];
  print_speed(speed, sizeof speed, record);
  put(text, snprintf(text, sizeof text,
                     "step %" PRId64 "/%" PRId64 "  loss %.6g  norm %.4g  rate %.4g  %.1f ms  %s\n",
                     record.step, last_, record.loss, record.gradient_norm, record.learning_rate,
                     record.milliseconds, speed));
}

void progress::bar(const step_record &record) {
  char text[512], head[64], tail[160], speed[48], left[32];
  print_speed(speed, sizeof speed, record);
  print_duration(left, sizeof left, smoothed_seconds_ * static_cast<double>(last_ - record.step));
  int head_length =
      snprintf(head, sizeof head, "step %" PRId64 "/%" PRId64 " ", record.step, last_);
  int tail_length = snprintf(tail, sizeof tail, " %3.0f%%  loss %.4f  %s  %s left",
                             100.0 * static_cast<double>(record.step) / static_cast<double>(last_),
                             record.loss, speed, left);
  int cells = std::clamp(width_ - head_length - tail_length - 3, 0, 60);
  auto full = static_cast<int>(cells * record.step / last_);
  char cells_text[64];
  memset(cells_text, '#', static_cast<size_t>(full));
  memset(cells_text + full, '.', static_cast<size_t>(cells - full));
  put(text, snprintf(text, sizeof text, "\r\033[K%s[%.*s]%s", head, cells, cells_text, tail));
  bar_shown_ = true;
}

void progress::clear() {
  if (bar_shown_)
    put("\r\033[K", 4);
  bar_shown_ = false;
}

void progress::held_out(int64_t step, const std::vector<named_number> &results) {
  if (silent_)
    return;
  char text[512];
  int length = snprintf(text, sizeof text, "step %" PRId64 "/%" PRId64 "  held-out", step, last_);
  for (const named_number &result : results) {
    char *name = text + length;
    length += snprintf(name, sizeof text - static_cast<size_t>(length), "%s %s %.6g",
                       &result == results.data() ? "" : ",", result.name, result.value);
    std::replace(name, text + length, '_', ' ');
  }
  note(text);
}

void progress::note(const char *text) {
  clear();
  put(text, static_cast<int>(strlen(text)));
  put("\n", 1);
}

void progress::finish() { clear(); }

} // namespace trainc
