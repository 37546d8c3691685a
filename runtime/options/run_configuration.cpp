// SPDX-License-Identifier: Apache-2.0
//
// Reads members of JSON by one accessor, which knows their types and limits: whatever a file holds,
// a problem names it and the member.
#include "runtime/options/run_configuration.h"

#include "runtime/failure.h"
#include "runtime/files/json_names.h"

#include <algorithm>
#include <cinttypes>
#include <set>

namespace trainc {
namespace {

using nlohmann::ordered_json;

constexpr const char *format = "trainc run 1";
constexpr int64_t largest_configuration = 16 << 20;
constexpr int deepest_configuration = 4; // object of lists of objects
constexpr int64_t most_ranks = 1 << 20;  // more than any job has
constexpr size_t digest_digits = 8;

// Members.
constexpr const char *training_member = "data", *validation_member = "validation",
                     *origin_member = "began_with", *origin_checkpoint = "checkpoint",
                     *origin_parameters = "initialise", *origin_renames = "rename",
                     *bytes_member = "bytes", *digest_member = "digest",
                     *start_member = "last_start";

// A value in a message, which it does not fill.
std::string shown(const ordered_json &value) {
  constexpr size_t longest = 60;
  const std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true);
  return text.size() <= longest ? text : text.substr(0, longest) + "...";
}

// The members of an object of the file; `inside` says which: "data[0].". Problems are collected; a
// member that is not there, or not as it should be, is what the caller has for it.
class member_reader {
public:
  member_reader(const std::string &path, const ordered_json &object, std::string inside,
                problem_list &problems)
      : path_(path), object_(object), inside_(std::move(inside)), problems_(problems) {}

  bool has(const char *member) const { return object_.contains(member); }
  // Nothing where the member is not there or is something else.
  std::optional<member_reader> object(const char *member, const char *what) const {
    const ordered_json *value = find(member);
    if (value && value->is_object())
      return member_reader(path_, *value, inside_ + member + ".", problems_);
    if (value)
      expected(member, *value, what);
    return std::nullopt;
  }

  std::string text(const char *member, const char *what = "text") const {
    const ordered_json *value = find(member);
    if (!value || value->is_string())
      return value ? value->get<std::string>() : "";
    expected(member, *value, what);
    return "";
  }
  std::vector<std::string> texts(const char *member) const {
    const ordered_json *value = find(member);
    if (!value)
      return {};
    if (value->is_array() && std::all_of(value->begin(), value->end(),
                                         [](const ordered_json &one) { return one.is_string(); }))
      return value->get<std::vector<std::string>>();
    expected(member, *value, "a list of texts");
    return {};
  }
  int64_t whole(const char *member, int64_t least, int64_t most, int64_t otherwise) const {
    const ordered_json *value = find(member);
    if (!value)
      return otherwise;
    // What is above the largest signed number is of the library's unsigned type.
    const bool fits = value->is_number_unsigned()
                          ? value->get<uint64_t>() <= static_cast<uint64_t>(most)
                          : value->is_number_integer() && value->get<int64_t>() <= most;
    if (fits && value->get<int64_t>() >= least)
      return value->get<int64_t>();
    expected(member, *value,
             most == INT64_MAX
                 ? format_text("a whole number from %" PRId64, least)
                 : format_text("a whole number from %" PRId64 " to %" PRId64, least, most));
    return otherwise;
  }
  // Eight hexadecimal digits.
  uint32_t digest() const {
    const std::string digits = text(digest_member);
    if (!digits.empty() && digits.size() <= digest_digits &&
        digits.find_first_not_of("0123456789abcdef") == std::string::npos)
      return static_cast<uint32_t>(std::stoul(digits, nullptr, 16));
    if (const ordered_json *value = find(digest_member); value && value->is_string())
      expected(digest_member, *value, "8 hexadecimal digits");
    return 0;
  }
  void need(std::initializer_list<const char *> members) const {
    for (const char *member : members)
      if (!has(member))
        problems_.add(path_ + ": member '" + inside_ + member +
                      "' is missing\n  try: the file as the run wrote it");
  }
  // In an object that a run wrote whole, nothing else is known.
  void refuse_others(const std::set<std::string> &known,
                     const char *advice = "the file as the run wrote it") const {
    for (auto &[name, value] : object_.items())
      if (!known.count(name))
        problems_.add(path_ + ": unknown member '" + inside_ + name + "'\n  try: " + advice);
  }
  void expected(const char *member, const ordered_json &value, const std::string &what) const {
    problems_.add(path_ + ": member '" + inside_ + member + "' is " + shown(value) + ", expected " +
                  what + "\n  try: the file as the run wrote it");
  }

private:
  const ordered_json *find(const char *member) const {
    auto found = object_.find(member);
    return found == object_.end() ? nullptr : &*found;
  }

