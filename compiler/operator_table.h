// SPDX-License-Identifier: Apache-2.0
//
// The public support table, made from the importers that are there.
#pragma once

#include <string>

namespace trainc {

/// Markdown: every ONNX operator that can be imported, with the oldest operator set.
std::string operatorTable();

} // namespace trainc
