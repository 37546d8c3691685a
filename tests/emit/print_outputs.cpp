// SPDX-License-Identifier: Apache-2.0
//
// Runs @evaluate of an emitted program on made-up inputs and prints every element of
// its outputs, for comparison between targets.
#include "runtime/device.h"
#include "runtime/files/data_types.h"
#include "runtime/options/trainer_table.h"
#include "runtime/random.h"
#include "runtime/ranks/communicator.h"

#include <cstdio>

using namespace trainc;

namespace {

/// The elements of a tensor, one call each, with the pointer to it.
template <typename Call> void each_element(const tensor_place &tensor, char *data, Call call) {
  for (int64_t i = 0; i < element_count(tensor); ++i) {
    char *element = data + i * bytes_of(tensor.type);
    switch (tensor.type) {
    case data_type::f32:
      call(i, reinterpret_cast<float *>(element));
      break;
    case data_type::f64:
      call(i, reinterpret_cast<double *>(element));
      break;
    case data_type::i32:
      call(i, reinterpret_cast<int32_t *>(element));
      break;
    case data_type::i64:
      call(i, reinterpret_cast<int64_t *>(element));
      break;
    case data_type::boolean:
      call(i, reinterpret_cast<uint8_t *>(element));
      break;
    }
  }
}

void fill(const input_place &input, char *data, uint64_t seed) {
  each_element(input.tensor, data, [&](int64_t i, auto *element) {
    uint64_t bits = (seed + static_cast<uint64_t>(i)) * 0x9e3779b97f4a7c15u;
    bits = (bits ^ (bits >> 29)) * 0xbf58476d1ce4e5b9u >> 11; // 53 bits
    using element_type = std::remove_pointer_t<decltype(element)>;
    if constexpr (std::is_floating_point_v<element_type>)
      *element = static_cast<element_type>(static_cast<double>(bits) * 0x1p-52 - 1.0);
    else
      *element = static_cast<element_type>(
          bits % static_cast<uint64_t>(input.index_bound > 0 ? input.index_bound : 2));
  });
}

} // namespace

int main() {
  communicator ranks;
  const char *const words[] = {"evaluate"};
  trainer_options options = trainer_table(trainer_program).parse(1, words);
  device target(trainer_program, options, ranks, true);
  target.allocate(memory_use::forward, 1);
  for (int64_t i = 0; i < std::ssize(trainer_program.inputs); ++i)
    fill(trainer_program.inputs[i], target.batch_place(trainer_program.inputs[i].tensor),
         static_cast<uint64_t>(i) << 32);
  target.send_batch();
  target.submit_batch();
  target.run(entry::evaluate);
  target.finish();
  for (const tensor_place &output : trainer_program.outputs) {
    const char *data =
        target.read(target.places()[output.arena] + output.offset, byte_count(output));
    each_element(output, const_cast<char *>(data), [&](int64_t at, auto *element) {
      printf("%s[%ld] %.17g\n", output.name, static_cast<long>(at), static_cast<double>(*element));
    });
  }
}
