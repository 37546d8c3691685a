// SPDX-License-Identifier: Apache-2.0
//
// A program that trains through the C interface of any model's library, as its arguments say:
//
//   caller LIBRARY NAME ACTION...
//     create=THREADS,SEED,MICRO_BATCHES   data:INPUT=FILE.npy   set:SETTING=VALUE   from=BATCH
//     values:KIND=FILE   steps=N   count=N   time=N   evaluate=N   save=FOLDER   load=PATH
//     export=FILE   flat=FILE   expect=STATUS   refused=STATUS   restart=SEED
//     keep=parameters   back=copied   back=written
//
// Steps take batches of the files in their order and print the loss and the gradient's norm of
// each. After expect the next action has to fail with that status, whose message is printed;
// refused is a step that does.
#include "runtime/library/interface.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void *library;
static const char *name;
static trainc_model *model;
static int expected = TRAINC_MODEL_OK;

static void *function(const char *what) {
  char symbol[256];
  snprintf(symbol, sizeof symbol, "%s_%s", name, what);
  void *found = dlsym(library, symbol);
  if (!found) {
    printf("%s\n", dlerror());
    exit(1);
  }
  return found;
}

// Calls NAME_what, whose type is that of trainc_model_what.
#define CALL(what) ((__typeof__(&trainc_model_##what))function(#what))

static void check(int status) {
  const char *message = model ? CALL(message)(model) : "no instance";
  if (status != expected) {
    printf("status %d, expected %d: %s\n", status, expected, message);
    exit(1);
  }
  if (expected != TRAINC_MODEL_OK)
    printf("%d %s\n", status, message);
  expected = TRAINC_MODEL_OK;
}

static struct input {
  char name[64];
  char *values;
  long bytes;
} inputs[16];
static int input_count;
static long batch;
static long micro_batches = 1;

// FILE.npy of a version whose header ends at a multiple of 64 bytes.
static void add_input(char *text) {
  char *path = strchr(text, '=');
  *path++ = '\0';
  FILE *file = fopen(path, "rb");
  if (!file) {
    printf("%s: cannot be read\n", path);
    exit(1);
  }
  unsigned char head[10];
  if (fread(head, 1, 10, file) != 10)
    exit(1);
  const long begin = 10 + head[8] + 256 * head[9];
  fseek(file, 0, SEEK_END);
  struct input *input = &inputs[input_count++];
  snprintf(input->name, sizeof input->name, "%s", text);
  input->bytes = ftell(file) - begin;
  input->values = malloc((size_t)input->bytes);
  fseek(file, begin, SEEK_SET);
  if (fread(input->values, 1, (size_t)input->bytes, file) != (size_t)input->bytes)
    exit(1);
  fclose(file);
}

// All tensors of a kind by its number, from a file that has nothing else; one that is missing is
// empty.
static void write_values(trainc_model_kind kind, const char *path) {
  FILE *file = fopen(path, "rb");
  const int64_t bytes = CALL(bytes)(model, kind);
  char *values = malloc((size_t)bytes + 1);
  const size_t found = file ? fread(values, 1, (size_t)bytes + 1, file) : 0;
  check(CALL(write_all)(model, kind, values, (int64_t)found));
  if (file)
    fclose(file);
  free(values);
}

static void set_batch(void) {
  for (int i = 0; i < CALL(count)(model, TRAINC_MODEL_INPUTS); ++i) {
    trainc_model_tensor tensor;
    check(CALL(describe)(model, TRAINC_MODEL_INPUTS, i, &tensor));
    for (int j = 0; j < input_count; ++j)
      if (strcmp(inputs[j].name, tensor.name) == 0) {
        const long batches = inputs[j].bytes / tensor.bytes;
        check(CALL(set_input)(model, tensor.name, inputs[j].values + batch % batches * tensor.bytes,
                              tensor.bytes));
      }
  }
  ++batch;
}

