// SPDX-License-Identifier: Apache-2.0
#include "runtime/observe/event_record.h"

#include "runtime/files/crc32c.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

namespace trainc {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers are copied as they lie in memory");

enum field_form { as_varint = 0, as_8_bytes = 1, as_length_and_bytes = 2, as_4_bytes = 5 };
constexpr int bits_of_form = 3;

// Fields of the messages, by the .proto files of TensorBoard.
namespace event {
constexpr int wall_time = 1, step = 2, file_version = 3, summary = 5, session_log = 7;
}
namespace session_log {
constexpr int status = 1;
constexpr uint64_t start = 1;
} // namespace session_log
namespace summary {
constexpr int value = 1;
}
namespace value {
constexpr int tag = 1, simple_value = 2, histogram = 5, tensor = 8, metadata = 9;
}
namespace histogram {
constexpr int least = 1, largest = 2, count = 3, sum = 4, sum_of_squares = 5, limits = 6,
              counts = 7;
}
namespace summary_metadata {
constexpr int plugin_data = 1;
}
namespace plugin_data {
constexpr int plugin_name = 1, content = 2;
}
namespace tensor {
constexpr int type = 1, shape = 2, string_value = 8;
constexpr uint64_t type_float = 1, type_string = 7;
} // namespace tensor
namespace tensor_shape {
constexpr int dimension = 2;
}
namespace dimension {
constexpr int size = 1;
}
namespace hyperparameter_data {
constexpr int session_start = 3;
}
namespace session_start {
constexpr int hyperparameters = 1;
}
namespace map_entry {
constexpr int key = 1, value = 2;
}
namespace any_value {
constexpr int number = 2, string = 3;
}

constexpr const char *version = "brain.Event:2";
constexpr const char *hyperparameter_tag = "_hparams_/session_start_info";

template <typename T> void append_number(std::string &to, T value) {
  char bytes[sizeof value];
  memcpy(bytes, &value, sizeof value);
  to.append(bytes, sizeof bytes);
}

// Seven bits a byte, the lowest first. Returns how many there are.
constexpr size_t most_varint_bytes = 10;
size_t put_varint(char (&bytes)[most_varint_bytes], uint64_t value) {
  size_t count = 0;
  for (; value >= 0x80; value >>= 7)
    bytes[count++] = static_cast<char>(value | 0x80);
  bytes[count++] = static_cast<char>(value);
  return count;
}

// Of the UTF-8 character that `text` begins with; 0: there is none.
size_t character_bytes(std::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  const int first = byte(0), second = byte(1);
  if (first < 0x80)
    return 1;
  const size_t count = first < 0xC2   ? 0
                       : first < 0xE0 ? 2
                       : first < 0xF0 ? 3
                       : first < 0xF5 ? 4
                                      : 0;
  for (size_t i = 1; i < count; ++i)
    if ((byte(i) & 0xC0) != 0x80)
      return 0;
  // too long a form, a surrogate, or above the last character
  const bool is_wrong = (first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) ||
                        (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90);
  return is_wrong ? 0 : count;
}

} // namespace

uint32_t masked_crc32c(std::string_view bytes) {
  constexpr uint32_t added = 0xa282ead8;
  return std::rotr(crc32c(0, bytes.data(), bytes.size()), 15) + added;
}

void event_record::varint(uint64_t value) {
  char bytes[most_varint_bytes];
  bytes_.append(bytes, put_varint(bytes, value));
}

void event_record::key(int field, int form) {
  varint(static_cast<uint64_t>(field << bits_of_form | form));
}

void event_record::integer(int field, uint64_t value) {
  key(field, as_varint);
  varint(value);
}

void event_record::number(int field, double value) {
  key(field, as_8_bytes);
  append_number(bytes_, value);
}

// Puts the length before what stands from `begin` on.
void event_record::end_message(size_t begin) {
  char bytes[most_varint_bytes];
  const size_t count = put_varint(bytes, bytes_.size() - begin);
  bytes_.insert(begin, bytes, count);
}

template <typename Body> void event_record::message(int field, const Body &body) {
  key(field, as_length_and_bytes);
  const size_t begin = bytes_.size();
  body();
  end_message(begin);
}

void event_record::name(int field, std::string_view text) {
  message(field, [&] { bytes_ += text; });
}

