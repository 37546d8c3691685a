// SPDX-License-Identifier: Apache-2.0
//
// A step of the plan counts for the node that it is named after, and for every module that this
// node is in. Gradients and what is recomputed have names of their own.
#include "runtime/commands/costliest.h"

#include "runtime/plan/titles.h"

#include <algorithm>
#include <cstdio>

namespace trainc {
namespace {

constexpr size_t rows_shown = 20;

// Of a training step.
struct cost {
  double seconds = 0, flops = 0, bytes = 0;

  void add(const cost &other) {
    seconds += other.seconds;
    flops += other.flops;
    bytes += other.bytes;
  }
};
using costs = std::map<std::string, cost>; // by name

struct costs_of_step {
  costs kernels, nodes, modules;
};

void add_step(costs_of_step &all, const std::string &kernel, const std::string &node,
              const cost &of) {
  all.kernels[kernel].add(of);
  if (node.empty())
    return;
  all.nodes[node].add(of);
  for (size_t dot = node.find('.', length_of_prefix(node)); dot != std::string::npos;
       dot = node.find('.', dot + 1))
    all.modules[node.substr(0, dot)].add(of);
}

void add_entry(costs_of_step &all, const nlohmann::ordered_json &entry, const plan &plan) {
  const double times = entry["times"];
  const planned_entry *known = plan.find(entry["entry"].get<std::string>());
  for (size_t i = 0; known && i < std::min(entry["steps"].size(), known->steps.size()); ++i) {
    const planned_kernel &kernel = known->kernel_of(known->steps[i]);
    add_step(all, kernel.text, known->steps[i].title(),
             {times * entry["steps"][i]["seconds"].get<double>(), times * kernel.flops,
              times * double(kernel.bytes)});
  }
}

void print_table(const char *title, const costs &of, double step_seconds, double product_rate) {
  std::vector<std::pair<std::string, cost>> rows(of.begin(), of.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto &a, const auto &b) {
    return a.second.seconds > b.second.seconds;
  });
  rows.resize(std::min(rows.size(), rows_shown));
  printf("\nthe costliest %s\n%14s %10s %10s %10s %10s\n", title, "seconds", "of a step", "GFLOP/s",
         "GB/s", product_rate > 0 ? "of product" : "");
  for (const auto &[name, cost] : rows) {
    const double rate = cost.seconds > 0 ? cost.flops / cost.seconds : 0;
    printf("%14.9f %8.2f %% %10.2f %10.2f", cost.seconds, 100 * cost.seconds / step_seconds,
           rate * 1e-9, cost.seconds > 0 ? cost.bytes / cost.seconds * 1e-9 : 0);
    if (product_rate > 0)
      printf(" %8.2f %%", 100 * rate / product_rate);
    else
      printf(" %10s", "");
    printf("  %s\n", name.c_str());
  }
}

} // namespace

void print_costliest(const nlohmann::ordered_json &reports, const plan &plan, double step_seconds,
                     const machine_rates &rates) {
  costs_of_step all;
  for (const nlohmann::ordered_json &report : reports)
    if (report["replica"] == 0)
      for (const nlohmann::ordered_json &entry : report["entries"])
        add_entry(all, entry, plan);
  if (rates.product > 0)
    printf("\na product of large matrices: %.2f GFLOP/s\n", rates.product * 1e-9);
  if (rates.copy > 0)
    printf("\na copy within the memory: %.2f GB/s\n", rates.copy * 1e-9);
  print_table("kernels", all.kernels, step_seconds, rates.product);
  print_table("nodes", all.nodes, step_seconds, rates.product);
  print_table("modules", all.modules, step_seconds, rates.product);
}

} // namespace trainc
