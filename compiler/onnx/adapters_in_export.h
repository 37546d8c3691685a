// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compiler/onnx/reader.h"
#include <onnx/onnx_pb.h>

namespace trainc {

/// Puts the adapters of weights that the file has as integers beside the nodes that read these:
/// such a weight cannot take them in. Their matrices are initializers of exports
/// (exportInitializers). Fails where a layer of such an adapter is none of these nodes.
mlir::LogicalResult addAdapterNodes(const Model &model, onnx::GraphProto &graph, Report &report);

} // namespace trainc