void event_record::words(int field, std::string_view text) {
  message(field, [&] {
    while (!text.empty()) {
      const size_t count = character_bytes(text);
      bytes_ += count > 0 ? text.substr(0, count) : std::string_view("\uFFFD");
      text.remove_prefix(count > 0 ? count : 1);
    }
  });
}

void event_record::begin(double wall_seconds, int64_t step) {
  bytes_.assign(record_head_bytes, '\0'); // which finish() fills in
  values_begin_ = 0;
  number(event::wall_time, wall_seconds);
  if (step != 0)
    integer(event::step, static_cast<uint64_t>(step));
}

void event_record::begin_file(double wall_seconds) {
  begin(wall_seconds, 0);
  name(event::file_version, version);
}

void event_record::begin_steps(double wall_seconds, int64_t step) {
  begin(wall_seconds, step);
  message(event::session_log, [&] { integer(session_log::status, session_log::start); });
}

void event_record::begin_values() {
  if (values_begin_ > 0)
    return;
  key(event::summary, as_length_and_bytes);
  values_begin_ = bytes_.size();
}

void event_record::scalar(const char *tag, double value) {
  begin_values();
  message(summary::value, [&] {
    name(value::tag, tag);
    key(value::simple_value, as_4_bytes);
    append_number(bytes_, static_cast<float>(value));
  });
}

namespace {

struct bucket {
  double limit; // the largest number that belongs to it
  double count;
};

constexpr size_t most_buckets = 2 * exponent_count + 1;

// In the order of their limits. Each begins where the one before ends, so that empty ones between
// others are joined to one; those at both ends are left out. Returns how many there are.
size_t put_buckets(const tensor_statistics &of, bucket (&buckets)[most_buckets]) {
  size_t count = 0;
  bool is_begun = false;
  auto put = [&](double limit, int64_t elements) {
    is_begun |= elements > 0;
    if (!is_begun)
      return;
    const bool joins = elements == 0 && count > 0 && buckets[count - 1].count == 0;
    buckets[joins ? count - 1 : count++] = {limit, static_cast<double>(elements)};
  };
  for (int e = exponent_count - 1; e >= 0; --e)
    put(-std::ldexp(1.0, e + lowest_exponent), of.negative[static_cast<size_t>(e)]);
  put(0, of.zeros);
  for (int e = 0; e < exponent_count; ++e)
    put(std::ldexp(1.0, e + lowest_exponent + 1), of.positive[static_cast<size_t>(e)]);
  return count > 0 && buckets[count - 1].count == 0 ? count - 1 : count;
}

} // namespace

void event_record::histogram(const char *tag, const tensor_statistics &of) {
  bucket buckets[most_buckets];
  const size_t count = put_buckets(of, buckets);
  begin_values();
  message(summary::value, [&] {
    name(value::tag, tag);
    message(value::histogram, [&] {
      number(histogram::least, of.least);
      number(histogram::largest, of.largest);
      number(histogram::count, static_cast<double>(of.finite()));
      number(histogram::sum, of.sum);
      number(histogram::sum_of_squares, of.sum_of_squares);
      for (const auto &[field, member] : {std::pair(histogram::limits, &bucket::limit),
                                          std::pair(histogram::counts, &bucket::count)})
        message(field, [&, member = member] {
          for (size_t i = 0; i < count; ++i)
            append_number(bytes_, buckets[i].*member);
        });
    });
  });
}

template <typename Body> void event_record::metadata(const char *plugin, const Body &more) {
  message(value::metadata, [&] {
    message(summary_metadata::plugin_data, [&] {
      name(plugin_data::plugin_name, plugin);
      more();
    });
  });
}

void event_record::text(const char *tag, std::string_view markdown) {
  begin_values();
  message(summary::value, [&] {
    name(value::tag, tag);
    message(value::tensor, [&] {
      integer(tensor::type, tensor::type_string);
      words(tensor::string_value, markdown);
    });
    metadata("text", [] {});
  });
}

void event_record::hyperparameters(std::span<const std::pair<std::string, std::string>> values) {
  auto entry = [&](const std::string &key, const std::string &text) {
    double number = NAN;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool is_number = read.ptr == text.data() + text.size() && std::isfinite(number);
    words(map_entry::key, key);
    message(map_entry::value, [&] {
      if (is_number)
        this->number(any_value::number, number);
      else
        words(any_value::string, text);
    });
  };
  begin_values();
  message(summary::value, [&] {
    name(value::tag, hyperparameter_tag);
    message(value::tensor, [&] { // without an element
      integer(tensor::type, tensor::type_float);
      message(tensor::shape, [&] { message(tensor_shape::dimension, [] {}); });
    });
    metadata("hparams", [&] {
      message(plugin_data::content, [&] {
        message(hyperparameter_data::session_start, [&] {
          for (const auto &one : values)
            message(session_start::hyperparameters, [&] { entry(one.first, one.second); });
        });
      });
    });
  });
}

