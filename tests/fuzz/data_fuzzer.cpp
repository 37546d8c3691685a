// SPDX-License-Identifier: Apache-2.0
//
// What a trainer reads besides its own program, and trainc-data, under libFuzzer with sanitizers:
// whatever the bytes are, a reader gives values or a `failure` with a message. TRAINC_FUZZ says
// which reader: npy, tokens, data-manifest, safetensors, manifest, configuration, vocabulary, csv,
// labelled.
// The model is the one of tests/unit/toy_program.cpp.
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/data/loader.h"
#include "runtime/failure.h"
#include "runtime/files/crc32c.h"
#include "runtime/host_access.h"
#include "runtime/options/run_configuration.h"
#include "runtime/options/trainer_table.h"
#include "runtime/run/run_folder.h"
#include "runtime/run/same_data.h"
#include "tools/data/byte_pairs.h"
#include "tools/data/commands.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <unistd.h>

namespace trainc {
extern const program trainer_program;
}
using namespace trainc;

namespace {

void require(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "data_fuzzer: %s\n", what);
  std::abort();
}

// A folder in memory of this process's own.
class memory_folder {
public:
  memory_folder() {
    char path[] = "/dev/shm/data_fuzzer-XXXXXX";
    require(mkdtemp(path), "no folder in memory can be made");
    path_ = path;
  }
  ~memory_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string write(const std::string &name, const std::string &bytes) const {
    std::string path = path_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    FILE *file = std::fopen(path.c_str(), "w");
    require(file && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size(),
            "a file in memory cannot be written");
    std::fclose(file);
    return path;
  }
  std::string operator/(const std::string &name) const { return path_ + "/" + name; }

private:
  std::string path_;
};

// The state of the model in this process's memory.
class host_memory final : public host_access {
public:
  host_memory() {
    for (int kind = 0; kind < arena_count; ++kind) {
      bytes_[kind].resize(static_cast<size_t>(trainer_program.arena_bytes[kind]));
      places.base[kind] = bytes_[kind].data();
    }
  }
  arenas places = {};

private:
  std::vector<char> bytes_[arena_count];
};

const memory_folder &folder() {
  static const memory_folder made;
  return made;
}

host_memory &memory() {
  static host_memory made;
  return made;
}

// All that a run does with its data before and in its first steps, and an evaluation.
void read_data(data_request request) {
  for (leftovers rest : {leftovers::drop, leftovers::wrap})
    for (bool for_prediction : {false, true}) {
      request.rest = rest;
      request.for_prediction = for_prediction;
      request.shuffle = rest == leftovers::wrap;
      request.partial_batches = true;
      loader data(trainer_program, request);
      data.check_values(0, 1);
      (void)data.identities();
      auto place = [](const tensor_place &input) {
        return memory().places[input.arena] + input.offset;
      };
      for (int64_t batch = 0, count = std::min<int64_t>(data.batches(data_part::all), 3);
           batch < count; ++batch)
        data.load(data_part::all, batch, place);
      data.load(data_part::training, data.batches(data_part::training) + 1, place);
    }
}

void read_npy(const std::string &bytes) {
  std::string path = folder().write("a.npy", bytes);
  input_file file(path, exit_data);
  npy_header header = read_npy_header(file);
  require(header.data_offset + header.element_count * bytes_of(header.type) <= file.size(),
          "an array that ends behind its file");
  data_request request;
  request.data = {"tokens=" + path, "labels=" + path};
  read_data(request);
}

// The first byte is the type that the command line would say.
void read_tokens(const std::string &bytes) {
  constexpr std::optional<file_type> types[] = {std::nullopt, file_type::u8, file_type::u16,
                                                file_type::u32, file_type::i32};
  data_request request;
  request.token_type = types[bytes.empty() ? 0 : static_cast<unsigned char>(bytes[0]) % 5];
  request.tokens = {folder().write("raw.bin", bytes.substr(std::min<size_t>(1, bytes.size())))};
  for (const char *name : {"headed.bin", "tokens.npy"}) { // that of llm.c comes without the byte
    try {
      read_data(request);
    } catch (const failure &) {
    }
    request.tokens = {folder().write(name, bytes)};
  }
  read_data(request);
}

// Of a file of tokens that trainc-data made, say.
void read_manifest_of_data(const std::string &bytes) {
  data_request request;
  request.tokens = {folder().write("made.bin", std::string(2000, 'a'))};
  folder().write("made.bin.json", bytes);
  read_data(request);
}

void read_safetensors(const std::string &bytes) {
  std::string path = folder().write("a.safetensors", bytes);
  input_file file(path, exit_checkpoint);
  safetensors_index index = read_safetensors_index(file);
  for (auto &[name, tensor] : index.tensors)
    require(tensor.offset + tensor.bytes <= file.size(), "a tensor that ends behind its file");
  for (const tensor_view &tensor : state_tensors(trainer_program, memory().places))
    if (index.tensors.count(tensor.name))
      read_tensor(file, index, tensor, memory());
  data_request request;
  request.data = {"tokens=" + path, "labels=" + path + ":tokens"};
  read_data(request);
}

