// SPDX-License-Identifier: Apache-2.0
//
// The parameters' values as safetensors: a length, a JSON header, then the bytes of each tensor.
#include "compiler/onnx/output_file.h"
#include "compiler/onnx/reader.h"
#include "llvm/Support/JSON.h"
#include <cstring>

using namespace llvm;
using namespace mlir;

namespace trainc {

using namespace reader;

constexpr size_t kHeaderAlignment = 64; // bytes; so that tensors can be used where they are mapped

static std::string headerOf(const Model &model, bool isDouble) {
  json::Object header;
  int64_t offset = 0;
  for (const Parameter &parameter : model.parameters) {
    int64_t width = parameter.isDouble ? 8 : 4;
    int64_t bytes = static_cast<int64_t>(parameter.bytes.size()) / width * (isDouble ? 8 : 4);
    header[parameter.name] = json::Object{{"dtype", isDouble ? "F64" : "F32"},
                                          {"shape", json::Array(parameter.shape)},
                                          {"data_offsets", json::Array{offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text;
  raw_string_ostream(text) << json::Value(std::move(header));
  text.append((kHeaderAlignment - (text.size() + 8) % kHeaderAlignment) % kHeaderAlignment, ' ');
  return text;
}

static void writeWidened(OutputFile &file, ArrayRef<char> floats) {
  constexpr size_t kBlock = 16384; // elements
  std::vector<double> block;
  while (!floats.empty()) {
    size_t count = std::min(kBlock, floats.size() / sizeof(float));
    block.resize(count);
    for (size_t i = 0; i < count; ++i) {
      float value;
      std::memcpy(&value, floats.data() + i * sizeof(float), sizeof(float));
      block[i] = value;
    }
    file.write({reinterpret_cast<const char *>(block.data()), count * sizeof(double)});
    floats = floats.drop_front(count * sizeof(float));
  }
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
    if (isDouble && !parameter.isDouble)
      writeWidened(file, parameter.bytes);
    else
      file.write(parameter.bytes); // decideParameters refuses f64 in an f32 run
  return success(file.finish());
}

} // namespace trainc
