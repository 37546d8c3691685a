// SPDX-License-Identifier: Apache-2.0
//
// The parameters' values as safetensors: a length, a JSON header, then the bytes of each tensor.
#include "compiler/onnx/output_file.h"
#include "compiler/onnx/reader.h"
#include "runtime/crc32c.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringExtras.h"
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

static std::string headerOf(const Model &model, bool isDouble) {
  json::Object header, checksums;
  int64_t offset = 0;
  for (const Parameter &parameter : model.parameters) {
    int64_t bytes = 0;
    uint32_t checksum = 0;
    forEachPiece(parameter, isDouble, [&](ArrayRef<char> piece) {
      checksum = crc32c(checksum, piece.data(), piece.size());
      bytes += static_cast<int64_t>(piece.size());
    });
    header[parameter.name] = json::Object{{"dtype", isDouble ? "F64" : "F32"},
                                          {"shape", json::Array(parameter.shape)},
                                          {"data_offsets", json::Array{offset, offset + bytes}}};
    checksums[tensor_checksum_prefix + parameter.name] =
        utohexstr(checksum, /*LowerCase=*/true, /*Width=*/8);
    offset += bytes;
  }
  if (!checksums.empty())
    header["__metadata__"] = std::move(checksums);
  std::string text;
  raw_string_ostream(text) << json::Value(std::move(header));
  text.append((kHeaderAlignment - (text.size() + 8) % kHeaderAlignment) % kHeaderAlignment, ' ');
  return text;
}

LogicalResult writeInitialParameters(const Model &model, StringRef path, StringRef precision,
                                     Report &report) {
  bool isDouble = precision == "f64";
  std::string header = headerOf(model, isDouble);
  uint64_t length = header.size();
  OutputFile file(path, report);
  file.write({reinterpret_cast<const char *>(&length), sizeof(length)}); // little endian
  file.write({header.data(), header.size()});
  for (const Parameter &parameter : model.parameters)
    forEachPiece(parameter, isDouble, [&](ArrayRef<char> piece) { file.write(piece); });
  return success(file.finish());
}

} // namespace trainc
