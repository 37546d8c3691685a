// SPDX-License-Identifier: Apache-2.0
//
// The C++ header refuses elements of another type than the tensor has.
#include "model_net.hpp"
#include <cstdio>
int main() {
  model_net_instance m;
  int caught = 0;
  std::vector<int> wrong(96);
  std::vector<float> x(96), y(56);
  auto refuse = [&](auto f) {
    try {
      f();
      std::puts("not refused");
    } catch (const model_net_error &e) {
      ++caught;
      std::puts(e.what());
    }
  };
  refuse([&] { m.set_input("x", wrong); });
  refuse([&] { m.read<double>(MODEL_NET_PARAMETERS, "second.bias"); });
  refuse([&] { m.data<double>(MODEL_NET_PARAMETERS, "second.bias"); });
  refuse([&] { m.read_all<double>(MODEL_NET_PARAMETERS); });
  refuse([&] { m.read<float>(MODEL_NET_PARAMETERS, "nothing"); });
  m.set_input("x", x);
  m.set_input("labels", y);
  m.step();
  auto all = m.read_all(MODEL_NET_PARAMETERS);
  m.write_all(MODEL_NET_PARAMETERS, all);
  auto bias = m.data<float>(MODEL_NET_PARAMETERS, "second.bias");
  return caught == 5 && bias.size() == 7 ? 0 : 1;
}
