// SPDX-License-Identifier: Apache-2.0
//
// The matrix products of a trainer: plans made at start-up, algorithms chosen by
// measuring, and the functions of runtime/kernels/matmul.h that look plans up.
#include "runtime/cuda/products/matmul.h"

#include "runtime/cuda/convolution_library.h"
#include "runtime/cuda/errors.h"
#include "runtime/cuda/launch.h"
#include "runtime/cuda/products/product_plan.h"
#include "runtime/cuda/products/product_timing.h"
#include "runtime/cuda/products/remembered_choices.h"
#include "runtime/cuda/work_place.h"
#include "runtime/failure.h"
#include "runtime/kernels/matmul.h"
#include "runtime/kernels/matrix_storage.h"
#include "runtime/process/signs_of_life.h"

#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>

namespace trainc {

struct product_order {
  bool operator()(const product_key &x, const product_key &y) const {
    return std::memcmp(&x, &y, sizeof x) < 0;
  }
};

struct product_library {
  explicit product_library(const product_settings &settings) : settings(settings) {
    const cublasStatus_t status = cublasLtCreate(&handle);
    if (status != CUBLAS_STATUS_SUCCESS)
      throw failure(
          exit_machine,
          format_text("cuBLASLt cannot start: it reports: %s\n  try: CUBLASLT_LOG_LEVEL=1 "
                      "in the environment, which shows why, and nvidia-smi, which shows "
                      "whether the device is full",
                      cublasLtGetStatusString(status)));
  }
  ~product_library() {
    plans.clear();
    cublasLtDestroy(handle);
  }
  product_library(const product_library &) = delete;
  product_library &operator=(const product_library &) = delete;

