// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/html_page.h"

#include "llvm/ADT/StringExtras.h"

namespace trainc::inspect {

using nlohmann::ordered_json;

namespace {

constexpr std::string_view kDataGoesHere = "{{data}}";

/// For an element `script`: `<` begins no tag, and no comment.
std::string scriptText(const ordered_json &document) {
  const std::string json = document.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  return llvm::join(llvm::split(json, '<'), "\\u003c");
}

} // namespace

std::string pageWith(std::string_view page, const ordered_json &document) {
  const size_t place = page.find(kDataGoesHere);
  return std::string(page.substr(0, place)) + scriptText(document) +
         std::string(page.substr(place + kDataGoesHere.size()));
}

} // namespace trainc::inspect
