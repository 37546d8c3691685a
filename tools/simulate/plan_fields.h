// SPDX-License-Identifier: Apache-2.0
//
// Reading of JSON files that may be damaged or written by hand: each field has its type and limits.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace trainc::simulate {

/// A document, an object. Throws `failure` (exit_data) where the file cannot be read or is none.
nlohmann::json readDocument(const std::string &path);

/// Throws `failure` (exit_data): a plan is made again by trainc.
[[noreturn]] void refusePlan(const std::string &path, const std::string &what);

/// The fields of an object of a plan, by names that messages have. Throws as refusePlan does.
class Fields {
public:
  /// `where`: what the object is, for messages.
  Fields(const std::string &path, std::string where, const nlohmann::json &object);

  int64_t integer(const char *name, int64_t least, int64_t end) const;
  /// -1 where it is not there.
  int index(const char *name, size_t end) const;
  double amount(const char *name) const;
  int64_t bytes(const char *name) const;
  bool flag(const char *name) const;
  std::string text(const char *name) const;
  const nlohmann::json &list(const char *name) const;
  /// All texts of a list of the file.
  std::vector<std::string> texts(const nlohmann::json &list) const;
  const nlohmann::json &at(const char *name) const;
  bool has(const char *name) const { return object.contains(name); }

private:
  const std::string &path;
  std::string where;
  const nlohmann::json &object;
};

} // namespace trainc::simulate
