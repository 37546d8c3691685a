// SPDX-License-Identifier: Apache-2.0
//
// A trainer's program written by hand: a bigram language model over bytes whose
// logits are a row of a table plus a bias, trained by SGD with momentum. It stands
// for emitted code in tests of the runtime, which need no compiler then.
#include "runtime/program.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <unistd.h>

namespace trainc {
namespace {

constexpr int64_t batch = 4, window = 16, vocabulary = 256;
constexpr int64_t rows = batch * window;
constexpr int64_t table_bytes = vocabulary * vocabulary * 4, bias_bytes = vocabulary * 4;
constexpr int64_t trained = table_bytes + bias_bytes;

constexpr int64_t tokens_at = 0, labels_at = rows * 8, logits_at = 2 * rows * 8;
constexpr int64_t loss_at = logits_at + rows * vocabulary * 4, activation_bytes = loss_at + 64;
constexpr int64_t loss_weight_at = loss_at + 4, totals_at = trained;

enum scalar {
  learning_rate,
  step,
  gradient_scale,
  clip_norm,
  clip_value,
  loss_limit,
  gradient_norm,
  momentum,
  decay,
  mean_per_batch,
  batch_fault,
  scalars
};

const parameter_place parameters[] = {
    {{"table", data_type::f32, 2, {vocabulary, vocabulary}, arena_kind::parameters, 0},
     parameter_role::trained,
     true},
    {{"bias", data_type::f32, 1, {vocabulary}, arena_kind::parameters, table_bytes},
     parameter_role::trained,
     false},
    {{"scale", data_type::f32, 1, {1}, arena_kind::parameters, trained},
     parameter_role::frozen,
     false},
};
const input_place inputs[] = {
    {{"tokens", data_type::i64, 2, {batch, window}, arena_kind::activations, tokens_at},
     false,
     vocabulary,
     false,
     0},
    {{"labels", data_type::i64, 2, {batch, window}, arena_kind::activations, labels_at},
     true,
     vocabulary,
     true,
     -100},
};
const tensor_place outputs[] = {
    {"logits", data_type::f32, 3, {batch, window, vocabulary}, arena_kind::activations, logits_at}};
const char *const states[] = {"momentum_buffer"};
const hyperparameter hyperparameters[] = {
    {"momentum", 0.9, "part of the last update that goes on", momentum * 8, nullptr, 0, 1},
    {"weight_decay", 0.0, "decay of the table", decay * 8},
};
const export_initializer exports[] = {{"table", "table", false},
                                      {"table_transposed", "table", true},
                                      {"bias", "bias", false},
                                      {"scale", "scale", false}};

const gradient_piece pieces[] = {{totals_at, {trained / 4, (trained + 64) / 4}},
                                 {0, {0, table_bytes / 4}},
                                 {table_bytes, {table_bytes / 4, trained / 4}}};
const gradient_bucket buckets[] = {{pieces, 1}, {pieces + 1, 1}, {pieces + 2, 1}};

float *floats(const arenas &places, arena_kind kind, int64_t offset) {
  return reinterpret_cast<float *>(places[kind] + offset);
}
const int64_t *integers(const arenas &places, int64_t offset) {
  return reinterpret_cast<const int64_t *>(places[arena_kind::activations] + offset);
}
double &number(const arenas &places, scalar which) {
  return reinterpret_cast<double *>(places[arena_kind::workspace])[which];
}

int64_t counted_labels(const int64_t *labels) {
  int64_t count = 0;
  for (int64_t row = 0; row < rows; ++row)
    count += labels[row] != -100;
  return count;
}

void evaluate(const arenas &places) {
  const int64_t *tokens = integers(places, tokens_at), *labels = integers(places, labels_at);
  const float *table = floats(places, arena_kind::parameters, 0);
  const float *bias = floats(places, arena_kind::parameters, table_bytes);
  float scale = *floats(places, arena_kind::parameters, trained);
  float *logits = floats(places, arena_kind::activations, logits_at);
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row) {
    float *values = logits + row * vocabulary, total = 0;
    for (int64_t v = 0; v < vocabulary; ++v) {
      values[v] = scale * (table[tokens[row] * vocabulary + v] + bias[v]);
      total += std::exp(values[v]);
    }
    if (labels[row] != -100)
      sum += std::log(total) - values[labels[row]];
  }
  auto counted = static_cast<double>(counted_labels(labels));
  *floats(places, arena_kind::activations, loss_at) = static_cast<float>(sum / counted);
  *floats(places, arena_kind::activations, loss_weight_at) = static_cast<float>(counted / rows);
}

// With TOY_EXCEPTION in the environment, SIGUSR2 stands for an error inside a step; with TOY_HANG
// a step does not end until another SIGUSR2. With TOY_PAUSE a step takes so many microseconds more,
// in which many toys leave the cores to each other.
std::atomic<bool> fails;
const bool hangs = getenv("TOY_HANG");
const char *const pause_text = getenv("TOY_PAUSE");
const useconds_t pause_of_step = pause_text ? static_cast<useconds_t>(atoi(pause_text)) : 0;
[[maybe_unused]] const bool watches =
    (hangs || getenv("TOY_EXCEPTION")) && signal(SIGUSR2, [](int) { fails = !fails; }) != SIG_ERR;

void forward_backward(const arenas &places) {
  if (pause_of_step > 0)
    usleep(pause_of_step);
  while (fails && hangs)
    usleep(10000);
  if (fails)
    throw std::runtime_error("a test asked for this");
  evaluate(places);
  const int64_t *tokens = integers(places, tokens_at), *labels = integers(places, labels_at);
  float *table = floats(places, arena_kind::gradients, 0);
  float *bias = floats(places, arena_kind::gradients, table_bytes);
  float *logits = floats(places, arena_kind::activations, logits_at);
  float scale = *floats(places, arena_kind::parameters, trained);
  float loss = *floats(places, arena_kind::activations, loss_at);
  float &share = *floats(places, arena_kind::activations, loss_weight_at);
  if (number(places, mean_per_batch) > 0)
    share = 1;
  float weight = scale * (share / static_cast<float>(counted_labels(labels)));
  float *totals = floats(places, arena_kind::gradients, totals_at);
  totals[0] = share;
  totals[1] = share > 0 ? share * loss : 0;
  totals[2] = number(places, batch_fault) > 0 ? 1 : 0;
  if (places.exchange)
    places.exchange->complete(0);
  for (int64_t i = 0; i < trained / 4; ++i) // table and bias
    table[i] = 0;
  for (int64_t row = 0; row < rows; ++row) {
    if (labels[row] == -100)
      continue;
    float *values = logits + row * vocabulary, total = 0;
    for (int64_t v = 0; v < vocabulary; ++v)
      total += std::exp(values[v]);
    for (int64_t v = 0; v < vocabulary; ++v) {
      float slope = weight * (std::exp(values[v]) / total - (v == labels[row] ? 1.0f : 0.0f));
      table[tokens[row] * vocabulary + v] += slope;
      bias[v] += slope;
    }
  }
  if (places.exchange)
    for (int bucket : {1, 2})
      places.exchange->complete(bucket);
}

void update(const arenas &places) {
  float *values = floats(places, arena_kind::parameters, 0);
  const float *slopes = floats(places, arena_kind::gradients, 0);
  float *moments = floats(places, arena_kind::optimizer_state, 0);
  const float *totals = floats(places, arena_kind::gradients, totals_at);
  double mean = 1.0 / totals[0], squares = 0;
  for (int64_t i = 0; i < trained / 4; ++i)
    squares += mean * slopes[i] * mean * slopes[i];
  double norm = std::sqrt(squares);
  bool sound = std::isfinite(norm) && std::isfinite(totals[1]) && totals[2] == 0;
  bool applied = sound && totals[1] * mean <= number(places, loss_limit);
  number(places, gradient_norm) = applied ? norm : sound ? -norm : NAN;
  if (!applied)
    return;
  double limit = number(places, clip_norm);
  if (norm > limit)
    mean *= limit / norm;
  auto rate = static_cast<float>(number(places, learning_rate));
  auto keep = static_cast<float>(number(places, momentum));
  const element_range part = places.updated.within(0, trained / 4);
  for (int64_t i = part.begin; i < part.end; ++i) {
    float shrink = i < table_bytes / 4 ? static_cast<float>(number(places, decay)) : 0.0f;
    auto most = static_cast<float>(number(places, clip_value));
    float gradient = std::clamp(static_cast<float>(mean) * slopes[i], -most, most);
    float slope = gradient + shrink * values[i];
    moments[i] = number(places, step) == 1.0 ? slope : keep * moments[i] + slope;
    values[i] -= rate * moments[i];
  }
}

// Tests resume the run of one trainer with another.
const char *graph_digest() {
  const char *digits = getenv("TOY_GRAPH");
  return digits ? digits : "";
}
const char *objective() {
  const char *text = getenv("TOY_OBJECTIVE");
  return text ? text : "";
}

} // namespace

