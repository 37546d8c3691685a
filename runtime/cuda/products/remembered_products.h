// SPDX-License-Identifier: Apache-2.0
//
// The file that remembers which algorithm computes which product: a line of text
// for each, under the device's name and the library's version, with a checksum.
// Lines for other devices and versions stay in the file untouched.
#pragma once

#include <cublasLt.h>

#include <map>
#include <string>
#include <vector>

namespace trainc {

class remembered_products {
public:
  remembered_products(std::string device, size_t library_version);

  // Adds what stands in `text`. Returns how many lines could not be read.
  int add_lines(const std::string &text);
  void add(const std::string &problem, const cublasLtMatmulAlgo_t &algorithm);
  const cublasLtMatmulAlgo_t *find(const std::string &problem) const;

  std::string own_lines() const; // of this device and version
  std::string text() const;      // of the whole file

private:
  std::string start_; // of this device's lines
  std::map<std::string, cublasLtMatmulAlgo_t> algorithms_;
  std::vector<std::string> foreign_lines_;
};

// Reads the file; a warning on standard error where lines are damaged. No file is
// as good as an empty one.
void read_choices(const std::string &path, remembered_products &choices);
// Replaces the file; a warning where that does not work.
void write_choices(const std::string &path, const remembered_products &choices);

} // namespace trainc
