// SPDX-License-Identifier: Apache-2.0
//
// What the environment says of launchers, and the cores of ranks.
#include "runtime/launcher.h"
#include "runtime/threads.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <initializer_list>
#include <utility>

namespace trainc {
namespace {

// The launch that these variables tell of, and no other of a launcher's.
launch launch_of(std::initializer_list<std::pair<const char *, const char *>> variables) {
  for (const char *name :
       {"OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE", "PMI_SIZE", "JSM_NAMESPACE_SIZE",
        "FLUX_JOB_SIZE", "SLURM_STEP_NUM_TASKS", "PMIX_RANK", "PMI_RANK", "PALS_RANKID",
        "ALPS_APP_PE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"})
    unsetenv(name);
  for (auto [name, value] : variables)
    setenv(name, value, 1);
  const launch found = find_launch();
  for (auto [name, value] : variables)
    unsetenv(name);
  return found;
}

// `count` cores from this one on.
cpu_set_t cores(int first, int count) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core = first; core < first + count; ++core)
    CPU_SET(core, &set);
  return set;
}

TEST(LauncherTest, SaysHowManyRanksAHostHas) {
  launch found = launch_of({{"OMPI_COMM_WORLD_SIZE", "8"},
                            {"OMPI_COMM_WORLD_RANK", "5"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}});
  EXPECT_TRUE(found.started && found.is_open_mpi);
  EXPECT_EQ(found.ranks_on_host, 4);
  found = launch_of({{"PMI_SIZE", "8"}, {"PMI_RANK", "5"}, {"MPI_LOCALNRANKS", "2"}});
  EXPECT_TRUE(found.started && !found.is_open_mpi);
  EXPECT_EQ(found.ranks_on_host, 2);
  found = launch_of({{"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_PROCID", "5"}});
  EXPECT_TRUE(found.started && !found.is_open_mpi);
  EXPECT_EQ(found.ranks_on_host, 0);
  EXPECT_FALSE(launch_of({}).started);
}

TEST(CoresTest, RanksThatMayUseTheSameOnesShareThem) {
  const cpu_set_t all = cores(0, 32);
  EXPECT_EQ(share_of_first({all}), 32);
  EXPECT_EQ(share_of_first({all, all, all, all}), 8);
  EXPECT_EQ(share_of_first({all, all, all}), 10);
}

// As srun and mpirun --bind-to give them.
TEST(CoresTest, RanksThatAreBoundApartHaveAllOfTheirOwn) {
  EXPECT_EQ(share_of_first({cores(0, 8), cores(8, 8), cores(16, 8), cores(24, 8)}), 8);
  EXPECT_EQ(share_of_first({cores(0, 16), cores(0, 16), cores(16, 16), cores(16, 16)}), 8);
  EXPECT_EQ(share_of_first({cores(0, 12), cores(8, 8)}), 10);
  EXPECT_EQ(share_of_first({cores(0, 1), cores(0, 1), cores(0, 1)}), 1);
}

} // namespace
} // namespace trainc
