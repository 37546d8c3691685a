// SPDX-License-Identifier: Apache-2.0
//
// Every command and every option of a trainer.
#include "runtime/options/trainer_table.h"

#include "runtime/data/augmentation.h"
#include "runtime/name_pattern.h"
#include "runtime/options/schedule_rate.h"

namespace trainc {
namespace {

using values = trainer_options;

constexpr unsigned reads_data =
    command_train | command_evaluate | command_gradients | command_predict | command_profile;
constexpr unsigned takes_steps = command_train | command_gradients | command_profile;
constexpr unsigned takes_part_of_data = command_train | command_evaluate | command_gradients;
constexpr unsigned reads_parameters =
    command_evaluate | command_gradients | command_predict | command_export | command_generate;
constexpr unsigned computes = reads_data | command_generate;
constexpr unsigned writes_text = command_train | command_generate;

constexpr command_row commands[] = {
    {command_train, "train", "train the model",
     R"(Trains for --steps steps (or --epochs passes over the data), prints the loss while it goes
and writes checkpoints. One step takes --micro-batches batches on every rank.)",
     "train --tokens text.bin --holdout 0.1 --steps 1000 --learning-rate 1e-3"},
    {command_evaluate, "evaluate", "print the mean loss over the data",
     R"(Runs the model forward over all samples, each once, in file order, and prints the mean loss.
With --holdout, only the held-out last part of the data is used.)",
     "evaluate --tokens text.bin --holdout 0.1"},
    {command_gradients, "gradients", "write the gradient of every parameter for one batch",
     R"(Computes loss and gradients of one batch and writes the gradients as safetensors, each under
its parameter's ONNX name. The loss is printed and stands in the file's metadata. With
several ranks or micro-batches both are means over the labels of that many batches. Where one
is not finite the file is written, and the exit status is 7.)",
     "gradients --data input=x.npy --data labels=y.npy -o gradients.safetensors"},
    {command_predict, "predict", "write the model's outputs for every sample",
     R"(Runs the model forward over all samples, in file order, and writes its outputs as safetensors,
each under its ONNX name. Labels are not needed. The last batch may be incomplete; an output
without an axis of samples needs data of exactly one batch. Runs on one rank.)",
     "predict --data input=x.npy -o outputs.safetensors"},
    {command_export, "export", "write the trained model as ONNX, or its weights for PyTorch",
     R"(Writes the forward model with trained weights. Weights above 1.5 GB go to a file NAME.data
beside it. With --state-dict FILE.safetensors PyTorch's module loads the weights; no -o is
needed then.)",
     "export --checkpoint latest -o trained.onnx"},
    {command_generate, "generate", "let a byte-token language model write text",
     R"(Continues the prompt byte by byte. The model must take tokens [batch, length] and give logits
[batch, length, vocabulary] with a vocabulary of at most 256; text longer than its window
slides out at the front.)",
     "generate --prompt 'The licence' --length 200 --temperature 0.8"},
    {command_checkpoints, "checkpoints", "list, verify or prune a run's checkpoints",
     R"(list: what there is. verify: reads all of each, compares checksums and looks for parameters that
are not finite; exit status 4 where one is not sound. prune: removes what --keep, --keep-every and
--keep-best do not keep, of the run unless they are given; those that are not sound neither
count nor go.)",
     "checkpoints verify --run runs/gpt2-0001", "list|verify|prune"},
    {command_profile, "profile", "measure the steps of the plan",
     R"(Takes training steps and measures what every step of the plan, every action of a stage and
every message takes, on each rank. Inputs without data are made up; parameters are the initial
ones and nothing is kept of them. With -o also as JSON, which trainc-simulate reads; with --trace
also as a trace.)",
     "profile --steps 10 -o profile.json"},
    {command_info, "info", "describe the compiled model",
     R"(Prints what the compiler built: model, inputs, outputs, memory and kernels.)", "info"},
};

constexpr double least_loss_scale = 0x1p-100, most_loss_scale = 0x1p100, most_scale_change = 1024;

constexpr word_row<std::optional<file_type>> token_types[] = {{"auto", std::nullopt},
                                                              {"u8", file_type::u8},
                                                              {"u16", file_type::u16},
                                                              {"u32", file_type::u32},
                                                              {"i32", file_type::i32}};
