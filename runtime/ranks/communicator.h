// SPDX-License-Identifier: Apache-2.0
//
// What ranks say to each other besides gradients: small messages gathered, errors
// agreed on.
#pragma once

#include "runtime/failure.h"
#include "runtime/program.h"

#include <functional>
#include <memory>
#include <string>

namespace trainc {

// A faster way for small messages than MPI's, where a target has one.
struct message_path {
  virtual ~message_path() = default;
  virtual void barrier() = 0;
  virtual void gather(const void *mine, int64_t size, void *all) = 0;
};

std::string host_name(); // of this machine
// For messages: "rank 1 (process 4711 on host)".
std::string rank_name(int rank, int process, const std::string &host = host_name());

class communicator {
public:
  // Joins the other ranks if a launcher started us, else is the only rank. Where it takes more than
  // `patience` seconds until the start is over, standard error says what it may wait for, and ten
  // times as many end the process with exit_stalled; 0: neither.
  explicit communicator(double patience = 0);
  // The only rank, even where a launcher started the process.
  static communicator alone() { return communicator(only_rank{}); }
  ~communicator();
  communicator(const communicator &) = delete;
  communicator &operator=(const communicator &) = delete;

  // The start is over: from now on others see who makes no progress.
  void end_start();
  // The work of all ranks is over, and there is nothing left to wait for: from now on the end, too,
  // has `patience` seconds. Collective.
  void begin_end();

  int rank() const { return rank_; }
  int size() const { return size_; }
  int rank_on_host() const { return rank_on_host_; }
  int ranks_on_host() const { return ranks_on_host_; }
  int first_on_host() const { return first_on_host_; } // the lowest rank of this host
  // Whether MPI can be called from several threads at a time.
  bool threads_may_send() const { return threads_may_send_; }

  // Runs `work` on every rank. If it throws anywhere, it throws everywhere: the lowest failing rank
  // keeps its message, the others throw an empty one. Where others have not failed, and it is not
  // plain which has, the message begins with the rank's name.
  void together(const std::function<void()> &work);
  // The text of rank `root`, on every rank.
  std::string broadcast(const std::string &text, int root = 0);

  // Ends every rank at once with this exit code, also those that wait. Returns only where there is
  // no other rank.
  void abort(int code);

  void barrier();
  // Concatenates `size` bytes of every rank in rank order.
  void gather(const void *mine, int64_t size, void *all);

  // To one other rank, which calls `receive` for them.
  void send(const void *data, int64_t size, int rank);
  void receive(void *data, int64_t size, int rank);

  // From now on barrier and gather go this way; null: through MPI again. Every
  // rank must do the same.
  void use(message_path *path) { path_ = path; }

private:
  struct only_rank {};
  explicit communicator(only_rank);
  class time_limit;
  std::unique_ptr<time_limit> start_;
  double patience_ = 0; // seconds
  bool ends_ = false;
  bool launched_ = false, threads_may_send_ = false;
  int rank_ = 0, size_ = 1, rank_on_host_ = 0, ranks_on_host_ = 1, first_on_host_ = 0;
  message_path *path_ = nullptr;
};

} // namespace trainc
