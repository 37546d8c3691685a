// SPDX-License-Identifier: Apache-2.0
//
// constants.h and constants.cpp: data of constants that are not splats, as the arrays of
// one object whose members lie where plan-memory put them. A device takes a copy of it.
// Where one of them is large, the object's bytes are a file that the assembler takes in.
#include "compiler/emit/expressions.h"
#include "compiler/emit/step_program.h"
#include "dialects/elements/element_type.h"

using namespace mlir;
using namespace trainc;

static std::string declaration(const PlacedTensor &tensor) {
  return ("alignas(64) " + elementType(tensor.type.getElementType()) + " " + tensor.name + "[" +
          llvm::Twine(std::max<int64_t>(1, tensor.type.getNumElements())) + "]")
      .str();
}

constexpr int64_t kLargestText = 64 << 10; // bytes of a table that still is C++ text

static int64_t tableBytes(const PlacedTensor &tensor) {
  return std::max<int64_t>(1, tensor.type.getNumElements()) *
         elementBytes(tensor.type.getElementType());
}

/// Whether the tables are bytes of a file.
static bool isBinary(const MemoryNames &names) {
  return llvm::any_of(names.constants(), [&](nn::ConstantOp op) {
    return tableBytes(*names.find(op.getResult())) > kLargestText;
  });
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
  writer.openNamespace("trainc");
  writer.line();
  writer.line("struct constant_tables {");
  for (nn::ConstantOp op : names.constants()) {
    const PlacedTensor &tensor = *names.find(op.getResult());
    writer.line(declaration(tensor) + "; // " + typeText(tensor.type));
  }
  writer.line("};");
  writer.line();
  writer.line(isBinary(names) ? "extern const constant_tables constants asm(\"trainc_constants\");"
                              : "extern const constant_tables constants;");
  writer.line();
  writer.closeNamespace("trainc");
  return writer.text();
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

std::string trainc::constantsData(const MemoryNames &names) {
  std::string data;
  if (!isBinary(names))
    return data;
  for (nn::ConstantOp op : names.constants()) {
    const PlacedTensor &tensor = *names.find(op.getResult());
    const size_t bytes = elementBytes(tensor.type.getElementType());
    data.resize(tensor.place.getOffset()); // zeros up to where it lies
    auto append = [&](uint64_t bits) {
      data.append(reinterpret_cast<const char *>(&bits), bytes); // little-endian, as both targets
    };
    auto elements = cast<ElementsAttr>(op.getValue());
    if (isa<FloatType>(tensor.type.getElementType()))
      for (const APFloat &value : elements.getValues<APFloat>())
        append(value.bitcastToAPInt().getZExtValue());
    else
      for (const APInt &value : elements.getValues<APInt>())
        append(value.getZExtValue());
  }
  data.resize((data.size() + 63) / 64 * 64); // the object's size
  return data;
}

static void writeBinary(SourceWriter &writer, size_t bytes) {
  writer.line("static_assert(sizeof(constant_tables) == " + std::to_string(bytes) + ");");
  writer.line();
  writer.line("// Bytes of constant_tables as constants.h lays it out, in the processor's order.");
  writer.line("asm(R\"(");
  for (const char *line :
       {".pushsection .rodata", ".balign 64", ".globl trainc_constants",
        ".type trainc_constants, @object", "trainc_constants:", ".incbin \"constants.bin\"",
        ".size trainc_constants, . - trainc_constants", ".popsection"})
    writer.line(line);
  writer.line(")\");");
}

std::string trainc::constantsSource(const MemoryNames &names) {
  SourceWriter writer;
  writer.line("// Data of the model's constants.");
  writer.line("#include \"constants.h\"");
  if (names.constants().empty())
    return writer.text();
  writer.line("#include \"memory.h\"");
  writer.line("#include \"runtime/kernels/infinity.h\"");
  writer.line();
  writer.line("#include <cstddef>");
  writer.line();
  writer.openNamespace("trainc");
  writer.line();
  for (nn::ConstantOp op : names.constants()) {
    const std::string &name = names.find(op.getResult())->name;
    writer.line("static_assert(offsetof(constant_tables, " + name + ") == memory::shared::" + name +
                ".offset);");
  }
  if (isBinary(names)) {
    writeBinary(writer, constantsData(names).size());
  } else {
    writer.line();
    writer.line("const constant_tables constants = {");
    for (nn::ConstantOp op : names.constants()) {
      writer.line("." + names.find(op.getResult())->name + " = {");
      writeElements(op, writer);
      writer.line("},");
    }
    writer.line("};");
  }
  writer.line();
  writer.closeNamespace("trainc");
  return writer.text();
}
