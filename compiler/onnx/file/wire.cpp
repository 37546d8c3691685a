// SPDX-License-Identifier: Apache-2.0
//
// Protobuf's wire format. Groups, which ONNX never had, count as malformed.
#include "compiler/onnx/file/wire.h"

namespace trainc::reader {

bool WireReader::readVarint(uint64_t &value) {
  value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at == end)
      return fail();
    uint8_t byte = static_cast<uint8_t>(*at++);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      return true;
  }
  return fail();
}

bool WireReader::next(Field &field) {
  if (bad || at == end)
    return false;
  const char *start = at;
  uint64_t tag;
  if (!readVarint(tag))
    return false;
  if (tag >> 3 == 0 || tag >> 3 > (1 << 29) - 1)
    return fail();
  field.number = static_cast<int>(tag >> 3);
  field.wire = static_cast<Wire>(tag & 7);
  uint64_t length = 0;
  const char *value = at;
  switch (field.wire) {
  case Wire::varint:
    if (!readVarint(length))
      return false;
    field.contents = {value, at};
    field.whole = {start, at};
    return true;
  case Wire::fixed64:
    length = 8;
    break;
  case Wire::fixed32:
    length = 4;
    break;
  case Wire::bytes:
    if (!readVarint(length))
      return false;
    break;
  default:
    return fail();
  }
  if (length > static_cast<uint64_t>(end - at))
    return fail();
  field.contents = {at, static_cast<size_t>(length)};
  at += length;
  field.whole = {start, at};
  return true;
}

void appendVarint(std::string &out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

void appendVarintField(std::string &out, int number, uint64_t value) {
  appendVarint(out, static_cast<uint64_t>(number) << 3 | static_cast<uint64_t>(Wire::varint));
  appendVarint(out, value);
}

void appendBytesField(std::string &out, int number, llvm::ArrayRef<char> contents) {
  appendVarint(out, static_cast<uint64_t>(number) << 3 | static_cast<uint64_t>(Wire::bytes));
  appendVarint(out, contents.size());
  out.append(contents.data(), contents.size());
}

} // namespace trainc::reader
