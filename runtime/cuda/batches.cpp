// SPDX-License-Identifier: Apache-2.0
//
// Double-buffered copies of batches.
#include "runtime/cuda/batches.h"

#include "runtime/cuda/errors.h"
#include "runtime/files/data_types.h"

namespace trainc {
namespace {

constexpr int64_t input_alignment = 256; // bytes

} // namespace

batches::batches(const program &program) : program_(program), written_(program.inputs.size()) {
  for (const input_place &input : program.inputs) {
    offsets_.push_back(bytes_);
    int64_t bytes = byte_count(input.tensor);
    bytes_ += (bytes + input_alignment - 1) / input_alignment * input_alignment;
  }
}

void batches::allocate(char *staging) {
  staging_ = staging;
  for (slot &each : slots_)
    each.memory.allocate(bytes_);
}

char *batches::place(const tensor_place &input) {
  check_cuda(cudaEventSynchronize(slots_[next_].sent), "waiting for the copy of a batch");
  if (!begun_)
    written_.assign(written_.size(), false);
  begun_ = true;
  size_t index = 0;
  while (program_.inputs[index].tensor.offset != input.offset)
    ++index;
  written_[index] = true;
  return slots_[next_].memory.data() + offsets_[index];
}

void batches::send(const streams &streams) {
  const slot &written = slots_[next_];
  check_cuda(cudaStreamWaitEvent(streams.copy, taken_), "waiting for the batch before");
  check_cuda(cudaMemcpyAsync(staging_, written.memory.data(), static_cast<size_t>(bytes_),
                             cudaMemcpyHostToDevice, streams.copy),
             "copy of a batch");
  check_cuda(cudaEventRecord(written.sent, streams.copy), "copy of a batch");
  begun_ = false;
  last_ = next_;
  next_ = (next_ + 1) % slot_count;
}

void batches::use(const streams &streams, const arenas &arenas) {
  check_cuda(cudaStreamWaitEvent(streams.compute, slots_[last_].sent), "waiting for a batch");
  for (size_t i = 0; i < offsets_.size(); ++i) {
    const tensor_place &input = program_.inputs[i].tensor;
    if (written_[i])
      check_cuda(cudaMemcpyAsync(arenas[input.arena] + input.offset, staging_ + offsets_[i],
                                 static_cast<size_t>(byte_count(input)), cudaMemcpyDeviceToDevice,
                                 streams.compute),
                 "copy of an input to its place");
  }
  check_cuda(cudaEventRecord(taken_, streams.compute), "copy of an input to its place");
}

} // namespace trainc