constexpr word_row<std::optional<int64_t>> label_shifts[] = {
    {"ask", std::nullopt}, {"same", 0}, {"next", 1}};
constexpr word_row<accumulation> accumulations[] = {{"pairwise", accumulation::pairwise},
                                                    {"running", accumulation::running}};
constexpr word_row<shard_kind> shards[] = {{"none", shard_kind::none},
                                           {"optimizer", shard_kind::optimizer},
                                           {"gradients", shard_kind::gradients}};
constexpr word_row<communication_kind> communications[] = {
    {"auto", communication_kind::automatic},
    {"shared", communication_kind::shared_memory},
    {"messages", communication_kind::messages}};
constexpr word_row<exchange_kind> exchanges[] = {{"auto", exchange_kind::automatic},
                                                 {"overlapped", exchange_kind::overlapped},
                                                 {"behind", exchange_kind::behind}};
constexpr word_row<folder_kind> folder_kinds[] = {{"auto", folder_kind::automatic},
                                                  {"shared", folder_kind::shared},
                                                  {"per-host", folder_kind::per_host}};
constexpr word_row<product_math> maths[] = {{"ieee", product_math::ieee},
                                            {"tf32", product_math::tf32}};

constexpr auto newest_kept = [](auto &options) -> auto & { return options.keep.newest; };
constexpr auto every_kept = [](auto &options) -> auto & { return options.keep.every; };
constexpr auto best_kept = [](auto &options) -> auto & { return options.keep.best_by; };

template <typename... Arguments> option_row row(Arguments &&...arguments) {
  return option_of<trainer_options>(std::forward<Arguments>(arguments)...);
}

// An option that some schedules read.
template <typename Place>
option_row schedule_row(const char *name, Place place, const char *placeholder,
                        const char *meaning) {
  const std::string readers = schedules_that_read(name, "|");
  return row(name, place, placeholder, command_train,
             schedules_that_read(name, ", ") + ": " + meaning)
      .idle("schedule!=" + readers, "the schedule {schedule} does not read it",
            "--schedule " + readers);
}

std::string check_pattern(const std::string &text) {
  std::string why;
  return name_pattern::parse(text, why) ? "" : "'" + text + "' is not a regular expression: " + why;
}

std::string check_rename(const std::string &text) {
  std::string why;
  return name_change::parse(text, why)
             ? ""
             : with_advice("'" + text + "': " + why, "--rename 'query\\.weight=query.base.weight'");
}

std::string check_augment(const std::string &text) {
  augmentation changes;
  std::string why;
  return augmentation::parse(text, changes, why) ? "" : with_advice(why, "--augment flip,crop=4");
}

std::vector<option_row> data_rows() {
  return {
      row("data", &values::data, "NAME=FILE", reads_data,
          "data of one model input: FILE.npy or FILE.safetensors:TENSOR; the first axis counts "
          "samples; a pattern ('x-*.npy') joins its files in natural order; repeat for every input")
          .of_one_rank()
          .usual(),
      row("constant", &values::constant, "NAME=FILE", reads_data,
          "an input that is the same for every batch, of the input's whole shape")
          .of_one_rank(),
      row("tokens", &values::tokens, "FILE[:WEIGHT]", reads_data,
          "text or tokens for a language model: windows of a flat file (raw integers, llm.c's "
          ".bin, .npy, a pattern of several); labels are the same tokens shifted by one; repeated, "
          "samples come from all files, or from each in the share of its WEIGHT")
          .of_one_rank()
          .usual(),
      row("token-type", &values::token_type, token_types, "TYPE", reads_data,
          "type of a raw token file; auto: what trainc-data wrote beside it, else bytes"),
      row("labels-of-tokens", &values::label_shift, label_shifts, "HOW", reads_data,
          "what --tokens gives an input 'labels' or 'targets' of a model with a loss of its own: "
          "the same tokens, where the model shifts them itself (transformers), or the next ones; "
          "ask: an error where there is such an input"),
      row("check-data", &values::check_data, "", reads_data,
          "look through all data first: NaN or an infinity is an error that names the first sample "
          "which has it; so are contents that are not those of the file's manifest")
          .of_one_start(),
      row("holdout", &values::holdout, "FRACTION", takes_part_of_data,
          "last part of the data, kept from training; evaluate uses only this part")
          .between(0, 0.999)
          .usual()
          .refused({"holdout validation-data", "holdout validation-tokens"},
                   "--validation-data and --validation-tokens take its place", ""),
      row("leftovers", &values::rest, leftover_words, "POLICY", command_train,
          "samples of an epoch that fill no batch: left out; the last batch filled up with rows "
          "that do not count (labels that are ignored); or completed with the next epoch's first"),
      row("augment", &values::augment, "WORDS", command_train,
          "change pictures (samples, channels, rows, columns) in training: flip, of one in two "
          "left and right; crop=P, moved by up to P pixels each way; erase=P, a square of P pixels "
          "a side becomes 0; several between commas")
          .checked(check_augment),
      row("no-shuffle", &values::no_shuffle, "", command_train,
          "take samples in the order of the files"),
      row("seed", &values::seed, "N", takes_steps | command_generate,
          "seed of every random choice"),
      row("overfit", &values::overfit, "N", command_train,
          "train on the first N batches of the data alone, again and again; 0: on all"),
      row("new-data", &values::new_data, "", command_train,
          "resume although the data are not those of the run; their order begins anew")
          .of_one_start(),
      row("batches", &values::batches, "N", command_evaluate,
          "use the first N batches only; 0: all"),
      row("batch", &values::batch, "K", command_gradients, "which batch, in file order"),
  };
}

