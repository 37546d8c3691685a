// SPDX-License-Identifier: Apache-2.0
//
// The C interface: what a caller gives is checked, what an instance throws becomes a status and a
// message. A library has these functions under the name of its model (forwards.inc).
#include "runtime/library/interface.h"

#include "runtime/failure.h"
#include "runtime/library/held_signals.h"
#include "runtime/library/instance.h"
#include "runtime/library/kept_gpu.h"
#include "runtime/library/own_team.h"

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <unistd.h>

using namespace trainc;

static_assert(int(TRAINC_MODEL_INTERNAL) == exit_internal &&
              int(TRAINC_MODEL_USAGE) == exit_usage && int(TRAINC_MODEL_DATA) == exit_data &&
              int(TRAINC_MODEL_CHECKPOINT) == exit_checkpoint &&
              int(TRAINC_MODEL_DISK) == exit_disk && int(TRAINC_MODEL_MACHINE) == exit_machine);
static_assert(TRAINC_MODEL_INPUTS == int(library_kind::input) &&
              TRAINC_MODEL_STATES == int(library_kind::state) &&
              TRAINC_MODEL_STATES + 1 == library_kinds);

struct trainc_model {
  std::optional<library_instance> own; // nothing where it could not be made
  std::string message;
  int status = TRAINC_MODEL_OK; // why there is nothing
  std::atomic<bool> is_busy = false;
};

namespace {

// Of the first structure that a release has.
constexpr size_t least_options =
    offsetof(trainc_model_options, stream) + sizeof(trainc_model_options::stream);

// The caller's structure may be an older, shorter one.
instance_options options_of(const trainc_model_options *given) {
  trainc_model_options all = {};
  if (given) {
    if (given->size < least_options || given->size > sizeof all)
      throw failure(exit_usage, "options: size is not that of the structure\n  try: "
                                "{.size = sizeof(options)}");
    memcpy(&all, given, given->size);
  }
  instance_options options;
  options.threads = all.threads;
  options.forward_only = all.forward_only != 0;
  options.seed = all.seed;
  options.micro_batches = all.micro_batches == 0 ? 1 : all.micro_batches;
  options.mean_per_batch = all.mean_per_batch != 0;
  options.no_files = all.no_files != 0;
  options.folder = all.folder ? all.folder : "";
  options.host = {static_cast<char *>(all.memory), all.memory_bytes, all.device, all.stream};
  return options;
}

// The process whose threads have computed: those of a team are not there in one that it forks, and
// libgomp would wait for them for ever.
std::atomic<pid_t> computes = 0;

void check_process(int threads) {
  pid_t before = 0;
  const pid_t own = getpid();
  if (threads > 1 && !computes.compare_exchange_strong(before, own) && before != own)
    throw failure(exit_machine, "this process was forked after a model computed with several "
                                "threads, which it does not have\n  try: instances of one thread; "
                                "or the first step of any after the fork");
}

// Runs `work`; what it throws is a status, and the message.
template <typename Work> int caught(trainc_model &model, const Work &work) noexcept {
  try {
    work();
    return TRAINC_MODEL_OK;
  } catch (const std::exception &error) {
    try {
      const failure known = as_failure(error);
      model.message = known.message;
      return known.code;
    } catch (...) { // no memory for the message
      return TRAINC_MODEL_MACHINE;
    }
  } catch (...) {
    return TRAINC_MODEL_INTERNAL;
  }
}

// A call that changes an instance, or reads what others change.
template <typename Work> int call(trainc_model *model, const Work &work) noexcept {
  if (!model)
    return TRAINC_MODEL_USAGE;
  if (model->is_busy.exchange(true))
    return TRAINC_MODEL_BUSY;
  int status = model->status;
  if (model->own)
    status = caught(*model, [&] {
      model->message.clear();
      const own_team team(model->own->threads());
      const kept_gpu kept;
      model->own->begin_call();
      check_process(model->own->threads());
      work(*model->own);
      model->message = model->own->warning();
    });
  model->is_busy = false;
  return status;
}

// One that computes.
template <typename Work> int compute(trainc_model *model, const Work &work) noexcept {
  return call(model, [&](library_instance &own) {
    const held_signals held;
    work(own);
  });
}

bool is_known(trainc_model_kind kind) {
  return kind >= TRAINC_MODEL_INPUTS && kind <= TRAINC_MODEL_STATES;
}

library_kind kind_of(trainc_model_kind kind) {
  if (!is_known(kind))
    throw failure(exit_usage, format_text("kind: %d is none\n  try: one that the header names",
                                          static_cast<int>(kind)));
  return static_cast<library_kind>(kind);
}

const tensor_view &find(const library_instance &own, trainc_model_kind kind, const char *name) {
  return own.tensor(kind_of(kind), name ? name : "");
}

int64_t bytes_of_all(std::span<const tensor_view> tensors) {
  int64_t bytes = 0;
  for (const tensor_view &tensor : tensors)
    bytes += tensor.bytes;
  return bytes;
}

void check_memory_of_caller(const char *what, const void *memory, int64_t bytes, int64_t expected) {
  if (!memory && expected > 0)
    throw failure(exit_usage, std::string(what) + ": the address is null");
  if (bytes != expected)
    throw failure(exit_usage,
                  format_text("%s: %lld bytes are given\n  try: %lld", what,
                              static_cast<long long>(bytes), static_cast<long long>(expected)));
}

// Where the caller wants it.
template <typename Value> void give(Value *to, const Value &value) {
  if (to)
    *to = value;
}

void give_result(const library_instance &own, const instance_step &step,
                 trainc_model_result *result) {
  give(result, {step.loss, step.gradient_norm, step.applied ? 1 : 0, own.step()});
}

const char *text_or(const char *text, const char *what) {
  if (!text)
    throw failure(exit_usage, std::string(what) + ": is null");
  return text;
}

} // namespace

