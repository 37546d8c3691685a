// SPDX-License-Identifier: Apache-2.0
//
// Errors that a user can cause, as one exception type with an exit code, and
// the list that collects all problems of a phase before it is thrown.
#pragma once

#include "runtime/exit_codes.h"

#include <cstdarg>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <system_error>
#include <vector>

namespace trainc {

[[gnu::format(printf, 1, 2)]] inline std::string format_text(const char *pattern, ...) {
  va_list arguments, again;
  va_start(arguments, pattern);
  va_copy(again, arguments);
  std::string text(static_cast<size_t>(vsnprintf(nullptr, 0, pattern, arguments)), '\0');
  vsnprintf(text.data(), text.size() + 1, pattern, again);
  va_end(again);
  va_end(arguments);
  return text;
}

// The text with control characters as C writes them, those of UTF-8 among them: names in files may
// hold any, and terminals act on them.
inline std::string without_controls(const std::string &text, bool keeps_lines = false) {
  std::string all;
  unsigned char before = 0;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_wide_control = before == 0xc2 && byte >= 0x80 && byte < 0xa0;
    if (is_wide_control)
      all.replace(all.size() - 1, 1, "\\xc2");
    if (c == '\n' && !keeps_lines)
      all += "\\n";
    else if (c == '\t')
      all += "\\t";
    else if ((byte < ' ' && c != '\n') || byte == 0x7f || is_wide_control)
      all += format_text("\\x%02x", byte);
    else
      all += c;
    before = byte;
  }
  return all;
}

// An empty message means: another rank prints it.
struct failure : std::exception {
  failure(exit_code code, const std::string &message, bool everywhere = false)
      : code(code), message(without_controls(message, /*keeps_lines=*/true)),
        everywhere(everywhere) {}
  const char *what() const noexcept override { return message.c_str(); }
  exit_code code;
  std::string message;
  bool everywhere; // every rank throws it at the same point; else the others wait for this one
};

// Of memory or threads the machine has no more; what nobody expected is an internal error.
inline failure as_failure(const std::exception &error) {
  if (auto *known = dynamic_cast<const failure *>(&error))
    return *known;
  auto *system = dynamic_cast<const std::system_error *>(&error);
  if (dynamic_cast<const std::bad_alloc *>(&error))
    return {exit_machine, "this process gets no more memory\n  try: a greater limit (ulimit -v, "
                          "cgroup), or a smaller batch"};
  if (system && system->code() == std::errc::resource_unavailable_try_again)
    return {exit_machine, "this process gets no more threads or memory for them\n  try: a greater "
                          "limit (ulimit -u, ulimit -v), or --threads 1"};
  return {exit_internal, std::string("internal error: ") + error.what()};
}

class problem_list {
public:
  void add(std::string problem) { problems_.push_back(std::move(problem)); }
  bool empty() const { return problems_.empty(); }
  void throw_if_any(exit_code code) const {
    if (problems_.empty())
      return;
    std::string all;
    for (const std::string &problem : problems_)
      all += (all.empty() ? "" : "\n") + problem;
    throw failure(code, all);
  }

private:
  std::vector<std::string> problems_;
};

} // namespace trainc
