// SPDX-License-Identifier: Apache-2.0
//
// Calls that are wrong, of a library of mlp_gelu_dynamo20 for batches of 8: each gives a status and
// a message, and changes nothing. Arguments: a folder to save in, a checkpoint of another model, a
// folder that cannot be written.
#include "model_mlp_gelu_dynamo20.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MODEL(what) model_mlp_gelu_dynamo20_##what
enum { OK = MODEL_MLP_GELU_DYNAMO20_OK, USAGE = MODEL_MLP_GELU_DYNAMO20_USAGE };

static model_mlp_gelu_dynamo20 *model;
static char before[1 << 16], after[1 << 16];

static int64_t state(char *to) {
  int64_t bytes = 0;
  for (int kind = MODEL_MLP_GELU_DYNAMO20_PARAMETERS; kind <= MODEL_MLP_GELU_DYNAMO20_STATES;
       ++kind)
    if (kind != MODEL_MLP_GELU_DYNAMO20_GRADIENTS) {
      const int64_t more = MODEL(bytes)(model, (model_mlp_gelu_dynamo20_kind)kind);
      if (MODEL(read_all)(model, (model_mlp_gelu_dynamo20_kind)kind, to + bytes, more) != OK)
        exit(1);
      bytes += more;
    }
  return bytes;
}

static void wrong(int line, int status, int expected, const char *word) {
  const char *message = MODEL(message)(model);
  if (status != expected || !strstr(message, word)) {
    printf("line %d: status %d, expected %d, message '%s'\n", line, status, expected, message);
    exit(1);
  }
  char kept[1024];
  snprintf(kept, sizeof kept, "%s", message);
  const int64_t bytes = state(after);
  if (memcmp(before, after, (size_t)bytes) != 0) {
    printf("line %d: the instance has changed\n", line);
    exit(1);
  }
  printf("%d %s\n", status, kept);
}
#define WRONG(call, expected, word) wrong(__LINE__, (call), (expected), (word))

static void right(int line, int status) {
  if (status != OK) {
    printf("line %d: status %d: %s\n", line, status, MODEL(message)(model));
    exit(1);
  }
}
#define RIGHT(call) right(__LINE__, (call))

static float x[8 * 12], labels[8 * 7];
static model_mlp_gelu_dynamo20_result result;

static void set_batch(void) {
  for (int i = 0; i < 8 * 12; ++i)
    x[i] = (float)((i * 37) % 19) / 19 - 0.5f;
  for (int i = 0; i < 8 * 7; ++i)
    labels[i] = (float)((i * 11) % 7) / 7;
  RIGHT(MODEL(set_input)(model, "x", x, sizeof x));
  RIGHT(MODEL(set_input)(model, "labels", labels, sizeof labels));
}

// ---- two threads in one instance

static volatile int busy, ends;

static void *intrude(void *unused) {
  while (!ends) {
    const int status = MODEL(discard)(model);
    if (status == MODEL_MLP_GELU_DYNAMO20_BUSY)
      busy = 1;
    else if (status != OK)
      exit(1);
  }
  return unused;
}

static void share(void) {
  pthread_t other;
  pthread_create(&other, NULL, intrude, NULL);
  for (int i = 0; i < 2000000 && !busy; ++i)
    MODEL(evaluate)(model, NULL);
  ends = 1;
  pthread_join(other, NULL);
  if (!busy)
    printf("no call met another one\n");
}

