// SPDX-License-Identifier: Apache-2.0
//
// Tells models apart that have the same parameters and compute something else from them.
#pragma once

#include "compiler/onnx/parameters/ledger.h"

namespace trainc::reader {

/// Of what the outputs are computed from parameters and inputs: operators, their attributes and
/// constants. Inputs and outputs count by their positions and parameters by their names; other
/// names, the order of nodes and the values of parameters do not, nor what a compilation binds:
/// sizes of dimensions, the batch, the target. The first two digits are the version of the rule;
/// digests of different versions say nothing about each other. Empty where the file holds what has
/// no digest.
std::string graphDigest(const ModelFile &file, const Graph &graph, const Parameters &initializers);

} // namespace trainc::reader
