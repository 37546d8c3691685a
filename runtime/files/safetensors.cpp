// SPDX-License-Identifier: Apache-2.0
//
// Reading and writing of safetensors. A file may come from anywhere, so the
// reader trusts nothing that it has not compared with the file's size.
#include "runtime/files/safetensors.h"

#include "runtime/failure.h"
#include "runtime/files/bounded_json.h"
#include "runtime/files/conversion.h"
#include "runtime/files/crc32c.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace trainc {
namespace {

using nlohmann::json;

constexpr int64_t largest_safetensors_header = 100'000'000; // the format's own limit, bytes
constexpr int64_t data_alignment = 64;
constexpr int deepest_header = 4; // object of objects of arrays

// Of the format's types that data cannot have.
constexpr struct {
  const char *name;
  int64_t bytes;
} foreign_types[] = {{"F8_E5M2", 1}, {"F8_E4M3", 1}, {"U64", 8}};

// 0: the format has no such type.
int64_t bytes_of_stored(const std::string &name) {
  if (const std::optional<file_type> type = data_type_of_stored(name))
    return bytes_of(*type);
  for (const auto &[foreign, bytes] : foreign_types)
    if (name == foreign)
      return bytes;
  return 0;
}

class index_reader {
public:
  explicit index_reader(const input_file &file) : file_(file) {}

  safetensors_index read() {
    json header = parse(header_text());
    safetensors_index index;
    for (auto &[name, entry] : header.items()) {
      if (name == "__metadata__")
        metadata(entry, index);
      else
        index.tensors.emplace(name, tensor(name, entry));
    }
    check_cover(index);
    return index;
  }

private:
  [[noreturn]] void refuse(const std::string &why) {
    file_.refuse(without_controls(why)); // one line
  }

  std::string header_text() {
    unsigned char prefix[8];
    if (file_.size() < 8)
      refuse("is not a safetensors file: it has " + std::to_string(file_.size()) + " bytes");
    file_.read(0, prefix, 8);
    uint64_t length = 0;
    for (int byte = 7; byte >= 0; --byte)
      length = length << 8 | prefix[byte];
    if (length > largest_safetensors_header)
      refuse(format_text("is not a safetensors file: its header claims %llu bytes",
                         static_cast<unsigned long long>(length)));
    if (static_cast<int64_t>(length) > file_.size() - 8)
      refuse("is truncated within its header");
    data_begin_ = 8 + static_cast<int64_t>(length);
    std::string text(length, '\0');
    file_.read(8, text.data(), static_cast<int64_t>(length));
    return text;
  }

  // The library keeps the last of two equal keys; a duplicate must be an error.
  json parse(const std::string &text) {
    std::set<std::string> names;
    std::string duplicate;
    auto note = [&](int depth, json::parse_event_t event, json &value) {
      if (depth == 1 && event == json::parse_event_t::key)
        if (!names.insert(value.get<std::string>()).second)
          duplicate = value.get<std::string>();
    };
    json header = bounded_json(text, deepest_header, note);
    if (!header.is_object())
      refuse("has a damaged header");
    if (!duplicate.empty())
      refuse("names tensor '" + duplicate + "' twice");
    return header;
  }

  void metadata(const json &entry, safetensors_index &index) {
    if (!entry.is_object())
      refuse("has damaged metadata");
    for (auto &[key, value] : entry.items()) {
      if (!value.is_string())
        refuse("has damaged metadata");
      index.metadata.emplace(key, value.get<std::string>());
    }
  }

  static bool natural(const json &value) {
    return value.is_number_unsigned() && value.get<uint64_t>() <= INT64_MAX;
  }

  stored_tensor tensor(const std::string &name, const json &entry) {
    auto damaged = [&]() { refuse("tensor '" + name + "' has a damaged entry"); };
    if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") ||
        !entry.contains("shape") || !entry.contains("data_offsets"))
      damaged();
    const json &shape = entry["shape"], &range = entry["data_offsets"];
    if (!entry["dtype"].is_string() || !shape.is_array() || !range.is_array() ||
        range.size() != 2 || !natural(range[0]) || !natural(range[1]))
      damaged();
    stored_tensor result;
    result.type = entry["dtype"].get<std::string>();
    int64_t bytes = bytes_of_stored(result.type);
    if (bytes == 0)
      refuse("tensor '" + name + "' has unknown type '" + result.type + "'");
    for (const json &extent : shape) {
      if (!natural(extent))
        damaged();
      result.shape.push_back(extent.get<int64_t>());
      if (__builtin_mul_overflow(bytes, result.shape.back(), &bytes))
        refuse("tensor '" + name + "' has a shape that overflows");
    }
    int64_t begin = range[0].get<int64_t>(), end = range[1].get<int64_t>();
    if (begin > end || end > file_.size() - data_begin_)
      refuse("tensor '" + name + "' lies outside the file");
    if (end - begin != bytes)
      refuse("tensor '" + name + "' has a byte range that does not fit its shape");
    result.offset = data_begin_ + begin;
    result.bytes = bytes;
    return result;
  }

