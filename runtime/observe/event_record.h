// SPDX-License-Identifier: Apache-2.0
//
// Records of TensorBoard's event files: an `Event` in the wire format of protocol buffers, and
// around it its length and two checksums. There are as many messages as a trainer needs.
#pragma once

#include "runtime/observe/tensor_statistics.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace trainc {

// CRC-32C as the records have it: rotated, and a constant added.
uint32_t masked_crc32c(std::string_view bytes);

// Writes one record after the other into the same memory.
class event_record {
public:
  // As many bytes as a record may have without an allocation.
  explicit event_record(size_t bytes) { bytes_.reserve(bytes); }

  // Each begins a record; the time is in seconds since 1970.
  void begin(double wall_seconds, int64_t step);
  void begin_file(double wall_seconds); // the first of a file: its version
  // Steps from this one on follow: a reader forgets what it knows of them.
  void begin_steps(double wall_seconds, int64_t step);

  // Values of the record. What is not UTF-8 in a text becomes U+FFFD.
  void scalar(const char *tag, double value);
  // Of finite elements, of which there must be one.
  void histogram(const char *tag, const tensor_statistics &of);
  void text(const char *tag, std::string_view markdown);
  // For the table of hyperparameters: numbers and words.
  void hyperparameters(std::span<const std::pair<std::string, std::string>> values);

  // The whole record, until the next one begins.
  std::string_view finish();

private:
  template <typename Body> void message(int field, const Body &body);
  void end_message(size_t begin);
  void begin_values();
  void varint(uint64_t value);
  void key(int field, int form);
  void integer(int field, uint64_t value);
  void number(int field, double value);
  void name(int field, std::string_view text);
  void words(int field, std::string_view text);
  template <typename Body> void metadata(const char *plugin, const Body &more);

  std::string bytes_;
  size_t values_begin_ = 0; // of the summary; 0: the record has none
};

// Most bytes of a histogram besides its tag.
constexpr size_t most_histogram_bytes = (2 * exponent_count + 1) * 2 * sizeof(double) + 128;

// What a reader finds out of an Event.
struct event_head {
  int64_t step = 0;
  bool has_values = false;
  std::string_view values;

  std::string_view tag() const; // of the first value
};

constexpr size_t record_head_bytes = 12, record_tail_bytes = 4; // around an Event

// Bytes of the Event that follows a record's head; -1: the head is damaged.
int64_t event_bytes(std::string_view head);

// Of the Event and the record's tail. False where they are damaged.
bool read_event(std::string_view event_and_tail, event_head &found);

} // namespace trainc
