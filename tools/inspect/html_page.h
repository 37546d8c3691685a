// SPDX-License-Identifier: Apache-2.0
//
// Pages for a browser that need nothing besides themselves: markup, style and scripts of page/, and
// what they show as JSON. The scripts alone make elements, with texts as texts, so no name of a run
// or a model becomes markup.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace trainc::inspect {

/// `page` has `{{data}}` where the document goes, in an element `script`.
std::string pageWith(std::string_view page, const nlohmann::ordered_json &document);

} // namespace trainc::inspect