// A manifest whose checksum agrees gets further: each input is read as it is and with one.
void read_checkpoint(const std::string &bytes) {
  std::string ending = ",\n  \"crc32c\": \"";
  std::string summed = bytes.substr(0, bytes.rfind(ending));
  summed += ending + format_text("%08x", crc32c(0, summed.data(), summed.size())) + "\"\n}\n";
  for (const std::string &text : {bytes, summed}) {
    folder().write("step-00000002/manifest.json", text);
    (void)list_checkpoints(folder() / "", [](const std::string &why) {
      require(!why.empty(), "a checkpoint that is passed over without a word");
    });
    checkpoint_info info = read_manifest(folder() / "step-00000002");
    check_model(info, trainer_program);
    verify_files(info);
    check_sound(info, trainer_program);
  }
}

void read_run_configuration(const std::string &bytes) {
  static const trainer_table table(trainer_program);
  const char *words[] = {"train"};
  trainer_options options = table.parse(1, words);
  std::string path = folder().write("configuration.json", bytes);
  const run_configuration configuration = read_configuration(path);
  (void)restore_options(trainer_program, configuration, table, options);
  (void)table.values(options);
  (void)configuration.option("holdout");
  (void)configuration.layout();
  require(configuration.data_order >= 0, "a negative number of orders");
  check_same_data(configuration, data_use::training, {{"tokens", "text.bin", 100, 0x12345678}});
}

// As a vocab.json, as its merges, and as a file of ranks.
void read_vocabulary(const std::string &bytes) {
  static const std::string known =
      folder().write("known.json", R"({"a": 0, "b": 1, "Ġ": 2, "ab": 3, "abab": 4, "<|end|>": 5})");
  static const std::string merges = folder().write("known.txt", "#version: 0.2\na b\nab ab\n");
  std::string path = folder().write("vocabulary", bytes);
  std::optional<failure> refused;
  for (auto [vocabulary, pairs] : {std::pair(path, merges), {known, path}, {path, std::string()}})
    try {
      data::BytePairs encoder(vocabulary, pairs, "gpt2");
      std::vector<uint32_t> tokens;
      require(encoder.encode("ababa b aab", /*last=*/true, tokens) == 11, "text without tokens");
      for (uint32_t token : tokens)
        require(token < encoder.vocabularySize(), "a token beyond the vocabulary");
      (void)encoder.idOf("0", "--end");
    } catch (const failure &error) {
      require(!error.message.empty(), "an error without a message");
      refused = error;
    }
  if (refused)
    throw failure(*refused);
}

// Runs a command of trainc-data on a file.
void make_arrays(const data::CommandRow &command, const std::string &path,
                 const std::vector<const char *> &options) {
  static const bool silent = std::freopen("/dev/null", "w", stdout) != nullptr;
  require(silent, "the standard output cannot be closed");
  std::string output = folder() / "arrays";
  std::vector<const char *> words = {path.c_str(), "-o", output.c_str()};
  words.insert(words.end(), options.begin(), options.end());
  std::vector<char *> given;
  for (const char *word : words)
    given.push_back(const_cast<char *>(word));
  command.run(data::parseArguments(command, static_cast<int>(given.size()), given.data()));
}

// Of lines of JSON and tables; the first byte chooses which.
void read_labelled(const std::string &bytes) {
  const char *name = !bytes.empty() && bytes[0] % 2 ? "texts.csv" : "texts.jsonl";
  make_arrays(data::labelledCommand(),
              folder().write(name, bytes.substr(std::min<size_t>(1, bytes.size()))),
              {"--length", "4", "--begin", "300"});
}

// The first byte chooses options.
void read_csv(const std::string &bytes) {
  static const std::vector<std::vector<const char *>> options = {
      {},
      {"--no-header", "--label", "1"},
      {"--no-header", "--classes", "1", "--input", "a=1", "--drop", "2", "--validation-share",
       "0.5"},
      {"--delimiter", "tab", "--normalise", "--type", "f64"}};
  make_arrays(data::csvCommand(),
              folder().write("table.csv", bytes.substr(std::min<size_t>(1, bytes.size()))),
              options[bytes.empty() ? 0 : static_cast<unsigned char>(bytes[0]) % 4]);
}

using reader = void (*)(const std::string &);

reader chosen() {
  static const std::map<std::string, reader> readers = {{"npy", read_npy},
                                                        {"tokens", read_tokens},
                                                        {"data-manifest", read_manifest_of_data},
                                                        {"safetensors", read_safetensors},
                                                        {"manifest", read_checkpoint},
                                                        {"configuration", read_run_configuration},
                                                        {"vocabulary", read_vocabulary},
                                                        {"csv", read_csv},
                                                        {"labelled", read_labelled}};
  const char *name = std::getenv("TRAINC_FUZZ");
  auto found = readers.find(name ? name : "");
  require(found != readers.end(), "TRAINC_FUZZ names no reader");
  return found->second;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const reader read = chosen();
  try {
    read(std::string(reinterpret_cast<const char *>(data), size));
  } catch (const failure &error) {
    require(!error.message.empty(), "an error without a message");
    require(error.code != exit_success && error.code != exit_internal, "an error of the program");
  }
  return 0;
}
