// SPDX-License-Identifier: Apache-2.0
//
// Ranks of one host: each keeps its gradients arena and accumulators in memory that the others
// map, and owns one part of the elements. It sums that part over all ranks and writes the total
// into every arena in one pass, so an exchange reads and writes each byte once and copies nothing.
// Nor does a sum that waits for others move: the next micro-batch's gradients go elsewhere.
//
// Of a step in stages a rank has gradients of its stage's elements alone: the arena and the
// accumulators have one layout on all ranks, but pages only where the stage's elements lie. The
// ranks that have the same stage share its elements out; the total goes to one arena, which all
// read.
//
// Ranks of several hosts exchange pieces of their parts as messages, add them in the same order
// and send the totals back. Of a step in stages each of them then has the totals of its stage, and
// tells the other stages of its replica.
#include "runtime/cpu/ranks/gradient_sum.h"

#include "runtime/cpu/ranks/rank_files.h"
#include "runtime/cpu/ranks/shared_wait.h"
#include "runtime/files/data_types.h"
#include "runtime/process/clock.h"
#include "runtime/ranks/mpi.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace trainc {
namespace {

constexpr int64_t message_bytes = 1 << 20;
constexpr int64_t shared_elements = 1 << 24; // of a total, told to other stages at once

} // namespace

struct gradient_sum::transport {
  virtual ~transport() = default;
  virtual void exchange(gradient_sum &sum, std::initializer_list<range_list> lists) = 0;
  // Nothing where all ranks have one arena for the total.
  virtual void share_total(const element_range &, int /*stage*/, char * /*gradients*/) {}
  virtual std::unique_ptr<overlapped_exchange> overlapped(const gradient_sum &,
                                                          const bucket_list &) {
    throw failure(exit_machine, "option --exchange: gradients are exchanged beside the backward "
                                "pass in shared memory alone\n  try: --exchange behind");
  }
};

struct gradient_sum::shared_transport final : transport {
  explicit shared_transport(std::unique_ptr<rank_files> files) : files(std::move(files)) {}

  std::unique_ptr<rank_files> files;
  std::vector<char *> targets = {}; // of the exchange that is going on

  // What is added after a step's last micro-batch, and where the total goes.
  void find(const gradient_sum &sum, std::vector<summand> &summands, std::vector<char *> &to) {
    const stage_layout &layout = sum.layout_;
    summands.clear();
    for (const addend &each : sum.order_.exchange()) {
      const int holder = layout.rank_of(each.rank, layout.stage);
      summands.push_back(
          {sum.place_in(files->memory(holder), sum.last_places_[static_cast<size_t>(each.rank)],
                        each.accumulator),
           each.additions});
    }
    to.clear();
    for (int other = 0; other < (layout.stages > 1 ? 1 : layout.replicas); ++other)
      to.push_back(sum.place_in(files->memory(other), sum.last_places_[static_cast<size_t>(other)],
                                in_gradients));
  }

  std::unique_ptr<overlapped_exchange> overlapped(const gradient_sum &sum,
                                                  const bucket_list &buckets) override {
    step_sum of_step = {sum.type_, {}, {}};
    find(sum, of_step.summands, of_step.targets);
    return std::make_unique<overlapped_exchange>(*files, sum.layout_, buckets, std::move(of_step));
  }

  void exchange(gradient_sum &sum, std::initializer_list<range_list> lists) override {
    const stage_layout &layout = sum.layout_;
    files->meet_replicas();
    find(sum, sum.summands_, targets);
    for (const range_list &ranges : lists)
      for (const element_range &range : ranges) {
        const gradient_parts parts(range.end - range.begin, layout.replicas);
        sum_in_order(sum.type_, sum.summands_, targets.data(), static_cast<int>(targets.size()),
                     range.begin + parts.begin(layout.replica),
                     range.begin + parts.end(layout.replica));
      }
    if (layout.stages == 1)
      files->barrier();
  }
};

struct gradient_sum::message_transport final : transport {
  message_transport(const stage_layout &layout, int64_t element_bytes)
      : layout(layout), element_bytes(element_bytes) {
    if (layout.stages > 1)
      mpi_call(MPI_Comm_split)(MPI_COMM_WORLD, layout.replica, layout.stage, &replica_stages);
  }

  stage_layout layout;
  int64_t element_bytes;
  MPI_Comm replica_stages = MPI_COMM_NULL; // ranks of a replica, by stage
  std::vector<char> pieces = {}; // one for each sum of another rank, in the order of the exchange
  std::vector<MPI_Request> requests = {};

  // Elements that the replicas share out, and how much of each part is done.
  struct round {
    int64_t first;
    gradient_parts parts;
    int64_t done;
  };
  int64_t piece_length(const round &now, int part) const {
    return now.parts.piece_size(part, now.done, message_bytes / element_bytes);
  }
  static int64_t piece_begin(const round &now, int part) {
    return now.first + now.parts.begin(part) + now.done;
  }
  int rank_of(int replica) const { return layout.rank_of(replica, layout.stage); }

