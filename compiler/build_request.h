// SPDX-License-Identifier: Apache-2.0
//
// What the trainer and the library of an output are built from.
#pragma once

#include "compiler/installation.h"
#include "compiler/onnx/import/custom_operators.h"
#include "compiler/onnx/reader.h"
#include "compiler/options.h"
#include "compiler/output/output_folder.h"
#include "compiler/report.h"

namespace trainc {

struct BuildRequest {
  const Options &options;
  const Recipe &recipe;
  const Model &model;
  llvm::ArrayRef<CustomOperator> operators;
  std::string march; // the instruction set that the kernels are compiled for
  const Installation &installation;
  OutputFolder &output;
  Report &report;
};

} // namespace trainc
