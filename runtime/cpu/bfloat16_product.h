// SPDX-License-Identifier: Apache-2.0
//
// A product of matrices of bf16 as a primitive of oneDNN, where the processor multiplies tiles of
// bf16 (AMX): multiplies_bfloat16 of row_products.h.
#pragma once

#include "runtime/cpu/onednn.h"
#include "runtime/cpu/thread_memory.h"

namespace trainc {

// Threads may run copies made by `another` at once. After the first run of the largest product a
// thread takes nothing from the system.
class bfloat16_product {
public:
  using layout = dnnl::memory::desc;

  bfloat16_product() = default;
  bfloat16_product(const layout &a, const layout &b, const layout &c, bool adds) {
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user); // several threads run one
    if (adds) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attributes.set_post_ops(sum);
    }
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(a, b, c), attributes,
                                                   library_engine());
    primitive_ = dnnl::matmul(description);
    layouts_[0] = a;
    layouts_[1] = b;
    layouts_[2] = c;
    layouts_[3] = description.scratchpad_desc();
    scratchpad_bytes_ = layouts_[3].get_size();
    take_memories();
  }

  bfloat16_product another() const {
    bfloat16_product copy = *this;
    copy.take_memories();
    return copy;
  }

  void run(const bfloat16 *a, const bfloat16 *b, void *c) {
    static const dnnl::stream stream(library_engine());
    void *const places[arguments] = {const_cast<bfloat16 *>(a), const_cast<bfloat16 *>(b), c,
                                     thread_memory<char>(scratchpad_bytes_)};
    constexpr int kinds[arguments] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST,
                                      DNNL_ARG_SCRATCHPAD};
    dnnl_exec_arg_t given[arguments];
    for (int i = 0; i < arguments; ++i) {
      memories_[i].set_data_handle(places[i]);
      given[i] = {kinds[i], memories_[i].get()};
    }
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(primitive_.get(), stream.get(), arguments, given),
        "oneDNN refused a product of bf16");
  }

private:
  static constexpr int arguments = 4; // a, b, c, scratchpad

  void take_memories() {
    for (int i = 0; i < arguments; ++i)
      memories_[i] = {layouts_[i], library_engine(), DNNL_MEMORY_NONE};
  }

  dnnl::matmul primitive_;
  layout layouts_[arguments];
  dnnl::memory memories_[arguments];
  size_t scratchpad_bytes_ = 0;
};

} // namespace trainc
