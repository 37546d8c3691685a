// SPDX-License-Identifier: Apache-2.0
//
// The one form of user errors. Equal messages are kept once: one cause is often met twice. A model
// of five hundred nodes that one missing operator stops gives one line, not five hundred; so do
// five hundred weights in a file that is missing.
#include "compiler/report.h"
#include "compiler/json_text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ConvertUTF.h"
#include "llvm/Support/Format.h"

using namespace llvm;

namespace trainc {

llvm::ArrayRef<FindingEntry> findingEntries() {
  static constexpr FindingEntry kEntries[] = {
#define FINDING(member, name, severity, meaning) {Finding::member, name, severity, meaning},
#include "compiler/findings.def"
#undef FINDING
  };
  return kEntries;
}

Finding findingOf(StringRef name) {
  for (const FindingEntry &entry : findingEntries())
    if (entry.name == name)
      return entry.finding;
  llvm_unreachable("not a name of findings.def");
}

// A character that terminals act on rather than show.
static bool isControl(UTF32 character) {
  return character < 0x20 || (character >= 0x7f && character < 0xa0) || character == 0x200e ||
         character == 0x200f || (character >= 0x202a && character <= 0x202e) ||
         (character >= 0x2066 && character <= 0x2069);
}

std::string printable(StringRef text) {
  std::string result;
  const auto *at = reinterpret_cast<const UTF8 *>(text.begin());
  const auto *end = reinterpret_cast<const UTF8 *>(text.end());
  while (at != end) {
    const UTF8 *start = at;
    UTF32 character = 0;
    bool valid = convertUTF8Sequence(&at, end, &character, strictConversion) == conversionOK;
    if (!valid)
      at = start + 1;
    for (const UTF8 *byte = start; byte != at; ++byte)
      if (valid && !isControl(character))
        result += static_cast<char>(*byte);
      else
        result += {'\\', 'x', hexdigit(*byte >> 4, /*LowerCase=*/true),
                   hexdigit(*byte & 15, /*LowerCase=*/true)};
  }
  return result;
}

// The lines of a message of several begin with two spaces, but the first.
static std::string printableLines(StringRef text) {
  size_t next = text.find("\n  ");
  if (next == StringRef::npos)
    return printable(text);
  return printable(text.take_front(next)) + "\n" + printableLines(text.drop_front(next + 1));
}

std::string quotedList(ArrayRef<std::string> names, size_t shown) {
  std::string text = "'" + join(names.take_front(shown), "', '") + "'";
  return names.size() > shown ? text + " and " + std::to_string(names.size() - shown) + " more"
                              : text;
}

Subject Subject::ofPart(std::string file, std::string part) {
  Subject subject(std::move(file));
  subject.part = std::move(part);
  return subject;
}

Subject Subject::ofOption(const Twine &name, std::string file) {
  Subject subject(std::move(file));
  subject.option = name.str();
  return subject;
}

Subject Subject::ofProgram(const Twine &name) {
  Subject subject("");
  subject.program = name.str();
  return subject;
}

std::optional<MessageFormat> parseMessageFormat(StringRef name) {
  if (name == "text")
    return MessageFormat::text;
  if (name == "json")
    return MessageFormat::json;
  if (name == "sarif")
    return MessageFormat::sarif;
  return std::nullopt;
}

static std::string operatorText(const Subject &subject) {
  return subject.operatorName +
         (subject.opset ? ", opset " + std::to_string(subject.opset) : std::string());
}

static std::string subjectText(const Subject &subject, ArrayRef<std::string> nodes) {
  std::string result = subject.option + subject.program;
  if (!subject.file.empty())
    result += (result.empty() ? "" : ": ") + subject.file;
  if (!subject.part.empty())
    result += ": " + subject.part;
  if (nodes.empty())
    return result;
  result += (nodes.size() == 1 ? ": node '" : ": nodes '") + nodes[0];
  if (nodes.size() == 2)
    result += "' and '" + nodes[1];
  else if (nodes.size() > 2)
    result += "', '" + nodes[1] + "' and " + std::to_string(nodes.size() - 2) +
              (nodes.size() == 3 ? " other" : " others");
  std::string quote = nodes.size() > 2 ? "" : "'";
  return result + quote + (subject.operatorName.empty() ? "" : " (" + operatorText(subject) + ")");
}

void Report::showAs(std::string path, std::string known) {
  unknownPath = std::move(path);
  knownPath = std::move(known);
}

std::string Report::shown(StringRef text) const {
  if (unknownPath.empty() || !text.contains(unknownPath))
    return text.str();
  auto [before, after] = text.split(unknownPath);
  return before.str() + knownPath + shown(after);
}

std::string Report::Problem::text() const {
  if (!finding)
    return message;
  auto [first, rest] = StringRef(message).split('\n');
  return first.str() + " [" + nameOf(*finding) + "]" + (rest.empty() ? "" : "\n" + rest.str());
}

bool Report::add(Problem problem) {
  Subject &subject = problem.subject;
  subject.file = shown(subject.file);
  problem.message = shown(problem.message);
  std::string separator(1, '\0'), about = separator +
                                          (problem.code == ExitCode::ok ? "warning" : "error") +
                                          separator + problem.message;
  std::string whole = subjectText(subject, {});
  if (!known.insert(whole + separator + subject.node + about).second)
    return false;
  if (!subject.node.empty()) {
    std::string cause =
        whole + separator + operatorText(subject) + about + separator + problem.advice;
    auto [entry, isNew] = byCause.try_emplace(cause, problems.size());
    if (!isNew) {
      problems[entry->second].nodes.push_back(subject.node);
      return true;
    }
    problem.nodes.push_back(subject.node);
  }
  problems.push_back(std::move(problem));
  return true;
}

LogicalResult Report::addError(Problem problem) {
  const ExitCode code = problem.code;
  if (add(std::move(problem)) && errors++ == 0)
    firstCode = code;
  return failure();
}

LogicalResult Report::error(ExitCode code, const Subject &subject, const Twine &message,
                            const Twine &advice) {
  return addError({subject, {}, message.str(), advice.str(), code, std::nullopt});
}

LogicalResult Report::refuse(Finding finding, const Subject &subject, const Twine &message,
                             const Twine &advice) {
  if (llvm::is_contained(accepted, finding))
    return success();
  const std::string way =
      std::string("; or --accept ") + nameOf(finding) + ", which takes the file as it stands";
  return addError(
      {subject, {}, message.str(), advice.str() + way, ExitCode::unsupportedModel, finding});
}

void Report::warning(Finding finding, const Subject &subject, const Twine &message,
                     const Twine &advice) {
  if (!llvm::is_contained(accepted, finding))
    add({subject, {}, message.str(), advice.str(), ExitCode::ok, finding});
}

void Report::print(raw_ostream &stream, MessageFormat format) const {
  switch (format) {
  case MessageFormat::text:
    return printText(stream);
  case MessageFormat::json:
    return printJson(stream);
  case MessageFormat::sarif:
    return printSarif(stream);
  }
}

std::string Report::text() const {
  std::string result;
  raw_string_ostream stream(result);
  printText(stream);
  return result;
}

std::string quotedForShell(StringRef word) { return "'" + join(split(word, '\''), "'\\''") + "'"; }

std::string forShell(StringRef word) {
  auto isPlain = [](char c) { return isAlnum(c) || StringRef("_.-=/:%@").contains(c); };
  return all_of(word, isPlain) ? word.str() : quotedForShell(word);
}

/// A text without what tells two problems of one kind apart: quoted names, and numbers.
static std::string withoutNames(StringRef text) {
  std::string result;
  while (!text.empty()) {
    size_t end = text.front() == '\'' ? text.find('\'', 1) : StringRef::npos;
    size_t digits = text.take_while([](char c) { return isDigit(c); }).size();
    bool isSign = text.front() == '-' && text.size() > 1 && isDigit(text[1]);
    if (end != StringRef::npos)
      result += "''";
    else if (digits != 0)
      result += '#';
    else if (!isSign)
      result += text.front();
    text = text.drop_front(end != StringRef::npos ? end + 1 : std::max<size_t>(digits, 1));
  }
  return result;
}

constexpr size_t kToldOneByOne = 3; // problems of a kind

std::vector<Report::Kind> Report::kinds() const {
  std::vector<Kind> all, told;
  StringMap<size_t> known;
  for (const Problem &problem : problems) {
    const Subject &subject = problem.subject;
    std::string key;
    for (const std::string &part :
         {subject.file, subject.option, subject.program, withoutNames(subject.part),
          operatorText(subject), withoutNames(problem.message), withoutNames(problem.advice)})
      key += part + '\0';
    key += std::to_string(static_cast<int>(problem.code)) + (subject.node.empty() ? "" : "node");
    auto [entry, isNew] = known.try_emplace(key, all.size());
    if (isNew)
      all.emplace_back();
    all[entry->second].push_back(&problem);
  }
  for (const Kind &kind : all)
    if (kind.size() > kToldOneByOne)
      told.push_back(kind);
    else
      for (const Problem *problem : kind)
        told.push_back({problem});
  llvm::sort(told, [](const Kind &a, const Kind &b) { return a.front() < b.front(); });
  return told;
}

/// What each is about: its nodes, else what its text names first.
std::vector<std::string> Report::namesOf(const Kind &kind) {
  std::vector<std::string> names;
  llvm::StringSet<> seen;
  for (const Problem *problem : kind) {
    llvm::append_range(names, problem->nodes);
    if (!problem->nodes.empty())
      continue;
    std::string text = problem->subject.part + ' ' + problem->message;
    StringRef name = StringRef(text).split('\'').second.split('\'').first;
    if (!name.empty() && seen.insert(name).second)
      names.push_back(name.str());
  }
  return names;
}

constexpr size_t kProblemsInText = 40; // a damaged file may have hundreds

void Report::printProblem(raw_ostream &stream, const Kind &alike) {
  const Problem &problem = *alike.front();
  stream << printable(subjectText(problem.subject, problem.nodes)) << ": "
         << (problem.code == ExitCode::ok ? "warning: " : "") << printableLines(problem.text())
         << '\n';
  std::vector<std::string> names = namesOf(alike);
  names.erase(names.begin(),
              names.begin() + static_cast<std::ptrdiff_t>(namesOf({&problem}).size()));
  if (alike.size() > 1)
    stream << "  likewise: "
           << (names.empty() ? std::to_string(alike.size() - 1) + " more"
                             : printable(quotedList(names, 2)))
           << '\n';
  bool adviceDiffers =
      llvm::any_of(alike, [&](const Problem *other) { return other->advice != problem.advice; });
  if (!problem.advice.empty())
    stream << "  try: " << printableLines(problem.advice)
           << (adviceDiffers ? "; likewise for the others" : "") << '\n';
}

void Report::printText(raw_ostream &stream) const {
  std::vector<Kind> told = kinds();
  for (const Kind &kind : ArrayRef(told).take_front(kProblemsInText))
    printProblem(stream, kind);
  if (told.size() > kProblemsInText)
    stream << "and " << told.size() - kProblemsInText
           << " more problems\n  try: --message-format json, which prints all\n";
}

// In columns, the last as long as it is.
static void printRows(raw_ostream &stream, ArrayRef<std::vector<std::string>> rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const auto &row : rows)
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], row[i].size());
  for (const auto &row : rows) {
    for (size_t i = 0; i + 1 < row.size(); ++i)
      stream << left_justify(row[i], widths[i]) << "  ";
    stream << row.back() << '\n';
  }
}

