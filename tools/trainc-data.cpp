// SPDX-License-Identifier: Apache-2.0
//
// trainc-data: makes the data sets that trainers read, from text, tables, images and raw arrays.
#include "tools/data/commands.h"

#include "runtime/failure.h"
#include "runtime/process/signals.h"
#include "runtime/process/standard_output.h"

#include <cstdio>
#include <cstring>

namespace {

using trainc::data::CommandRow;

// NOLINTNEXTLINE(cert-err58-cpp): tables that are made at the first use
const CommandRow &(*const kCommands[])() = {
    trainc::data::textCommand,   trainc::data::labelledCommand, trainc::data::csvCommand,
    trainc::data::imagesCommand, trainc::data::rawCommand,      trainc::data::checkCommand};

std::string overview() {
  std::string page = "Makes the data sets that trainers read. Each file has a manifest with its "
                     "checksum beside it\n(FILE.json), which the trainer compares.\n\n"
                     "usage: trainc-data COMMAND [options]\n\n";
  for (const auto &command : kCommands)
    page += trainc::format_text("  %-10s %s\n", command().name.c_str(), command().summary.c_str());
  return page + "\n`trainc-data COMMAND --help` lists the options of a command.\n\nExit status:\n"
                "  0  done\n  2  bad command line\n  3  bad input\n"
                "  5  a result could not be written\n  6  no memory\n";
}

int run(int argc, char **argv) {
  std::string word = argc > 1 ? argv[1] : "--help";
  if (word == "--help" || word == "help") {
    fputs(overview().c_str(), stdout);
    return argc > 1 ? 0 : trainc::exit_usage;
  }
  for (const auto &command : kCommands) {
    if (word != command().name)
      continue;
    for (int i = 2; i < argc; ++i)
      if (strcmp(argv[i], "--help") == 0) {
        fputs(trainc::data::helpOf(command()).c_str(), stdout);
        return 0;
      }
    command().run(trainc::data::parseArguments(command(), argc - 2, argv + 2));
    return 0;
  }
  throw trainc::failure(trainc::exit_usage,
                        "unknown command '" + word +
                            "'\n  try: text, labelled, csv, images, raw or check");
}

} // namespace

int main(int argc, char **argv) {
  try {
    trainc::watch_signals(/*requests=*/false);
    return trainc::finish_standard_output(run(argc, argv), "trainc-data: ");
  } catch (const std::exception &error) {
    const trainc::failure known = trainc::as_failure(error);
    fprintf(stderr, "trainc-data: %s\n", known.message.c_str());
    return known.code;
  }
}
