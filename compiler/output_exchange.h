// SPDX-License-Identifier: Apache-2.0
//
// Puts what a compilation made in the place of what an earlier one left.
#pragma once

#include <string>

namespace trainc {

/// Moves the entries of the folder `partial` into the folder `target`, which exists on the same
/// file system, as OutputFolder::publish promises. Leaves in `partial` what was replaced. Returns
/// what went wrong, empty where nothing did.
std::string exchangeOutput(const std::string &partial, const std::string &target);

/// The entry of the folder `target` that the exchange would replace and that holds `file`; empty
/// where none does.
std::string replacedEntryWith(const std::string &file, const std::string &target);

} // namespace trainc
