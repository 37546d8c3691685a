// SPDX-License-Identifier: Apache-2.0
//
// What the state of PyTorch's module has that is not a parameter under a name, and what the
// optimizer's state has that does not look like a parameter: rows of names and numbers.
#pragma once

#include "dialects/train/train.h"
#include "mlir/IR/BuiltinOps.h"
#include "runtime/kernels/dequantize.h"

namespace trainc::train {

/// Elements of its tensors and their places in parameters. None: the attribute is not there.
mlir::ArrayAttr statePiecesOf(mlir::ModuleOp module);
void setStatePieces(mlir::ModuleOp module, llvm::ArrayRef<mlir::Attribute> rows);
/// Tensors that are compiled into the program, with their checksums.
mlir::ArrayAttr stateConstantsOf(mlir::ModuleOp module);
void setStateConstants(mlir::ModuleOp module, llvm::ArrayRef<mlir::Attribute> rows);

/// The type of a frozen parameter's elements in the file that the trainer maps. Null: the parameter
/// lies among the others.
mlir::Type storedTypeOf(mlir::ModuleOp module, mlir::StringAttr parameter);
/// How the elements follow from those. Null: they are the same numbers.
QuantizedAttr quantizedFormOf(mlir::ModuleOp module, mlir::StringAttr parameter);
/// The forms of all parameters that have one.
llvm::SmallVector<std::pair<mlir::StringAttr, QuantizedAttr>> quantizedForms(mlir::ModuleOp module);
/// Its layout, and the numbers for an attribute.
quantized_layout layoutOf(QuantizedAttr form);
llvm::SmallVector<int64_t> numbersOf(const quantized_layout &layout);
/// By parameter: a type, or a QuantizedAttr.
void setStoredForms(mlir::ModuleOp module, llvm::ArrayRef<mlir::NamedAttribute> forms);

/// Parts of files that the trainer maps (first byte, bytes, offset in the arena of frozen weights,
/// and where it goes on after all parts), and the offsets of the frozen tensors in them. None:
/// both are null.
mlir::ArrayAttr frozenPartsOf(mlir::ModuleOp module);
mlir::DictionaryAttr frozenPlacesOf(mlir::ModuleOp module);
void setFrozenFiles(mlir::ModuleOp module, llvm::ArrayRef<mlir::Attribute> parts,
                    llvm::ArrayRef<mlir::NamedAttribute> places);

/// A digest of the values of frozen parameters. Empty: nobody has read them.
llvm::StringRef frozenDigestOf(mlir::ModuleOp module);
void setFrozenDigest(mlir::ModuleOp module, llvm::StringRef digest);

/// Low-rank adapters beside weights. None: the attribute is not there.
mlir::ArrayAttr adaptersOf(mlir::ModuleOp module);
void setAdapters(mlir::ModuleOp module, llvm::ArrayRef<mlir::Attribute> rows);

/// Names of the parameters that hold -infinity in the model's file, as masks do.
mlir::ArrayAttr infiniteParametersOf(mlir::ModuleOp module);
void setInfiniteParameters(mlir::ModuleOp module, llvm::ArrayRef<mlir::Attribute> names);

/// A state of the optimizer that is not like its parameter: name, parameter, type of its elements,
/// slot, offset in the arena of states in bytes, then the sizes of its axes. None: each slot has
/// the layout of the parameters.
mlir::ArrayAttr stateLayoutOf(mlir::ModuleOp module);
void setStateLayout(mlir::ModuleOp module, llvm::ArrayRef<mlir::Attribute> rows);

/// Such a row; null names where it is none.
struct StatePlace {
  mlir::StringAttr name, parameter;
  mlir::Type element;
  int64_t slot = 0, offset = 0; // bytes
  llvm::SmallVector<int64_t> shape;
};
llvm::SmallVector<StatePlace> statePlacesOf(mlir::ModuleOp module);
mlir::Attribute rowOf(const StatePlace &place);

} // namespace trainc::train
