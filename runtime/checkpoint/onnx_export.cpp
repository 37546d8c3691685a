// SPDX-License-Identifier: Apache-2.0
//
// The ONNX writer. It knows as much of protobuf as it needs: it copies the
// template's fields, opens up the one of the graph and appends initializers to it.
// Weights go from the arena to the file without a copy of the model in memory.
#include "runtime/checkpoint/onnx_export.h"

#include "runtime/checkpoint/adapters.h"
#include "runtime/checkpoint/quantized_weights.h"
#include "runtime/failure.h"
#include "runtime/files/data_types.h"
#include "runtime/files/output_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <vector>

namespace trainc {
namespace {

enum wire_type { wire_varint = 0, wire_fixed64 = 1, wire_bytes = 2, wire_fixed32 = 5 };
constexpr uint64_t model_graph = 7;
constexpr uint64_t graph_initializer = 5;
constexpr uint64_t tensor_dims = 1, tensor_data_type = 2, tensor_name = 8, tensor_raw_data = 9,
                   tensor_external_data = 13, tensor_data_location = 14;
constexpr uint64_t entry_key = 1, entry_value = 2;
constexpr uint64_t location_external = 1;
constexpr int64_t external_alignment = 4096; // so that a reader can map each tensor

void put_varint(std::string &text, uint64_t value) {
  for (; value >= 128; value >>= 7)
    text += static_cast<char>(value | 128);
  text += static_cast<char>(value);
}
void put_number(std::string &text, uint64_t field, uint64_t value) {
  put_varint(text, field << 3 | wire_varint);
  put_varint(text, value);
}
void put_length(std::string &text, uint64_t field, uint64_t length) {
  put_varint(text, field << 3 | wire_bytes);
  put_varint(text, length);
}
void put_bytes(std::string &text, uint64_t field, const std::string &value) {
  put_length(text, field, value.size());
  text += value;
}
void put_entry(std::string &text, const std::string &key, const std::string &value) {
  std::string entry;
  put_bytes(entry, entry_key, key);
  put_bytes(entry, entry_value, value);
  put_bytes(text, tensor_external_data, entry);
}

// A field of the template: its place with tag and length, and its content.
struct field {
  uint64_t number;
  size_t begin, content, end;
};

class template_reader {
public:
  explicit template_reader(const std::string &text) : text_(text) {}
  bool next(field &result) {
    if (at_ == text_.size())
      return false;
    result.begin = at_;
    uint64_t tag = varint(), length = 0;
    result.number = tag >> 3;
    result.content = at_;
    switch (tag & 7) {
    case wire_varint:
      varint();
      break;
    case wire_fixed64:
      length = 8;
      break;
    case wire_bytes:
      length = varint();
      result.content = at_;
      break;
    case wire_fixed32:
      length = 4;
      break;
    default:
      damaged();
    }
    if (length > text_.size() - at_)
      damaged();
    at_ += length;
    result.end = at_;
    return true;
  }

private:
  [[noreturn]] static void damaged() {
    throw failure(exit_internal, "export_template.onnx beside the trainer is damaged");
  }
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == text_.size())
        damaged();
      auto byte = static_cast<unsigned char>(text_[at_++]);
      value |= uint64_t{byte & 127u} << shift;
      if (byte < 128)
        return value;
    }
    damaged();
  }
  const std::string &text_;
  size_t at_ = 0;
};

struct initializer {
  const export_initializer *entry;
  const tensor_place *tensor;
  std::vector<int64_t> shape; // of the parameter, as floats
  data_type type;             // in the file
  const char *data;           // without adapters
  int64_t external_offset;
  std::function<std::vector<char>()> merged; // the values with adapters; empty: without any

  int64_t count() const { return elements_of(shape); }
  int64_t bytes() const { return count() * bytes_of(type); }

