// SPDX-License-Identifier: Apache-2.0
//
// The seam between a compiled model and the runtime: what the compiler emits
// (one constant `trainer_program`) and the runtime drives. Everything that the
// compiler decided stands here as plain data; the runtime never sees a graph.
#pragma once

#include "runtime/element_range.h"
#include "runtime/gradient_exchange.h"
#include "runtime/kernels/dequantize.h"
#include "runtime/kernels/infinity.h"
#include "runtime/pipeline.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace trainc {

class rank_exchange;
class step_clock;

// bf16 and f16 are in memory alone, and of none of the tensors that files hold.
enum class data_type { f32, f64, i64, i32, boolean, i8, i16, u8, u16, u32, bf16, f16 };

// The five memory arenas of a run, each one allocation. Every tensor of the
// program has a fixed byte offset in one of them; of a pipeline's stage also in the slot of the
// micro-batch that its functions work on.
enum class arena_kind {
  parameters,
  gradients,
  optimizer_state,
  activations,
  workspace,
  stash,
  frozen // weights as their file has them: mapped, read-only
};
constexpr int arena_count = 5; // that are planned as one: neither the stash nor frozen weights

struct arenas {
  char *base[arena_count + 2]; // 64-byte aligned; the stash is a slot of it
  const char *constants;       // data of the model's constants; read-only, 64-byte aligned
  // What `update` changes of parameters, buffers and states, which have one layout: all of it
  // where the program cannot update in parts.
  element_range updated = {};
  range_list updated_ranges = {&every_element, 1}; // the same, of a program for cuda
  step_clock *clock = nullptr;                     // told of every step, where one measures them
  gradient_exchange *exchange = nullptr; // told of every bucket of gradients, where they have some
  rank_exchange *ranks = nullptr;        // of steps that take part in one; null: alone
  char *operator[](arena_kind kind) const { return base[static_cast<int>(kind)]; }
};

constexpr int max_rank = 8;

// A tensor with a fixed place. Row-major, no padding.
struct tensor_place {
  const char *name; // as in the ONNX file
  data_type type;
  int rank;
  int64_t shape[max_rank];
  arena_kind arena;
  int64_t offset; // bytes from the arena's base
};

// What a step does with a parameter. A buffer is replaced by the mean of what the
// step's micro-batches made of it (running statistics).
enum class parameter_role { trained, frozen, buffer };

// A parameter has the same byte offset in the parameters arena, in the gradients
// arena (where a buffer has its new value) and, per state slot, in the
// optimizer-state arena (slot s of it begins at s * optimizer_slot_bytes), which has
// no buffers, unless the program has `state_places`. A frozen parameter lies after all others in
// the parameters arena, or in the arena of frozen weights, and has neither gradient nor state.
struct parameter_place {
  tensor_place tensor;
  parameter_role role;
  bool decays;              // weight decay applies
  bool is_infinite = false; // in places, from the start: -infinity, as masks have it
  const char *group = "";   // with options of its own; empty: none
};

// An input of the model. The loader writes a batch at its place in the
// activations arena before each step. An integer input that indexes a table
// must stay in [index_low, index_bound); index_bound is 0 where any value is fine.
// `ignore_index` values are allowed besides if `has_ignore_index`.
struct input_place {
  tensor_place tensor;
  bool is_label;
  int64_t index_bound;
  bool has_ignore_index;
  int64_t ignore_index;
  int64_t index_low = 0;
};

// An index that the model computes: of `node`, into [low, end), where negative ones
// count from the end of the table.
struct checked_index {
  const char *node;
  int64_t low, end;
};

