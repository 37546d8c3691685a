// SPDX-License-Identifier: Apache-2.0
//
// An ONNX file in memory: the model as protobuf objects without the values of its
// initializers, which stay mapped.
#pragma once

#include "compiler/onnx/file/mapped_file.h"
#include "compiler/report.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include <map>
#include <onnx/onnx_pb.h>
#include <optional>
#include <set>
#include <vector>

namespace trainc::reader {

/// Where the values of one tensor lie before its element type is known.
struct Payload {
  /// Values in the form of a packed field: in the file, or gathered where they stand one by one.
  struct Piece {
    llvm::ArrayRef<char> packed;
    std::string gathered;
    llvm::ArrayRef<char> bytes() const {
      return gathered.empty() ? packed : llvm::ArrayRef(gathered.data(), gathered.size());
    }
  };
  llvm::ArrayRef<char> raw;
  std::vector<std::pair<int, std::vector<Piece>>> typed; // field, its pieces
};

/// Values of a tensor as little-endian elements of the file's type.
struct TensorBytes {
  std::string name;
  int32_t dataType = 0; // onnx::TensorProto::DataType
  llvm::SmallVector<int64_t> shape;
  int64_t count = 0;
  llvm::ArrayRef<char> bytes;
  std::string storage;         // holds `bytes` where the file has them in another form
  llvm::ArrayRef<char> inFile; // as they are there; empty: not in one piece
};

/// True of a node of ONNX's own operator, whose domain is written as "" once a file is open.
inline bool isOnnx(const onnx::NodeProto &node, llvm::StringRef opType) {
  return node.domain().empty() && node.op_type() == opType;
}

/// A tensor of another name with the same bytes, which remain those of the file or of `values`.
std::unique_ptr<TensorBytes> sharedCopy(const TensorBytes &values, std::string name);

/// A tensor with values of its own: little-endian elements of the type.
std::unique_ptr<TensorBytes> ownTensor(std::string name, int32_t dataType,
                                       llvm::ArrayRef<int64_t> shape, std::string values);

/// Puts a node before the one that has this number.
void insertNode(onnx::GraphProto &graph, onnx::NodeProto node, int number);

void setInteger(onnx::NodeProto &node, llvm::StringRef name, int64_t number);
void setIntegers(onnx::NodeProto &node, llvm::StringRef name, llvm::ArrayRef<int64_t> numbers);
void setTensor(onnx::NodeProto &node, llvm::StringRef name, const onnx::TensorProto &tensor);

/// Says what a value of the graph is.
void describe(onnx::ValueInfoProto &value, llvm::StringRef name, int32_t dataType,
              llvm::ArrayRef<int64_t> shape);

class ModelFile {
public:
  /// Reads a binary file, or ONNX's text form where the name ends in .onnxtxt or .onnxtext.
  static std::shared_ptr<ModelFile> open(llvm::StringRef path, Report &report);

  const std::string &path() const { return filePath; }
  /// That, the files of external data, and those that values came from besides.
  std::vector<std::string> paths() const;
  void noteRead(const std::string &path) { alsoRead.push_back(path); }
  const onnx::ModelProto &model() const { return *proto; }
  const onnx::GraphProto &graph() const { return proto->graph(); }
  /// Of graph().initializer(index).
  const TensorBytes &initializer(size_t index) const { return *initializers[index]; }
  /// The initializer of this name; null: there is none.
  const TensorBytes *find(llvm::StringRef name) const { return byName.lookup(name); }
  /// How the file has an initializer that is a dense float here: "float16", "bfloat16" or "sparse";
  /// empty: as it is here.
  llvm::StringRef formInFile(const std::string &name) const;
  /// The type of 16 bits that the file computes in, which is read as float32; else 0.
  int32_t halfType() const { return computesIn; }
  /// Whether an export can have the types of such a file: no rewrite added floats of its own.
  bool exportsHalves() const;

  /// The values of a tensor of a node. Null, with a message, where they are not there.
  std::unique_ptr<TensorBytes> tensorOfNode(const onnx::TensorProto &tensor,
                                            std::string &why) const;
  /// The same of an attribute that holds a tensor, numbers or one number.
  std::unique_ptr<TensorBytes> tensorOfAttribute(const onnx::AttributeProto &attribute,
                                                 std::string &why) const;
  /// Puts the values of such tensors back into a copy of the model's nodes.
  void restoreValues(onnx::GraphProto &copy) const;

  /// The file of external data that has these bytes, and their offset in it. None: another file.
  std::optional<std::pair<std::string, int64_t>> placeOf(llvm::ArrayRef<char> bytes) const;
  /// Gives back the memory of values that were read from files: they may be larger than memory.
  void releasePages() const;

  /// For rewrites of the model, which exports then hold too.
  onnx::GraphProto &editableGraph() { return *proto->mutable_graph(); }
  /// Adds an initializer; `values.name` must be new. Its bytes may be those of another one.
  void addInitializer(std::unique_ptr<TensorBytes> values);
  /// Puts another one in the place of graph().initializer(index).
  void replaceInitializer(int index, std::unique_ptr<TensorBytes> values);

private:
  bool load(llvm::ArrayRef<char> bytes, Report &report);
  void keep(std::unique_ptr<TensorBytes> values);
  bool resolve(const std::vector<Payload> &payloads, Report &report);
  bool makeDense(Report &report);
  void widenHalvesInNodes(const std::set<std::string> &onlyCast);
  void widenHalf(const onnx::NodeProto &node, onnx::AttributeProto &attribute,
                 const std::set<std::string> &onlyCast);
  bool resolveExternal(const onnx::TensorProto &tensor, TensorBytes &result, Report &report);

  std::string filePath;
  std::unique_ptr<MappedFile> mapped;
  std::string binary; // form of a text file
  std::unique_ptr<onnx::ModelProto> proto;
  std::vector<llvm::ArrayRef<char>> valuesInNodes; // large ones, by number (strip.h)
  std::vector<std::unique_ptr<TensorBytes>> initializers;
  llvm::StringMap<const TensorBytes *> byName;
  std::map<std::string, std::string> forms; // of those that were converted
  int32_t computesIn = 0;
  bool addedFloats = false;
  std::vector<std::unique_ptr<TensorBytes>> replaced;          // others may share their bytes
  std::map<std::string, std::unique_ptr<MappedFile>> external; // by location
  std::vector<std::string> alsoRead;
};

/// The values of a tensor that holds them. Null, with a message, where they are not there.
std::unique_ptr<TensorBytes> tensorBytes(const onnx::TensorProto &tensor, std::string &why);

/// Bytes of one element, 0 for types that no tensor here may have.
int64_t elementBytes(int32_t dataType);
/// Integers of four bits, two to a byte, which weights alone may have; newer than the schema.
constexpr int32_t kUint4 = 21, kInt4 = 22;
inline bool isFourBits(int32_t dataType) { return dataType == kUint4 || dataType == kInt4; }
/// Of so many elements.
int64_t valueBytes(int32_t dataType, int64_t count);
bool isFloat(int32_t dataType);
bool isDouble(int32_t dataType);
std::string elementName(int32_t dataType);

} // namespace trainc::reader