  void check_cover(const safetensors_index &index) {
    std::vector<std::pair<int64_t, int64_t>> ranges;
    for (auto &[name, tensor] : index.tensors)
      ranges.emplace_back(tensor.offset, tensor.offset + tensor.bytes);
    std::sort(ranges.begin(), ranges.end());
    int64_t end = data_begin_;
    for (auto &range : ranges) {
      if (range.first != end)
        refuse(range.first < end ? "has tensors that overlap"
                                 : "has bytes that belong to no tensor");
      end = range.second;
    }
    if (end != file_.size())
      refuse("has bytes that belong to no tensor");
  }

  const input_file &file_;
  int64_t data_begin_ = 0;
};

// The checksum of what is read.
class running_checksum {
public:
  void add(const void *data, int64_t bytes) {
    sum_ = crc32c(sum_, data, static_cast<size_t>(bytes));
    bytes_ += bytes;
  }
  int64_t bytes() const { return bytes_; }
  std::string digits() const { return format_text("%08x", sum_); }

private:
  uint32_t sum_ = 0;
  int64_t bytes_ = 0;
};

void read_converted(const input_file &file, int64_t offset, file_type from, data_type to,
                    char *target, int64_t count, running_checksum &checksum) {
  constexpr int64_t piece = 16384; // elements
  const int64_t width = bytes_of(from);
  std::vector<char> buffer(static_cast<size_t>(piece * width));
  for (int64_t first = 0; first < count; first += piece) {
    int64_t length = std::min(piece, count - first);
    file.read(offset + first * width, buffer.data(), length * width);
    checksum.add(buffer.data(), length * width);
    convert(from, buffer.data(), to, target + first * bytes_of(to), length);
  }
}

bool fills(file_type from, data_type to, taken_types types) {
  return types == taken_types::all_floats ? converts_by_rounding(from, to)
                                          : from == file_type::f32 && to == data_type::f64;
}

} // namespace

std::string safetensors_header(const std::vector<tensor_view> &tensors,
                               const std::map<std::string, std::string> &metadata) {
  std::string text = "{";
  if (!metadata.empty())
    text += "\"__metadata__\":" + json(metadata).dump() + (tensors.empty() ? "" : ",");
  int64_t offset = 0;
  for (const tensor_view &tensor : tensors) {
    text += (offset || &tensor != tensors.data() ? "," : "") + json(tensor.name).dump() +
            ":{\"dtype\":\"" + safetensors_name_of(tensor.type) +
            "\",\"shape\":" + json(tensor.shape).dump() + ",\"data_offsets\":[" +
            std::to_string(offset) + "," + std::to_string(offset + tensor.bytes) + "]}";
    offset += tensor.bytes;
  }
  text += "}";
  while ((text.size() + 8) % data_alignment != 0)
    text += ' ';
  std::string prefix(8, '\0');
  for (size_t byte = 0; byte < 8; ++byte)
    prefix[byte] = static_cast<char>(text.size() >> (8 * byte));
  return prefix + text;
}

std::optional<file_type> data_type_of_stored(const std::string &name) {
  for (const data_type_row &row : data_type_rows)
    if (name == row.safetensors)
      return row.type;
  return std::nullopt;
}

safetensors_index read_safetensors_index(const input_file &file) {
  return index_reader(file).read();
}

void read_tensor(const input_file &file, const safetensors_index &index, const tensor_view &target,
                 arena_access &arenas, taken_types types) {
  auto found = index.tensors.find(target.name);
  if (found == index.tensors.end())
    file.refuse("has no tensor '" + target.name + "'");
  const stored_tensor &stored = found->second;
  if (stored.shape != target.shape)
    file.refuse("tensor '" + target.name + "' has shape " + shape_text(stored.shape) +
                "; the model has " + shape_text(target.shape));
  bool same = stored.type == safetensors_name_of(target.type);
  const std::optional<file_type> type = data_type_of_stored(stored.type);
  if (!same && !(type && fills(*type, target.type, types)))
    file.refuse("tensor '" + target.name + "' has type " + stored.type + "; the model has " +
                safetensors_name_of(target.type));
  const auto expected = index.metadata.find(tensor_checksum_prefix + target.name);
  running_checksum checksum;
  in_transfers(target.bytes, [&](int64_t begin, int64_t bytes) {
    arenas.write(target.data + begin, bytes, [&](char *host) {
      const int64_t width = bytes_of(target.type);
      if (!same)
        return read_converted(file, stored.offset + begin / width * bytes_of(*type), *type,
                              target.type, host, bytes / width, checksum);
      file.read(stored.offset + begin, host, bytes);
      if (expected != index.metadata.end())
        checksum.add(host, bytes);
    });
  });
  // Ranks that share the arena may leave the reading to one of them.
  if (expected != index.metadata.end() && checksum.bytes() == stored.bytes &&
      checksum.digits() != expected->second)
    file.refuse("tensor '" + target.name +
                "' has other values than its checksum says\n  try: the file as it was written, or "
                "without the entry " +
                expected->first + " of its metadata");
}

} // namespace trainc
