// SPDX-License-Identifier: Apache-2.0
//
// The nn dialect: value-semantic tensor operations with static shapes.
#ifndef TRAINC_NN
#define TRAINC_NN

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "dialects/nn/interfaces.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let cppNamespace = "::trainc::nn";
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"]; // scalar code
  let hasConstantMaterializer = 1;
  let hasCanonicalizer = 1; // simplify.cpp: rules that concern many operations
  let summary = "Differentiable tensor operations, normalised from ONNX";
  let description = [{
    Tensors are ranked and static. Pointwise operations take operands of one
    shape; broadcasts are explicit (`nn.broadcast`), so that the gradient of a
    broadcast is a reduction and nothing else needs to know.

    Integers narrower than 32 bits and unsigned ones occur only in what the reader
    evaluates itself; what is compiled has the other types.
  }];
}

def NN_Float : AnyTypeOf<[BF16, F16, F32, F64], "float">; // of 16 bits: what products read, and moves of it
def NN_Integer : AnyTypeOf<[I8, I16, I32, I64, UI8, UI16, UI32], "integer">;
def NN_Bool : I<1>;
def NN_OffsetTensor : StaticShapeTensorOf<[I64]>; // of elements in an arena
def NN_Tensor : StaticShapeTensorOf<[NN_Float, NN_Integer, NN_Bool]>;
def NN_FloatTensor : StaticShapeTensorOf<[NN_Float]>;
def NN_IntegerTensor : StaticShapeTensorOf<[NN_Integer]>;
def NN_BoolTensor : StaticShapeTensorOf<[NN_Bool]>;

// Textual IR names results after the model's nodes.
def NamedResults : DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>;
defvar resultNames = [{
  void $cppClass::getAsmResultNames(::mlir::OpAsmSetValueNameFn setName) {
    ::trainc::nameResults(*this, setName);
  }
}];

class NN_Op<string mnemonic, list<Trait> traits = []>
    : Op<NN_Dialect, mnemonic, [Pure, NamedResults] # traits> {
  let extraClassDefinition = resultNames;
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

// An operation with its own .td and .cpp. Those whose result type follows from
// the operands infer it in `inferReturnTypes`, the op's `shape` function; there
// each rule has a label (`softmax-c1`) which its negative test bears too.
class Structured<string mnemonic, list<Trait> traits = []>
    : NN_Op<mnemonic, [DeclareOpInterfaceMethods<CostOpInterface>] # traits>;

def Differentiable : DeclareOpInterfaceMethods<DifferentiableOpInterface>;
def Interpreted : DeclareOpInterfaceMethods<InterpretedOpInterface, ["interpret"]>;
def InterpretedResults : DeclareOpInterfaceMethods<InterpretedOpInterface, ["interpretResults"]>;
def Decomposable : DeclareOpInterfaceMethods<DecomposableOpInterface>;
def CountingMean : DeclareOpInterfaceMethods<CountingMeanOpInterface>;
def Library : DeclareOpInterfaceMethods<LibraryOpInterface>;
def InfersShape : InferTypeOpAdaptorBase;

#endif
