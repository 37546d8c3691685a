// SPDX-License-Identifier: Apache-2.0
//
// constants.h and constants.cpp: data of constants that are no splats, as arrays.
#include "compiler/emit/expressions.h"
#include "compiler/emit/step_program.h"
#include "dialects/nn/nn.h"

using namespace mlir;
using namespace trainc;

static std::string declaration(const PlacedTensor &tensor) {
  return (elementType(tensor.type.getElementType()) + " " + tensor.name + "[" +
          llvm::Twine(std::max<int64_t>(1, tensor.type.getNumElements())) + "]")
      .str();
}

std::string trainc::constantsHeader(const MemoryNames &names) {
  SourceWriter writer;
  writer.line("// Data of the model's constants.");
  writer.line("#pragma once");
  writer.line();
  writer.line("#include <cstdint>");
  writer.line();
  writer.line("namespace trainc::constants {");
  writer.outdent();
  writer.line();
  for (Operation *op : names.constants()) {
    const PlacedTensor &tensor = *names.find(op->getResult(0));
    writer.line("extern const " + declaration(tensor) + "; // " + typeText(tensor.type));
  }
  writer.line();
  writer.indent();
  writer.line("} // namespace trainc::constants");
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

std::string trainc::constantsSource(const MemoryNames &names) {
  SourceWriter writer;
  writer.line("// Data of the model's constants.");
  writer.line("#include \"constants.h\"");
  writer.line();
  writer.line("#include <cmath>");
  writer.line();
  writer.line("namespace trainc::constants {");
  writer.outdent();
  for (Operation *op : names.constants()) {
    const PlacedTensor &tensor = *names.find(op->getResult(0));
    writer.line();
    writer.line("alignas(64) const " + declaration(tensor) + " = {");
    auto elements = cast<ElementsAttr>(op->getAttr("value"));
    std::string line;
    for (Attribute element : elements.getValues<Attribute>()) {
      std::string text = literal(element) + ",";
      if (line.size() + text.size() > 94) {
        writer.line(line);
        line.clear();
      }
      line += (line.empty() ? "" : " ") + text;
    }
    writer.line(line);
    writer.line("};");
  }
  writer.line();
  writer.indent();
  writer.line("} // namespace trainc::constants");
  return writer.text();
}
