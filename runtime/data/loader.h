// SPDX-License-Identifier: Apache-2.0
//
// Batches from data files: an array per input, sliced along its first axis, or
// windows of flat token files. Which samples a batch holds is a pure function of
// its number and the seed, so a resumed run needs no loader state and every rank
// can take its own batches without asking.
#pragma once

#include "runtime/data/augmentation.h"
#include "runtime/data/data_array.h"
#include "runtime/data/mixture.h"
#include "runtime/data/permutation.h"
#include "runtime/files/data_types.h"
#include "runtime/program.h"
#include "runtime/words.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trainc {

class problem_list;

// What becomes of the samples of a training epoch that fill no batch: they are left out; the last
// batch is filled up with rows whose labels are ignored; or it goes on with the next epoch's first.
enum class leftovers { drop, pad, wrap };
inline constexpr word_row<leftovers> leftover_words[] = {
    {"drop", leftovers::drop}, {"pad", leftovers::pad}, {"wrap", leftovers::wrap}};

// Which samples are trained on, and in which order: what a position in the data is of besides the
// seed.
struct sample_choice {
  double holdout = 0;
  bool shuffles = true;
  leftovers rest = leftovers::drop;
  int64_t overfit = 0; // batches; 0: all
};

// NAME=FILE. Names of inputs may hold `=`, and so may files: the longest name of an input counts,
// and without one what stands before the first `=`. Without any `=` all is the file.
struct named_file {
  std::string name, file;
  const input_place *input; // null: the model has none of that name
};
named_file named_file_of(const program &program, const std::string &item);

struct data_request {
  std::vector<std::string> data;       // NAME=FILE
  std::vector<std::string> constants;  // NAME=FILE
  std::vector<std::string> tokens;     // FILE, or FILE:WEIGHT all of them
  std::optional<file_type> token_type; // of files that do not say; nothing: bytes
  std::optional<int64_t> label_shift;  // by which labels of the model's own follow; nothing: ask
  double holdout = 0;
  int64_t training_batches = 0; // the training part is so many batches from the beginning; 0: all
  bool shuffle = false;
  uint64_t seed = 0;
  leftovers rest = leftovers::drop; // of training
  augmentation changes;             // of pictures, in training
  // Inputs may be without data, and all of them: they are left as they are.
  bool may_lack_data = false;
  // Every sample once: the last batch is filled up with the last sample. Labels need no data.
  bool for_prediction = false;
  // The last batch of what is not for training holds what is left: further rows repeat the last
  // sample, with ignored labels. Only where the program can tell their loss from the others':
  // it ignores labels, or each sample has its loss.
  bool partial_batches = false;
};

enum class data_part { all, training, held_out };

// What tells one data file from another without reading it whole: its size and `sampled_digest`.
struct data_identity {
  std::string input, path;
  int64_t bytes = 0;
  uint32_t digest = 0;
  int64_t share = 0;    // of a mixture, in 1/mixture::block_size; 0: it is none
  std::string type;     // of its elements, as npy.h names it; empty: not known
  int64_t modified = 0; // when the file was written, in ns since 1970; 0: not known
};

// "3 samples of each epoch fill no batch and are left out", or "the last 3 samples fill ...".
std::string left_out_text(int64_t samples, bool of_each_epoch);

class loader {
public:
  // Opens and checks the files' types and shapes; throws `failure` (exit_data)
  // with every problem found.
  loader(const program &program, const data_request &request);

  // What somebody may want to know who reads these data: conversions.
  const std::vector<std::string> &notes() const { return notes_; }

  // Throws unless all indexes (token ids, labels) of this rank's share of the
  // files are in range.
  void check_values(int rank, int ranks) const;

  // Throws unless all floating-point values of this rank's share of the files are finite.
  void check_finite(int rank, int ranks) const;
  // Throws unless all contents of this rank's share of the files are those of their manifests.
  void check_contents(int rank, int ranks) const;
  // Says which value of a batch is the first that is not; empty: all are. While nobody loads one.
  std::string not_finite_in(data_part part, int64_t batch);

  // Batches in a part (for training: in one epoch), complete ones unless the request lets the last
  // be filled up. Throws when there is none.
  int64_t batches(data_part part) const;
  // Of training: a whole number unless epochs go over into each other.
  double batches_per_epoch() const;
  // Files of tokens have weights: samples come from each in its share, for training. An epoch is as
  // many samples as all have, and goes over into the next; of a file with a large share some come
  // again before it is over.
  bool is_mixture() const { return !shares_.empty(); }
  // Samples of the part that a batch holds: all its rows unless it is filled up.
  int64_t samples_in(data_part part, int64_t batch) const;
  int64_t samples(data_part part) const;
  int64_t left_out(data_part part) const; // samples that fill no batch
  // Identity of every file that is read, in the order of the options.
  std::vector<data_identity> identities() const;
  // The training batch from which a run goes on that took `taken` batches of `size`
  // samples: the next, or where the sizes do not fit the one that holds the next sample.
  int64_t batch_after(int64_t taken, int64_t size) const;
  int64_t samples_per_batch() const { return batch_; }
  int64_t tokens_per_batch() const { return token_input_ ? batch_ * window_ : 0; }

