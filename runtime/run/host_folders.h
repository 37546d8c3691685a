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

// The configuration of the run that --resume means, of the host that was started last, where this
// one has none or an older one; and --run where it is left out. It lies in the temporary folder for
// the life of the object: the run's own folder is as it was until the run begins.
class shared_configuration {
public:
  // Fills both options. Warns of each host without the run. Collective; throws `failure`
  // (exit_usage) where hosts have different runs there, (exit_disk) where no copy can be written.
  shared_configuration(communicator &ranks, const program &program, trainer_options &options);
  ~shared_configuration();
  shared_configuration(const shared_configuration &) = delete;
  shared_configuration &operator=(const shared_configuration &) = delete;

private:
  std::string copy_;
};

// The newest checkpoint of the run that any of its folders has whole. Where it `copies`, the others
// get it, those that have a damaged one of its step too; each keeper has the lock of its folder,
// and has recovered what was there. Else one that lacks it is an error. Collective; throws
// `failure`. Returns its path, empty where there is none.
std::string share_newest_checkpoint(communicator &ranks, const folder_groups &groups,
                                    const program &program, const std::string &folder, bool copies,
                                    const std::function<void(const std::string &)> &warn);

} // namespace trainc
