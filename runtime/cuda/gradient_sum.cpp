// SPDX-License-Identifier: Apache-2.0
//
// The exchange of gradients through NCCL.
#include "runtime/cuda/gradient_sum.h"

#include "runtime/cuda/errors.h"
#include "runtime/cuda/launch.h"
#include "runtime/data_types.h"
#include "runtime/signs_of_life.h"

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

constexpr int64_t accumulator_alignment = 64; // elements; sums take 16 bytes at once

ncclDataType_t nccl_type(data_type type) {
  return type == data_type::f64 ? ncclFloat64 : ncclFloat32;
}

} // namespace

gradient_sum::gradient_sum(communicator &ranks, data_type type, int64_t reduced_bytes,
                           int64_t micro_batches, int64_t largest_piece_bytes)
    : ranks_(ranks), type_(type), elements_(reduced_bytes / bytes_of(type)),
      stride_((elements_ + accumulator_alignment - 1) / accumulator_alignment *
              accumulator_alignment),
      parts_(elements_, ranks.size()),
      order_(ranks.rank(), ranks.size(), micro_batches, exchanged_sums::nodes),
      piece_elements_(std::min(parts_.longest(), largest_piece_bytes / bytes_of(type))) {
  for (int64_t j = 0; j < micro_batches; ++j)
    own_.push_back(enter(order_.own(j).addends));
  exchange_ = enter(order_.exchange());
}

gradient_sum::table_part gradient_sum::enter(const std::vector<addend> &addends) {
  table_part part = {table_.size(), static_cast<int>(addends.size()), 0, 0};
  for (const addend &each : addends) {
    const bool is_own = each.rank == ranks_.rank();
    table_.push_back({is_own ? each.accumulator : part.received++, each.additions,
                      is_own ? summand::of_accumulators : summand::of_received});
    if (is_own)
      part.accumulators = std::max(part.accumulators, each.accumulator + 1);
  }
  return part;
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
  return order_.accumulators() * stride_ * bytes_of(type_);
}

int64_t gradient_sum::exchange_bytes() const {
  return exchange_.received * piece_elements_ * bytes_of(type_);
}

int64_t gradient_sum::table_bytes() const {
  return static_cast<int64_t>(table_.size() * sizeof(summand));
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
    waiting_for_ranks wait;
    check_nccl(ncclCommInitRank(&others_, ranks_.size(), id, ranks_.rank()), "NCCL cannot start");
  });
}

void gradient_sum::place(char *gradients, char *accumulators, char *received, char *table) {
  gradients_ = gradients;
  accumulators_ = accumulators;
  received_ = received;
  table_on_device_ = reinterpret_cast<const summand *>(table);
  check_cuda(cudaMemcpyAsync(table, table_.data(), static_cast<size_t>(table_bytes()),
                             cudaMemcpyHostToDevice, compute_stream()),
             "copy of the order of sums");
  check_cuda(cudaStreamSynchronize(compute_stream()), "copy of the order of sums");
}

char *gradient_sum::place_of(int accumulator, int rank, int64_t done) const {
  char *base = accumulator == in_gradients
                   ? gradients_
                   : accumulators_ + accumulator * stride_ * bytes_of(type_);
  return base + (parts_.begin(rank) + done) * bytes_of(type_);
}

size_t gradient_sum::piece_size(int rank, int64_t done) const {
  return static_cast<size_t>(parts_.piece_size(rank, done, piece_elements_));
}

// Sends to each rank the piece of its part of our sums, and receives from each the piece of ours.
void gradient_sum::exchange_parts(int64_t done) {
  int self = ranks_.rank();
  auto mine = piece_size(self, done);
  char *from_other = received_;
  check_nccl(ncclGroupStart(), "exchange of gradients");
  for (const addend &each : order_.exchange()) {
    if (each.rank != self) {
      if (mine > 0)
        check_nccl(
            ncclRecv(from_other, mine, nccl_type(type_), each.rank, others_, compute_stream()),
            "exchange of gradients");
      from_other += piece_elements_ * bytes_of(type_);
      continue;
    }
    for (int other = 0; other < ranks_.size(); ++other)
      if (auto theirs = piece_size(other, done); other != self && theirs > 0)
        check_nccl(ncclSend(place_of(each.accumulator, other, done), theirs, nccl_type(type_),
                            other, others_, compute_stream()),
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
      check_nccl(ncclRecv(place_of(in_gradients, other, done), theirs, nccl_type(type_), other,
                          others_, compute_stream()),
                 "exchange of gradient sums");
    if (mine > 0)
      check_nccl(ncclSend(place_of(in_gradients, self, done), mine, nccl_type(type_), other,
                          others_, compute_stream()),
                 "exchange of gradient sums");
  }
  check_nccl(ncclGroupEnd(), "exchange of gradient sums");
}

// Adds `length` elements from element `offset` of the arenas on; those of other ranks begin there.
void gradient_sum::queue_sum(const table_part &part, int64_t offset, int64_t length, char *target) {
  const int64_t bytes = offset * bytes_of(type_);
  queue_flat_sum(type_,
                 {gradients_ + bytes, accumulators_ + bytes, stride_, received_, piece_elements_},
                 {table_on_device_ + part.first, part.count, part.accumulators, part.received},
                 length, target);
}

void gradient_sum::queue(int64_t micro_batch) {
  const auto j = static_cast<size_t>(micro_batch);
  if (const summation &own = order_.own(micro_batch); own.moves())
    queue_sum(own_[j], 0, elements_, place_of(own.target, 0, 0));
  if (ranks_.size() == 1 || j != own_.size() - 1)
    return;
  const int self = ranks_.rank();
  for (int64_t done = 0; done < parts_.longest(); done += piece_elements_) {
    exchange_parts(done);
    if (auto length = static_cast<int64_t>(piece_size(self, done)); length > 0)
      queue_sum(exchange_, parts_.begin(self) + done, length, place_of(in_gradients, self, done));
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
