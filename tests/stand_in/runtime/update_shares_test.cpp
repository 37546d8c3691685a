// SPDX-License-Identifier: Apache-2.0
//
// Which rank updates what, and that memory in pages is taken for these elements alone.
#include "runtime/cuda/update_shares.h"

#include "runtime/cuda/mapped_memory.h"

#include <gtest/gtest.h>

namespace trainc {
namespace {

constexpr int64_t elements = 8192; // with the three of the step's totals

// Parameters of two chunks, one between the other's, with a hole; the totals are the second's.
constexpr element_range of_first[] = {{0, 2048}, {4096, 6000}};
constexpr element_range of_second[] = {{2048, 4000}, {elements - 3, elements}};

chunk_program chunk_of(const element_range *ranges, int64_t count) {
  chunk_program chunk = {};
  chunk.gradients = {ranges, count};
  return chunk;
}

struct cut_program {
  chunk_program chunks[2] = {chunk_of(of_first, 2), chunk_of(of_second, 2)};
  pipeline stages = {};
  const char *state_names[2] = {"first", "second"};
  program prog = {};

  explicit cut_program(bool in_stages) {
    stages.stages = 2;
    stages.chunks = chunks;
    prog.parameter_type = data_type::f32;
    prog.summed_bytes = elements * 4;
    prog.optimizer_slot_bytes = 4096 * 4; // what is behind are buffers
    prog.state_names = state_names;
    prog.step_totals.name = "step_totals";
    prog.step_totals.offset = (elements - 3) * 4;
    prog.updates_in_parts = true;
    prog.stages = in_stages ? &stages : nullptr;
  }
};

TEST(update_shares_test, every_element_is_of_one_rank_and_totals_of_none) {
  const cut_program cut(/*in_stages=*/true), whole(/*in_stages=*/false);
  for (const program *each : {&cut.prog, &whole.prog})
    for (const bool among_replicas : {false, true})
      for (const int ranks : {2, 4, 6}) {
        std::vector<int> owners(elements);
        for (int rank = 0; rank < ranks; ++rank) {
          const update_shares shares(*each, stage_layout(*each, rank, ranks), among_replicas);
          for (const element_range &range : shares.own())
            for (int64_t i = range.begin; i < range.end; ++i)
              ++owners[static_cast<size_t>(i)];
        }
        const int copies = among_replicas ? 1 : ranks / (each->stages ? 2 : 1);
        for (int64_t i = 0; i < elements; ++i)
          ASSERT_EQ(owners[static_cast<size_t>(i)], i < elements - 3 ? copies : 0)
              << "element " << i << " of " << ranks << " ranks";
      }
}

TEST(update_shares_test, names_the_rank_of_an_element) {
  const cut_program cut(/*in_stages=*/true);
  const update_shares shares(cut.prog, stage_layout(cut.prog, 1, 4), /*among_replicas=*/false);
  EXPECT_EQ(shares.rank_of(*shares.of(2047)), 0);
  EXPECT_EQ(shares.rank_of(*shares.of(2048)), 1);
  EXPECT_EQ(shares.rank_of(*shares.of(4050)), 1) << "a hole behind the second's";
  EXPECT_EQ(shares.rank_of(*shares.of(elements - 4)), 0);
  EXPECT_EQ(shares.of(elements - 3), nullptr);
  EXPECT_TRUE(shares.is_own(*shares.of(2048)));
  EXPECT_FALSE(shares.is_own(*shares.of(0)));
}

TEST(update_shares_test, buffers_have_no_state) {
  const cut_program cut(/*in_stages=*/true);
  const auto bytes =
      update_shares(cut.prog, stage_layout(cut.prog, 0, 2), false).state_bytes(cut.prog);
  ASSERT_EQ(bytes.size(), 2u);
  for (int64_t slot = 0; slot < 2; ++slot) {
    EXPECT_EQ(bytes[static_cast<size_t>(slot)].begin, slot * 4096 * 4);
    EXPECT_EQ(bytes[static_cast<size_t>(slot)].end, (slot * 4096 + 2048) * 4);
  }
}

TEST(update_shares_test, pages_are_taken_once) {
  const auto pages = mapped_memory::pages_of(
      {{9000, 9001}, {0, 1}, {4095, 4096}, {4096, 4096}, {8192, 8300}}, 4096);
  ASSERT_EQ(pages.size(), 2u);
  EXPECT_EQ(pages[0].begin, 0);
  EXPECT_EQ(pages[0].end, 4096);
  EXPECT_EQ(pages[1].begin, 8192);
  EXPECT_EQ(pages[1].end, 12288);
}

} // namespace
} // namespace trainc
