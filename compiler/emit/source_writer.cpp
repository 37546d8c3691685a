// SPDX-License-Identifier: Apache-2.0
//
// Text of emitted sources: indentation, identifiers, comments, literals.
#include "compiler/emit/source_writer.h"
#include "dialects/elements/element_type.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <cmath>
#include <cstdlib>

using namespace trainc;
using namespace llvm;

static constexpr size_t kLineWidth = 100; // width of emitted lines

size_t trainc::columns(StringRef text) { return text.size() - text.count(kChosenName); }

/// Breaks a statement of more than 100 columns after an operator or comma; later lines are
/// indented by `indent`. Lines with comments or literals stay as they are.
static std::string broken(StringRef text, size_t indent) {
  if (text.contains("//") || text.contains('"') || text.contains('\n'))
    return text.str();
  std::string result;
  size_t start = indent;
  while (start + columns(text) > kLineWidth) {
    size_t at = StringRef::npos, column = start + columns(text.take_front(1));
    for (size_t i = 1; i < text.size() && column <= kLineWidth; ++i) {
      if (text[i] == ' ' && StringRef("+-*/%?:,&|=").contains(text[i - 1]))
        at = i;
      column += text[i] == kChosenName ? 0 : 1;
    }
    if (at == StringRef::npos)
      break;
    result += text.substr(0, at).str() + "\n" + std::string(indent + 4, ' ');
    text = text.substr(at + 1);
    start = indent + 4;
  }
  return result + text.str();
}

void SourceWriter::line(const Twine &text) {
  std::string string = text.str();
  StringRef content = string;
  if (content.starts_with("}"))
    --depth;
  if (!content.empty())
    out.append(2 * static_cast<size_t>(depth), ' ');
  const std::string printed = broken(content, 2 * static_cast<size_t>(depth));
  out += printed + '\n';
  lineCount += int(StringRef(printed).count('\n')) + 1;
  if (content.ends_with("{"))
    ++depth;
}

void SourceWriter::directive(const Twine &text) {
  const std::string printed = text.str();
  out += printed + '\n';
  lineCount += int(StringRef(printed).count('\n')) + 1;
}

void SourceWriter::openNamespace(StringRef name) {
  line("namespace " + name + " {");
  --depth;
}

void SourceWriter::closeNamespace(StringRef name) {
  ++depth;
  line("} // namespace " + name);
}

void SourceWriter::call(StringRef head, ArrayRef<std::string> arguments, StringRef tail) {
  std::string text = (head + "(").str();
  size_t start = 2 * static_cast<size_t>(depth);
  size_t column = start + columns(text);
  const size_t aligned = column < 60 ? column : start + 4;
  for (size_t i = 0; i < arguments.size(); ++i) {
    bool last = i + 1 == arguments.size();
    const size_t width = columns(arguments[i]) + 1;
    if (i != 0 && column + 1 + width + (last ? tail.size() : 0) > kLineWidth) {
      text += "\n" + std::string(aligned, ' ');
      column = aligned;
    } else if (i != 0) {
      text += " ";
      ++column;
    }
    text += arguments[i] + (last ? "" : ",");
    column += width;
  }
  line(text + ")" + tail);
}

void SourceWriter::comment(StringRef text) {
  std::string current = "//";
  SmallVector<StringRef> words;
  text.split(words, ' ', -1, false);
  for (StringRef word : words) {
    if (current.size() > 2 && 2 * depth + columns(current) + 1 + columns(word) > kLineWidth) {
      line(current);
      current = "//";
    }
    current += " " + word.str();
    std::replace(current.begin(), current.end(), kNoBreak, ' ');
  }
  line(current);
}

static const Words &reservedWords() {
  static const Words words = [] {
    Words all;
    auto add = [&](StringRef text) {
      SmallVector<StringRef> list;
      text.split(list, ' ', -1, false);
      for (StringRef word : list)
        all.insert(word);
    };
    // C++ keywords, and words that are some only in places.
    add("alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t "
        "char16_t char32_t class compl concept const consteval constexpr constinit const_cast "
        "continue co_await co_return co_yield decltype default delete do double dynamic_cast else "
        "enum explicit export extern false float for friend goto if import inline int long module "
        "mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected "
        "public register reinterpret_cast requires return short signed sizeof static static_assert "
        "static_cast struct switch template this thread_local throw true try typedef typeid "
        "typename typeof union unsigned using virtual void volatile wchar_t while xor xor_eq");
    add(
#include "compiler/emit/macros.inc"
    );
    add("in_parameters in_gradients in_optimizer_state in_activations "
        "in_workspace in_constants "
        "in_stash in_frozen"); // runtime/entry_memory.h
    for (StringRef type : storedTypeNames())
      all.insert(type);
    return all;
  }();
  return words;
}

