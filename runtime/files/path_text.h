// SPDX-License-Identifier: Apache-2.0
//
// A path as a value that takes no memory of the heap.
#pragma once

#include <climits>
#include <cstdarg>
#include <cstdio>

namespace trainc {

class path_text {
public:
  // Like printf. What is too long for the system stays so: the call that gets it fails with
  // ENAMETOOLONG, since room is for more than that.
  [[gnu::format(printf, 2, 3)]] explicit path_text(const char *pattern, ...) {
    va_list arguments;
    va_start(arguments, pattern);
    vsnprintf(text_, sizeof text_, pattern, arguments);
    va_end(arguments);
  }
  operator const char *() const { return text_; }

private:
  char text_[PATH_MAX + 1];
};

} // namespace trainc