std::vector<option_row> training_rows() {
  return {
      row("steps", &values::steps, "N", command_train,
          "steps to train, counted from the very first one")
          .at_least(1)
          .usual(),
      row("steps", &values::measured_steps, "N", command_profile,
          "steps to measure, after two that are not")
          .at_least(1),
      row("epochs", &values::epochs, "N", command_train, "instead of --steps: passes over the data")
          .at_least(1e-9)
          .usual(),
      row("micro-batches", &values::micro_batches, "N", takes_steps,
          "batches per step and rank, whose gradients are added up")
          .between(1, most_micro_batches)
          .usual(),
      row("accumulation", &values::accumulated, accumulations, "KIND", takes_steps,
          "how: pairwise, with the same bits for N ranks x 1 batch as for 1 rank x N, while "
          "log2(N) sums wait; running, in turn, while one does"),
      row("clip-norm", &values::clip_norm, "NORM", command_train,
          "largest global norm of the gradient; 0 or inf: no clipping")
          .between(0, unbounded),
      row("clip-value", &values::clip_value, "X", command_train,
          "largest size of each number of the gradient; 0 or inf: no clipping")
          .between(0, unbounded)
          .refused({"clip-value clip-norm"}, "with --clip-norm their order would matter"),
      row("mean-per-batch", &values::mean_per_batch, "", takes_steps,
          "the loss is the mean of the batches' means, as PyTorch's data parallelism has it, and "
          "not of all labels of the step; they differ where batches have other numbers of ignored "
          "labels"),
      row("nonfinite-limit", &values::nonfinite_limit, "N", command_train,
          "end the run after so many steps in a row whose loss or gradient is not finite; such a "
          "step is skipped")
          .at_least(1),
      row("spike-limit", &values::spike_limit, "Z", command_train,
          "skip a step too whose loss is Z standard deviations above the mean of the last 100 or "
          "so steps that were taken, from the 20th on; 0: never"),
      row("max-time", &values::max_minutes, "MINUTES", command_train,
          "end with a checkpoint after this time, even before the last step")
          .at_least(1e-9)
          .of_one_start(),
      row("step", &values::step, "N", command_gradients,
          "the training step whose random numbers the model uses")
          .at_least(1),
      row("dry-run", &values::dry_run, "", command_train,
          "check everything, take the memory and --dry-run-steps steps, keep nothing")
          .of_one_start(),
      row("dry-run-steps", &values::dry_run_steps, "N", command_train, "steps of a dry run")
          .at_least(1)
          .of_one_start()
          .idle("!dry-run", "the run is not a dry one", "--steps"),
  };
}

