// SPDX-License-Identifier: Apache-2.0
//
// Hostile and damaged model files: each gets an error in the report, never a crash and never a
// file outside the model's folder. Fixtures: every exporter's file gives the parameters that
// PyTorch has.
#include "compiler/onnx/file/wire.h"
#include "compiler/onnx/graph/graph_digest.h"
#include "compiler/onnx/reader.h"
#include "dialects/nn/nn.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "runtime/files/crc32c.h"
#include "tests/unit/scratch_folder.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <random>
#include <sys/stat.h>

namespace fs = std::filesystem;
using namespace trainc;

namespace {

class OnnxReader : public testing::Test {
protected:
  OnnxReader() {
    fs::create_directories(folder / "model");
    context.loadDialect<nn::NNDialect, train::TrainDialect, mlir::func::FuncDialect>();
    context.disableMultithreading();
  }

  std::string path(const std::string &name = "m.onnx") const { return folder / ("model/" + name); }

  void write(const std::string &bytes, const std::string &name = "m.onnx") const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }

  mlir::FailureOr<Model> read(const std::string &file, const Recipe &recipe = {}) {
    report = Report();
    return readModel(file, recipe, context, report);
  }

  /// Reads `bytes` and expects the one error `message`.
  void refuse(const std::string &bytes, const std::string &message, ExitCode code) {
    write(bytes);
    EXPECT_TRUE(failed(read(path())));
    EXPECT_NE(report.text().find(message), std::string::npos) << report.text();
    EXPECT_EQ(report.exitCode(), code);
  }

  scratch_folder folder;
  mlir::MLIRContext context;
  Report report;
};

/// y = x * w for x of 2 x 3 and w of 3 x 2.
onnx::ModelProto product() {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto &graph = *model.mutable_graph();
  graph.set_name("product");
  onnx::NodeProto &node = *graph.add_node();
  node.set_op_type("MatMul");
  node.add_input("x");
  node.add_input("w");
  node.add_output("y");
  auto *input = graph.add_input();
  input->set_name("x");
  input->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  for (int64_t size : {2, 3})
    input->mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(size);
  graph.add_output()->set_name("y");
  onnx::TensorProto &weight = *graph.add_initializer();
  weight.set_name("w");
  weight.set_data_type(onnx::TensorProto::FLOAT);
  weight.add_dims(3);
  weight.add_dims(2);
  float values[] = {1, 2, 3, 4, 5, 6.5};
  weight.set_raw_data(values, sizeof(values));
  return model;
}

onnx::TensorProto &weightOf(onnx::ModelProto &model) {
  return *model.mutable_graph()->mutable_initializer(0);
}