int64_t trainc_model_memory_bytes(const trainc_model_options *options) {
  try {
    const instance_options asked = options_of(options);
    const kept_gpu kept;
    const own_team team(0);
    return asked.micro_batches < 1 ? -1 : library_instance::memory_bytes(trainer_program, asked);
  } catch (...) {
    return -1;
  }
}

int trainc_model_create(const trainc_model_options *options, trainc_model **instance) {
  if (!instance)
    return TRAINC_MODEL_USAGE;
  *instance = new (std::nothrow) trainc_model;
  trainc_model *model = *instance;
  if (!model)
    return TRAINC_MODEL_MACHINE;
  model->status = caught(*model, [&] {
    const instance_options asked = options_of(options);
    const own_team team(0);
    const kept_gpu kept;
    check_process(asked.threads > 0 ? asked.threads : own_team::current_threads());
    model->own.emplace(trainer_program, asked);
  });
  return model->status;
}

void trainc_model_destroy(trainc_model *instance) { delete instance; }

const char *trainc_model_target(void) { return trainer_program.target; }

const char *trainc_model_message(const trainc_model *instance) {
  return instance ? instance->message.c_str() : "the instance is null";
}

int64_t trainc_model_count(const trainc_model *instance, trainc_model_kind kind) {
  return instance && instance->own && is_known(kind)
             ? std::ssize(instance->own->tensors(kind_of(kind)))
             : -1;
}

int64_t trainc_model_bytes(const trainc_model *instance, trainc_model_kind kind) {
  return instance && instance->own && is_known(kind)
             ? bytes_of_all(instance->own->tensors(kind_of(kind)))
             : -1;
}

int trainc_model_describe(trainc_model *instance, trainc_model_kind kind, int64_t index,
                          trainc_model_tensor *tensor) {
  return call(instance, [&](library_instance &own) {
    const auto all = own.tensors(kind_of(kind));
    if (!tensor || index < 0 || index >= static_cast<int64_t>(all.size()))
      throw failure(exit_usage, format_text("describe: there are %zu tensors of this kind, from 0 "
                                            "on\n  try: a lower index, and an address",
                                            all.size()));
    const tensor_view &view = all[static_cast<size_t>(index)];
    *tensor = {view.name.c_str(), name_of(view.type), static_cast<int>(view.shape.size()),
               view.shape.data(), view.bytes};
  });
}

int trainc_model_is_label(const trainc_model *instance, int64_t index) {
  const bool exists = index >= 0 && index < trainc_model_count(instance, TRAINC_MODEL_INPUTS);
  return exists ? trainer_program.inputs[index].is_label : -1;
}

int trainc_model_read(trainc_model *instance, trainc_model_kind kind, const char *name, void *to,
                      int64_t bytes) {
  return call(instance, [&](library_instance &own) {
    const tensor_view &tensor = find(own, kind, name);
    check_memory_of_caller(name, to, bytes, tensor.bytes);
    own.read(kind_of(kind), tensor, to);
  });
}

