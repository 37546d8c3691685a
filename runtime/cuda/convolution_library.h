// SPDX-License-Identifier: Apache-2.0
//
// Which convolutions a library computes, cuDNN, and which go through matrix products. Every
// convolution of the entry functions gets an algorithm before the first step, or goes through
// products: where cuDNN is not found, where it has nothing for the convolution whose bits are the
// same each time, and where products are faster. The choices are kept in the file of those for
// products (products/matmul.h).
#pragma once

#include "runtime/cuda/products/device_timing.h"
#include "runtime/cuda/products/matmul.h"
#include "runtime/cuda/products/product_plan.h"
#include "runtime/cuda/products/remembered_choices.h"
#include "runtime/kernels/convolution.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace trainc {

// What tells one convolution from another. Integers alone, so that it compares as bytes.
struct convolution_key {
  convolution_shape shape;
  int64_t part; // a convolution_part
  product_number operands, result;
  int64_t scratch_bytes;

  convolution_part computed() const { return static_cast<convolution_part>(part); }
};

struct convolution_operands {
  const void *first, *second;
  void *computed;
  char *scratch;
};

// ---- a library

// A convolution as a library computes it.
class library_convolution {
public:
  virtual ~library_convolution() = default;
  // Numbers of algorithms that give the same bits every time, as far as they need no more memory
  // than the scratch or product_workspace(), the one first that the library takes for the fastest.
  virtual std::vector<int> algorithms() const = 0;
  // Queues it on compute_stream().
  virtual void run(int algorithm, const convolution_operands &operands) = 0;
};

class convolution_maker {
public:
  virtual ~convolution_maker() = default;
  virtual std::string version() const = 0; // with the library's name
  // Null: not by this library.
  virtual std::unique_ptr<library_convolution> make(const convolution_key &key,
                                                    bool tf32) const = 0;
};

// Null where it is not there or does not start; `missing` then says why.
std::unique_ptr<convolution_maker> find_cudnn(std::string &missing);

// Elements of 16 bits in f32, which holds each of them.
void widen(product_number number, const void *from, int64_t count, float *to);

// ---- the convolutions of a program

using convolution_by_products = void (*)(const convolution_key &, const convolution_operands &);

class convolution_library {
public:
  explicit convolution_library(const product_settings &settings) : settings_(settings) {}

  // While entry functions are walked.
  void plan(const convolution_key &key, convolution_by_products by_products);
  // Collective: rank 0 decides for all ranks. `products` are the choices for products, which must
  // have been adopted: some are measured here.
  void choose(communicator &ranks, const std::string &device, const remembered_choices &products);
  // Queues the convolution; false where it goes through products.
  bool run(const convolution_key &key, const convolution_operands &operands);

private:
  struct planned {
    convolution_by_products by_products;
    std::string name, problem;
    std::unique_ptr<library_convolution> own; // null: the library does not compute it
    int algorithm;

    std::vector<int> algorithms() const { return own ? own->algorithms() : std::vector<int>(); }
  };
  struct order {
    bool operator()(const convolution_key &x, const convolution_key &y) const;
  };

  static bool find_known(const remembered_choices &choices, planned &own);
  void find_library(bool speaks);
  void choose_algorithms(remembered_choices &choices);
  void adopt_algorithms(const remembered_choices &choices);
  int fastest(const convolution_key &key, planned &own, device_timing &timing);

  product_settings settings_;
  std::unique_ptr<convolution_maker> maker_; // null: all go through products
  std::map<convolution_key, planned, order> plans_;
};

// As `plan` while entry functions are walked, else as `run`, of the calling thread's library.
bool queue_by_library(const convolution_key &key, const convolution_operands &operands,
                      convolution_by_products by_products);

} // namespace trainc