std::string external(const std::string &location, const std::string &offset = "0",
                     const std::string &length = "24", const std::string &checksum = "") {
  onnx::ModelProto model = product();
  onnx::TensorProto &weight = weightOf(model);
  weight.clear_raw_data();
  weight.set_data_location(onnx::TensorProto::EXTERNAL);
  std::pair<const char *, std::string> entries[] = {
      {"location", location}, {"offset", offset}, {"length", length}, {"checksum", checksum}};
  for (const auto &[key, value] : entries) {
    if (value.empty() && key == std::string("checksum"))
      continue;
    auto *entry = weight.add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
  return model.SerializeAsString();
}

std::vector<float> floatsOf(llvm::ArrayRef<char> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

const std::vector<float> kValues = {1, 2, 3, 4, 5, 6.5};

TEST_F(OnnxReader, ReadsValuesFromEveryField) {
  onnx::ModelProto raw = product(), typed = product();
  weightOf(typed).clear_raw_data();
  for (float value : kValues)
    weightOf(typed).add_float_data(value);
  write(external("w.bin", "8"), "external.onnx");
  std::ofstream(path("w.bin"), std::ios::binary) << std::string(8, 'x') << weightOf(raw).raw_data();
  write(raw.SerializeAsString(), "raw.onnx");
  write(typed.SerializeAsString(), "typed.onnx");
  for (const char *name : {"raw.onnx", "typed.onnx", "external.onnx"}) {
    auto model = read(path(name));
    ASSERT_TRUE(succeeded(model)) << name << report.text();
    ASSERT_EQ(model->parameters.size(), 1u);
    EXPECT_EQ(floatsOf(model->parameters[0].bytes), kValues) << name;
  }
}

TEST_F(OnnxReader, RefusesWhatIsNoModel) {
  refuse("", "not an ONNX model", ExitCode::unreadableModel);
  refuse("\x89PNG\r\n\x1a\n", "not an ONNX model", ExitCode::unreadableModel);
  refuse(std::string(100, '\0'), "not an ONNX model", ExitCode::unreadableModel);
  EXPECT_TRUE(failed(read(folder.path())));
  EXPECT_NE(report.text().find("not a regular file"), std::string::npos) << report.text();
  EXPECT_TRUE(failed(read(path("absent.onnx"))));
  EXPECT_EQ(report.exitCode(), ExitCode::unreadableModel);
}

TEST_F(OnnxReader, RefusesEveryTruncation) {
  std::string whole = product().SerializeAsString();
  for (size_t length = 0; length < whole.size(); ++length) {
    write(whole.substr(0, length));
    bool refused = failed(read(path())); // before the report is looked at
    EXPECT_EQ(refused, !report.empty());
    EXPECT_FALSE(length + 8 < whole.size() && report.empty()) << length;
  }
}

TEST_F(OnnxReader, SurvivesFlippedBytes) {
  std::string whole = product().SerializeAsString();
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = whole;
    for (int flips = 1 + random() % 3; flips > 0; --flips)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    write(damaged);
    bool refused = failed(read(path())); // before the report is looked at
    EXPECT_EQ(refused, !report.empty());
  }
}

TEST_F(OnnxReader, ComparesChecksumsOfExternalData) {
  std::ofstream(path("sum.bin")) << std::string(24, 'x');
  const std::string digest = "f7228ea6b178df32077280927f544cf46831a5e7"; // sha1sum
  write(external("sum.bin", "0", "24", digest));
  EXPECT_TRUE(succeeded(read(path()))) << report.text();
  std::ofstream(path("sum.bin")) << std::string(23, 'x') << 'y';
  refuse(external("sum.bin", "0", "24", digest), "has other contents than its checksum",
         ExitCode::unreadableModel);
}

TEST_F(OnnxReader, RefusesExternalDataOutsideTheFolder) {
  std::ofstream(folder / "outside.bin") << std::string(24, 'x');
  fs::create_symlink("../outside.bin", path("link.bin"));
  mkfifo(path("pipe.bin").c_str(), 0600);
  auto refused = [&](const std::string &location, const std::string &message) {
    refuse(external(location), message, ExitCode::unreadableModel);
  };
  refused("../outside.bin", "lies outside the model's folder");
  refused("a/../../outside.bin", "lies outside the model's folder");
  refused(folder / "outside.bin", "lies outside the model's folder");
  refused("", "lies outside the model's folder");
  refused("a/../absent.bin", "has '..' in it, which is not allowed");
  refused("link.bin", "is a link to outside the model's folder");
  refused("pipe.bin", "not a regular file");
  refused(".", "is the model's folder");
  refused("absent.bin", "does not exist");
}

TEST_F(OnnxReader, RefusesExternalDataShorterThanDeclared) {
  std::ofstream(path("w.bin")) << std::string(24, 'x');
  auto refused = [&](const char *offset, const char *length, const std::string &message) {
    refuse(external("w.bin", offset, length), message, ExitCode::unreadableModel);
  };
  refused("1", "24", "has 24 bytes, shorter than the 1 + 24 declared");
  refused("0", "23", "has 23 bytes, but its shape needs 24");
  refused("-1", "24", "offset '-1' is not a size");
  refused("9223372036854775807", "24", "shorter than");
  refused("9223372036854775808", "24", "is not a size");
  refused("zero", "24", "offset 'zero' is not a size");
}

TEST_F(OnnxReader, RefusesImpossibleTensors) {
  onnx::ModelProto model = product();
  weightOf(model).set_dims(0, 4);
  refuse(model.SerializeAsString(), "has 24 bytes of values, but its shape needs 32",
         ExitCode::unreadableModel);
  weightOf(model).set_dims(0, -3);
  refuse(model.SerializeAsString(), "impossible size -3", ExitCode::unreadableModel);
  weightOf(model).set_dims(0, INT64_MAX);
  refuse(model.SerializeAsString(), "impossible size", ExitCode::unreadableModel);
  model = product();
  weightOf(model).set_data_type(onnx::TensorProto::COMPLEX64);
  refuse(model.SerializeAsString(), "type complex64, which are not supported",
         ExitCode::unsupportedModel);
  model = product();
  model.mutable_graph()->mutable_node(0)->mutable_input()->RemoveLast();
  refuse(model.SerializeAsString(), "input 1 is missing", ExitCode::unreadableModel);
  model = product();
  model.mutable_graph()->mutable_node(0)->set_input(0, "nowhere");
  refuse(model.SerializeAsString(), "value 'nowhere' is not defined anywhere",
         ExitCode::unreadableModel);
}

/// y = conv(x, filter) with filters of 3 x 1 x 2 x 2, and z = y * w.
std::string convolution(const std::string &filter, const std::string &w) {
  onnx::ModelProto model = product();
  onnx::GraphProto &graph = *model.mutable_graph();
  weightOf(model).set_name(w);
  onnx::NodeProto &matmul = *graph.mutable_node(0);
  matmul.set_input(0, "h");
  matmul.set_input(1, w);
  onnx::NodeProto &conv = *graph.add_node();
  conv.set_op_type("Conv");
  conv.add_input("x");
  conv.add_input(filter);
  conv.add_output("h");
  graph.mutable_node()->SwapElements(0, 1);
  auto *shape = graph.mutable_input(0)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape->clear_dim();
  for (int64_t size : {2, 1, 4, 4})
    shape->add_dim()->set_dim_value(size);
  onnx::TensorProto &values = *graph.add_initializer();
  values.set_name(filter);
  values.set_data_type(onnx::TensorProto::FLOAT);
  for (int64_t size : {3, 1, 2, 2})
    values.add_dims(size);
  for (int i = 0; i < 12; ++i)
    values.add_float_data(i);
  return model.SerializeAsString();
}

// What is left of a convolution and its batch norm after an export in inference mode would train
// as another model.
TEST_F(OnnxReader, RefusesToTrainFoldedFilters) {
  for (const char *name : {"onnx::Conv_12", "block/Conv2D_weights_fused_bn", "12"})
    refuse(convolution(name, "fc.weight"),
           "'" + std::string(name) + "' (a filter with the batch norm", ExitCode::unsupportedModel);
  EXPECT_NE(report.text().find("TrainingMode.TRAINING"), std::string::npos) << report.text();

  for (const char *name : {"conv.weight", "conv_weight"}) {
    write(convolution(name, "fc.weight"));
    EXPECT_TRUE(succeeded(read(path()))) << report.text();
  }
  write(convolution("12", "13")); // a file that numbers everything is older than the folding
  EXPECT_TRUE(succeeded(read(path()))) << report.text();

  write(convolution("onnx::Conv_12", "fc.weight"));
  Recipe frozen, chosen, evaluated;
  frozen.freeze = {"onnx::Conv.*"};
  chosen.trainOnly = {".*"};
  evaluated.trains = false;
  for (const Recipe &recipe : {frozen, chosen, evaluated})
    EXPECT_TRUE(succeeded(read(path(), recipe))) << report.text();
}

TEST_F(OnnxReader, RefusesFunctionsThatCallThemselves) {
  onnx::ModelProto model = product();
  model.add_opset_import()->set_domain("own");
  onnx::FunctionProto &function = *model.add_functions();
  function.set_name("again");
  function.set_domain("own");
  function.add_input("a");
  function.add_output("b");
  onnx::NodeProto &inner = *function.add_node();
  inner.set_op_type("again");
  inner.set_domain("own");
  inner.add_input("a");
  inner.add_output("b");
  *model.mutable_graph()->add_node() = inner;
  model.mutable_graph()->mutable_node(1)->set_input(0, "y");
  refuse(model.SerializeAsString(), "nested too deeply or call themselves",
         ExitCode::unreadableModel);
}

TEST_F(OnnxReader, KeepsLargeWeightsOffTheHeap) {
  constexpr int64_t kRows = int64_t(1) << 24; // 256 MiB in a file without blocks
  onnx::ModelProto model = product();
  onnx::TensorProto &weight = weightOf(model);
  ASSERT_TRUE(model.ParseFromString(external("w.bin", "0", std::to_string(kRows * 16))));
  onnx::NodeProto &node = *model.mutable_graph()->mutable_node(0);
  node.set_op_type("Gather");
  node.set_input(0, "w");
  node.set_input(1, "x");
  auto *type = model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::INT64);
  weight.set_dims(0, kRows);
  weight.set_dims(1, 4);
  std::ofstream(path("w.bin")).close();
  fs::resize_file(path("w.bin"), kRows * 16);
  write(model.SerializeAsString());
  auto heap = [] {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line.rfind("RssAnon:", 0) == 0)
        return std::stol(line.substr(8));
    return 0L;
  };
  long before = heap();
  auto read = this->read(path());
  ASSERT_TRUE(succeeded(read)) << report.text();
  EXPECT_LT(heap() - before, 16 * 1024) << "kB";
}

