/* SPDX-License-Identifier: Apache-2.0
 *
 * A trained model as a library: plain C, for any program. The caller has the loop, the data and the
 * learning rate; an instance has the parameters, the gradients, the optimizer's state and the
 * memory of a step. A step gives the trainer's bits, and after the first one of a
 * thread allocates nothing.
 *
 *   trainc_model *model;
 *   if (trainc_model_create(NULL, &model) != TRAINC_MODEL_OK)
 *     fail(trainc_model_message(model));
 *   trainc_model_set(model, "learning_rate", 1e-3);
 *   for (...) {
 *     trainc_model_set_input(model, "x", x, sizeof x);
 *     trainc_model_set_input(model, "labels", labels, sizeof labels);
 *     trainc_model_step(model, &result);
 *   }
 *   trainc_model_save(model, "checkpoints");
 *   trainc_model_destroy(model);
 *
 * Instances share nothing. Each may be used from any thread, by one at a time. No function ends the
 * process, prints, throws, or changes the environment or signals.
 */
#ifndef TRAINC_MODEL_H
#define TRAINC_MODEL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TRAINC_MODEL_API __attribute__((visibility("default")))
#else
#define TRAINC_MODEL_API
#endif

typedef struct trainc_model trainc_model;

/* What functions return. After an error the instance is as it was before the call. */
enum {
  TRAINC_MODEL_OK = 0,
  TRAINC_MODEL_INTERNAL = 1,   /* a defect of the library */
  TRAINC_MODEL_USAGE = 2,      /* an argument, or a call at the wrong time */
  TRAINC_MODEL_DATA = 3,       /* an index out of range in the inputs */
  TRAINC_MODEL_CHECKPOINT = 4, /* a file missing, damaged or of another model */
  TRAINC_MODEL_DISK = 5,       /* a file could not be written */
  TRAINC_MODEL_MACHINE = 6,    /* memory, threads or instruction set */
  TRAINC_MODEL_BUSY = 10       /* another thread is in a call of this instance: no message */
};

/* Zeros stand for the defaults. */
typedef struct {
  size_t size;           /* sizeof(trainc_model_options) */
  int threads;           /* 0: OMP_NUM_THREADS, else one for each core; a minimal library has one */
  int forward_only;      /* not 0: for evaluate alone; no memory for gradients and states */
  uint64_t seed;         /* of the numbers that the model draws, as for dropout */
  int64_t micro_batches; /* calls of forward_backward for each update; 0: 1 */
  int mean_per_batch;    /* not 0: each micro-batch weighs the same, whatever labels count in it */
  int no_files;          /* not 0: parameters begin as zeros, and no file is needed */
  const char *folder;    /* of parameters.safetensors and export_template.onnx; null: that of the
                            library (or of the program that it is linked into), or the one above */
  void *memory;          /* for tensors, at a multiple of 64 bytes; null: the system's. Of a library
                            for CUDA the device's, at a multiple of 256 bytes */
  int64_t memory_bytes;  /* at least trainc_model_memory_bytes */
  int device;            /* for CUDA: the number of the GPU */
  void *stream;          /* for CUDA: a cudaStream_t of that GPU, which outlives the instance; null:
                            one of its own, which takes turns with CUDA's default stream */
} trainc_model_options;

/* What it computes on: "cpu" or "cuda". Then memory that functions get may be the host's or the
 * GPU's, trainc_model_data gives the GPU's, and work is queued on the stream, behind what the
 * caller has queued there. Functions return when it is done. */
TRAINC_MODEL_API const char *trainc_model_target(void);

/* What `memory` must have, in bytes; -1 where the options are wrong. Null: the defaults. */
TRAINC_MODEL_API int64_t trainc_model_memory_bytes(const trainc_model_options *options);

/* Makes an instance with the initial parameters. Where it fails there is one too, unless there is
 * no memory for it: it has the message, and all that can be done with it is destroy. */
TRAINC_MODEL_API int trainc_model_create(const trainc_model_options *options,
                                         trainc_model **instance);
/* Null: nothing. The instance may not be used afterwards. */
TRAINC_MODEL_API void trainc_model_destroy(trainc_model *instance);

/* Of the last call: why it failed, in words; of one that did not, a warning or an empty text. Valid
 * until the next call. */
TRAINC_MODEL_API const char *trainc_model_message(const trainc_model *instance);

/* ---- tensors */

typedef enum {
  TRAINC_MODEL_INPUTS = 0, /* of a batch, with the labels */
  TRAINC_MODEL_OUTPUTS,    /* after evaluate, until the next pass */
  TRAINC_MODEL_PARAMETERS, /* trained and frozen ones */
  TRAINC_MODEL_BUFFERS,    /* what a step replaces, such as running statistics */
  TRAINC_MODEL_GRADIENTS,  /* of the step's mean loss; from the last forward_backward to update */
  TRAINC_MODEL_STATES      /* of the optimizer: "optimizer/exp_avg/fc1.weight" */
} trainc_model_kind;

typedef struct {
  const char *name; /* as in the ONNX file */
  const char *type; /* as NumPy has it: "float32", "int64" */
  int rank;
  const int64_t *shape; /* row-major, no padding; inputs with the batch first */
  int64_t bytes;
} trainc_model_tensor;