std::vector<option_row> rate_rows() {
  return {
      row("learning-rate", &values::learning_rate, "RATE", command_train, "rate after warm-up")
          .below(unbounded)
          .usual(),
      row("schedule", &values::schedule, schedule_words, "KIND", command_train,
          "how the rate goes on after warm-up")
          .usual()
          .refused({"schedule=cosine-restarts !cycle-steps"}, "cosine-restarts needs --cycle-steps",
                   "--cycle-steps 1000")
          .refused({"schedule=warmup-stable-decay !decay-steps"},
                   "warmup-stable-decay needs --decay-steps", "--decay-steps 1000")
          .refused({"schedule=step !decay-every"}, "step needs --decay-every", "--decay-every 1000")
          .refused({"schedule=exponential !decay-factor"}, "exponential needs --decay-factor",
                   "--decay-factor 0.999"),
      row("warmup-steps", &values::warmup_steps, "N", command_train,
          "steps over which the rate rises from zero")
          .usual(),
      schedule_row("final-learning-rate", &values::final_learning_rate, "RATE", "rate at the end")
          .below(unbounded),
      schedule_row("schedule-steps", &values::schedule_steps, "N",
                   "length, where it is not the number of steps")
          .at_least(1),
      schedule_row("schedule-power", &values::schedule_power, "P", "exponent").between(0, 1000),
      schedule_row("cycle-steps", &values::cycle_steps, "N", "steps of the first cycle")
          .at_least(1),
      schedule_row("cycle-factor", &values::cycle_factor, "X",
                   "length of a cycle over that of the one before")
          .between(1, 1000),
      schedule_row("decay-steps", &values::decay_steps, "N",
                   "steps at the end over which the rate falls")
          .at_least(1),
      schedule_row("decay-every", &values::decay_every, "N", "steps between two falls of the rate")
          .at_least(1),
      schedule_row("decay-factor", &values::decay_factor, "X",
                   "factor of each fall (0.1 unless given), or of each step")
          .between(0, 1),
  };
}

std::vector<option_row> run_rows() {
  return {
      row("run", &values::run, "DIR", command_train | reads_parameters | command_checkpoints,
          "folder of the run: configuration.json, log.jsonl (a line a step), checkpoints/ "
          "(default: train begins the next of runs/MODEL-0001, ...; other commands read the "
          "newest)")
          .of_one_start()
          .usual(),
      row("resume", &values::resume, "WHICH", command_train,
          "go on with a run and its options: latest (the newest checkpoint of --run, else of the "
          "newest run), auto (the same, or begin where there is no run) or the path of a "
          "checkpoint; with another --run, a new run branches off there")
          .of_one_start()
          .usual(),
      row("config", &values::config, "FILE", command_train,
          "options of a configuration.json; the command line goes before them")
          .of_one_start(),
      row("overwrite", &values::overwrite, "", command_train, "give up the run that --run holds")
          .of_one_start()
          .refused({"overwrite resume"},
                   "not beside --resume, which goes on with a run or begins in an empty folder"),
      row("initialise", &values::initialise, "FILE", command_train,
          "begin with what a safetensors file has of the parameters, by their ONNX names or those "
          "of PyTorch's module; also a model.safetensors.index.json, or the folder that it is in; "
          "of the folder of a run its newest checkpoint")
          .of_one_start()
          .refused({"initialise resume!=auto resume"}, "a resumed run has its parameters",
                   "one of the two, or --resume auto, which takes them where it begins"),
      row("rename", &values::rename, "PATTERN=TEXT", command_train,
          "of that file's names: TEXT takes the place of what this regular expression finds first "
          "in a name, \\1 is its first group; several change the names one after the other")
          .of_one_start()
          .checked(check_rename)
          .refused({"rename !initialise"}, "there is no file whose names it could change",
                   "--initialise FILE"),
      row("no-checkpoints", &values::no_checkpoints, "", command_train, "write no checkpoint")
          .of_one_start(),
      row("checkpoints", &values::checkpoints, folder_kinds, "WHERE", command_train,
          "on several hosts: shared, in one folder that all see; per-host, whole ones on a disk of "
          "each; auto finds out which, and the others refuse what is not so")
          .of_one_start(),
      row("no-background", &values::no_background, "", command_train,
          "training waits while a checkpoint is written: it takes no memory for a copy of "
          "parameters and states"),
      row("checkpoint-every", &values::checkpoint_every, "PERIOD", command_train,
          "write a checkpoint every N steps, Nmin or Nepochs; 0: only at the end")
          .usual(),
      row("keep", newest_kept, "N", command_train | command_checkpoints,
          "how many of the newest checkpoints stay")
          .between(1, 10000),
      row("keep-every", every_kept, "K", command_train | command_checkpoints,
          "those of every K steps stay besides; 0: none"),
      row("keep-best", best_kept, "METRIC", command_train | command_checkpoints,
          "the one with the best METRIC stays besides: the lowest, of an accuracy the highest; "
          "with a held-out one, a checkpoint is written whenever an evaluation is the best so far")
          .usual()
          .refused({"keep-best=held-out-* !evaluate-every"}, "nothing is evaluated while training",
                   "--evaluate-every 100"),
      row("checkpoint", &values::checkpoint, "WHICH", reads_parameters,
          "parameters to use, of --run: latest, best (by --keep-best of the run, else by held-out "
          "loss) or step-N; the path of a checkpoint; or initial"),
      row("ema", &values::average, "", reads_parameters,
          "use the moving average of the parameters, which programs keep that were compiled with "
          "--ema"),
      row("frozen-data", &values::frozen_data, "FOLDER", command_train | reads_parameters,
          "where the external data of the model's file are now that have frozen weights, if they "
          "were moved (default: where trainc found them, or beside the trainer)")
          .of_one_start(),
  };
}