  const std::string &path_;
  const ordered_json &object_;
  std::string inside_;
  problem_list &problems_;
};

// In a file that somebody has written a name that says nothing is a mistake.
void refuse_unknown(const member_reader &file) {
  file.refuse_others({"id", "model", "precision", "optimizer", "fingerprint", "graph", "objective",
                      "frozen", "compiler", "ranks", "data_order", "options", origin_member,
                      training_member, validation_member, start_member},
                     "options");
}

std::optional<std::vector<data_identity>> read_files(const std::string &path,
                                                     const ordered_json &parsed, const char *member,
                                                     problem_list &problems) {
  if (!parsed.contains(member))
    return std::nullopt;
  const member_reader all(path, parsed, "", problems);
  const ordered_json &list = parsed[member];
  std::vector<data_identity> files;
  if (!list.is_array())
    all.expected(member, list, "a list of files");
  for (const ordered_json &entry : list) {
    const std::string name = format_text("%s[%zu]", member, files.size());
    data_identity &file = files.emplace_back();
    if (!entry.is_object()) {
      if (list.is_array())
        all.expected(name.c_str(), entry, "a file with input, file, bytes and digest");
      continue;
    }
    const member_reader read(path, entry, name + ".", problems);
    read.need({"input", "file", bytes_member, digest_member});
    read.refuse_others({"input", "file", bytes_member, digest_member, "share", "type", "modified"});
    file.input = read.text("input");
    file.path = read.text("file");
    file.bytes = read.whole(bytes_member, 0, INT64_MAX, 0);
    file.share = read.whole("share", 0, mixture::block_size, 0);
    file.type = read.text("type");
    file.digest = read.digest();
    file.modified = read.whole("modified", INT64_MIN, INT64_MAX, 0);
  }
  return files;
}

run_origin read_origin(const member_reader &all) {
  const auto read = all.object(origin_member, "an object with checkpoint or initialise");
  if (!read)
    return {};
  read->refuse_others(
      {origin_checkpoint, origin_parameters, origin_renames, bytes_member, digest_member});
  run_origin result = {read->text(origin_checkpoint, "the path of a checkpoint"),
                       read->text(origin_parameters, "the path of a file")};
  result.renames = read->texts(origin_renames);
  if (!read->has(bytes_member) && !read->has(digest_member))
    return result; // of a trainer that did not say it
  read->need({bytes_member, digest_member});
  result.content = {read->whole(bytes_member, 0, INT64_MAX, 0), read->digest()};
  return result;
}

// The rest is for people and other programs.
std::string date_of_start(const member_reader &all) {
  const auto read = all.object(start_member, "an object with date, host, device and command");
  if (!read)
    return "";
  for (const char *member : {"date", "host", "device"})
    read->text(member);
  read->texts("command");
  return read->text("date");
}

// A value of the file as it would stand on the command line.
bool option_text(const ordered_json &value, std::vector<std::string> &texts) {
  if (value.is_array())
    return std::all_of(value.begin(), value.end(),
                       [&](const ordered_json &item) { return option_text(item, texts); });
  if (value.is_string())
    texts.push_back(value.get<std::string>());
  else if (value.is_boolean() || value.is_null()) { // a flag; null: not given
    if (value.is_boolean() && value.get<bool>())
      texts.emplace_back("yes");
  } else if (value.is_number())
    texts.push_back(value.dump());
  else
    return false;
  return true;
}

// Discarded where it is not JSON; `twice` is a name that an object has again, of which the library
// keeps the last.
ordered_json parse(const std::string &text, std::string &twice) {
  return bounded_json<ordered_json>(text, deepest_configuration, watch_names<ordered_json>(twice));
}

std::string text_of_file(const std::string &path) {
  input_file file(path, exit_usage);
  if (file.size() > largest_configuration)
    throw failure(exit_usage, format_text("%s: is not a configuration of a run: has %" PRId64
                                          " bytes, expected at most %" PRId64,
                                          path.c_str(), file.size(), largest_configuration));
  return file.whole_text();
}

std::string digest_text(uint32_t digest) { return format_text("%08x", digest); }

ordered_json list_of(const std::vector<data_identity> &data) {
  ordered_json files = ordered_json::array();
  for (const data_identity &file : data) {
    files.push_back({{"input", file.input},
                     {"file", file.path},
                     {bytes_member, file.bytes},
                     {"type", file.type},
                     {digest_member, digest_text(file.digest)},
                     {"modified", file.modified}});
    if (file.share > 0)
      files.back()["share"] = file.share;
  }
  return files;
}

bool is_json_text(const std::string &text) {
  try {
    ordered_json(text).dump();
    return true;
  } catch (const ordered_json::type_error &) {
    return false;
  }
}

} // namespace

