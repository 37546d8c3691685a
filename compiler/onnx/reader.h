// SPDX-License-Identifier: Apache-2.0
//
// Reads an ONNX model: the nn module, the parameters with their bytes in the
// mapped file, and what export of trained weights needs.
#pragma once

#include "compiler/onnx/parameters/parameter.h"
#include "compiler/recipe.h"
#include "compiler/report.h"
#include "dialects/nn/tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <memory>

namespace trainc {

namespace reader {
class ExportedProgram;
class ModelFile;
} // namespace reader

/// A value of the ONNX graph: a tensor of the function, or known while it was read.
struct NamedValue {
  std::string name;
  mlir::Value tensor;
  nn::Tensor constant; // where there is no tensor
};

/// A node of the graph that a result needs.
struct NamedNode {
  std::string label;                // what messages call it
  std::string operation;            // `MatMul`, `com.example::Wobble`
  std::string name;                 // in IR and plans; empty: it made no operation
  std::vector<std::string> outputs; // values; empty: absent
  std::string source;               // `model.py:35`; empty: the file does not say
};

struct Model {
  std::string name;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<Parameter> parameters;    // in the order of the function's arguments
  std::vector<NamedValue> values;       // in order of the nodes; what no result needs is left out
  std::vector<NamedNode> nodes;         // in the order of the graph
  std::vector<StateConstant> constants; // floats under names of the module's
  std::vector<AdapterEntry> adapters;
  std::vector<std::vector<char>> adapterValues; // bytes of their parameters
  std::string parameterTable;  // every decision about initializers, with its reason
  std::string parameterCounts; // `148 parameters train (124,439,808 numbers), ...`
  std::shared_ptr<const reader::ModelFile> file;
  std::shared_ptr<const reader::ExportedProgram> program; // that the file records
  bool trains = true;                                     // false: it is only run, as the file says
  std::string exportType; // of the recipe, where the file has another; empty: the file's
};

/// Reads the model at `path`. Every problem goes to `report`.
mlir::FailureOr<Model> readModel(llvm::StringRef path, const Recipe &recipe,
                                 mlir::MLIRContext &context, Report &report);

/// The files that the model was read from: itself, those of its weights and of constants.
std::vector<std::string> modelFiles(const Model &model);

/// The table of all decisions about initializers. Needs neither sizes of dimensions nor operators
/// that can be imported.
mlir::FailureOr<std::string> readParameterTable(llvm::StringRef path, const Recipe &recipe,
                                                mlir::MLIRContext &context, Report &report);

/// The model file without its parameters' values and without the exporter's stack traces. A
/// trainer appends the trained values as a second `graph` field: protobuf merges the two.
mlir::LogicalResult writeExportTemplate(const Model &model, bool storesFrozen, llvm::StringRef path,
                                        Report &report);

/// Whether the file has the weight as integers, into which no adapter can be merged.
bool isBesideIntegers(const Model &model, llvm::StringRef weight);

/// The values as the file has them, or those that its integers stand for.
std::vector<char> valuesOf(const Parameter &parameter);

/// The initializers that the template lacks, by ONNX name. A program that `storesFrozen` weights as
/// they are has the integers of some, too.
std::vector<ExportEntry> exportInitializers(const Model &model, bool storesFrozen);

/// What the module's state calls parameters, each by all its names, and whether it has them
/// transposed. One whose name an exporter made up may have none.
std::vector<ExportEntry> moduleTensors(const Model &model);

/// Of parameters that the module's state has in pieces.
std::vector<StatePiece> statePieces(const Model &model);

/// Those that are trained and hold -infinity, as masks do.
std::vector<std::string> infiniteParameters(const Model &model);

/// The frozen parameters, in the form of the recipe or in the one that the file has for each.
std::vector<FrozenWeight> frozenWeights(const Model &model, const Recipe &recipe);

/// `f32`, `f16` or `bf16`, of a tensor of floats.
std::string floatTypeInFile(const Model &model, const std::string &name);

/// What of them the trainer maps from files of external data: where these have much in the types
/// that it reads, and little else.
FrozenFiles frozenFiles(const Model &model, llvm::ArrayRef<FrozenWeight> weights);

/// Writes all parameters as safetensors straight from the maps: `frozen` tensors as one block that
/// begins the data, the others in `precision` ("f32" or "f64"). Of those that stay in `files` it
/// has checksums alone. Returns a digest of the frozen values; empty: there are none.
mlir::FailureOr<std::string> writeInitialParameters(const Model &model,
                                                    llvm::ArrayRef<FrozenTensor> frozen,
                                                    const FrozenFiles &files, llvm::StringRef path,
                                                    llvm::StringRef precision, Report &report);

/// Writes the values of these parameters one after the other as f32, without names.
mlir::LogicalResult writeValues(const Model &model, llvm::ArrayRef<std::string> names,
                                llvm::StringRef path, Report &report);

} // namespace trainc
