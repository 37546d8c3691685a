// SPDX-License-Identifier: Apache-2.0
//
// The file that remembers which of a library's algorithms computes what: a line of text
// for each, under the device's name and the library's version, with a checksum.
// Lines for other devices, libraries and versions stay in the file untouched.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace trainc {

class remembered_choices {
public:
  // `library`: its version, and its name where it is not cuBLASLt.
  remembered_choices(std::string device, const std::string &library);

  // Adds what stands in `text`. Returns how many lines could not be read.
  int add_lines(const std::string &text);
  // `algorithm` is a word: letters, digits and underscores.
  void add(const std::string &problem, const std::string &algorithm);
  const std::string *find(const std::string &problem) const;

  std::string own_lines() const; // of this device, library and version
  std::string text() const;      // of the whole file

private:
  std::string start_; // of this device's lines
  std::map<std::string, std::string> algorithms_;
  std::vector<std::string> foreign_lines_;
};

// Reads the file; a warning on standard error where lines are damaged. No file is
// as good as an empty one.
void read_choices(const std::string &path, remembered_choices &choices);
// Replaces the file; a warning where that does not work.
void write_choices(const std::string &path, const remembered_choices &choices);

} // namespace trainc