void Report::printTable(raw_ostream &stream) const {
  std::vector<Kind> all = kinds();
  auto nodesOf = [](const Kind &kind) {
    size_t count = 0;
    for (const Problem *problem : kind)
      count += problem->nodes.size();
    return count;
  };
  llvm::stable_sort(all, [&](const Kind &a, const Kind &b) { return nodesOf(a) > nodesOf(b); });
  std::vector<std::vector<std::string>> rows{{"nodes", "about", "problem"}};
  llvm::SetVector<StringRef> operators;
  std::vector<std::string> needed;
  size_t withoutRemedy = 0;
  for (const Kind &kind : all) {
    const Problem &first = *kind.front();
    size_t nodes = nodesOf(kind);
    std::string about = nodes             ? operatorText(first.subject)
                        : kind.size() > 1 ? std::to_string(kind.size()) + " times"
                                          : first.subject.part + first.subject.option;
    std::string text = (first.code == ExitCode::ok ? "warning: " : "") + first.text();
    if (nodes || kind.size() > 1)
      text += " (" + quotedList(namesOf(kind), 2) + ")";
    rows.push_back({nodes ? std::to_string(nodes) : "", printable(about), printableLines(text)});
    if (first.code == ExitCode::ok)
      continue;
    bool isMissing = first.message == kUnsupportedOperator;
    if (isMissing)
      operators.insert(first.subject.operatorName);
    for (const Problem *problem : kind)
      if (!problem->advice.empty() && problem->advice != kListsOperators)
        needed.push_back((isMissing ? "or for " + first.subject.operatorName + ": " : "") +
                         problem->advice);
    withoutRemedy += !isMissing && first.advice.empty();
  }
  if (rows.size() > 1)
    printRows(stream, rows);
  stream << (empty() ? "nothing is missing\n" : "still needed:\n");
  if (!operators.empty())
    stream << "  operators of trainc: " << printable(join(operators, ", ")) << '\n';
  llvm::StringSet<> said;
  for (const std::string &entry : needed)
    if (said.insert(entry).second)
      stream << "  " << printableLines(entry) << '\n';
  if (withoutRemedy)
    stream << "  a model without " << (withoutRemedy == 1 ? "the problem" : "the problems")
           << " above that no option helps against: " << withoutRemedy << '\n';
}