std::vector<option_row> evaluation_rows() {
  return {
      row("evaluate-every", &values::evaluate_every, "PERIOD", command_train,
          "print the loss on the held-out part every N steps, Nmin or Nepochs; 0: never")
          .usual()
          .refused({"evaluate-every !holdout !validation-data !validation-tokens"},
                   "there is no held-out part of the data", "--holdout 0.1, or --validation-data"),
      row("patience", &values::patience, "N", command_train,
          "end when the last N evaluations in a row were no better than the best before, by the "
          "metric of --keep-best, else by the held-out loss; 0: never")
          .refused({"patience !evaluate-every"}, "nothing is evaluated while training",
                   "--evaluate-every 100"),
      row("validation-data", &values::validation_data, "NAME=FILE", command_train,
          "data that --evaluate-every uses instead of a held-out part; repeat for every input")
          .of_one_rank()
          .idle("!evaluate-every", "nothing is evaluated while training", "--evaluate-every 100"),
      row("validation-tokens", &values::validation_tokens, "FILE", command_train,
          "the same for a language model, of the type of --tokens")
          .of_one_rank()
          .idle("!evaluate-every", "nothing is evaluated while training", "--evaluate-every 100"),
      row("validation-batches", &values::validation_batches, "N", command_train,
          "--evaluate-every uses the first N batches only; 0: all")
          .idle("!evaluate-every", "nothing is evaluated while training", "--evaluate-every 100"),
      row("sample-every", &values::sample_every, "N", command_train,
          "of a byte-token language model: write --length bytes after --prompt to samples/ of the "
          "run every N steps; 0: never"),
      row("prompt", &values::prompt, "TEXT", writes_text, "text to continue")
          .idle("!sample-every", "no samples are written", "--sample-every 1000"),
      row("length", &values::length, "N", writes_text, "bytes to write")
          .at_least(1)
          .idle("!sample-every", "no samples are written", "--sample-every 1000"),
      row("temperature", &values::temperature, "T", writes_text,
          "below 1: likelier bytes preferred; 0: always the likeliest")
          .between(0, 1000)
          .idle("!sample-every", "no samples are written", "--sample-every 1000"),
      row("top-k", &values::top_k, "K", writes_text, "choose among the K likeliest; 0: all")
          .idle("!sample-every", "no samples are written", "--sample-every 1000"),
  };
}

std::vector<option_row> result_rows() {
  return {
      row("output", &values::output, "FILE",
          command_gradients | command_predict | command_export | command_profile, "file to write")
          .short_form('o'),
      row("trace", &values::trace, "FILE", command_profile,
          "also write when each rank did what, as trace events, which ui.perfetto.dev shows"),
      row("external-data", &values::external_data, "", command_export,
          "put the weights into NAME.data at any size"),
      row("state-dict", &values::state_dict, "FILE", command_export,
          "write the weights as safetensors by the names and in the layouts of PyTorch's module"),
      row("optimizer-state", &values::optimizer_state, "FILE", command_export,
          "write the optimizer's state likewise, as state.PARAMETER.exp_avg and so on"),
      row("adapter", &values::adapter, "FOLDER", command_export,
          "write the adapters of trainc --lora into a folder, as the PEFT library loads them; -o "
          "and --state-dict add them to the weights"),
      row("memory-phases", &values::memory_phases, "", command_info,
          "print what a rank's memory has at the phases of a training step, as planned"),
      row("json", &values::json, "", command_evaluate | command_info | command_checkpoints,
          "print the result as one JSON line"),
  };
}

