// SPDX-License-Identifier: Apache-2.0
//
// The model without its parameters' values. What the schema does not know (metadata of newer
// versions) survives: protobuf keeps unknown fields.
#include "compiler/onnx/adapters_in_export.h"
#include "compiler/onnx/file/half_model.h"
#include "compiler/onnx/file/initial_casts.h"
#include "compiler/onnx/file/output_file.h"
#include "compiler/onnx/file/wire.h"
#include "compiler/onnx/graph/graph.h"
#include "compiler/onnx/parameters/exported_program.h"
#include "compiler/onnx/reader.h"
#include <algorithm>
#include <map>
#include <set>

using namespace llvm;
using namespace mlir;

namespace trainc {

using namespace reader;

// External values move into the file, so that the export stands alone.
static void setValues(onnx::TensorProto &tensor, const TensorBytes &values) {
  tensor.clear_external_data();
  tensor.clear_data_location();
  tensor.set_raw_data(values.bytes.data(), values.bytes.size());
}

// What the file or its reader says of a parameter stands beside its values, which the trainer
// writes anew: it moves to the description of the value, or the exported model would not train
// again.
static void keepRecord(onnx::GraphProto &graph, const TensorBytes &values,
                       const ExportedProgram &program) {
  auto isDescribed = [&](StringRef key) {
    return any_of(graph.value_info(), [&](const onnx::ValueInfoProto &info) {
      return info.name() == values.name && !metadata(info, kValueMetadata, key).empty();
    });
  };
  if (StringRef kind = program.kindOf(values.name); !kind.empty() && !isDescribed(kKindKey))
    describeInitializer(graph, values, kKindKey, kind);
  if (ArrayRef<std::string> sources = program.sourcesOf(values.name);
      !sources.empty() && !isDescribed(kSourcesKey))
    describeInitializer(graph, values, kSourcesKey, "['" + join(sources, "', '") + "']");
}

// What was trained is run by its running statistics, as `predict` runs it.
static void useRunningStatistics(onnx::GraphProto &graph) {
  std::set<std::string> used;
  for (const auto &output : graph.output())
    used.insert(output.name());
  for (const onnx::NodeProto &node : graph.node())
    used.insert(node.input().begin(), node.input().end());
  for (onnx::NodeProto &node : *graph.mutable_node()) {
    auto &outputs = *node.mutable_output();
    if (!isOnnx(node, "BatchNormalization") ||
        any_of(drop_begin(outputs), [&](const std::string &name) { return used.count(name); }))
      continue;
    outputs.DeleteSubrange(1, std::max(outputs.size() - 1, 0));
    for (onnx::AttributeProto &attribute : *node.mutable_attribute())
      if (attribute.name() == "training_mode")
        attribute.set_i(0);
  }
}

// ---- parameters of 16 bits

static void setTypes(onnx::GraphProto &graph, const std::map<std::string, int32_t> &types) {
  for (onnx::ValueInfoProto &value : *graph.mutable_value_info())
    if (auto found = types.find(value.name()); found != types.end())
      value.mutable_type()->mutable_tensor_type()->set_elem_type(found->second);
}

// Such an initializer would count as a type of the model's inputs. From version 4 of ONNX's format
// on it need not be among these.
static void dropInputs(onnx::ModelProto &model, const std::set<std::string> &initializers) {
  constexpr int64_t kFirstWithout = 4;
  auto &inputs = *model.mutable_graph()->mutable_input();
  const int before = inputs.size();
  inputs.erase(std::remove_if(inputs.begin(), inputs.end(),
                              [&](const auto &input) { return initializers.count(input.name()); }),
               inputs.end());
  if (inputs.size() < before)
    model.set_ir_version(std::max<int64_t>(model.ir_version(), kFirstWithout));
}

LogicalResult writeExportTemplate(const Model &model, bool storesFrozen, StringRef path,
                                  Report &report) {
  const bool computesInHalves = model.exportType.empty() && model.file->exportsHalves();
  std::set<std::string> parameters, cast;
  std::map<std::string, int32_t> types;
  for (const ExportEntry &entry : exportInitializers(model, storesFrozen)) {
    parameters.insert(entry.name);
    if (!halfTypeNamed(entry.type))
      continue;
    types[entry.name] = halfTypeNamed(entry.type);
    if (!computesInHalves)
      cast.insert(entry.name);
  }
  onnx::ModelProto result = model.file->model();
  onnx::GraphProto &graph = *result.mutable_graph();
  graph.clear_initializer();
  model.file->restoreValues(graph);
  if (model.trains)
    useRunningStatistics(graph);
  for (int i = 0; i < model.file->graph().initializer_size(); ++i) {
    const onnx::TensorProto &tensor = model.file->graph().initializer(i);
    if (parameters.count(tensor.name())) {
      keepRecord(graph, model.file->initializer(i), *model.program);
      continue;
    }
    *graph.add_initializer() = tensor;
    setValues(*graph.mutable_initializer(graph.initializer_size() - 1), model.file->initializer(i));
  }
  if (failed(addAdapterNodes(model, graph, report)))
    return failure();
  if (model.file->halfType())
    takeMarks(result, /*narrows=*/computesInHalves);
  addCasts(graph, cast, parameters);
  setTypes(graph, types);
  if (!cast.empty())
    dropInputs(result, cast);
  std::string bytes;
  if (!result.SerializeToString(&bytes))
    return report.error(ExitCode::outputNotWritten, path,
                        "the model's constants exceed protobuf's 2 GiB");
  OutputFile file(path, report);
  file.write({bytes.data(), bytes.size()});
  return success(file.finish());
}

} // namespace trainc
