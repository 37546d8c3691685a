// SPDX-License-Identifier: Apache-2.0
//
// Sizes and steps of attention (attention.h).
#include "dialects/nn/attention.h"
#include "dialects/kernel/row_pitch.h"
#include "runtime/kernels/attention_gradient.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>

using namespace mlir;

namespace trainc::nn {

static_assert(kMostMasks == max_masks, "masks of the runtime");

SmallVector<int64_t> AttentionSizes::scores() const {
  SmallVector<int64_t> shape(batch);
  shape.append({queries, keys});
  return shape;
}

int64_t AttentionSizes::visible(int64_t query) const {
  return std::clamp<int64_t>(query + reach + 1, 0, keys);
}

double AttentionSizes::visiblePairs() const {
  double pairs = 0;
  for (int64_t query = 0; query < queries; ++query)
    pairs += static_cast<double>(visible(query));
  return pairs * static_cast<double>(heads());
}

double AttentionSizes::flopsOfDropout() const {
  return dropped > 0 ? RandomBitsOp::flopsPerElement() + 2 : 0; // compared, multiplied
}

int64_t AttentionStep::lay(Value tensor, BatchedMatrices::Use use, bool ofKeys) {
  ArrayRef<int64_t> shape = tensorType(tensor).getShape().take_back(2);
  matrices.push_back({tensor, shape[0], shape[1], use, ofKeys ? sizes.sharing : 1, {}});
  return static_cast<int64_t>(matrices.size()) - 1;
}

int64_t AttentionStep::layMask(Value tensor) {
  matrices.push_back({tensor, sizes.queries, sizes.keys, BatchedMatrices::broadcast, 1, scores});
  return static_cast<int64_t>(matrices.size()) - 1;
}

void AttentionStep::reads(Value tensor, bool ofKeys) {
  inputs.push_back({tensor, lay(tensor, BatchedMatrices::read, ofKeys)});
}

void AttentionStep::writes(Value tensor, bool ofKeys) {
  results.push_back({tensor, lay(tensor, BatchedMatrices::written, ofKeys)});
}

void AttentionStep::readsWhole(Value tensor) { inputs.push_back({builder.contiguous(tensor)}); }

void AttentionStep::writesWhole(Value tensor) { results.push_back({tensor}); }

void AttentionStep::readsMask(Value mask) {
  masks.push_back(layMask(mask));
  inputs.push_back({mask, masks.back()});
}

void AttentionStep::readsRest(ValueRange masksAndKey) {
  for (Value mask : masksOf(masksAndKey))
    readsMask(mask);
  if (Value key = keyOf(masksAndKey))
    readsWhole(key);
  else if (sizes.dropped > 0)
    internalError(op, "draws random numbers without a key");
}

void AttentionStep::writesMask(Value gradient) {
  maskGradients.push_back(layMask(gradient));
  results.push_back({gradient});
}

/// Appends a matrix_layout; `isWhole` where another one follows.
static void append(SmallVectorImpl<int64_t> &numbers, kernel::MatrixAttr layout,
                   bool isWhole = false) {
  ArrayRef<int64_t> strides = layout.getBatchStrides();
  numbers.append({layout.getOffset(), layout.getRowStride(), layout.getColumnStride()});
  numbers.append(strides.begin(), strides.end());
  if (isWhole)
    numbers.append(max_batch_rank - strides.size(), 0);
}

ArrayAttr AttentionStep::numbers(const StridedBatch &batch, double scale, ArrayRef<bool> flags) {
  OpBuilder attributes(op->getContext());
  SmallVector<Attribute> numbers{
      attributes.getDenseI64ArrayAttr({sizes.queries, sizes.keys, sizes.size, sizes.valueSize,
                                       sizes.sharing, sizes.reach,
                                       static_cast<int64_t>(masks.size())}),
      attributes.getDenseI64ArrayAttr(batch.batch),
      attributes.getDenseI64ArrayAttr({sizes.stream, sizes.dropped}),
      attributes.getF64FloatAttr(scale)};
  for (bool flag : flags)
    numbers.push_back(attributes.getBoolAttr(flag));
  auto add = [&](ArrayRef<int64_t> places, bool areWhole) {
    SmallVector<int64_t> layouts;
    for (int64_t place : places)
      append(layouts, batch.tensors[place].layout, areWhole);
    numbers.push_back(attributes.getDenseI64ArrayAttr(layouts));
  };
  for (ArrayRef<Tensor> tensors : {ArrayRef<Tensor>(inputs), ArrayRef<Tensor>(results)})
    for (const Tensor &tensor : tensors)
      if (tensor.laid >= 0 && !llvm::is_contained(masks, tensor.laid))
        add(tensor.laid, false);
  SmallVector<int64_t> all(masks);
  llvm::append_range(all, maskGradients);
  add(all, true);
  return attributes.getArrayAttr(numbers);
}

int64_t AttentionStep::gradientScratchBytes(const StridedBatch &laid) const {
  int64_t kept = 1, added = 1, shared = sizes.sharing, maskBytes = 0;
  for (size_t d = laid.batch.size(); d-- > 0;) {
    bool isAdded = !maskGradients.empty() &&
                   laid.tensors[maskGradients.front()].layout.getBatchStrides()[d] == 0;
    if (shared > 1)
      shared /= laid.batch[d];
    else
      (isAdded ? added : kept) *= laid.batch[d];
  }
  for (int64_t place : maskGradients)
    maskBytes += bytesOf(matrices[place].value.getType());
  int64_t numbers = sizes.heads() * sizes.queries * sizes.size;
  Type sum = sumTypeOf(tensorType(matrices.front().value).getElementType());
  int64_t onCpu = attention_split({sizes.queries, sizes.keys, sizes.size, sizes.valueSize,
                                   sizes.sharing, sizes.reach, static_cast<int64_t>(masks.size())},
                                  kept, added)
                      .scratch_bytes(numbers * elementBytes(sum), maskBytes);
  // Means of slopes, and what makes weights add up to 1.
  int64_t onGpu = 2 * sizes.heads() * sizes.queries * elementBytes(sum);
  return std::max(onCpu, onGpu);
}

/// Where the results, without those of masks, are parts of one tensor, they are laid out in it.
std::optional<JoinedParts> AttentionStep::joinResults(StridedBatch &laid, ArrayRef<Value> written) {
  const size_t parts = written.size() - maskGradients.size();
  std::optional<JoinedParts> joined = joinedParts(written.take_front(parts));
  for (size_t i = 0; joined && i < parts; ++i) {
    const BatchedMatrices &asked = matrices[results[i].laid];
    if (!kernel::RowPitch{joined->lengths[i], joined->length}.isTaken(
            laid.tensors[results[i].laid].layout, laid.batch, asked.rows, asked.columns))
      return std::nullopt;
  }
  for (size_t i = 0; joined && i < parts; ++i) {
    kernel::MatrixAttr &layout = laid.tensors[results[i].laid].layout;
    layout = kernel::RowPitch{joined->lengths[i], joined->length}.of(layout);
    layout = kernel::MatrixAttr::get(layout.getContext(), layout.getOffset() + joined->begins[i],
                                     layout.getBatchStrides(), layout.getRowStride(),
                                     layout.getColumnStride());
  }
  return joined;
}

/// A call that writes what is joined first, and then the others.
static kernel::CallOp createCall(StepBuilder &builder, StringRef function, ArrayRef<Value> read,
                                 ArrayRef<Value> others, const std::optional<JoinedParts> &joined) {
  auto types = llvm::map_to_vector(others, [](Value value) { return value.getType(); });
  if (joined)
    types.insert(types.begin(), joined->type);
  auto call = builder.create<kernel::CallOp>(types, function, function, ArrayRef<int64_t>(), read);
  if (joined) {
    SmallVector<int64_t> arguments(joined->begins.size(), 0);
    llvm::append_range(arguments, llvm::seq<int64_t>(1, int64_t(types.size())));
    call.setResultArguments(arguments);
  }
  return call;
}

/// The whole in the type that its readers know.
Value AttentionStep::joinedValue(const JoinedParts &joined, Value written) {
  if (written.getType() == joined.whole.getType())
    return written;
  return builder.create<CastOp>(joined.whole.getType(), written);
}

SmallVector<Replacement> AttentionStep::build(StringRef function, double scale, double flops,
                                              ArrayRef<StringRef> roles, ArrayRef<bool> flags,
                                              bool isGradient) {
  SmallVector<int64_t> batch(sizes.batch);
  if (sizes.sharing > 1) {
    batch.back() /= sizes.sharing;
    batch.push_back(sizes.sharing);
  }
  StridedBatch laid = builder.matrices(batch, matrices);
  if (laid.batch.size() > max_batch_rank)
    internalError(op, "the batch of an attention has few dimensions");
  auto inMemory = [&](const Tensor &tensor) {
    return tensor.laid < 0 ? tensor.value : laid.tensors[tensor.laid].tensor;
  };
  SmallVector<Value> tensors = llvm::map_to_vector(inputs, inMemory),
                     written = llvm::map_to_vector(results, inMemory);
  std::optional<JoinedParts> joined = joinResults(laid, written);
  const size_t parts = joined ? joined->begins.size() : 0; // the first of the results
  const ArrayRef<Value> others = ArrayRef(written).drop_front(parts);
  kernel::CallOp call = createCall(builder, function, tensors, others, joined);
  call.setNumbersAttr(numbers(laid, scale, flags));
  call.setFlops(APFloat(flops));
  const std::string words = llvm::formatv("{0} heads of {1} x {2} x {3}", sizes.heads(),
                                          sizes.queries, sizes.keys, sizes.size);
  call->setAttr("words", StringAttr::get(op->getContext(), words));
  if (isGradient)
    call.setScratchBytes(gradientScratchBytes(laid));
  SmallVector<StringRef> ownRoles(roles.drop_front(parts));
  if (joined)
    ownRoles.insert(ownRoles.begin(), "");
  nameResultsByRole(call, op, ownRoles);
  SmallVector<Replacement> replacements;
  if (joined)
    replacements.push_back({joined->whole, joinedValue(*joined, call.getOuts().front())});
  for (auto [old, replacement] : llvm::zip_equal(others, call.getOuts().drop_front(joined ? 1 : 0)))
    replacements.push_back({old, replacement});
  return replacements;
}

} // namespace trainc::nn
