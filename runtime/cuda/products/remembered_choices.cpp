// SPDX-License-Identifier: Apache-2.0
//
// Lines "device; library; problem; algorithm; checksum".
#include "runtime/cuda/products/remembered_choices.h"

#include "runtime/failure.h"
#include "runtime/files/crc32c.h"
#include "runtime/files/file_operations.h"

#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace trainc {
namespace {

constexpr const char *heading =
    "# Algorithms for matrix products and convolutions, chosen by measuring. Later runs that\n"
    "# find this file give the same bits; without it they choose anew.\n";
constexpr size_t checksum_digits = 8;

std::string checksum(const std::string &text) {
  return format_text("%08x", crc32c(0, text.data(), text.size()));
}

bool is_word(const std::string &text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos;
}

// A name in a line must not end it.
std::string field(std::string text) {
  for (char &c : text)
    if (c == ';' || static_cast<unsigned char>(c) < ' ')
      c = ' ';
  return text;
}

void warn(const std::string &message) { std::fprintf(stderr, "warning: %s\n", message.c_str()); }

} // namespace

remembered_choices::remembered_choices(std::string device, const std::string &library)
    : start_(field(std::move(device)) + "; " + library + "; ") {}

int remembered_choices::add_lines(const std::string &text) {
  std::istringstream lines(text);
  int damaged = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#')
      continue;
    const size_t check_at = line.rfind("; ");
    const size_t algorithm_at =
        check_at == std::string::npos || check_at == 0 ? check_at : line.rfind("; ", check_at - 1);
    if (algorithm_at == std::string::npos || algorithm_at == 0 ||
        line.size() - check_at != 2 + checksum_digits ||
        line.substr(check_at + 2) != checksum(line.substr(0, check_at)) ||
        !is_word(line.substr(algorithm_at + 2, check_at - algorithm_at - 2)))
      ++damaged;
    else if (line.rfind(start_, 0) != 0)
      foreign_lines_.push_back(line);
    else
      algorithms_[line.substr(start_.size(), algorithm_at - start_.size())] =
          line.substr(algorithm_at + 2, check_at - algorithm_at - 2);
  }
  return damaged;
}

void remembered_choices::add(const std::string &problem, const std::string &algorithm) {
  algorithms_[problem] = algorithm;
}

const std::string *remembered_choices::find(const std::string &problem) const {
  auto found = algorithms_.find(problem);
  return found == algorithms_.end() ? nullptr : &found->second;
}

std::string remembered_choices::own_lines() const {
  std::string text;
  for (const auto &[problem, algorithm] : algorithms_) {
    const std::string line = start_ + problem + "; " + algorithm;
    text += line + "; " + checksum(line) + "\n";
  }
  return text;
}

std::string remembered_choices::text() const {
  std::string text = heading;
  for (const std::string &line : foreign_lines_)
    text += line + "\n";
  return text + own_lines();
}

void read_choices(const std::string &path, remembered_choices &choices) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return;
  std::ostringstream text;
  text << file.rdbuf();
  if (int damaged = choices.add_lines(text.str()))
    warn(path + format_text(": %d damaged line%s ignored; algorithms are chosen anew, results may "
                            "differ in the last bits",
                            damaged, damaged == 1 ? " is" : "s are"));
}

void write_choices(const std::string &path, const remembered_choices &choices) {
  const std::string text = choices.text(), temporary = path + "." + std::to_string(getpid());
  file_operations &files = real_file_operations();
  const int file = files.create(temporary.c_str());
  bool written = file >= 0 && files.write_all(file, text.data(), text.size()) == 0;
  if (file >= 0)
    written = files.close(file) == 0 && written;
  if (written && files.rename(temporary.c_str(), path.c_str()) == 0)
    return;
  warn(path + ": the chosen algorithms cannot be kept here (" + std::strerror(errno) +
       "); a later run may choose others\n  try: --product-choices FILE in a folder that can be "
       "written");
  if (file >= 0)
    files.remove_file(temporary.c_str());
}

} // namespace trainc