// A hyperparameter of the optimizer: an option of the trainer with this name
// (underscores become dashes). The runtime writes it as an f64 scalar at its
// place in the workspace arena before each update.
struct hyperparameter {
  const char *name; // "weight_decay"
  double default_value;
  const char *help;
  int64_t offset; // bytes, workspace arena
  // The hyperparameter, or "learning_rate" with its schedule, whose value it has unless it is
  // given: those of a group of parameters do. Null: the default.
  const char *follows = nullptr;
  // Its values: finite numbers from `least` on and below `limit`, which some may be too.
  double least = 0, limit = std::numeric_limits<double>::infinity();
  bool may_be_limit = false;
  // Of one that is 0 or 1, no other number: what must be above 0, and what 0, where it is 1.
  const char *needs_above_zero = nullptr, *needs_zero = nullptr;
};

// One initializer of the exported ONNX model, rebuilt from a parameter.
// Transposed ones (2-D) are weights which the exporter had untied.
struct export_initializer {
  const char *onnx_name;
  const char *parameter_name;
  bool transposed;
  data_type rounded_to = data_type::f32; // f16 or bf16: the file's type; f32: as the parameter is
  // Of integers that the file has, too: the type's number in ONNX and the tensor's shape. Of those
  // of four bits a byte of the parameter has two.
  int64_t integer_type = 0;
  int integer_rank = 0;
  int64_t integer_shape[max_rank] = {};
};

// Elements of a tensor of the module's state that lie side by side in a parameter, too: gates that
// the exporter brought into another order. All pieces of a parameter are all of it.
struct state_piece {
  const char *tensor_name;
  const char *parameter_name;
  int64_t from; // the first in the tensor
  int64_t to;   // and in the parameter
  int64_t count;
};

// Low-rank matrices beside a weight: the layer is W x + (alpha / r) B A x, where A is [r, in] and
// B is [out, r]; parameters by their names.
struct adapter {
  const char *module; // the layer's path in PyTorch's module
  const char *weight, *a, *b;
  double alpha, dropout;
  bool is_in_by_out;         // the weight's axes; else [out, in]
  bool is_modules_in_by_out; // as the module has it
};

// A frozen weight of floats that is integers with scales in memory, by the names of these
// parameters; without zero points: null.
struct quantized_weight {
  const char *integers, *scales, *zeros;
  quantized_layout layout;
  int rank;
  int64_t shape[max_rank]; // of the weight
};

// Where parts of files may begin that are mapped: pages of all hosts are smaller or as large.
constexpr int64_t frozen_page = 65536; // bytes

// A part of a file that has frozen weights: bytes from `begin` on are at `offset` of their arena,
// both multiples of frozen_page. The file's path stands beside the parameters.
struct frozen_part {
  int64_t begin, bytes, offset;
};

// A tensor of the module's state that is compiled into the program.
struct state_constant {
  const char *name;
  int64_t bytes;
  uint32_t checksum; // crc32c
};

// What evaluate tells about the outputs besides the loss, by name ("accuracy").
struct metric_place {
  tensor_place
      values; // a scalar, the mean over the labels that count, or one number for each sample
  tensor_place weight; // how many count; no name: it weighs what the loss does
};

// One of several means, or a sum, that the loss is the sum of.
struct loss_part {
  tensor_place value;  // of a batch, written by evaluate
  tensor_place weight; // of that mean, written by evaluate and count_labels; no name: always 1
  tensor_place sample_losses; // written by evaluate; no name: there are none
  bool is_sum;
  // f64 in the workspace arena: the micro-batches of a step over the sum of their weights, which
  // the runtime sets before forward_backward. Negative: it needs none.
  int64_t scale_offset;
};

