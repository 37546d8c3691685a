// SPDX-License-Identifier: Apache-2.0
//
// ONNX Einsum: sums of products over named dimensions. Operands are joined from left to right: two
// by one batched matrix product, or by a pointwise product, summed, where it would be of single
// rows or columns. What is only in one operand and not in the result is summed first.
#include "dialects/nn/onnx/onnx_node.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace mlir;

namespace trainc::nn {

namespace {

// Labels of an ellipsis: one for each of its dimensions, counted from the last.
constexpr int kEllipsis = 256;

using Labels = SmallVector<int>;

/// A tensor whose dimensions have names, all different.
struct Term {
  Value value;
  Labels labels;
};

class Einsum {
public:
  explicit Einsum(OnnxNode &node) : node(node), b(node.builder()) {}
  OnnxResults run();

private:
  FailureOr<Labels> parse(StringRef text, int64_t rank);
  LogicalResult parseOperands(StringRef text);
  FailureOr<Labels> resultLabels(StringRef equation);
  Value diagonal(Value value, Labels &labels);
  Term arranged(const Term &term, ArrayRef<int> labels);
  Term summed(const Term &term, ArrayRef<int> kept);
  Term joined(const Term &left, const Term &right, ArrayRef<int> kept);
  Value flattened(const Term &term, ArrayRef<Labels> groups);
  SmallVector<int64_t> sizesOf(ArrayRef<int> labels) const;

