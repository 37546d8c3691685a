// SPDX-License-Identifier: Apache-2.0
//
// chunk-rows: a large matrix that only rows of it need is computed a few rows at a time.
//
// Problem: the logits of a language model are its largest tensor (4 x 1024 x 50257 f32 take 823
// MB), their gradient is as large, and both live at the peak of the step. What reads them takes row
// by row: maximum, sum and label of a row, its gradient, and products of that with the weight and
// with the product's other operand. Method: from a matrix product above the limit, all that
// computes with its rows is collected as a region: operations element by element, broadcasts,
// reductions of a row, further products. The region is repeated for chunks of rows; results that
// have rows are joined again, those that add over rows (the weight's gradient) are added chunk by
// chunk, which form-products does in place. Where an operand of the region depends on one of its
// results (the hidden layer of a network, whose gradient comes back through all others), or where
// something needs the matrix as a whole (an output), it is left as it is. Weakness: sums over rows,
// the weight's gradient, round otherwise than in one product.
#include "dialects/elements/element_type.h"
#include "dialects/nn/builder.h"
#include "dialects/nn/reduction.h"
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/module_pass.h"
#include "passes/options/checked_pass.h"
#include "passes/passes.h"
#include "passes/simplify.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace trainc {
namespace {

/// Each is code of its own: of a larger matrix the chunks are larger than the limit.
constexpr int64_t kMostChunks = 64;
/// Marks products in such chunks while the pass runs: they are not cut again.
constexpr llvm::StringLiteral kChunkAttribute = "chunk";

/// How many leading dimensions number the rows; nothing where the shape has no such.
std::optional<int64_t> rowDimensions(Value value, int64_t rows) {
  int64_t product = 1;
  ArrayRef<int64_t> shape = nn::tensorType(value).getShape();
  for (size_t i = 0; i < shape.size(); ++i)
    if ((product *= shape[i]) >= rows)
      return product == rows ? std::optional<int64_t>(i + 1) : std::nullopt;
  return std::nullopt;
}

/// The type with one dimension of `count` rows in the place of those that number all rows.
RankedTensorType chunkType(Value value, int64_t rowDimensions, int64_t count) {
  auto type = nn::tensorType(value);
  SmallVector<int64_t> shape = {count};
  llvm::append_range(shape, type.getShape().drop_front(rowDimensions));
  return type.clone(shape);
}

ArrayRef<int64_t> dimensionsOf(Operation *op) {
  return op->getAttrOfType<DenseI64ArrayAttr>("dimensions").asArrayRef();
}

/// The dimensions of an operation after its rows, where one dimension numbers these instead of
/// `own`.
SmallVector<int64_t> behindRows(ArrayRef<int64_t> dimensions, int64_t own) {
  return llvm::to_vector(llvm::map_range(dimensions, [&](int64_t d) { return d - own + 1; }));
}
SmallVector<int64_t> withRows(ArrayRef<int64_t> dimensions, int64_t own) {
  SmallVector<int64_t> result = {0};
  llvm::append_range(result, behindRows(dimensions.drop_front(own), own));
  return result;
}

/// Bytes of a product's result in memory: where readers only round it, it has their type there.
int64_t bytesInMemory(nn::MatmulOp product) {
  Type type = product.getResult().getType();
  for (Operation *reader : product->getUsers()) {
    auto cast = dyn_cast<nn::CastOp>(reader);
    if (!cast || !isNarrowFloat(cast.getType().getElementType()))
      return bytesOf(type);
    type = cast.getType();
  }
  return bytesOf(type);
}

/// What is computed with the rows of one product. All operations in it have one result.
class RowRegion {
public:
  explicit RowRegion(nn::MatmulOp product)
      : product(product), rows(nn::tensorType(product.getResult()).getDimSize(0)),
        elements(nn::tensorType(product.getResult()).getNumElements()) {}

  /// False where the product cannot be cut.
  bool collect() {
    if (!add(product))
      return false;
    for (size_t i = 0; i < region.size(); ++i) { // grows
      auto [op, role] = *std::next(region.begin(), static_cast<ptrdiff_t>(i));
      bool isLarge = role == Role::rows && this->isLarge(op->getResult(0));
      for (Operation *user : op->getUsers())
        if (isLarge ? !add(user) : role == Role::rows && leadsBack(user) && !add(user))
          return false;
    }
    return isWhole();
  }