  bool fills(const input_place &input) const;

  // Where the values of an input go.
  using input_target = std::function<char *(const tensor_place &)>;

  // Writes batch number `batch` to the targets of the inputs. Numbers go on over
  // the end of an epoch. Only the training part is ever shuffled.
  void load(data_part part, int64_t batch, const input_target &target);

private:
  struct source {
    const input_place *input;
    data_array array;
    int64_t rows;          // per batch
    int64_t row_elements;  // of one sample
    bool constant = false; // all of the array is the value for every batch
  };
  // A file of tokens, or several in a row.
  struct token_stream {
    data_array array;
    // Of the epoch last used:
    int64_t epoch = -1, window_offset = 0;
    permutation order; // of a mixture
  };
  struct range {
    int64_t begin, end;
  };
  // What tokens could fill: of several candidates one.
  struct token_inputs {
    const input_place *tokens = nullptr, *labels = nullptr;
    const input_place *taken = nullptr; // has other data
    int candidates = 0;
    bool labels_fit() const {
      return !labels || element_count(labels->tensor) == element_count(tokens->tensor);
    }
  };

  void open_data(const std::vector<std::string> &items, bool constant, problem_list &problems);
  void open_source(const input_place &input, const std::string &name, bool constant,
                   problem_list &problems);
  void open_tokens(const data_request &request, problem_list &problems);
  token_inputs find_token_inputs() const;
  void match_token_inputs(const data_request &request, problem_list &problems);
  void settle_weights(const std::vector<double> &weights, problem_list &problems);
  void settle_offsets();
  void settle_batch(problem_list &problems);
  bool fits_batch(int64_t batch) const;
  void refuse_missing(const data_request &request, problem_list &problems) const;

  range part_of(int64_t count, data_part part) const; // of the rows, or of a stream's tokens
  int64_t windows(const token_stream &stream, data_part part) const;
  int64_t whole_batches(data_part part) const;
  bool fills_up(data_part part) const {
    return for_prediction_ ||
           (part == data_part::training ? rest_ == leftovers::pad : partial_batches_);
  }
  bool wraps(data_part part) const {
    return part == data_part::training && (rest_ == leftovers::wrap || is_mixture());
  }
  bool masks_labels() const;
  int64_t weighed_parts() const;
  bool labels_can_be_ignored(int64_t parts) const;
  bool tells_samples_apart() const;
  void ignore_rows(const input_place &input, int64_t first, const input_target &target) const;
  bool shuffled(data_part part) const { return shuffle_ && part == data_part::training; }
  void begin_epoch(data_part part, int64_t epoch);
  // Where a sample begins: a row of the arrays, or a token of a stream.
  struct sample {
    token_stream *stream;
    int64_t first;
  };
  sample sample_at(data_part part, int64_t index);
  sample sample_of_mixture(int64_t position);
  int64_t window_offset(uint64_t epoch, size_t stream) const;
  sample window_of(token_stream &stream, data_part part, int64_t index);
  void choose(data_part part, int64_t batch);
  void settle_pictures();
  void check_beside_pictures() const;
  void augment(int64_t batch, const input_target &target);
  void load_rows(const source &from, const input_target &target);
  void load_windows(const input_target &target);
  void check_indexes(const data_array &from, const input_place &input, int64_t first,
                     const void *values, int64_t count) const;
  void scan(const data_array &from, const input_place &input, int64_t begin, int64_t end) const;
  static range share_of(int64_t count, int rank, int ranks);
  std::string not_finite_in(const source &from, int64_t begin, int64_t end) const; // elements

  const program &program_;
  std::vector<std::string> notes_;
  std::vector<source> sources_;
  std::vector<token_stream> streams_;
  std::vector<int64_t> shares_; // of the streams where they are a mixture
  mixture mixture_;
  const input_place *token_input_ = nullptr, *token_labels_ = nullptr;
  int64_t label_shift_ = 1; // tokens
  int64_t window_ = 0;      // tokens
  int64_t batch_ = 1;       // samples
  int64_t samples_ = 0;     // rows of the files
  double holdout_;
  int64_t training_batches_;
  bool shuffle_, for_prediction_, partial_batches_ = false;
  // When shuffling, the windows of each epoch begin at another offset, so that with few tokens the
  // borders of windows are not learnt. It costs each stream one window.
  bool offsets_windows_ = false;
  uint64_t seed_;
  leftovers rest_;
  augmentation changes_;
  const input_place *pictures_ = nullptr; // what is changed; null: nothing
  std::vector<char> picture_;             // room for one
  // Of the epoch last used:
  int64_t epoch_ = -1;
  data_part epoch_part_ = data_part::all;
  permutation order_;
  std::vector<sample> chosen_; // for each row of the batch
  std::vector<char> staging_;
};

} // namespace trainc
