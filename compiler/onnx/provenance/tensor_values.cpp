// SPDX-License-Identifier: Apache-2.0
//
// Questions about the values of mapped tensors. All stop at the first element that answers them,
// so that large weights are not paged in without need.
#include "compiler/onnx/provenance/parameters.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringSet.h"
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace llvm;

namespace trainc::reader {

static uint64_t bitsAt(const TensorBytes &tensor, int64_t index, int64_t width) {
  uint64_t bits = 0;
  std::memcpy(&bits, tensor.bytes.data() + index * width, width);
  return bits;
}

bool sameValues(const TensorBytes &a, const TensorBytes &b, bool transposed) {
  if (a.dataType != b.dataType || a.count != b.count)
    return false;
  if (!transposed)
    return a.shape == b.shape && std::memcmp(a.bytes.data(), b.bytes.data(), a.bytes.size()) == 0;
  if (a.shape.size() != 2 || b.shape.size() != 2 || a.shape[0] != b.shape[1] ||
      a.shape[1] != b.shape[0])
    return false;
  constexpr int64_t kBlock = 64; // elements; a block of both fits in the cache
  int64_t width = elementBytes(a.dataType), rows = a.shape[0], columns = a.shape[1];
  for (int64_t top = 0; top < rows; top += kBlock)
    for (int64_t left = 0; left < columns; left += kBlock)
      for (int64_t i = top; i < std::min(rows, top + kBlock); ++i)
        for (int64_t j = left; j < std::min(columns, left + kBlock); ++j)
          if (bitsAt(a, i * columns + j, width) != bitsAt(b, j * rows + i, width))
            return false;
  return true;
}

bool isUniform(const TensorBytes &tensor) {
  size_t width = static_cast<size_t>(elementBytes(tensor.dataType));
  return tensor.bytes.size() <= width ||
         std::memcmp(tensor.bytes.data(), tensor.bytes.data() + width,
                     tensor.bytes.size() - width) == 0;
}

static double realAt(const TensorBytes &tensor, int64_t index) {
  if (tensor.dataType == onnx::TensorProto::DOUBLE) {
    double value;
    std::memcpy(&value, tensor.bytes.data() + index * 8, 8);
    return value;
  }
  float value;
  std::memcpy(&value, tensor.bytes.data() + index * 4, 4);
  return value;
}

double firstNumber(const TensorBytes &tensor) { return realAt(tensor, 0); }

// The first value and the other one, which is the same where there is none; nullopt where there are
// more, or one that is not a number.
static std::optional<std::pair<double, double>> onlyValues(const TensorBytes &tensor) {
  double first = tensor.count > 0 ? realAt(tensor, 0) : 0, second = first;
  for (int64_t i = 1; i < tensor.count; ++i) {
    double value = realAt(tensor, i);
    if (value == first || value == second)
      continue;
    if (second != first || value != value)
      return std::nullopt;
    second = value;
  }
  return std::pair(first, second);
}

bool looksLikeMask(const TensorBytes &tensor) {
  size_t rank = tensor.shape.size();
  if (rank < 2 || tensor.shape[rank - 1] < 2 || tensor.shape[rank - 2] < 2)
    return false;
  auto masks = [](double value) { return value == 0 || value == 1 || value <= -1e4; };
  auto two = onlyValues(tensor);
  return two && two->first != two->second && masks(two->first) && masks(two->second);
}

// How a table orders its angles: sine and cosine in turn or one half each, and the exponents of
// 10000 spread over the width or over the frequencies' number less one.
struct AngleLayout {
  bool inTurn, lessOne;
};

static double angleValue(AngleLayout layout, int64_t position, int64_t column, int64_t width) {
  int64_t half = width / 2, index = layout.inTurn ? column / 2 : column % half;
  double exponent = static_cast<double>(index) / static_cast<double>(half - layout.lessOne);
  double angle = static_cast<double>(position) * std::pow(10000.0, -exponent);
  bool isSine = layout.inTurn ? column % 2 == 0 : column < half;
  return isSine ? std::sin(angle) : std::cos(angle);
}

bool looksSinusoidal(const TensorBytes &tensor) {
  constexpr double kTolerance = 1e-3; // angles of thousands, computed in f32
  size_t rank = tensor.shape.size();
  if (rank < 2 || tensor.shape[rank - 1] < 4 || tensor.shape[rank - 1] % 2)
    return false;
  int64_t width = tensor.shape[rank - 1], rows = tensor.shape[rank - 2];
  if (rows < 4 || rows * width != tensor.count)
    return false;
  auto follows = [&](AngleLayout layout, int64_t first) {
    for (int64_t i = 0; i < tensor.count; ++i) {
      double expected = angleValue(layout, first + i / width, i % width, width);
      if (!(std::abs(realAt(tensor, i) - expected) < kTolerance))
        return false;
    }
    return true;
  };
  for (bool inTurn : {true, false})
    for (bool lessOne : {false, true})
      for (int64_t first : {0, 1, 2}) // positions may begin after a padding row
        if (follows({inTurn, lessOne}, first))
          return true;
  return false;
}

// By blocks: a loop without an exit is computed with vectors.
template <typename Bits> static bool hasUnsound(const TensorBytes &tensor, Bits infinity) {
  constexpr Bits kSign = ~(~Bits(0) >> 1);
  constexpr int64_t kBlock = 4096; // elements
  for (int64_t start = 0; start < tensor.count; start += kBlock) {
    bool found = false;
    for (int64_t i = start; i < std::min(tensor.count, start + kBlock); ++i) {
      Bits bits;
      std::memcpy(&bits, tensor.bytes.data() + i * sizeof bits, sizeof bits);
      found |= ((bits & infinity) == infinity) & (bits != (kSign | infinity));
    }
    if (found)
      return true;
  }
  return false;
}

bool isSound(const TensorBytes &tensor) {
  return isDouble(tensor.dataType) ? !hasUnsound<uint64_t>(tensor, 0x7ff0000000000000)
                                   : !hasUnsound<uint32_t>(tensor, 0x7f800000);
}

static bool liesAlongOneAxis(const TensorBytes &tensor, int64_t fewest) {
  return tensor.count >= fewest &&
         llvm::count_if(tensor.shape, [](int64_t size) { return size > 1; }) == 1;
}

bool looksLikeRange(const TensorBytes &tensor) {
  constexpr int64_t kFewest = 16; // elements; fewer may be so by chance
  if (!liesAlongOneAxis(tensor, kFewest))
    return false;
  double first = realAt(tensor, 0), step = realAt(tensor, 1) - first;
  if (!(std::abs(step) > 0))
    return false;
  for (int64_t i = 2; i < tensor.count; ++i)
    if (!(std::abs(realAt(tensor, i) - first - static_cast<double>(i) * step) <
          1e-3 * std::abs(step)))
      return false;
  return true;
}

bool looksGeometric(const TensorBytes &tensor) {
  constexpr int64_t kFewest = 8; // elements; fewer may be so by chance
  if (!liesAlongOneAxis(tensor, kFewest))
    return false;
  double ratio = realAt(tensor, 1) / realAt(tensor, 0);
  if (!(ratio > 0) || std::abs(ratio - 1) < 1e-3)
    return false;
  for (int64_t i = 2; i < tensor.count; ++i)
    if (!(std::abs(realAt(tensor, i) / realAt(tensor, i - 1) - ratio) < 1e-4 * ratio))
      return false;
  return true;
}

bool isZero(const TensorBytes &tensor) {
  return llvm::all_of(tensor.bytes, [](char byte) { return byte == 0; });
}

bool isWhole(const TensorBytes &tensor) {
  return all_of(llvm::seq<int64_t>(0, tensor.count), [&](int64_t index) {
    double value = realAt(tensor, index);
    return value == std::trunc(value);
  });
}

// A number of few digits, or such as width ** -0.5.
static bool isWrittenNumber(double value, bool isSingle) {
  constexpr double kLargest = 1e4, kRounding = 1e-6; // of what a root is taken
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.4g", value);
  double shortened = std::strtod(text.data(), nullptr), square = value * value;
  if (isSingle ? static_cast<float>(shortened) == static_cast<float>(value) : shortened == value)
    return true;
  double root = square < 1 ? 1 / square : square;
  return root < kLargest && std::abs(root - std::round(root)) < kRounding * root;
}

bool mayBeWritten(const TensorBytes &tensor) {
  constexpr int64_t kFew = 2; // elements, of which any have but two values
  if (tensor.count <= kFew)
    return all_of(llvm::seq<int64_t>(0, tensor.count), [&](int64_t index) {
      return isWrittenNumber(realAt(tensor, index), !isDouble(tensor.dataType));
    });
  return onlyValues(tensor) || isWhole(tensor) || looksLikeRange(tensor) ||
         looksGeometric(tensor) || looksSinusoidal(tensor);
}

namespace {
/// A matrix, or its transpose. One axis: one row.
class MatrixView {
public:
  MatrixView(const TensorBytes &tensor, bool transposed) : tensor(tensor), transposed(transposed) {
    width = tensor.shape.back();
    height = tensor.count / width;
  }
  int64_t rows() const { return transposed ? width : height; }
  int64_t columns() const { return transposed ? height : width; }
  uint64_t at(int64_t row, int64_t column) const {
    return bitsAt(tensor, transposed ? column * width + row : row * width + column,
                  elementBytes(tensor.dataType));
  }
  bool hasAt(const MatrixView &part, int64_t top) const {
    for (int64_t i = 0; i < part.rows(); ++i)
      for (int64_t j = 0; j < part.columns(); ++j)
        if (at(top + i, j) != part.at(i, j))
          return false;
    return true;
  }
  bool has(const MatrixView &part) const {
    auto isThere = [&](int64_t top) { return hasAt(part, top); };
    return part.columns() == columns() &&
           any_of(llvm::seq<int64_t>(0, rows() - part.rows() + 1), isThere);
  }

private:
  const TensorBytes &tensor;
  bool transposed;
  int64_t width, height;
};
} // namespace

bool isPartOf(const TensorBytes &part, const TensorBytes &whole) {
  ArrayRef<int64_t> rows(part.shape), all(whole.shape);
  if (part.dataType != whole.dataType || part.count >= whole.count || all.empty() ||
      isUniform(part))
    return false;
  while (rows.size() >= all.size() && rows.front() == 1)
    rows = rows.drop_front();
  if (all.size() == 2 && !rows.empty())
    return any_of(ArrayRef<bool>{false, true}, [&](bool turned) {
      MatrixView matrix(whole, turned);
      return matrix.has(MatrixView(part, false)) ||
             (rows.size() == 2 && matrix.has(MatrixView(part, true)));
    });
  bool isOneRow = rows == all.drop_front();
  if (!isOneRow && (rows.size() != all.size() || rows.drop_front() != all.drop_front()))
    return false;
  size_t stride = whole.bytes.size() / static_cast<size_t>(all.front());
  for (size_t at = 0; at + part.bytes.size() <= whole.bytes.size(); at += stride)
    if (std::memcmp(whole.bytes.data() + at, part.bytes.data(), part.bytes.size()) == 0)
      return true;
  return false;
}

TensorBytes withoutSingleAxes(const TensorBytes &tensor) {
  TensorBytes result;
  result.name = tensor.name;
  result.dataType = tensor.dataType;
  result.count = tensor.count;
  result.bytes = tensor.bytes;
  llvm::copy_if(tensor.shape, std::back_inserter(result.shape),
                [](int64_t size) { return size != 1; });
  return result;
}

bool isMultipleOf(const TensorBytes &multiple, const TensorBytes &tensor, bool transposed) {
  constexpr double kRounding = 0x1p-22; // of one product in f32
  constexpr int64_t kFewest = 8;        // elements; fewer may be so by chance
  SmallVector<int64_t> shape = tensor.shape;
  if (transposed)
    std::reverse(shape.begin(), shape.end());
  if (multiple.dataType != tensor.dataType || multiple.shape != shape ||
      (transposed && shape.size() != 2))
    return false;
  double factor = 0, least = 0, most = 0;
  int64_t compared = 0;
  for (int64_t i = 0; i < tensor.count; ++i) {
    int64_t at = transposed ? i % shape[1] * shape[0] + i / shape[1] : i;
    double value = realAt(multiple, i), from = realAt(tensor, at);
    if (value == 0)
      continue;
    if (compared++ == 0) {
      factor = value / from;
      least = most = value;
    }
    if (!(std::abs(factor * from - value) <= kRounding * std::abs(value)))
      return false;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  return compared >= kFewest && least != most;
}

bool rowsDiffer(const TensorBytes &tensor) {
  if (tensor.shape.empty() || tensor.shape.back() == 0)
    return false;
  size_t bytes = static_cast<size_t>(tensor.shape.back() * elementBytes(tensor.dataType));
  llvm::StringSet<> rows;
  for (size_t at = 0; at < tensor.bytes.size(); at += bytes)
    if (!rows.insert(StringRef(tensor.bytes.data() + at, bytes)).second)
      return false;
  return true;
}

bool columnsDiffer(const TensorBytes &tensor) {
  if (tensor.shape.empty() || tensor.shape.back() == 0)
    return false;
  size_t width = static_cast<size_t>(elementBytes(tensor.dataType)),
         row = static_cast<size_t>(tensor.shape.back()) * width;
  llvm::StringSet<> columns;
  for (size_t first = 0; first < row; first += width) {
    std::string column;
    for (size_t at = first; at < tensor.bytes.size(); at += row)
      column.append(tensor.bytes.data() + at, width);
    if (!columns.insert(column).second)
      return false;
  }
  return true;
}

bool hasAllDigits(const TensorBytes &tensor) {
  // Of the significand: f16 lacks 13 bits of f32's, f32 29 of f64's.
  constexpr uint64_t kBelowHalf = (1 << 13) - 1, kBelowSingle = (1 << 29) - 1;
  uint64_t below = isDouble(tensor.dataType) ? kBelowSingle : kBelowHalf;
  for (int64_t i = 0; i < tensor.count; ++i)
    if (double value = realAt(tensor, i);
        value != std::trunc(value) && (bitsAt(tensor, i, elementBytes(tensor.dataType)) & below))
      return true;
  return false;
}

} // namespace trainc::reader
