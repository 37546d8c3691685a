// SPDX-License-Identifier: Apache-2.0
//
// Windows that slide over the dimensions of space of a tensor, whose first two are batch and
// channels: what convolutions and pools share.
#pragma once

#include "dialects/nn/onnx/onnx_node.h"
#include <array>

namespace trainc::nn {

constexpr int64_t kLargestWindowNumber = INT32_MAX; // of an attribute: no sum of a few overflows

/// Three dimensions of space, the missing ones in front.
std::array<int64_t, 3> inSpace(llvm::ArrayRef<int64_t> numbers, int64_t otherwise);

/// Elements from the first to the last that a window of `size` taps meets.
inline int64_t reachOf(int64_t size, int64_t dilation) { return (size - 1) * dilation + 1; }

/// Where the windows of an operation lie. `pads` has those before each dimension, then those
/// after. Point p of the result and tap k meet at p * stride + k * dilation - before.
struct WindowSpace {
  std::array<int64_t, 3> input, kernel, result, strides, dilations, before;

  WindowSpace(llvm::ArrayRef<int64_t> input, llvm::ArrayRef<int64_t> kernel,
              llvm::ArrayRef<int64_t> result, llvm::ArrayRef<int64_t> strides,
              llvm::ArrayRef<int64_t> dilations, llvm::ArrayRef<int64_t> pads)
      : input(inSpace(input, 1)), kernel(inSpace(kernel, 1)), result(inSpace(result, 1)),
        strides(inSpace(strides, 1)), dilations(inSpace(dilations, 1)),
        before(inSpace(pads.take_front(pads.size() / 2), 0)) {}

  int64_t inputs() const { return input[0] * input[1] * input[2]; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  int64_t points() const { return result[0] * result[1] * result[2]; }

  /// Where in the input they meet; -1 outside.
  int64_t meeting(int64_t point, int64_t tap) const;
};

/// Checks that `strides` and `dilations` have one positive number per dimension of space and `pads`
/// two that are not negative.
mlir::LogicalResult checkWindowNumbers(std::optional<mlir::Location> location, int64_t space,
                                       llvm::ArrayRef<int64_t> strides,
                                       llvm::ArrayRef<int64_t> dilations,
                                       llvm::ArrayRef<int64_t> pads);

/// What the nodes of such operators say alike.
struct WindowAttributes {
  llvm::SmallVector<int64_t> strides, dilations, pads;
  std::string autoPad;

  bool isSame() const { return llvm::StringRef(autoPad).starts_with("SAME"); }
  /// Splits `total` pads between both ends of dimension `d` of space, as auto_pad says.
  void splitPads(int64_t d, int64_t total);
  /// Pads for auto_pad SAME_UPPER and SAME_LOWER where `size` elements meet windows that reach over
  /// `reach`; else leaves the pads.
  void padSame(int64_t d, int64_t size, int64_t reach);
};

/// The attribute `name`, one number per dimension of space.
mlir::FailureOr<llvm::SmallVector<int64_t>> spaceList(OnnxNode &node, llvm::StringRef name,
                                                      int64_t space, int64_t otherwise);

/// Reads strides, dilations, pads and auto_pad, or reports what is wrong with them.
mlir::FailureOr<WindowAttributes> readWindow(OnnxNode &node, int64_t space);

} // namespace trainc::nn
