// SPDX-License-Identifier: Apache-2.0
//
// The tests of the ONNX suite (package libonnx-testdata) in the reference interpreter:
// every test whose model can be imported must give the expected numbers. Those that cannot are
// listed with the reason in docs/node_tests.md, which must be what this program would write;
// `TRAINC_WRITE_NODE_TESTS=1 onnx_unit_tests --gtest_filter=OnnxNode*` writes it.
#include "compiler/onnx/file/converted_tensors.h"
#include "compiler/onnx/file/model_file.h"
#include "compiler/onnx/import/evaluate.h"
#include "dialects/nn/nn.h"
#include "dialects/nn/onnx/onnx_node.h"
#include "dialects/train/train.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "tests/unit/scratch_folder.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <sstream>

namespace fs = std::filesystem;
using namespace trainc;

namespace {

// Of the suite's own runner.
constexpr double kRelative = 1e-3, kAbsolute = 1e-7;
// A test whose numbers are not those of its model.
constexpr llvm::StringLiteral kOfAnotherEpsilon = "adam_multiple";
// Tests of single operators and of what PyTorch wrote for its modules in its first years. `real`
// has models without their weights.
constexpr const char *kFolders[] = {"node", "pytorch-converted", "pytorch-operator", "simple"};

std::string contents(const fs::path &path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

struct DataSet {
  std::vector<onnx::TensorProto> inputs, outputs;
};

// Nullopt where a value is a sequence, an optional or absent.
std::optional<std::vector<onnx::TensorProto>> readTensors(const fs::path &folder,
                                                          const std::string &prefix, int count) {
  std::vector<onnx::TensorProto> tensors(count);
  for (int i = 0; i < count; ++i) {
    fs::path path = folder / (prefix + std::to_string(i) + ".pb");
    if (!fs::exists(path) || !tensors[i].ParseFromString(contents(path)))
      return std::nullopt;
  }
  return tensors;
}

/// Which of a model's inputs are written into it as constants: ONNX passes everything as an input,
/// but sizes and axes must be known when a model is compiled.
enum class Known { none, integers, all };

class OnnxNode : public testing::Test {
protected:
  OnnxNode() {
    context.loadDialect<nn::NNDialect, train::TrainDialect, mlir::func::FuncDialect>();
    context.disableMultithreading();
  }

  static bool isKnown(const onnx::TensorProto &value, Known known) {
    bool isFloat = value.data_type() == onnx::TensorProto::FLOAT ||
                   value.data_type() == onnx::TensorProto::DOUBLE ||
                   reader::isHalf(value.data_type());
    return known == Known::all || (known == Known::integers && !isFloat);
  }

  static onnx::ModelProto withConstants(const onnx::ModelProto &model, const DataSet &data,
                                        Known known) {
    onnx::ModelProto result = model;
    onnx::GraphProto &graph = *result.mutable_graph();
    graph.clear_input();
    graph.clear_node();
    for (int i = 0; i < model.graph().input_size(); ++i) {
      if (i >= static_cast<int>(data.inputs.size()) || !isKnown(data.inputs[i], known)) {
        *graph.add_input() = model.graph().input(i);
        continue;
      }
      onnx::NodeProto &constant = *graph.add_node();
      constant.set_op_type("Constant");
      constant.add_output(model.graph().input(i).name());
      onnx::AttributeProto &value = *constant.add_attribute();
      value.set_name("value");
      value.set_type(onnx::AttributeProto::TENSOR);
      *value.mutable_t() = data.inputs[i];
    }
    for (const onnx::NodeProto &node : model.graph().node())
      *graph.add_node() = node;
    return result;
  }

  /// The outputs; nullopt where the model is refused, which `report` explains.
  std::optional<std::vector<EvaluatedTensor>> evaluate(const onnx::ModelProto &model,
                                                       const DataSet &data, Known known) {
    report = Report();
    scratch.write("node.onnx", withConstants(model, data, known).SerializeAsString());
    Recipe recipe;
    recipe.trains = false;
    recipe.precision = "f64"; // so that parameters of f64 are no error; nothing is widened
    auto imported = readModel(file, recipe, context, report);
    if (failed(imported))
      return std::nullopt;
    if (model.graph().node_size() == 1)
      noteGradients(model.graph().node(0), *imported->module);
    NamedTensors inputs;
    for (size_t i = 0; i < data.inputs.size(); ++i)
      if (!isKnown(data.inputs[i], known))
        inputs[model.graph().input(i).name()] = tensorOf(data.inputs[i]);
    auto varies = [](mlir::Operation *op) {
      return op->hasTrait<nn::VariesByStep>() ? mlir::WalkResult::interrupt()
                                              : mlir::WalkResult::advance();
    };
    draws |= imported->module->walk(varies).wasInterrupted();
    auto results = evaluateModel(*imported, inputs, {}, false, report);
    return failed(results) ? std::nullopt : std::optional(*results);
  }

  /// Whether a gradient reaches any value from the results.
  static llvm::DenseSet<mlir::Value> withGradient(mlir::func::FuncOp function) {
    llvm::DenseSet<mlir::Value> reached;
    auto isFloat = [](mlir::Value value) {
      return mlir::isa<mlir::FloatType>(nn::tensorType(value).getElementType());
    };
    for (mlir::Operation &op : llvm::reverse(function.front())) {
      bool isLast = op.hasTrait<mlir::OpTrait::IsTerminator>();
      if (!isLast &&
          (op.hasTrait<nn::NotDifferentiable>() ||
           llvm::none_of(op.getResults(), [&](mlir::Value y) { return reached.count(y); })))
        continue;
      auto pointwise = mlir::dyn_cast<nn::PointwiseOpInterface>(op);
      for (mlir::OpOperand &operand : op.getOpOperands())
        if (isFloat(operand.get()) &&
            !(pointwise && pointwise.gradientExpressions()[operand.getOperandNumber()] == "none"))
          reached.insert(operand.get());
    }
    return reached;
  }

  void noteGradients(const onnx::NodeProto &node, mlir::ModuleOp module) {
    auto function = module.lookupSymbol<mlir::func::FuncOp>("model");
    auto reached = withGradient(function);
    for (mlir::BlockArgument argument : function.getArguments())
      for (int i = 0; i < node.input_size(); ++i)
        if (node.input(i) == train::nameOf(function, argument.getArgNumber()) &&
            mlir::isa<mlir::FloatType>(nn::tensorType(argument).getElementType()))
          gradients[node.op_type()][i] |= reached.count(argument) != 0;
  }

  // Of a model of halves everything is computed in f32.
  nn::Tensor tensorOf(onnx::TensorProto proto) {
    std::string why;
    const int32_t type = proto.data_type();
    if (reader::isHalf(type))
      proto.set_data_type(onnx::TensorProto::UINT16);
    auto bytes = reader::tensorBytes(proto, why);
    if (bytes && reader::isHalf(type))
      reader::widenHalves(*bytes, type);
    return bytes ? tensorOfBytes(context, *bytes, true) : nn::Tensor();
  }

  static bool isClose(double found, double expected) {
    if (std::isnan(expected))
      return std::isnan(found);
    return found == expected ||
           std::abs(found - expected) <= kAbsolute + kRelative * std::abs(expected);
  }

  /// Empty where all is as expected.
  std::string compare(const std::vector<EvaluatedTensor> &found, const DataSet &data) {
    if (found.size() != data.outputs.size())
      return std::to_string(found.size()) + " outputs of " + std::to_string(data.outputs.size());
    for (size_t i = 0; i < found.size(); ++i) {
      nn::Tensor expected = tensorOf(data.outputs[i]);
      if (!expected)
        return "an output is of a type that is not read";
      const nn::Tensor &value = found[i].value;
      bool isFloat = mlir::isa<mlir::FloatType>(expected.type().getElementType());
      if (value.shape() != expected.shape() ||
          mlir::isa<mlir::FloatType>(value.type().getElementType()) != isFloat)
        return "output " + std::to_string(i) + " has another type or shape";
      for (int64_t e = 0; e < expected.count(); ++e)
        if (isFloat ? !isClose(value.real(e), expected.real(e))
                    : value.integer(e) != expected.integer(e))
          return "output " + std::to_string(i) + "[" + std::to_string(e) + "] is " +
                 std::to_string(value.real(e)) + ", expected " + std::to_string(expected.real(e));
    }
    return "";
  }

  /// Operator and message of the first problem.
  std::pair<std::string, std::string> reason() const {
    std::string text = report.text();
    llvm::StringRef line = llvm::StringRef(text).ltrim().split('\n').first;
    if (auto [before, after] = line.split("): "); !after.empty()) // a node's: (Add, opset 7)
      return {before.rsplit('(').second.split(", opset ").first.str(), after.str()};
    line.consume_front(file + ": ");
    return {"", line.str()};
  }

  scratch_folder scratch;
  const std::string file = scratch / "node.onnx";
  mlir::MLIRContext context;
  Report report;
  /// By operator and number of an input of floats: whether a gradient reached it in any test.
  std::map<std::string, std::map<unsigned, bool>> gradients;
  bool draws = false; // random numbers, some model that was evaluated
};

// The suite keeps bfloat16 as uint16.
bool hasDeclaredTypes(const onnx::ModelProto &model, const DataSet &data) {
  auto declared = [](const onnx::ValueInfoProto &value, const onnx::TensorProto &tensor) {
    return value.type().tensor_type().elem_type() == tensor.data_type();
  };
  const onnx::GraphProto &graph = model.graph();
  return std::equal(data.inputs.begin(), data.inputs.end(), graph.input().begin(),
                    [&](auto &tensor, auto &value) { return declared(value, tensor); }) &&
         std::equal(data.outputs.begin(), data.outputs.end(), graph.output().begin(),
                    [&](auto &tensor, auto &value) { return declared(value, tensor); });
}

// A test of one operator has the oldest operator set that knows it. What was made before set 6, the
// oldest that is read, and is tested still means the same there.
void raiseOperatorSet(onnx::ModelProto &model) {
  for (auto &entry : *model.mutable_opset_import())
    if (entry.domain().empty())
      entry.set_version(std::max<int64_t>(entry.version(), 6));
}

// Old models have their weights among the inputs, after those that have data.
int inputsWithData(const onnx::ModelProto &model) {
  std::set<std::string> weights;
  for (const onnx::TensorProto &weight : model.graph().initializer())
    weights.insert(weight.name());
  int count = 0;
  for (const onnx::ValueInfoProto &input : model.graph().input())
    count += weights.count(input.name()) == 0;
  return count;
}

using Refused = std::map<std::pair<std::string, std::string>, std::vector<std::string>>;

std::string listOf(size_t run, size_t total, const Refused &refused,
                   const std::set<std::string> &untested) {
  std::ostringstream text;
  text
      << "# Tests of the ONNX suite\n\n"
      << "Written by `TRAINC_WRITE_NODE_TESTS=1 onnx_unit_tests --gtest_filter='OnnxNode*'`, which "
         "runs the\ntests of ONNX 1.12 (Debian's libonnx-testdata) in the reference "
         "interpreter: those of single operators, and those\nunder the names of their folders, "
         "what "
         "PyTorch once wrote for its modules, and some small models. "
      << run << " of " << total
      << " run and give\nthe expected numbers (relative 1e-3, absolute 1e-7, the suite's "
         "own tolerances). The others, by operator:\n\n"
      << "| operator | why its tests do not run | tests |\n|---|---|---|\n";
  for (const auto &[why, names] : refused)
    text << "| " << why.first << " | " << why.second << " | " << llvm::join(names, " ") << " |\n";
  text << "\nOperators of [operators.md](operators.md) for which the suite has no test that runs, "
          "most "
          "of them newer\nthan it: "
       << llvm::join(untested, ", ") << ".\n";
  return text.str();
}

TEST_F(OnnxNode, EveryTestThatIsImportedGivesTheExpectedNumbers) {
  if (!fs::exists(TRAINC_ONNX_TESTS))
    GTEST_SKIP() << TRAINC_ONNX_TESTS << " is not there; tools/setup.sh installs it";
  std::vector<fs::path> folders;
  for (const char *name : kFolders) {
    size_t before = folders.size();
    for (const auto &entry : fs::directory_iterator(fs::path(TRAINC_ONNX_TESTS) / name))
      folders.push_back(entry.path());
    std::sort(folders.begin() + static_cast<std::ptrdiff_t>(before), folders.end());
  }
  Refused refused;
  std::set<std::string> untested;
  for (const std::string &entry : nn::listOnnxImporters())
    untested.insert(llvm::StringRef(entry).split(':').second.split(':').first.str());
  size_t ran = 0;
  for (const fs::path &folder : folders) {
    onnx::ModelProto model;
    ASSERT_TRUE(model.ParseFromString(contents(folder / "model.onnx"))) << folder;
    std::string of = folder.parent_path().filename().string(),
                name = folder.filename().string().substr(5); // without test_
    if (of != kFolders[0])
      name = of + "/" + name;
    std::string type = model.graph().node(0).op_type();
    auto inputs = readTensors(folder / "test_data_set_0", "input_", inputsWithData(model));
    auto outputs = readTensors(folder / "test_data_set_0", "output_", model.graph().output_size());
    if (!inputs || !outputs) {
      refused[{type, "a value is a sequence or an optional, not a tensor"}].push_back(name);
      continue;
    }
    DataSet data{*inputs, *outputs};
    if (!hasDeclaredTypes(model, data)) {
      refused[{type, "a value is bfloat16, which the suite keeps as uint16"}].push_back(name);
      continue;
    }
    raiseOperatorSet(model);
    bool any = false;
    draws = false;
    for (Known known : {Known::none, Known::integers, Known::all})
      if (auto results = evaluate(model, data, known)) {
        any = true;
        if (draws || kOfAnotherEpsilon == name)
          continue;
        if (std::string wrong = compare(*results, data); !wrong.empty())
          ADD_FAILURE() << name << ", inputs known: " << static_cast<int>(known) << ": " << wrong;
      }
    if (kOfAnotherEpsilon == name) {
      refused[{type, "its numbers are those of epsilon = 0.01, which its node does not have"}]
          .push_back(name);
      continue;
    }
    if (draws) {
      refused[{type, "its numbers are those of NumPy's generator"}].push_back(name);
      continue;
    }
    if (any) {
      ++ran;
      for (const onnx::NodeProto &node : model.graph().node())
        untested.erase(node.op_type());
      continue;
    }
    auto [failing, message] = reason();
    refused[{failing.empty() ? type : failing, message}].push_back(name);
  }
  for (const auto &[type, inputs] : gradients)
    for (auto [input, found] : inputs) {
      const auto &claimed = nn::onnxSupport("", type).gradient;
      EXPECT_EQ(found, !claimed || llvm::is_contained(*claimed, input))
          << type << ", input " << input << ": docs/operators.md says otherwise";
    }
  std::string list = listOf(ran, folders.size(), refused, untested), path = TRAINC_NODE_TEST_LIST;
  if (std::getenv("TRAINC_WRITE_NODE_TESTS"))
    std::ofstream(path) << list;
  EXPECT_EQ(contents(path), list) << "the list of tests that do not run is not up to date";
}

} // namespace
