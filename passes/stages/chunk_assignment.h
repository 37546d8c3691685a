// SPDX-License-Identifier: Apache-2.0
//
// Which chunk of a pipeline each operation of @forward_backward is part of, and whether of its
// forward pass. Chunks are cut between nodes, in the order of the forward pass; what computes the
// gradient of a node is in the chunk of the node.
#pragma once

#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/passes.h"
#include "passes/planning/pipeline_partition.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

namespace trainc {

/// Whether a result with this role is the forward pass's.
bool isOfForwardPass(train::RoleAttrInterface role);

class ChunkAssignment {
public:
  /// Assigns the operations of a function after form-products.
  explicit ChunkAssignment(mlir::func::FuncOp function);

  /// Diagnostics where there are not as many cuts, or where one that is asked for is none.
  mlir::LogicalResult assign(const StageOptions &options);

  /// Cuts from the fastest partition to the one of least memory, as far as costs of nodes tell;
  /// what a partition really takes, plan-memory says. Diagnostics as above.
  mlir::FailureOr<std::vector<std::vector<std::string>>> candidates(const StageOptions &options);

  /// Whether it is needed for the loss; else it runs after that, with the gradients.
  bool isForward(mlir::Operation *op) const { return forward.contains(op); }
  int64_t chunkOf(mlir::Operation *op) const { return chunks.lookup(op); }
  /// Whoever reads it computes it again, of what the functions it is part of have.
  bool isRepeated(mlir::Operation *op, train::ChunkPass reader) const;
  /// The last nodes of all chunks but the last.
  llvm::ArrayRef<std::string> cuts() const { return lastNodes; }

private:
  /// What the forward pass has of one node, and what its gradients take.
  struct Node {
    std::string name;
    double time = 0;      // forward and backward, as bytes of traffic
    int64_t kept = 0;     // bytes, for the backward pass
    int64_t held = 0;     // bytes of parameters that no node before reads, gradients and state
    int64_t crossing = 0; // bytes that the nodes after it read of it and of those before it
  };

  void findForward();
  void findRepeated();
  void findNodes();
  void findCrossing();
  void findHeld();
  int numberOf(mlir::Operation *op) const;
  std::vector<int> narrowCuts() const;
  mlir::FailureOr<std::vector<int>> chosenCuts(llvm::ArrayRef<std::string> names);
  mlir::FailureOr<std::vector<int>> enoughCuts(const StageOptions &options);
  planning::Chain chainOf(const StageOptions &options, const std::vector<int> &cuts) const;
  mlir::FailureOr<std::vector<int>> plannedCuts(const StageOptions &options);
  int64_t sumChunk(mlir::Operation *op, int64_t chunk) const;
  void spread(const std::vector<int> &firstNodes);

  mlir::func::FuncOp function;
  llvm::DenseSet<mlir::Operation *> forward;
  llvm::DenseSet<mlir::Operation *> fromInputs; // pointwise, of inputs and parameters alone
  llvm::DenseSet<mlir::Operation *> repeated;   // for the backward pass
  std::vector<Node> nodes;
  llvm::StringMap<int> nodeNumbers;
  llvm::DenseMap<mlir::Operation *, int> nodeOf; // of forward operations
  llvm::DenseMap<mlir::Operation *, int64_t> chunks;
  std::vector<std::string> lastNodes;
};

} // namespace trainc
