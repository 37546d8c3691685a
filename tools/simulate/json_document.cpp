// SPDX-License-Identifier: Apache-2.0
#include "tools/simulate/json_document.h"

#include "runtime/failure.h"
#include "runtime/files/bounded_json.h"

#include <fstream>
#include <sstream>

namespace trainc::simulate {

using nlohmann::json;

namespace {

constexpr int deepest = 8; // steps of a profile: 7

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

} // namespace trainc::simulate
