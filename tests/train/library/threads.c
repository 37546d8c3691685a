// SPDX-License-Identifier: Apache-2.0
//
// Two models, two instances of each, each in a thread of its own, with a team of threads or
// without: the bits of an instance alone. Then instances that are made and destroyed. Arguments:
// steps, cycles.
#include "model_cnn_script11.h"
#include "model_gpt2_dynamo20.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The same for each model: a job is an instance from its making to its end.
struct job {
  pthread_t thread;
  void *(*train)(void *);
  int steps, threads;
  double last_loss;
  uint64_t bits; // of all losses and norms
};

static void add_bits(struct job *job, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  job->bits = (job->bits ^ bits) * 1099511628211u;
}

#define FAIL(model, prefix)                                                                        \
  do {                                                                                             \
    printf("%s\n", prefix##_message(model));                                                       \
    exit(1);                                                                                       \
  } while (0)

// Integers are below every table's size, numbers of images small.
#define DEFINE_TRAIN(prefix, UPPER)                                                                \
  static void *train_##prefix(void *argument) {                                                    \
    struct job *job = argument;                                                                    \
    prefix *model;                                                                                 \
    prefix##_options options = {0};                                                                \
    options.size = sizeof options;                                                                 \
    options.threads = job->threads;                                                                \
    options.seed = 3;                                                                              \
    if (prefix##_create(&options, &model) != UPPER##_OK)                                           \
      FAIL(model, prefix);                                                                         \
    for (int step = 0; step < job->steps; ++step) {                                                \
      for (int i = 0; i < prefix##_count(model, UPPER##_INPUTS); ++i) {                            \
        prefix##_tensor input;                                                                     \
        if (prefix##_describe(model, UPPER##_INPUTS, i, &input) != UPPER##_OK)                     \
          FAIL(model, prefix);                                                                     \
        char *place = prefix##_data(model, UPPER##_INPUTS, input.name);                            \
        const int is_integer = strcmp(input.type, "int64") == 0;                                   \
        for (int64_t k = 0; k < input.bytes / (is_integer ? 8 : 4); ++k)                           \
          if (is_integer)                                                                          \
            ((int64_t *)place)[k] = (k * 7 + step) % 5;                                            \
          else                                                                                     \
            ((float *)place)[k] = (float)((k * 13 + step) % 17) / 17;                              \
      }                                                                                            \
      prefix##_result result;                                                                      \
      if (prefix##_step(model, &result) != UPPER##_OK)                                             \
        FAIL(model, prefix);                                                                       \
      job->last_loss = result.loss;                                                                \
      add_bits(job, result.loss);                                                                  \
      add_bits(job, result.gradient_norm);                                                         \
    }                                                                                              \
    prefix##_destroy(model);                                                                       \
    return NULL;                                                                                   \
  }
DEFINE_TRAIN(model_gpt2_dynamo20, MODEL_GPT2_DYNAMO20)
DEFINE_TRAIN(model_cnn_script11, MODEL_CNN_SCRIPT11)

static long allocated(void) { return (long)mallinfo2().uordblks; }

static const long most_left = 4096; // bytes

static void *(*const functions[])(void *) = {train_model_gpt2_dynamo20, train_model_cnn_script11};

// Four jobs at once, with so many threads each.
static void compare(const struct job *alone, int threads) {
  struct job together[4] = {{0}};
  for (int i = 0; i < 4; ++i) {
    together[i].steps = alone[0].steps;
    together[i].threads = threads;
    pthread_create(&together[i].thread, NULL, functions[i % 2], &together[i]);
  }
  for (int i = 0; i < 4; ++i)
    pthread_join(together[i].thread, NULL);
  for (int i = 0; i < 4; ++i)
    if (together[i].bits != alone[i % 2].bits) {
      printf("instance %d of %d threads has other bits: loss %.17g, alone %.17g\n", i, threads,
             together[i].last_loss, alone[i % 2].last_loss);
      exit(1);
    }
}

static void run_instances(int count) {
  for (int i = 0; i < count; ++i) {
    struct job one = {0};
    one.steps = one.threads = 1;
    functions[i % 2](&one);
  }
}

int main(int count, char **arguments) {
  if (count != 3)
    return 2;
  const int steps = atoi(arguments[1]), cycles = atoi(arguments[2]);
  struct job alone[2] = {{0}};
  for (int i = 0; i < 2; ++i) {
    alone[i].steps = steps;
    alone[i].threads = 1;
    functions[i](&alone[i]);
  }
  compare(alone, 1);
  compare(alone, 2);
  run_instances(4);
  // Threads of OpenMP may give back a little later, so what stays must stay each time.
  long grown = 0;
  for (int round = 0; round < 3 && (round == 0 || grown > most_left); ++round) {
    const long before = allocated();
    run_instances(cycles - 4);
    grown = allocated() - before;
  }
  printf("losses %.9g and %.9g; %d instances leave %ld bytes\n", alone[0].last_loss,
         alone[1].last_loss, cycles, grown);
  return cycles > 4 && grown > most_left;
}
