// SPDX-License-Identifier: Apache-2.0
//
// Puts what a compilation made in the place of what an earlier one left.
#pragma once

#include <optional>
#include <string>

namespace trainc {

struct OutputProblem {
  std::string path, text, advice;
};

/// Moves the entries of the folder `partial` into the folder `target`, which exists on the same
/// mount, as OutputFolder::publish promises. Changes nothing where that would replace a file that
/// the target's list does not name, or where the list is not as it was written. Returns what went
/// wrong, nothing where all is well.
std::optional<OutputProblem> exchangeOutput(const std::string &partial, const std::string &target);

/// The entry of the folder `target` that trainc writes and that holds `file`; empty where none
/// does.
std::string replacedEntryWith(const std::string &file, const std::string &target);

/// Whether the path of the file leads into the folder; neither needs to be there.
bool isWithin(const std::string &file, const std::string &folder);

/// Whether files can be renamed from the one folder into the other, as far as mounts go.
bool onOneMount(const std::string &one, const std::string &other);

} // namespace trainc
