// SPDX-License-Identifier: Apache-2.0
//
// What reads model files, under libFuzzer with sanitizers: whatever the bytes are, the reader gives
// a graph or an error and never both nor neither. TRAINC_FUZZ says how inputs are changed: `bytes`,
// or `structure`, which keeps them protobuf messages and changes their fields.
#include "compiler/onnx/file/file_check.h"
#include "compiler/onnx/file/schema.h"
#include "compiler/onnx/graph/graph.h"
#include <cstdlib>
#include <cstring>
#include <google/protobuf/unknown_field_set.h>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

using namespace trainc;
using namespace trainc::reader;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t largest);

namespace {

void require(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "reader_fuzzer: %s\n", what);
  std::abort();
}

/// Both branches of conditions, and each alone; loops as they are, tried and unrolled.
void readGraphs(const ModelFile &file) {
  Choices choices;
  for (int round = 0; round < 3; ++round) {
    Report report;
    std::unique_ptr<Graph> graph = Graph::build(file, choices, report);
    require((graph != nullptr) == report.empty(), "a graph and errors, or neither");
    (void)report.text();
    if (!graph)
      return;
    for (const GraphNode *node : graph->nodes()) {
      if (node->domain.empty())
        (void)checkNode(*node);
      if (node->isIf())
        choices.made[node->key()] = round == 0;
      else if (node->isLoop())
        (round == 0 ? choices.tried : choices.made)[node->key()] = 2;
      else
        for (const onnx::AttributeProto &attribute : node->proto->attribute()) {
          std::string why;
          if (attribute.has_t())
            (void)file.tensorOfNode(attribute.t(), why);
        }
    }
  }
}

class Mutator {
public:
  explicit Mutator(unsigned seed) : random(seed) {}

  void change(Message &root) {
    std::vector<Message *> messages;
    collect(root, messages);
    for (size_t i = 0, count = 1 + pick(4); i < count; ++i) {
      Message &message = *messages[pick(messages.size())];
      changeField(message, messages);
      messages.clear();
      collect(root, messages); // what was removed is gone
    }
  }

private:
  size_t pick(size_t count) { return random() % count; }

