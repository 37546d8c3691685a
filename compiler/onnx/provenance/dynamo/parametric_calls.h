// SPDX-License-Identifier: Apache-2.0
//
// Where PyTorch's calls have their parameters, and which have none.
#pragma once

#include "compiler/onnx/provenance/dynamo/exported_program.h"

namespace trainc::reader {

/// Which arguments of a call are its parameters; absent: -1.
struct ParametricCall {
  const char *operation;
  int weight, bias;
};

/// Null for calls of which nothing is known.
const ParametricCall *layoutOf(const ProgramCall &call);

/// Whether the node reads the call's weight the other way round at this input: `linear` has it as
/// [outputs, inputs].
bool isTransposed(const ProgramCall &call, const onnx::NodeProto &node, int input);

/// Operations that have no parameters, by the base names of their results: losing their calls loses
/// nothing.
bool hasNoParameters(llvm::StringRef base);

/// Operations through which no gradient passes, by the base names of their results.
bool hasNoGradient(llvm::StringRef base);

} // namespace trainc::reader
