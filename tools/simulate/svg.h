// SPDX-License-Identifier: Apache-2.0
//
// What pictures share: text in SVG, and axes with round numbers.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace trainc::simulate {

[[gnu::format(printf, 1, 2)]] std::string formatted(const char *pattern, ...);

/// For the text of an element: without characters that XML cannot hold.
std::string escaped(const std::string &text);

/// The multiples of 1, 2 or 5 times a power of ten up to `most`, about `count` of them, from 0.
std::vector<double> roundTicks(double most, int count);

/// The same in the unit that is right for `most` bytes.
std::vector<double> roundByteTicks(double most, int count);
/// `170 KiB`, with as many of four digits as are needed.
std::string byteTickText(double bytes);

/// A row of squares with what their colours mean.
std::string legend(double x, double y,
                   const std::vector<std::pair<std::string, std::string>> &colours);

} // namespace trainc::simulate
