// SPDX-License-Identifier: Apache-2.0
#include "report.h"

#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>
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

// Function and place of an address in two lines, as addr2line prints them. Only for
// messages: it takes a process and a moment.
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
  std::snprintf(command, sizeof command, "addr2line -f -C -e '%s' 0x%zx 2>/dev/null", program,
                offset);
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

std::string without_parameters(const std::string &name) {
  const size_t end = name.find('(', name.rfind("(anonymous namespace)", 0) == 0 ? 21 : 0);
  return name.substr(0, end);
}

} // namespace

std::string function_name(const void *address) {
  Dl_info info;
  if (dladdr(address, &info) != 0 && info.dli_sname != nullptr && info.dli_saddr == address) {
    int status = 0;
    char *text = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
    const std::string name = status == 0 ? text : info.dli_sname;
    std::free(text);
    return without_parameters(name);
  }
  const std::string answer = ask_addr2line(address);
  const std::string name = answer.substr(0, answer.find('\n'));
  return name.empty() || name == "??" ? "an unnamed kernel" : without_parameters(name);
}

std::string source_line(const void *address) {
  const std::string answer = ask_addr2line(static_cast<const char *>(address) - 1);
  const size_t newline = answer.find('\n');
  if (newline == std::string::npos)
    return "";
  std::string place = answer.substr(newline + 1);
  place = place.substr(0, place.find_first_of("\n "));
  if (place.empty() || place[0] == '?' || place.find(":?") != std::string::npos)
    return "";
  const size_t slash = place.rfind('/');
  return " (" + (slash == std::string::npos ? place : place.substr(slash + 1)) + ")";
}

} // namespace trainc::stand_in
