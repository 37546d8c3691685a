// SPDX-License-Identifier: Apache-2.0
//
// A program with GPUs of its own around the library of mlp_gelu_dynamo20 for batches of 8.
// Arguments: a folder to write in, and the model's library for the CPU. Prints the losses of six
// steps.
#include "library/model_mlp_gelu_dynamo20.h"

#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

using model = model_mlp_gelu_dynamo20;
#define MODEL(what) model_mlp_gelu_dynamo20_##what

namespace {

constexpr int rows = 8, inputs = 12, outputs = 7, steps = 6;
constexpr int current = 2; // GPU of the program's own work

[[noreturn]] void fail(int line, const std::string &why) {
  printf("line %d: %s\n", line, why.c_str());
  exit(1);
}
#define EXPECT(condition)                                                                          \
  if (!(condition))                                                                                \
  fail(__LINE__, #condition)
#define RIGHT(call, of)                                                                            \
  if ((call) != MODEL_MLP_GELU_DYNAMO20_OK)                                                        \
  fail(__LINE__, MODEL(message)(of))

struct batch {
  std::vector<float> x = std::vector<float>(rows * inputs),
                     labels = std::vector<float>(rows * outputs);
};

batch batch_of(int number) {
  batch made;
  for (int i = 0; i < rows * inputs; ++i)
    made.x[size_t(i)] = float((i * 7 + number) % 11) / 11;
  for (int i = 0; i < rows * outputs; ++i)
    made.labels[size_t(i)] = made.x[size_t(i)];
  return made;
}

int64_t bytes_of(const std::vector<float> &values) {
  return int64_t(values.size() * sizeof(float));
}

model *create(MODEL(options) options = {}) {
  options.size = sizeof options;
  options.threads = 1;
  model *made;
  RIGHT(MODEL(create)(&options, &made), made);
  return made;
}

// How inputs come to the model.
enum class way { host, device, bound };

// A place in the GPU's memory with these values, from the stream.
float *on_device(const std::vector<float> &values, float *place, cudaStream_t stream) {
  EXPECT(cudaMemcpyAsync(place, values.data(), size_t(bytes_of(values)), cudaMemcpyHostToDevice,
                         stream) == cudaSuccess);
  return place;
}

void set(model *of, const char *name, const std::vector<float> &values, way how, float *memory,
         cudaStream_t stream) {
  if (how == way::bound)
    on_device(values, static_cast<float *>(MODEL(data)(of, MODEL_MLP_GELU_DYNAMO20_INPUTS, name)),
              stream);
  else
    RIGHT(MODEL(set_input)(of, name,
                           how == way::host ? values.data() : on_device(values, memory, stream),
                           bytes_of(values)),
          of);
}

std::vector<double> train(model *of, way how, cudaStream_t stream = nullptr, int count = steps) {
  EXPECT(cudaSetDevice(current) == cudaSuccess);
  float *memory;
  EXPECT(cudaMalloc(reinterpret_cast<void **>(&memory), rows * inputs * sizeof(float)) ==
         cudaSuccess);
  std::vector<double> losses;
  for (int i = 0; i < count; ++i) {
    const batch data = batch_of(i);
    set(of, "x", data.x, how, memory, stream);
    set(of, "labels", data.labels, how, memory, stream);
    MODEL(result) result;
    RIGHT(MODEL(step)(of, &result), of);
    EXPECT(result.applied);
    losses.push_back(result.loss);
  }
  EXPECT(cudaFree(memory) == cudaSuccess);
  int device;
  EXPECT(cudaGetDevice(&device) == cudaSuccess && device == current);
  return losses;
}

std::vector<char> read_all(model *of, MODEL(kind) kind) {
  std::vector<char> values(size_t(MODEL(bytes)(of, kind)));
  RIGHT(MODEL(read_all)(of, kind, values.data(), int64_t(values.size())), of);
  return values;
}

void check_refusals() {
  const auto refused = [](MODEL(options) options, const char *word) {
    options.size = sizeof options;
    model *made;
    EXPECT(MODEL(create)(&options, &made) != MODEL_MLP_GELU_DYNAMO20_OK);
    printf("%s\n", MODEL(message)(made));
    EXPECT(strstr(MODEL(message)(made), word));
    MODEL(destroy)(made);
  };
  MODEL(options) options = {};
  options.device = 99;
  refused(options, "device 99");
  options.device = 0;
  void *memory;
  EXPECT(cudaMalloc(&memory, 1 << 16) == cudaSuccess);
  options.memory = memory;
  options.memory_bytes = 1 << 16;
  refused(options, "no room");
  EXPECT(cudaFree(memory) == cudaSuccess);

  model *fresh = create();
  EXPECT(MODEL(step)(fresh, nullptr) == MODEL_MLP_GELU_DYNAMO20_USAGE);
  EXPECT(strstr(MODEL(message)(fresh), "input 'x', 'labels': was never set"));
  MODEL(destroy)(fresh);
}

// Of two micro-batches the gradients in memory are sums.
void check_gradients() {
  MODEL(options) options = {};
  options.micro_batches = 2;
  options.device = current;
  model *of = create(options);
  for (int i = 0; i < 2; ++i) {
    const batch data = batch_of(i);
    set(of, "x", data.x, way::host, nullptr, nullptr);
    set(of, "labels", data.labels, way::host, nullptr, nullptr);
    RIGHT(MODEL(forward_backward)(of, nullptr), of);
  }
  const char *name = "first.weight";
  std::vector<float> there(33 * inputs), here(there);
  void *memory;
  EXPECT(cudaMalloc(&memory, size_t(bytes_of(there))) == cudaSuccess);
  RIGHT(MODEL(read)(of, MODEL_MLP_GELU_DYNAMO20_GRADIENTS, name, memory, bytes_of(there)), of);
  RIGHT(MODEL(read)(of, MODEL_MLP_GELU_DYNAMO20_GRADIENTS, name, here.data(), bytes_of(here)), of);
  EXPECT(cudaMemcpy(there.data(), memory, size_t(bytes_of(there)), cudaMemcpyDeviceToHost) ==
         cudaSuccess);
  EXPECT(there == here && here[0] != 0);
  RIGHT(MODEL(write)(of, MODEL_MLP_GELU_DYNAMO20_GRADIENTS, name, memory, bytes_of(here)), of);
  RIGHT(MODEL(read)(of, MODEL_MLP_GELU_DYNAMO20_GRADIENTS, name, there.data(), bytes_of(there)),
        of);
  EXPECT(there == here);
  RIGHT(MODEL(update)(of, nullptr), of);
  EXPECT(cudaFree(memory) == cudaSuccess);
  MODEL(destroy)(of);
}

// What one instance writes another one reads.
void check_files(model *of, const std::string &folder) {
  const std::string weights = folder + "/state.safetensors",
                    states = folder + "/states.safetensors";
  RIGHT(MODEL(save)(of, folder.c_str()), of);
  RIGHT(MODEL(export)(of, (folder + "/trained.onnx").c_str()), of);
  RIGHT(MODEL(save_state_dict)(of, weights.c_str()), of);
  RIGHT(MODEL(save_optimizer_state)(of, states.c_str()), of);
  model *one = create(), *other = create();
  RIGHT(MODEL(load)(one, folder.c_str()), one);
  RIGHT(MODEL(load_state_dict)(other, weights.c_str()), other);
  RIGHT(MODEL(load_optimizer_state)(other, states.c_str()), other);
  for (MODEL(kind) kind : {MODEL_MLP_GELU_DYNAMO20_PARAMETERS, MODEL_MLP_GELU_DYNAMO20_STATES}) {
    const std::vector<char> expected = read_all(of, kind);
    EXPECT(read_all(one, kind) == expected && read_all(other, kind) == expected);
  }
  EXPECT(MODEL(load_state_dict)(one, states.c_str()) == MODEL_MLP_GELU_DYNAMO20_CHECKPOINT);
  EXPECT(read_all(one, MODEL_MLP_GELU_DYNAMO20_PARAMETERS) ==
         read_all(of, MODEL_MLP_GELU_DYNAMO20_PARAMETERS));
  EXPECT(train(one, way::host) == train(other, way::host));
  MODEL(destroy)(one);
  MODEL(destroy)(other);
}

// The library for the CPU in the same program.
void check_losses(const char *path, const std::vector<double> &expected) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    fail(__LINE__, dlerror());
  const auto find = [&](auto *like, const char *name) {
    return reinterpret_cast<decltype(like)>(dlsym(library, name));
  };
  auto *create = find(MODEL(create), "model_mlp_gelu_dynamo20_create");
  auto *set_input = find(MODEL(set_input), "model_mlp_gelu_dynamo20_set_input");
  auto *step = find(MODEL(step), "model_mlp_gelu_dynamo20_step");
  model *on_cpu;
  EXPECT(create(nullptr, &on_cpu) == MODEL_MLP_GELU_DYNAMO20_OK);
  for (int i = 0; i < steps; ++i) {
    const batch data = batch_of(i);
    MODEL(result) result;
    EXPECT(set_input(on_cpu, "x", data.x.data(), bytes_of(data.x)) == MODEL_MLP_GELU_DYNAMO20_OK);
    EXPECT(set_input(on_cpu, "labels", data.labels.data(), bytes_of(data.labels)) ==
           MODEL_MLP_GELU_DYNAMO20_OK);
    EXPECT(step(on_cpu, &result) == MODEL_MLP_GELU_DYNAMO20_OK);
    EXPECT(std::abs(result.loss - expected[size_t(i)]) < 1e-5 * result.loss);
  }
  find(MODEL(destroy), "model_mlp_gelu_dynamo20_destroy")(on_cpu);
}

size_t free_bytes(int device) {
  size_t free, total;
  EXPECT(cudaSetDevice(device) == cudaSuccess && cudaMemGetInfo(&free, &total) == cudaSuccess);
  return free;
}

} // namespace