  // Sends to each replica the piece of its part of our sums, and receives from each the piece of
  // our part of its sums.
  void scatter(const gradient_sum &sum, const round &now) {
    const int self = layout.replica;
    int used = 0, tag = 0;
    int64_t mine = piece_length(now, self);
    char *piece = pieces.data();
    for (const addend &each : sum.order_.exchange()) {
      ++tag; // other than `publish` has
      if (each.rank != self && mine > 0)
        mpi_call(MPI_Irecv)(piece, static_cast<int>(mine * element_bytes), MPI_BYTE,
                            rank_of(each.rank), tag, MPI_COMM_WORLD,
                            &requests[static_cast<size_t>(used++)]);
      piece += each.rank != self ? message_bytes : 0;
      const char *place = sum.own_place(each.accumulator);
      for (int other = 0; other < layout.replicas && each.rank == self; ++other)
        if (int64_t length = piece_length(now, other); other != self && length > 0)
          mpi_call(MPI_Isend)(place + piece_begin(now, other) * element_bytes,
                              static_cast<int>(length * element_bytes), MPI_BYTE, rank_of(other),
                              tag, MPI_COMM_WORLD, &requests[static_cast<size_t>(used++)]);
    }
    mpi_call(MPI_Waitall)(used, requests.data(), MPI_STATUSES_IGNORE);
  }

  void publish(char *gradients, const round &now) {
    const int self = layout.replica;
    int used = 0;
    auto piece = [&](int part) { return gradients + piece_begin(now, part) * element_bytes; };
    for (int other = 0; other < layout.replicas; ++other)
      if (int64_t length = piece_length(now, other); other != self && length > 0)
        mpi_call(MPI_Irecv)(piece(other), static_cast<int>(length * element_bytes), MPI_BYTE,
                            rank_of(other), 0, MPI_COMM_WORLD,
                            &requests[static_cast<size_t>(used++)]);
    int64_t mine = piece_length(now, self);
    for (int other = 0; other < layout.replicas; ++other)
      if (other != self && mine > 0)
        mpi_call(MPI_Isend)(piece(self), static_cast<int>(mine * element_bytes), MPI_BYTE,
                            rank_of(other), 0, MPI_COMM_WORLD,
                            &requests[static_cast<size_t>(used++)]);
    mpi_call(MPI_Waitall)(used, requests.data(), MPI_STATUSES_IGNORE);
  }

  void exchange(gradient_sum &sum, const element_range &range) {
    round now = {range.begin, {range.end - range.begin, layout.replicas}, 0};
    for (; now.done < now.parts.longest(); now.done += message_bytes / element_bytes) {
      scatter(sum, now);
      const int64_t length = piece_length(now, layout.replica),
                    begin = piece_begin(now, layout.replica);
      // Addressed so that element `begin` of every summand is its first received one.
      const char *piece = pieces.data() - begin * element_bytes;
      sum.summands_.clear();
      for (const addend &each : sum.order_.exchange()) {
        const bool is_own = each.rank == layout.replica;
        sum.summands_.push_back({is_own ? sum.own_place(each.accumulator) : piece, each.additions});
        piece += is_own ? 0 : message_bytes;
      }
      sum_in_order(sum.type_, sum.summands_, &sum.gradients_, 1, begin, begin + length);
      publish(sum.gradients_, now);
    }
  }

  void exchange(gradient_sum &sum, std::initializer_list<range_list> lists) override {
    if (layout.replicas == 1)
      return;
    for (const range_list &ranges : lists)
      for (const element_range &range : ranges)
        exchange(sum, range);
  }

  void share_total(const element_range &range, int stage, char *gradients) override {
    for (int64_t begin = range.begin; begin < range.end; begin += shared_elements) {
      const int64_t length = std::min(range.end - begin, shared_elements);
      mpi_call(MPI_Bcast)(gradients + begin * element_bytes,
                          static_cast<int>(length * element_bytes), MPI_BYTE, stage,
                          replica_stages);
    }
  }
};

gradient_sum::gradient_sum(communicator &ranks, arena_set &arenas, const gradient_request &request)
    : type_(request.type), arena_bytes_(request.arena_bytes),
      elements_(request.reduced_bytes / bytes_of(request.type)),
      micro_batches_(request.micro_batches),
      order_(request.layout.replica, request.layout.replicas, request.micro_batches,
             exchanged_sums::nodes, request.accumulated),
      layout_(request.layout), ranges_(request.ranges) {
  if (layout_.stages == 1)
    ranges_ = {{0, elements_}};
  if (ranks.size() > 1 && share_memory(ranks, request))
    // Who reads other ranks' memory reads all that their sum needs once, and writes none of it.
    order_ = {layout_.replica, layout_.replicas, micro_batches_, exchanged_sums::unadded,
              request.accumulated};
  const auto size = static_cast<size_t>(ranks.size());
  const size_t sums = order_.exchange().size();
  summands_.reserve(std::max(sums, static_cast<size_t>(order_.accumulators()) + 1));
  if (ranks.size() > 1 && !shares_memory_) {
    if (request.kind == communication_kind::shared_memory)
      throw failure(exit_machine,
                    "ranks do not share memory: they run on several hosts or in several "
                    "containers\n  try: --communication messages");
    auto messages = std::make_unique<message_transport>(layout_, bytes_of(type_));
    messages->pieces.resize(sums * message_bytes);
    messages->requests.resize(sums * size);
    transport_ = std::move(messages);
  }
  ranks.together([&] {
    if (!memory_)
      memory_ =
          layout_.stages > 1 ? arenas.reserve(memory_bytes()) : arenas.allocate(memory_bytes());
    if (layout_.stages > 1)
      touch_own();
  });
  for (int replica = 0; replica < layout_.replicas; ++replica)
    last_places_.push_back(places_of(
        {replica, layout_.replicas, micro_batches_, exchanged_sums::nodes, request.accumulated}));
  begin_step();
  if (!total_)
    total_ = gradients_;
  ranks.together([&] {
    const bool overlaps = request.must_overlap || shares_memory_;
    if (!request.buckets.empty() && transport_ && overlaps)
      overlapped_ = transport_->overlapped(*this, request.buckets);
  });
}