std::vector<option_row> watch_rows() {
  return {
      row("memory-every", &values::memory_every, "N", command_train,
          "of one step of every N, the first one included, print and log what each rank's memory "
          "has at the phases of the step; 0: never")
          .of_one_start(),
      row("watch", &values::watch, "PATTERN", command_train,
          "write statistics of the tensors whose names match this regular expression as a whole: "
          "the names that trainc-inspect OUT memory shows, 'gradient of NAME', 'update of "
          "PARAMETER'; '.*': of all")
          .of_one_start()
          .checked(check_pattern)
          .refused({"watch dry-run !watch-folder"}, "a dry run keeps nothing",
                   "--watch-folder DIR"),
      row("dump", &values::dump, "PATTERN", command_train,
          "write the tensors themselves of such names, as safetensors, of the steps that "
          "--watch-every says and beside its statistics; they are held in memory until the step "
          "ends")
          .of_one_start()
          .checked(check_pattern)
          .refused({"dump dry-run !watch-folder"}, "a dry run keeps nothing", "--watch-folder DIR"),
      row("watch-every", &values::watch_every, "N", command_train,
          "watch one step of every N, the first one included")
          .at_least(1)
          .of_one_start()
          .idle("!watch !dump", "no tensor is watched", "--watch '.*'"),
      row("watch-folder", &values::watch_folder, "DIR", command_train,
          "where the statistics go, a file for each rank (default: statistics/ of the run)")
          .of_one_start()
          .idle("!watch !dump", "no tensor is watched", "--watch '.*'"),
      row("histograms-every", &values::histograms_every, "N", command_train,
          "for TensorBoard: histograms of parameters, gradients and updates every N steps; 0: "
          "never")
          .idle("no-tensorboard histograms-every", "--no-tensorboard writes none", "one of the two")
          .idle("dry-run histograms-every", "a dry run keeps nothing", "one of the two"),
      row("profile-steps", &values::profile_steps, "A:B", command_train,
          "write when each rank did what in the steps A to B - 1, as `profile --trace` does")
          .of_one_start()
          .refused({"profile-steps dry-run !profile-file"}, "a dry run keeps nothing",
                   "--profile-file FILE")
          .refused({"profile-steps watch"}, "not beside --watch, whose time would be measured")
          .refused({"profile-steps dump !watch"}, "not beside --dump, whose time would be measured")
          .refused({"profile-steps histograms-every !no-tensorboard"},
                   "not beside --histograms-every, whose time would be measured",
                   "--histograms-every 0"),
      row("profile-file", &values::profile_file, "FILE", command_train,
          "where that goes (default: traces/steps-A-B.json of the run)")
          .of_one_start()
          .idle("!profile-steps", "no steps are profiled", "--profile-steps 10:12"),
      row("display-every", &values::display_every, "N", command_train,
          "print a line every N steps; 0: every ten seconds where there is no progress bar")
          .of_one_start()
          .of_one_rank(),
      row("log-every", &values::log_every, "N", command_train,
          "write a line of the log every N steps; skipped steps and the last of --steps have "
          "theirs")
          .at_least(1),
      row("no-tensorboard", &values::no_tensorboard, "", command_train,
          "write no event files for TensorBoard")
          .of_one_start()
          .of_one_rank(),
      row("verbose", &values::verbose, "", command_train | command_profile,
          "print all options at the start, not only those that are not the defaults")
          .of_one_start()
          .of_one_rank(),
      row("no-progress", &values::no_progress, "", command_train,
          "print no progress bar and no line per step")
          .of_one_start()
          .of_one_rank(),
  };
}

std::vector<option_row> machine_rows() {
  return {
      row("hang-timeout", &values::hang_timeout, "SECONDS", computes,
          "end the job when a rank has not responded for SECONDS, or makes no progress while "
          "others wait for it for SECONDS, or five times its longest step if that is more; 0: wait "
          "for ever")
          .between(0, 1e9)
          .of_one_start(),
  };
}

