// SPDX-License-Identifier: Apache-2.0
//
// trainc_model.h for C++20: an instance that destroys itself, spans for memory, exceptions for
// statuses. Everything here calls the C interface, whose comments say what it does.
#ifndef TRAINC_MODEL_HPP
#define TRAINC_MODEL_HPP

#include "trainc_model.h"

#include <cmath>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

// What a call threw: a status of the C interface and its message.
struct trainc_model_error : std::runtime_error {
  trainc_model_error(int status, const std::string &message)
      : std::runtime_error(message), status(status) {}
  int status;
};

// A tensor of an instance: its name, NumPy's name of its type, its sizes.
struct trainc_model_info {
  std::string name, type;
  std::vector<int64_t> shape;
  int64_t bytes;
};

class trainc_model_instance {
public:
  using kind = trainc_model_kind;
  using options = trainc_model_options;
  using result = trainc_model_result;

  // Defaults: all fields of options but its size are 0.
  explicit trainc_model_instance(options with = {}) {
    with.size = sizeof with;
    trainc_model *made = nullptr;
    const int status = trainc_model_create(&with, &made);
    own_.reset(made);
    if (status != TRAINC_MODEL_OK)
      throw trainc_model_error(status, trainc_model_message(made));
  }

  trainc_model *get() const { return own_.get(); }
  // Of the last call that did not throw: a warning, or nothing.
  std::string warning() const { return trainc_model_message(get()); }

  // ---- tensors
  std::vector<trainc_model_info> describe(kind of) const {
    std::vector<trainc_model_info> all;
    for (int64_t i = 0; i < trainc_model_count(get(), of); ++i) {
      trainc_model_tensor tensor;
      check(trainc_model_describe(get(), of, i, &tensor));
      all.push_back({tensor.name, tensor.type,
                     std::vector<int64_t>(tensor.shape, tensor.shape + tensor.rank), tensor.bytes});
    }
    return all;
  }
  int64_t bytes(kind of) const { return trainc_model_bytes(get(), of); }

  template <typename Values> void set_input(const std::string &name, const Values &values) {
    check_type<element_of<Values>>(TRAINC_MODEL_INPUTS, name);
    const std::span<const std::byte> from = bytes_of(values);
    check(trainc_model_set_input(get(), name.c_str(), from.data(), size_of(from)));
  }
  // From memory of the host, or of the GPU that the model computes on.
  void set_input(const std::string &name, const void *from, int64_t size) {
    check(trainc_model_set_input(get(), name.c_str(), from, size));
  }
  template <typename Values> void write(kind of, const std::string &name, const Values &values) {
    check_type<element_of<Values>>(of, name);
    const std::span<const std::byte> from = bytes_of(values);
    check(trainc_model_write(get(), of, name.c_str(), from.data(), size_of(from)));
  }
  template <typename T> std::vector<T> read(kind of, const std::string &name) const {
    check_type<T>(of, name);
    for (int64_t i = 0; i < trainc_model_count(get(), of); ++i) {
      trainc_model_tensor tensor;
      check(trainc_model_describe(get(), of, i, &tensor));
      if (name == tensor.name) {
        std::vector<T> values(static_cast<size_t>(tensor.bytes) / sizeof(T));
        check(trainc_model_read(get(), of, name.c_str(), values.data(), tensor.bytes));
        return values;
      }
    }
    check(trainc_model_read(get(), of, name.c_str(), nullptr, 0)); // says which names there are
    return {};
  }
  // Tensors of a kind side by side, in the order of `describe`: for sums over instances. T is
  // float, or double of a library for f64.
  template <typename T = float> std::vector<T> read_all(kind of) const {
    check_types<T>(of);
    std::vector<T> values(static_cast<size_t>(bytes(of)) / sizeof(T));
    check(trainc_model_read_all(get(), of, values.data(), bytes(of)));
    return values;
  }
  template <typename T = float> void write_all(kind of, const std::vector<T> &values) {
    check_types<T>(of);
    check(trainc_model_write_all(get(), of, values.data(), size_of(bytes_of(values))));
  }
  // The instance's own memory, without a copy; of a library for CUDA addresses of the GPU.
  template <typename T> std::span<T> data(kind of, const std::string &name) {
    check_type<T>(of, name);
    for (const trainc_model_info &info : describe(of))
      if (void *place = info.name == name ? trainc_model_data(get(), of, name.c_str()) : nullptr)
        return {static_cast<T *>(place), static_cast<size_t>(info.bytes) / sizeof(T)};
    throw trainc_model_error(TRAINC_MODEL_USAGE, name + ": has no place of its own");
  }

