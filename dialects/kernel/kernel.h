// SPDX-License-Identifier: Apache-2.0
//
// C++ face of the kernel dialect (kernel.td).
#pragma once

#include "dialects/names/node_name.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/kernel/step.h"

#include "dialects/kernel/kernel_dialect.h.inc"
#include "dialects/kernel/kernel_enums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/kernel/kernel_types.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/kernel/kernel_attributes.h.inc"
#include "dialects/kernel/step.h.inc"
#define GET_OP_CLASSES
#include "dialects/kernel/kernel_ops.h.inc"
