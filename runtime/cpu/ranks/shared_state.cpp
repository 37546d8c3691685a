// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/ranks/shared_state.h"

#include "runtime/failure.h"
#include "runtime/files/data_types.h"
#include "runtime/ranks/gradient_parts.h"
#include "runtime/ranks/shared_memory.h"

#include <sys/mman.h>

namespace trainc {
namespace {

int64_t shared_bytes(const program &program) {
  return program.arena_bytes[static_cast<int>(arena_kind::parameters)] +
         program.arena_bytes[static_cast<int>(arena_kind::optimizer_state)];
}

} // namespace

shared_state::shared_state(communicator &ranks, const program &program)
    : program_(program), is_writer_(ranks.rank_on_host() == 0) {
  if (!program.updates_in_parts)
    ranks.together([&] {
      throw failure(exit_usage,
                    format_text("option --shard: the update of %s takes parameters as a whole and "
                                "cannot be shared out\n  try: --shard none",
                                program.optimizer_name));
    });
  files_ = share_with_host("trainc-state", page_bytes + (is_writer_ ? shared_bytes(program) : 0));
  ranks.together([&] {
    if (files_.empty())
      throw failure(exit_machine, "option --shard: ranks of this host do not share memory: they "
                                  "run in several containers\n  try: --shard none");
  });
  const gradient_parts parts(program.summed_bytes / bytes_of(program.parameter_type),
                             ranks.ranks_on_host());
  own_ = {parts.begin(ranks.rank_on_host()), parts.end(ranks.rank_on_host())};
}

shared_state::~shared_state() {
  for (size_t rank = 0; rank < files_.size(); ++rank)
    munmap(files_[rank],
           static_cast<size_t>(page_bytes + (rank == 0 ? shared_bytes(program_) : 0)));
}

char *shared_state::base(arena_kind kind) const {
  const int64_t parameters = program_.arena_bytes[static_cast<int>(arena_kind::parameters)];
  return files_[0] + page_bytes + (kind == arena_kind::parameters ? 0 : parameters);
}

bool shared_state::holds(const char *address) const {
  const char *first = base(arena_kind::parameters);
  return address >= first && address < first + shared_bytes(program_);
}

} // namespace trainc
