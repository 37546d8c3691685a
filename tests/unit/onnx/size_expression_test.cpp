// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/graph/size_expression.h"
#include <gtest/gtest.h>

using namespace trainc;

namespace {

/// `a` is 6, `x` has the sizes 4 and 5, `later` is not known yet; a problem as text.
std::string valueOf(const std::string &expression) {
  std::string problem;
  auto lookup = [](llvm::StringRef name, std::optional<int64_t> index,
                   std::string &wrong) -> std::optional<int64_t> {
    if (name == "a" && !index)
      return 6;
    if (name == "x" && index && *index < 2)
      return *index == 0 ? 4 : 5;
    if (name != "later")
      wrong = "nothing is " + name.str();
    return std::nullopt;
  };
  std::optional<int64_t> value = evaluateSize(expression, lookup, problem);
  return value ? std::to_string(*value) : problem.empty() ? "unknown" : problem;
}

TEST(SizeExpression, IsArithmetic) {
  EXPECT_EQ(valueOf("7"), "7");
  EXPECT_EQ(valueOf(" x[0] * ( x[ 1 ]+1 ) / 2 "), "12");
  EXPECT_EQ(valueOf("1 - 2 - 3"), "-4");
  EXPECT_EQ(valueOf("24 / 2 / 3 * a"), "24");
  EXPECT_EQ(valueOf("a - x[0] * 2"), "-2");
  EXPECT_EQ(valueOf("later * 0 + 1"), "unknown");
}

TEST(SizeExpression, SaysWhatIsWrong) {
  EXPECT_EQ(valueOf(""), "ends where a number is expected");
  EXPECT_EQ(valueOf("x[0] +"), "ends where a number is expected");
  EXPECT_EQ(valueOf("1 2"), "'2' is not expected");
  EXPECT_EQ(valueOf("(1"), "a ')' is missing");
  EXPECT_EQ(valueOf("x[0"), "a ']' is missing");
  EXPECT_EQ(valueOf("x[y]"), "'' is not a whole number of 64 bits");
  EXPECT_EQ(valueOf("#"), "'#' is not expected");
  EXPECT_EQ(valueOf("b"), "nothing is b");
  EXPECT_EQ(valueOf("5 / 2"), "5 / 2 is not a whole number");
  EXPECT_EQ(valueOf("5 / 0"), "5 / 0 is not a whole number");
  EXPECT_EQ(valueOf("4611686018427387904 * 2"), "is beyond 64 bits");
  EXPECT_EQ(valueOf("99999999999999999999"),
            "'99999999999999999999' is not a whole number of 64 bits");
  EXPECT_EQ(valueOf(std::string(2000, '(')), "is longer than 1000 characters");
}

} // namespace