  product_settings settings;
  cublasLtHandle_t handle = nullptr;
  char *workspace = nullptr;
  std::map<product_key, std::unique_ptr<product_plan>, product_order> plans;
};

namespace {

constexpr int proposal_count = 8; // to measure; they come in the order of estimated time

product_library *library() { return own_work().products.get(); }

std::string device_name() {
  int device = 0;
  cudaDeviceProp properties = {};
  check_cuda(cudaGetDevice(&device), "look-up of the device");
  check_cuda(cudaGetDeviceProperties(&properties, device), "look-up of the device");
  return properties.name;
}

std::vector<cublasLtMatmulAlgo_t> proposals_for(const product_plan &plan) {
  return plan.proposals(library()->handle, library()->settings.timed ? proposal_count : 1);
}

// The choice for a product, where the library still takes it.
std::optional<cublasLtMatmulAlgo_t> find_known(const remembered_choices &choices,
                                               const product_plan &plan) {
  const std::string *text = choices.find(plan.problem());
  const auto known = text ? algorithm_of(*text) : std::nullopt;
  return known && plan.accepts(library()->handle, *known) ? known : std::nullopt;
}

void warn_of_parted(const std::vector<std::string> &products) {
  if (products.empty())
    return;
  const std::string others =
      products.size() > 1 ? format_text(" and %zu more", products.size() - 1) : "";
  fprintf(
      stderr,
      "warning: cuBLASLt has no algorithm for the %s%s with what follows (bias, GELU or a sum): "
      "kernels of the runtime do that part\n",
      products[0].c_str(), others.c_str());
}

// In place of an algorithm: the epilogue follows the product, which has an algorithm of its own,
// since that is faster or since the library has none for both.
constexpr const char *apart = "apart", *has_none = "none";

// As was chosen before. False where nothing was that the library still takes.
bool adopt_known(const remembered_choices &choices, product_plan &plan) {
  const std::string *text = choices.find(plan.problem());
  if (plan.joins_epilogue() && text && (*text == apart || *text == has_none))
    plan.part_epilogue();
  const auto known = find_known(choices, plan);
  if (known)
    plan.adopt(*known);
  return known.has_value();
}

// By measuring: the library's epilogue against kernels that follow the product.
void choose(product_plan &plan, product_timing &timing, remembered_choices &choices) {
  const product_settings &settings = library()->settings;
  std::vector<product_way> ways;
  const auto add_ways = [&](product_plan &of) {
    for (const cublasLtMatmulAlgo_t &algorithm : proposals_for(of))
      ways.push_back({&of, algorithm});
  };
  add_ways(plan);
  const bool is_alone = ways.empty(); // the product without its epilogue
  std::optional<product_plan> parted;
  if (plan.joins_epilogue() && (settings.timed || is_alone)) {
    parted.emplace(plan.key(), settings.tf32);
    parted->part_epilogue();
    add_ways(*parted);
  }
  if (ways.empty())
    throw failure(exit_machine, "cuBLASLt has no algorithm for the " + plan.name() +
                                    " on this device (" + plan.problem() +
                                    ")\n  try: a newer version of cuBLAS");
  const product_way &way = ways.size() == 1 ? ways[0] : timing.fastest(library()->handle, ways);
  if (way.plan != &plan)
    choices.add(plan.problem(), is_alone ? has_none : apart);
  choices.add(way.plan->problem(), text_of(way.algorithm));
}

// On rank 0: an algorithm for every plan, from the file or by measuring.
void choose_algorithms(remembered_choices &choices) {
  const product_settings &settings = library()->settings;
  // Without measuring, the choice is the library's own and the same every time.
  const bool keeps = settings.timed && !settings.choice_file.empty();
  if (keeps)
    read_choices(settings.choice_file, choices);
  product_timing timing(compute_stream());
  bool any_new = false;
  std::vector<std::string> without;
  for (auto &[key, plan] : library()->plans) {
    const std::string problem = plan->problem(); // another one where the epilogue is apart
    if (!adopt_known(choices, *plan)) {
      choose(*plan, timing, choices);
      note_work(); // the other ranks wait
      any_new = true;
    }
    if (const std::string *word = choices.find(problem); word && *word == has_none)
      without.push_back(plan->name());
  }
  warn_of_parted(without);
  if (keeps && any_new)
    write_choices(settings.choice_file, choices);
}

void adopt_algorithms(const remembered_choices &choices) {
  for (auto &[key, plan] : library()->plans)
    if (!adopt_known(choices, *plan))
      throw failure(exit_machine, "this rank cannot compute the " + plan->name() +
                                      " with the algorithm that rank 0 chose\n"
                                      "  try: devices of one kind and one version of cuBLAS on "
                                      "all hosts");
}

// Addresses that only differ and are aligned as real ones.
arenas addresses_for_planning() {
  constexpr uintptr_t apart = uintptr_t(1) << 44;
  arenas places = {};
  for (int i = 0; i < arena_count; ++i)
    places.base[i] = reinterpret_cast<char *>(apart * static_cast<uintptr_t>(i + 1));
  places.constants = reinterpret_cast<const char *>(apart * (arena_count + 1));
  return places;
}

template <typename T, typename To = T>
void multiply(const matmul_shape &shape, product_epilogue epilogue, bool adds,
              const product_operands &operands) {
  if (!library())
    throw std::logic_error("a matrix product before plan_products");
  product_key key = {};
  key.shape = shape;
  key.operands = number_of<T>;
  key.result = number_of<To>;
  key.adds = adds;
  key.epilogue = epilogue;
  auto alignment = [&](const matrix_layout &matrix, const void *address, product_number number) {
    return address ? operand_alignment(shape, matrix, address, bytes_of(number)) : 0;
  };
  key.alignment[0] = alignment(shape.a, operands.a, key.operands);
  key.alignment[1] = alignment(shape.b, operands.b, key.operands);
  key.alignment[2] = alignment(shape.c, operands.c, key.result);
  key.alignment[3] = alignment(matrix_layout(), operands.vector, key.result);
  key.alignment[4] = alignment(matrix_layout(), operands.linear, key.result);
  auto found = library()->plans.find(key);
  if (own_work().planning) {
    if (found == library()->plans.end()) {
      auto &plan = library()->plans[key] =
          std::make_unique<product_plan>(key, library()->settings.tf32);
      if (plan->joins_epilogue() && !library()->settings.epilogues)
        plan->part_epilogue();
    }
    return;
  }
  if (found == library()->plans.end())
    throw std::logic_error("a matrix product that was not planned");
  found->second->run(library()->handle, operands, library()->workspace, compute_stream());
}

} // namespace

bool only_planning() { return own_work().planning; }

void plan_products(const product_settings &settings, communicator &ranks,
                   const std::function<void(const arenas &)> &walk) {
  std::unique_ptr<remembered_choices> choices;
  ranks.together([&] {
    own_work().products = std::make_shared<product_library>(settings);
    own_work().convolutions = std::make_shared<convolution_library>(settings);
    choices =
        std::make_unique<remembered_choices>(device_name(), std::to_string(cublasLtGetVersion()));
    own_work().planning = true;
    walk(addresses_for_planning());
    own_work().planning = false;
    if (ranks.rank() == 0)
      choose_algorithms(*choices);
  });
  choices->add_lines(ranks.broadcast(choices->own_lines()));
  ranks.together([&] { adopt_algorithms(*choices); });
  own_work().convolutions->choose(ranks, device_name(), *choices);
}

void set_product_workspace(char *workspace) { library()->workspace = workspace; }
char *product_workspace() { return library()->workspace; }

void matmul(const matmul_shape &shape, const float *a, const float *b, float *c) {
  multiply<float>(shape, product_epilogue::none, false, {a, b, c});
}
void matmul(const matmul_shape &shape, const double *a, const double *b, double *c) {
  multiply<double>(shape, product_epilogue::none, false, {a, b, c});
}
#define NARROW_PRODUCTS(T)                                                                         \
  template <> void matmul(const matmul_shape &shape, const T *a, const T *b, float *c) {           \
    multiply<T, float>(shape, product_epilogue::none, false, {a, b, c});                           \
  }                                                                                                \
  template <> void matmul(const matmul_shape &shape, const T *a, const T *b, T *c) {               \
    multiply<T>(shape, product_epilogue::none, false, {a, b, c});                                  \
  }                                                                                                \
  template <> void matmul_add(const matmul_shape &shape, const T *a, const T *b, float *c) {       \
    multiply<T, float>(shape, product_epilogue::none, true, {a, b, c});                            \
  }
NARROW_PRODUCTS(bfloat16)
NARROW_PRODUCTS(float16)
#undef NARROW_PRODUCTS
void matmul_add(const matmul_shape &shape, const float *a, const float *b, float *c) {
  multiply<float>(shape, product_epilogue::none, true, {a, b, c});
}
void matmul_add(const matmul_shape &shape, const double *a, const double *b, double *c) {
  multiply<double>(shape, product_epilogue::none, true, {a, b, c});
}

template <typename T>
void matmul_bias(const matmul_shape &shape, const T *a, const T *b, const T *bias, T *c) {
  multiply<T>(shape, product_epilogue::bias, false, {a, b, c, bias});
}
template <typename T>
void matmul_gelu(const matmul_shape &shape, const T *a, const T *b,
                 const std::type_identity_t<T> *bias, T *c, std::type_identity_t<T> *linear) {
  multiply<T>(shape, product_epilogue::gelu, false, {a, b, c, bias, linear});
}
template <typename T>
void matmul_gelu_gradient(const matmul_shape &shape, const T *a, const T *b, const T *linear, T *c,
                          std::type_identity_t<T> *sum) {
  multiply<T>(shape, product_epilogue::gelu_gradient, false, {a, b, c, sum, linear});
}
template <typename T>
void matmul_sum_a(const matmul_shape &shape, const T *a, const T *b, float *c, float *sum) {
  multiply<T, float>(shape, product_epilogue::sum_of_a, false, {a, b, c, sum});
}
template <typename T>
void matmul_sum_b(const matmul_shape &shape, const T *a, const T *b, float *c, float *sum) {
  multiply<T, float>(shape, product_epilogue::sum_of_b, false, {a, b, c, sum});
}

#define EPILOGUES_OF(T)                                                                            \
  template void matmul_bias(const matmul_shape &, const T *, const T *, const T *, T *);           \
  template void matmul_gelu<T>(const matmul_shape &, const T *, const T *, const T *, T *, T *);   \
  template void matmul_gelu_gradient<T>(const matmul_shape &, const T *, const T *, const T *,     \
                                        T *, T *);                                                 \
  template void matmul_sum_a(const matmul_shape &, const T *, const T *, float *, float *);        \
  template void matmul_sum_b(const matmul_shape &, const T *, const T *, float *, float *);
EPILOGUES_OF(float)
EPILOGUES_OF(bfloat16)
EPILOGUES_OF(float16)
#undef EPILOGUES_OF

} // namespace trainc
