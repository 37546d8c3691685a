// SPDX-License-Identifier: Apache-2.0
//
// What ranks say to each other: gradients summed in a fixed order, small
// messages gathered, errors agreed on. Ranks of one host work in shared memory;
// ranks of several send messages. Both give the same bits.
#pragma once

#include "runtime/failure.h"
#include "runtime/program.h"

#include <functional>
#include <memory>
#include <string>

namespace trainc {

class arena_set;

enum class communication_kind { automatic, shared_memory, messages };

class communicator {
public:
  // Joins the other ranks if a launcher started us, else is the only rank.
  communicator();
  ~communicator();
  communicator(const communicator &) = delete;
  communicator &operator=(const communicator &) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int ranks_on_host() const { return ranks_on_host_; }
  bool uses_shared_memory() const { return size_ > 1 && transport_is_shared_; }

  // Runs `work` on every rank. If it throws anywhere, it throws everywhere: the
  // lowest failing rank keeps its message, the others throw an empty one.
  void together(const std::function<void()> &work);
  // The text of rank `root`, on every rank.
  std::string broadcast(const std::string &text, int root = 0);

  // Makes the gradients arena, in memory that other ranks of this host can see
  // where possible, and the room for gather. Collective, once, before the
  // functions below. The first `reduced_bytes` of the arena take part in sums.
  char *allocate_gradients(arena_set &arenas, data_type type, int64_t gradient_bytes,
                           int64_t reduced_bytes, int64_t gather_bytes, communication_kind kind);

  void barrier();
  // Concatenates `size` bytes (at most gather_bytes) of every rank in rank order.
  void gather(const void *mine, int64_t size, void *all);

  // Adds the gradients arenas of all ranks in rank order to `accumulator`, of
  // which each rank uses only its own part (null when there is one call per
  // step): micro-batch j of rank r is summand j * ranks + r. The last call of a
  // step leaves the total in the gradients arena of every rank.
  void sum_gradients(char *accumulator, bool first, bool last);

  // The reduced elements that this rank sums. The accumulator holds these alone,
  // but is addressed like the arena: by its element 0.
  int64_t own_begin() const { return own_begin_; }
  int64_t own_end() const { return own_end_; }

private:
  struct transport;
  struct shared_transport;
  struct message_transport;

  bool launched_ = false;
  int rank_ = 0, size_ = 1, ranks_on_host_ = 1;
  bool transport_is_shared_ = false;
  data_type type_ = data_type::f32;
  int64_t own_begin_ = 0, own_end_ = 0; // elements
  char *gradients_ = nullptr;
  std::unique_ptr<transport> transport_;
};

} // namespace trainc