int trainc_model_write(trainc_model *instance, trainc_model_kind kind, const char *name,
                       const void *from, int64_t bytes) {
  return call(instance, [&](library_instance &own) {
    const tensor_view &tensor = find(own, kind, name);
    check_memory_of_caller(name, from, bytes, tensor.bytes);
    own.write(kind_of(kind), tensor, from);
  });
}

int trainc_model_read_all(trainc_model *instance, trainc_model_kind kind, void *to, int64_t bytes) {
  return call(instance, [&](library_instance &own) {
    const auto all = own.tensors(kind_of(kind));
    check_memory_of_caller("read_all", to, bytes, bytes_of_all(all));
    char *place = static_cast<char *>(to);
    for (const tensor_view &tensor : all) {
      own.read(kind_of(kind), tensor, place);
      place += tensor.bytes;
    }
  });
}

int trainc_model_write_all(trainc_model *instance, trainc_model_kind kind, const void *from,
                           int64_t bytes) {
  return call(instance, [&](library_instance &own) {
    const auto all = own.tensors(kind_of(kind));
    check_memory_of_caller("write_all", from, bytes, bytes_of_all(all));
    own.check_values(kind_of(kind));
    const char *place = static_cast<const char *>(from);
    for (const tensor_view &tensor : all) {
      own.write(kind_of(kind), tensor, place);
      place += tensor.bytes;
    }
  });
}

void *trainc_model_data(trainc_model *instance, trainc_model_kind kind, const char *name) {
  void *place = nullptr;
  call(instance,
       [&](library_instance &own) { place = own.bind(kind_of(kind), find(own, kind, name)); });
  return place;
}

int trainc_model_set_input(trainc_model *instance, const char *name, const void *from,
                           int64_t bytes) {
  return trainc_model_write(instance, TRAINC_MODEL_INPUTS, name, from, bytes);
}

int trainc_model_forward_backward(trainc_model *instance, double *loss) {
  return compute(instance, [&](library_instance &own) { give(loss, own.forward_backward()); });
}

int trainc_model_update(trainc_model *instance, trainc_model_result *result) {
  return compute(instance, [&](library_instance &own) { give_result(own, own.update(), result); });
}

int trainc_model_step(trainc_model *instance, trainc_model_result *result) {
  return compute(instance,
                 [&](library_instance &own) { give_result(own, own.take_step(), result); });
}

int trainc_model_discard(trainc_model *instance) {
  return call(instance, [](library_instance &own) { own.discard(); });
}

int trainc_model_evaluate(trainc_model *instance, double *loss) {
  return compute(instance, [&](library_instance &own) { give(loss, own.evaluate()); });
}

int trainc_model_metric(trainc_model *instance, const char *name, double *mean, double *weight) {
  return call(instance, [&](library_instance &own) {
    const weighed_mean found = own.metric(text_or(name, "the metric's name"));
    give(mean, found.mean);
    give(weight, found.weight);
  });
}

int trainc_model_set(trainc_model *instance, const char *name, double value) {
  return call(instance,
              [&](library_instance &own) { own.set(text_or(name, "the setting's name"), value); });
}

int trainc_model_get(trainc_model *instance, const char *name, double *value) {
  return call(instance, [&](library_instance &own) {
    give(value, own.get(text_or(name, "the setting's name")));
  });
}

// Files.
using of_path = void (library_instance::*)(const std::string &);
static int call_with(trainc_model *instance, of_path work, const char *path) {
  return call(instance, [&](library_instance &own) { (own.*work)(text_or(path, "the path")); });
}

int trainc_model_save(trainc_model *instance, const char *folder) {
  return call_with(instance, &library_instance::save, folder);
}
int trainc_model_load(trainc_model *instance, const char *path) {
  return call_with(instance, &library_instance::load, path);
}
int trainc_model_export(trainc_model *instance, const char *path) {
  return call_with(instance, &library_instance::export_model, path);
}
int trainc_model_save_state_dict(trainc_model *instance, const char *path) {
  return call_with(instance, &library_instance::save_state_dict, path);
}
int trainc_model_save_gradients(trainc_model *instance, const char *path) {
  return call_with(instance, &library_instance::save_gradients, path);
}
int trainc_model_save_optimizer_state(trainc_model *instance, const char *path) {
  return call_with(instance, &library_instance::save_optimizer_state, path);
}
int trainc_model_load_state_dict(trainc_model *instance, const char *path) {
  return call_with(instance, &library_instance::load_state_dict, path);
}
int trainc_model_load_optimizer_state(trainc_model *instance, const char *path) {
  return call_with(instance, &library_instance::load_optimizer_state, path);
}
