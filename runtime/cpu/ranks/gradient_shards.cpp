// SPDX-License-Identifier: Apache-2.0
//
// A rank's file: its activations; after those of the first rank the accumulators, all with the
// layout of the gradients arena. Each rank touches its parts of it.
#include "runtime/cpu/ranks/gradient_shards.h"

#include "runtime/files/data_types.h"
#include "runtime/ranks/gradient_parts.h"
#include "runtime/ranks/shared_memory.h"

#include <algorithm>

namespace trainc {
namespace {

int64_t gradient_bytes(const program &program) {
  return program.arena_bytes[static_cast<int>(arena_kind::gradients)];
}

} // namespace

gradient_shards::gradient_shards(communicator &ranks, arena_set &arenas, const program &program,
                                 const shard_request &request)
    : type_(program.parameter_type), arena_bytes_(gradient_bytes(program)), layout_(request.layout),
      rounds_(layout_.replicas, request.micro_batches, request.accumulated) {
  summands_.reserve(static_cast<size_t>(rounds_.accumulators()) +
                    static_cast<size_t>(layout_.replicas));
  const int64_t accumulators = rounds_.accumulators() * arena_bytes_;
  const int64_t own_bytes = request.activation_bytes[static_cast<size_t>(layout_.stage)];
  if (ranks.size() == 1) {
    activations_ = {arenas.allocate(own_bytes)};
    accumulators_ = arenas.allocate(accumulators);
    return;
  }
  std::vector<int64_t> bytes;
  bytes.reserve(static_cast<size_t>(ranks.size()));
  for (int rank = 0; rank < ranks.size(); ++rank)
    bytes.push_back(
        round_up(request.activation_bytes[static_cast<size_t>(rank % layout_.stages)], page_bytes) +
        (rank == 0 ? accumulators : 0));
  if (request.kind != communication_kind::messages)
    files_ = rank_files::open(ranks, "trainc-gradients", layout_, bytes, /*sparse=*/true);
  ranks.together([&] {
    if (!files_)
      throw failure(exit_machine,
                    "gradients of which no rank keeps all are exchanged in shared memory\n  try: "
                    "all ranks on one host, without --communication messages; or a program "
                    "compiled without --shard gradients");
    for (int replica = 0; replica < layout_.replicas; ++replica)
      activations_.push_back(files_->memory(layout_.rank_of(replica, layout_.stage)));
    accumulators_ = files_->memory(0) + round_up(request.activation_bytes[0], page_bytes);
    touch(activations(), own_bytes);
    touch_parts(program);
  });
}

// Of each gradient in a bucket the elements that this rank adds.
template <typename Visit>
void gradient_shards::for_each_part(const gradient_bucket &bucket, Visit visit) const {
  for (const gradient_piece &piece : bucket) {
    const gradient_parts parts(piece.elements.end - piece.elements.begin, layout_.replicas);
    const int64_t first = piece.elements.begin;
    visit(piece, first + parts.begin(layout_.replica), first + parts.end(layout_.replica));
  }
}

void gradient_shards::touch_parts(const program &program) {
  const int64_t width = bytes_of(type_);
  auto touch_buckets = [&](const bucket_list &buckets) {
    for (const gradient_bucket &bucket : buckets)
      for_each_part(bucket, [&](const gradient_piece &, int64_t begin, int64_t end) {
        for (int place = 0; place < rounds_.accumulators(); ++place)
          touch(accumulators_ + place * arena_bytes_ + begin * width, (end - begin) * width);
      });
  };
  if (!program.stages)
    return touch_buckets(program.buckets);
  program.stages->for_each_chunk(layout_.stage, [&](const chunk_program &chunk, int) {
    touch_buckets(chunk.buckets);
    touch_buckets(chunk.weight_buckets);
  });
}

void gradient_shards::begin(int64_t micro_batch, const bucket_list &buckets) {
  micro_batch_ = micro_batch;
  buckets_ = buckets;
}

void gradient_shards::complete(int bucket) {
  meet();
  const int64_t width = bytes_of(type_);
  for (const summation &sum : rounds_.round(micro_batch_))
    for_each_part(buckets_[bucket], [&](const gradient_piece &piece, int64_t begin, int64_t end) {
      summands_.clear();
      for (const addend &each : sum.addends)
        // Addressed so that each is found under its number in the gradients arena.
        summands_.push_back({each.accumulator == in_gradients
                                 ? activations_[static_cast<size_t>(each.rank)] + piece.offset -
                                       piece.elements.begin * width
                                 : accumulators_ + each.accumulator * arena_bytes_,
                             each.additions});
      char *target = accumulators_ + sum.target * arena_bytes_;
      sum_in_order(type_, summands_, &target, 1, begin, end);
    });
}

void gradient_shards::end() {
  if (!buckets_.empty())
    meet(); // the others have read the last bucket
  buckets_ = {};
}

} // namespace trainc
