// SPDX-License-Identifier: Apache-2.0
//
// Text of emitted sources: indentation, identifiers, comments, literals.
#include "compiler/emit/source_writer.h"
#include "dialects/nn/scalar_code.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <cmath>
#include <cstdlib>

using namespace trainc;
using namespace llvm;

static constexpr size_t kLineWidth = 100; // width of emitted lines

/// Breaks a statement of more than 100 columns behind an operator or comma; later lines are
/// indented by `indent`. Lines with comments or literals stay as they are.
static std::string broken(StringRef text, size_t indent) {
  if (text.contains("//") || text.contains('"') || text.contains('\n'))
    return text.str();
  std::string result;
  size_t start = indent;
  while (start + text.size() > kLineWidth) {
    size_t at = StringRef::npos;
    for (size_t i = 1; i < text.size() && start + i <= kLineWidth; ++i)
      if (text[i] == ' ' && StringRef("+-*/%?:,&|=").contains(text[i - 1]))
        at = i;
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
  out += broken(content, 2 * static_cast<size_t>(depth));
  out += '\n';
  if (content.ends_with("{"))
    ++depth;
}

void SourceWriter::directive(const Twine &text) {
  out += text.str();
  out += '\n';
}

void SourceWriter::call(StringRef head, ArrayRef<std::string> arguments, StringRef tail) {
  std::string text = (head + "(").str();
  size_t start = 2 * static_cast<size_t>(depth);
  size_t column = start + text.size();
  const size_t aligned = column < 60 ? column : start + 4;
  for (size_t i = 0; i < arguments.size(); ++i) {
    bool last = i + 1 == arguments.size();
    size_t width = arguments[i].size() + (last ? 1 + tail.size() : 1);
    if (i != 0 && column + 1 + width > kLineWidth) {
      text += "\n" + std::string(aligned, ' ');
      column = aligned;
    } else if (i != 0) {
      text += " ";
      ++column;
    }
    text += arguments[i] + (last ? "" : ",");
    column += arguments[i].size() + 1;
  }
  line(text + ")" + tail);
}

void SourceWriter::comment(StringRef text) {
  std::string current = "//";
  SmallVector<StringRef> words;
  text.split(words, ' ', -1, false);
  for (StringRef word : words) {
    if (current.size() > 2 && 2 * depth + current.size() + 1 + word.size() > kLineWidth) {
      line(current);
      current = "//";
    }
    current += " " + word.str();
    std::replace(current.begin(), current.end(), kNoBreak, ' ');
  }
  line(current);
}

// C++ keywords, what emitted code and its headers call, and macros of <cmath> and <cstdint>.
static const char *const kReserved =
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t "
    "char32_t class compl concept const consteval constexpr constinit const_cast continue co_await "
    "co_return co_yield decltype default delete do double dynamic_cast else enum explicit export "
    "extern false float for friend goto if inline int long mutable namespace new noexcept not "
    "not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires "
    "return short signed sizeof static static_assert static_cast struct switch template this "
    "thread_local throw true try typedef typeid typename union unsigned using virtual void "
    "volatile "
    "wchar_t while xor xor_eq linux unix main errno assert std trainc memory "
    "maximum minimum maximum_number minimum_number narrow fma sqrt abs floor ceil trunc round_even "
    "copy_sign power_of_two exponent_of log_of_parts sine small_asin log2_f64 "
    "exp2_f64 pow rounding_f32 rounding_f64 lanes lane in_lanes combine_lanes sum_lanes max_lanes "
    "min_lanes set_lanes "
    "ALWAYS_INLINED TRAINC_INLINE INFINITY NAN HUGE_VAL INT32_MIN INT32_MAX INT64_MIN INT64_MAX "
    "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t ptrdiff_t "
    "matmul_shape arenas arena_kind f32 f64 "
    "i32 "
    "i64 boolean program trainer_program forward_backward update evaluate block first width row "
    "chunk launch reads writes scratch point element column part thread four load_four store_four "
    "parameters gradients optimizer_state activations workspace data_type isnan isinf "
    "signbit fpclassify isfinite isnormal M_PI M_E bases constants constant_tables";

NameTable::NameTable() {
  SmallVector<StringRef> words;
  StringRef(kReserved).split(words, ' ', -1, false);
  for (StringRef word : words)
    used.take(word);
  for (const ElementaryFunction &function : elementaryFunctions())
    used.take(function.name);
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

std::string NameTable::unique(StringRef raw) { return used.unique(sanitize(raw)); }

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