static void options(void) {
  model_mlp_gelu_dynamo20 *refused;
  model_mlp_gelu_dynamo20_options all = {0};
  const struct {
    const char *word;
    size_t size;
    int threads;
    int64_t micro_batches;
    const char *folder;
    void *memory;
    int64_t memory_bytes;
  } cases[] = {
      {"size", 0, 0, 0, NULL, NULL, 0},
      {"size", 10000, 0, 0, NULL, NULL, 0},
      {"threads", sizeof all, -1, 0, NULL, NULL, 0},
      {"micro_batches", sizeof all, 0, -3, NULL, NULL, 0},
      {"is missing", sizeof all, 0, 0, "/no/such/folder", NULL, 0},
      {"64 bytes", sizeof all, 0, 0, NULL, (void *)(before + 1), 1 << 15},
      {"no room", sizeof all, 0, 0, NULL, aligned_alloc(64, 4096), 4096},
      {"size", 1, 0, 0, NULL, NULL, 0},
      {"size", sizeof all - 1, 0, 0, NULL, NULL, 0},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    all.size = cases[i].size;
    all.threads = cases[i].threads;
    all.micro_batches = cases[i].micro_batches;
    all.folder = cases[i].folder;
    all.memory = cases[i].memory;
    all.memory_bytes = cases[i].memory_bytes;
    const int status = MODEL(create)(&all, &refused);
    const char *message = MODEL(message)(refused);
    if (status == OK || !strstr(message, cases[i].word)) {
      printf("options %zu: status %d, message '%s'\n", i, status, message);
      exit(1);
    }
    printf("%d %s\n", status, message);
    // nothing can be done with it
    if (MODEL(step)(refused, NULL) != status || MODEL(count)(refused, 0) != -1 ||
        !strstr(MODEL(message)(refused), cases[i].word))
      exit(1);
    MODEL(destroy)(refused);
  }
  free(cases[6].memory);
  if (MODEL(create)(NULL, NULL) != USAGE)
    exit(1);
}

// In memory of the caller, as much as is asked for and no more.
static void given_memory(const model_mlp_gelu_dynamo20_result *expected) {
  model_mlp_gelu_dynamo20 *other = model;
  model_mlp_gelu_dynamo20_options all = {0};
  all.size = sizeof all;
  all.memory_bytes = MODEL(memory_bytes)(&all);
  all.memory = aligned_alloc(64, (size_t)all.memory_bytes);
  RIGHT(MODEL(create)(&all, &model));
  set_batch();
  model_mlp_gelu_dynamo20_result got;
  RIGHT(MODEL(step)(model, &got));
  if (got.loss != expected->loss || got.gradient_norm != expected->gradient_norm)
    exit(1);
  MODEL(destroy)(model);
  free(all.memory);
  model = other;
}