TEST_F(OnnxReader, ExportTemplateAndParametersMakeTheModelAgain) {
  onnx::ModelProto original = product();
  auto *known = original.mutable_metadata_props()->Add();
  known->set_key("origin");
  known->set_value("test");
  write(original.SerializeAsString());
  auto model = read(path());
  ASSERT_TRUE(succeeded(model));
  ASSERT_TRUE(succeeded(
      writeExportTemplate(*model, /*storesFrozen=*/false, path("template.onnx"), report)));
  auto bytes = llvm::MemoryBuffer::getFile(path("template.onnx"));
  onnx::ModelProto trained;
  *trained.mutable_graph()->add_initializer() = weightOf(original);
  onnx::ModelProto merged;
  ASSERT_TRUE(merged.ParseFromString((*bytes)->getBuffer().str() + trained.SerializeAsString()));
  EXPECT_EQ(merged.SerializeAsString(), original.SerializeAsString());
}

llvm::json::Object headerOf(llvm::StringRef safetensors) {
  uint64_t length;
  std::memcpy(&length, safetensors.data(), 8);
  auto header = llvm::cantFail(llvm::json::parse(safetensors.substr(8, length)));
  return std::move(*header.getAsObject());
}

// So many tensors, of so many bytes together, each with the checksum of its values.
void expectTensors(llvm::StringRef safetensors, const llvm::json::Object &header, size_t count,
                   size_t bytes) {
  const llvm::json::Object *checksums = header.getObject("__metadata__");
  ASSERT_TRUE(checksums);
  EXPECT_EQ(checksums->size(), count);
  EXPECT_EQ(header.size(), count + 1);
  llvm::StringRef data = safetensors.take_back(bytes);
  uint64_t length;
  std::memcpy(&length, safetensors.data(), 8);
  EXPECT_EQ(safetensors.size(), 8 + length + bytes);
  for (const auto &[name, entry] : header) {
    if (name == "__metadata__")
      continue;
    const llvm::json::Array &place = *entry.getAsObject()->getArray("data_offsets");
    llvm::StringRef values = data.slice(*place[0].getAsInteger(), *place[1].getAsInteger());
    std::string digits;
    llvm::raw_string_ostream(digits)
        << llvm::format_hex_no_prefix(crc32c(0, values.data(), values.size()), 8);
    EXPECT_EQ(checksums->getString("crc32c:" + name.str()), digits) << name.str();
  }
}

