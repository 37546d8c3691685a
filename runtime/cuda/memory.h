// SPDX-License-Identifier: Apache-2.0
//
// Memory of a run: all that lies on the device is one allocation, planned region by
// region and compared with what is free before it is made.
#pragma once

#include "runtime/cuda/mapped_memory.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace trainc {

class device_memory {
public:
  device_memory() = default;
  ~device_memory();
  device_memory(const device_memory &) = delete;
  device_memory &operator=(const device_memory &) = delete;

  // Asks for a region; its address will be written to `place`. What is asked for
  // under one name is one sum in the message about too little memory.
  void plan(const char *name, int64_t bytes, char **place);
  // The same of a region of so many addresses with pieces that alone are used, in bytes: where
  // the device can map memory in pages it is taken for those that have any of them, else for all.
  void plan(const char *name, int64_t bytes, const std::vector<element_range> &used, char **place);
  int64_t planned_bytes() const { return planned_ + mapped_; }
  // What will be allocated lies in this memory of the device.
  void take_from(char *memory, int64_t bytes);

  // Throws `failure` (exit_machine) when less than the planned bytes are free.
  void check(const std::string &device_name) const;
  void allocate();

private:
  struct region {
    const char *name;
    int64_t offset, bytes;
    char **place;
    int64_t addresses = 0; // of one in pages, and these
    std::vector<element_range> pages = {};
  };
  std::string listing() const;

  std::vector<region> regions_;
  int64_t planned_ = 0, mapped_ = 0; // in one allocation, in pages
  char *own_ = nullptr, *given_ = nullptr;
  int64_t given_bytes_ = 0;
  std::vector<std::unique_ptr<mapped_memory>> in_pages_;
};

// Host memory that the device copies from and to without the host's help; zero.
class pinned_memory {
public:
  pinned_memory() = default;
  ~pinned_memory();
  pinned_memory(const pinned_memory &) = delete;
  pinned_memory &operator=(const pinned_memory &) = delete;

  void allocate(int64_t bytes);
  char *data() const { return data_; }

private:
  char *data_ = nullptr;
};

// Device memory that single functions use while they run, one after the other. They
// ask for it when the entry functions are walked to plan; the largest wish counts.
void plan_scratch(int64_t bytes);
int64_t planned_scratch_bytes();
void set_scratch(char *base);
char *scratch();

} // namespace trainc
