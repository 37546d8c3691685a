// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/step_trace.h"

#include "runtime/process/clock.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

namespace trainc {
namespace {

constexpr int64_t bytes_of_message = 1 << 28; // MPI counts in an int

// Names have no line ends.
std::string lines_of(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += name + "\n";
  return text;
}

std::vector<std::string> names_of_lines(const std::string &text) {
  std::vector<std::string> names;
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
    names.push_back(text.substr(begin, end - begin));
  return names;
}

void move_parts(char *data, int64_t bytes, const std::function<void(char *, int64_t)> &move) {
  for (int64_t done = 0; done < bytes; done += bytes_of_message)
    move(data + done, std::min(bytes_of_message, bytes - done));
}

std::exception_ptr no_memory(int rank) {
  return std::make_exception_ptr(
      failure(exit_machine, format_text("there is no memory for the trace of rank %d, of which "
                                        "fewer steps take less",
                                        rank)));
}

} // namespace

const char *name_of(stage_action_kind kind) {
  static constexpr const char *names[] = {"forward",         "backward",
                                          "input gradient",  "weight gradient",
                                          "send activation", "receive activation",
                                          "send gradient",   "receive gradient",
                                          "reduce",          "norm",
                                          "update"};
  static_assert(std::size(names) == static_cast<size_t>(stage_action_kind::update) + 1);
  return names[static_cast<size_t>(kind)];
}

// Ranks of one host have one clock. Between hosts the instants after a barrier
// count as one, which is as exact as the barrier.
void step_trace::start() {
  own_.slices.clear();
  ranks_.barrier();
  const double now = seconds_now();
  std::vector<double> of_all(static_cast<size_t>(ranks_.size()));
  ranks_.gather(&now, sizeof now, of_all.data());
  began_ = of_all[static_cast<size_t>(ranks_.first_on_host())];
}

void step_trace::make_room(int64_t steps, int64_t more) {
  const auto recorded = static_cast<int64_t>(own_.slices.size());
  try {
    own_.slices.reserve(static_cast<size_t>(recorded + (recorded / steps + 1) * more));
  } catch (const std::bad_alloc &) {
    give_up();
  }
}

// Training goes on.
void step_trace::add(const trace_slice &slice) {
  if (!lacks_memory_)
    try {
      own_.slices.push_back(slice);
    } catch (const std::bad_alloc &) {
      give_up();
    }
}

void step_trace::give_up() {
  lacks_memory_ = true;
  own_.slices = {};
}

int32_t step_trace::number_of(const char *name) {
  auto known = std::find(own_.names.begin(), own_.names.end(), name);
  if (known == own_.names.end())
    known = own_.names.insert(known, name);
  return static_cast<int32_t>(known - own_.names.begin());
}

void step_trace::training_step(int64_t number, double begin, double end) {
  add({.begin = begin - began_,
       .end = end - began_,
       .kind = slice_kind::training_step,
       .name = number_of("training step"),
       .number = static_cast<int32_t>(number)});
}

void step_trace::action(const stage_action &of, double begin, double end, double waiting) {
  add({.begin = begin - began_,
       .end = end - began_,
       .kind = slice_kind::action,
       .name = number_of(name_of(of.kind)),
       .chunk = of.chunk,
       .micro_batch = of.micro_batch,
       .boundary = of.boundary,
       .waiting = waiting});
}

void step_trace::rest(double begin, double end) {
  add({.begin = begin - began_,
       .end = end - began_,
       .kind = slice_kind::action,
       .name = number_of("rest")});
}

void step_trace::plan_step(int number, double begin, double end) {
  add({.begin = begin - began_,
       .end = end - began_,
       .kind = slice_kind::plan_step,
       .name = function_,
       .number = number});
}

void step_trace::exchange(const exchange_times &of) {
  add({.begin = of.begin - began_,
       .end = of.end - began_,
       .kind = slice_kind::exchange,
       .name = number_of("exchange of gradients"),
       .waiting = of.exposed});
}

void step_trace::add_part(trace_slice slice) {
  if (slice.end <= began_)
    return;
  slice.begin = std::max(slice.begin - began_, 0.0);
  slice.end -= began_;
  add(slice);
}

void step_trace::batch(int64_t number, int64_t bytes, double begin, double end, double waiting) {
  add_part({.begin = begin,
            .end = end,
            .kind = slice_kind::batch,
            .name = number_of("read batch"),
            .number = static_cast<int32_t>(number),
            .waiting = waiting,
            .bytes = bytes});
}

void step_trace::checkpoint(const char *what, int64_t step, int64_t bytes, double begin,
                            double end) {
  add_part({.begin = begin,
            .end = end,
            .kind = slice_kind::checkpoint,
            .name = number_of(what),
            .number = static_cast<int32_t>(step),
            .bytes = bytes});
}

void step_trace::gather(const program &program, const std::function<void(rank_trace)> &visit) {
  std::exception_ptr problem; // of the first rank
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const stage_layout layout(program, rank, ranks_.size());
    rank_trace trace = rank == ranks_.rank() ? std::move(own_) : rank_trace();
    trace.rank = rank;
    trace.stage = layout.stage;
    trace.replica = layout.replica;
    trace.names = names_of_lines(ranks_.broadcast(lines_of(trace.names), rank));
    const std::string count =
        ranks_.broadcast(lacks_memory_ ? "" : std::to_string(trace.slices.size()), rank);
    if (count.empty() && !problem)
      problem = no_memory(rank);
    if (!count.empty() && rank > 0)
      move_slices(trace, std::stoull(count), problem);
    if (ranks_.rank() == 0 && !problem)
      try {
        visit(std::move(trace));
      } catch (const std::bad_alloc &) {
        problem = no_memory(rank);
      } catch (...) {
        problem = std::current_exception();
      }
  }
  if (ranks_.rank() == 0 && problem)
    std::rethrow_exception(problem);
}

void step_trace::move_slices(rank_trace &trace, size_t count, std::exception_ptr &problem) {
  const bool receives = ranks_.rank() == 0;
  if (receives && !problem)
    try {
      trace.slices.resize(count);
    } catch (const std::bad_alloc &) {
      problem = no_memory(trace.rank);
    }
  if (ranks_.broadcast(problem ? "" : "all") != "all")
    return;
  auto *data = reinterpret_cast<char *>(trace.slices.data());
  const auto bytes = static_cast<int64_t>(count * sizeof(trace_slice));
  if (receives)
    move_parts(data, bytes, [&](char *at, int64_t size) { ranks_.receive(at, size, trace.rank); });
  else if (trace.rank == ranks_.rank())
    move_parts(data, bytes, [&](char *at, int64_t size) { ranks_.send(at, size, 0); });
}

} // namespace trainc
