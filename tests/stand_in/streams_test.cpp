// SPDX-License-Identifier: Apache-2.0
//
// Streams, events, graphs and copies: what is ordered runs in that order, what is not
// is named.
#include "test_kernels.h"

#include <nccl.h>

namespace trainc::stand_in {

__global__ void add_one(float *x) { x[blockIdx.x * blockDim.x + threadIdx.x] += 1; }
__global__ void copy_of(const float *x, float *y) { y[threadIdx.x] = x[threadIdx.x]; }

namespace {

constexpr size_t bytes = 64 * sizeof(float);

class Streams : public ::testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    set_options(GetParam());
    ASSERT_EQ(cudaStreamCreateWithFlags(&compute, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
    ASSERT_EQ(cudaEventCreateWithFlags(&other_event, cudaEventDisableTiming), cudaSuccess);
    ASSERT_EQ(cudaMallocHost(&pinned, bytes), cudaSuccess);
    for (int i = 0; i < 64; ++i)
      pinned[i] = static_cast<float>(i);
  }
  void TearDown() override {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    for (cudaEvent_t one : {event, other_event})
      EXPECT_EQ(cudaEventDestroy(one), cudaSuccess);
    for (cudaStream_t one : {compute, copies})
      EXPECT_EQ(cudaStreamDestroy(one), cudaSuccess);
    EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
    EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
    set_options("");
  }
  void upload(float *to) {
    ASSERT_EQ(cudaMemcpyAsync(to, pinned, bytes, cudaMemcpyHostToDevice, copies), cudaSuccess);
  }
  void compute_waits_for_copies() {
    ASSERT_EQ(cudaEventRecord(event, copies), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(compute, event), cudaSuccess);
  }
  void copies_wait_for_compute() {
    ASSERT_EQ(cudaEventRecord(other_event, compute), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(copies, other_event), cudaSuccess);
  }
  cudaStream_t compute, copies;
  cudaEvent_t event, other_event;
  float *pinned;
};
INSTANTIATE_TEST_SUITE_P(All, Streams, ::testing::Values("", "streams=late"));

TEST_P(Streams, WaitsOrderTwoStreams) {
  device_buffer<float> x(64, false), y(64, false);
  for (int round = 0; round < 3; ++round) {
    upload(x.data);
    compute_waits_for_copies();
    launch_on(compute, copy_of, 1, 64, reads(x.data, 64), writes(y.data, 64));
    launch_on(compute, add_one, 1, 64, writes(y.data, 64));
    copies_wait_for_compute();
  }
  ASSERT_EQ(cudaStreamSynchronize(compute), cudaSuccess);
  EXPECT_EQ(y.host()[63], 64);
}

TEST_P(Streams, MissingWaitForACopy) {
  device_buffer<float> x(64, false), y(64, false);
  upload(x.data);
  ASSERT_EQ(cudaStreamSynchronize(copies), cudaSuccess);
  upload(x.data);
  const auto use = [&] {
    launch_on(compute, copy_of, 1, 64, reads(x.data, 64), writes(y.data, 64));
    cudaStreamSynchronize(compute);
  };
  EXPECT_FAULT(
      use(),
      "race of kernel .*copy_of on stream [0-9]+: reads 4 bytes that copy to the device of 256 "
      "bytes on stream [0-9]+ wrote, and nothing orders the two: a wait "
      "\\(cudaStreamWaitEvent\\) is missing: element [0-9]+ of argument 0|"
      "copy to the device of 256 bytes on stream [0-9]+: race: writes 4 bytes that kernel "
      ".*copy_of on stream [0-9]+ read");
}

TEST_P(Streams, MissingWaitForReaders) {
  device_buffer<float> x(64), y(64, false);
  launch_on(compute, copy_of, 1, 64, reads(x.data, 64), writes(y.data, 64));
  const auto overwrite = [&] {
    upload(x.data);
    cudaStreamSynchronize(copies);
  };
  EXPECT_FAULT(overwrite(), "race.*: .*a wait \\(cudaStreamWaitEvent\\) is missing");
}

TEST_P(Streams, HostWaitOrdersToo) {
  device_buffer<float> x(64, false), y(64, false);
  upload(x.data);
  ASSERT_EQ(cudaEventRecord(event, copies), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(event), cudaSuccess);
  EXPECT_EQ(cudaEventQuery(event), cudaSuccess);
  launch_on(compute, copy_of, 1, 64, reads(x.data, 64), writes(y.data, 64));
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(y.host()[5], 5);
}

TEST_P(Streams, DefaultStreamWaitsForBlockingOnes) {
  cudaStream_t blocking;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  device_buffer<float> x(64);
  launch_on(blocking, add_one, 1, 64, writes(x.data, 64));
  launch_on(nullptr, add_one, 1, 64, writes(x.data, 64));
  launch_on(blocking, add_one, 1, 64, writes(x.data, 64));
  EXPECT_EQ(x.host()[1], 4);
  ASSERT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
}

cudaGraphExec_t captured(cudaStream_t stream, const std::function<void()> &work) {
  EXPECT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  work();
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphExec_t executable = nullptr;
  EXPECT_EQ(cudaGraphInstantiate(&executable, graph), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  return executable;
}

TEST_P(Streams, GraphsRunAtEveryLaunch) {
  device_buffer<float> x(64, false), y(64, false);
  const cudaGraphExec_t graph = captured(compute, [&] {
    cudaStreamCaptureStatus status;
    ASSERT_EQ(cudaStreamIsCapturing(compute, &status), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusActive);
    copies_wait_for_compute(); // takes part from here on
    upload(x.data);
    compute_waits_for_copies();
    launch_on(compute, copy_of, 1, 64, reads(x.data, 64), writes(y.data, 64));
    launch_on(compute, add_one, 1, 64, writes(y.data, 64));
  });
  for (int round = 1; round < 4; ++round) {
    pinned[7] = static_cast<float>(round);
    ASSERT_EQ(cudaGraphLaunch(graph, compute), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(compute), cudaSuccess);
    EXPECT_EQ(y.host()[7], round + 1);
  }
  ASSERT_EQ(cudaGraphExecDestroy(graph), cudaSuccess);
}

TEST_P(Streams, MissingWaitWithinAGraph) {
  device_buffer<float> x(64), y(64, false);
  const cudaGraphExec_t graph = captured(compute, [&] {
    copies_wait_for_compute();
    upload(x.data);
    launch_on(compute, copy_of, 1, 64, reads(x.data, 64), writes(y.data, 64));
    compute_waits_for_copies();
  });
  const auto run = [&] {
    cudaGraphLaunch(graph, compute);
    cudaStreamSynchronize(compute);
  };
  EXPECT_FAULT(run(), "race of kernel .*copy_of on stream [0-9]+: reads 4 bytes that copy to the "
                      "device .*a wait \\(cudaStreamWaitEvent\\) is missing");
}

TEST_P(Streams, CaptureRefusesWhatCudaRefuses) {
  device_buffer<float> x(64);
  cudaGraph_t graph;
  ASSERT_EQ(cudaStreamBeginCapture(compute, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(compute), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(compute, &graph), cudaErrorStreamCaptureInvalidated);

  ASSERT_EQ(cudaStreamBeginCapture(compute, cudaStreamCaptureModeGlobal), cudaSuccess);
  float *more;
  EXPECT_EQ(cudaMalloc(&more, 4), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(compute, &graph), cudaErrorStreamCaptureInvalidated);

  ASSERT_EQ(cudaEventRecord(event, copies), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(compute, cudaStreamCaptureModeGlobal), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(compute, event), cudaErrorStreamCaptureIsolation);
  EXPECT_EQ(cudaStreamEndCapture(compute, &graph), cudaErrorStreamCaptureInvalidated);

  ASSERT_EQ(cudaStreamBeginCapture(compute, cudaStreamCaptureModeGlobal), cudaSuccess);
  copies_wait_for_compute();
  launch_on(copies, add_one, 1, 64, writes(x.data, 64));
  EXPECT_EQ(cudaStreamEndCapture(compute, &graph), cudaErrorStreamCaptureUnjoined);
  EXPECT_NE(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_P(Streams, CopiesOutsideMemory) {
  device_buffer<float> x(32);
  EXPECT_FAULT(upload(x.data),
               "copy to the device of 256 bytes on stream [0-9]+: the destination \\(256 bytes\\) "
               "reaches outside device memory: it starts at byte 0 of device allocation [0-9]+, "
               "which has 128");
  EXPECT_EQ(cudaMemcpyAsync(pinned, pinned, 4, cudaMemcpyHostToDevice, copies),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
}

TEST_P(Streams, ElapsedTime) {
  cudaEvent_t start, end;
  ASSERT_EQ(cudaEventCreate(&start), cudaSuccess);
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(start, compute), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(end, compute), cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(end), cudaSuccess);
  float milliseconds = -1;
  ASSERT_EQ(cudaEventElapsedTime(&milliseconds, start, end), cudaSuccess);
  EXPECT_GE(milliseconds, 0);
  ASSERT_EQ(cudaEventDestroy(start), cudaSuccess);
  ASSERT_EQ(cudaEventDestroy(end), cudaSuccess);
}

TEST(LateStreams, NothingRunsBeforeTheHostWaits) {
  set_options("streams=late");
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  float *pinned;
  ASSERT_EQ(cudaMallocHost(&pinned, bytes), cudaSuccess);
  pinned[0] = 5;
  device_buffer<float> x(64);
  ASSERT_EQ(cudaMemcpyAsync(pinned, x.data, bytes, cudaMemcpyDeviceToHost, stream), cudaSuccess);
  EXPECT_EQ(pinned[0], 5);
  EXPECT_EQ(cudaStreamQuery(stream), cudaErrorNotReady);
  EXPECT_EQ(cudaStreamQuery(stream), cudaSuccess);
  EXPECT_EQ(pinned[0], 0);

  ASSERT_EQ(cudaMemcpyAsync(x.data, pinned, bytes, cudaMemcpyHostToDevice, stream), cudaSuccess);
  pinned[0] = 6;
  EXPECT_FAULT(cudaStreamSynchronize(stream), "the host changed the source before the copy ran");
  pinned[0] = 0;
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  ASSERT_EQ(cudaFreeHost(pinned), cudaSuccess);
  set_options("");
}

TEST(Settings, UnknownWordsEndTheProgram) {
  EXPECT_EXIT(set_options("threads=sideways"), ::testing::ExitedWithCode(exit_status),
              "TRAINC_STAND_IN: 'threads=sideways': threads are forward, reverse or random:SEED");
  EXPECT_EXIT(set_options("late"), ::testing::ExitedWithCode(exit_status), "unknown word 'late'");
}

TEST(Settings, Devices) {
  int value = 0;
  set_options("devices=0");
  EXPECT_EQ(cudaGetDeviceCount(&value), cudaErrorNoDevice);
  set_options("driver=12080");
  EXPECT_EQ(cudaGetDeviceCount(&value), cudaErrorInsufficientDriver);
  EXPECT_EQ(cudaDriverGetVersion(&value), cudaSuccess);
  EXPECT_EQ(value, 12080);
  set_options("devices=2,capability=8.0,memory=1000000");
  EXPECT_EQ(cudaGetDeviceCount(&value), cudaSuccess);
  EXPECT_EQ(value, 2);
  EXPECT_EQ(cudaSetDevice(2), cudaErrorInvalidDevice);
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_EQ(properties.major, 8);
  float *x;
  EXPECT_EQ(cudaMalloc(&x, 2000000), cudaErrorMemoryAllocation);
  EXPECT_STREQ(cudaGetErrorName(cudaGetLastError()), "cudaErrorMemoryAllocation");
  ASSERT_EQ(cudaMalloc(&x, 900000), cudaSuccess);
  size_t free = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&free, &total), cudaSuccess);
  EXPECT_LE(free, 100000u);
  ASSERT_EQ(cudaFree(x), cudaSuccess);
  set_options("");
}

TEST(Collectives, OneRank) {
  ncclUniqueId id;
  ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
  ncclComm_t communicator;
  set_options("nccl=fail");
  EXPECT_EQ(ncclCommInitRank(&communicator, 1, id, 0), ncclSystemError);
  set_options("");
  ASSERT_EQ(ncclCommInitRank(&communicator, 1, id, 0), ncclSuccess);
  device_buffer<float> x(64), y(64, false), z(64, false);
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  EXPECT_EQ(ncclAllReduce(x.data, y.data, 64, ncclFloat, ncclSum, communicator, stream),
            ncclSuccess);
  EXPECT_EQ(ncclAllGather(y.data, z.data, 64, ncclFloat, communicator, stream), ncclSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(z.host()[9], 9);
  device_buffer<float> never(64, false);
  EXPECT_FAULT(ncclAllReduce(never.data, y.data, 64, ncclFloat, ncclSum, communicator, stream),
               "all-reduce on stream [0-9]+: reads 4 bytes never written");
  EXPECT_EQ(ncclSend(x.data, 64, ncclFloat, 1, communicator, stream), ncclInvalidArgument);
  ASSERT_EQ(ncclCommDestroy(communicator), ncclSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
}

} // namespace
} // namespace trainc::stand_in
