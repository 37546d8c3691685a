// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/write_plan.h"
#include "compiler/json_text.h"
#include "llvm/Support/raw_ostream.h"

namespace trainc {

namespace {

/// Text goes out as it comes: a plan has tensors for each of many nodes.
class ObjectWriter {
public:
  explicit ObjectWriter(llvm::raw_ostream &out) : out(out) {}

  template <typename T, typename... More>
  void operator()(llvm::StringRef name, const T &member, const More &...more) {
    out << (isFirst ? "" : ", ");
    isFirst = false;
    out << '"' << name << "\": ";
    write(member);
    if constexpr (sizeof...(more) > 0)
      (*this)(more...);
  }
  template <typename T, typename... More>
  void maybe(llvm::StringRef name, const T &member, const More &...more) {
    if (!isAbsent(member))
      (*this)(name, member);
    if constexpr (sizeof...(more) > 0)
      maybe(more...);
  }
  void sum(llvm::StringRef name, int64_t bytes) { (*this)(name, bytes); }

  template <typename T> void writeDocument(const T &document) {
    out << '{';
    (*this)("version", plan_version);
    const_cast<T &>(document).members(*this); // the reader fills what is only read here
    out << '}';
  }

private:
  template <typename T> void write(const T &object) {
    out << '{';
    ObjectWriter inner(out);
    const_cast<T &>(object).members(inner);
    out << '}';
  }

  static bool isAbsent(int number) { return number < 0; }
  static bool isAbsent(const std::string &text) { return text.empty(); }
  template <typename T> static bool isAbsent(const std::optional<T> &object) { return !object; }

  void write(int number) { out << number; }
  void write(int64_t number) { out << number; }
  void write(double amount) { out << llvm::json::Value(amount); }
  void write(bool flag) { out << (flag ? "true" : "false"); }
  void write(const std::string &text) { out << jsonText(text); }
  void write(sharing shared) { write(std::string(name_of(shared))); }
  template <typename T> void write(const std::optional<T> &object) { write(*object); }
  template <typename T> void write(const std::vector<T> &list) {
    constexpr bool isShort = std::is_arithmetic_v<T> || std::is_same_v<T, std::string>;
    out << '[';
    for (size_t i = 0; i < list.size(); ++i) {
      out << (i == 0 ? "" : isShort ? ", " : ",") << (isShort ? "" : "\n ");
      write(list[i]);
    }
    out << ']';
  }

  llvm::raw_ostream &out;
  bool isFirst = true;
};

template <typename T> std::string documentText(const T &document) {
  std::string text;
  llvm::raw_string_ostream out(text);
  ObjectWriter(out).writeDocument(document);
  out << "\n";
  return text;
}

} // namespace

std::string planJson(const plan &plan) { return documentText(plan); }
std::string sourceMapJson(const source_map &map) { return documentText(map); }
std::string registersJson(const register_table &table) { return documentText(table); }

} // namespace trainc
