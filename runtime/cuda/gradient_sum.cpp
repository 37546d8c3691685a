// SPDX-License-Identifier: Apache-2.0
//
// The exchange of gradients through NCCL.
#include "runtime/cuda/gradient_sum.h"

#include "runtime/cuda/errors.h"
#include "runtime/cuda/flat_sum.h"
#include "runtime/cuda/launch.h"
#include "runtime/data_types.h"

#include <algorithm>
#include <cstring>
#include <nccl.h>
#include <thread>

namespace trainc {
namespace {

void check_nccl(ncclResult_t status, const char *operation) {
  if (status != ncclSuccess)
    throw failure(exit_machine,
                  format_text("%s: NCCL reports: %s\n  try: NCCL_DEBUG=WARN in the environment, "
                              "which shows why",
                              operation, ncclGetErrorString(status)));
}

ncclDataType_t nccl_type(data_type type) {
  return type == data_type::f64 ? ncclFloat64 : ncclFloat32;
}

} // namespace

gradient_sum::gradient_sum(communicator &ranks, data_type type, int64_t reduced_bytes,
                           int64_t micro_batches, int64_t largest_piece_bytes)
    : ranks_(ranks), type_(type), parts_(reduced_bytes / bytes_of(type), ranks.size()),
      piece_elements_(parts_.longest()), accumulates_(micro_batches > 1) {
  if (ranks.size() > 1)
    piece_elements_ = std::min(piece_elements_, largest_piece_bytes / bytes_of(type));
}

gradient_sum::~gradient_sum() {
  if (!others_)
    return;
  // Ranks that end in peace leave together; otherwise nobody may wait for the others.
  if (cudaStreamQuery(compute_stream()) == cudaSuccess)
    ncclCommDestroy(others_);
  else
    ncclCommAbort(others_);
}

int64_t gradient_sum::accumulator_bytes() const {
  return accumulates_ ? parts_.size(ranks_.rank()) * bytes_of(type_) : 0;
}

int64_t gradient_sum::exchange_bytes() const {
  return (ranks_.size() - 1) * piece_elements_ * bytes_of(type_);
}

void gradient_sum::start() {
  if (ranks_.size() == 1)
    return;
  ncclUniqueId id = {};
  ranks_.together([&] {
    if (ranks_.rank() == 0)
      check_nccl(ncclGetUniqueId(&id), "NCCL cannot start");
  });
  std::string bytes = ranks_.broadcast(std::string(id.internal, sizeof id.internal));
  memcpy(id.internal, bytes.data(), sizeof id.internal);
  ranks_.together([&] {
    check_nccl(ncclCommInitRank(&others_, ranks_.size(), id, ranks_.rank()), "NCCL cannot start");
  });
}

void gradient_sum::place(char *gradients, char *accumulator, char *received) {
  gradients_ = gradients;
  accumulator_ = accumulator;
  received_ = received;
}

char *gradient_sum::gradients_at(int rank, int64_t done) const {
  return gradients_ + (parts_.begin(rank) + done) * bytes_of(type_);
}

size_t gradient_sum::piece_size(int rank, int64_t done) const {
  return static_cast<size_t>(parts_.piece_size(rank, done, piece_elements_));
}

// Sends to each rank the piece of its part, and receives from each the piece of ours.
void gradient_sum::exchange_parts(int64_t done) {
  int self = ranks_.rank(), slot = 0;
  auto mine = piece_size(self, done);
  check_nccl(ncclGroupStart(), "exchange of gradients");
  for (int other = 0; other < ranks_.size(); ++other) {
    if (other == self)
      continue;
    char *from_other = received_ + slot++ * piece_elements_ * bytes_of(type_);
    auto theirs = piece_size(other, done);
    if (mine > 0)
      check_nccl(ncclRecv(from_other, mine, nccl_type(type_), other, others_, compute_stream()),
                 "exchange of gradients");
    if (theirs > 0)
      check_nccl(ncclSend(gradients_at(other, done), theirs, nccl_type(type_), other, others_,
                          compute_stream()),
                 "exchange of gradients");
  }
  check_nccl(ncclGroupEnd(), "exchange of gradients");
}

void gradient_sum::publish_totals(int64_t done) {
  int self = ranks_.rank();
  auto mine = piece_size(self, done);
  check_nccl(ncclGroupStart(), "exchange of gradient sums");
  for (int other = 0; other < ranks_.size(); ++other) {
    if (other == self)
      continue;
    auto theirs = piece_size(other, done);
    if (theirs > 0)
      check_nccl(ncclRecv(gradients_at(other, done), theirs, nccl_type(type_), other, others_,
                          compute_stream()),
                 "exchange of gradient sums");
    if (mine > 0)
      check_nccl(ncclSend(gradients_at(self, done), mine, nccl_type(type_), other, others_,
                          compute_stream()),
                 "exchange of gradient sums");
  }
  check_nccl(ncclGroupEnd(), "exchange of gradient sums");
}

void gradient_sum::queue(bool first, bool last) {
  int self = ranks_.rank(), size = ranks_.size();
  if (size == 1 && first && last)
    return;
  for (int64_t done = 0; done < parts_.longest(); done += piece_elements_) {
    if (size > 1)
      exchange_parts(done);
    char *own = gradients_at(self, done);
    char *accumulated = accumulator_ + done * bytes_of(type_);
    if (auto length = static_cast<int64_t>(piece_size(self, done)); length > 0)
      queue_flat_sum(type_,
                     {first ? nullptr : accumulated, own, received_, piece_elements_, self, size},
                     length, last ? own : accumulated);
    if (size > 1 && last)
      publish_totals(done);
  }
}

void gradient_sum::finish() const {
  if (!others_)
    return;
  bool running = true;
  while (running) {
    running = cudaStreamQuery(compute_stream()) == cudaErrorNotReady;
    ncclResult_t state = ncclSuccess;
    check_nccl(ncclCommGetAsyncError(others_, &state), "exchange of gradients");
    check_nccl(state, "exchange of gradients");
    if (running)
      std::this_thread::yield();
  }
}

} // namespace trainc
