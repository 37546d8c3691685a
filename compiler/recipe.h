// SPDX-License-Identifier: Apache-2.0
//
// The training recipe: what the user asks of the compiler besides the model.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace trainc {

/// Which axis counts samples, of inputs and outputs by name, where it is not the first.
using BatchAxes = std::map<std::string, int64_t, std::less<>>;

/// --lora: adapters of one rank beside the weights that a pattern names.
struct AdapterChoice {
  std::string pattern; // regular expression
  int64_t rank = 0;
  double alpha = 0;
};

struct Recipe {
  std::map<std::string, int64_t> dimensions; // --dim name=value
  int64_t batch = 0;   // --batch: of inputs whose first axis the file fixes; 0: as in the file
  BatchAxes batchAxes; // --batch-axis
  std::vector<std::string> constants; // --constant name=value or name=file
  bool trains = true;                 // false: forward only, perhaps without parameters
  bool predicts = true;               // outputs are results of @evaluate
  std::vector<std::string> losses;    // --loss, as dialects/train/loss_term.h writes them
  std::vector<std::string> lossFiles; // which these were read from
  std::string optimizer = "adamw";    // and train::kWithAverage
  std::vector<std::string> decay;     // regular expressions; empty: two or more axes (isMatrix)
  std::vector<std::pair<std::string, std::string>> groups; // names and regular expressions
  std::vector<std::string> freeze;
  std::vector<std::string> trainOnly;
  std::vector<AdapterChoice> adapters;        // the first that matches a weight has it
  double adapterDropout = 0;                  // of what adapters read, in training
  std::map<std::string, std::string> buffers; // initializer and the output that replaces it
  std::string batchNorm = "train";            // or file, all-ranks, frozen
  bool choosesBatchNorm = false;              // somebody has said so
  std::vector<std::pair<std::string, std::string>> batchNormOf; // regular expressions and modes
  std::string precision = "f32";                                // or bf16, fp16, f64
  std::string exportType = "file"; // of parameters in exports: file, f32, bf16 or fp16
  std::string keptF32; // regular expression of nodes and modules whose products stay f32
  std::string frozenType = "file"; // of frozen weights: file, bf16, fp16, int8 or int4
  std::string target = "cpu";      // or cuda
  int64_t rowChunk = 0;            // bytes of what is computed in chunks of rows; 0: nothing is
  std::string kept;      // regular expression of nodes whose values stay in memory; empty: none
  bool epilogues = true; // of matrix products, where the target's library has them
};

} // namespace trainc
