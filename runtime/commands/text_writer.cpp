// SPDX-License-Identifier: Apache-2.0
//
// The evaluation of a whole window gives the logits of its last token; one byte is drawn from them
// with a counter-based generator, and the window slides.
#include "runtime/commands/text_writer.h"

#include "runtime/commands/evaluation.h"
#include "runtime/files/data_types.h"
#include "runtime/process/signs_of_life.h"
#include "runtime/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

namespace trainc {
namespace {

constexpr int64_t byte_values = 256;

[[noreturn]] void refuse_model(const std::string &who, const std::string &why) {
  throw failure(exit_usage, who + ": " + why +
                                "\n  try: info, which lists the inputs and outputs of the model");
}

text_model find_text_model(const program &program, const std::string &who) {
  auto refuse = [&](const std::string &why) { refuse_model(who, why); };
  text_model model;
  for (const input_place &input : program.inputs) {
    if (input.is_label)
      continue;
    if (model.tokens || !is_integer(input.tensor.type) || input.tensor.rank != 2)
      refuse(std::string("input '") + input.tensor.name +
             "' is not a token input; a model with integers [batch, length] alone is needed");
    model.tokens = &input.tensor;
  }
  if (!model.tokens)
    refuse("the model has no input of tokens [batch, length]");
  for (const tensor_place &output : program.outputs) {
    bool real = output.type == data_type::f32 || output.type == data_type::f64;
    if (!model.logits && real && output.rank == 3 && output.shape[0] == model.tokens->shape[0] &&
        output.shape[1] == model.tokens->shape[1])
      model.logits = &output;
  }
  if (!model.logits)
    refuse(format_text("the model has no output of logits [%lld, %lld, vocabulary]",
                       static_cast<long long>(model.tokens->shape[0]),
                       static_cast<long long>(model.tokens->shape[1])));
  if (model.vocabulary() > byte_values)
    refuse(format_text("the model's vocabulary of %lld is not bytes",
                       static_cast<long long>(model.vocabulary())));
  return model;
}

void check_prompt(const std::string &text, const text_model &model) {
  if (text.empty())
    throw failure(exit_usage, "option --prompt: is empty; there must be something to continue");
  for (char c : text)
    if (static_cast<unsigned char>(c) >= model.vocabulary())
      throw failure(exit_data, format_text("the prompt has byte %d; the model's vocabulary is %lld",
                                           static_cast<unsigned char>(c),
                                           static_cast<long long>(model.vocabulary())));
}

} // namespace

sampler::sampler(const trainer_options &options, uint64_t seed, int64_t vocabulary)
    : seed_(seed), temperature_(options.temperature), top_(static_cast<size_t>(vocabulary)),
      order_(top_), weights_(top_) {
  if (options.top_k > 0)
    top_ = std::min(top_, static_cast<size_t>(options.top_k));
  if (temperature_ == 0)
    top_ = 1;
}

int64_t sampler::operator()(const std::vector<double> &logits, uint64_t position) {
  std::iota(order_.begin(), order_.end(), size_t{0});
  // Ties by number, so that the choice is the same everywhere.
  std::sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  double total = 0, best = logits[order_[0]];
  for (size_t i = 0; i < top_; ++i) {
    weights_[i] = top_ == 1 ? 1 : std::exp((logits[order_[i]] - best) / temperature_);
    total += weights_[i];
  }
  double point = total * random_uniform(seed_, random_stream::sampling, position);
  size_t chosen = 0;
  for (; chosen + 1 < top_; ++chosen) {
    point -= weights_[chosen];
    if (point < 0)
      break;
  }
  return static_cast<int64_t>(order_[chosen]);
}

text_writer::text_writer(run &run, uint64_t seed, const std::string &who)
    : run_(run), model_(find_text_model(run.prog, who)),
      sample_(run.options, seed, model_.vocabulary()),
      logits_(static_cast<size_t>(model_.vocabulary())) {
  check_prompt(run.options.prompt, model_);
  text_.reserve(run.options.prompt.size() + 4 * static_cast<size_t>(model_.window()) + 1);
}

// The last `window` bytes of the text at the front of every row, zeros after.
void text_writer::place_window() {
  const tensor_place &tokens = *model_.tokens;
  int64_t window = tokens.shape[1], bytes = bytes_of(tokens.type);
  size_t skipped =
      text_.size() > static_cast<size_t>(window) ? text_.size() - static_cast<size_t>(window) : 0;
  char *target = run_.target.batch_place(tokens);
  for (int64_t row = 0; row < tokens.shape[0]; ++row)
    for (int64_t i = 0; i < window; ++i, target += bytes) {
      size_t index = skipped + static_cast<size_t>(i);
      int64_t value = index < text_.size() ? static_cast<unsigned char>(text_[index]) : 0;
      memcpy(target, &value, static_cast<size_t>(bytes)); // little-endian: the low part
    }
}

void text_writer::read_logits(int64_t position) {
  const tensor_place &logits = *model_.logits;
  int64_t bytes = bytes_of(logits.type);
  const char *row =
      run_.places()[logits.arena] + logits.offset + position * logits.shape[2] * bytes;
  const char *host = run_.target.read(row, static_cast<int64_t>(logits_.size()) * bytes);
  for (size_t i = 0; i < logits_.size(); ++i)
    logits_[i] = number_at(logits.type, host + static_cast<int64_t>(i) * bytes);
}

bool text_writer::operator()(uint64_t number, const std::function<bool(char)> &put) {
  constexpr int below_number = 32; // bits of a position
  const auto window = static_cast<size_t>(model_.window());
  text_ = run_.options.prompt;
  for (int64_t i = 0; i < run_.options.length; ++i) {
    place_window();
    run_.target.send_batch();
    run_.target.submit_batch();
    evaluate_batch(run_.target, run_.prog);
    read_logits(static_cast<int64_t>(std::min(text_.size(), window)) - 1);
    text_ += static_cast<char>(sample_(logits_, number << below_number | static_cast<uint64_t>(i)));
    note_work();
    if (!put(text_.back()))
      return false;
    if (text_.size() > 4 * window)
      text_.erase(0, 2 * window); // keep what a window can see
  }
  return true;
}

} // namespace trainc