  void repeatInChunks(int64_t limit) {
    int64_t chunk = rowsOfChunk(limit);
    if (isCapped(limit))
      for (auto [op, role] : region)
        if (isa<nn::MatmulOp>(op))
          op->setAttr(kChunkAttribute, UnitAttr::get(op->getContext()));
    OpBuilder builder(product->getBlock()->getTerminator());
    for (int64_t begin = 0; begin < rows; begin += chunk)
      repeat(builder, begin, std::min(chunk, rows - begin));
    for (auto [op, role] : region)
      if (llvm::any_of(op->getUsers(), [&](Operation *user) { return !region.contains(user); }))
        replaceOutside(builder, op->getResult(0), role);
    SmallVector<Operation *> whole = inBlockOrder();
    for (Operation *op : llvm::reverse(whole))
      op->erase();
  }

private:
  int64_t rowsWithin(int64_t limit) {
    return std::max<int64_t>(1, limit / (bytesInMemory(product) / rows));
  }
  int64_t fewestRows() { return int64_t(llvm::divideCeil(rows, kMostChunks)); }
  bool isCapped(int64_t limit) { return rowsWithin(limit) < fewestRows(); }

  /// As many as the limit and the number of chunks allow, or a little fewer that divide all rows:
  /// the chunks are alike then, and where an operand numbers its rows by several dimensions, none
  /// begins amid one of them.
  int64_t rowsOfChunk(int64_t limit) {
    int64_t fewest = fewestRows();
    int64_t most = std::max(rowsWithin(limit), fewest);
    for (int64_t count = most; count >= fewest && 2 * count > most; --count)
      if (rows % count == 0)
        return count;
    return llvm::divideCeil(rows, llvm::divideCeil(rows, most));
  }

  enum class Role { rows, sum }; // an operation's result is computed row by row, or adds over rows

  /// Takes an operation on rows of the region; false where it cannot be computed row by row.
  bool add(Operation *op) {
    if (region.contains(op))
      return true;
    std::optional<Role> role = roleOf(op);
    if (role)
      region.insert({op, *role});
    return role.has_value();
  }

  std::optional<Role> roleOf(Operation *op) const {
    if (op->getNumResults() != 1 || !isa<RankedTensorType>(op->getResult(0).getType()))
      return std::nullopt;
    if (auto matmul = dyn_cast<nn::MatmulOp>(op))
      return roleOfProduct(matmul);
    auto ofRows = [&](bool are) { return are ? std::optional(Role::rows) : std::nullopt; };
    if (isa<nn::PointwiseOpInterface, nn::CastOp, nn::ReshapeOp>(op))
      return ofRows(rowDimensions(op->getResult(0), rows).has_value());
    if (isa<nn::BroadcastOp>(op))
      return ofRows(keepsRows(op));
    if (!nn::isReduction(op))
      return std::nullopt;
    int64_t own = *rowDimensions(op->getOperand(0), rows);
    int64_t reduced = llvm::count_if(dimensionsOf(op), [&](int64_t d) { return d < own; });
    if (reduced == own && isa<nn::ReduceSumOp>(op))
      return Role::sum;
    return ofRows(reduced == 0);
  }

  std::optional<Role> roleOfProduct(nn::MatmulOp matmul) const {
    if (nn::tensorType(matmul.getResult()).getRank() != 2)
      return std::nullopt;
    auto isTaken = [&](Value value) { return region.contains(value.getDefiningOp()); };
    if (matmul.getTransposeA()) // over rows, which both operands have first
      return matmul.getTransposeB() ? std::nullopt : std::optional(Role::sum);
    bool isLeft = matmul == product || (isTaken(matmul.getA()) && !isTaken(matmul.getB()));
    return isLeft ? std::optional(Role::rows) : std::nullopt;
  }

  /// A broadcast whose operand has the rows that its result has.
  bool keepsRows(Operation *op) const {
    std::optional<int64_t> own = rowDimensions(op->getOperand(0), rows);
    return own && own == rowDimensions(op->getResult(0), rows) &&
           llvm::equal(dimensionsOf(op).take_front(*own), llvm::seq<int64_t>(0, *own));
  }

