// SPDX-License-Identifier: Apache-2.0
//
// Steps of a model while a timer sends a signal to the process every 0.1 milliseconds: no crash,
// the losses of steps without, and the handler has run in between.
#include "model_wide.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>

enum { STEPS = 60 };
static volatile sig_atomic_t heard;

static void note(int number) {
  (void)number;
  ++heard;
}

static void fill(model_wide *model, const char *name, int64_t count) {
  float *place = model_wide_data(model, MODEL_WIDE_INPUTS, name);
  for (int64_t i = 0; i < count; ++i)
    place[i] = (float)(i * 13 % 17) / 17 - 0.5f;
}

static int train(int threads, double *losses) {
  model_wide *model;
  model_wide_options options = {0};
  options.size = sizeof options;
  options.threads = threads;
  if (model_wide_create(&options, &model) != MODEL_WIDE_OK)
    return puts(model_wide_message(model));
  fill(model, "x", 256 * 512);
  fill(model, "labels", 256 * 512);
  for (int step = 0; step < STEPS; ++step) {
    model_wide_result result;
    if (model_wide_step(model, &result) != MODEL_WIDE_OK)
      return puts(model_wide_message(model));
    losses[step] = result.loss;
  }
  model_wide_destroy(model);
  return 0;
}

int main(void) {
  struct sigaction action = {0};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
  for (int threads = 1; threads <= 2; ++threads) {
    double quiet[STEPS], loud[STEPS];
    if (train(threads, quiet))
      return 1;
    heard = 0;
    setitimer(ITIMER_REAL, &often, NULL);
    if (train(threads, loud))
      return 1;
    setitimer(ITIMER_REAL, &never, NULL);
    if (memcmp(quiet, loud, sizeof quiet))
      return puts("other losses");
    if (heard < STEPS)
      return printf("%d signals\n", (int)heard);
  }
  return 0;
}
