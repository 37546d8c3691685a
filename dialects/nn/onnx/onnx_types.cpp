// SPDX-License-Identifier: Apache-2.0
#include "dialects/nn/onnx/onnx_types.h"
#include "dialects/errors/internal_error.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;

namespace trainc::nn {

using Kind = OnnxType::Kind;

constexpr OnnxType kTypes[] = {
    {1, Kind::real, 32},
    {11, Kind::real, 64},
    {2, Kind::unsignedInteger, 8},
    {3, Kind::integer, 8},
    {4, Kind::unsignedInteger, 16},
    {5, Kind::integer, 16},
    {6, Kind::integer, 32},
    {12, Kind::unsignedInteger, 32},
    {7, Kind::integer, 64},
    {9, Kind::boolean, 8},
    {13, Kind::unsignedInteger, 64},
};

const OnnxType *findOnnxType(int64_t number) {
  for (const OnnxType &type : kTypes)
    if (type.number == number)
      return &type;
  return nullptr;
}

Type onnxElementType(MLIRContext *context, int64_t number) {
  const OnnxType *type = findOnnxType(number);
  if (!type)
    return {};
  switch (type->kind) {
  case Kind::real:
    return type->bits == 32 ? Type(Float32Type::get(context)) : Type(Float64Type::get(context));
  case Kind::boolean:
    return IntegerType::get(context, 1);
  case Kind::integer:
    return IntegerType::get(context, type->bits);
  case Kind::unsignedInteger:
    return IntegerType::get(context, type->bits,
                            type->bits < 64 ? IntegerType::Unsigned : IntegerType::Signless);
  }
  internalError("an element type of ONNX has no type of its own");
}

int64_t onnxTypeNumber(Type element) {
  for (const OnnxType &type : kTypes)
    if (onnxElementType(element.getContext(), type.number) == element)
      return type.number;
  internalError("an element type has no number in ONNX");
}

} // namespace trainc::nn
