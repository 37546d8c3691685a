// SPDX-License-Identifier: Apache-2.0
//
// A run whose hosts have a folder each (checkpoint/folder_groups.h): what a host lacks of the run
// that goes on, since its disk is new or another host went on without it, it gets from one that has
// it.
#pragma once

#include "runtime/checkpoint/folder_groups.h"
#include "runtime/options/options.h"
#include "runtime/program.h"
#include "runtime/ranks/communicator.h"

#include <functional>
#include <string>

namespace trainc {

// Before options are taken from the configuration of the run that --resume means: each host that
// has none gets it, and --run where it is left out. Warns of each such host. Collective; throws
// `failure` (exit_usage) where hosts have different runs there, (exit_disk) where a file cannot be
// written.
void share_configuration(communicator &ranks, const program &program, trainer_options &options);

// The newest checkpoint of the run that any of its folders has whole; the others get it, those that
// have a damaged one of its step too. Each keeper has the lock of its folder, and has recovered
// what was there. Collective; throws `failure`. Returns its path, empty where there is none.
std::string share_newest_checkpoint(communicator &ranks, const folder_groups &groups,
                                    const program &program, const std::string &folder,
                                    const std::function<void(const std::string &)> &warn);

} // namespace trainc