  std::string header(const std::string &external_file) const {
    std::string text;
    std::vector<int64_t> sizes = shape;
    if (entry->transposed)
      std::reverse(sizes.begin(), sizes.end());
    if (entry->integer_type)
      sizes.assign(entry->integer_shape, entry->integer_shape + entry->integer_rank);
    for (int64_t size : sizes)
      put_number(text, tensor_dims, static_cast<uint64_t>(size));
    put_number(text, tensor_data_type,
               entry->integer_type ? static_cast<uint64_t>(entry->integer_type)
                                   : row_of(type).onnx);
    put_bytes(text, tensor_name, entry->onnx_name);
    if (external_file.empty()) {
      put_length(text, tensor_raw_data, static_cast<uint64_t>(bytes()));
    } else {
      put_entry(text, "location", external_file);
      put_entry(text, "offset", std::to_string(external_offset));
      put_entry(text, "length", std::to_string(bytes()));
      put_number(text, tensor_data_location, location_external);
    }
    return text;
  }

  bool is_beyond_range() const {
    if (type != data_type::f16 && type != data_type::bf16)
      return false;
    const std::vector<char> with_adapters = merged();
    const elements values = those_of(with_adapters);
    return type == data_type::f16 ? rounds_to_infinity<float16>(values)
                                  : rounds_to_infinity<bfloat16>(values);
  }

  void write_data(output_file &out) const {
    const std::vector<char> with_adapters = merged();
    write_values(out, those_of(with_adapters));
  }

private:
  struct elements {
    const char *data;
    data_type type; // in memory
  };

  elements those_of(const std::vector<char> &with_adapters) const {
    return with_adapters.empty() ? elements{data, tensor->type}
                                 : elements{with_adapters.data(), type_of_merged(tensor->type)};
  }

  void write_values(output_file &out, const elements &values) const {
    if (!entry->transposed) {
      write_elements(out, values, count());
      return;
    }
    int64_t rows = shape[0], columns = shape[1], size = bytes_of(values.type);
    std::vector<char> column(static_cast<size_t>(rows * size));
    for (int64_t c = 0; c < columns; ++c) {
      for (int64_t r = 0; r < rows; ++r)
        memcpy(column.data() + r * size, values.data + (r * columns + c) * size,
               static_cast<size_t>(size));
      write_elements(out, {column.data(), values.type}, rows);
    }
  }

  void write_elements(output_file &out, const elements &values, int64_t count) const {
    if (type == values.type)
      out.write(values.data, count * bytes_of(type));
    else if (type == data_type::f16)
      write_rounded<float16>(out, values, count);
    else if (type == data_type::bf16)
      write_rounded<bfloat16>(out, values, count);
    else
      write_rounded<float>(out, values, count);
  }

  template <typename Number> bool rounds_to_infinity(const elements &values) const {
    for (int64_t i = 0; i < count(); ++i) {
      const double value = number_at(values.type, values.data + i * bytes_of(values.type));
      const auto rounded = static_cast<Number>(static_cast<float>(value));
      if (std::isfinite(value) && !std::isfinite(static_cast<float>(rounded)))
        return true;
    }
    return false;
  }

  template <typename Number>
  void write_rounded(output_file &out, const elements &values, int64_t count) const {
    constexpr int64_t chunk = 1 << 16;
    std::vector<Number> rounded(static_cast<size_t>(std::min(chunk, count)));
    for (int64_t begin = 0; begin < count; begin += chunk) {
      const int64_t length = std::min(chunk, count - begin);
      for (int64_t i = 0; i < length; ++i)
        rounded[static_cast<size_t>(i)] = static_cast<Number>(static_cast<float>(
            number_at(values.type, values.data + (begin + i) * bytes_of(values.type))));
      out.write(reinterpret_cast<const char *>(rounded.data()),
                length * static_cast<int64_t>(sizeof(Number)));
    }
  }
};

const tensor_place &parameter_of(const program &program, const export_initializer &entry) {
  for (const parameter_place &parameter : program.parameters)
    if (const tensor_place &tensor = parameter.tensor;
        strcmp(tensor.name, entry.parameter_name) == 0 && (!entry.transposed || tensor.rank == 2))
      return tensor;
  throw failure(exit_internal,
                std::string("exported initializer '") + entry.onnx_name + "' has no parameter");
}

// As floats, where it is integers in memory alone.
std::vector<int64_t> shape_in_export(const program &program, const export_initializer &entry,
                                     const tensor_place &tensor) {
  const quantized_weight *form =
      entry.integer_type ? nullptr : quantized_form(program, tensor.name);
  return form ? shape_of(*form) : shape_of(tensor);
}

