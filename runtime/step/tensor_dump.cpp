// SPDX-License-Identifier: Apache-2.0
#include "runtime/step/tensor_dump.h"

#include "runtime/failure.h"
#include "runtime/files/output_file.h"

#include <cinttypes>
#include <cstring>
#include <new>
#include <utility>

namespace trainc {
namespace {

// As the module has the tensor, each number rounded to its type.
template <typename Element> void copy_numbers(const watched_values &of, std::vector<char> &to) {
  const auto *now = reinterpret_cast<const Element *>(of.data);
  const auto *before = reinterpret_cast<const Element *>(of.before);
  auto *numbers = reinterpret_cast<Element *>(to.data());
  const auto count = static_cast<int64_t>(to.size() / sizeof(Element));
  const auto [rows, columns] = of.matrix;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = rows == 0 ? i : i % columns * rows + i / columns;
    const double number = static_cast<double>(now[i]);
    numbers[place] =
        static_cast<Element>(before ? number - static_cast<double>(before[i]) : number * of.scale);
  }
}

std::vector<char> contents_of(const watched_values &values) {
  int64_t count = 1;
  for (int64_t size : values.tensor.shape)
    count *= size;
  std::vector<char> bytes(static_cast<size_t>(count * bytes_of(values.tensor.type)));
  const bool is_changed = values.parameter >= 0 || values.scale != 1; // f32 or f64
  if (is_changed && values.tensor.type == data_type::f64)
    copy_numbers<double>(values, bytes);
  else if (is_changed)
    copy_numbers<float>(values, bytes);
  else
    memcpy(bytes.data(), values.data, bytes.size());
  return bytes;
}

std::string path_of(const std::string &folder, int rank, int64_t step) {
  return format_text("%s/rank-%d-step-%08" PRId64 ".safetensors", folder.c_str(), rank, step);
}

constexpr const char *missing_memory =
    ": cannot be written: there is no memory to hold the tensors";

} // namespace

void tensor_dump::take(const watched_values &values, statistics_taker &) {
  if (!has_failed_)
    try {
      hold(values);
    } catch (const std::bad_alloc &) {
      give_up(path_of(folder_, rank_, values.step) + missing_memory);
    }
}

void tensor_dump::hold(const watched_values &values) {
  std::string name = values.tensor.name;
  if (values.has_several_batches && values.micro_batch >= 0)
    name = "micro_batch_" + std::to_string(values.micro_batch) + "/" + name;
  if (!known_.insert(name).second) // what several functions read
    return;
  std::vector<char> &bytes = contents_.emplace_back(contents_of(values));
  tensors_.push_back({name, values.tensor.type, values.tensor.shape, bytes.data(),
                      static_cast<int64_t>(bytes.size())});
}

void tensor_dump::write(int64_t step) {
  const std::string path = path_of(folder_, rank_, step);
  if (!has_failed_)
    try {
      write_file(path, step);
    } catch (const failure &error) {
      give_up(error.message);
    } catch (const std::bad_alloc &) {
      give_up(path + missing_memory);
    }
  forget();
}

void tensor_dump::write_file(const std::string &path, int64_t step) const {
  output_file file(path);
  file.write(safetensors_header(tensors_,
                                {{"step", std::to_string(step)}, {content_entry, content_dump}}));
  for (const tensor_view &tensor : tensors_)
    file.write(tensor.data, tensor.bytes);
  file.publish();
}

void tensor_dump::give_up(std::string problem) {
  has_failed_ = true;
  problem_ = std::move(problem);
  forget();
}

void tensor_dump::forget() {
  tensors_.clear();
  contents_.clear();
  known_.clear();
}

std::string tensor_dump::take_problem() { return std::exchange(problem_, ""); }

} // namespace trainc
