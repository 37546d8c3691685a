// SPDX-License-Identifier: Apache-2.0
//
// trainc-fill: puts seeded weights into an exported graph, so that a large model
// needs no large file. Every floating-point initializer without data gets some, in
// an external data file beside the written model. What a tensor gets depends on
// its name, its shape and the seed alone, and is the same on every machine:
//
//   two or more axes           normal with deviation 0.02 (--deviation), or with `he` that of He
//                              et al. 2015: sqrt(2 / inputs), of all axes but the first
//   one axis, name ends with
//   "weight", "gamma", "scale" ones: the weight of a norm
//   any other                  zeros: a bias
//
// A tensor whose doc_string says "copy of NAME" or "transpose of NAME" gets the
// values of that one: so a graph keeps the ties that its exporter wrote out.
#include "runtime/files/output_file.h"
#include "runtime/process/signals.h"
#include "tools/run_tool.h"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <onnx/onnx_pb.h>

namespace {

using onnx::TensorProto;

constexpr int64_t kPageBytes = 4096; // tensors begin on pages, for readers that map the file

constexpr const char *kPage =
    R"(usage: trainc-fill GRAPH.onnx -o MODEL.onnx [options]

Writes MODEL.onnx and MODEL.onnx.data: GRAPH.onnx with seeded random weights in place of the
initializers that have no data.

exit code  0 done, 2 bad command line, 3 no model or a damaged one, 5 the result could not be
           written, 6 no memory
)";

struct FillOptions : trainc::tools::ToolOptions {
  std::string model;
  uint64_t seed = 1;
  double deviation = 0.02; // 0: by the number of inputs

  std::string graph() const { return word(0); }
};

/// `he` is 0.
std::string readDeviation(const std::string &text, trainc::value_range, void *options) {
  double &deviation = static_cast<FillOptions *>(options)->deviation;
  if (text == "he") {
    deviation = 0;
    return "";
  }
  const std::string problem = trainc::read_value(text, {0, trainc::unbounded, false}, deviation);
  return problem.empty() && deviation == 0 ? "0 is not above 0" : problem;
}

std::vector<trainc::option_row> fillRows() {
  using trainc::tools::toolOption;
  trainc::option_row deviation =
      toolOption("deviation", &FillOptions::deviation, "D",
                 "of weights; he: by the number of inputs of each, for convolutions without norms");
  deviation.read = readDeviation;
  return {toolOption("o", &FillOptions::model, "MODEL.onnx", "file to write"),
          toolOption("seed", &FillOptions::seed, "N", "of random numbers"), deviation};
}

uint64_t mix(uint64_t value) { // the finalizer of splitmix64
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ull;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebull;
  return value ^ (value >> 31);
}

// Nearly normal, deviation 1: the sum of four uniform 16-bit numbers. Exact integer
// arithmetic up to the last product, hence the same on every machine.
double normalFrom(uint64_t bits) {
  int64_t sum = 0;
  for (int part = 0; part < 4; ++part)
    sum += static_cast<int64_t>((bits >> (16 * part)) & 0xffff);
  constexpr double kMean = 2 * 65535.0;
  constexpr double kDeviation = 37837.22; // of the sum: 65536 * sqrt(4 / 12)
  return (static_cast<double>(sum) - kMean) / kDeviation;
}

/// Throws `failure` where the sizes say no number of values that memory could hold.
int64_t elementsOf(const TensorProto &tensor) {
  int64_t count = 1, bytes;
  for (int64_t extent : tensor.dims())
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count))
      count = -1;
  if (count < 0 || __builtin_mul_overflow(count, int64_t(sizeof(double)), &bytes))
    throw trainc::failure(trainc::exit_data,
                          "initializer '" + tensor.name() + "' has an impossible size");
  return count;
}

bool lacksData(const TensorProto &tensor) {
  bool floating =
      tensor.data_type() == TensorProto::FLOAT || tensor.data_type() == TensorProto::DOUBLE;
  return floating && elementsOf(tensor) > 0 && tensor.data_location() != TensorProto::EXTERNAL &&
         !tensor.has_raw_data() && tensor.float_data_size() == 0 && tensor.double_data_size() == 0;
}

// The tensor that a doc_string ties this one to, empty if none.
std::string tiedTo(const TensorProto &tensor, bool &transposed) {
  const std::string &text = tensor.doc_string();
  transposed = text.starts_with("transpose of ");
  return transposed || text.starts_with("copy of ") ? text.substr(text.find(" of ") + 4) : "";
}

class Filler {
public:
  Filler(const FillOptions &options, onnx::GraphProto &graph)
      : data(options.model + ".data"), options(options) {
    for (const TensorProto &tensor : graph.initializer())
      byName[tensor.name()] = &tensor;
    // The values depend on the tensors as they came: collected before one is changed.
    std::vector<TensorProto *> empty;
    for (TensorProto &tensor : *graph.mutable_initializer())
      if (lacksData(tensor))
        empty.push_back(&tensor);
    for (TensorProto *tensor : empty)
      write(*tensor);
    tensors = empty.size();
  }

