// SPDX-License-Identifier: Apache-2.0
//
// The choice between cuDNN's algorithms and matrix products.
#include "runtime/cuda/convolution_library.h"

#include "runtime/cuda/launch.h"
#include "runtime/cuda/work_place.h"
#include "runtime/failure.h"
#include "runtime/process/signs_of_life.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace trainc {
namespace {

constexpr int through_products = -1; // in place of an algorithm's number
constexpr const char *products_word = "products", *algorithm_word = "algorithm_";

std::string word_of(int algorithm) {
  return algorithm == through_products ? products_word : algorithm_word + std::to_string(algorithm);
}

const char *part_name(convolution_part part) {
  return part == convolution_part::result           ? "convolution"
         : part == convolution_part::input_gradient ? "gradient of a convolution's input"
                                                    : "gradient of a convolution's weight";
}

std::string sizes_text(const int64_t *numbers, int count) {
  std::string text;
  for (int d = 0; d < count; ++d)
    text += (d > 0 ? "x" : "") + std::to_string(numbers[d]);
  return text;
}

const char *number_name(product_number number) {
  return number == product_number::f64   ? "f64"
         : number == product_number::f32 ? "f32"
         : number == product_number::f16 ? "f16"
                                         : "bf16";
}

std::string name_of(const convolution_key &key) {
  const int rank = space_rank(key.shape);
  return std::string(part_name(key.computed())) + " " + sizes_text(key.shape.input.of, 2 + rank) +
         " with " + sizes_text(key.shape.weight.of, 2 + rank);
}

// Everything that an algorithm may depend on, on one line.
std::string problem_of(const convolution_key &key, bool tf32) {
  const int rank = space_rank(key.shape);
  return name_of(key) + " to " + sizes_text(key.shape.result.of, 2 + rank) + " strides " +
         sizes_text(key.shape.strides.of, rank) + " dilations " +
         sizes_text(key.shape.dilations.of, rank) + " pads " +
         sizes_text(key.shape.pads.of, 2 * rank) + " groups " + std::to_string(key.shape.groups) +
         " " + number_name(key.operands) + " to " + number_name(key.result) +
         (tf32 ? " tf32" : "") + " within " + std::to_string(key.scratch_bytes);
}

struct tensor_bytes {
  int64_t first, second, computed;
};

tensor_bytes bytes_of_tensors(const convolution_key &key) {
  const int rank = space_rank(key.shape);
  const int64_t x = count_of(key.shape.input, rank), w = count_of(key.shape.weight, rank),
                y = count_of(key.shape.result, rank);
  const int64_t operand = bytes_of(key.operands), result = bytes_of(key.result);
  switch (key.computed()) {
  case convolution_part::result:
    return {x * operand, w * operand, y * result};
  case convolution_part::input_gradient:
    return {y * operand, w * operand, x * result};
  case convolution_part::weight_gradient:
    return {x * operand, y * operand, w * result};
  }
  return {};
}

void warn_of_products(const std::vector<std::string> &names) {
  if (names.empty())
    return;
  const std::string others = names.size() > 1 ? format_text(" and %zu more", names.size() - 1) : "";
  fprintf(stderr,
          "warning: cuDNN has no algorithm of fixed order for the %s%s: matrix products compute "
          "them\n",
          names[0].c_str(), others.c_str());
}

} // namespace

bool convolution_library::order::operator()(const convolution_key &x,
                                            const convolution_key &y) const {
  return std::memcmp(&x, &y, sizeof x) < 0;
}

void convolution_library::plan(const convolution_key &key, convolution_by_products by_products) {
  plans_.try_emplace(key, planned{by_products, name_of(key), problem_of(key, settings_.tf32),
                                  nullptr, through_products});
}

void convolution_library::find_library(bool speaks) {
  if (!settings_.cudnn)
    return;
  std::string missing;
  maker_ = find_cudnn(missing);
  if (!maker_ && speaks)
    fprintf(stderr, "cuDNN: %s: convolutions go through matrix products\n", missing.c_str());
  if (maker_)
    for (auto &[key, own] : plans_)
      own.own = maker_->make(key, settings_.tf32);
}

