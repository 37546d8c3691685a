// SPDX-License-Identifier: Apache-2.0
//
// Reads and writes protobuf's wire format field by field, without building objects: weights stay
// where the file is mapped.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <string>

namespace trainc::reader {

// Field numbers of metadata_props, which schemas before ONNX 1.16 do not have.
constexpr int kValueMetadata = 4; // of a ValueInfoProto
constexpr int kNodeMetadata = 9;
constexpr int kTensorMetadata = 16;
constexpr int kGraphMetadata = 16;

enum class Wire { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct Field {
  int number = 0;
  Wire wire = Wire::varint;
  llvm::ArrayRef<char> contents; // without tag and length
  llvm::ArrayRef<char> whole;    // tag included
};

class WireReader {
public:
  explicit WireReader(llvm::ArrayRef<char> bytes) : at(bytes.begin()), end(bytes.end()) {}

  /// False at the end and where the bytes are not protobuf message; `malformed` tells which.
  bool next(Field &field);
  bool readVarint(uint64_t &value);
  bool malformed() const { return bad; }
  bool done() const { return at == end; }

private:
  bool fail() {
    bad = true;
    return false;
  }
  const char *at;
  const char *end;
  bool bad = false;
};

void appendVarint(std::string &out, uint64_t value);
void appendVarintField(std::string &out, int number, uint64_t value);
void appendBytesField(std::string &out, int number, llvm::ArrayRef<char> contents);

} // namespace trainc::reader
