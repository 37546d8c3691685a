// SPDX-License-Identifier: Apache-2.0
#include "runtime/name_pattern.h"
#include <gtest/gtest.h>

namespace trainc {
namespace {

TEST(name_pattern, MatchesWholeNames) {
  std::string why;
  auto pattern = name_pattern::parse("h\\.\\d+\\.(attn|mlp)", why);
  ASSERT_TRUE(pattern);
  EXPECT_TRUE(pattern->matches("h.10.mlp"));
  EXPECT_FALSE(pattern->matches("h.10.mlp.act"));
  EXPECT_FALSE(pattern->matches("xh.10.mlp"));
  EXPECT_TRUE(name_pattern::parse("", why)->matches(""));
  EXPECT_TRUE(name_pattern::parse("a.*d", why)->matches("ab\nc\r\nd"));
}

TEST(name_pattern, SaysWhatIsWrong) {
  for (const char *text : {"(", "[", "*", "a)(b", "a\\", "(a)b\\2"}) {
    std::string why;
    EXPECT_FALSE(name_pattern::parse(text, why)) << text;
    EXPECT_FALSE(why.empty()) << text;
  }
}

TEST(name_pattern, RefusesWhatWouldTakeItsStackOrMinutes) {
  const std::string deep = std::string(1500, '(') + "a" + std::string(1500, ')');
  for (const std::string &text :
       {std::string(100000, 'a'), std::string("((a{99}){99}){99}"), std::string("(a?){15000}")}) {
    std::string why;
    EXPECT_FALSE(name_pattern::parse(text, why)) << text.size();
    EXPECT_EQ(why, "it is too large");
  }
  std::string why;
  auto pattern = name_pattern::parse(deep, why);
  EXPECT_TRUE(pattern && pattern->matches("a"));
}

TEST(name_pattern, TakesNoNameThatIsTooLong) {
  std::string why;
  auto pattern = name_pattern::parse("(a|b)*", why);
  EXPECT_TRUE(pattern->matches(std::string(name_pattern::longest_name, 'a')));
  EXPECT_FALSE(pattern->matches(std::string(name_pattern::longest_name + 1, 'a')));
}

TEST(name_change, TakesThePlaceOfWhatIsFoundFirst) {
  std::string why;
  const auto changed = [&](const std::string &words, const std::string &name) {
    const auto change = name_change::parse(words, why);
    return change ? change->pattern.replaced(name, change->text) : "";
  };
  EXPECT_EQ(changed("a=b", "xaya"), "xbya");
  EXPECT_EQ(changed("a=b", "none"), "none");
  EXPECT_EQ(changed("query\\.(\\w+)=query.base.\\1", "h.0.query.weight"), "h.0.query.base.weight");
  EXPECT_EQ(changed("^bert=model.&", "bert.x"), "model.bert.x");
  EXPECT_EQ(changed("^bert\\.=", "bert.x"), "x");
  EXPECT_EQ(changed("a(?=b)=c", "aab"), "acb"); // the last equals sign
  const std::string endless(name_pattern::longest_name + 1, 'a');
  EXPECT_EQ(changed("a=b", endless), endless);
}

TEST(name_change, SaysWhatIsWrong) {
  for (const char *words : {"", "a", "=a", "(=a"}) {
    std::string why;
    EXPECT_FALSE(name_change::parse(words, why)) << words;
    EXPECT_FALSE(why.empty()) << words;
  }
}

} // namespace
} // namespace trainc
