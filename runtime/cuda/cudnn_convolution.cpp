// SPDX-License-Identifier: Apache-2.0
//
// Convolutions through cuDNN, as sums of products in an order that is the same each time.
//
// Of its algorithms those alone are taken that multiply the operands as they are: FFT and Winograd
// multiply transformed ones, whose sums are less exact, and ALGO_0 and ALGO_3 of the gradients
// add in the order in which blocks are done.
//
// Gradients of 16 bits have sums in f32, which these functions of cuDNN do not write for such
// operands. They get operands widened to f32, whose products TF32 computes exactly: it has more
// bits than either type of 16.
#include "runtime/cuda/convolution_library.h"

#if __has_include(<cudnn.h>)
#include "runtime/cuda/cudnn_calls.h"
#include "runtime/cuda/launch.h"
#include "runtime/failure.h"

#include <algorithm>

namespace trainc {
namespace {

constexpr int64_t operand_multiple = 256; // bytes, as cudaMalloc aligns

int64_t aligned_size(int64_t bytes) {
  return (bytes + operand_multiple - 1) / operand_multiple * operand_multiple;
}

struct cudnn_library {
  explicit cudnn_library(const cudnn_calls &found) : calls(found) {}
  ~cudnn_library() {
    if (handle)
      calls.cudnnDestroy(handle);
  }
  cudnn_library(const cudnn_library &) = delete;
  cudnn_library &operator=(const cudnn_library &) = delete;

  const cudnn_calls &calls;
  cudnnHandle_t handle = nullptr;
};

cudnnDataType_t cudnn_type(product_number number) {
  switch (number) {
  case product_number::f64:
    return CUDNN_DATA_DOUBLE;
  case product_number::f32:
    return CUDNN_DATA_FLOAT;
  case product_number::bf16:
    return CUDNN_DATA_BFLOAT16;
  case product_number::f16:
    return CUDNN_DATA_HALF;
  }
  return CUDNN_DATA_FLOAT;
}

bool is_widened(const convolution_key &key) {
  return bytes_of(key.operands) < bytes_of(key.result);
}

// With CUDNN_DEFAULT_MATH cuDNN may round operands in f32 to TF32.
cudnnMathType_t math_of(const convolution_key &key, bool tf32) {
  if (key.result == product_number::f32)
    return tf32 || is_widened(key) ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH;
  return key.result == product_number::f64 ? CUDNN_DEFAULT_MATH : CUDNN_TENSOR_OP_MATH;
}

// Whether cuDNN can be told of it: it pads both ends of a dimension alike, and counts in int. More
// pads at an end do not matter where they add no point to the result.
bool can_be_described(const convolution_key &key) {
  const convolution_space space(key.shape);
  for (int d = 0; d < max_space; ++d) {
    const int64_t reach = (space.kernel.of[d] - 1) * space.dilation.of[d];
    const int64_t room = space.input.of[d] + 2 * space.before.of[d] - reach - 1;
    if (space.before.of[d] < 0 || room < 0 || room / space.stride.of[d] + 1 != space.result.of[d])
      return false;
  }
  const int rank = space_rank(key.shape);
  for (const convolution_sizes *sizes : {&key.shape.input, &key.shape.weight, &key.shape.result})
    if (count_of(*sizes, rank) > INT32_MAX)
      return false;
  return true;
}

class cudnn_convolution : public library_convolution {
public:
  cudnn_convolution(const cudnn_library &library, const convolution_key &key, bool tf32);
  ~cudnn_convolution() override;
  cudnn_convolution(const cudnn_convolution &) = delete;
  cudnn_convolution &operator=(const cudnn_convolution &) = delete;

  std::vector<int> algorithms() const override;
  void run(int algorithm, const convolution_operands &operands) override;

private:
  void check(cudnnStatus_t status) const;
  void describe(bool tf32);
  int64_t widened_bytes() const;
  convolution_operands widened(const convolution_operands &operands) const;
  template <typename Performance, typename Propose, typename Size>
  std::vector<int> usable(std::vector<int> exact, const Propose &propose, const Size &size) const;

