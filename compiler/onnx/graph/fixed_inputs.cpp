// SPDX-License-Identifier: Apache-2.0
//
// Problem: sampling rates, shapes and flags are inputs in many files, but a program needs them when
// it is compiled.
//
// Method: such an input becomes an initializer, which ONNX calls its default value. Exports keep
// it.
#include "compiler/onnx/graph/inputs.h"
#include "runtime/files/conversion.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <cstring>

using namespace llvm;

namespace trainc::reader {

using onnx::TensorProto;

namespace {

class InputFixer {
public:
  InputFixer(ModelFile &file, Ledger &ledger, Report &report)
      : file(file), ledger(ledger), report(report) {}

  void fix(StringRef text) {
    size_t equals = 0;
    const onnx::ValueInfoProto *input = nullptr;
    while (!input && (equals = text.find('=', equals + 1)) != StringRef::npos)
      input = inputCalled(text.take_front(equals)); // names may hold equals signs
    if (!input) {
      std::vector<std::string> names;
      for (const auto &one : file.graph().input())
        names.push_back(one.name());
      return fail("no input is given a value by '" + text + "'",
                  "NAME=VALUE or NAME=FILE.npy, with NAME one of " + join(names, ", "));
    }
    name = input->name();
    if (!ledger.fixed.insert(name).second)
      return fail("input '" + name + "' is given twice", "one --constant for each input");
    if (!input->type().has_tensor_type())
      return fail("input '" + name + "' is not a tensor");
    type = &input->type().tensor_type();
    StringRef value = text.drop_front(equals + 1);
    values = std::make_unique<TensorBytes>();
    values->name = name;
    values->dataType = type->elem_type();
    if (value.ends_with(".npy") ? !readFile(value.str()) : !readText(value))
      return;
    for (int i = 0; i < file.graph().initializer_size(); ++i)
      if (file.graph().initializer(i).name() == name)
        return file.replaceInitializer(i, std::move(values));
    file.addInitializer(std::move(values));
  }

private:
  const onnx::ValueInfoProto *inputCalled(StringRef called) const {
    auto found = find_if(file.graph().input(),
                         [&](const auto &input) { return called == StringRef(input.name()); });
    return found == file.graph().input().end() ? nullptr : &*found;
  }

  void fail(const Twine &message, const Twine &advice = "") {
    (void)report.error(ExitCode::usage, Subject::ofOption("--constant"), message, advice);
  }

  template <typename T> void append(T value) {
    values->storage.append(reinterpret_cast<const char *>(&value), sizeof(value));
    ++values->count;
  }

  // Appends one number of the input's type.
  bool appendNumber(StringRef text) {
    int64_t integer = 0;
    double real = 0;
    bool isInteger = !text.getAsInteger(0, integer), isReal = !text.getAsDouble(real);
    bool isInfinite = text.trim("+-").equals_insensitive("inf"); // as somebody wrote it
    switch (values->dataType) {
    case TensorProto::FLOAT:
      append(static_cast<float>(real));
      return isReal && (isInfinite || std::isfinite(static_cast<float>(real)));
    case TensorProto::DOUBLE:
      append(real);
      return isReal && (isInfinite || std::isfinite(real));
    case TensorProto::INT32:
      append(static_cast<int32_t>(integer));
      return isInteger && isInt<32>(integer);
    case TensorProto::INT64:
      append(integer);
      return isInteger;
    case TensorProto::BOOL:
      append(static_cast<char>(text == "true" || integer != 0));
      return isInteger || text == "true" || text == "false";
    default:
      return false;
    }
  }

  bool readText(StringRef text) {
    SmallVector<StringRef> parts;
    StringRef list = text;
    if (list.consume_front("[") && list.consume_back("]"))
      text = list;
    text.split(parts, ',');
    values->count = 0;
    for (StringRef part : parts)
      if (!appendNumber(part.trim())) {
        fail("'" + part + "' is not a value of input '" + name + "', which is " +
                 elementName(values->dataType),
             "numbers between commas, or FILE.npy");
        return false;
      }
    values->bytes = {values->storage.data(), values->storage.size()};
    return shapeOfText();
  }

  // The sizes that the file says; one that it does not say is what is left.
  bool shapeOfText() {
    int64_t known = 1, open = -1;
    bool fits = type->has_shape() || values->count == 1;
    for (const auto &dimension : type->shape().dim()) {
      int64_t size = dimension.dim_value();
      values->shape.push_back(size);
      if (size > 0) {
        fits &= size <= values->count;
        known *= fits ? size : 1;
      } else {
        fits &= open < 0;
        open = static_cast<int64_t>(values->shape.size()) - 1;
      }
    }
    fits &= values->count % known == 0;
    if (fits && open >= 0)
      values->shape[open] = values->count / known;
    else
      fits &= known == values->count;
    if (!fits)
      fail("input '" + name + "' is not of " + Twine(values->count) + " elements", "FILE.npy");
    return fits;
  }

  bool readFile(const std::string &path) {
    auto target = dataType();
    if (!target) {
      fail("input '" + name + "' has elements of type " + elementName(values->dataType));
      return false;
    }
    file.noteRead(path);
    try {
      input_file npy(path, static_cast<int>(ExitCode::usage));
      npy_header header = read_npy_header(npy);
      if (!converts_without_loss(header.type, *target)) {
        fail(path + ": holds " + name_of(header.type) + ", expected " +
             elementName(values->dataType));
        return false;
      }
      values->shape.assign(header.shape.begin(), header.shape.end());
      values->count = header.element_count;
      std::vector<char> bytes(header.element_count * bytes_of(header.type));
      npy.read(header.data_offset, bytes.data(), static_cast<int64_t>(bytes.size()));
      values->storage.resize(values->count * elementBytes(values->dataType));
      convert(header.type, bytes.data(), *target, values->storage.data(), values->count);
    } catch (const std::exception &problem) {
      fail(problem.what());
      return false;
    }
    values->bytes = {values->storage.data(), values->storage.size()};
    return fitsFile(path);
  }

  bool fitsFile(const std::string &path) {
    auto dimensions = type->shape().dim();
    bool fits = !type->has_shape() || dimensions.size() == static_cast<int>(values->shape.size());
    for (size_t i = 0; fits && type->has_shape() && i < values->shape.size(); ++i)
      fits = dimensions[i].dim_value() <= 0 || dimensions[i].dim_value() == values->shape[i];
    if (!fits)
      fail(path + ": has other sizes than input '" + name + "'");
    return fits;
  }

  std::optional<data_type> dataType() const {
    for (const data_type_row &row : data_type_rows)
      if (row.onnx == static_cast<uint64_t>(values->dataType))
        return row.type;
    return std::nullopt;
  }

  ModelFile &file;
  Ledger &ledger;
  Report &report;
  std::string name; // of the input
  const onnx::TypeProto_Tensor *type = nullptr;
  std::unique_ptr<TensorBytes> values;
};

} // namespace

bool fixInputs(ModelFile &file, const Recipe &recipe, Ledger &ledger, Report &report) {
  size_t before = report.size();
  InputFixer fixer(file, ledger, report);
  for (const std::string &text : recipe.constants)
    fixer.fix(text);
  return report.size() == before;
}

} // namespace trainc::reader
