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
  overLimit = 7,
  // Of trainc-run, which says so in its --help; a trainer's exit codes for the same.
  badData = 3,
  tooLittleMemory = 6,
};

struct ExitCodeEntry {
  ExitCode code;
  const char *name; // the kind of a problem in messages for machines: stable
  const char *meaning;
};

inline constexpr ExitCodeEntry kExitCodes[] = {
    {ExitCode::ok, "ok", "success"},
    {ExitCode::internalError, "internal-error",
     "an error of trainc itself; the message names pass and dump file"},
    {ExitCode::usage, "usage", "the command line is wrong"},
    {ExitCode::unreadableModel, "unreadable-model",
     "the model or its external data cannot be read"},
    {ExitCode::unsupportedModel, "unsupported-model",
     "the model, or what was asked for it, is not supported"},
    {ExitCode::outputNotWritten, "output-not-written", "the output cannot be written"},
    {ExitCode::hostCompilerFailed, "host-compiler-failed",
     "the host compiler or nvcc is missing or failed on the emitted source"},
    {ExitCode::overLimit, "over-limit",
     "the trainer would need more memory than --limit-memory or --memory-budget allows"},
};

} // namespace trainc