/// The stable name of what an error means.
static StringRef kindOf(ExitCode code) {
  if (code != ExitCode::ok)
    for (const ExitCodeEntry &entry : kExitCodes)
      if (entry.code == code)
        return entry.name;
  return "warning";
}

/// What a problem is about, each under its name where there is one.
static json::Object describe(const Subject &subject, ArrayRef<std::string> nodes) {
  json::Object object;
  auto add = [&](StringRef name, StringRef value) {
    if (!value.empty())
      object[name] = jsonText(value);
  };
  add("file", subject.file);
  add("option", subject.option);
  add("part", subject.part);
  if (nodes.empty())
    return object;
  add("node", nodes[0]);
  json::Array all;
  for (const std::string &node : nodes)
    all.push_back(jsonText(node));
  object["nodes"] = std::move(all);
  add("operator", subject.operatorName);
  if (subject.opset)
    object["opset"] = subject.opset;
  return object;
}

void Report::printJson(raw_ostream &stream) const {
  for (const Problem &problem : problems) {
    json::Object object = describe(problem.subject, problem.nodes);
    object["severity"] = problem.code == ExitCode::ok ? "warning" : "error";
    object["kind"] = kindOf(problem.code);
    object["text"] = jsonText(problem.message);
    if (problem.finding)
      object["finding"] = nameOf(*problem.finding);
    if (!problem.advice.empty())
      object["remedy"] = jsonText(problem.advice);
    object["exit_code"] = static_cast<int>(problem.code);
    stream << json::Value(std::move(object)) << '\n';
  }
}

