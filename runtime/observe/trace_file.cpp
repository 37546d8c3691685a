// SPDX-License-Identifier: Apache-2.0
//
// The format: "Trace Event Format" of Chrome, as a JSON object. Times are in microseconds; whole
// nanoseconds of them keep slices nested.
#include "runtime/observe/trace_file.h"

#include "runtime/observe/living_bytes.h"
#include "runtime/plan/titles.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace trainc {
namespace {

constexpr size_t written_at_once = 1 << 20; // bytes
constexpr int compute_track = 0, exchange_track = 1;
constexpr struct {
  int number;
  const char *title;
  bool is_always_there;
} tracks[] = {{compute_track, "compute", true},
              {exchange_track, "exchange", true},
              {2, "loader", false},
              {3, "checkpoint", false}};

int64_t nanoseconds(double seconds) { return std::llround(seconds * 1e9); }
double microseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1000; }

int track_of(slice_kind kind) {
  return kind < slice_kind::exchange
             ? compute_track
             : static_cast<int>(kind) - static_cast<int>(slice_kind::exchange) + exchange_track;
}

} // namespace

trace_file::trace_file(const std::string &path, const plan &plan, double product_rate)
    : file_(path), plan_(plan), product_rate_(product_rate), text_("{\"traceEvents\": [\n") {
  for (const planned_entry &entry : plan.entries)
    needed_[entry.name] = needed_bytes_of(entry);
}

void trace_file::put(const event &what) {
  text_ += (is_first_ ? "" : ",\n") + what.dump(-1, ' ', false, event::error_handler_t::replace);
  is_first_ = false;
  if (text_.size() < written_at_once)
    return;
  file_.write(text_);
  text_.clear();
}

void trace_file::add_names(const rank_trace &of) {
  const std::string name = "rank " + std::to_string(of.rank) + " (stage " +
                           std::to_string(of.stage) + ", replica " + std::to_string(of.replica) +
                           ")";
  put({{"ph", "M"}, {"name", "process_name"}, {"pid", of.rank}, {"args", {{"name", name}}}});
  put({{"ph", "M"},
       {"name", "process_sort_index"},
       {"pid", of.rank},
       {"args", {{"sort_index", of.rank}}}});
  for (const auto &track : tracks)
    if (track.is_always_there ||
        std::any_of(of.slices.begin(), of.slices.end(),
                    [&](const trace_slice &slice) { return track_of(slice.kind) == track.number; }))
      put({{"ph", "M"},
           {"name", "thread_name"},
           {"pid", of.rank},
           {"tid", track.number},
           {"args", {{"name", track.title}}}});
}

void trace_file::add(rank_trace trace) {
  add_names(trace);
  memory_ = 0;
  // Where several begin at once, the outer ones first.
  std::stable_sort(trace.slices.begin(), trace.slices.end(),
                   [](const trace_slice &a, const trace_slice &b) {
                     const int64_t first = nanoseconds(a.begin), second = nanoseconds(b.begin);
                     return first != second ? first < second : a.kind < b.kind;
                   });
  for (const trace_slice &slice : trace.slices)
    add_slice(trace, slice);
}

trace_file::event trace_file::described(const rank_trace &of, const trace_slice &slice) const {
  const int64_t begin = nanoseconds(slice.begin);
  return {{"ph", "X"},
          {"pid", of.rank},
          {"tid", track_of(slice.kind)},
          {"ts", microseconds(begin)},
          {"dur", microseconds(nanoseconds(slice.end) - begin)},
          {"name", of.names.at(static_cast<size_t>(slice.name))},
          {"args", event::object()}};
}

