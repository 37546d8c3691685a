// SPDX-License-Identifier: Apache-2.0
//
// Models that compute in float16 or bfloat16. They are read as if they computed in float32: their
// parameters are trained in that. What is changed is marked, so that an export has the file's
// types.
#pragma once

#include "compiler/onnx/file/model_file.h"
#include <set>

namespace trainc::reader {

/// Calls `visit` with each node of a model, those of branches, bodies and functions too.
void forEachNode(onnx::ModelProto &model, llvm::function_ref<void(onnx::NodeProto &)> visit);

/// The type of 16 bits that an input, an output, a cast or the operand of a node has; 0: none. A
/// constant that only a Cast to floats reads (`onlyCast`) does not count.
int32_t halfTypeOf(const onnx::ModelProto &model, const std::set<std::string> &onlyCast);

/// FLOAT16 or BFLOAT16 by any of its names (float16, f16, fp16); else 0.
int32_t halfTypeNamed(llvm::StringRef name);

/// Makes float32 of these types wherever the model states one, but for the tensors of values.
void widenTypes(onnx::ModelProto &model);

/// A tensor whose values become float32 states what the file has.
void markWidened(onnx::TensorProto &tensor, int32_t halfType);

/// Takes the marks away; with `narrows`, puts back the types that they state, of the values in
/// tensors too.
void takeMarks(onnx::ModelProto &model, bool narrows);

} // namespace trainc::reader