  // ---- work
  double forward_backward() {
    double loss = 0;
    check(trainc_model_forward_backward(get(), &loss));
    return loss;
  }
  result update() {
    result step = {};
    check(trainc_model_update(get(), &step));
    return step;
  }
  result step() {
    result step = {};
    check(trainc_model_step(get(), &step));
    return step;
  }
  void discard() { check(trainc_model_discard(get())); }
  double evaluate() {
    double loss = 0;
    check(trainc_model_evaluate(get(), &loss));
    return loss;
  }
  double metric(const std::string &name) const {
    double mean = NAN;
    check(trainc_model_metric(get(), name.c_str(), &mean, nullptr));
    return mean;
  }

  void set(const std::string &name, double value) {
    check(trainc_model_set(get(), name.c_str(), value));
  }
  double value_of(const std::string &name) const {
    double value = NAN;
    check(trainc_model_get(get(), name.c_str(), &value));
    return value;
  }

  // ---- files
  void save(const std::string &folder) { check(trainc_model_save(get(), folder.c_str())); }
  void load(const std::string &path) { check(trainc_model_load(get(), path.c_str())); }
  void save_state_dict(const std::string &path) {
    check(trainc_model_save_state_dict(get(), path.c_str()));
  }
  void save_gradients(const std::string &path) {
    check(trainc_model_save_gradients(get(), path.c_str()));
  }
  void save_optimizer_state(const std::string &path) {
    check(trainc_model_save_optimizer_state(get(), path.c_str()));
  }
  void load_state_dict(const std::string &path) {
    check(trainc_model_load_state_dict(get(), path.c_str()));
  }
  void load_optimizer_state(const std::string &path) {
    check(trainc_model_load_optimizer_state(get(), path.c_str()));
  }
  void export_model(const std::string &path) { check(trainc_model_export(get(), path.c_str())); }

private:
  struct destroyer {
    void operator()(trainc_model *instance) const { trainc_model_destroy(instance); }
  };
  void check(int status) const {
    if (status == TRAINC_MODEL_BUSY)
      throw trainc_model_error(status, "another thread is in a call of this instance");
    if (status != TRAINC_MODEL_OK)
      throw trainc_model_error(status, trainc_model_message(get()));
  }
  template <typename Values>
  using element_of = std::remove_cvref_t<decltype(*std::data(std::declval<const Values &>()))>;
  // As NumPy calls it.
  template <typename T> static std::string type_name() {
    if constexpr (std::is_same_v<T, bool>)
      return "bool";
    else
      return (std::is_floating_point_v<T> ? "float"
              : std::is_signed_v<T>       ? "int"
                                          : "uint") +
             std::to_string(8 * sizeof(T));
  }
  template <typename T> static void check_type(const trainc_model_info &info) {
    if (info.type != type_name<T>())
      throw trainc_model_error(TRAINC_MODEL_USAGE, info.name + ": has elements of " + info.type +
                                                       ", not of " + type_name<T>());
  }
  // Of a name that there is not, other calls say which there are.
  template <typename T> void check_type(kind of, const std::string &name) const {
    for (const trainc_model_info &info : describe(of))
      if (info.name == name)
        check_type<T>(info);
  }
  template <typename T> void check_types(kind of) const {
    for (const trainc_model_info &info : describe(of))
      check_type<T>(info);
  }
  template <typename Values> static std::span<const std::byte> bytes_of(const Values &values) {
    return std::as_bytes(std::span(std::data(values), std::size(values)));
  }
  static int64_t size_of(std::span<const std::byte> bytes) {
    return static_cast<int64_t>(bytes.size());
  }

  std::unique_ptr<trainc_model, destroyer> own_;
};

#endif
