// SPDX-License-Identifier: Apache-2.0
//
// The table of element types (element_type.h).
#include "dialects/elements/element_type.h"
#include "dialects/errors/internal_error.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace trainc {

namespace {

enum class Kind { brainFloating, floating, signless, unsignedInteger };

struct Row {
  Kind kind;
  unsigned bits;
  ElementType facts;
};

// clang-format off
const Row kRows[] = {
    {Kind::brainFloating, 16, {"bf16", 2, HostType::bf16, true, "float", "bfloat16", "bf16",
                               "0.0f", "1.0f", "INFINITY", "-INFINITY",
                               "runtime/kernels/narrow_float.h"}},
    {Kind::floating, 16, {"f16", 2, HostType::f16, true, "float", "float16", "f16",
                          "0.0f", "1.0f", "INFINITY", "-INFINITY",
                          "runtime/kernels/narrow_float.h", /*isOfLittleRange=*/true}},
    {Kind::floating, 32, {"f32", 4, HostType::f32, true, "float", "float", "f32",
                          "0.0f", "1.0f", "INFINITY", "-INFINITY"}},
    {Kind::floating, 64, {"f64", 8, HostType::f64, false, "double", "double", "f64",
                          "0.0", "1.0",
                          "static_cast<double>(INFINITY)", "static_cast<double>(-INFINITY)"}},
    {Kind::signless, 1,  {"bool", 1, HostType::u8, false, "bool", "uint8_t", "boolean",
                          "false", "true", "true", "false"}},
    {Kind::signless, 32, {"i32", 4, HostType::i32, false, "int32_t", "int32_t", "i32",
                          "0", "1", "INT32_MAX", "INT32_MIN"}},
    {Kind::signless, 64, {"i64", 8, HostType::i64, false, "int64_t", "int64_t", "i64",
                          "0", "1", "INT64_MAX", "INT64_MIN"}},
    {Kind::signless, 8,  {"i8", 1, HostType::i8, false, "int8_t", "int8_t", "i8",
                          "0", "1", "INT8_MAX", "INT8_MIN"}},
    {Kind::signless, 16, {"i16", 2, HostType::i16, false, "int16_t", "int16_t", "i16",
                          "0", "1", "INT16_MAX", "INT16_MIN"}},
    {Kind::unsignedInteger, 8,
                         {"u8", 1, HostType::u8, false, "uint8_t", "uint8_t", "u8",
                          "0", "1", "UINT8_MAX", "0"}},
    {Kind::unsignedInteger, 16,
                         {"u16", 2, HostType::u16, false, "uint16_t", "uint16_t", "u16",
                          "0", "1", "UINT16_MAX", "0"}},
    {Kind::unsignedInteger, 32,
                         {"u32", 4, HostType::u32, false, "uint32_t", "uint32_t", "u32",
                          "0", "1", "UINT32_MAX", "0"}},
};
// clang-format on

} // namespace

const ElementType &elementTypeOf(Type type) {
  if (!type.isIntOrFloat()) // asked of each element: the interface is dear to look for
    if (auto tensor = dyn_cast<ShapedType>(type))
      type = tensor.getElementType();
  Kind kind = type.isUnsignedInteger() ? Kind::unsignedInteger : Kind::signless;
  if (isa<FloatType>(type))
    kind = type.isBF16() ? Kind::brainFloating : Kind::floating;
  unsigned bits = type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 0;
  for (const Row &row : kRows)
    if (row.kind == kind && row.bits == bits)
      return row.facts;
  std::string text;
  llvm::raw_string_ostream(text) << type;
  internalError("no tensor has elements of type " + text);
}

SmallVector<StringRef> storedTypeNames() {
  SmallVector<StringRef> names;
  for (const Row &row : kRows)
    if (!llvm::is_contained(names, row.facts.storedName))
      names.push_back(row.facts.storedName);
  return names;
}

bool isIndexElement(Type element) { return elementTypeOf(element).stored == HostType::i64; }

bool isNarrowFloat(Type element) { return !elementTypeOf(element).header.empty(); }

Type sumTypeOf(Type element) {
  return isNarrowFloat(element) ? Type(Float32Type::get(element.getContext())) : element;
}

int64_t elementBytes(Type element) { return elementTypeOf(element).bytes; }

int64_t bytesOf(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  int64_t elements = type.getNumElements();
  if (const int64_t pitch = rowPitchOf(type); pitch > 0)
    elements = elements / type.getShape().back() * pitch;
  return elements * elementBytes(type.getElementType());
}

// The pitch is the type's encoding, an integer.
RankedTensorType withRowPitch(RankedTensorType type, int64_t pitch) {
  return RankedTensorType::get(type.getShape(), type.getElementType(),
                               IntegerAttr::get(IntegerType::get(type.getContext(), 64), pitch));
}
int64_t rowPitchOf(RankedTensorType type) {
  auto pitch = dyn_cast_or_null<IntegerAttr>(type.getEncoding());
  return pitch ? pitch.getInt() : 0;
}

} // namespace trainc
