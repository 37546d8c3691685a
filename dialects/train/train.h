// SPDX-License-Identifier: Apache-2.0
//
// C++ face of the train dialect (train.td), and how passes ask for roles.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include <optional>
#include <string>

#include "dialects/train/train_enums.h.inc"

namespace trainc::train {

/// What else is kept of a micro-batch in the chunk that has its loss, under the name of
/// #train.kept.
inline constexpr llvm::StringLiteral kKeptLossWeight = "loss weight",
                                     kKeptIndexCheck = "index check";

/// What a name ends with that is of a part of the loss, after `words`; empty: it is of the whole.
inline std::string textOfPart(const char *words, std::optional<int64_t> part) {
  return part ? words + std::to_string(*part) : "";
}

/// The facets of roles in train.td.
template <typename Role> struct OfArgument : mlir::AttributeTrait::TraitBase<Role, OfArgument> {};
template <typename Role> struct OfResult : mlir::AttributeTrait::TraitBase<Role, OfResult> {};
template <typename Role> struct OfFloats : mlir::AttributeTrait::TraitBase<Role, OfFloats> {};
template <typename Role> struct Scalar : mlir::AttributeTrait::TraitBase<Role, Scalar> {};

} // namespace trainc::train

#include "dialects/train/train_interfaces.h.inc"

#include "dialects/train/train_dialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/train/train_attributes.h.inc"

namespace trainc::train {

/// The role of an argument or of a result; null where it has none.
RoleAttrInterface roleOf(mlir::func::FuncOp function, unsigned argument);
RoleAttrInterface resultRoleOf(mlir::func::FuncOp function, unsigned result);

/// The role if it is of this kind, else null.
template <typename Role> Role roleAs(mlir::func::FuncOp function, unsigned argument) {
  return mlir::dyn_cast_or_null<Role>(roleOf(function, argument));
}
template <typename Role> Role resultRoleAs(mlir::func::FuncOp function, unsigned result) {
  return mlir::dyn_cast_or_null<Role>(resultRoleOf(function, result));
}

void setRole(mlir::func::FuncOp function, unsigned argument, RoleAttrInterface role);
void setResultRole(mlir::func::FuncOp function, unsigned result, RoleAttrInterface role);
/// The attributes of an argument or result that has this role and nothing else.
mlir::DictionaryAttr attributesOf(RoleAttrInterface role);

/// The type of an argument with the role #train.random_key: a scalar of 64 bits.
mlir::RankedTensorType randomKeyType(mlir::MLIRContext *context);

/// Which number of #train.step_totals is which, and how many there are.
enum StepTotal : int64_t { kTotalWeight, kTotalLoss, kTotalFaults, kStepTotals };

/// The name of an argument or result in the ONNX file; empty where it has none.
llvm::StringRef nameOf(mlir::func::FuncOp function, unsigned argument);
llvm::StringRef resultNameOf(mlir::func::FuncOp function, unsigned result);

/// The argument whose memory a result takes: new parameters and optimizer states.
std::optional<unsigned> overwrittenArgument(mlir::func::FuncOp function, unsigned result);
/// Whether the entry works on flat arenas, as @update does.
bool isUpdate(mlir::func::FuncOp function);

/// The chunk that an entry function is of; null where it is of none.
ChunkAttr chunkOf(mlir::func::FuncOp function);
void setChunk(mlir::func::FuncOp function, ChunkAttr chunk);
/// Null where a step is not cut into stages.
PipelineAttr pipelineOf(mlir::ModuleOp module);
void setPipeline(mlir::ModuleOp module, PipelineAttr pipeline);
/// `forward_0`; null where there is none.
mlir::func::FuncOp chunkFunction(mlir::ModuleOp module, ChunkPass pass, int64_t chunk);

/// The flat arena; null before form-buckets.
LayoutAttr layoutOf(mlir::ModuleOp module);
void setLayout(mlir::ModuleOp module, LayoutAttr layout);

/// The names of the groups of parameters, from group 1.
llvm::SmallVector<llvm::StringRef> groupsOf(mlir::ModuleOp module);
/// What follows a name of the group's own in snake case: `_of_no_decay`; empty for group 0.
std::string ofGroup(mlir::ModuleOp module, int64_t group);
/// None: there are none.
void setGroups(mlir::ModuleOp module, llvm::ArrayRef<std::string> names);

/// What a module was compiled from and for; empty or null where it does not say.
llvm::StringRef modelNameOf(mlir::ModuleOp module);
/// What the reader says of the graph that it read (graph_digest.h).
llvm::StringRef graphDigestOf(mlir::ModuleOp module);
/// As users know the loss: a single one without output and factor.
llvm::StringRef lossNameOf(mlir::ModuleOp module);
/// As --precision has it: `bf16`; f32 where set-precision has not been.
llvm::StringRef precisionOf(mlir::ModuleOp module);
/// Whether products read 16 bits in this precision.
inline bool isNarrow(llvm::StringRef precision) {
  return precision == "bf16" || precision == "fp16";
}
/// All terms of the loss, each with its factor and the number of its output.
llvm::StringRef objectiveOf(mlir::ModuleOp module);
/// The recipe's losses as text (loss_term.h), which attach-loss takes.
llvm::SmallVector<std::string> lossesOf(mlir::ModuleOp module);
llvm::StringRef optimizerNameOf(mlir::ModuleOp module);
TargetAttr targetOf(mlir::ModuleOp module);
llvm::SmallVector<ExportAttr> exportsOf(mlir::ModuleOp module);
/// Parameters by what the state of PyTorch's module calls them, where that is not their name.
llvm::SmallVector<ExportAttr> moduleTensorsOf(mlir::ModuleOp module);
void setModelName(mlir::ModuleOp module, llvm::StringRef name);
void setGraphDigest(mlir::ModuleOp module, llvm::StringRef digest);
void setLossName(mlir::ModuleOp module, llvm::StringRef name);
void setPrecision(mlir::ModuleOp module, llvm::StringRef name);
void setObjective(mlir::ModuleOp module, llvm::StringRef text);
/// None: there are none any more.
void setLosses(mlir::ModuleOp module, llvm::ArrayRef<std::string> losses);
void setOptimizerName(mlir::ModuleOp module, llvm::StringRef name);
void setTarget(mlir::ModuleOp module, TargetAttr target);
void setExports(mlir::ModuleOp module, llvm::ArrayRef<ExportAttr> exports);
void setModuleTensors(mlir::ModuleOp module, llvm::ArrayRef<ExportAttr> tensors);

} // namespace trainc::train