  trainc::output_file data; // of the weights, complete
  size_t tensors = 0;
  int64_t elements = 0;

private:
  std::vector<double> ownValues(const TensorProto &tensor) {
    int64_t count = elementsOf(tensor);
    const std::string &name = tensor.name();
    if (tensor.dims_size() < 2) {
      bool norm = name.ends_with("weight") || name.ends_with("gamma") || name.ends_with("scale");
      return std::vector<double>(count, norm ? 1.0 : 0.0);
    }
    uint64_t key = mix(options.seed + 0x9e3779b97f4a7c15ull);
    for (char letter : name)
      key = mix(key ^ static_cast<unsigned char>(letter));
    std::vector<double> values(count);
    const double deviation =
        options.deviation > 0
            ? options.deviation
            : std::sqrt(2.0 * static_cast<double>(tensor.dims(0)) / static_cast<double>(count));
    for (int64_t i = 0; i < count; ++i)
      values[i] =
          deviation * normalFrom(mix(key + 0x9e3779b97f4a7c15ull * static_cast<uint64_t>(i + 1)));
    return values;
  }

  std::vector<double> valuesOf(const TensorProto &tensor) {
    bool transposed = false;
    std::string source = tiedTo(tensor, transposed);
    if (source.empty())
      return ownValues(tensor);
    auto found = byName.find(source);
    if (found == byName.end() || elementsOf(*found->second) != elementsOf(tensor) ||
        (transposed && tensor.dims_size() != 2))
      throw trainc::failure(trainc::exit_data, "initializer '" + tensor.name() + "' is tied to '" +
                                                   source + "', which is not a tensor of its size");
    std::vector<double> values = ownValues(*found->second);
    if (!transposed)
      return values;
    std::vector<double> turned(values.size());
    int64_t rows = tensor.dims(0), columns = tensor.dims(1);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column)
        turned[row * columns + column] = values[column * rows + row];
    return turned;
  }

  template <typename Stored> int64_t writeAs(const std::vector<double> &values) {
    std::vector<Stored> stored(values.begin(), values.end());
    int64_t bytes = static_cast<int64_t>(stored.size() * sizeof(Stored));
    data.write_at(offset, stored.data(), bytes);
    return bytes;
  }

  void write(TensorProto &tensor) {
    std::vector<double> values = valuesOf(tensor);
    offset = (offset + kPageBytes - 1) / kPageBytes * kPageBytes;
    int64_t bytes =
        tensor.data_type() == TensorProto::FLOAT ? writeAs<float>(values) : writeAs<double>(values);
    tensor.set_data_location(TensorProto::EXTERNAL);
    auto describe = [&](const char *key, const std::string &value) {
      onnx::StringStringEntryProto *entry = tensor.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    };
    std::string dataFile = options.model + ".data";
    describe("location", dataFile.substr(dataFile.rfind('/') + 1));
    describe("offset", std::to_string(offset));
    describe("length", std::to_string(bytes));
    offset += bytes;
    elements += elementsOf(tensor);
  }

  const FillOptions &options;
  std::map<std::string, const TensorProto *> byName;
  int64_t offset = 0;
};

// The graph's file and those of its weights, which lie beside it.
std::vector<std::string> filesOf(const std::string &graph, const onnx::ModelProto &model) {
  std::vector<std::string> files = {graph};
  for (const TensorProto &tensor : model.graph().initializer())
    for (const onnx::StringStringEntryProto &entry : tensor.external_data())
      if (entry.key() == "location")
        files.push_back(graph.substr(0, graph.rfind('/') + 1) + entry.value());
  return files;
}

int fill(const FillOptions &options) {
  if (options.model.empty())
    throw trainc::failure(trainc::exit_usage, "trainc-fill: nothing says where to write\n"
                                              "  try: -o MODEL.onnx");
  onnx::ModelProto model;
  std::ifstream stream(options.graph(), std::ios::binary);
  if (!stream)
    throw trainc::failure(trainc::exit_data, options.graph() + ": cannot be read");
  if (!model.ParseFromIstream(&stream) || !model.has_graph())
    throw trainc::failure(trainc::exit_data,
                          options.graph() + ": is not an ONNX model, or a truncated one");
  for (const std::string &file : {options.model, options.model + ".data"})
    trainc::check_output_path(file, filesOf(options.graph(), model));
  Filler filler(options, *model.mutable_graph());
  trainc::output_file out(options.model);
  out.write(model.SerializeAsString());
  trainc::publish_together({&filler.data, &out});
  std::printf("%s: filled %zu initializers, %lld values, seed %llu\n", options.model.c_str(),
              filler.tensors, static_cast<long long>(filler.elements),
              static_cast<unsigned long long>(options.seed));
  return trainc::exit_success;
}

} // namespace

int main(int argc, char **argv) {
  trainc::watch_signals(/*requests=*/false);
  return trainc::tools::runTool(argc, argv, {"trainc-fill", kPage, fillRows(), "graph"}, fill);
}
