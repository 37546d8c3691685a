// SPDX-License-Identifier: Apache-2.0
//
// Philox 4x32-10 (runtime/kernels/random.h) on signed integers of 64 bits: no operator multiplies
// words of 32 bits, and runtimes lack unsigned ones.
#include "compiler/onnx/gradient_graph/standard_form.h"

using namespace mlir;

namespace trainc {
namespace {

constexpr int64_t kHalf = int64_t(1) << 16, kWord = int64_t(1) << 32;

class Philox {
public:
  Philox(nn::Builder &builder, RankedTensorType type) : b(builder), type(type) {}

  /// The first two words of the block, whose counter is `element` and `stream`.
  std::pair<Value, Value> block(Value key, Value element, int64_t stream) {
    Value low = masked(key, kWord - 1);
    Value high = masked(quotient(b.sub(key, low), kWord), kWord - 1);
    Value x = masked(element, kWord - 1), y = quotient(element, kWord);
    Value z = integer(stream % kWord), w = integer(stream / kWord);
    for (int round = 0; round < 10; ++round) {
      auto [p, pLow] = product(x, 0xD2511F53);
      auto [q, qLow] = product(z, 0xCD9E8D57);
      x = exclusive(exclusive(q, y), low);
      z = exclusive(exclusive(p, w), high);
      y = qLow;
      w = pLow;
      low = masked(b.add(low, integer(0x9E3779B9)), kWord - 1);
      high = masked(b.add(high, integer(0xBB67AE85)), kWord - 1);
    }
    return {x, y};
  }

  /// Without remainder, of numbers that are not negative or have none.
  Value quotient(Value x, int64_t power) { return b.div(x, integer(power)); }
  Value integer(int64_t number) {
    return b.constant(DenseElementsAttr::get(type, b.op().getI64IntegerAttr(number).getValue()));
  }

private:
  Value masked(Value x, int64_t mask) { return b.create<nn::BitAndOp>(x, integer(mask)); }
  Value exclusive(Value x, Value y) { return b.create<nn::BitXorOp>(x, y); }

  /// The upper and the lower word of a product of two: by halves of the factor, so that nothing
  /// overflows.
  std::pair<Value, Value> product(Value word, int64_t factor) {
    Value low = b.mul(word, integer(factor % kHalf));
    Value high = b.mul(word, integer(factor / kHalf));
    Value sum = b.add(high, quotient(low, kHalf));
    Value lower = b.add(b.mul(masked(sum, kHalf - 1), integer(kHalf)), masked(low, kHalf - 1));
    return {quotient(sum, kHalf), lower};
  }

  nn::Builder &b;
  RankedTensorType type;
};

} // namespace

Value randomNumbers(nn::Builder &b, nn::RandomBitsOp op) {
  RankedTensorType type = nn::tensorType(op.getResult());
  auto flat = type.clone(ArrayRef<int64_t>(type.getNumElements()));
  Philox philox(b, type);
  Value element = b.reshape(b.create<nn::IotaOp>(flat, uint64_t(0)), type.getShape());
  Value key = op.getKeys() ? op.getKeys() : philox.integer(0);
  auto [first, second] = philox.block(key, element, static_cast<int64_t>(op.getStream()));
  const auto bits = static_cast<int64_t>(op.getBits());
  if (bits <= 32)
    return philox.quotient(first, int64_t(1) << (32 - bits));
  return b.add(b.mul(first, philox.integer(int64_t(1) << (bits - 32))),
               philox.quotient(second, int64_t(1) << (64 - bits)));
}

} // namespace trainc
