// SPDX-License-Identifier: Apache-2.0
//
// Text of a plan, for people: what trainc-inspect shows and trainc prints. One function for each
// part of the document.
#pragma once

#include "runtime/plan/plan.h"

namespace trainc {

/// plan/summary.txt: what the program is, and how to see more.
std::string summaryText(const plan &plan);
/// Arenas, and what ranks hold.
std::string arenasText(const planned_memory &memory);
/// The same, and the tensors of each entry function.
std::string memoryText(const plan &plan);
/// The line that the tensors of an entry function stand below.
std::string titleOf(const planned_entry &entry);
/// What the steps of each entry function cost: equal ones are a line.
std::string kernelsText(const std::vector<planned_entry> &entries);
/// The entry functions, a line for each step.
std::string stepsText(const std::vector<planned_entry> &entries);
/// What is recomputed and what is kept for the backward pass.
std::string recomputeText(const planned_recompute &plan);
/// What nvcc gave each kernel on each architecture.
std::string registersText(const register_table &table);
/// Of a step that is cut: the stages, what they send each other, and the schedule as a grid.
std::string stagesText(const planned_stages &plan);

} // namespace trainc
