// SPDX-License-Identifier: Apache-2.0
//
// Streams, events and graphs: queues of operations, what orders them, and when they
// run. An operation runs when it is queued or, with `streams=late`, when the host
// first waits for it.
#pragma once

#include "cuda_runtime.h"
#include "shadow.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace trainc::stand_in {

// What an operation is called in messages. A kernel's name is looked up when one is
// printed.
struct operation_name {
  const char *text = "";
  const void *kernel = nullptr;
  size_t bytes = 0; // 0: not said
};

// Queues it, or records it where the stream is being captured.
cudaError_t queue(cudaStream_t stream, operation_name name, std::function<void()> run);

// Runs what is left on every stream; the host has then seen all of it.
void finish_everything();
void finish_stream(cudaStream_t stream);
// Runs what is left on the stream; the host has seen nothing of it.
void run_stream(cudaStream_t stream);

// Whether some call that a capture forbids is made during one; ends the capture.
bool forbidden_in_capture();

// "kernel h_ln_1 on stream 2", of what runs now.
std::string current_operation();
// The operation that ran at a clock, likewise; and whether it was an earlier launch
// of the graph or the same operation as the one that runs.
std::string operation_at(uint64_t clock);

} // namespace trainc::stand_in
