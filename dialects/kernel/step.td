// SPDX-License-Identifier: Apache-2.0
//
// What a step of an entry function must answer. Every pass and printer after
// fuse asks it and knows no kind of step by name; a new kind is an operation with
// this interface.
#ifndef TRAINC_KERNEL_STEP
#define TRAINC_KERNEL_STEP

include "mlir/IR/OpBase.td"

def StepOpInterface : OpInterface<"StepOpInterface"> {
  let cppNamespace = "::trainc::kernel";
  let description = [{
    One call in an entry function: it reads its operands in memory and writes its
    results there, as plan-memory placed them. Attributes that all steps have:
    `places`, one #kernel.place per result, and `scratch`, the place of the
    scratch, both from plan-memory; `result_names`, the node that each result is
    the value of, empty where unknown.
  }];
  let methods = [
    InterfaceMethod<[{
      The function that runs and what it is given, in order. Views are part of it: an
      operand that is not read contiguously has its strides among the arguments.
    }], "::trainc::kernel::StepCall", "call", (ins)>,
    InterfaceMethod<"What it does, in a few words for plans: `matmul 64 x 32 x 16, added`.",
      "std::string", "describe", (ins)>,
    InterfaceMethod<"Arithmetic and memory traffic of one execution.",
      "::trainc::kernel::StepCost", "cost", (ins "::mlir::SymbolTableCollection &":$symbols)>,
    InterfaceMethod<[{
      The kernel.function of this module that it runs, whose inputs are the operands and
      whose outputs the results, in order; null for a function of the runtime.
    }], "::mlir::FlatSymbolRefAttr", "calledKernel", (ins), "", "return {};">,
    InterfaceMethod<"The operand in whose memory a result is computed, always.",
      "std::optional<unsigned>", "operandTaken", (ins "unsigned":$result), "", "return {};">,
    InterfaceMethod<[{
      Whether a result may lie where the operands for which `shares` holds lie, which
      nobody reads afterwards.
    }], "bool", "mayWriteOver", (ins "unsigned":$result,
        "::llvm::function_ref<bool(::mlir::Value)>":$shares,
        "::mlir::SymbolTableCollection &":$symbols), "", "return false;">,
    InterfaceMethod<"Bytes of workspace that it needs while it runs.",
      "int64_t", "scratchBytes", (ins "::mlir::SymbolTableCollection &":$symbols), "", "return 0;">,
    InterfaceMethod<[{
      Whether it acts on something besides its tensors, as communication does: such steps
      keep their order.
    }], "bool", "isOrdered", (ins), "", "return false;">,
    InterfaceMethod<[{
      Makes it add its one result to `init`, a tensor of the same type whose memory it
      takes. False, and unchanged, where it cannot.
    }], "bool", "accumulateInto", (ins "::mlir::Value":$init), "", "return false;">,
    InterfaceMethod<[{
      Makes it round its one result to narrower floats, which its type then has. False, and
      unchanged, where it cannot.
    }], "bool", "writeRounded", (ins "::mlir::Type":$element), "", "return false;">,
    InterfaceMethod<[{
      Whether a function of the runtime can be told that the rows of a tensor, an operand or a
      result, lie further apart. A kernel has accesses for that.
    }], "bool", "takesRowPitch", (ins "::mlir::Value":$tensor,
        "const ::trainc::kernel::RowPitch &":$pitch), "", "return false;">,
    InterfaceMethod<"Tells it so, where it takes that.", "void", "setRowPitch",
      (ins "::mlir::Value":$tensor, "const ::trainc::kernel::RowPitch &":$pitch), "", "return;">
  ];
  let extraSharedClassDeclaration = [{
    /// Places that plan-memory gave; null before it.
    ::trainc::kernel::PlaceAttr resultPlace(unsigned result) {
      auto places = $_op->template getAttrOfType<::mlir::ArrayAttr>("places");
      return places && result < places.size() ? ::mlir::dyn_cast<::trainc::kernel::PlaceAttr>(places[result])
                                              : ::trainc::kernel::PlaceAttr();
    }
    ::trainc::kernel::PlaceAttr scratchPlace() {
      return $_op->template getAttrOfType<::trainc::kernel::PlaceAttr>("scratch");
    }
    void setPlaces(::llvm::ArrayRef<::mlir::Attribute> places, ::trainc::kernel::PlaceAttr scratch) {
      $_op->setAttr("places", ::mlir::ArrayAttr::get($_op->getContext(), places));
      if (scratch)
        $_op->setAttr("scratch", scratch);
    }
    /// The node that a result is the value of, where the step says so.
    ::llvm::StringRef resultName(unsigned result) {
      auto names = $_op->template getAttrOfType<::mlir::ArrayAttr>("result_names");
      return names ? ::mlir::cast<::mlir::StringAttr>(names[result]).getValue() : ::llvm::StringRef();
    }
  }];
}

def EpilogueOpInterface : OpInterface<"EpilogueOpInterface", [StepOpInterface]> {
  let cppNamespace = "::trainc::kernel";
  let description = [{
    A step whose library can do more to the first result before it is written, or sum a
    matrix that it has in registers. Each method changes the step only where it can;
    else it says so and the step stays as it is. What needs another result gives a new
    step in front of this one, which then has to be replaced by it.
  }];
  let methods = [
    InterfaceMethod<"Elements of the contiguous lines of the first result; 0 where no epilogue can follow.",
      "int64_t", "epilogueLength", (ins)>,
    InterfaceMethod<"Adds a vector of `epilogueLength` elements to each line.",
      "bool", "addBias", (ins "::mlir::Value":$bias)>,
    InterfaceMethod<[{
      Applies GELU in its tanh form; `keepLinear` asks for one more result, what it is applied
      to. Null where it cannot.
    }], "::trainc::kernel::EpilogueOpInterface", "applyGelu", (ins "bool":$keepLinear)>,
    InterfaceMethod<"Multiplies the result by the derivative of that GELU at `linear`.",
      "bool", "scaleByGeluGradient", (ins "::mlir::Value":$linear)>,
    InterfaceMethod<"Tensors whose lines it can add up besides, the better choice first.",
      "::llvm::SmallVector<::trainc::kernel::SummableLines>", "summableLines", (ins)>,
    InterfaceMethod<"Adds up lines as one more result of the given type.",
      "::trainc::kernel::EpilogueOpInterface", "addSum",
      (ins "::trainc::kernel::SummableLines":$lines, "::mlir::Type":$type)>
  ];
}

#endif