int main(int count, char **arguments) {
  if (count != 4)
    return 2;
  options();
  if (MODEL(step)(NULL, NULL) != USAGE || MODEL(count)(NULL, 0) != -1)
    return 1;
  MODEL(destroy)(NULL);
  RIGHT(MODEL(create)(NULL, &model));
  state(before);
  WRONG(MODEL(step)(model, NULL), USAGE, "input 'x', 'labels': was never set");
  WRONG(MODEL(evaluate)(model, NULL), USAGE, "input 'x': was never set");

  model_mlp_gelu_dynamo20_tensor tensor;
  WRONG(MODEL(set_input)(model, "y", x, sizeof x), USAGE, "none among x, labels");
  WRONG(MODEL(set_input)(model, NULL, x, sizeof x), USAGE, "none among");
  WRONG(MODEL(set_input)(model, "x", NULL, sizeof x), USAGE, "null");
  WRONG(MODEL(set_input)(model, "x", x, sizeof x - 4), USAGE, "try: 384");
  WRONG(MODEL(set_input)(model, "x", x, -1), USAGE, "try: 384");
  WRONG(MODEL(describe)(model, MODEL_MLP_GELU_DYNAMO20_INPUTS, 2, &tensor), USAGE, "2 tensors");
  WRONG(MODEL(describe)(model, MODEL_MLP_GELU_DYNAMO20_INPUTS, -1, &tensor), USAGE, "2 tensors");
  WRONG(MODEL(describe)(model, MODEL_MLP_GELU_DYNAMO20_INPUTS, 0, NULL), USAGE, "address");
  WRONG(MODEL(describe)(model, (model_mlp_gelu_dynamo20_kind)17, 0, &tensor), USAGE, "kind");
  WRONG(MODEL(read)(model, MODEL_MLP_GELU_DYNAMO20_GRADIENTS, "first.weight", x, 1584), USAGE,
        "gradients");
  WRONG(MODEL(update)(model, &result), USAGE, "0 of its 1");
  WRONG(MODEL(set)(model, "learning_rate", NAN), USAGE, "finite");
  WRONG(MODEL(set)(model, "learning_rate", -1), USAGE, "finite");
  WRONG(MODEL(set)(model, "beta1", 1), USAGE, "below 1");
  WRONG(MODEL(set)(model, "momentum", 1), USAGE, "weight_decay");
  WRONG(MODEL(set)(model, NULL, 1), USAGE, "null");
  WRONG(MODEL(metric)(model, "accuracy", NULL, NULL), USAGE, "metric");
  WRONG(MODEL(load)(model, "/no/such/file"), MODEL_MLP_GELU_DYNAMO20_CHECKPOINT,
        "is no checkpoint");
  WRONG(MODEL(load)(model, arguments[2]), MODEL_MLP_GELU_DYNAMO20_CHECKPOINT, "another model");
  WRONG(MODEL(save)(model, arguments[3]), MODEL_MLP_GELU_DYNAMO20_DISK, "");
  mkfifo("pipe", 0600);
  WRONG(MODEL(export)(model, "pipe"), USAGE, "not a regular file");
  WRONG(MODEL(save_state_dict)(model, "/dev/full"), USAGE,
        "not a regular file");
  WRONG(MODEL(export)(model, "/no/such/folder/m.onnx"), MODEL_MLP_GELU_DYNAMO20_DISK,
        "/no/such/folder");
  if (MODEL(data)(model, MODEL_MLP_GELU_DYNAMO20_GRADIENTS, "first.weight") ||
      MODEL(data)(model, MODEL_MLP_GELU_DYNAMO20_PARAMETERS, "third"))
    return 1;

  // NaN: the step is not applied
  set_batch();
  x[3] = NAN;
  char unaligned[sizeof x + 1];
  memcpy(unaligned + 1, x, sizeof x);
  RIGHT(MODEL(set_input)(model, "x", unaligned + 1, sizeof x));
  RIGHT(MODEL(step)(model, &result));
  const int64_t bytes = state(after);
  if (result.applied || !isnan(result.loss) || memcmp(before, after, (size_t)bytes) != 0)
    return 1;
  set_batch();
  RIGHT(MODEL(step)(model, &result));
  if (!result.applied || result.step != 2)
    return 1;
  given_memory(&result);

  // between a pass and its update
  set_batch();
  RIGHT(MODEL(forward_backward)(model, NULL));
  state(before);
  WRONG(MODEL(forward_backward)(model, NULL), USAGE, "has its 1");
  WRONG(MODEL(evaluate)(model, NULL), USAGE, "wait for their update");
  float gradient[33 * 12],
      *weights = MODEL(data)(model, MODEL_MLP_GELU_DYNAMO20_PARAMETERS, "first.weight");
  RIGHT(MODEL(read)(model, MODEL_MLP_GELU_DYNAMO20_GRADIENTS, "first.weight", gradient,
                    sizeof gradient));
  RIGHT(MODEL(write)(model, MODEL_MLP_GELU_DYNAMO20_GRADIENTS, "first.weight", gradient,
                     sizeof gradient));
  const float was = weights[0];
  RIGHT(MODEL(update)(model, &result));
  if (weights[0] == was || (weights[0] < was) != (gradient[0] > 0))
    return 1;
  RIGHT(MODEL(save)(model, arguments[1]));
  share();
  MODEL(destroy)(model);
  printf("all well\n");
  return 0;
}
