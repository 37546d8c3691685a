// SPDX-License-Identifier: Apache-2.0
//
// The kernel dialect: what the emitters print. A `kernel.function` is one loop
// nest with scalar code inside, the same for every target; operations with the
// interface of step.td are the steps of an entry function (func.func), whose
// values are still tensors; plan-memory gives each of them a place. Scalar code is
// made of arith and math operations.
#ifndef TRAINC_KERNEL
#define TRAINC_KERNEL

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/kernel/step.td"

def Kernel_Dialect : Dialect {
  let name = "kernel";
  let cppNamespace = "::trainc::kernel";
  let summary = "Structured imperative kernels and the steps of an entry function";
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

def Kernel_Buffer : TypeDef<Kernel_Dialect, "Buffer"> {
  let mnemonic = "buffer";
  let summary = "Elements in memory that a kernel reads or writes; i1 is stored as a byte";
  let parameters = (ins "::mlir::Type":$element);
  let assemblyFormat = "`<` $element `>`";
}

def Kernel_Access : AttrDef<Kernel_Dialect, "Access"> {
  let mnemonic = "access";
  let summary = "Which element of a buffer belongs to a point of the iteration space";
  let description = [{
    Element `offset + sum_d index_d * strides[d]`, in elements. A stride of 0 is a
    broadcast; a scalar has no dimensions; strides and offset may be negative (pads, reversals).
  }];
  let parameters = (ins OptionalArrayRefParameter<"int64_t">:$strides, "int64_t":$offset);
  let assemblyFormat = "`<` custom<Sizes>($strides) `,` $offset `>`";
}

def Kernel_Matrix : AttrDef<Kernel_Dialect, "Matrix"> {
  let mnemonic = "matrix";
  let summary = "A batch of matrices inside a buffer, strides in elements";
  let description = [{
    Element (i, j) of batch (b...) is at
    `offset + sum b_d * batchStrides[d] + i * rowStride + j * columnStride`.
    One of the two inner strides is 1. There is at least one batch dimension ([1] for a plain product).
  }];
  let parameters = (ins "int64_t":$offset, ArrayRefParameter<"int64_t">:$batchStrides,
                        "int64_t":$rowStride, "int64_t":$columnStride);
  let assemblyFormat = "`<` $offset `,` `[` $batchStrides `]` `,` $rowStride `,` $columnStride `>`";
}

def Kernel_Arena : I32EnumAttr<"Arena", "memory arena", [
    I32EnumAttrCase<"parameters", 0>, I32EnumAttrCase<"gradients", 1>,
    I32EnumAttrCase<"optimizer_state", 2>, I32EnumAttrCase<"activations", 3>,
    I32EnumAttrCase<"workspace", 4>,
    // Data of nn.constant operations, read-only, part of the emitted source.
    I32EnumAttrCase<"constants", 5>,
    // What a micro-batch keeps on a stage of a pipeline: offsets within one of equal slots.
    I32EnumAttrCase<"stash", 6>,
    // Frozen weights as their file has them, read-only, mapped by the trainer.
    I32EnumAttrCase<"frozen", 7>]> {
  let cppNamespace = "::trainc::kernel";
  let genSpecializedAttr = 0;
}

def Kernel_Place : AttrDef<Kernel_Dialect, "Place"> {
  let mnemonic = "place";
  let summary = "Where a tensor lies: arena and byte offset";
  let parameters = (ins EnumParameter<Kernel_Arena>:$arena, "int64_t":$offset);
  let assemblyFormat = "`<` $arena `,` $offset `>`";
}

def Kernel_Form : I32EnumAttr<"Form", "shape of a kernel's loop nest", [
    // One kernel.map over all dimensions.
    I32EnumAttrCase<"pointwise", 0>,
    // The last `reduced` dimensions are walked for each point of the others (the rows).
    I32EnumAttrCase<"row", 1>,
    // The first `reduced` dimensions are walked for each point of the others (the columns).
    I32EnumAttrCase<"column", 2>,
    // All dimensions are walked: one result. Blocks of fixed size, partial results in scratch.
    I32EnumAttrCase<"full", 3>]> {
  let cppNamespace = "::trainc::kernel";
  let genSpecializedAttr = 0;
}

def Kernel_Reduction : I32EnumAttr<"Reduction", "combining operation", [
    I32EnumAttrCase<"add", 0>, I32EnumAttrCase<"max", 1>, I32EnumAttrCase<"min", 2>]> {
  let cppNamespace = "::trainc::kernel";
  let genSpecializedAttr = 0;
}

def Kernel_Epilogue : I32EnumAttr<"Epilogue", "what a product does to its sum before writing it", [
    // gelu(sum), in GELU's tanh form.
    I32EnumAttrCase<"gelu", 0>,
    // sum * gelu'(linear)
    I32EnumAttrCase<"gelu_gradient", 1>]> {
  let cppNamespace = "::trainc::kernel";
  let genSpecializedAttr = 0;
}

def Kernel_Summed : I32EnumAttr<"Summed", "matrix whose sum a product writes besides", [
    // The result, over the dimension in which it is not contiguous.
    I32EnumAttrCase<"result", 0>,
    // An operand, over k.
    I32EnumAttrCase<"a", 1>, I32EnumAttrCase<"b", 2>]> {
  let cppNamespace = "::trainc::kernel";
  let genSpecializedAttr = 0;
}
def Kernel_EpilogueAttr : EnumAttr<Kernel_Dialect, Kernel_Epilogue, "epilogue">;
def Kernel_SummedAttr : EnumAttr<Kernel_Dialect, Kernel_Summed, "summed">;
def Kernel_FormAttr : EnumAttr<Kernel_Dialect, Kernel_Form, "form">;
def Kernel_ReductionAttr : EnumAttr<Kernel_Dialect, Kernel_Reduction, "reduction">;

include "dialects/kernel/schedule.td"

class Kernel_Op<string mnemonic, list<Trait> traits = []> : Op<Kernel_Dialect, mnemonic, traits>;

// Textual IR names the results of these after the model's nodes.
class Kernel_NamedOp<string mnemonic, list<Trait> traits = []>
    : Kernel_Op<mnemonic, [DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>] # traits> {
  let extraClassDefinition = [{
    void $cppClass::getAsmResultNames(::mlir::OpAsmSetValueNameFn setName) {
      ::trainc::nameResults(*this, setName);
    }
  }];
}