std::vector<option_row> grouped(const char *group, std::vector<option_row> rows) {
  for (option_row &option : rows)
    option.group = group;
  return rows;
}

} // namespace

std::span<const command_row> all_commands() { return commands; }

std::vector<option_row> common_rows() {
  std::vector<option_row> all;
  for (const auto &rows :
       {grouped("data", data_rows()), grouped("training", training_rows()),
        grouped("rate", rate_rows()), grouped("run", run_rows()),
        grouped("evaluation", evaluation_rows()), grouped("result", result_rows()),
        grouped("watch", watch_rows()), grouped("machine", machine_rows())})
    all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

std::vector<option_row> loss_scale_rows() {
  constexpr auto growth = [](auto &options) -> auto & { return options.scale_rules.growth; };
  constexpr auto backoff = [](auto &options) -> auto & { return options.scale_rules.backoff; };
  constexpr auto interval = [](auto &options) -> auto & { return options.scale_rules.interval; };
  return grouped(
      "training",
      {
          row("loss-scale", &values::loss_scale, "X", takes_steps,
              "what the gradient of the loss is multiplied by, so that small gradients are not 0 "
              "in 16 bits; training begins with it, and a resumed run goes on with its own unless "
              "this changes")
              .between(least_loss_scale, most_loss_scale),
          row("loss-scale-growth", growth, "X", command_train,
              "factor of the scale after --loss-scale-interval steps")
              .between(1, most_scale_change),
          row("loss-scale-backoff", backoff, "X", command_train,
              "factor of the scale after a step whose gradient is not finite, which is skipped")
              .between(1 / most_scale_change, 1),
          row("loss-scale-interval", interval, "N", command_train,
              "steps in a row with a finite gradient after which the scale grows; 0: the scale "
              "stays as it is"),
      });
}

std::vector<option_row> cpu_rows() {
  return grouped(
      "machine",
      {
          row("threads", &values::threads, "N", computes,
              "threads per rank (default: OMP_NUM_THREADS, else the host's cores, or a container's "
              "quota of them, divided by its ranks)")
              .between(1, most_threads)
              .of_one_start()
              .of_one_rank(),
          row("communication", &values::communication, communications, "KIND", takes_steps,
              "between ranks of one host: shared memory or messages; both give the same bits")
              .of_one_start(),
          row("exchange", &values::exchange, exchanges, "WHEN", takes_steps,
              "when ranks of one host exchange gradients: overlapped with the backward pass by a "
              "thread more a rank, or after it; auto overlaps where cores are left; the bits are "
              "the same")
              .of_one_start(),
          row("shard", &values::shard, shards, "WHAT", command_train | command_profile,
              "what ranks of one host keep once instead of each, updating a part each: optimizer "
              "is the optimizer's state and the parameters, gradients (of a program compiled with "
              "that) these and the gradients; the bits are the same")
              .of_one_start(),
      });
}

std::vector<option_row> cuda_rows() {
  return grouped(
      "machine",
      {
          row("math", &values::math, maths, "KIND", computes,
              "f32 matrix products and convolutions: exact operands, or rounded to TF32 (faster)"),
          row("no-tuning", &values::no_tuning, "", computes,
              "do not measure algorithms for matrix products and convolutions, take the first that "
              "fits"),
          row("no-epilogues", &values::no_epilogues, "", computes,
              "compute biases, GELU and sums after the library's matrix products, to find faults"),
          row("no-cudnn", &values::no_cudnn, "", computes,
              "compute convolutions through matrix products where cuDNN is found, too"),
          row("product-choices", &values::product_choices, "FILE", computes,
              "where chosen algorithms are kept, so that later runs give the same bits (default: "
              "`product_choices.txt` beside the trainer); none: nowhere")
              .of_one_start()
              .of_one_rank(),
          row("exchange", &values::exchange, exchanges, "WHEN", takes_steps,
              "when ranks exchange gradients: overlapped with the backward pass, or after it; auto "
              "overlaps unless they are small; the bits are the same")
              .of_one_start(),
          row("shard", &values::shard, shards, "WHAT", command_train | command_profile,
              "what ranks keep a part of instead of all, which they update: optimizer is the "
              "optimizer's state, gradients (of a program compiled with that) this and the "
              "gradients; the bits are the same")
              .of_one_start(),
      });
}

} // namespace trainc