static void take_steps(long count) {
  for (long i = 0; i < count; ++i) {
    trainc_model_result result = {0, 0, 0, 0};
    for (long j = 0; j < micro_batches; ++j) {
      set_batch();
      if (micro_batches > 1)
        check(CALL(forward_backward)(model, NULL));
    }
    check(micro_batches > 1 ? CALL(update)(model, &result) : CALL(step)(model, &result));
    printf("step %ld %.17g %.17g %d\n", (long)result.step, result.loss, result.gradient_norm,
           result.applied);
  }
}

// Parameters as they are now, and back to that: by a function, or where they lie.
static char *kept;
static void keep(void) {
  const int64_t bytes = CALL(bytes)(model, TRAINC_MODEL_PARAMETERS);
  kept = malloc((size_t)bytes);
  check(CALL(read_all)(model, TRAINC_MODEL_PARAMETERS, kept, bytes));
}
static void go_back(int copied) {
  if (copied) {
    check(CALL(write_all)(model, TRAINC_MODEL_PARAMETERS, kept,
                          CALL(bytes)(model, TRAINC_MODEL_PARAMETERS)));
    return;
  }
  const char *from = kept;
  for (int i = 0; i < CALL(count)(model, TRAINC_MODEL_PARAMETERS); ++i) {
    trainc_model_tensor tensor;
    check(CALL(describe)(model, TRAINC_MODEL_PARAMETERS, i, &tensor));
    memcpy(CALL(data)(model, TRAINC_MODEL_PARAMETERS, tensor.name), from, (size_t)tensor.bytes);
    from += tensor.bytes;
  }
}

// The median time of a step, batches set, in milliseconds.
static int compare(const void *one, const void *other) {
  const double a = *(const double *)one, b = *(const double *)other;
  return (a > b) - (a < b);
}
static void take_time(long count) {
  double *taken = malloc((size_t)count * sizeof *taken);
  for (long i = 0; i < count; ++i) {
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    set_batch();
    check(CALL(step)(model, NULL));
    clock_gettime(CLOCK_MONOTONIC, &end);
    taken[i] =
        1e3 * (double)(end.tv_sec - begin.tv_sec) + 1e-6 * (double)(end.tv_nsec - begin.tv_nsec);
  }
  qsort(taken, (size_t)count, sizeof *taken, compare);
  printf("median %.6g\n", taken[count / 2]);
  free(taken);
}

static void evaluate(long count) {
  for (long i = 0; i < count; ++i) {
    double loss;
    set_batch();
    check(CALL(evaluate)(model, &loss));
    printf("evaluate %.17g\n", loss);
  }
}

// Parameters and buffers as one buffer each: read, written back, read again.
static void round_trip(void) {
  for (int kind = TRAINC_MODEL_PARAMETERS; kind <= TRAINC_MODEL_STATES; ++kind) {
    if (kind == TRAINC_MODEL_GRADIENTS)
      continue;
    const int64_t bytes = CALL(bytes)(model, (trainc_model_kind)kind);
    char *one = malloc((size_t)bytes + 1), *other = malloc((size_t)bytes + 1);
    check(CALL(read_all)(model, (trainc_model_kind)kind, one, bytes));
    check(CALL(write_all)(model, (trainc_model_kind)kind, one, bytes));
    check(CALL(read_all)(model, (trainc_model_kind)kind, other, bytes));
    if (memcmp(one, other, (size_t)bytes) != 0) {
      printf("kind %d is another one after it was written\n", kind);
      exit(1);
    }
    free(one);
    free(other);
  }
}

// A line that tests/train/count_allocations.c waits for.
static void mark(const char *line) {
  if (write(STDOUT_FILENO, line, strlen(line)) < 0)
    exit(1);
}

static void create(const char *text) {
  trainc_model_options options = {0};
  options.size = sizeof options;
  unsigned long seed;
  if (sscanf(text, "%d,%lu,%ld", &options.threads, &seed, &micro_batches) != 3)
    exit(1);
  options.seed = seed;
  options.micro_batches = micro_batches;
  check(CALL(create)(&options, &model));
}

