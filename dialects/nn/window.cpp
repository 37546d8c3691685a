// SPDX-License-Identifier: Apache-2.0
//
// What convolutions and pools share.
#include "dialects/nn/window.h"

using namespace mlir;

namespace trainc::nn {

std::array<int64_t, 3> inSpace(ArrayRef<int64_t> numbers, int64_t otherwise) {
  std::array<int64_t, 3> all;
  all.fill(otherwise);
  llvm::copy(numbers, all.end() - numbers.size());
  return all;
}

int64_t WindowSpace::meeting(int64_t point, int64_t tap) const {
  int64_t place = 0, stride = 1;
  for (int d = 2; d >= 0; --d) {
    int64_t at = point % result[d] * strides[d] + tap % kernel[d] * dilations[d] - before[d];
    if (at < 0 || at >= input[d])
      return -1;
    place += at * stride;
    stride *= input[d];
    point /= result[d];
    tap /= kernel[d];
  }
  return place;
}

static const int64_t *findOutside(ArrayRef<int64_t> list, int64_t least) {
  return llvm::find_if(
      list, [=](int64_t number) { return number < least || number > kLargestWindowNumber; });
}

LogicalResult checkWindowNumbers(std::optional<Location> location, int64_t space,
                                 ArrayRef<int64_t> strides, ArrayRef<int64_t> dilations,
                                 ArrayRef<int64_t> pads) {
  auto fits = [](ArrayRef<int64_t> list, int64_t count, int64_t least) {
    return static_cast<int64_t>(list.size()) == count && findOutside(list, least) == list.end();
  };
  if (!fits(strides, space, 1) || !fits(dilations, space, 1) || !fits(pads, 2 * space, 0))
    return emitOptionalError(location,
                             "strides and dilations have one positive number per dimension of "
                             "space, pads two that are not negative; expected ",
                             space, " dimensions and numbers up to ", kLargestWindowNumber);
  return success();
}

void WindowAttributes::splitPads(int64_t d, int64_t total) {
  int64_t space = strides.size(), less = total / 2;
  bool moreBehind = autoPad == "SAME_UPPER";
  pads[d] = moreBehind ? less : total - less;
  pads[d + space] = moreBehind ? total - less : less;
}

void WindowAttributes::padSame(int64_t d, int64_t size, int64_t reach) {
  int64_t stride = strides[d];
  if (isSame())
    splitPads(d, std::max<int64_t>(0, ((size + stride - 1) / stride - 1) * stride + reach - size));
}

FailureOr<SmallVector<int64_t>> spaceList(OnnxNode &node, StringRef name, int64_t space,
                                          int64_t otherwise) {
  auto list = node.integers(name).value_or(SmallVector<int64_t>(space, otherwise));
  if (static_cast<int64_t>(list.size()) != space)
    return node.error("attribute '" + name + "' has " + llvm::Twine(list.size()) +
                      " numbers, expected " + llvm::Twine(space));
  return list;
}

// Negative pads crop, which ONNX allows nowhere but in Pad.
static LogicalResult checkRange(OnnxNode &node, StringRef name, ArrayRef<int64_t> list,
                                int64_t least) {
  const int64_t *outside = findOutside(list, least);
  if (outside == list.end())
    return success();
  return node.error(
      "attribute '" + name + "' has " + llvm::Twine(*outside) + ", expected " + llvm::Twine(least) +
          " to " + llvm::Twine(kLargestWindowNumber),
      least == 0 && *outside < 0 ? "a Slice in front of the node instead of a negative pad" : "");
}

FailureOr<WindowAttributes> readWindow(OnnxNode &node, int64_t space) {
  WindowAttributes result;
  auto strides = spaceList(node, "strides", space, 1);
  auto dilations = spaceList(node, "dilations", space, 1);
  if (failed(strides) || failed(dilations))
    return failure();
  result.strides = *strides;
  result.dilations = *dilations;
  result.autoPad = node.string("auto_pad", "NOTSET");
  result.pads = node.integers("pads").value_or(SmallVector<int64_t>(2 * space, 0));
  if (static_cast<int64_t>(result.pads.size()) != 2 * space)
    return node.error("attribute 'pads' has " + llvm::Twine(result.pads.size()) +
                      " numbers, expected " + llvm::Twine(2 * space));
  if (failed(checkRange(node, "strides", result.strides, 1)) ||
      failed(checkRange(node, "dilations", result.dilations, 1)) ||
      failed(checkRange(node, "pads", result.pads, 0)))
    return failure();
  if (!llvm::is_contained({"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}, result.autoPad))
    return node.error("attribute 'auto_pad' is '" + llvm::Twine(result.autoPad) +
                      "', expected NOTSET, SAME_UPPER, SAME_LOWER or VALID");
  if (result.isSame() && node.hasAttribute("pads") &&
      llvm::any_of(result.pads, [](int64_t pad) { return pad; }))
    return node.error("attributes 'auto_pad' and 'pads' are both given");
  if (result.autoPad == "VALID")
    result.pads.assign(2 * space, 0);
  return result;
}

} // namespace trainc::nn
