// SPDX-License-Identifier: Apache-2.0
//
// Exit codes of trainc, with their meanings as --help and the docs print them.
#pragma once

namespace trainc {

enum class ExitCode {
  ok = 0,
  internalError = 1,
  usage = 2,
  unreadableModel = 3,
  unsupportedModel = 4,
  outputNotWritten = 5,
  hostCompilerFailed = 6,
  // Of trainc-run, which says so in its --help; a trainer's exit codes for the same.
  badData = 3,
  tooLittleMemory = 6,
};

struct ExitCodeEntry {
  ExitCode code;
  const char *meaning;
};

inline constexpr ExitCodeEntry kExitCodes[] = {
    {ExitCode::ok, "success"},
    {ExitCode::internalError, "an error of trainc itself; the message names pass and dump file"},
    {ExitCode::usage, "the command line is wrong"},
    {ExitCode::unreadableModel, "the model or its external data cannot be read"},
    {ExitCode::unsupportedModel, "the model, or what was asked for it, is not supported"},
    {ExitCode::outputNotWritten, "the output cannot be written"},
    {ExitCode::hostCompilerFailed,
     "the host compiler or nvcc is missing or failed on the emitted source"},
};

} // namespace trainc
