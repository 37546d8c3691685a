// SPDX-License-Identifier: Apache-2.0
//
// Rates are those that makers print, for each direction; latencies and the start of a kernel are
// of the order that is measured (NCCL on NVLink, RDMA over one or two switches, kernels of a CUDA
// graph).
#include "tools/simulate/speeds.h"
#include "runtime/failure.h"
#include "tools/simulate/json_document.h"
#include "tools/simulate/stage_plan.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>

namespace trainc::simulate {

namespace {

struct HostLink : Link {
  int ranksPerHost;
};

const HostLink hostLinks[] = {
    {{"nvlink", 450e9, 3e-6}, 8},       // the fourth, of H100 and H200
    {{"nvlink3", 300e9, 3e-6}, 8},      // of A100
    {{"pcie5", 64e9, 5e-6}, 8},         // 16 lanes
    {{"pcie4", 32e9, 5e-6}, 8},         //
    {{"shared-memory", 10e9, 1e-6}, 2}, // ranks on a CPU's cores
};

constexpr double networkLatency = 5e-6;

// f32 outside of the tensor cores, as trained models have it unless --math tf32.
const Device devices[] = {
    {"a100", 19.5e12, 2.04e12, 2e-6},
    {"h100", 67e12, 3.35e12, 2e-6},
    {"h200", 67e12, 4.8e12, 2e-6},
};

/// Null: there is none.
template <typename Row, size_t count>
const Row *rowCalled(const Row (&rows)[count], const std::string &name) {
  auto found = std::find_if(rows, rows + count, [&](const Row &row) { return name == row.name; });
  return found == rows + count ? nullptr : found;
}

template <typename Row, size_t count> std::string namesOf(const Row (&rows)[count]) {
  std::string names;
  for (const Row &row : rows)
    names += (names.empty() ? "" : ", ") + row.name;
  return names;
}

/// `400G`: so many bits a second and rank.
std::optional<Link> networkLink(const std::string &name) {
  const size_t digits = name.size() - (name.empty() ? 0 : 1);
  if (digits == 0 || digits > 5 || name.back() != 'G' ||
      !std::all_of(name.begin(), name.end() - 1, [](unsigned char c) { return std::isdigit(c); }) ||
      std::stod(name) == 0)
    return std::nullopt;
  return Link{name, std::stod(name) * 1e9 / 8, networkLatency};
}

bool isFile(const std::string &text) {
  return text.find('/') != std::string::npos || (text.size() > 5 && text.ends_with(".json"));
}

double amount(const std::string &path, const nlohmann::json &object, const char *part,
              const char *name, bool mayBeZero) {
  auto found = object.find(name);
  if (found == object.end() || !found->is_number() || !std::isfinite(found->get<double>()) ||
      found->get<double>() < 0 || (!mayBeZero && found->get<double>() == 0))
    throw failure(exit_data, path + ": '" + part + "' has no '" + name + "' " +
                                 (mayBeZero ? "of at least" : "above") + " 0");
  return found->get<double>();
}

const nlohmann::json &partOf(const std::string &path, const nlohmann::json &document,
                             const char *name) {
  auto found = document.find(name);
  if (found == document.end() || !found->is_object())
    throw failure(exit_data, path + ": has no object '" + std::string(name) +
                                 "'\n  try: the example in docs/simulation.md");
  return *found;
}

Link linkOfFile(const std::string &path, const nlohmann::json &document, const char *name) {
  const nlohmann::json &object = partOf(path, document, name);
  return {name, amount(path, object, name, "bytes_per_second", false),
          amount(path, object, name, "latency", true)};
}

Network networkOfFile(const std::string &path) {
  const nlohmann::json document = readDocument(path);
  Network network;
  network.within = linkOfFile(path, document, "within_host");
  network.between = linkOfFile(path, document, "between_hosts");
  const double ranks = amount(path, document, "the file", "ranks_per_host", false);
  if (ranks != std::floor(ranks) || ranks > INT32_MAX)
    throw failure(exit_data, path + ": 'ranks_per_host' is not a number of ranks");
  network.ranksPerHost = int(ranks);
  return network;
}

} // namespace

double Device::secondsOf(double flops, double bytes) const {
  return std::max(flops / flopsPerSecond, bytes / bytesPerSecond) + secondsPerKernel;
}

Network networkOf(const std::string &text) {
  if (isFile(text))
    return networkOfFile(text);
  const size_t plus = text.find('+');
  const std::string first = text.substr(0, plus),
                    second = plus == std::string::npos ? "" : text.substr(plus + 1);
  const HostLink *host = rowCalled(hostLinks, first);
  const std::optional<Link> alone = networkLink(first), other = networkLink(second);
  if (host && other)
    return {*host, *other, host->ranksPerHost};
  if (host && plus == std::string::npos)
    return {*host, *host, INT32_MAX};
  if (alone && plus == std::string::npos)
    return {*alone, *alone, 1};
  throw failure(exit_usage, "option --network: '" + text +
                                "' is not a network\n  try: nvlink+400G (" + namesOf(hostLinks) +
                                " within a host, 100G, 400G, ... between hosts), or a JSON file");
}

Device deviceOf(const std::string &text) {
  if (const Device *known = rowCalled(devices, text))
    return *known;
  if (!isFile(text))
    throw failure(exit_usage, "option --device: '" + text +
                                  "' is unknown\n  try: " + namesOf(devices) +
                                  ", a JSON file with the object 'device', or --profile FILE");
  const nlohmann::json document = readDocument(text);
  const nlohmann::json &object = partOf(text, document, "device");
  return {text, amount(text, object, "device", "flops_per_second", false),
          amount(text, object, "device", "bytes_per_second", false),
          amount(text, object, "device", "seconds_per_kernel", true)};
}

} // namespace trainc::simulate