  static void collect(Message &message, std::vector<Message *> &messages) {
    messages.push_back(&message);
    const Reflection &reflection = *message.GetReflection();
    std::vector<const FieldDescriptor *> fields;
    reflection.ListFields(message, &fields);
    for (const FieldDescriptor *field : fields) {
      if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE)
        continue;
      for (int i = 0; field->is_repeated() && i < reflection.FieldSize(message, field); ++i)
        collect(*reflection.MutableRepeatedMessage(&message, field, i), messages);
      if (!field->is_repeated())
        collect(*reflection.MutableMessage(&message, field), messages);
    }
  }

  int64_t number() {
    constexpr int64_t kEdges[] = {0,         1,         -1,        2,          7,         17,
                                  INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN,  1LL << 32, 1LL << 40,
                                  1LL << 62, 255,       256,       0x80000000, 23,        28};
    return pick(3) ? kEdges[pick(std::size(kEdges))] : static_cast<int64_t>(random());
  }

  // A name from elsewhere in the model, often; else its bytes changed.
  std::string text(const std::string &old, const std::vector<Message *> &messages) {
    for (int tries = 0; pick(4) && tries < 8; ++tries) {
      Message &other = *messages[pick(messages.size())];
      std::vector<const FieldDescriptor *> fields;
      other.GetReflection()->ListFields(other, &fields);
      for (const FieldDescriptor *field : fields)
        if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && !pick(2)) {
          const Reflection &reflection = *other.GetReflection();
          return field->is_repeated()
                     ? reflection.GetRepeatedString(
                           other, field, static_cast<int>(pick(reflection.FieldSize(other, field))))
                     : reflection.GetString(other, field);
        }
    }
    std::string changed = old;
    changed.resize(changed.size() + 16);
    changed.resize(
        LLVMFuzzerMutate(reinterpret_cast<uint8_t *>(changed.data()), old.size(), changed.size()));
    return changed;
  }

  void changeField(Message &message, const std::vector<Message *> &messages) {
    const auto &descriptor = *message.GetDescriptor();
    if (descriptor.field_count() == 0)
      return;
    const Reflection &reflection = *message.GetReflection();
    const FieldDescriptor *field =
        descriptor.field(static_cast<int>(pick(descriptor.field_count())));
    int size = field->is_repeated() ? reflection.FieldSize(message, field) : 0;
    size_t action = pick(6);
    if (action == 0) {
      reflection.ClearField(&message, field);
    } else if (field->is_repeated() && size && action == 1) {
      reflection.RemoveLast(&message, field);
    } else if (field->is_repeated() && size > 1 && action == 2) {
      reflection.SwapElements(&message, field, static_cast<int>(pick(size)),
                              static_cast<int>(pick(size)));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      setMessage(message, field, size, messages);
    } else {
      setValue(message, field, size, messages);
    }
  }

  // Another message of the same type, copied; recursion makes graphs within graphs.
  void setMessage(Message &message, const FieldDescriptor *field, int size,
                  const std::vector<Message *> &messages) {
    const Reflection &reflection = *message.GetReflection();
    std::unique_ptr<Message> copy;
    for (int tries = 0; !copy && tries < 32; ++tries) {
      const Message *other = messages[pick(messages.size())];
      if (other->GetDescriptor() == field->message_type() && other->ByteSizeLong() < 4096) {
        copy.reset(other->New());
        copy->CopyFrom(*other);
      }
    }
    Message *target = field->is_repeated()
                          ? (size && pick(2) ? reflection.MutableRepeatedMessage(
                                                   &message, field, static_cast<int>(pick(size)))
                                             : reflection.AddMessage(&message, field))
                          : reflection.MutableMessage(&message, field);
    if (copy)
      target->CopyFrom(*copy);
  }

  void setValue(Message &message, const FieldDescriptor *field, int size,
                const std::vector<Message *> &messages) {
    const Reflection &reflection = *message.GetReflection();
    bool adds = field->is_repeated() && (size == 0 || pick(2));
    int at = size ? static_cast<int>(pick(size)) : 0;
#define SET(Type, value)                                                                           \
  if (!field->is_repeated())                                                                       \
    reflection.Set##Type(&message, field, value);                                                  \
  else if (adds)                                                                                   \
    reflection.Add##Type(&message, field, value);                                                  \
  else                                                                                             \
    reflection.SetRepeated##Type(&message, field, at, value);                                      \
  break
    switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      SET(Int32, static_cast<int32_t>(number()));
    case FieldDescriptor::CPPTYPE_INT64:
      SET(Int64, number());
    case FieldDescriptor::CPPTYPE_UINT64:
      SET(UInt64, static_cast<uint64_t>(number()));
    case FieldDescriptor::CPPTYPE_FLOAT:
      SET(Float, static_cast<float>(number()));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      SET(Double, static_cast<double>(number()));
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto *values = field->enum_type();
      SET(Enum, values->value(static_cast<int>(pick(values->value_count()))));
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      std::string old = !field->is_repeated() ? reflection.GetString(message, field)
                        : size                ? reflection.GetRepeatedString(message, field, at)
                                              : "";
      std::string changed = text(old, messages);
      SET(String, changed);
    }
    default:
      break;
    }
#undef SET
  }

  std::mt19937_64 random;
};

bool changesStructure() {
  static const char *mode = std::getenv("TRAINC_FUZZ");
  return mode && std::strcmp(mode, "structure") == 0;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const int descriptor = memfd_create("model", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  require(ftruncate(descriptor, 0) == 0 &&
              pwrite(descriptor, data, size, 0) == static_cast<ssize_t>(size),
          "the file of a model cannot be written");
  Report report;
  std::shared_ptr<ModelFile> file = ModelFile::open(path, report);
  require((file != nullptr) == report.empty(), "a file and errors, or neither");
  if (file && checkFile(*file, report))
    readGraphs(*file);
  (void)report.text();
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t largest,
                                          unsigned seed) {
  onnx::ModelProto model;
  if (!changesStructure() || !model.ParsePartialFromArray(data, static_cast<int>(size)))
    return LLVMFuzzerMutate(data, size, largest);
  Mutator(seed).change(model);
  std::string bytes = model.SerializePartialAsString();
  if (bytes.size() > largest)
    return size;
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}