int main(int, char **arguments) {
  EXPECT(strcmp(MODEL(target)(), "cuda") == 0);
  const size_t free_before = free_bytes(current);
  check_refusals();
  model *first = create();
  const std::vector<double> losses = train(first, way::host);
  for (double loss : losses)
    printf("loss %.9g\n", loss);
  check_losses(arguments[2], losses);
  check_files(first, arguments[1]);
  MODEL(destroy)(first);
  check_gradients();

  EXPECT(cudaSetDevice(current) == cudaSuccess);
  cudaStream_t stream;
  EXPECT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  MODEL(options) options = {};
  options.size = sizeof options;
  options.device = current;
  options.stream = stream;
  options.memory_bytes = MODEL(memory_bytes)(&options);
  EXPECT(options.memory_bytes > 0);
  EXPECT(cudaMalloc(&options.memory, size_t(options.memory_bytes)) == cudaSuccess);
  const size_t free_with_memory = free_bytes(current);
  model *given = create(options);
  EXPECT(free_bytes(current) == free_with_memory);
  EXPECT(train(given, way::device, stream) == losses);
  MODEL(destroy)(given);
  EXPECT(cudaFree(options.memory) == cudaSuccess);

  // two at once, in turn
  options.memory = nullptr;
  model *one = create(options), *other = create();
  EXPECT(train(one, way::bound, stream, 3) == train(other, way::device, nullptr, 3));
  MODEL(destroy)(other);
  train(one, way::device, stream, 3);
  MODEL(destroy)(one);

  for (int i = 0; i < 100; ++i) {
    options.forward_only = i % 2;
    MODEL(destroy)(create(options));
  }
  EXPECT(cudaStreamDestroy(stream) == cudaSuccess);
  EXPECT(free_bytes(current) == free_before);
  printf("all well\n");
  return 0;
}