  bool isLarge(Value value) const { return nn::tensorType(value).getNumElements() * 2 > elements; }

  /// Whether a reader of small rows leads to a part of the region by operations on rows.
  bool leadsBack(Operation *op) const {
    llvm::SetVector<Operation *> reached;
    reached.insert(op);
    for (size_t i = 0; i < reached.size(); ++i) {
      Operation *next = reached[i];
      if (region.contains(next))
        return true;
      if (isa<nn::PointwiseOpInterface, nn::CastOp, nn::ReshapeOp, nn::BroadcastOp>(next))
        reached.insert(next->user_begin(), next->user_end());
    }
    return false;
  }

  /// No operand in it depends on what it leaves.
  bool isWhole() const {
    llvm::SetVector<Operation *> after;
    for (auto [op, role] : region)
      for (Operation *user : op->getUsers()) {
        if (!region.contains(user))
          after.insert(user);
        else if (role == Role::sum)
          return false;
      }
    for (size_t i = 0; i < after.size(); ++i)
      for (Operation *user : after[i]->getUsers()) {
        if (region.contains(user))
          return false;
        after.insert(user);
      }
    return true;
  }

  SmallVector<Operation *> inBlockOrder() const {
    SmallVector<Operation *> ops;
    for (auto [op, role] : region)
      ops.push_back(op);
    llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    return ops;
  }

  void repeat(OpBuilder &builder, int64_t begin, int64_t count) {
    DenseMap<Value, Value> outside;
    for (Operation *op : inBlockOrder()) {
      SmallVector<Value> operands;
      for (auto [i, operand] : llvm::enumerate(op->getOperands()))
        operands.push_back(region.contains(operand.getDefiningOp()) ? parts[operand].back()
                           : takesRows(op, i)
                               ? partOf(builder, operand, begin, count, outside, kDeepest)
                               : operand);
      Value own = cloneOf(builder, op, operands, count);
      SmallVector<Value> &made = parts[op->getResult(0)];
      if (region.lookup(op) == Role::sum && !made.empty())
        made.front() = builder.create<nn::AddOp>(op->getLoc(), made.front(), own);
      else
        made.push_back(own);
    }
  }

  /// Whether the operand has the rows of this operation.
  bool takesRows(Operation *op, size_t operand) const {
    if (isa<nn::MatmulOp>(op))
      return operand == 0 || region.lookup(op) == Role::sum;
    return true;
  }

  Value cloneOf(OpBuilder &builder, Operation *op, ArrayRef<Value> operands, int64_t count) {
    Operation *own = builder.clone(*op);
    own->setOperands(operands);
    Value result = op->getResult(0);
    bool hasRows = region.lookup(op) == Role::rows;
    if (hasRows)
      own->getResult(0).setType(chunkType(result, *rowDimensions(result, rows), count));
    if (isa<nn::BroadcastOp>(op) || nn::isReduction(op)) {
      int64_t numbering = *rowDimensions(op->getOperand(0), rows);
      bool inDimensions = isa<nn::BroadcastOp>(op) || !hasRows;
      own->setAttr("dimensions", builder.getDenseI64ArrayAttr(
                                     inDimensions ? withRows(dimensionsOf(op), numbering)
                                                  : behindRows(dimensionsOf(op), numbering)));
    }
    return own->getResult(0);
  }

  static constexpr int kDeepest = 8; // operations that are made anew one after the other

