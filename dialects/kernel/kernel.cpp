// SPDX-License-Identifier: Apache-2.0
//
// Registration and verification of the kernel dialect.
#include "dialects/kernel/kernel.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dialects/kernel/kernel_dialect.cpp.inc"
#include "dialects/kernel/kernel_enums.cpp.inc"

namespace trainc::kernel {

/// `[2, 3]`, or `[]`.
static ParseResult parseSizes(AsmParser &parser, SmallVector<int64_t> &sizes) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                        [&] { return parser.parseInteger(sizes.emplace_back()); });
}

static void printSizes(AsmPrinter &printer, ArrayRef<int64_t> sizes) {
  printer << '[';
  llvm::interleaveComma(sizes, printer);
  printer << ']';
}

} // namespace trainc::kernel

#define GET_TYPEDEF_CLASSES
#include "dialects/kernel/kernel_types.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/kernel/kernel_attributes.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/kernel/kernel_ops.cpp.inc"

void trainc::kernel::KernelDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/kernel/kernel_types.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/kernel/kernel_attributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/kernel/kernel_ops.cpp.inc"
      >();
}

LogicalResult trainc::kernel::FunctionOp::verify() {
  unsigned arguments = getBody().getNumArguments();
  if (getAccesses().size() != arguments)
    return emitOpError("expects one access per argument, found ")
           << getAccesses().size() << " for " << arguments;
  for (Attribute attribute : getAccesses()) {
    auto access = dyn_cast<AccessAttr>(attribute);
    if (!access || access.getStrides().size() != getDims().size())
      return emitOpError("expects accesses with one stride per dimension, found ") << attribute;
  }
  if (getOutputs() < 1 || getOutputs() > arguments)
    return emitOpError("expects 1 to ") << arguments << " outputs, found " << getOutputs();
  if (getReduced() > getDims().size())
    return emitOpError("reduces ") << getReduced() << " of " << getDims().size() << " dimensions";
  return verifySchedule();
}

LogicalResult trainc::kernel::MatmulOp::verify() {
  if (!hasEpilogue()) {
    if (getLinear() || getLinearOut() || getSum())
      return emitOpError("has an operand or result of an epilogue, but no epilogue");
    return success();
  }
  MatrixAttr c = getMatrixC();
  auto elements = [](Value value) {
    return value ? cast<RankedTensorType>(value.getType()).getNumElements() : -1;
  };
  int64_t size = getM() * getN();
  int64_t line = c.getColumnStride() == 1 ? c.getRowStride() : c.getColumnStride();
  if (getInit() || llvm::any_of(getBatch(), [](int64_t b) { return b != 1; }))
    return emitOpError("with an epilogue is one product and has no init");
  if (c.getOffset() != 0 || line != getLength() || elements(getOut()) != size)
    return emitOpError("with an epilogue has a contiguous result");
  if (getBias() && elements(getBias()) != getLength())
    return emitOpError("expects a bias of ") << getLength() << " elements";
  bool gelu = getEpilogue() == Epilogue::gelu;
  bool gradient = getEpilogue() == Epilogue::gelu_gradient;
  if (gradient != bool(getLinear()) || (getLinear() && elements(getLinear()) != size))
    return emitOpError("takes `linear`, of the result's size, for a gradient alone");
  if (getLinearOut() && (!gelu || elements(getLinearOut()) != size))
    return emitOpError("writes `linear`, of the result's size, for gelu alone");
  if (bool(getSummed()) != bool(getSum()))
    return emitOpError("expects `summed` and a result for the sum");
  int64_t length = getSummed() == Summed::a   ? getM()
                   : getSummed() == Summed::b ? getN()
                                              : getLength();
  if (getSum() && elements(getSum()) != length)
    return emitOpError("expects a sum of ") << length << " elements";
  // What cuBLASLt has.
  bool sumsResult = getSummed() == Summed::result;
  if ((getBias() && (gradient || getSummed())) || (sumsResult && !gradient) ||
      (getSummed() && !sumsResult && getEpilogue()))
    return emitOpError("combines epilogues that no library has");
  return success();
}

std::string trainc::kernel::MatmulOp::epilogueText() {
  std::string text;
  if (getBias())
    text += ", bias";
  if (auto epilogue = getEpilogue())
    text += *epilogue == Epilogue::gelu ? ", gelu" : ", gradient of gelu";
  if (auto summed = getSummed())
    text += (", sum of " + stringifySummed(*summed)).str();
  return text;
}
