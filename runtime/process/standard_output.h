// SPDX-License-Identifier: Apache-2.0
//
// What a program prints to a full disk or a closed descriptor is lost only with a word.
#pragma once

#include "runtime/exit_codes.h"
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace trainc {

// To be called with the exit code at the end of `main`: that code where all that was printed has
// come out or the program failed before, else exit_disk, said after `prefix` ("trainc-fill: "). A
// reader that has gone, such as `head`, needs no word.
inline int finish_standard_output(int code, const char *prefix) {
  if (fflush(stdout) == 0 && !ferror(stdout))
    return code;
  if (errno != EPIPE)
    fprintf(stderr, "%sthe standard output cannot be written: %s\n  try: another place for it\n",
            prefix, strerror(errno));
  return code == exit_success ? exit_disk : code;
}

} // namespace trainc
