// SPDX-License-Identifier: Apache-2.0
//
// The table of element types (element_types.h).
#include "compiler/emit/element_types.h"
#include "compiler/emit/source_writer.h"
#include "dialects/kernel/internal_error.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace trainc {

const ElementType &elementTypeOf(Type type) {
  static const ElementType f32 = {"f32",  "float", "float",    "f32",
                                  "0.0f", "1.0f",  "INFINITY", "-INFINITY"};
  static const ElementType f64 = {"f64",
                                  "double",
                                  "double",
                                  "f64",
                                  "0.0",
                                  "1.0",
                                  "static_cast<double>(INFINITY)",
                                  "static_cast<double>(-INFINITY)"};
  static const ElementType boolean = {"bool",  "bool", "uint8_t", "boolean",
                                      "false", "true", "true",    "false"};
  static const ElementType i32 = {"i32", "int32_t", "int32_t",   "i32",
                                  "0",   "1",       "INT32_MAX", "INT32_MIN"};
  static const ElementType i64 = {"i64", "int64_t", "int64_t",   "i64",
                                  "0",   "1",       "INT64_MAX", "INT64_MIN"};
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    type = tensor.getElementType();
  if (type.isF32())
    return f32;
  if (type.isF64())
    return f64;
  if (type.isSignlessInteger(1))
    return boolean;
  if (type.isSignlessInteger(32))
    return i32;
  if (type.isSignlessInteger(64))
    return i64;
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << type;
  internalError("no source can be emitted for elements of type " + text);
}

std::string literal(Attribute element) {
  if (auto number = dyn_cast<FloatAttr>(element))
    return floatLiteral(number.getValue(), number.getType().isF64());
  auto number = dyn_cast<IntegerAttr>(element);
  if (!number)
    internalError("a literal is a number");
  if (number.getType().isSignlessInteger(1))
    return number.getValue().isZero() ? "0" : "1";
  return integerLiteral(number.getInt());
}

} // namespace trainc
