// SPDX-License-Identifier: Apache-2.0
//
// Whole numbers that follow from sizes, such as `x[0] * (x[1] + 1) / 2`.
#pragma once

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace trainc {

/// What `name`, or `name[index]`, stands for. Nothing with a `problem`: nothing; without one: not
/// known yet, and then the whole is not.
using SizeLookup = llvm::function_ref<std::optional<int64_t>(
    llvm::StringRef name, std::optional<int64_t> index, std::string &problem)>;

/// The value of an expression of decimal numbers, names, `+ - * /` and parentheses. Divisions must
/// leave no rest. Nothing where `problem` says why, or where something is not known.
std::optional<int64_t> evaluateSize(llvm::StringRef expression, SizeLookup lookup,
                                    std::string &problem);

} // namespace trainc