struct program {
  // What was compiled, and by what.
  const char *model_name;
  const char *compiler_version;
  const char *target;         // "cpu" or "cuda"
  const char *march;          // instruction set that the source was built for, e.g. "znver3"
  const char *precision;      // as trainc's --precision has it: "f32", "bf16", "fp16" or "f64"
  data_type parameter_type;   // f32 or f64; of gradients and states too
  const char *loss_name;      // "cross_entropy"
  const char *optimizer_name; // "adamw"
  uint64_t fingerprint;       // of parameter names, shapes, order and the optimizer
  // What is computed from the parameters: a digest of the graph, whose first two digits are the
  // version of its rule (compiler/onnx/graph/graph_digest.h), and the loss with all factors,
  // settings and outputs. Empty: not known.
  const char *graph_digest = "";
  const char *objective = "";
  // Kernel names with the model nodes they came from, flops and bytes per launch, as text.
  const char *kernel_list;
  // Floating-point operations of a micro-batch's forward and backward pass, of all stages together;
  // what is computed twice counts twice.
  double micro_batch_flops = 0;

  int64_t arena_bytes[arena_count];
  int64_t arena_lower_bound[arena_count];
  const void *constants = nullptr; // in the binary; a device that cannot read it there takes a copy
  int64_t constant_bytes = 0;
  int64_t summed_bytes;         // prefix of the gradients arena that ranks sum: all of it
  int64_t optimizer_slot_bytes; // bytes of one state slot

  // Entry functions. None allocates. forward_backward overwrites the gradients arena
  // with the gradients of the mean loss of one micro-batch, times its weight; update reads the
  // summed gradients and changes parameters and optimizer state; evaluate is forward only.
  void (*forward_backward)(const arenas &);
  void (*update)(const arenas &);
  void (*evaluate)(const arenas &);
  // Writes the weights of the parts of the loss, from the batch alone; null where none has one.
  void (*count_labels)(const arenas &) = nullptr;
  // Makes the 16-bit copies of parameters that forward_backward reads, which lie after the
  // parameters in their arena; update makes them too. Null where there are none.
  void (*round_parameters)(const arenas &) = nullptr;

  std::span<const parameter_place> parameters = {};
  std::span<const input_place> inputs = {};
  std::span<const tensor_place> outputs = {}; // of the model, valid after `evaluate`
  // What evaluate tells about the outputs besides.
  std::span<const metric_place> metrics = {};
  // What the loss is the sum of, where it is more than one mean; then it has no `loss_weight` and
  // no `sample_losses`, and that of forward_backward is the micro-batch's share of the step's: the
  // mean over micro-batches is the step's loss.
  std::span<const loss_part> loss_parts = {};
  std::span<const checked_index> checked_indexes = {};
  std::span<const char *const> state_names = {}; // optimizer state slots, "exp_avg", ...
  std::span<const hyperparameter> hyperparameters = {};
  std::span<const export_initializer> exports = {};
  // Parameters by what the state of PyTorch's module calls them, under each of their names; what is
  // not here nor in pieces has a name that an exporter made up.
  std::span<const export_initializer> module_tensors = {};
  std::span<const state_piece> state_pieces = {};
  std::span<const state_constant> state_constants = {};
  // The optimizer's states, where they do not look like their parameters: all of them, by the names
  // that checkpoints have, without `optimizer/`. None: each slot has the parameters' layout.
  std::span<const tensor_place> state_places = {};
  std::span<const adapter> adapters = {};
  std::span<const quantized_weight> quantized_weights = {};
  // Other frozen weights lie in the file of parameters, after these in the arena.
  std::span<const frozen_part> frozen_parts = {};

  // f64 scalars in the workspace arena, which the runtime sets.
  int64_t learning_rate_offset;
  int64_t step_offset;           // 1 for the first update
  int64_t gradient_scale_offset; // 1 / (ranks x micro-batches): turns summed buffers into means,
                                 // and summed gradients where there is no `loss_weight`
  int64_t clip_norm_offset;      // largest global gradient norm; infinity: no clipping
  int64_t clip_value_offset;     // largest number of a gradient; infinity: no clipping
  int64_t loss_limit_offset;     // of the step's loss; infinity: none
  // forward_backward multiplies all gradients by it, update divides them by it. Negative: there is
  // none.
  int64_t loss_scale_offset = -1;
  // One that `update` writes: norm of the step's gradient before clipping. Not finite, or negative
  // where the loss is above its limit: the step was skipped, and parameters, buffers and states are
  // what they were.
  int64_t gradient_norm_offset;
  // Whether forward_backward draws random numbers, and where it finds the key that they follow
  // from: 64 bits in the workspace arena, which the runtime computes for each micro-batch.
  bool draws_random_numbers = false;
  int64_t random_key_offset = 0;

