// SPDX-License-Identifier: Apache-2.0
//
// What docs/runs.md says of a run's folder is what a run keeps there.
#include "runtime/files/run_files.h"

#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace trainc {
namespace {

TEST(RunFiles, ThePageHasARowForEach) {
  std::ifstream page(TRAINC_MODELS "/../../docs/runs.md");
  ASSERT_TRUE(page.is_open());
  std::vector<std::string> rows; // of the first table
  for (std::string line; std::getline(page, line) && (rows.empty() || !line.empty());)
    if (line.rfind("| `", 0) == 0)
      rows.push_back(line);
  ASSERT_EQ(rows.size(), std::size(run_files));
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].rfind("| `" + std::string(run_files[i].name), 0), 0u) << rows[i];
    EXPECT_NE(rows[i].find("` | " + std::string(run_files[i].what) + " |"), std::string::npos)
        << rows[i];
  }
}

TEST(RunFiles, NamesOfOthersAreNotTakenForItsOwn) {
  for (const char *name :
       {"rank-0.jsonl", "rank-12.jsonl", "rank-0.jsonl.writing", "rank-3-step-00000001.safetensors",
        "rank-3-step-123456789.safetensors", "rank-3-step-00000001.safetensors.writing"})
    EXPECT_TRUE(is_of_statistics(name)) << name;
  for (const char *name : {"rank-.jsonl", "rank-a.jsonl", "rank-0.jsonl.bak", "my-rank-0.jsonl",
                           "rank-study.safetensors.bak", "rank-3-step-1.safetensors",
                           "rank-3-step-00000001.safetensors.writing.writing", "rank-0", ""})
    EXPECT_FALSE(is_of_statistics(name)) << name;
  for (const char *name : {"steps-1-2.json", "steps-10-1000.json.writing"})
    EXPECT_TRUE(is_trace(name)) << name;
  for (const char *name : {"steps-my-notes.jsonl", "steps-2-11.json.annotated", "steps-1-2.jsonl",
                           "steps-1.json", "steps--2.json", "steps-old.json.d"})
    EXPECT_FALSE(is_trace(name)) << name;
}

} // namespace
} // namespace trainc
