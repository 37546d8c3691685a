// SPDX-License-Identifier: Apache-2.0
//
// Matrix products through cuBLASLt: what the device does with them at start-up.
// Every product of the entry functions gets a plan (descriptors and an algorithm)
// before the first step; the functions of runtime/kernels/matmul.h then only look
// it up, allocate nothing and can be recorded in a graph.
//
// An algorithm, once chosen, is kept in a file: two algorithms for one product may
// give different bits, and a run that is repeated or resumed must give the same.
#pragma once

#include "runtime/ranks/communicator.h"

#include <cstdint>
#include <functional>
#include <string>

namespace trainc {

// On the device, at `set_product_workspace`'s address; part of what a trainer plans.
constexpr int64_t product_workspace_bytes = 32 << 20; // what NVIDIA recommends from Hopper on

struct product_settings {
  bool tf32 = false;       // f32 products with operands rounded to TF32
  bool epilogues = true;   // else kernels of our own do what follows a product
  bool cudnn = true;       // else convolutions go through products
  bool timed = true;       // else the first algorithm that the library proposes
  std::string choice_file; // empty: choices are not kept
};

// Makes the plans, and those of convolutions (convolution_library.h). Collective: rank 0 decides
// for all ranks. Call it once, with the device chosen and before the arenas are allocated: it takes
// memory of its own for measuring and gives it back.
//
// `walk` calls the entry functions of this run with the addresses it is given, after
// which nothing lies; while it runs, only_planning() (defined by matmul.cpp) is true.
// compute_stream() must be there. Throws `failure` (exit_machine) where the library has
// no algorithm for a product; rank 0 prints warnings on standard error.
void plan_products(const product_settings &settings, communicator &ranks,
                   const std::function<void(const arenas &)> &walk);

// 256-byte aligned device memory of product_workspace_bytes, which stays as long as the plans.
void set_product_workspace(char *workspace);
char *product_workspace();

} // namespace trainc
