// SPDX-License-Identifier: Apache-2.0
//
// A place has a number for the fault in its first bytes, then the tensors of the message, whole.
#include "runtime/cuda/stage_memory.h"

#include "runtime/cuda/errors.h"
#include "runtime/cuda/launch.h"
#include "runtime/cuda/scalars.h"

#include <algorithm>

namespace trainc {

struct stage_memory::channel {
  struct place {
    event filled; // there is something to send, or what was received may be taken
    event free;   // what it had is on its way or was taken
  };

  channel(int sender, int receiver, std::span<const crossing_tensor> tensors, int place_count)
      : members{sender, receiver}, tensors(tensors), places(static_cast<size_t>(place_count)) {
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
  }
  ~channel() { cudaStreamDestroy(stream); }

  bool is_within_rank() const { return members[0] == members[1]; }
  int other(int rank) const;

  int members[2]; // ranks: sender and receiver
  std::span<const crossing_tensor> tensors;
  std::vector<place> places;
  cudaStream_t stream = nullptr;
  rank_group group;
  int64_t offset = 0, place_bytes = 0;
};

namespace {

constexpr int64_t line_bytes = 256; // at which regions begin
constexpr int most_channels = 28;   // streams that CUDA_DEVICE_MAX_CONNECTIONS leaves for messages

int64_t whole_lines(int64_t bytes) { return (bytes + line_bytes - 1) / line_bytes * line_bytes; }

void copy(char *to, const char *from, int64_t bytes) {
  check_cuda(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice,
                             compute_stream()),
             "copy of a message");
}

void wait_for(cudaStream_t stream, const event &event) {
  check_cuda(cudaStreamWaitEvent(stream, event, 0), "order of messages");
}

void record(const event &event, cudaStream_t stream) {
  check_cuda(cudaEventRecord(event, stream), "order of messages");
}

} // namespace

stage_memory::stage_memory(communicator &ranks, const program &program)
    : ranks_(ranks), pipeline_(*program.stages), layout_(program, ranks.rank(), ranks.size()),
      stashes_(pipeline_.chunks.size(), -1) {
  auto region = [&](int64_t bytes) {
    const int64_t begin = bytes_;
    bytes_ += whole_lines(bytes);
    return begin;
  };
  faults_ = region(pipeline_.micro_batches * static_cast<int64_t>(sizeof(double)));
  pipeline_.for_each_chunk(layout_.stage, [&](const chunk_program &chunk, int number) {
    stashes_[static_cast<size_t>(number)] = region(chunk.slots * chunk.slot_bytes);
  });
  auto open = [&](int from, int to, std::span<const crossing_tensor> tensors, int places) {
    auto &added = channels_.emplace_back();
    const int sender = pipeline_.stage_of(from), receiver = pipeline_.stage_of(to);
    if (layout_.stage != sender && layout_.stage != receiver)
      return;
    added = std::make_unique<channel>(layout_.rank_of(layout_.replica, sender),
                                      layout_.rank_of(layout_.replica, receiver), tensors, places);
    added->place_bytes = line_bytes;
    for (const crossing_tensor &tensor : tensors)
      added->place_bytes += whole_lines(tensor.bytes);
    added->offset = region(places * added->place_bytes);
  };
  for (const chunk_boundary &each : pipeline_.boundaries) {
    open(each.from, each.to, each.activations, each.activation_places);
    open(each.to, each.from, each.gradients, each.gradient_places);
  }
}

stage_memory::~stage_memory() = default;

int64_t stage_memory::device_bytes() const { return bytes_; }

void stage_memory::place(char *memory) {
  memory_ = memory;
  check_cuda(cudaMemsetAsync(memory, 0, static_cast<size_t>(bytes_), compute_stream()),
             "zeroing of memory");
}

// Of two ranks: NCCL's number of the other one.
int stage_memory::channel::other(int rank) const {
  const int lower = std::min(members[0], members[1]);
  return rank == lower ? 1 : 0;
}

// The first message of a group makes its ranks wait for each other on the host, so it must not be
// one of a step, in whose order ranks could wait in a circle.
void stage_memory::send_once(const channel &own) const {
  char *line = nullptr;
  check_cuda(cudaMalloc(reinterpret_cast<void **>(&line), line_bytes), "a first message");
  check_cuda(cudaMemsetAsync(line, 0, line_bytes, own.stream), "a first message");
  const int other = own.other(ranks_.rank());
  check_nccl(ranks_.rank() == own.members[0]
                 ? ncclSend(line, line_bytes, ncclUint8, other, own.group.get(), own.stream)
                 : ncclRecv(line, line_bytes, ncclUint8, other, own.group.get(), own.stream),
             "a first message");
  check_cuda(cudaStreamSynchronize(own.stream), "a first message");
  check_cuda(cudaFree(line), "a first message");
}

