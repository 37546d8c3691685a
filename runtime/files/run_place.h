// SPDX-License-Identifier: Apache-2.0
//
// What a path is to a run: to one that is there, or to one that begins in a folder.
#pragma once

#include <string>

namespace trainc {

// Whether a run has, or will have, a file or a folder of its own at the path, reached in any way.
// `beginning`: the folder of a run that may not be there yet; empty: there is none.
bool belongs_to_run(const std::string &path, const std::string &beginning = "");

// Whether the folder is that of a run, or one in which it keeps something besides statistics.
bool is_taken_by_run(const std::string &folder, const std::string &beginning);

} // namespace trainc
