// SPDX-License-Identifier: Apache-2.0
//
// A bucket's gradients, side by side, are cut into one part for each rank, so that all of them add
// as much.
#include "runtime/cuda/gradient_shards.h"

#include "runtime/cuda/errors.h"
#include "runtime/cuda/launch.h"
#include "runtime/files/data_types.h"
#include "runtime/ranks/gradient_parts.h"

#include <algorithm>
#include <numeric>

namespace trainc {
namespace {

constexpr int64_t cut_elements = 1024;      // at which a gradient may be cut, as by gradient_parts
constexpr int64_t line_elements = 64;       // sums take 16 bytes at once
constexpr int64_t first_message_bytes = 16; // of the table

int64_t whole(int64_t elements, int64_t unit) { return (elements + unit - 1) / unit * unit; }

} // namespace

gradient_shards::gradient_shards(communicator &ranks, const program &program, int64_t micro_batches,
                                 accumulation how)
    : ranks_(ranks), type_(program.parameter_type), self_(ranks.rank()), count_(ranks.size()),
      elements_(program.summed_bytes / bytes_of(type_)), stride_(whole(elements_, line_elements)),
      rounds_(count_, micro_batches, how) {
  for (const gradient_bucket &bucket : program.buckets)
    cut(bucket);
  find_shares();
  for (int64_t j = 0; j < micro_batches; ++j) {
    std::vector<table_sum> &sums = sums_.emplace_back();
    for (const summation &sum : rounds_.round(j))
      sums.push_back(enter(sum));
  }
  table_.resize(std::max(table_.size(), first_message_bytes / sizeof(summand) + 1));
}

void gradient_shards::cut(const gradient_bucket &bucket) {
  std::vector<gradient_piece> pieces(bucket.begin(), bucket.end());
  std::sort(pieces.begin(), pieces.end(),
            [](const auto &a, const auto &b) { return a.elements.begin < b.elements.begin; });
  int64_t all = 0, before = 0;
  for (const gradient_piece &piece : pieces)
    all += piece.elements.end - piece.elements.begin;
  const gradient_parts parts(all, count_);
  std::vector<part> of_ranks(static_cast<size_t>(count_));
  std::vector<int64_t> received(static_cast<size_t>(count_));
  for (const gradient_piece &piece : pieces) {
    const int64_t size = piece.elements.end - piece.elements.begin;
    auto edge = [&](int64_t at) {
      return std::clamp<int64_t>(whole(at - before, cut_elements), 0, size);
    };
    for (int rank = 0; rank < count_; ++rank) {
      const int64_t begin = edge(parts.begin(rank)), end = edge(parts.end(rank));
      if (begin == end)
        continue;
      int64_t &place = received[static_cast<size_t>(rank)];
      of_ranks[static_cast<size_t>(rank)].push_back(
          {{piece.offset + begin * bytes_of(type_),
            {piece.elements.begin + begin, piece.elements.begin + end}},
           place});
      place += whole(end - begin, line_elements);
    }
    before += size;
  }
  received_stride_ = std::max(received_stride_, received[static_cast<size_t>(self_)]);
  parts_.push_back(std::move(of_ranks));
}

// What is between two gradients belongs to the first one.
void gradient_shards::find_shares() {
  std::vector<update_share> all;
  for (const std::vector<part> &of_ranks : parts_)
    for (int rank = 0; rank < count_; ++rank)
      for (const part_piece &each : of_ranks[static_cast<size_t>(rank)])
        all.push_back({each.piece.elements, 0, rank});
  std::sort(all.begin(), all.end(), [](const update_share &a, const update_share &b) {
    return a.range.begin < b.range.begin;
  });
  for (const update_share &each : all) {
    if (!shares_.empty() && shares_.back().replica == each.replica)
      continue;
    if (!shares_.empty())
      shares_.back().range.end = each.range.begin;
    shares_.push_back(each);
  }
  if (shares_.empty())
    return;
  shares_.front().range.begin = 0;
  shares_.back().range.end = elements_;
}

gradient_shards::table_sum gradient_shards::enter(const summation &sum) {
  table_sum entered = {table_.size(), static_cast<int>(sum.addends.size()), 0, count_ - 1,
                       sum.target};
  for (const addend &each : sum.addends) {
    if (each.accumulator != in_gradients) {
      table_.push_back({each.accumulator, each.additions, summand::of_accumulators});
      entered.accumulators = std::max(entered.accumulators, each.accumulator + 1);
    } else if (each.rank == self_) {
      table_.push_back({in_gradients, each.additions, summand::of_accumulators});
    } else {
      table_.push_back(
          {each.rank - (each.rank > self_ ? 1 : 0), each.additions, summand::of_received});
    }
  }
  return entered;
}

int64_t gradient_shards::accumulator_bytes() const {
  int64_t bytes = 0;
  for (const element_range &piece : accumulator_pieces())
    bytes += piece.end - piece.begin;
  return bytes;
}

int64_t gradient_shards::accumulator_addresses() const {
  return rounds_.accumulators() * stride_ * bytes_of(type_);
}

std::vector<element_range> gradient_shards::accumulator_pieces() const {
  const int64_t width = bytes_of(type_);
  std::vector<element_range> pieces;
  for (int accumulator = 0; accumulator < rounds_.accumulators(); ++accumulator)
    for (const update_share &each : shares_)
      if (each.replica == self_)
        pieces.push_back({(accumulator * stride_ + each.range.begin) * width,
                          (accumulator * stride_ + each.range.end) * width});
  return pieces;
}

int64_t gradient_shards::exchange_bytes() const {
  return (count_ - 1) * std::max(received_stride_ * bytes_of(type_), first_message_bytes);
}

int64_t gradient_shards::table_bytes() const {
  return static_cast<int64_t>(table_.size() * sizeof(summand));
}

void gradient_shards::start() {
  std::vector<int> all(static_cast<size_t>(count_));
  std::iota(all.begin(), all.end(), 0);
  group_.join(ranks_, all);
}

// What is between gradients stays zero.
void gradient_shards::place(char *activations, char *accumulators, char *received, char *table) {
  activations_ = activations;
  accumulators_ = accumulators;
  received_ = received;
  table_at_ = table;
  for (const element_range &piece : accumulator_pieces())
    check_cuda(cudaMemsetAsync(accumulators + piece.begin, 0,
                               static_cast<size_t>(piece.end - piece.begin), compute_stream()),
               "zeroing of memory");
  check_cuda(cudaMemcpyAsync(table, table_.data(), static_cast<size_t>(table_bytes()),
                             cudaMemcpyHostToDevice, compute_stream()),
             "copy of the order of sums");
  check_cuda(cudaStreamSynchronize(compute_stream()), "copy of the order of sums");
}

void gradient_shards::meet() {
  char *place = received_;
  check_nccl(ncclGroupStart(), "a first message");
  for (int other = 0; other < count_; ++other) {
    if (other == self_)
      continue;
    check_nccl(
        ncclRecv(place, first_message_bytes, ncclUint8, other, group_.get(), compute_stream()),
        "a first message");
    check_nccl(
        ncclSend(table_at_, first_message_bytes, ncclUint8, other, group_.get(), compute_stream()),
        "a first message");
    place += first_message_bytes;
  }
  check_nccl(ncclGroupEnd(), "a first message");
}

void gradient_shards::exchange(int bucket) {
  const std::vector<part> &parts = parts_[static_cast<size_t>(bucket)];
  char *place = received_;
  check_nccl(ncclGroupStart(), "exchange of gradients");
  for (int other = 0; other < count_; ++other) {
    if (other == self_)
      continue;
    for (const part_piece &mine : parts[static_cast<size_t>(self_)])
      check_nccl(ncclRecv(place + mine.received * bytes_of(type_),
                          static_cast<size_t>(mine.count()), nccl_type(type_), other, group_.get(),
                          compute_stream()),
                 "exchange of gradients");
    for (const part_piece &theirs : parts[static_cast<size_t>(other)])
      check_nccl(ncclSend(activations_ + theirs.piece.offset, static_cast<size_t>(theirs.count()),
                          nccl_type(type_), other, group_.get(), compute_stream()),
                 "exchange of gradients");
    place += received_stride_ * bytes_of(type_);
  }
  check_nccl(ncclGroupEnd(), "exchange of gradients");
}

void gradient_shards::add(int64_t micro_batch, const part_piece &piece) {
  const int64_t width = bytes_of(type_);
  char *accumulators = accumulators_ + piece.piece.elements.begin * width;
  const auto *table = reinterpret_cast<const summand *>(table_at_);
  for (const table_sum &sum : sums_[static_cast<size_t>(micro_batch)])
    queue_flat_sum(type_,
                   {activations_ + piece.piece.offset, accumulators, stride_,
                    received_ + piece.received * width, received_stride_},
                   {table + sum.first, sum.count, sum.accumulators, sum.received}, piece.count(),
                   accumulators + sum.target * stride_ * width);
}

void gradient_shards::queue(int64_t micro_batch, int bucket) {
  if (count_ > 1)
    exchange(bucket);
  for (const part_piece &mine : parts_[static_cast<size_t>(bucket)][static_cast<size_t>(self_)])
    add(micro_batch, mine);
}

void gradient_shards::gather(char *gradients) {
  const int64_t width = bytes_of(type_);
  if (count_ == 1) {
    check_cuda(cudaMemcpyAsync(gradients, accumulators_, static_cast<size_t>(elements_ * width),
                               cudaMemcpyDeviceToDevice, compute_stream()),
               "copy of the totals");
    return;
  }
  check_nccl(ncclGroupStart(), "totals of gradients");
  for (const update_share &each : shares_) {
    char *to = gradients + each.range.begin * width;
    const char *from = each.replica == self_ ? accumulators_ + each.range.begin * width : to;
    check_nccl(ncclBroadcast(from, to, static_cast<size_t>(each.range.end - each.range.begin),
                             nccl_type(type_), each.replica, group_.get(), compute_stream()),
               "totals of gradients");
  }
  check_nccl(ncclGroupEnd(), "totals of gradients");
}

void gradient_shards::share_updated(char *parameters, const update_shares &shares) {
  shares.send_updated(parameters, type_, group_, rank_group());
}

} // namespace trainc