  tensor_place loss = {};              // scalar, written by forward_backward and evaluate
  bool loss_is_log_perplexity = false; // exp of it tells people more
  // What the mean loss of a micro-batch weighs in that of the step: a scalar that forward_backward
  // and evaluate write, the share of the labels that count. No name: always 1. Where the f64 in the
  // workspace arena is above 0, forward_backward always takes 1.
  tensor_place loss_weight = {};
  int64_t mean_per_batch_offset = 0;
  // The loss of each sample, written by evaluate, where a loss is a mean over all elements. No
  // name: there is none.
  tensor_place sample_losses = {};
  // At the end of the gradients arena and summed like them: the weight, the loss times it, the
  // number of faults. A micro-batch has one where an index is out of range or where the f64 in the
  // workspace arena is above 0, which the runtime sets for a batch that it could not read.
  tensor_place step_totals = {};
  int64_t batch_fault_offset = 0;
  // Two f64 which forward_backward and evaluate write: the number, from 1, of the first of
  // `checked_indexes` that was out of range, and such an index; 0 where none was. Out of range is
  // clamped in memory, so the results are those of other indexes.
  tensor_place index_check = {};

  // Of a step that is cut into stages; forward_backward is null then.
  const pipeline *stages = nullptr;
  // No rank keeps all gradients: functions make them in buckets, in the activations arena, and
  // overwrite no gradients arena.
  bool shards_gradients = false;
  // Those that forward_backward tells of; chunks have their own. Of gradients that each rank keeps
  // they are the summed bytes, each once; none: it does not tell.
  bucket_list buckets = {};
  // The largest tensor that ranks exchange while forward_backward, or the functions of a chunk, run
  // (arenas.ranks); 0: none.
  int64_t rank_exchange_bytes = 0;
  // `update` changes the elements of arenas.updated alone: each follows from those at its place.
  bool updates_in_parts = false;
  // `update` is called for one gradient after the other while forward_backward goes on
  // (arenas.updated), which makes them in the activations arena: there is no gradients arena. It
  // sees rows of so many elements, zero after the gradient's last, and finds the sum of all
  // gradients' squares in an f64 of the workspace arena.
  bool updates_in_backward = false;
  int64_t update_row = 1, sum_of_squares_offset = -1;

  // The last of the parameters, which have the arena of frozen weights, of any type, side by side
  // in it from 64-byte lines on. No checkpoint has them.
  int64_t frozen_count = 0, frozen_bytes = 0;
  const char *frozen_digest = ""; // of their values
};

// Whether the address is in the arena of parameters.
inline bool is_parameter(const program &program, const arenas &arenas, const void *address) {
  const auto kind = arena_kind::parameters;
  const int64_t offset =
      reinterpret_cast<intptr_t>(address) - reinterpret_cast<intptr_t>(arenas[kind]);
  return offset >= 0 && offset < program.arena_bytes[static_cast<int>(kind)];
}

// The entry functions.
enum class entry { forward_backward, update, evaluate, count_labels, round_parameters };
constexpr int entry_count = 5;
inline void call(const program &program, entry which, const arenas &arenas) {
  auto function = which == entry::forward_backward ? program.forward_backward
                  : which == entry::update         ? program.update
                  : which == entry::evaluate       ? program.evaluate
                  : which == entry::count_labels   ? program.count_labels
                                                   : program.round_parameters;
  function(arenas);
}

// Defined by the emitted source of each trainer.
extern const program trainer_program;

} // namespace trainc
