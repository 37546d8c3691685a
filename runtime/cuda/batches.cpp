// SPDX-License-Identifier: Apache-2.0
//
// Double-buffered copies of batches.
#include "runtime/cuda/batches.h"

#include "runtime/cuda/errors.h"
#include "runtime/data_types.h"

namespace trainc {
namespace {

constexpr int64_t input_alignment = 256; // bytes

} // namespace

batches::batches(const program &program)
    : program_(program), written_(static_cast<size_t>(program.input_count)) {
  for (int64_t i = 0; i < program.input_count; ++i) {
    offsets_.push_back(bytes_);
    int64_t bytes = byte_count(program.inputs[i].tensor);
    bytes_ += (bytes + input_alignment - 1) / input_alignment * input_alignment;
  }
}

void batches::allocate(char *staging) {
  staging_ = staging;
  for (slot &each : slots_)
    each.memory.allocate(bytes_);
}

char *batches::place(const tensor_place &input) {
  slot &next = slots_[current_];
  check_cuda(cudaEventSynchronize(next.sent), "waiting for the copy of a batch");
  size_t index = 0;
  while (program_.inputs[index].tensor.offset != input.offset)
    ++index;
  written_[index] = true;
  return next.memory.data() + offsets_[index];
}

void batches::submit(const streams &streams, const arenas &arenas) {
  slot &next = slots_[current_];
  check_cuda(cudaStreamWaitEvent(streams.copy, taken_), "waiting for the batch before");
  check_cuda(cudaMemcpyAsync(staging_, next.memory.data(), static_cast<size_t>(bytes_),
                             cudaMemcpyHostToDevice, streams.copy),
             "copy of a batch");
  check_cuda(cudaEventRecord(next.sent, streams.copy), "copy of a batch");
  check_cuda(cudaStreamWaitEvent(streams.compute, next.sent), "waiting for a batch");
  for (size_t i = 0; i < offsets_.size(); ++i) {
    const tensor_place &input = program_.inputs[i].tensor;
    if (written_[i])
      check_cuda(cudaMemcpyAsync(arenas[input.arena] + input.offset, staging_ + offsets_[i],
                                 static_cast<size_t>(byte_count(input)), cudaMemcpyDeviceToDevice,
                                 streams.compute),
                 "copy of an input to its place");
    written_[i] = false;
  }
  check_cuda(cudaEventRecord(taken_, streams.compute), "copy of an input to its place");
  current_ = (current_ + 1) % slot_count;
}

} // namespace trainc
