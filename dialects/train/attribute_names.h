// SPDX-License-Identifier: Apache-2.0
//
// Attributes of a module that those read in the text of a dump who do not have the dialect.
#pragma once

namespace trainc::train {

inline constexpr char kModelAttribute[] = "train.model", kGraphAttribute[] = "train.graph";

} // namespace trainc::train
