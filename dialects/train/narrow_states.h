// SPDX-License-Identifier: Apache-2.0
//
// States of an optimizer in fewer bits. The update computes in f32 as the optimizer has it; what it
// leaves is rounded to one of two neighbours, to the nearer one more often, so that the mean over
// many steps is exact: a square that decays by a thousandth in a step would else never change.
// Which one follows from the number of the update and the place of the element, so a run that is
// resumed has the bits of one that was not stopped.
//
// bf16: each number by itself.
//
// 8 bits (after Dettmers et al. 2022, arXiv 2110.02861): 256 neighbours of a parameter, a block,
// share the largest size among them, in f32. A number is a share of it. Of one that has a sign the
// root of its share is kept, in steps of 1/127: +-(c/127)^2. Of a square its fourth root, in steps
// of 1/255: (c/255)^4, with c at least 1, so that none becomes 0 and the update divides by it. So
// small numbers have finer steps than large ones, and each is made with two square roots, which all
// machines round alike.
#pragma once

#include "dialects/train/optimizer.h"

namespace trainc::train {

/// Elements of a block, and of the rows that such an update works on.
constexpr int64_t kStateBlock = 256;

/// `optimizer` has `squares`.
Optimizer withBf16States(Optimizer optimizer);
Optimizer with8BitStates(Optimizer optimizer);

} // namespace trainc::train
