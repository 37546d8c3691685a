// SPDX-License-Identifier: Apache-2.0
//
// constants.h and constants.cpp: data of constants that are no splats, as the arrays of
// one object whose members lie where plan-memory put them. A device takes a copy of it.
#include "compiler/emit/expressions.h"
#include "compiler/emit/step_program.h"

using namespace mlir;
using namespace trainc;

static std::string declaration(const PlacedTensor &tensor) {
  return ("alignas(64) " + elementType(tensor.type.getElementType()) + " " + tensor.name + "[" +
          llvm::Twine(std::max<int64_t>(1, tensor.type.getNumElements())) + "]")
      .str();
}

llvm::StringRef trainc::constantsAddress(const MemoryNames &names) {
  return names.constants().empty() ? "nullptr" : "&constants";
}

std::string trainc::constantsHeader(const MemoryNames &names) {
  SourceWriter writer;
  writer.line("// Data of the model's constants, at the places that memory.h says.");
  writer.line("#pragma once");
  writer.line();
  writer.line("#include <cstdint>");
  if (names.constants().empty())
    return writer.text();
  writer.line();
  writer.line("namespace trainc {");
  writer.outdent();
  writer.line();
  writer.line("struct constant_tables {");
  for (nn::ConstantOp op : names.constants()) {
    const PlacedTensor &tensor = *names.find(op.getResult());
    writer.line(declaration(tensor) + "; // " + typeText(tensor.type));
  }
  writer.line("};");
  writer.line();
  writer.line("extern const constant_tables constants;");
  writer.line();
  writer.indent();
  writer.line("} // namespace trainc");
  return writer.text();
}

static std::string literal(Attribute element) {
  if (auto number = dyn_cast<FloatAttr>(element))
    return floatLiteral(number.getValue(), number.getType().isF64());
  auto number = cast<IntegerAttr>(element);
  if (number.getType().isSignlessInteger(1))
    return number.getValue().isZero() ? "0" : "1";
  return integerLiteral(number.getInt());
}

static void writeElements(nn::ConstantOp op, SourceWriter &writer) {
  std::string line;
  for (Attribute element : cast<ElementsAttr>(op.getValue()).getValues<Attribute>()) {
    std::string text = literal(element) + ",";
    if (line.size() + text.size() > 94) {
      writer.line(line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + text;
  }
  writer.line(line);
}

std::string trainc::constantsSource(const MemoryNames &names) {
  SourceWriter writer;
  writer.line("// Data of the model's constants.");
  writer.line("#include \"constants.h\"");
  if (names.constants().empty())
    return writer.text();
  writer.line("#include \"memory.h\"");
  writer.line();
  writer.line("#include <cmath>");
  writer.line("#include <cstddef>");
  writer.line();
  writer.line("namespace trainc {");
  writer.outdent();
  writer.line();
  for (nn::ConstantOp op : names.constants()) {
    const std::string &name = names.find(op.getResult())->name;
    writer.line("static_assert(offsetof(constant_tables, " + name + ") == memory::" + name + ");");
  }
  writer.line();
  writer.line("const constant_tables constants = {");
  for (nn::ConstantOp op : names.constants()) {
    writer.line("." + names.find(op.getResult())->name + " = {");
    writeElements(op, writer);
    writer.line("},");
  }
  writer.line("};");
  writer.line();
  writer.indent();
  writer.line("} // namespace trainc");
  return writer.text();
}
