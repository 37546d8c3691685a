// SPDX-License-Identifier: Apache-2.0
//
// The parameters' values as safetensors: a length, a JSON header, then the bytes of each tensor.
#include "compiler/onnx/file/output_file.h"
#include "compiler/onnx/reader.h"
#include "runtime/files/crc32c.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include <cstring>

using namespace llvm;
using namespace mlir;

namespace trainc {

using namespace reader;

constexpr size_t kHeaderAlignment = 64; // bytes; so that tensors can be used where they are mapped

/// The values as the file holds them, piece by piece.
static void forEachPiece(const Parameter &parameter, bool isDouble,
                         llvm::function_ref<void(ArrayRef<char>)> take) {
  if (!isDouble || parameter.isDouble) { // decideParameters refuses f64 in an f32 run
    take(parameter.bytes);
    return;
  }
  constexpr size_t kBlock = 16384; // elements
  std::vector<double> block;
  for (ArrayRef<char> floats = parameter.bytes; !floats.empty();) {
    size_t count = std::min(kBlock, floats.size() / sizeof(float));
    block.resize(count);
    for (size_t i = 0; i < count; ++i) {
      float value;
      std::memcpy(&value, floats.data() + i * sizeof(float), sizeof(float));
      block[i] = value;
    }
    take({reinterpret_cast<const char *>(block.data()), count * sizeof(double)});
    floats = floats.drop_front(count * sizeof(float));
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

static std::string headerOf(const Model &model, bool isDouble, ArrayRef<uint32_t> checksums) {
  json::Object header, ofTensors;
  int64_t offset = 0;
  for (auto [parameter, checksum] : llvm::zip_equal(model.parameters, checksums)) {
    const bool widens = isDouble && !parameter.isDouble;
    const auto end = offset + static_cast<int64_t>(parameter.bytes.size()) * (widens ? 2 : 1);
    header[parameter.name] = json::Object{{"dtype", isDouble ? "F64" : "F32"},
                                          {"shape", json::Array(parameter.shape)},
                                          {"data_offsets", json::Array{offset, end}}};
    std::string digits; // utohexstr has one more for 0
    raw_string_ostream(digits) << format_hex_no_prefix(checksum, 8);
    ofTensors[tensor_checksum_prefix + parameter.name] = std::move(digits);
    offset = end;
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
LogicalResult writeInitialParameters(const Model &model, StringRef path, StringRef precision,
                                     Report &report) {
  bool isDouble = precision == "f64";
  std::vector<uint32_t> checksums(model.parameters.size());
  std::string header = headerOf(model, isDouble, checksums);
  uint64_t length = header.size();
  OutputFile file(path, report);
  file.write({reinterpret_cast<const char *>(&length), sizeof(length)}); // little endian
  file.write({header.data(), header.size()});
  for (auto [i, parameter] : llvm::enumerate(model.parameters))
    forEachPiece(parameter, isDouble, [&, &checksum = checksums[i]](ArrayRef<char> piece) {
      file.write(piece);
      checksum = crc32c(checksum, piece.data(), piece.size());
    });
  header = headerOf(model, isDouble, checksums);
  file.rewrite(sizeof(length), {header.data(), header.size()});
  return success(file.finish());
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
