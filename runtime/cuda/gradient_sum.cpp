// SPDX-License-Identifier: Apache-2.0
//
// The exchange of gradients through NCCL.
#include "runtime/cuda/gradient_sum.h"

#include "runtime/cuda/errors.h"
#include "runtime/cuda/launch.h"
#include "runtime/files/data_types.h"

#include <algorithm>

namespace trainc {
namespace {

constexpr int64_t accumulator_alignment = 64; // elements; sums take 16 bytes at once

} // namespace

gradient_sum::gradient_sum(communicator &ranks, const stage_layout &layout, data_type type,
                           int64_t reduced_bytes, int64_t micro_batches, accumulation how,
                           const pipeline *stages, int64_t largest_piece_bytes)
    : ranks_(ranks), layout_(layout), type_(type), elements_(reduced_bytes / bytes_of(type)),
      stride_((elements_ + accumulator_alignment - 1) / accumulator_alignment *
              accumulator_alignment),
      order_(layout.replica, layout.replicas, micro_batches, exchanged_sums::nodes, how),
      piece_elements_(std::min(gradient_parts(elements_, layout.replicas).longest(),
                               largest_piece_bytes / bytes_of(type))) {
  for (int64_t j = 0; j < micro_batches; ++j)
    own_.push_back(enter(order_.own(j).addends));
  exchange_ = enter(order_.exchange());
  if (!stages)
    ranges_ = {{0, stride_}};
  else
    stages->for_each_chunk(layout.stage, [&](const chunk_program &chunk, int) {
      for (const range_list &list : {chunk.gradients, chunk.weight_gradients})
        ranges_.insert(ranges_.end(), list.begin(), list.end());
    });
}

gradient_sum::table_part gradient_sum::enter(const std::vector<addend> &addends) {
  table_part part = {table_.size(), static_cast<int>(addends.size()), 0, 0};
  for (const addend &each : addends) {
    const bool is_own = each.rank == layout_.replica;
    table_.push_back({is_own ? each.accumulator : part.received++, each.additions,
                      is_own ? summand::of_accumulators : summand::of_received});
    if (is_own)
      part.accumulators = std::max(part.accumulators, each.accumulator + 1);
  }
  return part;
}

int64_t gradient_sum::accumulator_bytes() const {
  int64_t bytes = 0;
  for (const element_range &piece : accumulator_pieces())
    bytes += piece.end - piece.begin;
  return bytes;
}

int64_t gradient_sum::accumulator_addresses() const {
  return order_.accumulators() * stride_ * bytes_of(type_);
}

std::vector<element_range> gradient_sum::accumulator_pieces() const {
  std::vector<element_range> pieces;
  for (int accumulator = 0; accumulator < order_.accumulators(); ++accumulator)
    for (const element_range &range : ranges_) {
      const int64_t first = accumulator * stride_;
      pieces.push_back(
          {(first + range.begin) * bytes_of(type_), (first + range.end) * bytes_of(type_)});
    }
  return pieces;
}

int64_t gradient_sum::exchange_bytes() const {
  return exchange_.received * piece_elements_ * bytes_of(type_);
}

int64_t gradient_sum::table_bytes() const {
  return static_cast<int64_t>(table_.size() * sizeof(summand));
}

void gradient_sum::start() {
  std::vector<int> alike(static_cast<size_t>(layout_.replicas));
  for (int stage = 0; stage < layout_.stages; ++stage) {
    for (int replica = 0; replica < layout_.replicas; ++replica)
      alike[static_cast<size_t>(replica)] = layout_.rank_of(replica, stage);
    replicas_.join(ranks_, alike);
  }
  std::vector<int> whole(static_cast<size_t>(layout_.stages));
  for (int replica = 0; replica < layout_.replicas; ++replica) {
    for (int stage = 0; stage < layout_.stages; ++stage)
      whole[static_cast<size_t>(stage)] = layout_.rank_of(replica, stage);
    stages_.join(ranks_, whole);
  }
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

char *gradient_sum::place_of(int accumulator, int64_t element) const {
  char *base = accumulator == in_gradients
                   ? gradients_
                   : accumulators_ + accumulator * stride_ * bytes_of(type_);
  return base + element * bytes_of(type_);
}

int64_t gradient_sum::begin_of(const parted_range &range, int replica) const {
  return range.first + range.parts.begin(replica) + range.done;
}

size_t gradient_sum::piece_size(const parted_range &range, int replica) const {
  return static_cast<size_t>(range.parts.piece_size(replica, range.done, piece_elements_));
}

// Sends to each replica the piece of its part of our sums, and receives from each the piece of
// ours.
void gradient_sum::exchange_parts(const parted_range &range) {
  const int self = layout_.replica;
  const size_t mine = piece_size(range, self);
  char *from_other = received_;
  check_nccl(ncclGroupStart(), "exchange of gradients");
  for (const addend &each : order_.exchange()) {
    if (each.rank != self) {
      if (mine > 0)
        check_nccl(ncclRecv(from_other, mine, nccl_type(type_), each.rank, replicas_.get(),
                            compute_stream()),
                   "exchange of gradients");
      from_other += piece_elements_ * bytes_of(type_);
      continue;
    }
    for (int other = 0; other < layout_.replicas; ++other)
      if (const size_t theirs = piece_size(range, other); other != self && theirs > 0)
        check_nccl(ncclSend(place_of(each.accumulator, begin_of(range, other)), theirs,
                            nccl_type(type_), other, replicas_.get(), compute_stream()),
                   "exchange of gradients");
  }
  check_nccl(ncclGroupEnd(), "exchange of gradients");
}

void gradient_sum::publish_totals(const parted_range &range) {
  const int self = layout_.replica;
  const size_t mine = piece_size(range, self);
  check_nccl(ncclGroupStart(), "exchange of gradient sums");
  for (int other = 0; other < layout_.replicas; ++other) {
    if (other == self)
      continue;
    const size_t theirs = piece_size(range, other);
    if (theirs > 0)
      check_nccl(ncclRecv(place_of(in_gradients, begin_of(range, other)), theirs, nccl_type(type_),
                          other, replicas_.get(), compute_stream()),
                 "exchange of gradient sums");
    if (mine > 0)
      check_nccl(ncclSend(place_of(in_gradients, begin_of(range, self)), mine, nccl_type(type_),
                          other, replicas_.get(), compute_stream()),
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

void gradient_sum::add(int64_t micro_batch, const element_range &range) {
  if (const summation &own = order_.own(micro_batch); own.moves())
    queue_sum(own_[static_cast<size_t>(micro_batch)], range.begin, range.end - range.begin,
              place_of(own.target, range.begin));
}

void gradient_sum::exchange(const element_range &range) {
  if (layout_.replicas == 1)
    return;
  const int self = layout_.replica;
  parted_range piece = {range.begin, {range.end - range.begin, layout_.replicas}, 0};
  for (; piece.done < piece.parts.longest(); piece.done += piece_elements_) {
    exchange_parts(piece);
    if (auto length = static_cast<int64_t>(piece_size(piece, self)); length > 0)
      queue_sum(exchange_, begin_of(piece, self), length,
                place_of(in_gradients, begin_of(piece, self)));
    publish_totals(piece);
  }
}

void gradient_sum::queue(int64_t micro_batch) {
  const element_range all = {0, elements_};
  add(micro_batch, all);
  if (micro_batch == static_cast<int64_t>(own_.size()) - 1)
    exchange(all);
}

void gradient_sum::queue_last(const gradient_bucket &bucket) {
  for (const gradient_piece &piece : bucket) {
    add(static_cast<int64_t>(own_.size()) - 1, piece.elements);
    exchange(piece.elements);
  }
}

void gradient_sum::add(int64_t micro_batch, const range_list &list) {
  for (const element_range &range : list)
    add(micro_batch, range);
}

void gradient_sum::exchange(std::initializer_list<range_list> lists) {
  for (const range_list &list : lists)
    for (const element_range &range : list)
      exchange(range);
}

void gradient_sum::share_totals(const pipeline &stages) {
  if (!stages_.get())
    return;
  check_nccl(ncclGroupStart(), "totals of other stages");
  for (int stage = 0; stage < layout_.stages; ++stage)
    stages.for_each_chunk(stage, [&](const chunk_program &chunk, int) {
      for (const range_list &list : {chunk.gradients, chunk.weight_gradients})
        for (const element_range &range : list) {
          char *place = place_of(in_gradients, range.begin);
          check_nccl(ncclBroadcast(place, place, static_cast<size_t>(range.end - range.begin),
                                   nccl_type(type_), stage, stages_.get(), compute_stream()),
                     "totals of other stages");
        }
    });
  check_nccl(ncclGroupEnd(), "totals of other stages");
}

void gradient_sum::share_updated(char *parameters, const update_shares &shares) {
  shares.send_updated(parameters, type_, replicas_, stages_);
}

void gradient_sum::check() const {
  replicas_.check();
  stages_.check();
}

void gradient_sum::abandon() {
  replicas_.abandon();
  stages_.abandon();
}

} // namespace trainc
