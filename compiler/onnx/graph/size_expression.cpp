// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/graph/size_expression.h"
#include "llvm/ADT/StringExtras.h"

using llvm::StringRef;

namespace trainc {

namespace {

constexpr size_t kLongest = 1000; // parentheses nest no deeper

using Size = std::optional<int64_t>;

/// Recursive descent: sums of products of atoms.
class SizeParser {
public:
  SizeParser(StringRef text, SizeLookup lookup, std::string &problem)
      : rest(text), lookup(lookup), problem(problem) {}

  Size run() {
    if (rest.size() > kLongest)
      return fail("is longer than " + std::to_string(kLongest) + " characters");
    Size value = sum();
    if (problem.empty() && !next().empty())
      return fail("'" + rest.str() + "' is not expected");
    return problem.empty() ? value : std::nullopt;
  }

private:
  Size fail(const std::string &what) {
    if (problem.empty())
      problem = what;
    return std::nullopt;
  }

  StringRef next() { return rest = rest.ltrim(); }

  Size combine(char operation, Size a, Size b) {
    if (!a || !b)
      return std::nullopt;
    int64_t result = 0;
    bool overflows = operation == '+'   ? __builtin_add_overflow(*a, *b, &result)
                     : operation == '-' ? __builtin_sub_overflow(*a, *b, &result)
                     : operation == '*' ? __builtin_mul_overflow(*a, *b, &result)
                                        : false;
    if (overflows)
      return fail("is beyond 64 bits");
    if (operation != '/')
      return result;
    if (*b <= 0 || *a % *b != 0)
      return fail(std::to_string(*a) + " / " + std::to_string(*b) + " is not a whole number");
    return *a / *b;
  }

  Size sum() { return joined("+-", &SizeParser::product); }
  Size product() { return joined("*/", &SizeParser::atom); }

  /// Operands with these operators between them, from the left.
  Size joined(StringRef operators, Size (SizeParser::*operand)()) {
    Size value = (this->*operand)();
    while (problem.empty()) {
      if (next().empty() || !operators.contains(rest.front()))
        return value;
      const char operation = rest.front();
      rest = rest.drop_front();
      value = combine(operation, value, (this->*operand)());
    }
    return std::nullopt;
  }

  Size number() {
    StringRef digits = rest.take_while(llvm::isDigit);
    rest = rest.drop_front(digits.size());
    int64_t value = 0;
    if (digits.getAsInteger(10, value))
      return fail("'" + digits.str() + "' is not a whole number of 64 bits");
    return value;
  }

  bool expect(char c) {
    if (!next().empty() && rest.front() == c) {
      rest = rest.drop_front();
      return true;
    }
    fail(std::string("a '") + c + "' is missing" +
         (rest.empty() ? "" : " before '" + rest.str() + "'"));
    return false;
  }

  Size atom() {
    if (next().empty())
      return fail("ends where a number is expected");
    if (rest.front() == '(') {
      rest = rest.drop_front();
      Size value = sum();
      return problem.empty() && expect(')') ? value : std::nullopt;
    }
    if (llvm::isDigit(rest.front()))
      return number();
    StringRef name = rest.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (name.empty())
      return fail("'" + rest.str() + "' is not expected");
    rest = rest.drop_front(name.size());
    if (next().empty() || rest.front() != '[')
      return lookup(name, std::nullopt, problem);
    rest = rest.drop_front();
    next();
    Size index = number();
    return index && expect(']') ? lookup(name, index, problem) : std::nullopt;
  }

  StringRef rest;
  SizeLookup lookup;
  std::string &problem;
};

} // namespace

std::optional<int64_t> evaluateSize(StringRef expression, SizeLookup lookup, std::string &problem) {
  return SizeParser(expression, lookup, problem).run();
}

} // namespace trainc
