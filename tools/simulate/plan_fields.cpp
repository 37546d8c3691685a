// SPDX-License-Identifier: Apache-2.0
#include "tools/simulate/plan_fields.h"

#include "runtime/failure.h"
#include "runtime/files/bounded_json.h"

#include <cmath>
#include <fstream>
#include <sstream>

namespace trainc::simulate {

using nlohmann::json;

namespace {

constexpr int deepest = 8; // steps of a profile: 7
constexpr int64_t mostBytes = int64_t(1) << 52;

} // namespace

json readDocument(const std::string &path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file)
    throw failure(exit_data, path + ": cannot be read\n  try: the output folder of trainc that "
                                    "trains, or a file that is there");
  json document = bounded_json(text.str(), deepest);
  const char *advice = "\n  try: the file as it was written";
  if (!document.is_object())
    throw failure(exit_data, path + ": is not a JSON object" + advice);
  if (auto version = document.find("version"); version != document.end() && *version != 1)
    throw failure(exit_data, path + ": has another version than 1" + advice);
  return document;
}

void refusePlan(const std::string &path, const std::string &what) {
  throw failure(exit_data, path + ": " + what + "\n  try: trainc again, into the same folder");
}

Fields::Fields(const std::string &path, std::string where, const json &object)
    : path(path), where(std::move(where)), object(object) {
  if (!object.is_object())
    refusePlan(path, this->where + " is not an object");
}

int64_t Fields::integer(const char *name, int64_t least, int64_t end) const {
  const json &value = at(name);
  if (!value.is_number_integer() || value.get<int64_t>() < least || value.get<int64_t>() >= end)
    refusePlan(path, where + " has no '" + name + "' from " + std::to_string(least) + " to " +
                         std::to_string(end - 1));
  return value.get<int64_t>();
}

int Fields::index(const char *name, size_t end) const {
  return has(name) ? int(integer(name, 0, int64_t(end))) : -1;
}

double Fields::amount(const char *name) const {
  const json &value = at(name);
  if (!value.is_number() || !(value.get<double>() >= 0) || std::isinf(value.get<double>()))
    refusePlan(path, where + ": '" + name + "' is not an amount");
  return value.get<double>();
}

int64_t Fields::bytes(const char *name) const {
  const json &value = at(name);
  if (!value.is_number_integer() || value.get<int64_t>() < 0 || value.get<int64_t>() > mostBytes)
    refusePlan(path, where + ": '" + name + "' is not an amount");
  return value.get<int64_t>();
}

bool Fields::flag(const char *name) const {
  const json &value = at(name);
  if (!value.is_boolean())
    refusePlan(path, where + ": '" + name + "' is neither true nor false");
  return value.get<bool>();
}

std::string Fields::text(const char *name) const {
  const json &value = at(name);
  if (!value.is_string())
    refusePlan(path, where + ": '" + name + "' is not text");
  return value.get<std::string>();
}

const json &Fields::list(const char *name) const {
  const json &value = at(name);
  if (!value.is_array())
    refusePlan(path, where + ": '" + name + "' is not a list");
  return value;
}

std::vector<std::string> Fields::texts(const json &list) const {
  std::vector<std::string> all;
  if (!list.is_array())
    refusePlan(path, where + ": a list of names is expected where there is none");
  for (const json &each : list) {
    if (!each.is_string())
      refusePlan(path, where + ": a name is not text");
    all.push_back(each.get<std::string>());
  }
  return all;
}

const json &Fields::at(const char *name) const {
  auto found = object.find(name);
  if (found == object.end())
    refusePlan(path, where + " has no '" + name + "'");
  return *found;
}

} // namespace trainc::simulate
