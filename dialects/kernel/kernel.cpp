// SPDX-License-Identifier: Apache-2.0
//
// Registration and verification of the kernel dialect.
#include "dialects/kernel/kernel.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "dialects/kernel/kernel_dialect.cpp.inc"
#include "dialects/kernel/kernel_enums.cpp.inc"
#include "dialects/kernel/step.cpp.inc"

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
