// SPDX-License-Identifier: Apache-2.0
//
// Formats of data files, and several files as one array.
#include "runtime/data/data_array.h"

#include "runtime/data/data_manifest.h"
#include "runtime/data/llmc.h"
#include "runtime/failure.h"
#include "runtime/files/conversion.h"
#include "runtime/files/safetensors.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <glob.h>

namespace trainc {
namespace {

constexpr const char *safetensors_ending = ".safetensors";

// FILE.safetensors:TENSOR apart; no tensor where the name is that of a file.
std::pair<std::string, std::string> apart(const std::string &name) {
  size_t colon = name.find(std::string(safetensors_ending) + ":");
  if (colon == std::string::npos || exists(name))
    return {name, ""};
  colon += strlen(safetensors_ending);
  return {name.substr(0, colon), name.substr(colon + 1)};
}

// Numbers within names by their value, so that shard 10 comes after shard 9.
bool comes_before(const std::string &a, const std::string &b) {
  auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!is_digit(a[i]) || !is_digit(b[j])) {
      if (a[i] != b[j])
        return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    auto number = [&](const std::string &text, size_t &at) { // its digits without leading zeros
      while (at < text.size() && text[at] == '0')
        ++at;
      size_t begin = at;
      while (at < text.size() && is_digit(text[at]))
        ++at;
      return text.substr(begin, at - begin);
    };
    std::string x = number(a, i), y = number(b, j);
    if (x.size() != y.size())
      return x.size() < y.size();
    if (x != y)
      return x < y;
  }
  size_t left_of_a = a.size() - i, left_of_b = b.size() - j;
  return left_of_a != left_of_b ? left_of_a < left_of_b : a < b;
}

[[noreturn]] void refuse_array(const std::string &path, const std::string &why) {
  throw failure(exit_data, path + ": " + why);
}

// One file, described: `first` of the piece is not known yet.
struct described {
  data_array::piece piece;
  file_type type;
  std::vector<int64_t> shape;
};

described describe_npy(std::unique_ptr<input_file> file) {
  npy_header header = read_npy_header(*file);
  return {
      {std::move(file), header.data_offset, 0, header.element_count}, header.type, header.shape};
}

described describe_safetensors(std::unique_ptr<input_file> file, const std::string &tensor) {
  const std::string &path = file->path();
  safetensors_index index = read_safetensors_index(*file);
  auto found = index.tensors.find(tensor);
  if (found == index.tensors.end()) {
    std::string known;
    for (auto &[name, stored] : index.tensors)
      if (known.size() < 200)
        known += (known.empty() ? "" : ", ") + name;
    refuse_array(path, "has no tensor '" + tensor +
                           "'\n  try: FILE.safetensors:NAME, with one of " + known);
  }
  const stored_tensor &stored = found->second;
  if (const std::optional<file_type> type = data_type_of_stored(stored.type)) {
    int64_t count = stored.bytes / bytes_of(*type);
    return {{std::move(file), stored.offset, 0, count}, *type, stored.shape};
  }
  refuse_array(path, "tensor '" + tensor + "' has dtype " + stored.type +
                         ", which data cannot have\n  try: numpy.float32 or an integer type");
}

const llmc_format *llmc_format_of(const input_file &file, llmc_header &head) {
  if (file.size() < llmc_header_bytes)
    return nullptr;
  file.read(0, &head, sizeof head);
  for (const llmc_format &format : llmc_formats)
    if (head.magic == format.magic)
      return &format;
  return nullptr;
}

described describe_llmc(std::unique_ptr<input_file> file, const llmc_format &format,
                        const llmc_header &head, std::optional<file_type> asked) {
  const std::string &path = file->path();
  if (head.version != format.version)
    refuse_array(path, format_text("has llm.c's header of version %d, expected %d", head.version,
                                   format.version));
  if (asked && *asked != format.type)
    refuse_array(path, std::string("has llm.c's header, whose tokens are ") + name_of(format.type) +
                           "; option --token-type says " + name_of(*asked) +
                           "\n  try: without --token-type");
  int64_t bytes = file->size() - llmc_header_bytes, wanted = head.tokens * bytes_of(format.type);
  if (head.tokens < 0 || bytes != wanted)
    refuse_array(path,
                 format_text("its header says %d tokens, %lld bytes behind it, but there are %lld",
                             head.tokens, static_cast<long long>(wanted),
                             static_cast<long long>(bytes)));
  return {{std::move(file), llmc_header_bytes, 0, head.tokens}, format.type, {head.tokens}};
}

described describe_raw(std::unique_ptr<input_file> file, std::optional<file_type> asked,
                       int64_t vocabulary) {
  const std::string &path = file->path();
  if (!asked)
    if (std::optional<data_manifest> manifest = read_data_manifest(path))
      asked = manifest->type;
  if (!asked && vocabulary > 256)
    refuse_array(path,
                 format_text("no header says what type its tokens have, and bytes cannot fill a "
                             "vocabulary of %lld\n  try: --token-type u16 (nanoGPT's .bin), or "
                             "--token-type u8 where they are bytes nevertheless",
                             static_cast<long long>(vocabulary)));
  file_type type = asked.value_or(file_type::u8);
  if (file->size() % bytes_of(type) != 0)
    refuse_array(path, std::to_string(file->size()) + " bytes are not a whole number of " +
                           name_of(type) + " tokens");
  int64_t count = file->size() / bytes_of(type);
  return {{std::move(file), 0, 0, count}, type, {count}};
}

described describe_tokens(std::unique_ptr<input_file> file, std::optional<file_type> asked,
                          int64_t vocabulary) {
  llmc_header head;
  if (const llmc_format *format = llmc_format_of(*file, head))
    return describe_llmc(std::move(file), *format, head, asked);
  return describe_raw(std::move(file), asked, vocabulary);
}

void add(data_array &array, described &&next) {
  const std::string &path = next.piece.file->path();
  std::vector<int64_t> rest = array.shape, own = next.shape;
  if (array.pieces.empty()) {
    array.type = next.type;
    array.shape = next.shape;
  } else {
    const std::string &first = array.pieces.front().file->path();
    if (next.type != array.type)
      refuse_array(path, std::string("dtype ") + name_of(next.type) + ", but " + first + " has " +
                             name_of(array.type));
    if (own.empty() || rest.empty())
      refuse_array(path, "is one number, no part of an array");
    own[0] = rest[0];
    if (own != rest)
      refuse_array(path, "shape " + shape_text(next.shape) + ", but " + first + " has " +
                             shape_text(array.shape) + "; only the first axis may differ");
    array.shape[0] += next.shape[0];
  }
  next.piece.first =
      array.pieces.empty() ? 0 : array.pieces.back().first + array.pieces.back().count;
  check_data_manifest(*next.piece.file, next.type, next.shape);
  array.pieces.push_back(std::move(next.piece));
}

// Opens each file that the name stands for; `describe` makes of it what it holds.
template <typename Describe> data_array open_pieces(const std::string &name, Describe describe) {
  data_array array;
  array.name = name;
  for (const std::string &path : files_of(name)) {
    auto file = std::make_unique<input_file>(path, exit_data);
    if (file->size() == 0)
      refuse_array(path, "is empty");
    add(array, describe(std::move(file)));
  }
  return array;
}

} // namespace

