// SPDX-License-Identifier: Apache-2.0
#include "report.h"
#include "symbols.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string_view>
#include <unistd.h>

namespace trainc::stand_in {

void fail(const std::string &subject, const std::string &what) {
  std::fflush(nullptr);
  const std::string text = "stand-in: " + subject + ": " + what + "\n";
  // One write, so that the ranks of a run do not cut each other's lines.
  if (write(STDERR_FILENO, text.data(), text.size()) < 0)
    std::_Exit(exit_status + 1);
  std::_Exit(exit_status);
}

namespace {

// Places of an address, one a line, from the inlined function that holds it to the one
// that is called. Only for messages: it takes a process and a moment.
std::string ask_addr2line(const void *address) {
  Dl_info info;
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr)
    return "";
  char program[4096] = {};
  if (readlink("/proc/self/exe", program, sizeof program - 1) <= 0)
    return "";
  char command[8192];
  const size_t offset =
      reinterpret_cast<size_t>(address) - reinterpret_cast<size_t>(info.dli_fbase);
  std::snprintf(command, sizeof command, "addr2line -i -e '%s' 0x%zx 2>/dev/null", program, offset);
  FILE *pipe = popen(command, "r");
  if (pipe == nullptr)
    return "";
  std::string text;
  char buffer[512];
  while (fgets(buffer, sizeof buffer, pipe) != nullptr)
    text += buffer;
  pclose(pipe);
  return text;
}

// Also without a template's return type.
std::string without_parameters(const std::string &name) {
  constexpr std::string_view unnamed = "(anonymous namespace)";
  size_t end = 0;
  int depth = 0;
  for (; end < name.size(); ++end) {
    if (name.compare(end, unnamed.size(), unnamed) == 0)
      end += unnamed.size() - 1;
    else if (name[end] == '(' && depth == 0)
      break;
    else
      depth += name[end] == '<' ? 1 : name[end] == '>' ? -1 : 0;
  }
  const std::string text = name.substr(0, end);
  return text.substr(0, 5) == "void " ? text.substr(5) : text;
}

} // namespace

std::string function_name(const void *address) {
  const std::string name = function_at(reinterpret_cast<uintptr_t>(address));
  return name.empty() ? "an unnamed kernel" : without_parameters(name);
}

// In the kernel rather than in what is inlined there.
std::string source_line(const void *address) {
  const std::string answer = ask_addr2line(static_cast<const char *>(address) - 1);
  if (answer.empty())
    return "";
  const size_t last = answer.rfind('\n', answer.size() - 2);
  std::string place = answer.substr(last == std::string::npos ? 0 : last + 1);
  place = place.substr(0, place.find_first_of("\n "));
  if (place.empty() || place[0] == '?' || place.find(":?") != std::string::npos)
    return "";
  const size_t slash = place.rfind('/');
  return " (" + (slash == std::string::npos ? place : place.substr(slash + 1)) + ")";
}

} // namespace trainc::stand_in
