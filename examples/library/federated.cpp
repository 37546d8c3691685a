// SPDX-License-Identifier: Apache-2.0
//
// Federated averaging: two instances of a model train on data of their own; after each round both
// continue from the mean of their parameters. The model is that of docs/library.md.
#include "model_net.hpp"

#include <cstdio>
#include <random>

namespace {

constexpr int batch = 8, features = 12, results = 7, steps_per_round = 20, rounds = 10;

model_net_options one_thread() {
  model_net_options options = {};
  options.threads = 1;
  return options;
}

// Points around a place of the participant's own.
struct participant {
  model_net_instance model{one_thread()};
  std::mt19937 random;
  std::normal_distribution<float> noise{0, 0.3f};

  explicit participant(unsigned seed) : random(seed) { model.set("learning_rate", 0.01); }

  double train() {
    std::vector<float> x(batch * features), labels(batch * results);
    model_net_result last = {};
    for (int step = 0; step < steps_per_round; ++step) {
      for (float &value : x)
        value = noise(random);
      for (int i = 0; i < batch; ++i)
        for (int j = 0; j < results; ++j)
          labels[i * results + j] = x[i * features + j] + x[i * features + j + 1];
      model.set_input("x", x);
      model.set_input("labels", labels);
      last = model.step();
    }
    return last.loss;
  }
};

void average(std::span<participant> all) {
  std::vector<float> mean = all[0].model.read_all(MODEL_NET_PARAMETERS);
  for (participant &other : all.subspan(1)) {
    const std::vector<float> values = other.model.read_all(MODEL_NET_PARAMETERS);
    for (size_t i = 0; i < mean.size(); ++i)
      mean[i] += values[i];
  }
  for (float &value : mean)
    value /= static_cast<float>(all.size());
  for (participant &each : all)
    each.model.write_all(MODEL_NET_PARAMETERS, mean);
}

} // namespace

int main() {
  try {
    participant all[] = {participant(1), participant(2)};
    for (int round = 0; round < rounds; ++round) {
      const double first = all[0].train(), second = all[1].train();
      average(all);
      std::printf("round %d: losses %.5f and %.5f\n", round, first, second);
    }
    all[0].model.export_model("federated.onnx");
  } catch (const model_net_error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.status;
  }
}