  OnnxNode &node;
  Builder &b;
  SmallVector<Term> terms;
  std::map<int, int64_t> sizes;
};

/// The labels of one operand of `rank` dimensions, or of the result. Fails with an error.
FailureOr<Labels> Einsum::parse(StringRef text, int64_t rank) {
  Labels labels;
  auto letters = llvm::count_if(text, llvm::isAlpha);
  if (text.count("...") > 1)
    return node.error("'" + text + "' of its equation has two ellipses");
  for (size_t i = 0; i < text.size(); ++i) {
    if (llvm::isAlpha(text[i])) {
      labels.push_back(text[i]);
    } else if (text.substr(i).starts_with("...")) {
      for (int64_t d = rank - letters; d-- > 0;)
        labels.push_back(kEllipsis + static_cast<int>(d));
      i += 2;
    } else if (text[i] != ' ') {
      return node.error("cannot read '" + text + "' of its equation");
    }
  }
  return labels;
}

LogicalResult Einsum::parseOperands(StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  if (parts.size() != node.numInputs())
    return node.error("its equation names " + llvm::Twine(parts.size()) + " operands, there are " +
                      llvm::Twine(node.numInputs()));
  for (auto [i, part] : llvm::enumerate(parts)) {
    Value value = node.input(i);
    RankedTensorType type = tensorType(value);
    FailureOr<Labels> labels = parse(part, type.getRank());
    if (failed(labels))
      return failure();
    if (static_cast<int64_t>(labels->size()) != type.getRank())
      return node.error("its equation gives operand " + llvm::Twine(i) + " " +
                        llvm::Twine(labels->size()) + " dimensions, it has " +
                        llvm::Twine(type.getRank()));
    if (type.getElementType().isInteger(1) ||
        type.getElementType() != tensorType(node.input(0)).getElementType())
      return node.error("operands are not numbers of one type", "insert a Cast before the node");
    for (auto [d, label] : llvm::enumerate(*labels)) {
      int64_t size = type.getDimSize(d);
      const int *first = llvm::find(*labels, label);
      bool again = first != labels->begin() + d; // a diagonal, of equal sizes
      int64_t &known = sizes.try_emplace(label, size).first->second;
      int64_t other = again ? type.getDimSize(first - labels->begin()) : known;
      if (size != other && (again || (size != 1 && other != 1)))
        return node.error("a dimension of its equation has sizes " + llvm::Twine(other) + " and " +
                          llvm::Twine(size));
      known = known == 1 ? size : known;
    }
    value = diagonal(value, *labels);
    terms.push_back({value, *labels});
  }
  return success();
}

/// Labels after the arrow; without one those that occur once, sorted, after the ellipsis.
FailureOr<Labels> Einsum::resultLabels(StringRef equation) {
  auto [operands, result] = equation.split("->");
  int64_t ellipsis = 0;
  for (auto &[label, size] : sizes)
    ellipsis += label >= kEllipsis;
  if (equation.contains("->")) {
    FailureOr<Labels> labels = parse(result, ellipsis + llvm::count_if(result, llvm::isAlpha));
    if (failed(labels))
      return failure();
    for (auto [i, label] : llvm::enumerate(*labels))
      if (!sizes.count(label) || llvm::is_contained(ArrayRef(*labels).take_front(i), label))
        return node.error("its result has a dimension that no operand has, or one twice");
    return labels;
  }
  Labels labels;
  for (int64_t d = ellipsis; d-- > 0;)
    labels.push_back(kEllipsis + static_cast<int>(d));
  for (auto &[label, size] : sizes)
    if (label < kEllipsis && operands.count(static_cast<char>(label)) == 1)
      labels.push_back(label);
  return labels;
}

/// Elements whose indices of one name are equal: a strided slice of both dimensions joined.
Value Einsum::diagonal(Value value, Labels &labels) {
  for (size_t i = 0; i < labels.size(); ++i) {
    auto *again = std::find(labels.begin() + i + 1, labels.end(), labels[i]);
    if (again == labels.end())
      continue;
    size_t j = again - labels.begin();
    value = b.move(value, j, i + 1);
    SmallVector<int64_t> shape(tensorType(value).getShape());
    int64_t size = shape[i];
    shape[i] = size * shape[i + 1];
    shape.erase(shape.begin() + i + 1);
    SmallVector<int64_t> starts(shape.size(), 0), strides(shape.size(), 1);
    value = b.reshape(value, shape);
    shape[i] = size;
    strides[i] = size + 1;
    value = b.create<SliceOp>(value, starts, shape, strides);
    labels.erase(labels.begin() + j);
    --i; // there may be a third
  }
  return value;
}

SmallVector<int64_t> Einsum::sizesOf(ArrayRef<int> labels) const {
  return llvm::map_to_vector(labels, [&](int label) { return sizes.at(label); });
}

/// The term with exactly these dimensions in this order; repeated along those that it lacks.
Term Einsum::arranged(const Term &term, ArrayRef<int> labels) {
  SmallVector<int64_t> order, own, dimensions;
  for (auto [d, label] : llvm::enumerate(labels)) {
    const int *found = llvm::find(term.labels, label);
    if (found == term.labels.end())
      continue;
    order.push_back(found - term.labels.begin());
    if (tensorType(term.value).getDimSize(order.back()) == sizes.at(label))
      dimensions.push_back(d);
  }
  Value value = b.transpose(term.value, order);
  for (auto [position, size] : llvm::enumerate(tensorType(value).getShape())) {
    int label = term.labels[order[position]];
    if (size == sizes.at(label))
      own.push_back(size);
  }
  value = b.broadcast(b.reshape(value, own), dimensions, sizesOf(labels));
  return {value, Labels(labels)};
}

/// The term summed over all dimensions but `kept`.
Term Einsum::summed(const Term &term, ArrayRef<int> kept) {
  SmallVector<int64_t> dimensions;
  Labels labels;
  for (auto [d, label] : llvm::enumerate(term.labels))
    if (llvm::is_contained(kept, label))
      labels.push_back(label);
    else
      dimensions.push_back(d);
  return {dimensions.empty() ? term.value : b.reduceSum(term.value, dimensions), labels};
}

/// The term with one dimension for each group of labels, of the first one only where it has any.
Value Einsum::flattened(const Term &term, ArrayRef<Labels> groups) {
  Labels all;
  SmallVector<int64_t> shape;
  for (const Labels &group : groups) {
    llvm::append_range(all, group);
    if (!(group.empty() && &group == groups.begin())) // no batch
      shape.push_back(computeProduct(sizesOf(group)));
  }
  return b.reshape(arranged(term, all).value, shape);
}

/// The product of two terms, summed over what is in both and not in `kept`. What is in one of them
/// alone is in `kept`.
Term Einsum::joined(const Term &left, const Term &right, ArrayRef<int> kept) {
  Labels batch, contracted, rows, columns;
  for (int label : left.labels)
    if (!llvm::is_contained(right.labels, label))
      rows.push_back(label);
    else
      (llvm::is_contained(kept, label) ? batch : contracted).push_back(label);
  for (int label : right.labels)
    if (!llvm::is_contained(left.labels, label))
      columns.push_back(label);
  Labels labels = batch;
  llvm::append_range(labels, rows);
  llvm::append_range(labels, columns);
  bool isFloat = isa<FloatType>(tensorType(left.value).getElementType());
  bool single = rows.empty() || columns.empty();
  if (contracted.empty() || !isFloat || (single && !batch.empty())) {
    Labels all = labels;
    llvm::append_range(all, contracted);
    return summed({b.mul(arranged(left, all).value, arranged(right, all).value), all}, labels);
  }
  // An operand that is stored transposed is used as it is.
  auto isStored = [](const Term &term, ArrayRef<Labels> groups) {
    Labels order;
    for (const Labels &group : groups)
      llvm::append_range(order, group);
    return order == term.labels;
  };
  bool transposeLeft = isStored(left, {batch, contracted, rows});
  bool transposeRight = isStored(right, {batch, columns, contracted});
  Value a = transposeLeft ? flattened(left, {batch, contracted, rows})
                          : flattened(left, {batch, rows, contracted});
  Value c = transposeRight ? flattened(right, {batch, columns, contracted})
                           : flattened(right, {batch, contracted, columns});
  return {b.reshape(b.matmul(a, c, transposeLeft, transposeRight), sizesOf(labels)), labels};
}

OnnxResults Einsum::run() {
  std::string equation = node.string("equation", "");
  if (failed(parseOperands(StringRef(equation).split("->").first)))
    return failure();
  FailureOr<Labels> result = resultLabels(equation);
  if (failed(result))
    return failure();
  Term total;
  for (size_t i = 0; i < terms.size(); ++i) {
    Labels kept = *result; // what the result or a later operand has
    for (const Term &later : ArrayRef(terms).drop_front(i + 1))
      llvm::append_range(kept, later.labels);
    Labels mine = kept;
    if (i > 0)
      llvm::append_range(mine, total.labels);
    Term term = summed(terms[i], mine);
    total = i == 0 ? term : joined(total, term, kept);
    total = summed(total, kept);
  }
  return SmallVector<Value>{arranged(total, *result).value};
}

} // namespace

static OnnxResults importEinsum(OnnxNode &node) { return Einsum(node).run(); }

static OnnxWeight weightsOfEinsum(unsigned, ArrayRef<int64_t> shape) {
  return shape.size() >= 2 ? OnnxWeight::matrix : OnnxWeight::none;
}

static OnnxRegistration einsum("Einsum", 12, importEinsum, weightsOfEinsum);

} // namespace trainc::nn