// Of a step in stages every place keeps its arena: chunks are at different micro-batches.
gradient_sum::places gradient_sum::places_of(const summation_order &order) const {
  places found(static_cast<size_t>(order.accumulators()) + 1);
  std::iota(found.begin(), found.end(), 0);
  for (int64_t j = 0; j < micro_batches_ && layout_.stages == 1; ++j)
    if (order.own(j).only_waits())
      std::swap(found[0], found[static_cast<size_t>(order.own(j).target) + 1]);
  return found;
}

void gradient_sum::begin_step() {
  places_.resize(static_cast<size_t>(order_.accumulators()) + 1);
  std::iota(places_.begin(), places_.end(), 0);
  gradients_ = own_place(in_gradients);
}

int64_t gradient_sum::memory_bytes() const { return (1 + order_.accumulators()) * arena_bytes_; }

gradient_sum::~gradient_sum() = default;

bool gradient_sum::share_memory(communicator &ranks, const gradient_request &request) {
  if (request.kind == communication_kind::messages)
    return false;
  auto files =
      rank_files::open(ranks, "trainc-gradients", layout_,
                       std::vector<int64_t>(static_cast<size_t>(ranks.size()), memory_bytes()),
                       /*sparse=*/layout_.stages > 1);
  if (!files)
    return false;
  memory_ = files->memory(ranks.rank());
  if (layout_.stages > 1)
    total_ = files->memory(0);
  transport_ = std::make_unique<shared_transport>(std::move(files));
  return shares_memory_ = true;
}

// Of a step in stages: pages where the stage's elements lie, and the total, where it is each rank's
// own.
void gradient_sum::touch_own() {
  if (!shares_memory_)
    touch(memory_, arena_bytes_);
  for (int place = shares_memory_ ? 0 : 1; place <= order_.accumulators(); ++place)
    for (const element_range &range : ranges_)
      touch(memory_ + place * arena_bytes_ + range.begin * bytes_of(type_),
            (range.end - range.begin) * bytes_of(type_));
}

void gradient_sum::add(int64_t micro_batch, range_list ranges) {
  if (const summation &own = order_.own(micro_batch); own.moves()) {
    summands_.clear();
    for (const addend &each : own.addends)
      summands_.push_back({own_place(each.accumulator), each.additions});
    char *target = own_place(own.target);
    for (const element_range &range : ranges)
      sum_in_order(type_, summands_, &target, 1, range.begin, range.end);
  }
}

void gradient_sum::add(int64_t micro_batch) {
  const summation &own = order_.own(micro_batch);
  if (!own.only_waits())
    return add(micro_batch, all());
  std::swap(places_[0], places_[static_cast<size_t>(own.target) + 1]);
  gradients_ = own_place(in_gradients);
}

gradient_exchange *gradient_sum::begin(int64_t micro_batch) {
  if (!overlapped_ || micro_batch != micro_batches_ - 1)
    return nullptr;
  overlapped_->begin();
  return overlapped_.get();
}

void gradient_sum::exchange() {
  const double began = seconds_now(), waited = seconds_waited();
  if (overlapped_)
    times_ = overlapped_->finish();
  else if (transport_) {
    transport_->exchange(*this, {all()});
    times_ = {.begin = began, .end = seconds_now()};
    times_.exposed = times_.end - began;
    times_.adding = times_.exposed - (seconds_waited() - waited);
  }
  total_ = gradients_;
  begin_step();
}

void gradient_sum::exchange(std::initializer_list<range_list> lists) {
  if (transport_)
    transport_->exchange(*this, lists);
}

void gradient_sum::share_totals(const pipeline &stages) {
  for (int stage = 0; stage < layout_.stages && transport_; ++stage)
    stages.for_each_chunk(stage, [&](const chunk_program &chunk, int) {
      for (const range_list &list : {chunk.gradients, chunk.weight_gradients})
        for (const element_range &range : list)
          transport_->share_total(range, stage, gradients_);
    });
}

} // namespace trainc