  const cudnn_library &library_;
  const cudnn_calls &calls_;
  convolution_key key_;
  int64_t first_count_ = 0, second_count_ = 0; // elements
  cudnnTensorDescriptor_t x_ = nullptr, y_ = nullptr;
  cudnnFilterDescriptor_t w_ = nullptr;
  cudnnConvolutionDescriptor_t convolution_ = nullptr;
};

void cudnn_convolution::check(cudnnStatus_t status) const {
  if (status != CUDNN_STATUS_SUCCESS)
    throw failure(exit_machine,
                  format_text("a convolution: cuDNN reports: %s\n  try: --no-cudnn, which computes "
                              "convolutions through matrix products",
                              calls_.cudnnGetErrorString(status)));
}

cudnn_convolution::cudnn_convolution(const cudnn_library &library, const convolution_key &key,
                                     bool tf32)
    : library_(library), calls_(library.calls), key_(key) {
  const int rank = space_rank(key.shape);
  const convolution_part part = key.computed();
  first_count_ =
      count_of(part == convolution_part::input_gradient ? key.shape.result : key.shape.input, rank);
  second_count_ = count_of(
      part == convolution_part::weight_gradient ? key.shape.result : key.shape.weight, rank);
  describe(tf32);
}

cudnn_convolution::~cudnn_convolution() {
  calls_.cudnnDestroyTensorDescriptor(x_);
  calls_.cudnnDestroyTensorDescriptor(y_);
  calls_.cudnnDestroyFilterDescriptor(w_);
  calls_.cudnnDestroyConvolutionDescriptor(convolution_);
}

// In two or three dimensions of space. Where there is one, the first of two has one point.
void cudnn_convolution::describe(bool tf32) {
  const convolution_space space(key_.shape);
  const int rank = std::max(space_rank(key_.shape), 2), skipped = max_space - rank;
  const cudnnDataType_t type = cudnn_type(key_.result);
  const auto sizes = [&](int64_t count, int64_t channels, const space_sizes &of) {
    std::vector<int> list = {static_cast<int>(count), static_cast<int>(channels)};
    list.insert(list.end(), of.of + skipped, of.of + max_space);
    return list;
  };
  const auto numbers = [&](const space_sizes &of) {
    return std::vector<int>(of.of + skipped, of.of + max_space);
  };
  const auto describe_tensor = [&](cudnnTensorDescriptor_t &tensor, const std::vector<int> &list) {
    std::vector<int> strides(list.size(), 1);
    for (size_t d = list.size() - 1; d > 0; --d)
      strides[d - 1] = strides[d] * list[d];
    check(calls_.cudnnCreateTensorDescriptor(&tensor));
    check(calls_.cudnnSetTensorNdDescriptor(tensor, type, static_cast<int>(list.size()),
                                            list.data(), strides.data()));
  };
  const convolution_shape &shape = key_.shape;
  describe_tensor(x_, sizes(shape.input.of[0], shape.input.of[1], space.input));
  describe_tensor(y_, sizes(shape.input.of[0], shape.weight.of[0], space.result));
  const std::vector<int> kernel = sizes(shape.weight.of[0], shape.weight.of[1], space.kernel);
  check(calls_.cudnnCreateFilterDescriptor(&w_));
  check(calls_.cudnnSetFilterNdDescriptor(w_, type, CUDNN_TENSOR_NCHW,
                                          static_cast<int>(kernel.size()), kernel.data()));
  check(calls_.cudnnCreateConvolutionDescriptor(&convolution_));
  check(calls_.cudnnSetConvolutionNdDescriptor(
      convolution_, rank, numbers(space.before).data(), numbers(space.stride).data(),
      numbers(space.dilation).data(), CUDNN_CROSS_CORRELATION,
      key_.result == product_number::f64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT));
  check(calls_.cudnnSetConvolutionGroupCount(convolution_, static_cast<int>(shape.groups)));
  check(calls_.cudnnSetConvolutionMathType(convolution_, math_of(key_, tf32)));
}

// Of the operands in f32, where they are widened.
int64_t cudnn_convolution::widened_bytes() const {
  constexpr auto element = static_cast<int64_t>(sizeof(float));
  if (!is_widened(key_))
    return 0;
  return aligned_size(first_count_ * element) + aligned_size(second_count_ * element);
}

// The library's proposals among the algorithms `exact`, best first. cuDNN says of each whether its
// bits are the same every time; which memory it needs follows from the math that was set.
template <typename Performance, typename Propose, typename Size>
std::vector<int> cudnn_convolution::usable(std::vector<int> exact, const Propose &propose,
                                           const Size &size) const {
  constexpr int most = 16; // an algorithm may come once for each kind of math
  Performance proposals[most] = {};
  int count = 0;
  if (propose(most, &count, proposals) != CUDNN_STATUS_SUCCESS)
    return {};
  const int64_t scratch = key_.scratch_bytes - operand_multiple - widened_bytes();
  if (is_widened(key_) && scratch < 0)
    return {};
  std::vector<int> algorithms;
  for (int i = 0; i < count; ++i) {
    const auto place = std::find(exact.begin(), exact.end(), proposals[i].algo);
    size_t bytes = 0;
    if (place == exact.end() || proposals[i].status != CUDNN_STATUS_SUCCESS ||
        proposals[i].determinism != CUDNN_DETERMINISTIC ||
        size(proposals[i].algo, &bytes) != CUDNN_STATUS_SUCCESS ||
        bytes > static_cast<size_t>(std::max(scratch, product_workspace_bytes)))
      continue;
    algorithms.push_back(*place);
    exact.erase(place);
  }
  return algorithms;
}

std::vector<int> cudnn_convolution::algorithms() const {
  const cudnnHandle_t handle = library_.handle;
  switch (key_.computed()) {
  case convolution_part::result:
    return usable<cudnnConvolutionFwdAlgoPerf_t>(
        {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM,
         CUDNN_CONVOLUTION_FWD_ALGO_GEMM},
        [&](auto... found) {
          return calls_.cudnnGetConvolutionForwardAlgorithm_v7(handle, x_, w_, convolution_, y_,
                                                               found...);
        },
        [&](auto... found) {
          return calls_.cudnnGetConvolutionForwardWorkspaceSize(handle, x_, w_, convolution_, y_,
                                                                found...);
        });
  case convolution_part::input_gradient:
    return usable<cudnnConvolutionBwdDataAlgoPerf_t>(
        {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1},
        [&](auto... found) {
          return calls_.cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, w_, y_, convolution_,
                                                                    x_, found...);
        },
        [&](auto... found) {
          return calls_.cudnnGetConvolutionBackwardDataWorkspaceSize(handle, w_, y_, convolution_,
                                                                     x_, found...);
        });
  case convolution_part::weight_gradient:
    return usable<cudnnConvolutionBwdFilterAlgoPerf_t>(
        {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1},
        [&](auto... found) {
          return calls_.cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, x_, y_, convolution_,
                                                                      w_, found...);
        },
        [&](auto... found) {
          return calls_.cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, x_, y_, convolution_,
                                                                       w_, found...);
        });
  }
  return {};
}

