// SPDX-License-Identifier: Apache-2.0
//
// The table of options that all programs read their command lines by.
#include "runtime/options/option_table.h"

#include <gtest/gtest.h>

#include <sstream>

namespace trainc {
namespace {

struct cooking {
  int64_t minutes = 10;
  bool salt = false;
  std::string heat = "low", fat = "none";
  std::vector<std::string> spice;
};

template <typename Place>
option_row cooked(const char *name, Place place, const char *placeholder, const char *help) {
  option_row row = option_of<cooking>(name, place, placeholder, ~0u, help);
  row.group = name[0] == 's' ? "taste" : "stove";
  return row;
}

const option_table &table() {
  static const option_table cookbook(
      {{"stove", "The stove"}, {"taste", "Taste"}},
      {cooked("minutes", &cooking::minutes, "N", "how long; 0: raw").usual().between(0, 60),
       cooked("heat", &cooking::heat, "HOW", "of the plate")
           .refused({"heat=high* minutes!=5|10"}, "burns what takes {minutes} minutes", "low"),
       cooked("fat", &cooking::fat, "KIND", "in the pan").idle("heat!=high", "does not melt"),
       cooked("spice", &cooking::spice, "NAME", std::string(300, 'x').insert(99, " ").c_str())
           .idle("!salt !fat", "tastes of nothing", "--salt"),
       cooked("salt", &cooking::salt, "", "a pinch")});
  return cookbook;
}

std::string refusals_of(const std::vector<const char *> &words, cooking values = {}) {
  command_line line = table().parse(static_cast<int>(words.size()), words.data(), &values);
  for (const option_problem &problem :
       table().refused(&values, [&](const std::string &option, const std::string &) {
         return line.given.count(option) > 0;
       }))
    line.problems.push_back(problem);
  std::string text;
  for (const option_problem &problem : line.problems)
    text += problem.option + ": " + problem.message + " (" + problem.advice + ")\n";
  return text;
}

TEST(OptionTable, ReadsWordsAndValues) {
  cooking values;
  const char *words[] = {"egg", "--minutes=5", "-heat", "high", "--salt", "--spice",
                         "a",   "--spice",     "-b",    "--",   "--salt"};
  const command_line line = table().parse(11, words, &values);
  EXPECT_TRUE(line.problems.empty());
  EXPECT_EQ(line.words, (std::vector<std::string>{"egg", "--salt"}));
  EXPECT_EQ(line.given, (std::set<std::string>{"heat", "minutes", "salt", "spice"}));
  EXPECT_EQ(values.spice, (std::vector<std::string>{"a", "-b"}));
  EXPECT_EQ(values.minutes, 5);
  EXPECT_TRUE(values.salt);
}

TEST(OptionTable, SaysWhatIsWrong) {
  EXPECT_EQ(refusals_of({"--minute", "3"}), "--minute: unknown option (--minutes)\n");
  EXPECT_EQ(refusals_of({"--minutes", "61"}), "--minutes: 61 is above 60 ()\n");
  EXPECT_EQ(refusals_of({"--minutes"}), "--minutes: has no value (--minutes=N)\n");
  EXPECT_EQ(refusals_of({"--heat", "--salt"}),
            "--heat: has no value: the option '--salt' follows (--heat=HOW)\n");
  EXPECT_EQ(refusals_of({"--heat", ""}), "--heat: its value is empty (the command without it)\n");
  EXPECT_EQ(refusals_of({"--salt=5"}), "--salt: takes no value, found '5' (--salt)\n");
  EXPECT_EQ(refusals_of({"--heat=low", "--heat=low"}), "--heat: is given twice (one of the two)\n");
}

TEST(OptionTable, RefusesByTheRows) {
  EXPECT_EQ(refusals_of({"--heat=high"}), "");
  EXPECT_EQ(refusals_of({"--heat=highest", "--minutes=20"}),
            "--heat: burns what takes 20 minutes (low)\n");
  EXPECT_EQ(refusals_of({"--fat=none"}), "--fat: does not melt (the command without it)\n");
  EXPECT_EQ(refusals_of({"--spice=a"}), "--spice: tastes of nothing (--salt)\n");
  EXPECT_EQ(refusals_of({"--spice=a", "--salt"}), "");
}

TEST(OptionTable, HelpHasPages) {
  const cooking defaults;
  const std::string usual = table().help("", &defaults), taste = table().help("taste", &defaults),
                    all = table().help("all", &defaults);
  EXPECT_NE(usual.find("how long (default 10)"), std::string::npos) << usual;
  EXPECT_EQ(usual.find("--heat"), std::string::npos);
  EXPECT_NE(usual.find("stove|taste"), std::string::npos) << usual;
  EXPECT_NE(taste.find("--salt"), std::string::npos);
  EXPECT_EQ(taste.find("--minutes"), std::string::npos);
  for (const option_row &row : table().rows())
    EXPECT_NE(all.find("--" + row.name), std::string::npos);
  std::istringstream lines(usual + table().help("stove", &defaults));
  for (std::string line; std::getline(lines, line);)
    EXPECT_LE(line.size(), 100u) << line;
}

} // namespace
} // namespace trainc
