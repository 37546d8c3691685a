// SPDX-License-Identifier: Apache-2.0
//
// DequantizeLinear of ONNX, and what ONNX Runtime's tools write: MatMulNBits, GatherBlockQuantized
// and a DequantizeLinear of its own.
#include "compiler/onnx/parameters/quantized_weights.h"
#include "compiler/onnx/parameters/ledger.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>
#include <numeric>

using namespace llvm;

namespace trainc::reader {

using onnx::TensorProto;

constexpr StringRef kMicrosoft = "com.microsoft";

std::optional<unsigned> quantizedInput(StringRef domain, StringRef opType) {
  if ((domain.empty() || domain == kMicrosoft) && opType == "DequantizeLinear")
    return 0;
  if (domain == kMicrosoft && opType == "MatMulNBits")
    return 1;
  if (domain == kMicrosoft && opType == "GatherBlockQuantized")
    return 0;
  return std::nullopt;
}

static int64_t product(ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

namespace {

/// Reads what one node says of its weight, or why it is none.
class WeightReader {
public:
  WeightReader(const ModelFile &file, const GraphNode &node, const TensorBytes &integers,
               std::string &why)
      : file(file), node(node), why(why) {
    weight.integers = &integers;
  }

  std::optional<QuantizedWeight> read() {
    const bool isGood = node.opType() == "DequantizeLinear" ? ofDequantizeLinear()
                        : node.opType() == "MatMulNBits"    ? ofMatMul()
                                                            : ofGather();
    return isGood ? std::optional(weight) : std::nullopt;
  }

private:
  bool fail(const Twine &message) {
    why = message.str();
    return false;
  }

  /// An input of the node that is an initializer; null where there is none, which `why` says of one
  /// that the node computes.
  const TensorBytes *tensor(unsigned input) {
    if (input >= node.inputs.size() || node.inputs[input].empty())
      return nullptr;
    if (const TensorBytes *found = file.find(node.inputs[input]))
      return found;
    fail("its input '" + node.inputs[input] + "' is computed");
    return nullptr;
  }

  bool findTensors(unsigned scales, unsigned zeros) {
    weight.scales = tensor(scales);
    weight.zeros = tensor(zeros);
    if (!why.empty())
      return false;
    if (!weight.scales)
      return fail("it has no scales");
    if (!isFloat(weight.scales->dataType) || isDouble(weight.scales->dataType))
      return fail("its scales are not floats");
    return true;
  }

  bool setBits(int64_t bits, bool isSigned) {
    weight.layout.bits = bits;
    weight.layout.is_signed = isSigned ? 1 : 0;
    return bits == 4 || bits == 8 || fail("has integers of " + Twine(bits) + " bits");
  }

  bool ofDequantizeLinear() {
    const TensorBytes &integers = *weight.integers;
    const int32_t type = integers.dataType;
    if (!findTensors(1, 2) ||
        !setBits(isFourBits(type) ? 4 : 8, type == kInt4 || type == TensorProto::INT8))
      return false;
    if (!isFourBits(type) && type != TensorProto::INT8 && type != TensorProto::UINT8)
      return fail("has integers of type " + elementName(type));
    if (weight.zeros && weight.zeros->dataType != type)
      return fail("its zero points are of another type than its integers");
    weight.shape = integers.shape;
    const auto rank = static_cast<int64_t>(weight.shape.size());
    int64_t axis = node.integer("axis", 1);
    axis = axis < 0 ? axis + rank : axis;
    const int64_t block = node.integer("block_size", 0);
    if (block < 0)
      return fail("has blocks of " + Twine(block));
    if (weight.scales->count == 1 && block == 0)
      return ofOneScale() && checkZeros();
    if (axis < 0 || axis >= rank)
      return fail("has no axis " + Twine(axis));
    return (block > 0 ? ofBlocks(axis, block) : ofAxis(axis)) && checkZeros();
  }

  bool ofOneScale() {
    const int64_t last = weight.shape.empty() ? 1 : weight.shape.back();
    place(product(weight.shape) / std::max<int64_t>(last, 1), last, 1);
    weight.layout.block = std::max<int64_t>(last, 1);
    return true;
  }

  /// Scales along one axis alone. Along the last one each element of a row has its own.
  bool ofAxis(int64_t axis) {
    ArrayRef<int64_t> shape = weight.shape;
    if (weight.scales->count != shape[axis])
      return fail("has " + Twine(weight.scales->count) + " scales for " + Twine(shape[axis]) +
                  " places along axis " + Twine(axis));
    const int64_t before = product(shape.take_front(axis)),
                  behind = product(shape.drop_front(axis + 1));
    quantized_layout &layout = weight.layout;
    if (behind == 1) {
      place(before, 1, shape[axis]);
      layout.block = layout.scale_inner = 1;
    } else if (before == 1) { // rows
      place(shape[axis], behind, 1);
      layout.block = behind;
      layout.scale_outer = layout.zero_outer = 1;
    } else {
      place(before, shape[axis], behind);
      layout.block = layout.scale_block = 1;
    }
    return true;
  }

  bool ofBlocks(int64_t axis, int64_t block) {
    SmallVector<int64_t> expected = weight.shape;
    expected[axis] = divideCeilSigned(expected[axis], block);
    if (weight.scales->shape != expected)
      return fail("has scales " + shapeText(weight.scales->shape) + ", but its blocks need " +
                  shapeText(expected));
    ArrayRef<int64_t> shape = weight.shape;
    place(product(shape.take_front(axis)), shape[axis], product(shape.drop_front(axis + 1)));
    setBlocks(block, expected[axis]);
    return true;
  }

  void place(int64_t outer, int64_t length, int64_t inner) {
    weight.layout.outer = outer;
    weight.layout.length = length;
    weight.layout.inner = inner;
    weight.layout.row = length * inner;
  }

  void setBlocks(int64_t block, int64_t count) {
    quantized_layout &layout = weight.layout;
    layout.block = block;
    layout.scale_block = layout.inner;
    layout.scale_inner = layout.inner == 1 ? 0 : 1;
    layout.scale_outer = layout.zero_outer = count * layout.inner;
  }

  bool checkZeros() {
    return !weight.zeros || weight.zeros->count == weight.scales->count ||
           fail("has another number of zero points than of scales");
  }

  /// Rows of whole blocks. The last block may be more than the row needs.
  bool ofRows(int64_t rows, int64_t length, int64_t block) {
    const int64_t bits = weight.layout.bits;
    if (rows <= 0 || length <= 0 || block < 16 || (block & (block - 1)) != 0)
      return fail("has " + Twine(rows) + " rows of " + Twine(length) + " in blocks of " +
                  Twine(block) + "; expected sizes above 0, and blocks of a power of 2 from 16");
    const int64_t blocks = divideCeilSigned(length, block);
    const int64_t have = static_cast<int64_t>(weight.integers->bytes.size());
    if (have != rows * blocks * (block * bits / 8) || weight.scales->count != rows * blocks)
      return fail("has " + Twine(have) + " bytes of integers and " + Twine(weight.scales->count) +
                  " scales for " + Twine(rows) + " x " + Twine(blocks) + " blocks of " +
                  Twine(block));
    weight.shape = {rows, length};
    weight.isOutByIn = true;
    place(rows, length, 1);
    setBlocks(block, blocks);
    weight.layout.row = blocks * block;
    weight.layout.zero = int64_t{1} << (bits - 1);
    return true;
  }

  bool ofPackedZeros(int64_t rows, int64_t blocks) {
    if (!weight.zeros)
      return true;
    const bool arePacked = weight.zeros->dataType == TensorProto::UINT8;
    const int64_t each = arePacked ? divideCeilSigned(blocks * weight.layout.bits, 8) : blocks;
    weight.layout.zero_outer = arePacked ? each * 8 / weight.layout.bits : blocks;
    if (!arePacked && weight.zeros->dataType != weight.scales->dataType)
      return fail("its zero points are neither uint8 nor of the type of its scales");
    return weight.zeros->count == rows * each ||
           fail("has " + Twine(weight.zeros->count) + " zero points, but its blocks need " +
                Twine(rows * each));
  }

  bool ofMatMul() {
    if (!findTensors(2, 3) || !setBits(node.integer("bits", 4), false))
      return false;
    if (node.inputs.size() > 4 && !node.inputs[4].empty())
      return fail("its columns are in groups (g_idx)");
    const int64_t rows = node.integer("N", 0), length = node.integer("K", 0),
                  block = node.integer("block_size", 0);
    return (weight.integers->dataType == TensorProto::UINT8 ||
            fail("its integers are not uint8")) &&
           ofRows(rows, length, block) && ofPackedZeros(rows, divideCeilSigned(length, block));
  }

  bool ofGather() {
    const TensorBytes &integers = *weight.integers;
    const bool isPacked = integers.dataType == TensorProto::UINT8;
    if (!findTensors(2, 3) ||
        !setBits(isPacked ? node.integer("bits", 4) : 4, integers.dataType == kInt4))
      return false;
    if (!isPacked && !isFourBits(integers.dataType))
      return fail("has integers of type " + elementName(integers.dataType));
    const auto rank = static_cast<int64_t>(integers.shape.size());
    int64_t axis = node.integer("quantize_axis", 1);
    axis = axis < 0 ? axis + rank : axis;
    if (rank != 2 || axis != 1 || node.integer("gather_axis", 0) != 0)
      return fail("is not a table of rows in blocks");
    const int64_t length = integers.shape[1] * (isPacked ? 8 / weight.layout.bits : 1);
    const int64_t block = node.integer("block_size", 128);
    if (length % std::max<int64_t>(block, 1) != 0)
      return fail("has rows of " + Twine(length) + " elements in blocks of " + Twine(block));
    if (isPacked)
      return ofRows(integers.shape[0], length, block) &&
             ofPackedZeros(integers.shape[0], length / block);
    // Integers of four bits have zero points of their type, without padding, and else 0.
    if (weight.zeros && weight.zeros->dataType != integers.dataType)
      return fail("its zero points are of another type than its integers");
    if (!ofRows(integers.shape[0], length, block))
      return false;
    weight.layout.zero = 0;
    weight.layout.zero_outer = length / block;
    return checkZeros();
  }

  const ModelFile &file;
  const GraphNode &node;
  QuantizedWeight weight;
  std::string &why;
};

} // namespace

static bool isSame(const QuantizedWeight &a, const QuantizedWeight &b) {
  return a.shape == b.shape && a.scales == b.scales && a.zeros == b.zeros &&
         std::memcmp(&a.layout, &b.layout, sizeof a.layout) == 0;
}

std::optional<QuantizedWeight> quantizedWeight(const ModelFile &file, const Graph &graph,
                                               const TensorBytes &integers, std::string &why) {
  std::optional<QuantizedWeight> found;
  why.clear();
  for (const Use &use : graph.uses(integers.name)) {
    const std::optional<unsigned> input = quantizedInput(use.node->domain, use.node->opType());
    if (!input || *input != use.index) {
      why = "node '" + use.node->label + "' reads it, too";
      return std::nullopt;
    }
    std::optional<QuantizedWeight> weight = WeightReader(file, *use.node, integers, why).read();
    if (!weight)
      return std::nullopt;
    if (found && !isSame(*found, *weight)) {
      why = "nodes read it in different ways";
      return std::nullopt;
    }
    found = std::move(weight);
  }
  return found;
}

std::string withoutQuantization(StringRef name) {
  for (StringRef end : {"_quantized", "_DQ_Q4", "_DQ_Q8", "_Q4", "_Q8"})
    if (name.consume_back(end))
      break;
  return name.str();
}

std::string quantizedForm(const QuantizedWeight &weight) {
  std::string text =
      (weight.layout.is_signed ? "int" : "uint") + std::to_string(weight.layout.bits);
  if (weight.scales->count == 1)
    return text + " with one scale";
  const quantized_layout &layout = weight.layout;
  if (layout.block == 1 || (layout.inner == 1 && layout.block == layout.length))
    return text + " with scales along an axis";
  return text + " in blocks of " + std::to_string(weight.layout.block);
}

// ---- values, for programs that do not read them as they are

static packed_numbers numbersOf(const TensorBytes &tensor) {
  return {tensor.bytes.data(), isFloat(tensor.dataType)               ? number_form::f32
                               : tensor.dataType == TensorProto::INT8 ? number_form::i8
                                                                      : number_form::u8};
}

std::vector<float> QuantizedWeight::values() const {
  std::vector<float> floats(static_cast<size_t>(count()));
  const packed_numbers ofZeros = numbersOf(zeros ? *zeros : *integers);
  dequantize_numbers(layout, numbersOf(*integers), numbersOf(*scales), zeros ? &ofZeros : nullptr,
                     floats.data(), number_form::f32);
  return floats;
}

} // namespace trainc::reader