// Queues the widening of the operands to the scratch. Their scratch is what is left of it.
convolution_operands cudnn_convolution::widened(const convolution_operands &operands) const {
  char *first = operands.scratch;
  char *second = first + aligned_size(first_count_ * static_cast<int64_t>(sizeof(float)));
  widen(key_.operands, operands.first, first_count_, reinterpret_cast<float *>(first));
  widen(key_.operands, operands.second, second_count_, reinterpret_cast<float *>(second));
  return {first, second, operands.computed, operands.scratch + widened_bytes()};
}

void cudnn_convolution::run(int algorithm, const convolution_operands &operands) {
  convolution_operands given = operands;
  const uintptr_t address = reinterpret_cast<uintptr_t>(operands.scratch) % operand_multiple;
  const int64_t skipped = (operand_multiple - static_cast<int64_t>(address)) % operand_multiple;
  given.scratch += skipped;
  int64_t bytes = key_.scratch_bytes - operand_multiple - widened_bytes();
  if (is_widened(key_))
    given = widened(given);
  if (bytes < product_workspace_bytes) {
    given.scratch = product_workspace();
    bytes = product_workspace_bytes;
  }
  const double one = 1, zero = 0;
  const float one_f32 = 1, zero_f32 = 0;
  const bool is_double = key_.result == product_number::f64;
  const void *scale = is_double ? static_cast<const void *>(&one) : &one_f32;
  const void *scale_before = is_double ? static_cast<const void *>(&zero) : &zero_f32;
  const cudnnHandle_t handle = library_.handle;
  check(calls_.cudnnSetStream(handle, compute_stream())); // another one while a step is recorded
  switch (key_.computed()) {
  case convolution_part::result:
    return check(calls_.cudnnConvolutionForward(
        handle, scale, x_, given.first, w_, given.second, convolution_,
        static_cast<cudnnConvolutionFwdAlgo_t>(algorithm), given.scratch,
        static_cast<size_t>(bytes), scale_before, y_, given.computed));
  case convolution_part::input_gradient:
    return check(calls_.cudnnConvolutionBackwardData(
        handle, scale, w_, given.second, y_, given.first, convolution_,
        static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm), given.scratch,
        static_cast<size_t>(bytes), scale_before, x_, given.computed));
  case convolution_part::weight_gradient:
    return check(calls_.cudnnConvolutionBackwardFilter(
        handle, scale, x_, given.first, y_, given.second, convolution_,
        static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm), given.scratch,
        static_cast<size_t>(bytes), scale_before, w_, given.computed));
  }
}

class cudnn_maker : public convolution_maker {
public:
  explicit cudnn_maker(const cudnn_calls &calls) : library_(calls) {}
  cudnnStatus_t start() { return library_.calls.cudnnCreate(&library_.handle); }
  std::string version() const override {
    return "cuDNN " + std::to_string(library_.calls.cudnnGetVersion());
  }
  std::unique_ptr<library_convolution> make(const convolution_key &key, bool tf32) const override {
    if (!can_be_described(key))
      return nullptr;
    return std::make_unique<cudnn_convolution>(library_, key, tf32);
  }

private:
  cudnn_library library_;
};

} // namespace

std::unique_ptr<convolution_maker> find_cudnn(std::string &missing) {
  const cudnn_calls *calls = find_cudnn_calls(missing);
  if (!calls)
    return nullptr;
  auto maker = std::make_unique<cudnn_maker>(*calls);
  const cudnnStatus_t status = maker->start();
  if (status == CUDNN_STATUS_SUCCESS)
    return maker;
  missing = std::string("it cannot start: ") + calls->cudnnGetErrorString(status);
  return nullptr;
}

} // namespace trainc

#else

namespace trainc {

std::unique_ptr<convolution_maker> find_cudnn(std::string &missing) {
  missing = "its header, cudnn.h, was not there when the runtime was built";
  return nullptr;
}

} // namespace trainc
#endif
