// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/provenance/dynamo/lost_parameters.h"
#include "compiler/exit_codes.h"
#include "llvm/ADT/STLExtras.h"

namespace trainc::reader {

constexpr size_t kNamedAtMost = 3; // names in a warning
constexpr char kWithoutOptimizer[] = "export again with torch.onnx.export(..., optimize=False)";

static std::string batchNormsLost(const LostParameters &lost) {
  std::string message;
  if (!lost.foldedNorms.empty())
    message = "the exporter folded batch norm away, with its parameters " +
              quotedList(lost.foldedNorms) + (lost.changed.empty() ? "" : ", and so ");
  if (!lost.changed.empty())
    message += (lost.foldedNorms.empty() ? "the exporter " : "") +
               std::string("changed the values of ") + quotedList(lost.changed);
  return message + ": training this file would update a different model from the one you exported";
}

// Of parameters that no call names, any may be unused: only what was taken out knows.
static std::string usesLost(const LostParameters &lost) {
  std::vector<std::string> names(lost.undecided.begin(), lost.undecided.end()),
      others(lost.unnamed.begin(), lost.unnamed.end());
  std::string message =
      names.empty()
          ? "the exporter merged or took out operations, and the file does not tell whether they "
          : "the exporter merged equal parameters or equal operations, and the file "
            "does not tell where " +
                quotedList(names) + (names.size() == 1 ? " belongs" : " belong");
  if (!others.empty())
    message += (names.empty() ? "" : ", nor whether what is gone ") + std::string("used ") +
               quotedList(others) + ", which no call that is left names";
  return message;
}

void LostParameters::report(const std::string &path, Report &report) {
  // Of a norm that is called twice, and of what is said already.
  auto keepFirst = [](std::vector<std::string> &names, std::set<std::string> &said) {
    llvm::erase_if(names, [&](const std::string &name) { return !said.insert(name).second; });
  };
  std::set<std::string> said;
  keepFirst(foldedNorms, said);
  keepFirst(changed, said);
  for (const std::string &name : said) {
    undecided.erase(name);
    unnamed.erase(name);
  }
  if (!foldedNorms.empty() || !changed.empty())
    (void)report.refuse(Finding::lostParameters, path, batchNormsLost(*this), kWithoutOptimizer);
  if (!undecided.empty() || !unnamed.empty()) {
    (void)report.refuse(Finding::lostParameters, path, usesLost(*this), kWithoutOptimizer);
    return;
  }
  if (!shared.empty())
    report.warning(
        Finding::perhapsUnused, path,
        "the exporter took out operations that may have read " +
            quotedList(std::vector<std::string>(shared.begin(), shared.end()), kNamedAtMost) +
            ", or numbers that were equal",
        "where the module computes the same twice, once with a number or a buffer: " +
            std::string(kWithoutOptimizer) + "; else nothing");
  if (!unclear.empty())
    report.warning(
        Finding::perhapsUnused, path,
        quotedList(std::vector<std::string>(unclear.begin(), unclear.end()), kNamedAtMost) +
            (unclear.size() == 1 ? ", which no call names, is" : ", which no call names, are") +
            " taken for unused",
        "where the module multiplies with it, or adds it: " + std::string(kWithoutOptimizer) +
            "; else nothing");
}

} // namespace trainc::reader
