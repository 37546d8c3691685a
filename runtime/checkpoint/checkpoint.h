// SPDX-License-Identifier: Apache-2.0
//
// Checkpoints: a folder `step-00000100` with one safetensors file per rank and a
// manifest with checksums. Tensors are stored whole under their logical names and
// dealt out among the ranks by size, so any number of ranks can load them. Where hosts do not share
// a folder, each has a whole checkpoint, of its own ranks' files.
#pragma once

#include "runtime/checkpoint/checkpoint_policy.h"
#include "runtime/checkpoint/folder_groups.h"
#include "runtime/checkpoint/loss_scale.h"
#include "runtime/checkpoint/loss_statistics.h"
#include "runtime/data/loader.h"
#include "runtime/files/file_operations.h"
#include "runtime/files/path_text.h"
#include "runtime/files/safetensors.h"
#include "runtime/process/background.h"
#include "runtime/program.h"
#include "runtime/ranks/communicator.h"

#include <array>
#include <atomic>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace trainc {

// The files of a checkpoint have a CRC-32C for each block.
constexpr int64_t block_bytes = 1 << 20;
inline size_t blocks_of(int64_t bytes) {
  return static_cast<size_t>((bytes + block_bytes - 1) / block_bytes);
}

// What a position in the data is a position of.
struct sample_order {
  uint64_t seed = 0;
  int64_t samples_per_batch = 0; // 0: of a run that did not say
  int64_t number = 0;            // one more each time that --new-data began the order anew
  std::optional<sample_choice> choice = {}; // nothing: of a run that did not say
};

// What a program makes of its parameters: its members of these names. Empty: of a run that did not
// say.
struct computed_from_parameters {
  std::string graph_digest, objective, frozen_digest;
};

// Empty where both have the same graph, or nobody can say.
std::string change_of_graph(const computed_from_parameters &before, const program &now);
// That, and "the loss mse of output 0, was l1 of output 0".
std::vector<std::string> changes_of_computation(const computed_from_parameters &before,
                                                const program &now);

// What a manifest says.
struct checkpoint_info {
  std::string path;
  int64_t step = 0;
  int64_t batches_taken = 0; // by all ranks together
  int64_t skipped_steps = 0; // of `step`: their updates were not taken
  loss_statistics losses = {};
  loss_scale scale = {};
  double loss = NAN; // of the step; NaN where it was not known
  // Results of its evaluation, where it had one.
  std::vector<std::pair<std::string, double>> evaluated; // "top_5_accuracy"
  std::string watched;  // the metric of `best`; empty: it does not say
  best_evaluation best; // of the run until then
  sample_order order;
  uint64_t sequence = 0; // the newest has the greatest
  // The start of a run that wrote it: one step of two starts has two contents. Empty: it does not
  // say.
  std::string written_by;
  uint64_t fingerprint = 0;
  computed_from_parameters computed;
  std::string model, precision; // of a run that did not say: no precision
  struct file {
    std::string name;
    int64_t bytes;
    std::vector<uint32_t> block_checksums; // CRC-32C of each
  };
  std::vector<file> files;

  double metric(const std::string &name) const; // as metric_of
};

// The state of a run as tensors: each parameter under its ONNX name, each state
// slot of a trained one as `optimizer/<slot>/<name>`.
constexpr const char *state_prefix = "optimizer/";
std::vector<tensor_view> parameter_tensors(const program &program, const arenas &arenas);
// Those that checkpoints have: without frozen weights that are mapped.
inline int64_t kept_parameters(const program &program) {
  return std::ssize(program.parameters) - program.frozen_count;
}
std::vector<tensor_view> kept_parameter_tensors(const program &program, const arenas &arenas);
// A place for f32 values that a file has of a frozen weight, to compare them: in `values`.
tensor_view floats_beside(const program &program, const tensor_view &frozen,
                          std::vector<char> &values);
// Whether a frozen weight has these values, rounded to its type.
bool has_values_of(const program &program, const arenas &arenas, const tensor_view &frozen,
                   const char *floats);
// The places of parameters, and of trained ones the names of their moving averages.
std::vector<tensor_view> averaged_tensors(const program &program, const arenas &arenas);
bool keeps_average(const program &program);
std::vector<tensor_view> state_tensors(const program &program, const arenas &arenas);
std::vector<tensor_view> state_tensors(const program &program); // at no address

// Whether values of tensor `number` of state_tensors can be trained on: trained parameters are
// finite (of frozen ones, such as masks, infinity is a value; of those that begin so, -infinity),
// states are numbers.
bool is_sound(const program &program, size_t number, data_type type, const char *data,
              int64_t bytes);

// All throw `failure` (exit_checkpoint).
checkpoint_info read_manifest(const std::string &folder);
void verify_files(const checkpoint_info &info); // sizes and every checksum
void check_model(const checkpoint_info &info, const program &program);
void check_sound(const checkpoint_info &info, const program &program); // every tensor's values
// Refuses other values than the program's of frozen weights that it maps: checkpoints of programs
// that have them among their parameters hold them.
void check_frozen_weights(const checkpoint_info &info, const program &program,
                          const arenas &arenas);
