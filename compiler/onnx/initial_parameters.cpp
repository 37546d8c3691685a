// SPDX-License-Identifier: Apache-2.0
//
// The parameters' values as safetensors: a length, a JSON header, then the bytes of each tensor.
#include "compiler/onnx/file/converted_tensors.h"
#include "compiler/onnx/file/half_model.h"
#include "compiler/onnx/file/output_file.h"
#include "compiler/onnx/reader.h"
#include "runtime/files/crc32c.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include <cstring>

using namespace llvm;
using namespace mlir;

namespace trainc {

using namespace reader;

constexpr size_t kHeaderAlignment = 64; // bytes; so that tensors can be used where they are mapped

/// The values in a type of floats, piece by piece.
static void forEachPiece(const Parameter &parameter, StringRef type,
                         llvm::function_ref<void(ArrayRef<char>)> take) {
  const int32_t halfType = halfTypeNamed(type);
  if (!halfType && (type != "f64" || parameter.isDouble)) { // decideParameters refuses f64 in f32
    take(parameter.bytes);
    return;
  }
  constexpr size_t kBlock = 16384; // elements
  std::vector<double> block;
  for (ArrayRef<char> floats = parameter.bytes; !floats.empty();) {
    size_t count = std::min(kBlock, floats.size() / sizeof(float));
    ArrayRef<char> taken = floats.take_front(count * sizeof(float));
    floats = floats.drop_front(taken.size());
    if (halfType) {
      const std::string halves = narrowedFloats({taken.data(), taken.size()}, halfType);
      take({halves.data(), halves.size()});
      continue;
    }
    block.resize(count);
    for (size_t i = 0; i < count; ++i) {
      float value;
      std::memcpy(&value, taken.data() + i * sizeof(float), sizeof(float));
      block[i] = value;
    }
    take({reinterpret_cast<const char *>(block.data()), count * sizeof(double)});
  }
}

/// By blocks: a loop without an exit is computed with vectors.
template <typename Bits> static bool holdsBits(ArrayRef<char> bytes, Bits wanted) {
  constexpr size_t kBlock = 65536; // bytes
  for (; !bytes.empty(); bytes = bytes.drop_front(std::min(kBlock, bytes.size()))) {
    bool found = false;
    for (size_t i = 0; i < std::min(kBlock, bytes.size()); i += sizeof(Bits)) {
      Bits bits;
      std::memcpy(&bits, bytes.data() + i, sizeof bits);
      found |= bits == wanted;
    }
    if (found)
      return true;
  }
  return false;
}

std::vector<std::string> infiniteParameters(const Model &model) {
  std::vector<std::string> names;
  for (const Parameter &parameter : model.parameters)
    if (!parameter.frozen &&
        (parameter.isDouble ? holdsBits<uint64_t>(parameter.bytes, 0xfff0000000000000)
                            : holdsBits<uint32_t>(parameter.bytes, 0xff800000)))
      names.push_back(parameter.name);
  return names;
}

namespace {
/// A tensor of the file; without values, what fills the gap behind a frozen weight.
struct WrittenTensor {
  std::string name;
  const Parameter *values;
  std::string type; // `f32`
  std::vector<int64_t> shape;
  int64_t bytes;
  bool isFrozen = false;
};
} // namespace

/// Frozen weights first, side by side as the program has them in memory.
static std::vector<WrittenTensor> tensorsOf(const Model &model, ArrayRef<FrozenWeight> frozen,
                                            bool isDouble) {
  std::vector<WrittenTensor> tensors;
  llvm::StringSet<> mapped;
  int64_t written = 0;
  auto add = [&](WrittenTensor tensor) {
    written += tensor.bytes;
    tensors.push_back(std::move(tensor));
  };
  auto fillUntil = [&](int64_t offset) {
    if (int64_t gap = offset - written; gap > 0)
      add({padding_prefix + std::to_string(tensors.size()), nullptr, "u8", {gap}, gap});
  };
  for (const FrozenWeight &weight : frozen) {
    const Parameter &parameter = *llvm::find_if(
        model.parameters, [&](const Parameter &other) { return other.name == weight.name; });
    fillUntil(weight.offset);
    mapped.insert(weight.name);
    const auto bytes = static_cast<int64_t>(parameter.bytes.size());
    add({parameter.name, &parameter, weight.type, parameter.shape,
         weight.type == "f32" ? bytes : bytes / 2, /*isFrozen=*/true});
  }
  fillUntil(int64_t(llvm::alignTo(written, kHeaderAlignment)));
  for (const Parameter &parameter : model.parameters)
    if (!mapped.contains(parameter.name))
      add({parameter.name, &parameter, isDouble ? "f64" : "f32", parameter.shape,
           static_cast<int64_t>(parameter.bytes.size()) *
               (isDouble && !parameter.isDouble ? 2 : 1)});
  return tensors;
}

static std::string headerOf(ArrayRef<WrittenTensor> tensors, ArrayRef<uint32_t> checksums) {
  json::Object header, ofTensors;
  int64_t offset = 0;
  for (auto [tensor, checksum] : llvm::zip_equal(tensors, checksums)) {
    header[tensor.name] =
        json::Object{{"dtype", StringRef(tensor.type).upper()},
                     {"shape", json::Array(tensor.shape)},
                     {"data_offsets", json::Array{offset, offset + tensor.bytes}}};
    offset += tensor.bytes;
    if (!tensor.values)
      continue;
    std::string digits; // utohexstr has one more for 0
    raw_string_ostream(digits) << format_hex_no_prefix(checksum, 8);
    ofTensors[tensor_checksum_prefix + tensor.name] = std::move(digits);
  }
  if (!ofTensors.empty())
    header["__metadata__"] = std::move(ofTensors);
  std::string text;
  raw_string_ostream(text) << json::Value(std::move(header));
  text.append((kHeaderAlignment - (text.size() + 8) % kHeaderAlignment) % kHeaderAlignment, ' ');
  return text;
}

/// In one pass over values that may be larger than memory: checksums, which all have the same
/// width, take their places in the header after them.
FailureOr<std::string> writeInitialParameters(const Model &model, ArrayRef<FrozenWeight> frozen,
                                              StringRef path, StringRef precision, Report &report) {
  const std::vector<WrittenTensor> tensors = tensorsOf(model, frozen, precision == "f64");
  std::vector<uint32_t> checksums(tensors.size());
  std::string header = headerOf(tensors, checksums);
  uint64_t length = header.size();
  OutputFile file(path, report);
  file.write({reinterpret_cast<const char *>(&length), sizeof(length)}); // little endian
  file.write({header.data(), header.size()});
  for (auto [tensor, checksum] : llvm::zip_equal(tensors, checksums)) {
    if (!tensor.values)
      file.write(SmallVector<char>(static_cast<size_t>(tensor.bytes), 0));
    else
      forEachPiece(*tensor.values, tensor.type, [&, &checksum = checksum](ArrayRef<char> piece) {
        file.write(piece);
        checksum = crc32c(checksum, piece.data(), piece.size());
      });
  }
  header = headerOf(tensors, checksums);
  file.rewrite(sizeof(length), {header.data(), header.size()});
  if (!file.finish())
    return failure();
  uint32_t digest = 0; // of checksums
  for (auto [tensor, checksum] : llvm::zip_equal(tensors, checksums))
    if (tensor.isFrozen)
      digest = crc32c(digest, reinterpret_cast<const char *>(&checksum), sizeof checksum);
  std::string digits;
  if (!frozen.empty())
    raw_string_ostream(digits) << format_hex_no_prefix(digest, 8);
  return digits;
}

LogicalResult writeValues(const Model &model, ArrayRef<std::string> names, StringRef path,
                          Report &report) {
  OutputFile file(path, report);
  for (const std::string &name : names)
    file.write(llvm::find_if(model.parameters, [&](const Parameter &parameter) {
                 return parameter.name == name;
               })->bytes);
  return success(file.finish());
}

} // namespace trainc