TEST_F(OnnxReader, WritesParametersAsSafetensors) {
  write(product().SerializeAsString());
  auto model = read(path());
  ASSERT_TRUE(succeeded(model));
  for (std::string precision : {"f32", "f64"}) {
    ASSERT_TRUE(
        mlir::succeeded(writeInitialParameters(*model, {}, {}, path("p"), precision, report)));
    auto file = llvm::MemoryBuffer::getFile(path("p"));
    llvm::StringRef bytes = (*file)->getBuffer();
    llvm::json::Object header = headerOf(bytes);
    const llvm::json::Object &entry = *header.getObject("w");
    EXPECT_EQ(entry.getString("dtype"), precision == "f32" ? "F32" : "F64");
    expectTensors(bytes, header, 1, 6 * (precision == "f32" ? 4 : 8));
    double last;
    std::memcpy(&last, bytes.end() - 8, 8);
    EXPECT_TRUE(precision == "f32" || last == 6.5);
  }
  EXPECT_TRUE(mlir::failed(writeInitialParameters(*model, {}, {}, path("no/p"), "f32", report)));
  EXPECT_EQ(report.exitCode(), ExitCode::outputNotWritten);
}

TEST_F(OnnxReader, WritesChecksumsOfManyParameters) {
  Recipe recipe;
  auto model = read((fs::path(TRAINC_MODELS) / "nanogpt_script13.onnx").string(), recipe);
  ASSERT_TRUE(succeeded(model)) << report.text();
  ASSERT_TRUE(mlir::succeeded(writeInitialParameters(*model, {}, {}, path("p"), "f32", report)));
  size_t bytes = 0;
  for (const Parameter &parameter : model->parameters)
    bytes += parameter.bytes.size();
  auto file = llvm::MemoryBuffer::getFile(path("p"));
  llvm::StringRef written = (*file)->getBuffer();
  expectTensors(written, headerOf(written), model->parameters.size(), bytes);
}

