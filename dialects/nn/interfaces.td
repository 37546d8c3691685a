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
    InterfaceMethod<"Floating-point operations of one execution.", "double", "flops", (ins)>,
    InterfaceMethod<"Bytes of an operand that it reads by itself.", "int64_t", "bytesRead",
      (ins "unsigned":$operand), "", [{
        return ::trainc::bytesOf($_op->getOperand(operand).getType());
      }]>,
    InterfaceMethod<[{
      What a kernel that computes an element on the way does for it, beside what it does for the
      operands' elements; moving one from place to place is an operation, too.
    }],
    "double", "flopsPerElement", (ins), "", [{ return 0; }]>
  ];
}

def LibraryOpInterface : OpInterface<"LibraryOpInterface"> {
  let cppNamespace = "::trainc::nn";
  let description = [{
    An operation that a function of the runtime computes, rather than a loop made of its scalar
    code. form-products makes a step of it.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds the step (dialects/kernel/step.td). Returns what it replaces: results of this
      operation, or of views that alone read one and which the step writes at once. Nothing where this
      operation is left to be decomposed and fused.
    }],
    "::llvm::SmallVector<::trainc::nn::Replacement>", "lowerToStep",
    (ins "::trainc::nn::StepBuilder &":$builder)>
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

def InterpretedOpInterface : OpInterface<"InterpretedOpInterface"> {
  let cppNamespace = "::trainc::nn";
  let description = [{
    The meaning of an operation as a plain loop over elements: what the reference
    interpreter (interpreter.h) executes. Pointwise operations have it from their
    scalar code and composites from their decomposition, so neither implements it.
  }];
  let methods = [
    InterfaceMethod<[{
      The values of the results. Fails with an error of the operation where the operands'
      values have none, such as an index out of range.
    }],
    "::llvm::FailureOr<::llvm::SmallVector<::trainc::nn::Tensor>>", "interpretResults",
    (ins "::llvm::ArrayRef<::trainc::nn::Tensor>":$operands), "", [{
      auto value = $_op.interpret(operands);
      if (failed(value))
        return ::mlir::failure();
      return ::llvm::SmallVector<::trainc::nn::Tensor>{*value};
    }]>,
    InterfaceMethod<"The same of an operation with one result, which needs to define this alone.",
    "::llvm::FailureOr<::trainc::nn::Tensor>", "interpret",
    (ins "::llvm::ArrayRef<::trainc::nn::Tensor>":$operands), "", [{
      return $_op->emitOpError("has more than one result");
    }]>
  ];
}

def CountingMeanOpInterface : OpInterface<"CountingMeanOpInterface"> {
  let cppNamespace = "::trainc::nn";
  let description = [{
    A mean over as many elements as its operands say, such as the labels that are not ignored: the
    mean over several batches is then no mean of theirs.
  }];
  let methods = [
    InterfaceMethod<[{
      How many of the elements count, of as many as there are: a scalar of the result's type, exactly 1
      where all do. Null where all always do.
    }],
    "::mlir::Value", "buildCountedShare", (ins "::trainc::nn::Builder &":$builder)>
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
    StaticInterfaceMethod<"How exact the f32 value is.",
      "::trainc::nn::Accuracy", "accuracy", (ins)>
  ];
}

// Every element of the result is one of the only operand's: a splat stays one.
def MovesElements : NativeOpTrait<"MovesElements"> {
  let cppNamespace = "::trainc::nn";
}

// Its value depends on the step, or on whether the model is trained: that its operands are known
// when the model is compiled does not make it known.
def VariesByStep : NativeOpTrait<"VariesByStep"> {
  let cppNamespace = "::trainc::nn";
}

// A function that only compiled programs can call: it has no value before.
def OnlyCompiled : NativeOpTrait<"OnlyCompiled"> {
  let cppNamespace = "::trainc::nn";
}

def NotDifferentiable : NativeOpTrait<"NotDifferentiable"> {
  let cppNamespace = "::trainc::nn";
}

#endif