data_type type_in_file(const tensor_place &tensor, const export_initializer &entry) {
  if (entry.integer_type)
    return tensor.type;
  const bool is_narrow =
      tensor.type == data_type::bf16 || tensor.type == data_type::f16 || is_integer(tensor.type);
  return entry.rounded_to != data_type::f32 ? entry.rounded_to
         : is_narrow                        ? data_type::f32 // by --frozen-type
                                            : tensor.type;
}

std::vector<initializer> initializers_of(const program &program, const arenas &arenas) {
  std::vector<initializer> result;
  int64_t offset = 0;
  for (const export_initializer &entry : program.exports) {
    const tensor_place &tensor = parameter_of(program, entry);
    const auto merged = [&program, arenas, &entry, name = tensor.name] {
      return entry.integer_type ? std::vector<char>() : merged_values(program, arenas, name);
    };
    result.push_back({&entry, &tensor, shape_in_export(program, entry, tensor),
                      type_in_file(tensor, entry), arenas[tensor.arena] + tensor.offset, offset,
                      merged});
    int64_t end = offset + result.back().bytes();
    offset = (end + external_alignment - 1) / external_alignment * external_alignment;
  }
  return result;
}

void write_external(const std::vector<initializer> &initializers, output_file &data) {
  const std::string zeros(external_alignment, '\0');
  for (const initializer &entry : initializers) {
    data.write(zeros.data(), entry.external_offset - data.written());
    entry.write_data(data);
  }
}

} // namespace

std::vector<std::string> files_of_export(const program &program, const std::string &path,
                                         bool external_data) {
  int64_t weights = 0;
  for (const export_initializer &entry : program.exports)
    weights += elements_of(shape_in_export(program, entry, parameter_of(program, entry))) *
               bytes_of(program.parameter_type); // no less than in the file
  if (external_data || weights > largest_inline_weights)
    return {path, path + ".data"};
  return {path};
}

void warn_of_range(const program &program, const arenas &arenas,
                   const std::function<void(const std::string &)> &warn) {
  std::string names;
  const char *type = nullptr, *verb = "' has";
  for (const initializer &entry : initializers_of(program, arenas))
    if (entry.is_beyond_range()) {
      if (type)
        names += "', '", verb = "' have";
      names += entry.entry->onnx_name;
      type = name_of(entry.type);
    }
  if (type)
    warn("'" + names + verb + " numbers beyond the range of " + type +
         ", which are infinite in the file\n  try: trainc --export-type f32");
}

void export_onnx(const program &program, const arenas &arenas, const std::string &template_path,
                 const std::string &path, bool external_data, file_operations &files) {
  const std::string model = input_file(template_path, exit_internal).whole_text();
  std::vector<initializer> initializers = initializers_of(program, arenas);

  const std::vector<std::string> paths = files_of_export(program, path, external_data);
  std::string data_name;
  external_data = paths.size() > 1;
  if (external_data)
    data_name = paths[1].substr(paths[1].rfind('/') + 1);

  std::string before, graph, after;
  template_reader reader(model);
  for (field part; reader.next(part);)
    if (part.number == model_graph)
      graph += model.substr(part.content, part.end - part.content);
    else
      (graph.empty() ? before : after) += model.substr(part.begin, part.end - part.begin);

  std::vector<std::string> headers;
  uint64_t graph_bytes = graph.size();
  for (const initializer &entry : initializers) {
    std::string header = entry.header(data_name), start;
    uint64_t bytes = header.size() + (external_data ? 0 : static_cast<uint64_t>(entry.bytes()));
    put_length(start, graph_initializer, bytes);
    graph_bytes += start.size() + bytes;
    headers.push_back(start + header);
  }
  put_length(before, model_graph, graph_bytes);

  std::optional<output_file> data;
  if (external_data)
    write_external(initializers, data.emplace(paths[1], files));
  output_file out(path, files);
  out.write(before);
  out.write(graph);
  for (size_t i = 0; i < initializers.size(); ++i) {
    out.write(headers[i]);
    if (!external_data)
      initializers[i].write_data(out);
  }
  out.write(after);
  if (data)
    publish_together({&*data, &out});
  else
    out.publish();
}

} // namespace trainc
