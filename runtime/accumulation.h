// SPDX-License-Identifier: Apache-2.0
//
// How the gradients of a step's micro-batches become one sum.
#pragma once

namespace trainc {

// pairwise: by the tree over their numbers, so that the bits do not depend on which rank took
// which; log2(micro-batches) sums wait. running: a rank adds its own in turn, and one sum waits;
// then the bits depend on how many micro-batches a rank takes.
enum class accumulation { pairwise, running };

} // namespace trainc