def GroupOp : Kernel_NamedOp<"group", [SingleBlock]> {
  let summary = "nn operations that become one kernel";
  let description = [{
    Result of fuse, input of lower-to-kernels. The region holds nn operations on
    tensors and may use values from above; it ends in kernel.yield of the results.
  }];
  let arguments = (ins Kernel_FormAttr:$form);
  let results = (outs Variadic<AnyType>:$outs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$form attr-dict-with-keyword $body `:` type($outs)";
}

def FunctionOp : Kernel_Op<"function", [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator]> {
  let summary = "One kernel";
  let description = [{
    Block arguments are buffers, `accesses[i]` that of argument i; the last
    `outputs` arguments are written. `dims` is the iteration space, outermost
    first, as lower-to-kernels merged it: none of size one, none that every access crosses
    together with its neighbour. `schedule` says how a target runs the kernel. `sources` are the model nodes of its first use, for the comment above
    the emitted kernel. The body: kernel.map, kernel.reduce, and scalar operations
    between them, once per row (form row), per column (column) or at the end (full).
    A value computed in a map or reduce region is not visible outside it.

        kernel.function @layer_norm row dims [256, 768] reduced 1 outputs 1
            accesses [#kernel.access<[768, 1], 0>, #kernel.access<[768, 1], 0>]
            sources ["h.0.ln_1"] {
        ^bb0(%x: !kernel.buffer<f32>, %y: !kernel.buffer<f32>):
          %sum = kernel.reduce [add] {
            %0 = kernel.load %x : !kernel.buffer<f32> -> f32
            kernel.yield %0 : f32
          } : f32
          ...
          kernel.map {
            ...
            kernel.store %5, %y : f32, !kernel.buffer<f32>
          }
        }
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Kernel_FormAttr:$form,
                       DenseI64ArrayAttr:$dims, I64Attr:$reduced, I64Attr:$outputs,
                       ArrayAttr:$accesses, StrArrayAttr:$sources,
                       // For one launch, from the nn operations that it computes.
                       OptionalAttr<F64Attr>:$flops,
                       OptionalAttr<Kernel_Schedule>:$schedule);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name $form `dims` $dims `reduced` $reduced `outputs` $outputs
    `accesses` $accesses `sources` $sources attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Bytes in the workspace arena that the schedule asks for, handed over after the outputs.
    int64_t getScratchBytes();
    /// Whether the schedule, if any, fits form and sizes.
    ::mlir::LogicalResult verifySchedule();
  }];
}

def YieldOp : Kernel_Op<"yield", [Terminator, Pure]> {
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
  let builders = [OpBuilder<(ins), [{}]>];
}

def MapOp : Kernel_Op<"map", [SingleBlock, NoTerminator]> {
  let summary = "Scalar code for every point of the walked dimensions";
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
}

def ReduceOp : Kernel_NamedOp<"reduce", [SingleBlock]> {
  let summary = "Several reductions over the walked dimensions in one loop";
  let description = [{
    The region yields one scalar per reduction. Order of combination: fixed by the
    sizes alone (16 interleaved accumulators along the innermost dimension, then a
    tree), never by threads or instruction set. What the loop computes anyway may be stored in it.
  }];
  let arguments = (ins TypedArrayAttrBase<Kernel_ReductionAttr, "reductions">:$kinds);
  let results = (outs Variadic<AnyType>:$outs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$kinds attr-dict-with-keyword $body `:` type($outs)";
}

def LoadOp : Kernel_Op<"load", [AttrSizedOperandSegments]> {
  let summary = "The element of a buffer at the current point";
  let description = [{
    With `at %i stride s` the address moves by `i * s` elements: an indexed row.
    With `if %p` the element is read only where p holds, else it is 0.
    The value has the element's type, but that of unsigned integers, which arith does not have, is an i64.
  }];
  let arguments = (ins Kernel_Buffer:$buffer, Optional<AnySignlessInteger>:$index,
                       Optional<I1>:$predicate, DefaultValuedAttr<I64Attr, "0">:$index_stride);
  let results = (outs AnyType:$value);
  let assemblyFormat = [{
    $buffer (`at` $index^ `:` type($index))? (`if` $predicate^)? attr-dict `:` type($buffer) `->` type($value)
  }];
}

def StoreOp : Kernel_Op<"store"> {
  let arguments = (ins AnyType:$value, Kernel_Buffer:$buffer);
  let assemblyFormat = "$value `,` $buffer attr-dict `:` type($value) `,` type($buffer)";
}

def IndexOp : Kernel_Op<"index", [Pure]> {
  let summary = "Index of the current point along a dimension of the iteration space";
  let arguments = (ins I64Attr:$dimension);
  let results = (outs I64:$value);
  let assemblyFormat = "$dimension attr-dict";
}

def RandomBitsOp : Kernel_Op<"random_bits", [Pure]> {
  let summary = "A random integer of [0, 2^bits): number `element` of a stream under a key";
  let arguments = (ins I64:$key, I64:$element, I64Attr:$stream, I64Attr:$bits);
  let results = (outs I64:$value);
  let assemblyFormat = "$key `,` $element `stream` $stream `bits` $bits attr-dict";
}

// ---- steps of an entry function; what they have in common is in step.td.

def LaunchOp : Kernel_NamedOp<"launch", [DeclareOpInterfaceMethods<StepOpInterface,
    ["calledKernel", "mayWriteOver", "scratchBytes"]>]> {
  let summary = "Runs a kernel; results are its outputs";
  let description = [{
    Operands are the kernel's inputs in order. An output whose place is an
    operand's is written in place; the kernel reads and writes it at the same
    points. `scratch` is the place of the kernel's scratch.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<AnyRankedTensor>:$inputs,
                       OptionalAttr<ArrayAttr>:$places, OptionalAttr<AnyAttr>:$scratch);
  let results = (outs Variadic<AnyRankedTensor>:$outs);
  let assemblyFormat = "$kernel `(` $inputs `)` attr-dict `:` functional-type($inputs, $outs)";
}

def CallOp : Kernel_NamedOp<"call", [DeclareOpInterfaceMethods<StepOpInterface,
    ["operandTaken", "scratchBytes", "isOrdered", "writeRounded"]>]> {
  let summary = "Runs a function of the runtime on tensors in memory";
  let description = [{
    The function stands in `runtime/kernels/<library>.h` and is defined for each target in
    `runtime/<target>/<library>`; a user's function has its header's path as library. It takes the `numbers` in order (integers, floats,
    booleans, lists of i64 or f64), then the addresses of the inputs and of the results, then
    that of the scratch if `scratch_bytes` are asked for. Tensors are contiguous, unless the
    function is told strides among the numbers.

    `in_place[r]` is the input whose memory result r takes, -1 for none: both are one
    address, passed for the result. An operation that is lowered to a call gives its
    cost: `flops`, and in `reads` and `writes` bytes of each input and result; without
    them every tensor counts once. `result_arguments` says for each address after those of the
    inputs which result it is of, where the function writes parts of one tensor. A `roundable` call may have a result of narrower floats. `ordered` calls exchange something with the other ranks of the
    step: they keep their order and take the ranks first (`runtime/rank_exchange.h`).

        %table = kernel.call "scatter_add" of "scatter_add" [6, 10, 8] (%indices, %updates, %init)
            {flops = 48.0, in_place = array<i64: 2>} : (tensor<2x3xi64>, ...) -> tensor<10x8xf32>
  }];
  let arguments = (ins StrAttr:$function, StrAttr:$library, ArrayAttr:$numbers,
                       Variadic<AnyRankedTensor>:$inputs,
                       OptionalAttr<DenseI64ArrayAttr>:$in_place,
                       DefaultValuedAttr<F64Attr, "0">:$flops,
                       OptionalAttr<DenseI64ArrayAttr>:$reads, OptionalAttr<DenseI64ArrayAttr>:$writes,
                       OptionalAttr<DenseI64ArrayAttr>:$result_arguments,
                       DefaultValuedAttr<I64Attr, "0">:$scratch_bytes, UnitAttr:$roundable, UnitAttr:$ordered,
                       OptionalAttr<ArrayAttr>:$places, OptionalAttr<AnyAttr>:$scratch);
  let results = (outs Variadic<AnyRankedTensor>:$outs);
  let assemblyFormat = [{
    $function `of` $library $numbers `(` $inputs `)` attr-dict `:` functional-type($inputs, $outs)
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$outs, "::llvm::StringRef":$function,
                                 "::llvm::StringRef":$library, "::llvm::ArrayRef<int64_t>":$numbers,
                                 "::mlir::ValueRange":$inputs), [{
    $_state.addOperands(inputs);
    $_state.addTypes(outs);
    auto &properties = $_state.getOrAddProperties<Properties>();
    properties.function = $_builder.getStringAttr(function);
    properties.library = $_builder.getStringAttr(library);
    properties.numbers = $_builder.getI64ArrayAttr(numbers);
  }]>];
}

def MatmulOp : Kernel_NamedOp<"matmul", [AttrSizedOperandSegments, AttrSizedResultSegments,
    DeclareOpInterfaceMethods<StepOpInterface, ["operandTaken", "accumulateInto", "writeRounded",
                                                "takesRowPitch", "setRowPitch"]>,
    DeclareOpInterfaceMethods<EpilogueOpInterface>]> {
  let summary = "Batched matrix product on strided matrices";
  let description = [{
    `result = a b` or, with init, `result = init + a b` written in place of init.
    `batch` are the batch sizes; a is m x k, b is k x n, result m x n per batch.

    The rest comes from fuse-epilogues, for libraries that can do it on the way, and
    for one product without init whose result is contiguous; its *length* is n where
    its rows are contiguous, else m. `bias`, of that length, is added to each line.
    `epilogue` gelu is applied next; `linear_out`, where somebody reads it, gets what
    it was applied to. `gelu_gradient` multiplies by the derivative at `linear`.
    `sum` gets the sum of a matrix as `summed` says: of the result over its lines, of
    a (m elements) or b (n elements) over k.

        %y, %x = kernel.matmul %a, %b bias %v {epilogue = #kernel.epilogue<gelu>, ...}
            : ... bias tensor<32xf32> -> tensor<8x32xf32> linear tensor<8x32xf32>
  }];
  let arguments = (ins AnyRankedTensor:$a, AnyRankedTensor:$b, Optional<AnyRankedTensor>:$init,
                       Optional<AnyRankedTensor>:$bias, Optional<AnyRankedTensor>:$linear,
                       I64Attr:$m, I64Attr:$n, I64Attr:$k, DenseI64ArrayAttr:$batch,
                       Kernel_Matrix:$matrix_a, Kernel_Matrix:$matrix_b, Kernel_Matrix:$matrix_c,
                       OptionalAttr<Kernel_EpilogueAttr>:$epilogue,
                       OptionalAttr<Kernel_SummedAttr>:$summed,
                       OptionalAttr<ArrayAttr>:$places);
  let results = (outs AnyRankedTensor:$out, Optional<AnyRankedTensor>:$linear_out,
                      Optional<AnyRankedTensor>:$sum);
  let assemblyFormat = [{
    $a `,` $b (`init` $init^)? (`bias` $bias^)? (`linear` $linear^)? attr-dict `:` type($a) `,`
    type($b) (`,` type($init)^)? (`bias` type($bias)^)? (`linear` type($linear)^)?
    `->` type($out) (`linear` type($linear_out)^)? (`sum` type($sum)^)?
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Type":$out, "::mlir::Value":$a, "::mlir::Value":$b, "int64_t":$m, "int64_t":$n,
                                 "int64_t":$k, "::llvm::ArrayRef<int64_t>":$batch, "MatrixAttr":$matrixA,
                                 "MatrixAttr":$matrixB, "MatrixAttr":$matrixC), [{
    build($_builder, $_state, out, Type(), Type(), a, b, Value(), Value(), Value(), m, n, k, batch,
          matrixA, matrixB, matrixC, EpilogueAttr(), SummedAttr(), ArrayAttr());
  }]>];
  let extraClassDeclaration = [{
    /// Whether anything but the product, added to init or not, is computed.
    bool hasEpilogue() { return getBias() || getEpilogue() || getSummed(); }
    /// Elements of the result that lie side by side: n or m.
    int64_t getLength() { return getMatrixC().getColumnStride() == 1 ? getN() : getM(); }
    /// What the epilogue does, as a few words after a comma; empty where there is none.
    std::string epilogueText();
    /// Floating-point operations of a batch of products.
    static double flopsOf(::llvm::ArrayRef<int64_t> batch, int64_t m, int64_t n, int64_t k);
  }];
}

#endif
