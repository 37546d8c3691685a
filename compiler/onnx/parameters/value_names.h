// SPDX-License-Identifier: Apache-2.0
//
// What names of values and tensors tell: PyTorch calls a value by the operation that makes it,
// and exporters invent names for what has none in the module.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace trainc::reader {

/// Kinds of operations of an exported program, as bits.
enum ValueKind : unsigned {
  kKeepsOrder = 1 << 0, // the same elements with other axes
  kReorders = 1 << 1,   // the same elements in another order
  kChooses = 1 << 2,    // elements of the operand, perhaps not all
  kCasts = 1 << 3,
  kRepeats = 1 << 4, // an element of the operand may be there several times
  kFills = 1 << 5,   // one number in every element
  kCounts = 1 << 6,  // sizes, positions and truth values
  kAdds = 1 << 7,
  kPassesOn = 1 << 8, // getitem, detach
  kLacksParameters = 1 << 9,
  kStopsGradients = 1 << 10,

  kRearranges = kKeepsOrder | kReorders,
  kMoves = kRearranges | kChooses | kCasts | kPassesOn,
  /// Never a function of floats with a gradient.
  kNumbers = kFills | kCounts,
  /// Losing such a call loses no use of a parameter.
  kUsesNoParameter = kMoves | kRepeats | kNumbers | kLacksParameters,
  kHasNoGradient = kNumbers | kStopsGradients,
};

/// Whether the operation that made a value is of one of the kinds: `view_1` keeps the order.
bool isMadeBy(llvm::StringRef value, unsigned kinds);

/// A name as PyTorch numbers them: embedding_1 -> embedding.
llvm::StringRef baseName(llvm::StringRef name);

/// The module in a parameter's name, and the parameter's own name in it: a.weight -> a, weight.
llvm::StringRef moduleOfParameter(llvm::StringRef target);
llvm::StringRef attributeOf(llvm::StringRef target);

/// A name that says buffer: running statistics, `NAME_buffer`, `a.pe`.
bool saysBuffer(llvm::StringRef name);

/// A name that an exporter gave to a value which has none in the module.
bool isExporterName(llvm::StringRef name);
/// One of PyTorch's TorchScript exporter: onnx::MatMul_650.
bool isTorchScriptName(llvm::StringRef name);
/// One of paddle2onnx: `p2o.pd_op.reshape.0.0`, `helper.constant.12`.
bool isPaddleName(llvm::StringRef name);
/// Of these, a number or table that paddle2onnx itself wrote: never a parameter of the module.
bool isPaddleConstant(llvm::StringRef name);

} // namespace trainc::reader
