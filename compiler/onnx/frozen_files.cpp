// SPDX-License-Identifier: Apache-2.0
//
// A tensor can stay in its file where the file has it in the type that the trainer reads, at a
// multiple of 64 bytes. A file is mapped from its first such tensor to its last. One that has much
// besides (weights that are trained) is left, and so are all where they are small: a folder that
// stands alone is worth more then.
#include "compiler/onnx/parameters/quantized_weights.h"
#include "compiler/onnx/reader.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <map>

using namespace llvm;

namespace trainc {

using namespace reader;

constexpr int64_t kLine = 64; // bytes
constexpr int64_t kWorthIt = int64_t{64} << 20;
constexpr int64_t kLeastShare = 8; // of a file all but an eighth is frozen weights

namespace {
struct Placed {
  std::string name;
  int64_t begin, bytes; // in the file
};
} // namespace

/// The bytes of each tensor that frozen weights consist of, as the file has them.
static StringMap<ArrayRef<char>> bytesInFile(const Model &model) {
  StringMap<ArrayRef<char>> bytes;
  for (const Parameter &parameter : model.parameters) {
    if (!parameter.quantized) {
      bytes[parameter.name] = parameter.inFile;
      continue;
    }
    for (const TensorBytes *tensor :
         {parameter.quantized->integers, parameter.quantized->scales, parameter.quantized->zeros})
      if (tensor)
        bytes[tensor->name] = tensor->inFile;
  }
  return bytes;
}

FrozenFiles frozenFiles(const Model &model, ArrayRef<FrozenWeight> weights) {
  const StringMap<ArrayRef<char>> inFile = bytesInFile(model);
  std::map<std::string, std::vector<Placed>> files;
  std::set<std::string> seen;
  auto add = [&](const FrozenTensor &tensor) {
    const ArrayRef<char> bytes = inFile.lookup(tensor.name);
    const auto place = model.file->placeOf(bytes);
    const bool isRounded = tensor.type != "u8" && tensor.type != "i8" &&
                           tensor.type != floatTypeInFile(model, tensor.name);
    if (place && !isRounded && place->second % kLine == 0 && seen.insert(tensor.name).second &&
        static_cast<int64_t>(bytes.size()) == tensor.bytes())
      files[place->first].push_back(
          {tensor.name, place->second, static_cast<int64_t>(bytes.size())});
  };
  for (const FrozenWeight &weight : weights)
    for (const FrozenTensor *tensor : {&weight.tensor, &weight.scales, &weight.zeros})
      if (!tensor->name.empty())
        add(*tensor);
  FrozenFiles result;
  int64_t all = 0;
  for (auto &[path, tensors] : files) {
    int64_t begin = tensors.front().begin, end = 0, used = 0;
    for (const Placed &tensor : tensors) {
      begin = std::min(begin, tensor.begin);
      end = std::max(end, tensor.begin + tensor.bytes);
      used += tensor.bytes;
    }
    begin = begin / frozen_page * frozen_page;
    if (used < (end - begin) / kLeastShare * (kLeastShare - 1))
      continue;
    result.parts.push_back({path, begin, end - begin, result.bytes});
    for (const Placed &tensor : tensors)
      result.places.emplace_back(tensor.name, result.bytes + tensor.begin - begin);
    result.bytes += static_cast<int64_t>(alignTo(end - begin, frozen_page));
    all += used;
  }
  return all < kWorthIt ? FrozenFiles() : result;
}

} // namespace trainc
