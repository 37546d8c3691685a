// SPDX-License-Identifier: Apache-2.0
#include "compiler/onnx/provenance/dynamo/parametric_calls.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace trainc::reader {

constexpr ParametricCall kParametricCalls[] = {
    {"aten.linear", 1, 2},
    {"aten.prelu", 1, -1},
    {"aten.addmm", 2, 0},
    {"aten.layer_norm", 2, 3},
    {"aten.native_layer_norm", 2, 3},
    {"aten.rms_norm", 2, -1},
    {"aten.group_norm", 2, 3},
    {"aten.native_group_norm", 1, 2},
    {"aten.instance_norm", 1, 2},
    {"aten.embedding", 0, -1},
    {"aten.convolution", 1, 2},
    {"aten.conv1d", 1, 2},
    {"aten.conv2d", 1, 2},
    {"aten.conv3d", 1, 2},
    {"aten.conv_transpose1d", 1, 2},
    {"aten.conv_transpose2d", 1, 2},
    {"aten.conv_transpose3d", 1, 2},
};

constexpr ParametricCall kBatchNorm = {"aten.batch_norm", 1, 2};

const ParametricCall *layoutOf(const ProgramCall &call) {
  if (call.isBatchNorm())
    return &kBatchNorm;
  for (const ParametricCall &layout : kParametricCalls)
    if (call.is(layout.operation))
      return &layout;
  return nullptr;
}

bool isTransposed(const ProgramCall &call, const onnx::NodeProto &node, int input) {
  if (!call.is("aten.linear") || input != 1)
    return false;
  if (isOnnx(node, "MatMul"))
    return true;
  for (const onnx::AttributeProto &attribute : node.attribute())
    if (attribute.name() == "transB" && attribute.i())
      return false;
  return isOnnx(node, "Gemm");
}

bool hasNoParameters(StringRef base) {
  return isMovement(base) ||
         llvm::StringSwitch<bool>(base)
             .Cases("_assert_tensor_metadata", "dropout", true)
             .Cases("expand", "expand_as", "repeat", "arange", "cumsum", "index", true)
             .Cases("eq", "ne", "lt", "le", "gt", "ge", "relu", "clamp", "view_as", true)
             .Cases("logical_and", "logical_or", "logical_not", "bitwise_and", true)
             .Cases("bitwise_or", "bitwise_not", "new_ones", "ones", "zeros", "full", true)
             .Cases("ones_like", "zeros_like", "full_like", "val", "where", "any", true)
             .Default(false);
}

bool hasNoGradient(StringRef base) {
  return isNumber(base) ||
         llvm::StringSwitch<bool>(base)
             .Cases("argmax", "argmin", "argsort", "one_hot", "isnan", "isinf", "isfinite", true)
             .Cases("floor", "ceil", "round", "sign", "floor_divide", "bincount", true)
             .Default(false);
}

} // namespace trainc::reader
