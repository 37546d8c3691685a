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

} // namespace
} // namespace trainc
