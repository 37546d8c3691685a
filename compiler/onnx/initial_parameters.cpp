// SPDX-License-Identifier: Apache-2.0
//
// The parameters' values as safetensors: a length, a JSON header, then the bytes of each tensor.
#include "compiler/onnx/file/converted_tensors.h"
#include "compiler/onnx/file/half_model.h"
#include "compiler/onnx/file/output_file.h"
#include "compiler/onnx/parameters/quantized_weights.h"
#include "compiler/onnx/reader.h"
#include "compiler/onnx/rounded_weights.h"
#include "dialects/errors/internal_error.h"
#include "runtime/files/crc32c.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include <cstring>
#include <functional>
#include <map>
#include <numeric>

using namespace llvm;
using namespace mlir;

namespace trainc {

using namespace reader;

// Bytes; so that tensors can be used where they are mapped.
constexpr size_t kHeaderAlignment = 64;

using Taker = llvm::function_ref<void(ArrayRef<char>)>;

constexpr size_t kPiece = 16384; // elements

/// Floats in another type of floats, piece by piece.
static void forEachPiece(ArrayRef<char> floats, bool areDouble, StringRef type, Taker take) {
  const int32_t halfType = halfTypeNamed(type);
  if (!halfType && (type != "f64" || areDouble)) // decideParameters refuses f64 in f32
    return take(floats);
  std::vector<double> block;
  while (!floats.empty()) {
    size_t count = std::min(kPiece, floats.size() / sizeof(float));
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

std::vector<char> valuesOf(const Parameter &parameter) {
  if (!parameter.quantized)
    return parameter.bytes.vec();
  const std::vector<float> floats = parameter.quantized->values();
  const auto *bytes = reinterpret_cast<const char *>(floats.data());
  return {bytes, bytes + floats.size() * sizeof(float)};
}

static void forEachPiece(const Parameter &parameter, StringRef type, Taker take) {
  const std::vector<char> values = parameter.quantized ? valuesOf(parameter) : std::vector<char>();
  forEachPiece(parameter.quantized ? ArrayRef(values) : parameter.bytes, parameter.isDouble, type,
               take);
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
    if (!parameter.isFrozen() &&
        (parameter.isDouble ? holdsBits<uint64_t>(parameter.bytes, 0xfff0000000000000)
                            : holdsBits<uint32_t>(parameter.bytes, 0xff800000)))
      names.push_back(parameter.name);
  return names;
}

namespace {
/// A tensor of the file; without `forEach`, what fills the gap behind a frozen one.
struct WrittenTensor {
  std::string name;
  std::string type; // `f32`
  std::vector<int64_t> shape;
  int64_t bytes;
  std::function<void(Taker)> forEach; // piece of its values
  bool isFrozen = false, staysInFile = false;
};

/// The values of the tensors that frozen weights consist of, by name.
class FrozenValues {
public:
  FrozenValues(const Model &model, ArrayRef<FrozenTensor> frozen) {
    StringMap<StringRef> types;
    for (const FrozenTensor &tensor : frozen)
      types[tensor.name] = tensor.type;
    for (const Parameter &parameter : model.parameters) {
      const std::string type = types.lookup(parameter.name).str();
      if (type.empty())
        continue;
      if (parameter.quantized)
        addIntegers(*parameter.quantized, types);
      else if (std::optional<FrozenWeight> rounded =
                   roundedWeight(model, parameter, roundedTo(type)))
        addRounded(parameter, *rounded, type == "u8");
      else
        values[parameter.name] = [&parameter, type](Taker take) {
          forEachPiece(parameter, type, take);
        };
    }
  }

  std::function<void(Taker)> of(const std::string &name) const {
    auto found = values.find(name);
    if (found == values.end())
      internalError("the frozen tensor '" + name + "' has no values");
    return found->second;
  }

private:
  static StringRef roundedTo(StringRef type) {
    return type == "u8" ? "int4" : type == "i8" ? "int8" : "file";
  }

  void addIntegers(const QuantizedWeight &weight, const StringMap<StringRef> &types) {
    for (const TensorBytes *tensor : {weight.integers, weight.scales, weight.zeros})
      if (tensor)
        values[tensor->name] = [tensor, type = types.lookup(tensor->name).str()](Taker take) {
          forEachPiece(tensor->bytes, false, type, take);
        };
  }

  void addRounded(const Parameter &parameter, const FrozenWeight &rounded, bool toFourBits) {
    for (bool areScales : {false, true})
      values[areScales ? rounded.scales.name : parameter.name] = [&parameter, toFourBits,
                                                                  areScales](Taker take) {
        forEachRounded(parameter.bytes, toFourBits, areScales, take);
      };
  }

  StringMap<std::function<void(Taker)>> values;
};
} // namespace

/// Frozen weights first, side by side as the program has them in memory.
static std::vector<WrittenTensor> tensorsOf(const Model &model, ArrayRef<FrozenTensor> frozen,
                                            int64_t bytesInFiles, bool isDouble) {
  std::vector<WrittenTensor> tensors;
  llvm::StringSet<> mapped;
  int64_t written = 0;
  auto add = [&](const std::string &name, const std::string &type, std::vector<int64_t> shape,
                 std::function<void(Taker)> forEach) {
    const int64_t bytes =
        std::accumulate(shape.begin(), shape.end(), bytesOfType(type), std::multiplies<>());
    written += bytes;
    tensors.push_back({name, type, std::move(shape), bytes, std::move(forEach)});
  };
  auto fillUntil = [&](int64_t offset) {
    if (int64_t gap = offset - written; gap > 0)
      add(padding_prefix + std::to_string(tensors.size()), "u8", {gap}, nullptr);
  };
  const FrozenValues values(model, frozen);
  for (const FrozenTensor &tensor : frozen) {
    mapped.insert(tensor.name);
    if (tensor.offset < bytesInFiles) {
      tensors.push_back({tensor.name, tensor.type, tensor.shape, 0, values.of(tensor.name),
                         /*isFrozen=*/true, /*staysInFile=*/true});
      continue;
    }
    fillUntil(tensor.offset - bytesInFiles);
    add(tensor.name, tensor.type, tensor.shape, values.of(tensor.name));
    tensors.back().isFrozen = true;
  }
  fillUntil(int64_t(llvm::alignTo(written, kHeaderAlignment)));
  const std::string type = isDouble ? "f64" : "f32";
  for (const Parameter &parameter : model.parameters)
    if (!mapped.contains(parameter.name))
      add(parameter.name, type, parameter.shape,
          [&parameter, type](Taker take) { forEachPiece(parameter, type, take); });
  return tensors;
}

static std::string headerOf(ArrayRef<WrittenTensor> tensors, ArrayRef<uint32_t> checksums,
                            const FrozenFiles &files) {
  json::Object header, ofTensors;
  int64_t offset = 0;
  for (auto [tensor, checksum] : llvm::zip_equal(tensors, checksums)) {
    if (!tensor.staysInFile)
      header[tensor.name] =
          json::Object{{"dtype", StringRef(tensor.type).upper()},
                       {"shape", json::Array(tensor.shape)},
                       {"data_offsets", json::Array{offset, offset + tensor.bytes}}};
    offset += tensor.bytes;
    if (!tensor.forEach)
      continue;
    std::string digits; // utohexstr has one more for 0
    raw_string_ostream(digits) << format_hex_no_prefix(checksum, 8);
    ofTensors[tensor_checksum_prefix + tensor.name] = std::move(digits);
  }
  for (auto [i, part] : llvm::enumerate(files.parts))
    ofTensors[frozen_file_prefix + std::to_string(i)] = part.path;
  if (!ofTensors.empty())
    header["__metadata__"] = std::move(ofTensors);
  std::string text;
  raw_string_ostream(text) << json::Value(std::move(header));
  const bool isMapped = llvm::any_of(
      tensors, [](const WrittenTensor &tensor) { return tensor.isFrozen && !tensor.staysInFile; });
  const size_t alignment = isMapped ? size_t{frozen_page} : kHeaderAlignment;
  text.append((alignment - (text.size() + 8) % alignment) % alignment, ' ');
  return text;
}

/// In one pass over values that may be larger than memory: checksums, which all have the same
/// width, take their places in the header after them.
FailureOr<std::string> writeInitialParameters(const Model &model, ArrayRef<FrozenTensor> frozen,
                                              const FrozenFiles &files, StringRef path,
                                              StringRef precision, Report &report) {
  const std::vector<WrittenTensor> tensors =
      tensorsOf(model, frozen, files.bytes, precision == "f64");
  std::vector<uint32_t> checksums(tensors.size());
  std::string header = headerOf(tensors, checksums, files);
  uint64_t length = header.size();
  OutputFile file(path, report);
  file.write({reinterpret_cast<const char *>(&length), sizeof(length)}); // little endian
  file.write({header.data(), header.size()});
  for (auto [tensor, checksum] : llvm::zip_equal(tensors, checksums)) {
    if (!tensor.forEach)
      file.write(SmallVector<char>(static_cast<size_t>(tensor.bytes), 0));
    else
      tensor.forEach([&, &checksum = checksum, stays = tensor.staysInFile](ArrayRef<char> piece) {
        if (!stays)
          file.write(piece);
        checksum = crc32c(checksum, piece.data(), piece.size());
      });
    model.file->releasePages();
  }
  header = headerOf(tensors, checksums, files);
  file.rewrite(sizeof(length), {header.data(), header.size()});
  if (!file.finish())
    return failure();
  std::map<std::string, uint32_t> ofFrozen; // by name: wherever they lie
  for (auto [tensor, checksum] : llvm::zip_equal(tensors, checksums))
    if (tensor.isFrozen)
      ofFrozen[tensor.name] = checksum;
  uint32_t digest = 0; // of checksums
  for (const auto &[name, checksum] : ofFrozen)
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
    forEachPiece(*llvm::find_if(model.parameters,
                                [&](const Parameter &parameter) { return parameter.name == name; }),
                 "f32", [&](ArrayRef<char> piece) { file.write(piece); });
  return success(file.finish());
}

} // namespace trainc
