// SPDX-License-Identifier: Apache-2.0
//
// Constants that a file holds in another form than tensors here have: halves that it casts to
// floats, and sparse ones.
#pragma once

#include "compiler/onnx/file/model_file.h"
#include <set>

namespace trainc::reader {

bool isHalf(int32_t dataType);

/// The type that a Cast makes; UNDEFINED for another node.
int32_t typeCastTo(const onnx::NodeProto &node);

/// Names whose values only a Cast to floats reads, in the graph and in its branches: halves among
/// them may be floats from the beginning.
std::set<std::string> namesOnlyCast(const onnx::GraphProto &graph);

/// Makes floats of the halves that `halves` holds as integers of 16 bits.
void widenHalves(TensorBytes &halves, int32_t halfType);

/// Floats, rounded to halves.
std::string narrowedFloats(llvm::StringRef floats, int32_t halfType);

/// The dense form of an initializer, which takes of `bytesLeft`. Null, with a message, where it has
/// none.
std::unique_ptr<TensorBytes> denseTensor(const onnx::SparseTensorProto &sparse, int64_t &bytesLeft,
                                         std::string &why);

} // namespace trainc::reader
