// SPDX-License-Identifier: Apache-2.0
//
// What the environment says of launchers, and the cores of ranks.
#include "runtime/process/processor_quota.h"
#include "runtime/ranks/launcher.h"
#include "runtime/run/threads.h"
#include "tests/unit/scratch_folder.h"

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

// A root with files of control groups, by path.
double quota_of(std::initializer_list<std::pair<const char *, const char *>> files) {
  scratch_folder root;
  for (auto [path, text] : files) {
    std::filesystem::create_directories(std::filesystem::path(root / path).parent_path());
    root.write(path, text);
  }
  return processor_quota(root.path());
}

TEST(ProcessorQuotaTest, IsTheSmallestOfTheGroupsAround) {
  constexpr const char *own = "proc/self/cgroup", *cgroup_2 = "0::/pod/box\n";
  EXPECT_EQ(quota_of({}), 0);
  EXPECT_EQ(quota_of({{own, cgroup_2}, {"sys/fs/cgroup/pod/box/cpu.max", "max 100000\n"}}), 0);
  EXPECT_EQ(quota_of({{own, cgroup_2}, {"sys/fs/cgroup/pod/box/cpu.max", "150000 100000\n"}}), 1.5);
  EXPECT_EQ(quota_of({{own, cgroup_2},
                      {"sys/fs/cgroup/pod/box/cpu.max", "400000 100000\n"},
                      {"sys/fs/cgroup/pod/cpu.max", "200000 100000\n"}}),
            2);
  EXPECT_EQ(quota_of({{own, cgroup_2}, {"sys/fs/cgroup/cpu.max", "50000 100000\n"}}), 0.5);
  EXPECT_EQ(quota_of({{own, "4:memory:/a\n3:cpu,cpuacct:/a\n"},
                      {"sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "300000\n"},
                      {"sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"}}),
            3);
  EXPECT_EQ(quota_of({{own, "1:cpu:/a\n"},
                      {"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"},
                      {"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"}}),
            0);
  EXPECT_EQ(quota_of({{own, cgroup_2}, {"sys/fs/cgroup/cpu.max", "what\n"}}), 0);
}

} // namespace
} // namespace trainc