std::set<std::string> names_in(const checkpoint_info &info); // of its tensors
void load_tensors(const checkpoint_info &info, const std::vector<tensor_view> &tensors,
                  arena_access &access);

// Begins of the names that folders have while they are written and removed.
constexpr const char *temporary_prefix = ".writing-", *removed_prefix = ".removing-";

// By names alone: `step-` and a number; a folder of that name with a manifest; one that has such
// folders.
bool is_checkpoint_name(const std::string &name);
int64_t step_of_checkpoint(const std::string &name); // whose name it is
bool is_checkpoint(const std::string &path);
bool is_link(const char *path); // allocates nothing
bool has_checkpoints(const std::string &folder);

// Names of checkpoints in the folder that are links: what they lead to is not the run's to remove.
std::vector<std::string> linked_checkpoints(const std::string &folder);

// What an interrupted run left: a checkpoint that was complete gets its name where no other
// has it (a kill between two renames hides both the old and the new one), the rest is removed.
// The caller holds the run's lock. Throws `failure` (exit_disk) where a complete one cannot get its
// name, and leaves it.
void recover_checkpoints(const std::string &folder,
                         file_operations &files = real_file_operations());

// Removes the checkpoint `name` of so many ranks: first the name, so that nobody finds a part of
// it. -1, with errno, where that fails, or it is a link (ELOOP); what else stays is removed by the
// next start. Allocates nothing.
int remove_checkpoint(const std::string &folder, const char *name, int ranks,
                      file_operations &files = real_file_operations());

// Complete checkpoints in a folder, newest first. Unreadable ones are passed to `warn` and left
// out. Throws `failure` (exit_checkpoint) where there is a folder that cannot be read.
std::vector<checkpoint_info> list_checkpoints(const std::string &folder,
                                              const std::function<void(std::string)> &warn);

// Finds the checkpoint that `which` names: "latest" (of `folder`) or a path (a
// checkpoint, or a run or folder of checkpoints whose newest is taken), verified. Falls
// back from a damaged newest one to the one before, with a warning. An empty
// path in the result: "latest" was asked for and there is none.
checkpoint_info find_checkpoint(const std::string &which, const std::string &folder,
                                const program &program,
                                const std::function<void(std::string)> &warn);

// The newest of the folder that is whole and of this model; nothing where there is none. Damaged
// ones are passed over, with a warning.
std::optional<checkpoint_info> newest_whole(const std::string &folder, const program &program,
                                            const std::function<void(std::string)> &warn);

// Where a run stands.
struct run_position {
  int64_t step = 0;
  int64_t batches_taken = 0; // by all ranks together
  int64_t skipped_steps = 0;
  double loss = NAN;                            // of the step; NaN: not known
  std::span<const named_number> evaluated = {}; // of the step; empty: it had no evaluation
  loss_statistics losses = {};                  // of the steps until here
  best_evaluation best = {};                    // likewise
  loss_scale scale = {};                        // of the next step
};

struct save_result {
  int error = 0; // errno of the first rank that failed; 0: the checkpoint is complete
  char operation[16] = "";
  int rank = 0;       // that failed
  char host[64] = ""; // of it, where there are several ranks
  int64_t bytes_needed = 0, bytes_available = 0;
  // Where that rank writes: inodes, -1 where they suffice; what a file may have, -1: anything.
  int64_t files_available = -1, file_limit = -1;
  // With the error `not_finite`: a tensor that would have made every resumed run fail.
  const char *tensor = "";
  static constexpr int not_finite = -1;
  bool made_folder = false; // of checkpoints, which was gone; said to the first rank
  bool lacks_room() const;
};

// When a rank did what of a checkpoint, by seconds_now(), and the bytes of it. An end of 0: it goes
// on; a begin of 0: it was not done.
struct save_work {
  const char *what;
  double begin, end;
  int64_t bytes;
};

// Writes checkpoints, in the background from a copy or while the caller waits. Everything that
// takes memory happens in the constructor and in `open`.
class checkpoint_writer {
public:
  // Takes all memory; `background`: snapshot_bytes of it besides. `groups`: of the folder.
  // Collective; throws `failure`.
  checkpoint_writer(const program &program, const arenas &arenas, arena_access &access,
                    communicator &ranks, const folder_groups &groups, file_operations &files,
                    std::string folder, const keep_policy &policy, const sample_order &order,
                    bool background = false);
  checkpoint_writer(const checkpoint_writer &) = delete;
  checkpoint_writer &operator=(const checkpoint_writer &) = delete;