// Adopts what is remembered for a convolution, where the library still takes it.
bool convolution_library::find_known(const remembered_choices &choices, planned &own) {
  const std::string *word = choices.find(own.problem);
  if (!word)
    return false;
  std::vector<int> algorithms = own.algorithms();
  algorithms.push_back(through_products);
  const auto known = std::find_if(algorithms.begin(), algorithms.end(),
                                  [&](int algorithm) { return word_of(algorithm) == *word; });
  if (known == algorithms.end())
    return false;
  own.algorithm = *known;
  return true;
}

int convolution_library::fastest(const convolution_key &key, planned &own, device_timing &timing) {
  std::vector<int> algorithms = own.algorithms();
  algorithms.push_back(through_products);
  const tensor_bytes bytes = bytes_of_tensors(key);
  char *memory = timing.reserve(product_workspace_bytes + block_size(key.scratch_bytes) +
                                block_size(bytes.first) + block_size(bytes.second) +
                                block_size(bytes.computed));
  set_product_workspace(memory);
  char *scratch = memory + product_workspace_bytes;
  char *first = scratch + block_size(key.scratch_bytes);
  char *second = first + block_size(bytes.first), *computed = second + block_size(bytes.second);
  timing.fill(first, computed - first, key.operands);
  const convolution_operands operands = {first, second, computed, scratch};
  std::erase_if(algorithms, [&](int algorithm) { // what the library proposes, it may refuse
    own.algorithm = algorithm;
    try {
      run(key, operands);
    } catch (const failure &) {
      return true;
    }
    return false;
  });
  const size_t choice = timing.fastest(algorithms.size(), [&](size_t i) {
    own.algorithm = algorithms[i];
    if (!run(key, operands))
      own.by_products(key, operands);
  });
  set_product_workspace(nullptr);
  return algorithms[choice];
}

void convolution_library::choose_algorithms(remembered_choices &choices) {
  const bool keeps = settings_.timed && !settings_.choice_file.empty();
  device_timing timing(compute_stream(), "convolutions");
  bool any_new = false;
  std::vector<std::string> without;
  for (auto &[key, own] : plans_) {
    const std::vector<int> algorithms = own.algorithms();
    if (algorithms.empty())
      without.push_back(own.name);
    if (find_known(choices, own))
      continue;
    own.algorithm = algorithms.empty() ? through_products
                    : settings_.timed  ? fastest(key, own, timing)
                                       : algorithms[0];
    choices.add(own.problem, word_of(own.algorithm));
    note_work(); // the other ranks wait
    any_new = true;
  }
  warn_of_products(without);
  if (keeps && any_new)
    write_choices(settings_.choice_file, choices);
}

void convolution_library::adopt_algorithms(const remembered_choices &choices) {
  for (auto &[key, own] : plans_)
    if (!find_known(choices, own))
      throw failure(exit_machine, "this rank cannot compute the " + own.name +
                                      " with the algorithm that rank 0 chose\n"
                                      "  try: devices of one kind and one version of cuDNN on "
                                      "all hosts, or --no-cudnn");
}

void convolution_library::choose(communicator &ranks, const std::string &device,
                                 const remembered_choices &products) {
  if (plans_.empty())
    return;
  std::unique_ptr<remembered_choices> choices;
  ranks.together([&] {
    find_library(ranks.rank() == 0);
    choices = std::make_unique<remembered_choices>(device, maker_ ? maker_->version() : "none");
    if (ranks.rank() != 0 || !maker_)
      return;
    choices->add_lines(products.text()); // with all that stands in the file
    choose_algorithms(*choices);
  });
  const std::string chosen = ranks.broadcast(choices->own_lines());
  if (chosen.empty()) // rank 0 has no library
    return;
  choices->add_lines(chosen);
  ranks.together([&] { adopt_algorithms(*choices); });
}

bool convolution_library::run(const convolution_key &key, const convolution_operands &operands) {
  auto found = plans_.find(key);
  if (found == plans_.end())
    throw std::logic_error("a convolution that was not planned");
  planned &own = found->second;
  if (own.algorithm == through_products)
    return false;
  own.own->run(own.algorithm, operands);
  return true;
}

bool queue_by_library(const convolution_key &key, const convolution_operands &operands,
                      convolution_by_products by_products) {
  convolution_library *library = own_work().convolutions.get();
  if (!library)
    throw std::logic_error("a convolution before plan_products");
  if (!own_work().planning)
    return library->run(key, operands);
  library->plan(key, by_products);
  return false;
}

} // namespace trainc
