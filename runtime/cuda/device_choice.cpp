// SPDX-License-Identifier: Apache-2.0
//
// Each reason that a device cannot be used is said once, by the lowest rank that has
// it, before anything is allocated.
#include "runtime/cuda/device_choice.h"

#include "runtime/cuda/errors.h"
#include "runtime/cuda/flat_sum.h"

#include <cstring>
#include <vector>

namespace trainc {
namespace {

std::string version_text(int version) {
  return format_text("%d.%d", version / 1000, version % 1000 / 10);
}

// CUDA promises that a driver runs programs of an older toolkit, and of a newer one
// only within a major version; the status says which case this is.
int count_devices() {
  int count = 0, driver = 0, toolkit = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  check_cuda(cudaDriverGetVersion(&driver), "asking for the driver's version");
  check_cuda(cudaRuntimeGetVersion(&toolkit), "asking for the toolkit's version");
  if (driver == 0)
    throw failure(exit_machine, "no NVIDIA driver is loaded on this host; the model computes on "
                                "a GPU\n  try: a host with one, or trainc --target cpu");
  if (status == cudaErrorInsufficientDriver)
    throw failure(exit_machine,
                  format_text("the NVIDIA driver is made for CUDA %s, older than the CUDA %s that "
                              "the model was built with\n  try: a newer driver, or compiling "
                              "the model with CUDA %s",
                              version_text(driver).c_str(), version_text(toolkit).c_str(),
                              version_text(driver).c_str()));
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0))
    throw failure(exit_machine, "no GPU is visible on this host\n  try: nvidia-smi, which lists "
                                "them; CUDA_VISIBLE_DEVICES hides those that it does not name");
  check_cuda(status, "counting GPUs");
  return count;
}

[[noreturn]] void refuse_sharing(int count, int ranks_on_host) {
  throw failure(exit_machine,
                format_text("%d ranks run on this host, which shows %d GPU%s; each rank needs one "
                            "of its own\n  try: mpirun -n %d, or more hosts, or a launcher that "
                            "shows each rank another GPU",
                            ranks_on_host, count, count == 1 ? "" : "s", count));
}

void refuse_shared_device(communicator &ranks, int count, const cudaUUID_t &mine) {
  std::vector<cudaUUID_t> all(static_cast<size_t>(ranks.size()));
  ranks.gather(&mine, sizeof mine, all.data());
  ranks.together([&] {
    for (int other = 0; other < ranks.rank(); ++other)
      if (!memcmp(&all[static_cast<size_t>(other)], &mine, sizeof mine))
        refuse_sharing(count, ranks.ranks_on_host());
  });
}

void refuse_architecture(const chosen_device &device, const cudaDeviceProp &properties) {
  cudaError_t status = find_flat_sum();
  if (status == cudaErrorNoKernelImageForDevice || status == cudaErrorUnsupportedPtxVersion)
    throw failure(exit_machine,
                  format_text("device %d, %s, has architecture %d.%d, for which the model holds "
                              "no code\n  try: trainc --cuda-arch %d%d",
                              device.index, device.name.c_str(), properties.major, properties.minor,
                              properties.major, properties.minor));
  check_cuda(status, "finding the kernels of the model");
}

} // namespace

chosen_device choose_device(communicator &ranks, std::optional<int> asked) {
  chosen_device device;
  int count = 0;
  cudaDeviceProp properties = {};
  ranks.together([&] {
    count = count_devices();
    // launchers show a rank every GPU of its host, or only its own
    device.index = asked ? *asked : count == 1 ? 0 : ranks.rank_on_host();
    if (asked && (*asked < 0 || *asked >= count))
      throw failure(exit_usage, format_text("device %d: this host shows %d\n  try: a number below "
                                            "that, from 0 on",
                                            *asked, count));
    if (device.index >= count)
      refuse_sharing(count, ranks.ranks_on_host());
    check_cuda(cudaSetDevice(device.index), "choosing a GPU");
    check_cuda(cudaGetDeviceProperties(&properties, device.index), "asking for a GPU's name");
    device.name = properties.name;
    refuse_architecture(device, properties);
  });
  refuse_shared_device(ranks, count, properties.uuid);
  return device;
}

} // namespace trainc
