// SPDX-License-Identifier: Apache-2.0
//
// The bytes of .npy files for tests.
#pragma once

#include <string>
#include <vector>

namespace trainc {

inline std::string npy_bytes(const std::string &dictionary, const std::string &data,
                             int version = 1) {
  std::string header = dictionary;
  size_t start = version == 1 ? 10 : 12;
  while ((start + header.size() + 1) % 64)
    header += ' ';
  header += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  for (size_t i = 0; i < start - 8; ++i)
    bytes += static_cast<char>(header.size() >> (8 * i));
  return bytes + header + data;
}

template <typename T>
std::string npy_array(const std::string &type, const std::string &shape,
                      const std::vector<T> &values) {
  return npy_bytes(
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }",
      std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)));
}

} // namespace trainc
