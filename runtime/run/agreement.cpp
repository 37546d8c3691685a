// SPDX-License-Identifier: Apache-2.0
#include "runtime/run/agreement.h"

#include "runtime/files/own_files.h"

#include <cinttypes>
#include <map>
#include <sstream>

namespace trainc {
namespace {

constexpr char separator = '\0'; // no name, value or path holds it

std::string to_text(const std::vector<rank_property> &properties) {
  std::string text;
  for (const rank_property &property : properties)
    for (const std::string *part : {&property.name, &property.value, &property.origin})
      text += *part + separator;
  return text;
}

std::vector<rank_property> from_text(const std::string &text) {
  std::istringstream parts(text);
  std::vector<rank_property> properties;
  for (rank_property each; std::getline(parts, each.name, separator) &&
                           std::getline(parts, each.value, separator) &&
                           std::getline(parts, each.origin, separator);)
    properties.push_back(each);
  return properties;
}

// "-" where a rank does not have it.
std::string shown(const rank_property &property) {
  if (property.value.empty())
    return "-";
  return property.value + (property.origin.empty() ? "" : " (" + property.origin + ")");
}

} // namespace

std::vector<rank_property> properties_of_start(const program &program, const trainer_table &table,
                                               const trainer_options &options) {
  std::vector<rank_property> result = {
      {"program",
       format_text("model '%s', optimizer %s, fingerprint %016" PRIx64 ", compiled by trainc %s "
                   "for %s, build %s",
                   program.model_name, program.optimizer_name, program.fingerprint,
                   program.compiler_version, program.march, own_build_id().c_str()),
       ""},
      {"command", options.command->name, ""}};
  for (auto &[name, value] :
       table.values(options, [](const option_row &option) { return option.is_shared; }))
    result.push_back({"option --" + name, value, ""});
  return result;
}

std::vector<rank_property> properties_of_data(const std::vector<data_identity> &data) {
  std::vector<rank_property> result;
  result.reserve(data.size());
  std::map<std::string, int> files; // of each input
  for (const data_identity &file : data)
    result.push_back(
        {format_text("data of input '%s', file %d", file.input.c_str(), ++files[file.input]),
         format_text("%" PRId64 " bytes of %s with digest %08x", file.bytes, file.type.c_str(),
                     file.digest) +
             (file.share == 0
                  ? ""
                  : format_text(", share %.2f %%", static_cast<double>(file.share) / 100)),
         file.path});
  return result;
}

void refuse_differences(communicator &ranks, const std::vector<rank_property> &mine,
                        exit_code code) {
  std::string text = to_text(mine), first = ranks.broadcast(text);
  ranks.together([&] {
    if (text == first)
      return;
    std::map<std::string, rank_property> theirs; // by name
    for (const rank_property &property : from_text(first))
      theirs[property.name] = property;
    std::string differences;
    auto compare = [&](const std::string &name, const rank_property &here,
                       const rank_property &there) {
      if (here.value != there.value)
        differences += format_text("\n  %s: here %s, on rank 0 %s", name.c_str(),
                                   shown(here).c_str(), shown(there).c_str());
    };
    for (const rank_property &property : mine) {
      compare(property.name, property, theirs[property.name]);
      theirs.erase(property.name);
    }
    for (auto &[name, property] : theirs)
      compare(name, {}, property);
    if (!differences.empty())
      throw failure(code, "does not agree with rank 0:" + differences +
                              "\n  try: the same program, options and data for every rank");
  });
}

} // namespace trainc