// Names in a graph that a node holds would count, so it has no digest; the import of such nodes
// ends before that matters.
TEST_F(OnnxReader, GivesNoDigestOfWhatHoldsAGraph) {
  auto digestOf = [&](const onnx::ModelProto &model) {
    write(model.SerializeAsString());
    auto file = reader::ModelFile::open(path(), report);
    auto graph = reader::Graph::build(*file, {}, report);
    reader::Parameters initializers;
    initializers.push_back(std::make_unique<Parameter>(file->initializer(0)));
    return reader::graphDigest(*file, *graph, initializers);
  };
  onnx::ModelProto model = product();
  EXPECT_EQ(digestOf(model).size(), 18);
  onnx::NodeProto &node = *model.mutable_graph()->mutable_node(0);
  node.set_op_type("Loop");
  onnx::AttributeProto &body = *node.add_attribute();
  body.set_name("body");
  body.set_type(onnx::AttributeProto::GRAPH);
  body.mutable_g()->set_name("body");
  for (const char *input : {"i", "goes_on"})
    body.mutable_g()->add_input()->set_name(input);
  for (const char *output : {"goes_on", "y"})
    body.mutable_g()->add_output()->set_name(output);
  EXPECT_EQ(digestOf(model), "");
}

// The innermost line that is the model's own; of a trace without one, and of none, nothing.
TEST_F(OnnxReader, KeepsOneLineOfAStackTrace) {
  const std::string own = "File \"/home/me/net.py\", line 12, in forward\n    return self.act(x)\n";
  const std::string torch =
      "  File \"/lib/site-packages/torch/nn/modules/activation.py\", line 817, in forward\n";
  std::pair<std::string, const char *> traces[] = {
      {own + torch, "net.py:12"},
      {"File \"a.py\", line 1, in f\n  f()\n" + own, "net.py:12"},
      {"File \"C:\\torch\\net.py\", line 7, in forward\n" + torch, "net.py:7"},
      {torch, ""},
      {"", ""},
      {"no trace", ""}};
  for (const auto &[trace, line] : traces) {
    onnx::ModelProto model = product();
    onnx::NodeProto &node = *model.mutable_graph()->mutable_node(0);
    reader::addMetadata(node, reader::kNodeMetadata, "pkg.torch.onnx.stack_trace", trace);
    reader::addMetadata(node, reader::kNodeMetadata, "pkg.torch.onnx.name_scopes",
                        "['', 'net', 'f']");
    write(model.SerializeAsString());
    auto read = this->read(path());
    ASSERT_TRUE(succeeded(read)) << report.text();
    EXPECT_EQ(read->nodes[0].source, line);
    EXPECT_EQ(read->nodes[0].name, "net");
  }
}