std::string run_configuration::option(const std::string &name) const {
  auto found = options.find(name);
  return found == options.end() ? "" : found->second.front();
}

std::optional<batch_layout> run_configuration::layout() const {
  int64_t micro_batches = 0;
  if (ranks == 0 ||
      !read_value(option("micro-batches"), {1, most_micro_batches}, micro_batches).empty())
    return std::nullopt;
  return batch_layout{ranks, micro_batches};
}

run_configuration read_configuration(const std::string &path) {
  run_configuration result;
  result.path = path;
  result.text = text_of_file(path);
  std::string twice;
  const ordered_json parsed = parse(result.text, twice);
  if (!parsed.is_object() || !parsed.contains("options") || !parsed["options"].is_object())
    throw failure(exit_usage, path + ": is not a configuration of a run: a JSON object with a "
                                     "member 'options' is expected");
  if (!twice.empty())
    throw failure(exit_usage, path + ": '" + twice + "' is there twice");
  problem_list problems;
  const member_reader read(path, parsed, "", problems);
  result.is_of_run = read.has("format");
  if (!result.is_of_run)
    refuse_unknown(read);
  else if (parsed["format"] != format)
    read.expected("format", parsed["format"], format_text("\"%s\"", format));
  result.id = read.text("id");
  result.model = read.text("model");
  result.precision = read.text("precision");
  result.optimizer = read.text("optimizer");
  read.text("fingerprint");
  read.text("compiler");
  result.computed = {read.text("graph"), read.text("objective"), read.text("frozen")};
  result.ranks = read.whole("ranks", 1, most_ranks, 0);
  result.data_order = read.whole("data_order", 0, INT64_MAX, 0);
  result.origin = read_origin(read);
  result.last_start = date_of_start(read);
  result.data = read_files(path, parsed, training_member, problems);
  result.validation = read_files(path, parsed, validation_member, problems);
  for (auto &[name, value] : parsed["options"].items()) {
    std::vector<std::string> texts;
    if (!option_text(value, texts))
      problems.add(path + ": option '" + name +
                   "' is neither text, number, true, false nor a list of these");
    else if (!texts.empty())
      result.options[name] = texts;
  }
  problems.throw_if_any(exit_usage);
  return result;
}

bool is_configuration_of_run(const std::string &path) {
  try {
    std::string twice;
    const ordered_json parsed = parse(text_of_file(path), twice);
    return parsed.is_object() && parsed.contains("format") && parsed["format"] == format;
  } catch (const failure &) {
    return false;
  }
}

void check_can_be_kept(const trainer_table &table, const trainer_options &options) {
  problem_list problems;
  auto check = [&](const std::string &option, const std::string &text) {
    if (!is_json_text(text))
      problems.add("option --" + option + ": '" + text +
                   "' is not UTF-8, as which configuration.json keeps it\n  try: another name "
                   "for the file or folder, or a link that has one");
  };
  for (const option_row *row : table.of_run(*options.command))
    for (const std::string &text : table.kept_values(*row, options))
      check(row->name, text);
  check("resume", options.resume); // `began_with` of a branch
  check("initialise", options.initialise);
  for (const std::string &words : options.rename)
    check("rename", words);
  problems.throw_if_any(exit_usage);
}

