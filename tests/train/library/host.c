// SPDX-License-Identifier: Apache-2.0
//
// A host with OpenMP regions of its own around a library's calls, and one that forks. The library
// is that of mlp_gelu_dynamo20 for batches of 8. Prints the last loss.
#include "model_mlp_gelu_dynamo20.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int create(int threads, model_mlp_gelu_dynamo20 **model) {
  model_mlp_gelu_dynamo20_options options = {0};
  options.size = sizeof options;
  options.threads = threads;
  return model_mlp_gelu_dynamo20_create(&options, model);
}

static int set_inputs(model_mlp_gelu_dynamo20 *model, int number) {
  static float x[8 * 12], labels[8 * 7];
  for (int i = 0; i < 8 * 12; ++i)
    x[i] = (float)((i * 7 + number) % 11) / 11;
  for (int i = 0; i < 8 * 7; ++i)
    labels[i] = x[i];
  const int status = model_mlp_gelu_dynamo20_set_input(model, "x", x, sizeof x);
  return status ? status
                : model_mlp_gelu_dynamo20_set_input(model, "labels", labels, sizeof labels);
}

static int step(model_mlp_gelu_dynamo20 *model, int number, double *loss) {
  long sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int i = 0; i < 8 * 12; ++i)
    sum += i;
  if (sum != 96 * 95 / 2 || omp_get_max_threads() != 3)
    exit(2);
  model_mlp_gelu_dynamo20_result result;
  int status = set_inputs(model, number);
  if (!status)
    status = model_mlp_gelu_dynamo20_step(model, &result);
  *loss = status ? 0 : result.loss;
  return status;
}

// In a child: what `threads` computes there. A host's own regions are not for a child, either.
static void fork_with(model_mlp_gelu_dynamo20 *model, int threads, int expected) {
  if (fork() == 0) {
    int status = model ? MODEL_MLP_GELU_DYNAMO20_OK : create(threads, &model);
    if (status == MODEL_MLP_GELU_DYNAMO20_OK)
      status = set_inputs(model, 0);
    if (status == MODEL_MLP_GELU_DYNAMO20_OK)
      status = model_mlp_gelu_dynamo20_evaluate(model, NULL);
    if (status != expected ||
        (expected && !strstr(model_mlp_gelu_dynamo20_message(model), "after a model computed")))
      printf("in a child: status %d, %s\n", status, model_mlp_gelu_dynamo20_message(model));
    fflush(stdout);
    _exit(status == expected ? 0 : 1);
  }
  int status = 0;
  wait(&status);
  if (status != 0)
    exit(3);
}

int main(void) {
  omp_set_num_threads(3);
  fork_with(NULL, 2, MODEL_MLP_GELU_DYNAMO20_OK); // nobody has computed yet
  model_mlp_gelu_dynamo20 *model, *alone;
  if (create(2, &model) || create(1, &alone))
    return 1;
  double loss = 0;
  for (int i = 0; i < 50; ++i)
    if (step(model, i, &loss)) {
      printf("%s\n", model_mlp_gelu_dynamo20_message(model));
      return 1;
    }
  printf("%.17g\n", loss);
  fflush(stdout);
  fork_with(model, 2, MODEL_MLP_GELU_DYNAMO20_MACHINE);
  fork_with(NULL, 2, MODEL_MLP_GELU_DYNAMO20_MACHINE);
  fork_with(alone, 1, MODEL_MLP_GELU_DYNAMO20_OK);
  model_mlp_gelu_dynamo20_destroy(model);
  model_mlp_gelu_dynamo20_destroy(alone);
  return 0;
}
