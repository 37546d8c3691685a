// SPDX-License-Identifier: Apache-2.0
//
// What the device does around work that contains matrix products and convolutions: it plans for the
// work, then runs it, and forgets the plans.
#pragma once

#include "runtime/cuda/errors.h"
#include "runtime/cuda/products/matmul.h"
#include "runtime/cuda/streams.h"
#include "runtime/ranks/communicator.h"

#include <functional>

namespace trainc {

inline product_settings untimed() {
  product_settings settings;
  settings.timed = false;
  return settings;
}

inline void run_planned(const std::function<void()> &work,
                        const product_settings &settings = untimed()) {
  streams queues;
  communicator alone;
  plan_products(settings, alone, [&](const arenas &) { work(); });
  static char *workspace = nullptr; // for all tests: the stand-in watches each of its bytes
  if (!workspace)
    check_cuda(cudaMalloc(reinterpret_cast<void **>(&workspace), product_workspace_bytes),
               "workspace");
  set_product_workspace(workspace);
  work();
  check_cuda(cudaDeviceSynchronize(), "work");
  own_work().convolutions.reset();
  own_work().products.reset();
}

} // namespace trainc
