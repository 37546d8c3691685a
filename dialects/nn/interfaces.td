// SPDX-License-Identifier: Apache-2.0
//
// What an operation of the nn dialect must answer. An operation that lacks a
// gradient says so with the trait NotDifferentiable; there is no third way.
#ifndef TRAINC_NN_INTERFACES
#define TRAINC_NN_INTERFACES

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::trainc::nn";
  let description = [{
    The gradient of an operation, built from ordinary nn operations, hence
    differentiable and fusible in turn.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds the gradients of the operands from those of the results.
      `resultGradients[i]` is null where result i does not reach the loss.
      `operandGradients[i]` is left null where operand i has no gradient
      (integers, or not needed: `needed[i]` is false). The gradient of an
      operand has the operand's type.
    }],
    "::mlir::LogicalResult", "buildGradient",
    (ins "::trainc::nn::Builder &":$builder,
         "::llvm::ArrayRef<::mlir::Value>":$resultGradients,
         "const ::llvm::SmallBitVector &":$needed,
         "::llvm::SmallVectorImpl<::mlir::Value> &":$operandGradients)>
  ];
}

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::trainc::nn";
  let description = [{Arithmetic cost, for partition, recompute and utilisation figures.}];
  let methods = [
    InterfaceMethod<"Floating-point operations of one execution.", "double", "flops", (ins)>
  ];
}

def DecomposableOpInterface : OpInterface<"DecomposableOpInterface"> {
  let cppNamespace = "::trainc::nn";
  let description = [{
    A composite operation that stays whole until fusion because its gradient is
    better than that of its parts, and is then replaced by primitives.
  }];
  let methods = [
    InterfaceMethod<"The results, computed by primitive nn operations.",
    "::llvm::SmallVector<::mlir::Value>", "decompose",
    (ins "::trainc::nn::Builder &":$builder)>
  ];
}

def PointwiseOpInterface : OpInterface<"PointwiseOpInterface"> {
  let cppNamespace = "::trainc::nn";
  let description = [{
    An operation on scalars, applied element by element to operands of one shape.
    Its value and gradient are expressions over its operand names, `y` (the
    result) and `dy` (the result's gradient); see expression.h for the grammar.
  }];
  let methods = [
    StaticInterfaceMethod<"Names of the operands in the expressions.",
      "::llvm::ArrayRef<::llvm::StringRef>", "operandNames", (ins)>,
    StaticInterfaceMethod<"Value expression; empty for an arithmetic primitive of the kernel dialect.",
      "::llvm::StringRef", "valueExpression", (ins)>,
    StaticInterfaceMethod<"One gradient expression per operand; `none` where there is none.",
      "::llvm::ArrayRef<::llvm::StringRef>", "gradientExpressions", (ins)>,
    StaticInterfaceMethod<"Floating-point operations per element.",
      "double", "flopsPerElement", (ins)>,
    StaticInterfaceMethod<"How exact the f32 value is.",
      "::trainc::nn::Accuracy", "accuracy", (ins)>
  ];
}

def NotDifferentiable : NativeOpTrait<"NotDifferentiable"> {
  let cppNamespace = "::trainc::nn";
}

#endif