/* How many tensors of a kind there are; their bytes together. -1 where there is no such kind. */
TRAINC_MODEL_API int64_t trainc_model_count(const trainc_model *instance, trainc_model_kind kind);
TRAINC_MODEL_API int64_t trainc_model_bytes(const trainc_model *instance, trainc_model_kind kind);
/* Describes number `index`, from 0, of a kind. The texts live as long as the instance. */
TRAINC_MODEL_API int trainc_model_describe(trainc_model *instance, trainc_model_kind kind,
                                           int64_t index, trainc_model_tensor *tensor);
/* Whether input number `index` is a label, which the loss alone reads: 1 or 0; -1: there is none.
 */
TRAINC_MODEL_API int trainc_model_is_label(const trainc_model *instance, int64_t index);

/* Copies one tensor. `bytes` are those of the tensor. */
TRAINC_MODEL_API int trainc_model_read(trainc_model *instance, trainc_model_kind kind,
                                       const char *name, void *to, int64_t bytes);
TRAINC_MODEL_API int trainc_model_write(trainc_model *instance, trainc_model_kind kind,
                                        const char *name, const void *from, int64_t bytes);
/* The same of all tensors of a kind, one after the other in the order of their numbers. */
TRAINC_MODEL_API int trainc_model_read_all(trainc_model *instance, trainc_model_kind kind, void *to,
                                           int64_t bytes);
TRAINC_MODEL_API int trainc_model_write_all(trainc_model *instance, trainc_model_kind kind,
                                            const void *from, int64_t bytes);
/* Where a tensor lies, to be read or written without a copy between calls; null for gradients,
 * which move, and after an error. */
TRAINC_MODEL_API void *trainc_model_data(trainc_model *instance, trainc_model_kind kind,
                                         const char *name);

/* trainc_model_write of an input. Inputs stay until they are set again. */
TRAINC_MODEL_API int trainc_model_set_input(trainc_model *instance, const char *name,
                                            const void *from, int64_t bytes);

/* ---- work */

typedef struct {
  double loss;          /* of the step: the mean over the labels that count */
  double gradient_norm; /* before clipping */
  int applied;          /* 0: loss or gradient were not finite, and the step changed nothing */
  int64_t step;         /* steps until now, with those that were not applied */
} trainc_model_result;

/* Forward and backward pass over the inputs; adds to the gradients of the step. `loss` may be null,
 * and is that of the micro-batch. */
TRAINC_MODEL_API int trainc_model_forward_backward(trainc_model *instance, double *loss);
/* After as many as there are micro-batches: changes the parameters. `result` may be null. */
TRAINC_MODEL_API int trainc_model_update(trainc_model *instance, trainc_model_result *result);
/* Both, for instances of one micro-batch. */
TRAINC_MODEL_API int trainc_model_step(trainc_model *instance, trainc_model_result *result);
/* Forgets the passes since the last update. */
TRAINC_MODEL_API int trainc_model_discard(trainc_model *instance);
/* Forward pass in inference mode: outputs, metrics, and the loss where the labels are set. `loss`
 * may be null. To predict, leave the labels as they are. */
TRAINC_MODEL_API int trainc_model_evaluate(trainc_model *instance, double *loss);
/* Of the last evaluate: "accuracy"; the mean over what counts, and how much that is (or null). */
TRAINC_MODEL_API int trainc_model_metric(trainc_model *instance, const char *name, double *mean,
                                         double *weight);

/* Settings of the update: "learning_rate" (at first 0.001), "clip_norm" and "clip_value" (0: no
 * clipping), the optimizer's hyperparameters by the names that `trainer train --help` has, with
 * underscores: "weight_decay", "learning_rate_of_GROUP"; "loss_scale" of a library for fp16;
 * "step" and "skipped_steps", which go with the optimizer's state where the caller keeps that. */
TRAINC_MODEL_API int trainc_model_set(trainc_model *instance, const char *name, double value);
TRAINC_MODEL_API int trainc_model_get(trainc_model *instance, const char *name, double *value);

/* ---- files; a minimal library has none, and these return TRAINC_MODEL_USAGE */

/* Writes FOLDER/step-00000100, a checkpoint in the trainer's format, with states. */
TRAINC_MODEL_API int trainc_model_save(trainc_model *instance, const char *folder);
/* Loads a checkpoint, or the newest whole one of a folder of them or of a trainer's run:
 * parameters, states, the number of steps. */
TRAINC_MODEL_API int trainc_model_load(trainc_model *instance, const char *path);
/* For PyTorch, as safetensors: the parameters and buffers by the names and in the layouts of the
 * module that was exported, the same of gradients (between the last forward_backward and update),
 * and `state.NAME.exp_avg` of its optimizer. The first three write a file, the others read one; the
 * number of updates is part of the state. */
TRAINC_MODEL_API int trainc_model_save_state_dict(trainc_model *instance, const char *path);
TRAINC_MODEL_API int trainc_model_save_gradients(trainc_model *instance, const char *path);
TRAINC_MODEL_API int trainc_model_save_optimizer_state(trainc_model *instance, const char *path);
TRAINC_MODEL_API int trainc_model_load_state_dict(trainc_model *instance, const char *path);
TRAINC_MODEL_API int trainc_model_load_optimizer_state(trainc_model *instance, const char *path);
/* Writes the model with its parameters as ONNX. */
TRAINC_MODEL_API int trainc_model_export(trainc_model *instance, const char *path);

#ifdef __cplusplus
}
#endif
#endif
