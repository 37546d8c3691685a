// SPDX-License-Identifier: Apache-2.0
//
// Initializers of 16 bits in a graph that computes in float32: a Cast of each comes first. The
// reader takes these away, so that the graph is the one of a file in float32; an export has them
// again.
#pragma once

#include "compiler/onnx/file/model_file.h"
#include <set>
#include <string>

namespace trainc::reader {

/// What reads a Cast to float32 of an initializer or constant that is float32 reads that itself.
void removeCasts(onnx::GraphProto &graph);

/// What reads one of the initializers reads a Cast of it to float32, whose name is none of those
/// that the graph has or that are `taken`.
void addCasts(onnx::GraphProto &graph, const std::set<std::string> &initializers,
              const std::set<std::string> &taken);

} // namespace trainc::reader
