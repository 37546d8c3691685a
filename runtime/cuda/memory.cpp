// SPDX-License-Identifier: Apache-2.0
//
// Allocation on the device, and of pinned host memory.
#include "runtime/cuda/memory.h"

#include "runtime/arena.h"
#include "runtime/byte_text.h"
#include "runtime/cuda/errors.h"
#include "runtime/cuda/work_place.h"
#include "runtime/failure.h"

#include <algorithm>
#include <cstring>

namespace trainc {
namespace {

constexpr int64_t region_alignment = 256; // bytes, what cudaMalloc itself gives

} // namespace

void device_memory::plan(const char *name, int64_t bytes, char **place) {
  regions_.push_back({name, planned_, bytes, place});
  planned_ += (bytes + region_alignment - 1) / region_alignment * region_alignment;
}

void device_memory::plan(const char *name, int64_t bytes, const std::vector<element_range> &used,
                         char **place) {
  const int64_t page = mapped_memory::page_bytes();
  if (page == 0)
    return plan(name, bytes, place);
  region added = {name, 0, 0, place, bytes, mapped_memory::pages_of(used, page)};
  for (const element_range &each : added.pages)
    added.bytes += each.end - each.begin;
  mapped_ += added.bytes;
  regions_.push_back(std::move(added));
}

std::string device_memory::listing() const {
  std::string text;
  for (size_t first = 0; first < regions_.size(); ++first) {
    auto same = [&](const region &other) { return !strcmp(other.name, regions_[first].name); };
    if (std::any_of(regions_.begin(), regions_.begin() + static_cast<int64_t>(first), same))
      continue;
    int64_t bytes = 0;
    for (const region &each : regions_)
      bytes += same(each) ? each.bytes : 0;
    if (bytes > 0)
      text +=
          (text.empty() ? "" : ", ") + std::string(regions_[first].name) + " " + byte_text(bytes);
  }
  return text;
}

void device_memory::check(const std::string &device_name) const {
  if (given_)
    return;
  size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "asking for free memory");
  if (static_cast<size_t>(planned_bytes()) > free)
    throw failure(exit_machine,
                  format_text("%s: not enough memory: %s are needed (%s), %s of %s are free\n"
                              "  try: a smaller batch, trainc --memory-budget, or ending what "
                              "else runs on the device",
                              device_name.c_str(), byte_text(planned_bytes()).c_str(),
                              listing().c_str(), byte_text(static_cast<int64_t>(free)).c_str(),
                              byte_text(static_cast<int64_t>(total)).c_str()));
}

void device_memory::take_from(char *memory, int64_t bytes) {
  if (reinterpret_cast<uintptr_t>(memory) % region_alignment != 0)
    throw failure(exit_usage, format_text("memory does not begin at a multiple of %lld bytes\n  "
                                          "try: cudaMalloc",
                                          static_cast<long long>(region_alignment)));
  given_ = memory;
  given_bytes_ = bytes;
}

void device_memory::allocate() {
  if (given_ && given_bytes_ < planned_)
    throw failure(exit_usage, format_text("the memory that was given has no room: it has %lld "
                                          "bytes, the model needs %lld\n  try: so many bytes",
                                          static_cast<long long>(given_bytes_),
                                          static_cast<long long>(planned_)));
  void *own = nullptr;
  if (!given_)
    check_cuda(cudaMalloc(&own, static_cast<size_t>(std::max<int64_t>(planned_, 1))),
               "allocation of the arenas");
  own_ = static_cast<char *>(own);
  char *base = given_ ? given_ : own_;
  for (const region &each : regions_) {
    if (each.addresses == 0) {
      *each.place = base + each.offset;
      continue;
    }
    in_pages_.push_back(std::make_unique<mapped_memory>());
    *each.place = in_pages_.back()->allocate(each.addresses, each.pages);
  }
}

device_memory::~device_memory() {
  if (own_)
    cudaFree(own_);
}

void pinned_memory::allocate(int64_t bytes) {
  auto size = static_cast<size_t>(std::max<int64_t>(bytes, 1));
  void *data = nullptr;
  check_cuda(cudaMallocHost(&data, size), "allocation of pinned host memory");
  data_ = static_cast<char *>(data);
  memset(data_, 0, size);
}

pinned_memory::~pinned_memory() {
  if (data_)
    cudaFreeHost(data_);
}

void plan_scratch(int64_t bytes) {
  own_work().scratch_bytes = std::max(own_work().scratch_bytes, bytes);
}
int64_t planned_scratch_bytes() { return own_work().scratch_bytes; }
void set_scratch(char *base) { own_work().scratch = base; }
char *scratch() { return own_work().scratch; }

} // namespace trainc