extern const program trainer_program;
const program trainer_program = {
    .model_name = "toy",
    .compiler_version = "0.1.0",
    .target = "cpu",
    .march = "x86-64",
    .precision = "f32",
    .parameter_type = data_type::f32,
    .loss_name = "cross_entropy",
    .optimizer_name = "sgd",
    .fingerprint = 0x746f79,
    .graph_digest = graph_digest(),
    .objective = objective(),
    .kernel_list = "logits  rows of the table\n",
    .arena_bytes = {trained + 64, trained + 64, trained, activation_bytes, 128},
    .arena_lower_bound = {trained + 4, trained + 12, trained, activation_bytes, scalars * 8},
    .summed_bytes = trained + 64,
    .optimizer_slot_bytes = trained,
    .forward_backward = forward_backward,
    .update = update,
    .evaluate = evaluate,
    .parameters = parameters,
    .inputs = inputs,
    .outputs = outputs,
    .state_names = states,
    .hyperparameters = hyperparameters,
    .exports = exports,
    .learning_rate_offset = learning_rate * 8,
    .step_offset = step * 8,
    .gradient_scale_offset = gradient_scale * 8,
    .clip_norm_offset = clip_norm * 8,
    .clip_value_offset = clip_value * 8,
    .loss_limit_offset = loss_limit * 8,
    .gradient_norm_offset = gradient_norm * 8,
    .loss = {"loss", data_type::f32, 0, {}, arena_kind::activations, loss_at},
    .loss_weight = {"loss_weight", data_type::f32, 0, {}, arena_kind::activations, loss_weight_at},
    .mean_per_batch_offset = mean_per_batch * 8,
    .step_totals = {"step_totals", data_type::f32, 1, {3}, arena_kind::gradients, totals_at},
    .batch_fault_offset = batch_fault * 8,
    .buckets = buckets,
    .updates_in_parts = true,
};

} // namespace trainc