void trace_file::add_slice(const rank_trace &of, const trace_slice &slice) {
  event what = described(of, slice);
  event &details = what["args"];
  switch (slice.kind) {
  case slice_kind::training_step:
    training_step_ = slice.number;
    what["cat"] = "training step";
    what["name"] = "step " + std::to_string(slice.number);
    break;
  case slice_kind::action:
    what["cat"] = "action";
    for (const auto &[name, value] :
         {std::pair("chunk", slice.chunk), std::pair("boundary", slice.boundary),
          std::pair("micro_batch", slice.micro_batch)})
      if (value >= 0)
        details[name] = value;
    details["waiting_seconds"] = slice.waiting;
    break;
  case slice_kind::plan_step:
    add_step(of, slice, what);
    break;
  case slice_kind::exchange:
    what["cat"] = "exchange";
    details["exposed_seconds"] = slice.waiting;
    break;
  case slice_kind::batch:
    what["cat"] = "loader";
    details = {{"batch", slice.number}, {"bytes", slice.bytes}, {"waiting_seconds", slice.waiting}};
    break;
  case slice_kind::checkpoint:
    what["cat"] = "checkpoint";
    details = {{"step", slice.number}, {"bytes", slice.bytes}};
  }
  put(what);
  if (slice.kind == slice_kind::action && slice.boundary >= 0)
    add_message(of, slice);
  if (slice.kind == slice_kind::training_step)
    add_memory(of.rank, slice.begin, 0);
}

void trace_file::add_step(const rank_trace &of, const trace_slice &slice, event &what) {
  const std::string entry = what["name"];
  event &details = what["args"];
  what["cat"] = "plan";
  what["name"] = "step " + std::to_string(slice.number);
  details = {{"entry", entry}, {"number", slice.number}};
  const planned_entry *function = plan_.find(entry);
  const auto number = static_cast<size_t>(slice.number);
  if (!function || number >= function->steps.size())
    return;
  const planned_step &step = function->steps[number];
  const planned_kernel &kernel = function->kernel_of(step);
  what["name"] = kernel.text;
  std::string nodes;
  for (const std::string &node : step.computes)
    nodes += (nodes.empty() ? "" : ", ") + node;
  if (!nodes.empty())
    details["nodes"] = nodes;
  if (const std::string module = nodes.empty() ? "" : module_of(step.title()); !module.empty())
    details["module"] = module;
  const double seconds = slice.end - slice.begin;
  if (seconds > 0) {
    details["flops"] = kernel.flops;
    details["bytes"] = double(kernel.bytes);
    details["gflops_per_second"] = kernel.flops / seconds * 1e-9;
    details["gigabytes_per_second"] = double(kernel.bytes) / seconds * 1e-9;
    if (product_rate_ > 0)
      details["share_of_product"] = kernel.flops / seconds / product_rate_;
  }
  add_memory(of.rank, slice.begin, needed_.at(entry)[number]);
}

// A flow from the action that sends to the one that receives, which may begin before that: the flow
// ends with it. Their numbers must be whole.
void trace_file::add_message(const rank_trace &of, const trace_slice &slice) {
  const std::string_view action = of.names.at(static_cast<size_t>(slice.name));
  const bool leaves = action.starts_with("send ");
  const std::string what(action.substr(action.find(' ') + 1));
  const std::string which = what + "/" + std::to_string(training_step_) + "/" +
                            std::to_string(of.replica) + "/" + std::to_string(slice.boundary) +
                            "/" + std::to_string(slice.micro_batch);
  const int64_t number = messages_.emplace(which, messages_.size() + 1).first->second;
  const int64_t begin = nanoseconds(slice.begin), end = nanoseconds(slice.end);
  event flow = {{"ph", leaves ? "s" : "f"},
                {"pid", of.rank},
                {"tid", compute_track},
                {"ts", microseconds(leaves ? begin : std::max(begin, end - 1))},
                {"id", number},
                {"cat", "message"},
                {"name", what}};
  if (!leaves)
    flow["bp"] = "e"; // to the slice around this instant
  put(flow);
}

void trace_file::add_memory(int rank, double seconds, int64_t bytes) {
  if (bytes == memory_)
    return;
  memory_ = bytes;
  put({{"ph", "C"},
       {"pid", rank},
       {"ts", microseconds(nanoseconds(seconds))},
       {"name", "activations"},
       {"args", {{"bytes", bytes}}}});
}

void trace_file::publish() {
  text_ += "\n]}\n";
  file_.write(text_);
  file_.publish();
}

} // namespace trainc
