// SPDX-License-Identifier: Apache-2.0
//
// Sizes and readable names of the tensors of entry functions.
#pragma once

#include "dialects/elements/element_type.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace trainc {

/// Whether a result lies in an arena of parameters, gradients or states, or is the loss: it takes
/// no memory from other tensors.
bool hasPlaceOfItsOwn(mlir::func::FuncOp function, unsigned result);

/// `decayed_gradients`, `undecayed_exp_avg`: a flat tensor of @update, or what it becomes; empty
/// for other roles.
std::string flatTensorName(mlir::ModuleOp module, mlir::Attribute role);

/// Readable name of an argument, or of a step's result. What a node's own steps alone read, such as
/// a product without its bias, is `NODE.partial`: `NODE` is what others get from it.
std::string tensorName(mlir::Value value);

} // namespace trainc