std::string configuration_text(const program &program, const trainer_table &table,
                               const trainer_options &options, const run_facts &facts) {
  ordered_json object = {{"format", format},
                         {"id", facts.id},
                         {"model", program.model_name},
                         {"precision", program.precision},
                         {"optimizer", program.optimizer_name},
                         {"fingerprint", format_text("%016" PRIx64, program.fingerprint)},
                         {"graph", program.graph_digest},
                         {"objective", program.objective},
                         {"compiler", program.compiler_version},
                         {"ranks", facts.layout.ranks},
                         {"data_order", facts.data_order}};
  if (*program.frozen_digest)
    object["frozen"] = program.frozen_digest;
  if (!facts.origin.checkpoint.empty())
    object[origin_member][origin_checkpoint] = facts.origin.checkpoint;
  if (!facts.origin.parameters.empty())
    object[origin_member][origin_parameters] = facts.origin.parameters;
  if (!facts.origin.renames.empty())
    object[origin_member][origin_renames] = facts.origin.renames;
  if (const auto &content = facts.origin.content) {
    object[origin_member][bytes_member] = content->bytes;
    object[origin_member][digest_member] = digest_text(content->digest);
  }
  object[start_member] = {{"date", facts.start.date},
                          {"host", facts.start.host},
                          {"device", facts.start.device},
                          {"command", facts.start.command}};
  ordered_json &values = object["options"] = ordered_json::object();
  for (const option_row *row : table.of_run(*options.command)) {
    std::vector<std::string> texts = table.kept_values(*row, options);
    if (row->is_list)
      values[row->name] = texts;
    else if (row->is_flag)
      values[row->name] = texts.front() == "yes";
    else if (!texts.front().empty())
      values[row->name] = texts.front();
  }
  values["micro-batches"] = std::to_string(facts.layout.micro_batches);
  values["seed"] = std::to_string(facts.seed);
  object[training_member] = list_of(facts.data);
  if (!facts.validation.empty())
    object[validation_member] = list_of(facts.validation);
  return object.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

// ---- a run that goes on, and a file of options

namespace {

std::string values_text(const std::vector<std::string> &texts) {
  return texts.empty() || (texts.size() == 1 && texts[0].empty()) ? "-" : joined(texts);
}

// "adamw --state-type bf16 --ema" of "adamw+bf16+ema" (dialects/train/optimizer.h).
std::string as_options(std::string optimizer) {
  for (size_t at; (at = optimizer.find('+')) != std::string::npos;)
    optimizer.replace(at, 1, optimizer.substr(at) == "+ema" ? " --" : " --state-type ");
  return optimizer;
}

// A run may go on with another target or precision, where options of the first mean nothing.
bool is_of_another_program(const std::string &name) {
  for (const auto &rows : {cpu_rows(), cuda_rows(), loss_scale_rows()})
    for (const option_row &option : rows)
      if (option.name == name)
        return true;
  return false;
}

// Takes values of a configuration for options that the command line leaves open.
class restoration {
public:
  restoration(const trainer_table &table, const run_configuration &before, trainer_options &options)
      : table_(table), before_(before), values_(before.options), options_(options) {
    if (before.is_of_run) // of a trainer that kept it
      values_.erase("no-checkpoints");
  }

  // What the command line changes: "--steps 40, was 30".
  std::vector<std::string> operator()(problem_list &problems) {
    // Two ways to say how long: the command line's replaces the other.
    for (auto [one, other] : {std::pair("steps", "epochs"), std::pair("epochs", "steps")})
      if (auto replaced = values_.find(other);
          options_.given.count(one) && replaced != values_.end()) {
        add_change(other, replaced->second, {});
        values_.erase(replaced);
      }
    for (const auto &[name, texts] : values_)
      take(name, texts, problems);
    // What has no value is in no configuration.
    for (const std::string &name : options_.given)
      if (const option_row *option = find(name); option->is_kept && !values_.count(name))
        add_change(*option, table_.defaults());
    return std::move(changes_);
  }

private:
  const option_row *find(const std::string &name) const {
    return table_.find(name, options_.command->bit);
  }
  void add_change(const std::string &name, const std::vector<std::string> &before,
                  const std::vector<std::string> &now) {
    if (before != now)
      changes_.push_back("--" + name + " " + values_text(now) + ", was " + values_text(before));
  }
  void add_change(const option_row &option, const trainer_options &before) {
    add_change(option.name, table_.kept_values(option, before),
               table_.kept_values(option, options_));
  }
  void take(const std::string &name, const std::vector<std::string> &texts,
            problem_list &problems) {
    const std::string &source = before_.path;
    const option_row *option = find(name);
    if (!option && is_of_another_program(name))
      return;
    if (!option || option->name != name) {
      const std::string near = table_.nearest(name, options_.command->bit);
      return problems.add(with_advice(source + ": unknown option '" + name + "'",
                                      near == "--help" ? "" : near.substr(2)));
    }
    if (!option->is_kept)
      return problems.add(source + ": option '" + name +
                          "' is of one start, not of a run\n  try: --" + name +
                          " on the command line");
    if (texts.size() > 1 && !option->is_list)
      problems.add(source + ": option '" + name + "' takes one value");
    const bool is_given = options_.given.count(name);
    trainer_options kept = table_.defaults();
    for (const std::string &text : texts)
      if (std::string problem = option->read(text, option->range, is_given ? &kept : &options_);
          !problem.empty())
        problems.add(source + ": option --" + name + ": " + problem);
    if (is_given)
      add_change(*option, kept);
    else if (table_.is_changed(*option, options_))
      options_.written.insert(name);
  }

  const trainer_table &table_;
  const run_configuration &before_;
  std::map<std::string, std::vector<std::string>> values_;
  trainer_options &options_;
  std::vector<std::string> changes_;
};

} // namespace

std::vector<std::string> restore_options(const program &program, const run_configuration &before,
                                         const trainer_table &table, trainer_options &options) {
  if (!before.optimizer.empty() && before.optimizer != program.optimizer_name)
    throw failure(exit_usage, before.path + ": is of a run with the optimizer " + before.optimizer +
                                  ", this program has " + program.optimizer_name +
                                  "\n  try: trainc --optimizer " + as_options(before.optimizer));
  std::vector<std::string> changes;
  if (!before.model.empty() && before.model != program.model_name)
    changes.push_back(
        format_text("the model '%s', was '%s'", program.model_name, before.model.c_str()));
  if (!before.precision.empty() && before.precision != program.precision)
    changes.push_back(
        format_text("the precision %s, was %s", program.precision, before.precision.c_str()));
  for (const std::string &change : changes_of_computation(before.computed, program))
    changes.push_back(change);
  problem_list problems;
  for (const std::string &change : restoration(table, before, options)(problems))
    changes.push_back(change);
  if (before.is_of_run && before.option("no-checkpoints") == "yes" && !options.no_checkpoints)
    changes.emplace_back("--no-checkpoints no, was yes: it is of one start");
  if (before.is_of_run) // with all options
    options.written.clear();
  problems.throw_if_any(exit_usage);
  return changes;
}

std::vector<std::string> check_agrees(const program &program, const std::string &file,
                                      const std::string &configuration, const trainer_table &table,
                                      const trainer_options &options) {
  trainer_options said = options, kept = options;
  const run_configuration of_file = read_configuration(file);
  restore_options(program, of_file, table, said);
  restore_options(program, read_configuration(configuration), table, kept);
  problem_list problems;
  std::vector<std::string> notes;
  for (const option_row *row : table.of_run(*options.command)) {
    const auto before = table.kept_values(*row, kept), now = table.kept_values(*row, said);
    if (!of_file.options.count(row->name) || options.given.count(row->name) || before == now)
      continue;
    const std::string difference = file + ": says --" + row->name + " " + values_text(now) +
                                   ", and the run goes on with " + values_text(before);
    if (row->name == "micro-batches") // another number of ranks changes them
      notes.push_back(difference);
    else
      problems.add(difference + ", which " + configuration + " says\n  try: --" + row->name +
                   " on the command line, which goes before both, or the file as it was when the "
                   "run began");
  }
  problems.throw_if_any(exit_usage);
  return notes;
}

kept_run read_kept_run(const program &program, const std::string &configuration,
                       const trainer_table &table) {
  const char *words[] = {"train"};
  kept_run kept = {read_configuration(configuration), table.parse(1, words)};
  restore_options(program, kept.configuration, table, kept.options);
  return kept;
}

} // namespace trainc