bool NameTable::isFree(StringRef name) const {
  return !reservedWords().contains(name) && !(words && words->contains(name));
}

std::string NameTable::unique(StringRef raw) {
  const std::string base = sanitize(raw);
  std::string name = used.unique(base);
  while (!isFree(name)) // the name is taken now, so the next is another
    name = used.unique(base);
  return words ? kChosenName + name : name;
}

std::string trainc::resolved(StringRef text) {
  std::string plain = text.str();
  llvm::erase(plain, kChosenName);
  return plain;
}

/// Past a comment, a literal, a directive or a number at the beginning of `text`; 0: it is none.
static size_t skipped(StringRef text, bool atLineStart) {
  if (text.starts_with("//") || (atLineStart && text.starts_with("#")))
    return std::min(text.find('\n'), text.size());
  if (text.starts_with("\"")) {
    size_t end = 1;
    while (end < text.size() && text[end] != '"')
      end += text[end] == '\\' ? 2 : 1;
    return std::min(end + 1, text.size());
  }
  if (!isDigit(text.front()))
    return 0;
  return std::min(text.find_if_not([](char c) { return isAlnum(c) || c == '.'; }), text.size());
}

bool trainc::addWords(StringRef text, Words &words) {
  Words chosen;
  bool lineStart = true, isMember = false; // of what stands before the dot: nothing hides it
  while (!text.empty()) {
    if (size_t skip = skipped(text, lineStart)) {
      text = text.drop_front(skip);
      continue;
    }
    lineStart = text.front() == '\n';
    const bool isChosen = text.consume_front(StringRef(&kChosenName, 1));
    StringRef word = text.take_while([](char c) { return isAlnum(c) || c == '_'; });
    if (!word.empty() && !isMember)
      (isChosen ? chosen : words).insert(word);
    isMember = text.front() == '.';
    text = text.drop_front(std::max<size_t>(word.size(), 1));
  }
  return llvm::any_of(chosen, [&](const auto &name) { return words.contains(name.getKey()); });
}

std::string trainc::sanitize(StringRef raw) {
  std::string name;
  for (char c : raw) {
    if (isAlnum(c))
      name += c;
    else if (!name.empty() && name.back() != '_')
      name += '_';
  }
  while (!name.empty() && name.back() == '_')
    name.pop_back();
  if (name.empty())
    return "unnamed";
  // Long names (whole module paths of fused nodes) would hide the code.
  if (name.size() > 80)
    name = name.substr(0, 80);
  return isDigit(name.front()) ? "n" + name : name;
}

std::string trainc::commentText(StringRef raw) {
  std::string text;
  for (unsigned char c : raw) {
    if (c < 0x20 || c > 0x7e || c == '\\' || c == '?')
      text += "\\x" + utohexstr(c, /*LowerCase=*/true, 2) + ";";
    else
      text += static_cast<char>(c);
  }
  return text;
}

std::string trainc::stringLiteral(StringRef raw) {
  std::string text = "\"";
  for (unsigned char c : raw) {
    if (c == '"' || c == '\\' || c == '?')
      text += std::string("\\") + static_cast<char>(c);
    else if (c == '\n')
      text += "\\n";
    else if (c < 0x20 || c > 0x7e) // three octal digits: no following digit can join them
      text += {'\\', static_cast<char>('0' + c / 64), static_cast<char>('0' + c / 8 % 8),
               static_cast<char>('0' + c % 8)};
    else
      text += static_cast<char>(c);
  }
  return text + "\"";
}

std::string trainc::floatLiteral(const APFloat &value) {
  if (value.isNaN())
    return "NAN";
  if (value.isInfinity())
    return value.isNegative() ? "-INFINITY" : "INFINITY";
  APFloat wide = value;
  bool lossy = false, isDouble = &value.getSemantics() == &APFloat::IEEEdouble();
  wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
  double number = wide.convertToDouble();
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    snprintf(text, sizeof text, "%.*g", digits, number);
    if (isDouble ? std::strtod(text, nullptr) == number
                 : std::strtof(text, nullptr) == static_cast<float>(number))
      break;
  }
  std::string literal = text;
  if (literal.find_first_of(".e") == std::string::npos)
    literal += ".0";
  return isDouble ? literal : literal + "f";
}

std::string trainc::integerLiteral(int64_t value) {
  if (value == INT64_MIN)
    return "INT64_MIN";
  return std::to_string(value);
}