// Another instance takes what a caller without files keeps of one.
static void restart(const char *seed) {
  const char *const numbers[] = {"step", "skipped_steps"};
  char *values[TRAINC_MODEL_STATES + 1] = {NULL};
  int64_t bytes[TRAINC_MODEL_STATES + 1];
  double kept[2];
  for (int kind = TRAINC_MODEL_PARAMETERS; kind <= TRAINC_MODEL_STATES; ++kind) {
    if (kind == TRAINC_MODEL_GRADIENTS)
      continue;
    bytes[kind] = CALL(bytes)(model, (trainc_model_kind)kind);
    values[kind] = malloc((size_t)bytes[kind] + 1);
    check(CALL(read_all)(model, (trainc_model_kind)kind, values[kind], bytes[kind]));
  }
  for (int i = 0; i < 2; ++i)
    check(CALL(get)(model, numbers[i], &kept[i]));
  CALL(destroy)(model);
  char text[64];
  snprintf(text, sizeof text, "1,%s,%ld", seed, micro_batches);
  create(text);
  for (int kind = TRAINC_MODEL_PARAMETERS; kind <= TRAINC_MODEL_STATES; ++kind)
    if (values[kind]) {
      check(CALL(write_all)(model, (trainc_model_kind)kind, values[kind], bytes[kind]));
      free(values[kind]);
    }
  for (int i = 0; i < 2; ++i)
    check(CALL(set)(model, numbers[i], kept[i]));
}

static void act(char *action) {
  char *value = strpbrk(action, "=:") + 1;
  const char sign = value[-1];
  value[-1] = '\0';
  if (strcmp(action, "create") == 0)
    create(value);
  else if (strcmp(action, "expect") == 0)
    expected = atoi(value);
  else if (strcmp(action, "data") == 0 && sign == ':')
    add_input(value);
  else if (strcmp(action, "set") == 0 && sign == ':') {
    char *number = strchr(value, '=');
    *number++ = '\0';
    check(CALL(set)(model, value, atof(number)));
  } else if (strcmp(action, "values") == 0 && sign == ':') {
    char *path = strchr(value, '=');
    *path++ = '\0';
    write_values((trainc_model_kind)atoi(value), path);
  } else if (strcmp(action, "from") == 0)
    batch = atol(value);
  else if (strcmp(action, "steps") == 0)
    take_steps(atol(value));
  else if (strcmp(action, "count") == 0) {
    mark("{\"step\": 2, as of a log}\n");
    take_steps(atol(value));
    mark("{\"summary\": as of a log}\n");
  } else if (strcmp(action, "refused") == 0) {
    set_batch();
    expected = atoi(value);
    check(CALL(step)(model, NULL));
  } else if (strcmp(action, "time") == 0)
    take_time(atol(value));
  else if (strcmp(action, "evaluate") == 0)
    evaluate(atol(value));
  else if (strcmp(action, "save") == 0)
    check(CALL(save)(model, value));
  else if (strcmp(action, "load") == 0)
    check(CALL(load)(model, value));
  else if (strcmp(action, "export") == 0)
    check(CALL(export)(model, value));
  else if (strcmp(action, "restart") == 0)
    restart(value);
  else if (strcmp(action, "flat") == 0)
    round_trip();
  else if (strcmp(action, "keep") == 0)
    keep();
  else if (strcmp(action, "back") == 0)
    go_back(strcmp(value, "copied") == 0);
  else {
    printf("%s: no such action\n", action);
    exit(1);
  }
}

int main(int count, char **arguments) {
  if (count < 3)
    return 2;
  library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    printf("%s\n", dlerror());
    return 1;
  }
  name = arguments[2];
  for (int i = 3; i < count; ++i)
    act(arguments[i]);
  if (model)
    CALL(destroy)(model);
  for (int i = 0; i < input_count; ++i)
    free(inputs[i].values);
  free(kept);
  dlclose(library);
  return 0;
}