std::vector<std::string> files_of(const std::string &name) {
  std::string pattern = apart(name).first;
  if (exists(pattern) || pattern.find_first_of("*?[") == std::string::npos)
    return {pattern};
  glob_t found = {};
  int status = glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (status != 0 || files.empty())
    refuse_array(pattern,
                 status == GLOB_NOMATCH || status == 0 ? "fits no file" : "cannot be searched");
  std::sort(files.begin(), files.end(), comes_before);
  return files;
}

weighted_name weighted(const std::string &item) {
  size_t colon = item.rfind(':');
  double weight = 0;
  if (colon == std::string::npos || exists(item))
    return {item, 0};
  const char *begin = item.data() + colon + 1, *end = item.data() + item.size();
  auto [stopped, error] = std::from_chars(begin, end, weight);
  if (error != std::errc() || stopped != end)
    return {item, 0};
  if (!(weight > 0) || std::isinf(weight))
    throw failure(exit_usage, item + ": a weight is a number above 0");
  return {item.substr(0, colon), weight};
}

int64_t data_array::element_count() const {
  return pieces.empty() ? 0 : pieces.back().first + pieces.back().count;
}

void data_array::read(int64_t element, int64_t count, char *target) const {
  auto holds = [](int64_t at, const piece &part) { return at < part.first; };
  auto part = std::upper_bound(pieces.begin(), pieces.end(), element, holds);
  if (part != pieces.begin())
    --part;
  int64_t bytes = bytes_of(type);
  while (count > 0 && part != pieces.end()) {
    int64_t within = element - part->first, now = std::min(count, part->count - within);
    part->file->read(part->offset + within * bytes, target, now * bytes);
    element += now;
    count -= now;
    target += now * bytes;
    ++part;
  }
}

data_array::place data_array::place_of(int64_t element) const {
  const piece *part = pieces.data();
  for (const piece &other : pieces)
    if (other.count > 0 && other.first <= element)
      part = &other;
  int64_t within = element - part->first;
  return {&part->file->path(), within, part->offset + within * bytes_of(type)};
}

data_array open_array(const std::string &name, const std::string &tensor) {
  auto [path, given] = apart(name);
  std::string wanted = given.empty() ? tensor : given;
  return open_pieces(name, [&](std::unique_ptr<input_file> file) {
    if (file->path().ends_with(safetensors_ending))
      return describe_safetensors(std::move(file), wanted);
    return describe_npy(std::move(file));
  });
}

data_array open_tokens(const std::string &name, std::optional<file_type> raw_type,
                       int64_t vocabulary) {
  std::string tensor = apart(name).second;
  data_array array = open_pieces(name, [&](std::unique_ptr<input_file> file) {
    if (file->path().ends_with(safetensors_ending))
      return describe_safetensors(std::move(file), tensor.empty() ? "tokens" : tensor);
    if (file->path().ends_with(".npy"))
      return describe_npy(std::move(file));
    return describe_tokens(std::move(file), raw_type, vocabulary);
  });
  if (array.shape.size() != 1)
    refuse_array(name, "shape " + shape_text(array.shape) + ", expected a flat array [tokens]");
  return array;
}

} // namespace trainc