std::string_view event_record::finish() {
  if (values_begin_ > 0)
    end_message(values_begin_);
  const std::string_view all = bytes_;
  const std::string_view event = all.substr(record_head_bytes);
  const uint64_t length = event.size();
  const uint32_t checksum = masked_crc32c(event);
  memcpy(bytes_.data(), &length, sizeof length);
  const uint32_t checksum_of_length = masked_crc32c(all.substr(0, sizeof length));
  memcpy(bytes_.data() + sizeof length, &checksum_of_length, sizeof checksum_of_length);
  append_number(bytes_, checksum);
  return bytes_;
}

namespace {

template <typename T> T number_at(std::string_view bytes, size_t position) {
  T value;
  memcpy(&value, bytes.data() + position, sizeof value);
  return value;
}

// A message, a field at a time.
class field_reader {
public:
  explicit field_reader(std::string_view message) : rest_(message) {}

  // False at the end, and where the message is not sound.
  bool next();
  bool is_sound() const { return is_sound_; }

  int field = 0, type = 0;
  uint64_t number = 0;    // of a varint
  std::string_view bytes; // of all others

private:
  uint64_t varint();
  std::string_view take(uint64_t count);

  std::string_view rest_;
  bool is_sound_ = true;
};

uint64_t field_reader::varint() {
  uint64_t value = 0;
  for (size_t i = 0; i < most_varint_bytes && i < rest_.size(); ++i) {
    const auto byte = static_cast<unsigned char>(rest_[i]);
    value |= uint64_t{byte & 0x7Fu} << (7 * i);
    if (byte < 0x80) {
      rest_.remove_prefix(i + 1);
      return value;
    }
  }
  is_sound_ = false;
  return 0;
}

std::string_view field_reader::take(uint64_t count) {
  is_sound_ &= count <= rest_.size();
  const std::string_view taken = rest_.substr(0, is_sound_ ? count : 0);
  rest_.remove_prefix(taken.size());
  return taken;
}

bool field_reader::next() {
  if (rest_.empty() || !is_sound_)
    return false;
  const uint64_t key = varint();
  field = static_cast<int>(key >> bits_of_form);
  type = static_cast<int>(key & ((1 << bits_of_form) - 1));
  if (type == as_varint)
    number = varint();
  else if (type == as_8_bytes || type == as_4_bytes)
    bytes = take(type == as_8_bytes ? 8 : 4);
  else if (type == as_length_and_bytes)
    bytes = take(varint());
  else
    is_sound_ = false;
  return is_sound_;
}

// The first field of that number in a message; empty: it has none.
std::string_view first_bytes(std::string_view message, int field) {
  for (field_reader fields(message); fields.next();)
    if (fields.field == field && fields.type == as_length_and_bytes)
      return fields.bytes;
  return {};
}

} // namespace

int64_t event_bytes(std::string_view head) {
  constexpr uint64_t most = INT64_MAX - record_head_bytes - record_tail_bytes;
  const auto length = number_at<uint64_t>(head, 0);
  const bool is_sound =
      number_at<uint32_t>(head, sizeof length) == masked_crc32c(head.substr(0, sizeof length));
  return is_sound && length <= most ? static_cast<int64_t>(length) : -1;
}

bool read_event(std::string_view event_and_tail, event_head &found) {
  const size_t size = event_and_tail.size() - record_tail_bytes;
  const std::string_view message = event_and_tail.substr(0, size);
  if (number_at<uint32_t>(event_and_tail, size) != masked_crc32c(message))
    return false;
  found = {};
  field_reader fields(message);
  while (fields.next())
    if (fields.field == event::step && fields.type == as_varint)
      found.step = static_cast<int64_t>(fields.number);
    else if (fields.field == event::summary && fields.type == as_length_and_bytes) {
      found.has_values = true;
      found.values = fields.bytes;
    }
  return fields.is_sound();
}

std::string_view event_head::tag() const {
  return first_bytes(first_bytes(values, summary::value), value::tag);
}

} // namespace trainc