  // To be called before all that follows. The keeper of each folder makes it, and completes or
  // removes what an interrupted run left there. Nobody else may write to it. A run that goes on
  // says from which checkpoint, by its sequence: those that are newer are damaged, or it would go
  // on from them. Collective; throws `failure`.
  // `written_by`: what manifests say of this start.
  void open(uint64_t goes_on_from = UINT64_MAX, const std::string &written_by = "");

  // Collective. After an error the checkpoints written before are as they were. Parameters that
  // are not finite, and states that are not numbers, are not written.
  save_result save(const run_position &at) {
    begin(at);
    return complete();
  }

  // The same in parts. `begin` returns when the state is copied (without a background: when it is
  // written). Then `proceed`, once no rank's writer is busy, until it returns true; `complete`
  // waits for that. `begin` and `proceed` are collective.
  void begin(const run_position &at);
  bool is_busy() const { return worker_ && worker_->is_busy(); }
  bool proceed();
  save_result complete() {
    while (!proceed()) {
    }
    return result_;
  }

  // Of the last checkpoint, on this rank: the copy, its file, the manifest and the names.
  std::array<save_work, 3> work() const;

  // What the copy takes of a rank, the largest, where so many ranks share a folder.
  static int64_t snapshot_bytes(const program &program, size_t ranks);
  // Whether there is one without a background too: some rank keeps alone what another writes.
  static bool copies_always(const program &program, const arenas &arenas,
                            const arena_access &access);

  // Removes what the policy does not keep, the oldest first. Not part of `save`: until a step from
  // there was finite, the checkpoint before may be the last good one. Any rank may call it.
  void prune();

  const std::string &folder() const { return folder_; }

private:
  bool keeps_folder() const { return member_ == 0; }
  int members() const { return static_cast<int>(members_.size()); }
  void deal_out(const program &program, const arenas &arenas, const folder_groups &groups);
  void make_texts(const program &program);
  int write_own_file();
  int write_block_wise(int file, const char *data, int64_t bytes);
  int write_tensor(int file, size_t number, const char *copy);
  int write_manifest();
  template <typename Write> int write_file(const path_text &path, const Write &write);
  int publish();
  void forget(int64_t step);
  bool make_folder();
  enum class stage { over, failed, files, names };
  void run(background_worker::job work);
  struct span { // another thread may ask for it
    std::atomic<double> begin = 0, end = 0;

    void start();
    void stop();
    void clear() { begin = end = 0; }
  };
  void take_snapshot();
  char *copy_piece(size_t number, const char *place, int64_t &bytes, char *copy);
  void finish(int error);
  static std::vector<std::vector<size_t>> deal(const std::vector<tensor_view> &tensors,
                                               size_t ranks);
  path_text folder_of(const char *prefix, int64_t step) const; // "" or one of the prefixes above
  void remove_superfluous();
  // Of a rank, for all.
  struct report {
    int error;
    char operation[sizeof save_result::operation], host[sizeof save_result::host];
    int64_t bytes_available, files_available, file_limit;
  };
  const report &gather_reports(int error);
  int agree(int error);
  int failed(const char *operation);

  const program &program_;
  arena_access &access_;
  communicator &ranks_;
  std::vector<int> members_; // the ranks that share the folder
  int member_ = 0;           // this one among them; the first keeps the folder
  file_operations &files_;
  std::string folder_, around_; // the folder that it is in
  keep_policy policy_;
  sample_order order_;
  uint64_t sequence_ = 1;
  std::string written_by_json_; // a member, or empty

  std::vector<tensor_view> tensors_;         // of the run
  std::vector<size_t> own_;                  // this rank's of them in file order
  std::vector<std::vector<int>> writers_of_; // each of them, one for each folder
  std::string own_header_;
  std::vector<int64_t> file_bytes_; // of each member's file
  int64_t total_bytes_ = 0;
  std::vector<kept_checkpoint> kept_; // oldest first

  // Checksums of the file being written: this rank's, then those of all.
  std::vector<uint32_t> checksums_, all_checksums_;
  size_t blocks_done_ = 0, blocks_room_ = 0;
  uint32_t block_checksum_ = 0;
  int64_t block_fill_ = 0;
  std::vector<char> manifest_;
  std::string program_json_, computed_json_, watched_json_;
  save_result result_;

  stage stage_ = stage::over;
  run_position at_;
  std::vector<named_number> evaluated_;        // of `at_`, which others may change meanwhile
  std::vector<std::string> evaluated_members_; // their names in the manifest
  std::vector<report> reports_;                // of all ranks
  int error_ = 0;                              // of this rank's part of the stage
  bool needs_sync_ = false;                    // the folder's name, since it was made again
  bool stays_hidden_ = false;                  // what has the temporary name, for the next start
  bool copies_ = false;
  span copy_, file_, names_;   // of the last checkpoint
  std::vector<char> snapshot_; // own tensors, one after the other, where it copies them
  std::optional<background_worker> worker_; // last: it uses the others
};

// "checkpoint of step 20 was not written: ..."
std::string save_problem(const save_result &result, const std::string &folder, int64_t step);

} // namespace trainc