/// A path as RFC 3986 writes it; a relative one is relative to where trainc ran.
static std::string uriOf(StringRef path) {
  std::string uri = path.starts_with("/") ? "file://" : "";
  for (char c : path)
    uri += isAlnum(c) || StringRef("/-._~").contains(c)
               ? std::string(1, c)
               : "%" + utohexstr(static_cast<unsigned char>(c), /*LowerCase=*/false, /*Width=*/2);
  return uri;
}

/// Where a problem is: the file, and in it the nodes or the part.
static json::Array locationsOf(const Subject &subject, ArrayRef<std::string> nodes) {
  json::Array logical;
  for (const std::string &node : nodes)
    logical.push_back(json::Object{{"name", jsonText(node)}, {"kind", "node"}});
  if (!subject.part.empty())
    logical.push_back(json::Object{{"name", jsonText(subject.part)}, {"kind", "value"}});
  json::Object location;
  if (!subject.file.empty())
    location["physicalLocation"] =
        json::Object{{"artifactLocation", json::Object{{"uri", uriOf(subject.file)}}}};
  if (!logical.empty())
    location["logicalLocations"] = std::move(logical);
  json::Array locations;
  if (!location.empty())
    locations.push_back(std::move(location));
  return locations;
}

void Report::printSarif(raw_ostream &stream) const {
  json::Array rules, results;
  for (const FindingEntry &entry : findingEntries())
    rules.push_back(json::Object{{"id", entry.name},
                                 {"shortDescription", json::Object{{"text", entry.meaning}}}});
  for (const ExitCodeEntry &entry : kExitCodes)
    if (entry.code != ExitCode::ok)
      rules.push_back(
          json::Object{{"id", entry.name},
                       {"shortDescription", json::Object{{"text", entry.meaning}}},
                       {"properties", json::Object{{"exit_code", static_cast<int>(entry.code)}}}});
  for (const Problem &problem : problems) {
    std::string text = subjectText(problem.subject, problem.nodes) + ": " + problem.message;
    if (!problem.advice.empty())
      text += "\ntry: " + problem.advice;
    json::Object properties = describe(problem.subject, problem.nodes);
    if (!problem.advice.empty())
      properties["remedy"] = jsonText(problem.advice);
    properties["exit_code"] = static_cast<int>(problem.code);
    results.push_back(json::Object{
        {"ruleId", problem.finding ? StringRef(nameOf(*problem.finding)) : kindOf(problem.code)},
        {"level", problem.code == ExitCode::ok ? "warning" : "error"},
        {"message", json::Object{{"text", jsonText(text)}}},
        {"locations", locationsOf(problem.subject, problem.nodes)},
        {"properties", std::move(properties)}});
  }
  json::Object driver{{"name", "trainc"}, {"rules", std::move(rules)}};
  json::Object document{
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs", json::Array{json::Object{{"tool", json::Object{{"driver", std::move(driver)}}},
                                        {"results", std::move(results)}}}}};
  stream << json::Value(std::move(document)) << '\n';
}

} // namespace trainc
