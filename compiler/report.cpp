// SPDX-License-Identifier: Apache-2.0
//
// The one form of user errors. Equal messages are kept once: one cause is often met twice. A model
// of five hundred nodes that one missing operator stops gives one line, not five hundred.
#include "compiler/report.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace trainc {

std::string quotedList(ArrayRef<std::string> names, size_t shown) {
  std::string text = "'" + join(names.take_front(shown), "', '") + "'";
  return names.size() > shown ? text + " and " + std::to_string(names.size() - shown) + " more"
                              : text;
}

static std::string subjectText(const Subject &subject, ArrayRef<std::string> nodes) {
  if (nodes.empty())
    return subject.text;
  std::string result = subject.text + (nodes.size() == 1 ? ": node '" : ": nodes '") + nodes[0];
  if (nodes.size() == 2)
    result += "' and '" + nodes[1];
  else if (nodes.size() > 2)
    result += "', '" + nodes[1] + "' and " + std::to_string(nodes.size() - 2) +
              (nodes.size() == 3 ? " other" : " others");
  return result + (nodes.size() > 2 ? " (" : "' (") + subject.operatorText + ")";
}

bool Report::add(const Subject &subject, const std::string &message, const Twine &advice) {
  std::string separator(1, '\0'), about = separator + message;
  if (!known.insert(subject.text + separator + subject.node + about).second)
    return false;
  if (!subject.node.empty()) {
    std::string cause =
        subject.text + separator + subject.operatorText + about + separator + advice.str();
    auto [entry, isNew] = byCause.try_emplace(cause, problems.size());
    if (!isNew) {
      problems[entry->second].nodes.push_back(subject.node);
      return true;
    }
  }
  problems.push_back({subject, {}, message, advice.str()});
  if (!subject.node.empty())
    problems.back().nodes.push_back(subject.node);
  return true;
}

LogicalResult Report::error(ExitCode code, const Subject &subject, const Twine &message,
                            const Twine &advice) {
  if (add(subject, message.str(), advice) && errors++ == 0)
    firstCode = code;
  return failure();
}

void Report::warning(const Subject &subject, const Twine &message, const Twine &advice) {
  add(subject, "warning: " + message.str(), advice);
}

void Report::print(raw_ostream &stream) const {
  for (const Problem &problem : problems) {
    stream << subjectText(problem.subject, problem.nodes) << ": " << problem.message << '\n';
    if (!problem.advice.empty())
      stream << "  try: " << problem.advice << '\n';
  }
}

std::string Report::text() const {
  std::string result;
  raw_string_ostream stream(result);
  print(stream);
  return result;
}

} // namespace trainc
