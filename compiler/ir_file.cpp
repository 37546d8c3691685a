// SPDX-License-Identifier: Apache-2.0
//
// Constants above a limit are printed as resources: `dense_resource<constant_3f...>` where they
// are used, their bytes behind the module. Passes know dense elements alone.
#include "compiler/ir_file.h"
#include "dialects/nn/nn.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinDialect.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;

namespace trainc {

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
      op.emitError("the file has no bytes, or too few, for the constant '")
          << resource.getRawHandle().getKey() << "'; try: a whole file of --dump-ir";
      complete = false;
      return;
    }
    op.setValueAttr(DenseElementsAttr::getFromRawBuffer(resource.getType(), blob->getData()));
  });
  return success(complete);
}

void writeIr(ModuleOp module, llvm::raw_ostream &stream) {
  OwningOpRef<ModuleOp> printed = module.clone();
  printed->walk([](nn::ConstantOp op) {
    auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
    if (elements && !elements.isSplat() && elements.getNumElements() > kElementsInPlace)
      op.setValueAttr(resourceOf(elements));
  });
  printed->print(stream, OpPrintingFlags().enableDebugInfo().assumeVerified());
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