// Every rank takes part in the meeting of each two, in one order.
void stage_memory::start() {
  ranks_.together([&] {
    const auto streams = std::count_if(channels_.begin(), channels_.end(), [](const auto &each) {
      return each && !each->is_within_rank();
    });
    if (streams > most_channels)
      throw failure(exit_usage,
                    format_text("a rank of stage %d exchanges %d kinds of messages with others, of "
                                "which a device keeps %d apart\n  try: other cuts, or fewer "
                                "--chunks-per-stage",
                                layout_.stage, static_cast<int>(streams), most_channels));
  });
  for (int replica = 0; replica < layout_.replicas; ++replica)
    for (size_t i = 0; i < pipeline_.boundaries.size(); ++i)
      for (const bool of_gradients : {false, true}) {
        const chunk_boundary &boundary = pipeline_.boundaries[i];
        std::vector<int> members = {layout_.rank_of(replica, pipeline_.stage_of(boundary.from)),
                                    layout_.rank_of(replica, pipeline_.stage_of(boundary.to))};
        if (members[0] == members[1])
          continue;
        if (members[0] > members[1])
          std::swap(members[0], members[1]);
        channel *own =
            replica == layout_.replica ? channels_[2 * i + (of_gradients ? 1 : 0)].get() : nullptr;
        rank_group others; // which this rank only helps to meet
        (own ? own->group : others).join(ranks_, members);
        ranks_.together([&] {
          if (own)
            send_once(*own);
        });
      }
}

char *stage_memory::slot(int chunk, int number) const {
  return memory_ + stashes_[static_cast<size_t>(chunk)] +
         number * pipeline_.chunks[chunk].slot_bytes;
}

char *stage_memory::fault_of(int64_t micro_batch) const {
  return memory_ + faults_ + micro_batch * static_cast<int64_t>(sizeof(double));
}

void stage_memory::note_fault(int64_t micro_batch, const char *scalar) {
  queue_raise(fault_of(micro_batch), scalar);
}

void stage_memory::tell_fault(int64_t micro_batch, char *scalar) {
  queue_raise(scalar, fault_of(micro_batch));
}

void stage_memory::forget_faults() {
  check_cuda(cudaMemsetAsync(memory_ + faults_, 0,
                             static_cast<size_t>(pipeline_.micro_batches) * sizeof(double),
                             compute_stream()),
             "end of a step");
}

stage_memory::channel &stage_memory::channel_of(const stage_action &message) const {
  const auto first = 2 * static_cast<size_t>(message.boundary);
  return *channels_[first + (is_of_gradients(message.kind) ? 1 : 0)];
}

void stage_memory::move(const stage_action &message, const arenas &places) {
  channel &own = channel_of(message);
  char *memory = is_of_gradients(message.kind) ? places[arena_kind::activations]
                                               : slot(message.chunk, message.slot);
  if (sends(message.kind))
    send(own, memory, message.place, message.micro_batch);
  else
    receive(own, memory, message.place, message.micro_batch);
}

void stage_memory::send(channel &to, const char *made, int place, int64_t micro_batch) {
  channel::place &own = to.places[static_cast<size_t>(place)];
  char *begin = memory_ + to.offset + place * to.place_bytes, *target = begin + line_bytes;
  wait_for(compute_stream(), own.free);
  copy(begin, fault_of(micro_batch), sizeof(double));
  for (const crossing_tensor &tensor : to.tensors) {
    copy(target, made + tensor.from, tensor.bytes);
    target += whole_lines(tensor.bytes);
  }
  record(own.filled, compute_stream());
  if (to.is_within_rank())
    return;
  wait_for(to.stream, own.filled);
  check_nccl(ncclSend(begin, static_cast<size_t>(to.place_bytes), ncclUint8,
                      to.other(ranks_.rank()), to.group.get(), to.stream),
             "a message to another stage");
  record(own.free, to.stream);
}

void stage_memory::receive(channel &from, char *read, int place, int64_t micro_batch) {
  channel::place &own = from.places[static_cast<size_t>(place)];
  char *begin = memory_ + from.offset + place * from.place_bytes;
  const char *source = begin + line_bytes;
  if (!from.is_within_rank()) {
    wait_for(from.stream, own.free);
    check_nccl(ncclRecv(begin, static_cast<size_t>(from.place_bytes), ncclUint8,
                        from.other(ranks_.rank()), from.group.get(), from.stream),
               "a message from another stage");
    record(own.filled, from.stream);
  }
  wait_for(compute_stream(), own.filled);
  queue_raise(fault_of(micro_batch), begin);
  for (const crossing_tensor &tensor : from.tensors) {
    copy(read + tensor.to, source, tensor.bytes);
    source += whole_lines(tensor.bytes);
  }
  record(own.free, compute_stream());
}

bool stage_memory::is_busy() const {
  return std::any_of(channels_.begin(), channels_.end(), [](const auto &each) {
    return each && cudaStreamQuery(each->stream) == cudaErrorNotReady;
  });
}

void stage_memory::check() const {
  for (const auto &each : channels_)
    if (each)
      each->group.check();
}

void stage_memory::abandon() {
  for (const auto &each : channels_)
    if (each)
      each->group.abandon();
}

} // namespace trainc