// ---- the fixtures

class OnnxFixture : public OnnxReader, public testing::WithParamInterface<std::string> {};

TEST_P(OnnxFixture, HasPyTorchsParameters) {
  fs::path models = TRAINC_MODELS;
  auto file = llvm::MemoryBuffer::getFile((models / "expected" / (GetParam() + ".json")).string());
  ASSERT_TRUE(static_cast<bool>(file));
  auto json = llvm::cantFail(llvm::json::parse((*file)->getBuffer()));
  const llvm::json::Object &expected = *json.getAsObject();
  Recipe recipe;
  if (expected.getBoolean("dynamic").value_or(false)) {
    recipe.dimensions["batch"] = *expected.getInteger("batch");
    if (expected.getObject("inputs")->getString("input_ids"))
      recipe.dimensions["sequence"] = expected.getInteger("sequence").value_or(16);
  }
  if (const llvm::json::Array *patterns = expected.getArray("freeze"))
    for (const llvm::json::Value &pattern : *patterns)
      recipe.freeze.push_back(pattern.getAsString()->str());
  auto model = read((models / (GetParam() + ".onnx")).string(), recipe);
  ASSERT_TRUE(succeeded(model)) << report.text();
  std::set<std::string> wanted, wantedTied, found, tied;
  for (const auto &entry : *expected.getArray("parameters"))
    wanted.insert(entry.getAsObject()->getString("onnx")->str());
  if (const llvm::json::Array *reordered = expected.getArray("recurrent"))
    for (const llvm::json::Value &name : *reordered)
      wanted.insert(name.getAsString()->str());
  for (const auto &entry : *expected.getArray("folded"))
    wantedTied.insert(entry.getAsObject()->getString("onnx")->str());
  auto function = model->module->lookupSymbol<mlir::func::FuncOp>("model");
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto role = train::roleAs<train::ParameterAttr>(function, i);
        role && !role.isFrozen()) // what the fixture freezes is a buffer of the module
      found.insert(role.getName().str());
  for (const Parameter &parameter : model->parameters)
    for (const TensorName &other : parameter.tied)
      tied.insert(other.name);
  EXPECT_EQ(found, wanted);
  EXPECT_EQ(tied, wantedTied);
}

std::vector<std::string> fixtures() {
  std::vector<std::string> names;
  for (const auto &entry : fs::directory_iterator(fs::path(TRAINC_MODELS) / "expected"))
    if (fs::exists(fs::path(TRAINC_MODELS) / (entry.path().stem().string() + ".onnx")) &&
        entry.path().extension() == ".json")
      names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Models, OnnxFixture, testing::ValuesIn(fixtures()),
                         [](const auto &info) { return info.param; });

// The readable names that emitted kernels get.
TEST_F(OnnxReader, NamesOperationsByModule) {
  Recipe recipe;
  auto model = read((fs::path(TRAINC_MODELS) / "nanogpt_script13.onnx").string(), recipe);
  ASSERT_TRUE(succeeded(model)) << report.text();
  std::set<std::string> names;
  (*model->module)->walk([&](mlir::Operation *operation) {
    if (auto name = mlir::dyn_cast<mlir::NameLoc>(operation->getLoc()))
      names.insert(name.getName().str());
  });
  for (const char *name : {"wte", "h.0.ln_1.reduce_mean", "h.0.attn.c_attn.matmul",
                           "h.0.attn.softmax", "h.1.mlp.c_proj.add", "lm_head"})
    EXPECT_TRUE(names.count(name)) << name;
}

} // namespace
