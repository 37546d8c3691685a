// SPDX-License-Identifier: Apache-2.0
//
// Constants above a limit are printed as resources: `dense_resource<constant_3f...>` where they
// are used, their bytes after the module. Passes know dense elements alone.
#include "compiler/ir_file.h"
#include "dialects/names/unique_names.h"
#include "dialects/nn/nn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/Parser/Parser.h"
#include "passes/plans/tensor_places.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace trainc {

constexpr llvm::StringLiteral kFunction = "  func.func ";
constexpr size_t kLineLength = 100;      // of a function that stays in one line
constexpr int64_t kElementsInPlace = 64; // of a constant that is printed where it is used

/// The resource with these bytes. Named after them: the same in every file of a run.
static DenseResourceElementsAttr resourceOf(DenseElementsAttr elements) {
  ArrayRef<char> bytes = elements.getRawData();
  uint64_t hash =
      llvm::xxh3_64bits(ArrayRef(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()));
  std::string name = "constant_" + llvm::utohexstr(hash, /*LowerCase=*/true);
  auto &manager = DenseResourceElementsHandle::getManagerInterface(elements.getContext());
  if (!manager.getBlobManager().lookup(name))
    return DenseResourceElementsAttr::get(elements.getType(), name,
                                          HeapAsmResourceBlob::allocateAndCopyWithAlign(bytes, 8));
  auto *dialect = elements.getContext()->getOrLoadDialect<BuiltinDialect>();
  return DenseResourceElementsAttr::get(
      elements.getType(),
      DenseResourceElementsHandle(manager.getBlobManager().lookup(name), dialect));
}

static LogicalResult readConstants(ModuleOp module) {
  bool complete = true;
  module.walk([&](nn::ConstantOp op) {
    auto resource = dyn_cast<DenseResourceElementsAttr>(op.getValue());
    if (!resource)
      return;
    AsmResourceBlob *blob = resource.getRawHandle().getBlob();
    bool isSplat = false;
    if (!blob ||
        !DenseElementsAttr::isValidRawBuffer(resource.getType(), blob->getData(), isSplat)) {
      (op.emitError("the file has no bytes, or too few, for the constant '")
       << resource.getRawHandle().getKey() << "'")
              .attachNote()
          << "try: a whole file of --dump-ir";
      complete = false;
      return;
    }
    op.setValueAttr(DenseElementsAttr::getFromRawBuffer(resource.getType(), blob->getData()));
  });
  return success(complete);
}

static bool isNameCharacter(char c) { return llvm::isAlnum(c) || StringRef("$._-").contains(c); }

/// Calls with what lies outside of string literals, a value's name (without %) or one character
/// at a time, and with whole string literals.
static void eachToken(StringRef text, llvm::function_ref<void(StringRef, bool isValue)> call) {
  for (size_t i = 0, end; i < text.size(); i = end) {
    end = i + 1;
    if (text[i] == '"') {
      while (end < text.size() && text[end] != '"')
        end += text[end] == '\\' ? 2 : 1;
      ++end;
    }
    if (text[i] == '%')
      while (end < text.size() && isNameCharacter(text[end]))
        ++end;
    call(text[i] == '%' ? text.slice(i + 1, end) : text.slice(i, end), text[i] == '%');
  }
}

static bool isBracket(StringRef token, StringRef brackets) {
  return token.size() == 1 && brackets.contains(token.front());
}

/// A function's line with each argument and each result on a line of its own: there may be
/// hundreds, with attributes and a location each.
static void writeInLines(StringRef line, llvm::raw_ostream &stream) {
  SmallVector<char> open;
  bool isBreak = false, isArrow = false; // before the token, at it
  eachToken(line, [&](StringRef token, bool isValue) {
    const bool closes = !isValue && !isArrow && isBracket(token, ")]}>");
    if (isBreak && token == " ")
      return;
    if (isBreak && !closes)
      stream << "\n      ";
    isBreak = false;
    if (closes && !open.empty())
      open.pop_back();
    stream << (isValue ? "%" : "") << token;
    if (!isValue && isBracket(token, "([{<"))
      open.push_back(token.front());
    const bool isInList = open.size() == 1 && open.back() == '(';
    isBreak = isInList && !isValue && (token == "(" || token == ",");
    isArrow = token == "-";
  });
}

/// The printed module with the names of entry functions' arguments in the place of `%arg0`: the
/// printer asks an operation for its arguments' names, and func.func has no answer.
static void writeWithArguments(ModuleOp module, StringRef text, llvm::raw_ostream &stream) {
  UniqueNames taken;
  eachToken(text, [&](StringRef token, bool isValue) {
    if (isValue)
      taken.take(token);
  });
  llvm::StringMap<std::string> names;
  auto functions = module.getOps<func::FuncOp>();
  auto next = functions.begin();
  while (!text.empty()) {
    size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
    StringRef line = text.take_front(length);
    text = text.drop_front(length);
    if (line.starts_with(kFunction) && next != functions.end()) {
      for (BlockArgument argument : (*next++).getArguments()) {
        std::string name = tensorName(argument);
        std::replace_if(
            name.begin(), name.end(), [](char c) { return !isNameCharacter(c); }, '_');
        if (name.empty() || llvm::isDigit(name.front()))
          name = "_" + name;
        names["arg" + std::to_string(argument.getArgNumber())] = taken.unique(name);
      }
    }
    std::string renamed;
    eachToken(line, [&](StringRef token, bool isValue) {
      auto known = isValue ? names.find(token) : names.end();
      renamed += isValue ? "%" : "";
      renamed += known == names.end() ? token : StringRef(known->second);
    });
    if (line.starts_with(kFunction) && renamed.size() > kLineLength)
      writeInLines(renamed, stream);
    else
      stream << renamed;
    if (line.starts_with("  }"))
      names.clear();
  }
}

void writeIr(ModuleOp module, llvm::raw_ostream &stream) {
  OwningOpRef<ModuleOp> printed = module.clone();
  printed->walk([](nn::ConstantOp op) {
    auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
    if (elements && !elements.isSplat() && elements.getNumElements() > kElementsInPlace)
      op.setValueAttr(resourceOf(elements));
  });
  std::string text;
  llvm::raw_string_ostream plain(text);
  printed->print(plain, OpPrintingFlags().enableDebugInfo().assumeVerified());
  writeWithArguments(*printed, plain.str(), stream);
}

OwningOpRef<ModuleOp> readIr(StringRef path, MLIRContext &context) {
  OwningOpRef<ModuleOp> module = parseSourceFile<ModuleOp>(path, ParserConfig(&context));
  if (module && failed(readConstants(*module)))
    return nullptr;
  return module;
}

namespace {

struct ReadConstants : PassWrapper<ReadConstants, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ReadConstants)
  StringRef getArgument() const override { return "read-constants"; }
  void runOnOperation() override {
    if (failed(readConstants(getOperation())))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> createReadConstantsPass() { return std::make_unique<ReadConstants>(); }

} // namespace trainc
