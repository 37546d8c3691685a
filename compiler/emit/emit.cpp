// SPDX-License-Identifier: Apache-2.0
//
// Puts the emitted folder together: names first, then one file after the other.
#include "compiler/emit/emit.h"
#include "compiler/emit/cpu_kernels.h"
#include "compiler/emit/cuda_kernels.h"
#include "compiler/emit/device_function.h"
#include "compiler/emit/step_program.h"
#include "compiler/output/write_file.h"
#include "dialects/elements/element_type.h"
#include "dialects/errors/internal_error.h"
#include "dialects/names/node_name.h"
#include "dialects/train/train.h"
#include "passes/plan_tables.h"
#include "passes/sharding/update_parts.h"
#include "llvm/Support/Path.h"
#include <set>

using namespace mlir;
using namespace trainc;

namespace {

std::string generic(StringRef name, size_t number, size_t inputs) {
  return name.empty() ? (number < inputs ? "in" : "out") : name.str();
}

/// What the steps that launch a kernel have in common.
struct Launches {
  kernel::StepOpInterface first;
  SmallVector<int64_t> elements; // of each input; -1 where they differ
  SmallVector<unsigned> same;    // for each input the first one that is always the same tensor

  void add(kernel::StepOpInterface launch, const MemoryNames &memory) {
    const size_t inputs = launch->getNumOperands();
    if (!first) {
      first = launch;
      same.assign(inputs, 0);
    }
    const SmallVector<unsigned> before = same;
    SmallVector<const PlacedTensor *> tensors;
    for (auto [i, input] : llvm::enumerate(launch->getOperands())) {
      auto type = cast<RankedTensorType>(input.getType()); // its rows may be apart
      const int64_t count = bytesOf(type) / elementBytes(type.getElementType());
      if (i == elements.size())
        elements.push_back(count);
      else if (elements[i] != count)
        elements[i] = -1;
      tensors.push_back(memory.find(input));
      for (same[i] = 0; before[same[i]] != before[i] || tensors[same[i]] != tensors[i];)
        ++same[i];
    }
  }
};

using LaunchTable = llvm::StringMap<Launches>;

/// Names of a kernel: its buffers' after the tensors of its first launch and what stores the
/// results, none of them among `words`. `functions` are the names of all kernels' functions.
KernelNames nameKernel(kernel::FunctionOp function, const Launches &launches,
                       const MemoryNames &memory, const Words &words, NameTable &functions) {
  kernel::StepOpInterface launch = launches.first;
  KernelNames names;
  names.locals = NameTable(words);
  names.function = functions.value(sanitize(function.getSymName()), "_kernel");
  if (auto schedule = dyn_cast_or_null<kernel::CudaScheduleAttr>(function.getScheduleAttr()))
    for (kernel::DeviceFunctionAttr part : schedule.getFunctions()) {
      StringRef suffix = deviceSuffix(function, part.getStage());
      names.deviceFunctions.push_back(functions.unique(names.function + suffix.str()));
      names.locals.reserve(resolved(names.deviceFunctions.back()));
    }
  for (size_t d = 0; d < function.getDims().size(); ++d)
    names.indices.push_back(
        names.locals.unique(d < 8 ? std::string(1, "ijklmnop"[d]) : "i" + std::to_string(d)));
  size_t inputs = function.getBody().getNumArguments() - function.getOutputs();
  for (BlockArgument argument : function.getBody().getArguments()) {
    size_t number = argument.getArgNumber();
    const PlacedTensor *tensor = launch && number < inputs && number < launch->getNumOperands()
                                     ? memory.find(launch->getOperand(number))
                                     : nullptr;
    std::string name = number >= inputs ? outputName(function, number)
                       : tensor         ? lastParts(tensor->value)
                                        : "";
    if (name.empty() && !tensor)
      name = lastParts(nodeName(argument.getLoc()).value());
    if (launch)
      names.types.push_back(
          typeText(tensor ? Type(tensor->type)
                          : (number < inputs ? launch->getOperand(number).getType()
                                             : launch->getResult(number - inputs).getType())));
    names.same.push_back(number < launches.same.size() ? launches.same[number] : number);
    names.buffers.push_back(names.same.back() == number
                                ? names.locals.unique(generic(name, number, inputs))
                                : names.buffers[names.same.back()]);
  }
  return names;
}

std::string accessText(kernel::FunctionOp function, unsigned argument) {
  auto access = cast<kernel::AccessAttr>(function.getAccesses()[argument]);
  auto type = cast<kernel::BufferType>(function.getBody().getArgument(argument).getType());
  std::string text = typeText(type.getElement()) + " [";
  bool first = true;
  for (Operation *user : function.getBody().getArgument(argument).getUsers())
    if (auto load = dyn_cast<kernel::LoadOp>(user); load && load.getIndex() && first) {
      text += "*"; // indexed
      first = false;
    }
  for (auto [size, stride] : llvm::zip(function.getDims(), access.getStrides())) {
    if (size == 1 || stride == 0)
      continue;
    text += (first ? "" : ", ") + std::to_string(size);
    first = false;
  }
  return text + "]";
}

void describeKernel(kernel::FunctionOp function, const KernelNames &names, SourceWriter &writer) {
  std::string sources;
  for (auto source : function.getSources().getAsRange<StringAttr>())
    sources += (sources.empty() ? "" : ", ") + commentText(source.getValue());
  if (!sources.empty())
    writer.comment(sources);
  size_t inputs = names.buffers.size() - function.getOutputs();
  std::string reads, writes;
  for (size_t i = 0; i < names.buffers.size(); ++i) {
    if (names.same[i] != i)
      continue;
    std::string &list = i < inputs ? reads : writes;
    std::string type = i < names.types.size() ? names.types[i] : accessText(function, i);
    std::replace(type.begin(), type.end(), ' ', kNoBreak);
    list += (list.empty() ? "" : ", ") + names.buffers[i] + kNoBreak + type;
  }
  if (!reads.empty())
    writer.comment("reads " + reads);
  writer.comment("writes " + writes);
}

using NamedKernels = SmallVector<std::pair<kernel::FunctionOp, const KernelNames *>>;

std::string kernelsHeader(const NamedKernels &kernels) {
  SourceWriter writer;
  writer.line("// One function for each distinct kernel. An output may be one of the inputs.");
  writer.line("#pragma once");
  writer.line();
  std::set<StringRef> headers; // of the types of elements, and of parts
  for (auto [function, names] : kernels) {
    for (Type type : function.getBody().getArgumentTypes())
      if (auto buffer = dyn_cast<kernel::BufferType>(type))
        headers.insert(elementTypeOf(buffer.getElement()).header);
    if (names->inParts)
      headers.insert("runtime/element_range.h");
  }
  headers.erase("");
  for (StringRef header : headers)
    writer.line("#include \"" + header + "\"");
  if (!headers.empty())
    writer.line();
  writer.line("#include <cstdint>");
  writer.line();
  writer.openNamespace("trainc::kernels");
  writer.line();
  for (auto &[function, names] : kernels)
    kernelSignature(function, *names, ";", writer);
  writer.line();
  writer.closeNamespace("trainc::kernels");
  return resolved(writer.text());
}

bool drawsNumbers(kernel::FunctionOp function) {
  return function.walk([](kernel::RandomBitsOp) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

/// Text of kernels.cpp or kernels.cu, with marks at chosen names, and where it has each.
FailureOr<std::string> kernelsSource(const NamedKernels &kernels, StringRef target,
                                     const LaunchTable &launches,
                                     std::vector<mapped_kernel> &mapped) {
  bool cuda = target == "cuda";
  SourceWriter source;
  source.line("// The kernels. Each comment names the model nodes of the kernel's first use.");
  source.line("#include \"kernels.h\"");
  if (cuda)
    for (StringRef header : {"kernels/reduce.h", "kernels/vector.h", "launch.h"})
      source.line("#include \"runtime/cuda/" + header + "\"");
  else
    source.line("#include \"runtime/kernels/lanes.h\"");
  if (llvm::any_of(kernels, [](const auto &kernel) { return drawsNumbers(kernel.first); }))
    source.line("#include \"runtime/kernels/random.h\"");
  source.line();
  source.openNamespace("trainc::kernels");
  bool failed = false;
  mapped.clear();
  for (auto [function, names] : kernels) {
    source.line();
    const int first = source.lines() + 1;
    describeKernel(function, *names, source);
    failed |=
        mlir::failed(cuda ? emitCudaKernel(function, *names,
                                           launches.lookup(function.getSymName()).elements, source)
                          : emitCpuKernel(function, *names, source));
    mapped.push_back({resolved(names->function), source.markedLine(), {first, source.lines()}});
  }
  source.line();
  source.closeNamespace("trainc::kernels");
  if (failed)
    return failure();
  return source.text();
}

std::string stepHeader(ArrayRef<func::FuncOp> entries) {
  std::string text = R"(// The entry functions of the program.
#pragma once

#include "runtime/program.h"

namespace trainc {

)";
  for (func::FuncOp entry : entries)
    text += ("void " + entry.getName() + "(const arenas &memory);\n").str();
  return text + "\n} // namespace trainc\n";
}

/// The entry functions of a training program, with those of its chunks, or @evaluate alone.
SmallVector<func::FuncOp> entriesOf(ModuleOp module) {
  SmallVector<func::FuncOp> entries;
  for (const char *entry :
       {"forward_backward", "update", "evaluate", "count_labels", "round_parameters"})
    if (auto function = module.lookupSymbol<func::FuncOp>(entry))
      entries.push_back(function);
  for (auto function : module.getOps<func::FuncOp>())
    if (train::chunkOf(function))
      entries.push_back(function);
  return entries;
}

} // namespace

/// Names and prints all kernels. A name chosen after the model must not hide what the kernels call
/// or declare: where one is a word of the text, everything is named and printed again without it.
static FailureOr<std::string> printKernels(ModuleOp module, const MemoryNames &memory,
                                           StringRef target, KernelTable &table,
                                           NamedKernels &kernels,
                                           std::vector<mapped_kernel> &mapped) {
  LaunchTable launches;
  for (func::FuncOp entry : memory.entries())
    for (auto step : entry.getBody().getOps<kernel::StepOpInterface>())
      if (FlatSymbolRefAttr kernel = step.calledKernel())
        launches[kernel.getValue()].add(step, memory);
  const llvm::StringSet<> inParts = kernelsOf(updatesInParts(module));
  Words words;
  while (true) {
    const Words avoided = words;
    NameTable functions(avoided);
    kernels.clear();
    for (auto function : module.getOps<kernel::FunctionOp>()) {
      StringRef symbol = function.getSymName();
      KernelNames &names = table[symbol];
      names = nameKernel(function, launches.lookup(symbol), memory, avoided, functions);
      names.inParts = inParts.contains(symbol);
      names.number = int(kernels.size());
      kernels.push_back({function, &names});
    }
    FailureOr<std::string> source = kernelsSource(kernels, target, launches, mapped);
    if (failed(source) || !addWords(*source, words))
      return source;
  }
}

FailureOr<EmittedCode> trainc::emitCode(ModuleOp module, const MemoryNames &memory,
                                        StringRef target) {
  KernelTable table;
  NamedKernels kernels;
  EmittedCode code;
  FailureOr<std::string> source =
      printKernels(module, memory, target, table, kernels, code.map.kernels);
  if (failed(source))
    return failure();
  code.map.step_file = "source/step.cpp";
  code.map.kernel_file = target == "cuda" ? "source/kernels.cu" : "source/kernels.cpp";
  code.map.memory_file = "source/memory.h";
  code.kernelsHeader = kernelsHeader(kernels);
  code.kernels = resolved(*source);
  TensorLines lines;
  code.memory = memoryHeader(module, memory, lines);
  code.constantsHeader = constantsHeader(memory);
  code.constants = constantsSource(memory);
  code.constantsData = constantsData(memory);
  code.step = stepProgram(module, memory, table, target, code.map);
  for (mapped_entry &entry : code.map.entries)
    for (Value tensor : tensorsOf(module.lookupSymbol<func::FuncOp>(entry.name)))
      entry.tensors.push_back(lines.lookup(memory.find(tensor)));
  return code;
}

FailureOr<source_map> trainc::emitSources(ModuleOp module, StringRef compilerVersion,
                                          StringRef directory, Report &report) {
  internalErrorContext().pass = "emit";
  ProgramTables tables = programTables(module, compilerVersion);
  MemoryNames memory(module, entriesOf(module));
  if (failed(memory.collect()))
    return failure();
  FailureOr<EmittedCode> code = emitCode(module, memory, tables.target.name);
  FailureOr<std::string> trainer = trainerTables(module, tables, memory);
  if (failed(code) || failed(trainer))
    return failure();

  std::pair<const char *, std::string> files[] = {
      {"kernels.h", code->kernelsHeader},
      {tables.target.name == "cuda" ? "kernels.cu" : "kernels.cpp", code->kernels},
      {"memory.h", code->memory},
      {"constants.h", code->constantsHeader},
      {"constants.cpp", code->constants},
      {"step.h", stepHeader(memory.entries())},
      {"step.cpp", code->step},
      {"trainer.cpp", *trainer},
      {"CMakeLists.txt", buildFile(tables)},
  };
  auto write = [&](StringRef name, StringRef text) -> LogicalResult {
    llvm::SmallString<256> file(directory);
    llvm::sys::path::append(file, name);
    std::error_code error = writeWholeFile(file, text); // trainc-emit replaces them one by one
    return error ? report.error(ExitCode::outputNotWritten, file.str(), error.message(),
                                "another folder with -o")
                 : success();
  };
  if (!code->constantsData.empty() && failed(write("constants.bin", code->constantsData)))
    return failure();
  for (auto &[name, text] : files)
    if (failed(write(name, text)))
      return failure();
  return std::move(code->map);
}