  /// The chunk's rows of a value from outside of the region; a large one is made anew from smaller
  /// ones where it can be.
  Value partOf(OpBuilder &builder, Value value, int64_t begin, int64_t count,
               DenseMap<Value, Value> &made, int depth) {
    if (Value part = made.lookup(value))
      return part;
    auto part = [&](Value of) { return partOf(builder, of, begin, count, made, depth - 1); };
    int64_t own = *rowDimensions(value, rows);
    RankedTensorType type = chunkType(value, own, count);
    nn::Builder at(builder, value.getLoc());
    auto make = [&]() -> Value {
      Operation *op = value.getDefiningOp();
      if (auto constant = dyn_cast_or_null<nn::ConstantOp>(op))
        if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
          return at.constant(splat.resizeSplat(type));
      if (auto iota = dyn_cast_or_null<nn::IotaOp>(op);
          iota && static_cast<int64_t>(iota.getDimension()) >= own)
        return at.create<nn::IotaOp>(type, iota.getDimension() - own + 1);
      if (auto broadcast = dyn_cast_or_null<nn::BroadcastOp>(op)) {
        ArrayRef<int64_t> dimensions = broadcast.getDimensions();
        if (keepsRows(op))
          return at.broadcast(part(broadcast.getX()), withRows(dimensions, own), type.getShape());
        if (llvm::all_of(dimensions, [&](int64_t d) { return d >= own; }))
          return at.broadcast(broadcast.getX(), behindRows(dimensions, own), type.getShape());
      }
      if (isLarge(value) && depth > 0 &&
          isa_and_nonnull<nn::PointwiseOpInterface, nn::CastOp>(op)) {
        SmallVector<Value> operands = llvm::to_vector(llvm::map_range(op->getOperands(), part));
        Operation *anew = builder.clone(*op);
        anew->setOperands(operands);
        anew->getResult(0).setType(type);
        return anew->getResult(0);
      }
      SmallVector<int64_t> flat = {rows};
      llvm::append_range(flat, type.getShape().drop_front());
      return at.slice(at.reshape(value, flat), 0, begin, count);
    };
    return made[value] = make();
  }

  void replaceOutside(OpBuilder &builder, Value value, Role role) {
    nn::Builder at(builder, value.getLoc());
    Value whole = parts[value].front();
    if (role == Role::rows)
      whole = at.reshape(at.create<nn::ConcatOp>(parts[value], int64_t(0)),
                         nn::tensorType(value).getShape());
    value.replaceUsesWithIf(whole,
                            [&](OpOperand &use) { return !region.contains(use.getOwner()); });
  }

  nn::MatmulOp product;
  const int64_t rows, elements; // of its result
  llvm::MapVector<Operation *, Role> region;
  DenseMap<Value, SmallVector<Value>> parts; // of the chunks so far; of a sum that alone
};

struct ChunkRows : ModulePass<ChunkRows, CheckedPass> {
  ChunkRows() = default;
  explicit ChunkRows(int64_t bytes) { limit = std::to_string(bytes); }

  TextOption limit{*this, "limit", "size", "0",
                   "bytes of a chunk; 0: everything is computed whole"};

  static constexpr StringLiteral flag = "chunk-rows";
  static constexpr StringLiteral description =
      "compute large matrices that are needed row by row in chunks of rows";

  int64_t read(OptionReader &reader) const { return reader.bytesOrZero("limit", limit, "64MiB"); }
  void checkOptions(OptionReader &reader) const override { read(reader); }

  void runOnOperation() override {
    OptionReader reader = silentReader();
    const int64_t bytes = read(reader);
    if (bytes == 0)
      return;
    bool changed = false;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isDeclaration())
        changed |= chunk(function, bytes);
    if (changed && failed(simplify(getOperation())))
      signalPassFailure();
  }

private:
  static bool chunk(func::FuncOp function, int64_t bytes) {
    bool changed = false;
    while (chunkOne(function, bytes))
      changed = true;
    for (auto product : function.getOps<nn::MatmulOp>())
      product->removeAttr(kChunkAttribute);
    return changed;
  }

  static bool chunkOne(func::FuncOp function, int64_t bytes) {
    for (auto product : function.getOps<nn::MatmulOp>()) {
      auto type = nn::tensorType(product.getResult());
      if (type.getRank() != 2 || type.getDimSize(0) == 1 || product.getTransposeA() ||
          product->hasAttr(kChunkAttribute) || bytesInMemory(product) <= bytes)
        continue;
      RowRegion region(product);
      if (!region.collect())
        continue;
      region.repeatInChunks(bytes);
      sortTopologically(&function.front());
      return true;
    }
    return false;
  }
};

PassRegistration<ChunkRows> chunkRowsRegistration;

} // namespace
} // namespace trainc

std::unique_ptr<mlir::Pass> trainc::createChunkRowsPass(int64_t limit) {
  return std::make_unique<trainc::ChunkRows>(limit);
}
