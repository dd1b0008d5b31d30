// Copies, streams, events, captures and graphs.
#include <gtest/gtest.h>

#include <thread>

#include "tests/cuda_emulation/tests/device.h"

namespace gs::cuda_emulation {
namespace {

using Floats = std::vector<float>;

__global__ void add_to(float* y, float value) { y[threadIdx.x] += value; }

struct Streams {
  Streams() {
    for (cudaStream_t* stream : {&a, &b})
      check_call(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  ~Streams() {
    for (cudaStream_t stream : {a, b}) cudaStreamDestroy(stream);
  }
  cudaStream_t a = nullptr, b = nullptr;
};

TEST(CopiesAndFills, RefuseWhatDoesNotFit) {
  const DeviceArray<float> x(4);
  float host = 0;
  EXPECT_EQ(cudaMemcpy(x.data(), &host, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(x.data(), 0, 17), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemset(&host, 0, 4), cudaErrorInvalidValue);
  EXPECT_EQ(cudaFreeHost(&host), cudaErrorInvalidValue);
}

TEST(Memory, TellsItsKindAndItsEnd) {
  const DeviceArray<float> x(4);
  cudaPointerAttributes attributes{};
  check_call(cudaPointerGetAttributes(&attributes, x.data() + 3), "cudaPointerGetAttributes");
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  check_call(cudaPointerGetAttributes(&attributes, &attributes), "cudaPointerGetAttributes");
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
  void* huge = nullptr;
  EXPECT_EQ(cudaMalloc(&huge, size_t{1} << 40), cudaErrorMemoryAllocation);
  EXPECT_EQ(huge, nullptr);
}

TEST(Streams, WaitForEvents) {
  Streams streams;
  const DeviceArray<float> y(Floats(4, 0.0f));
  cudaEvent_t written = nullptr, end = nullptr;
  check_call(cudaEventCreate(&written), "cudaEventCreate");
  check_call(cudaEventCreate(&end), "cudaEventCreate");
  start(add_to, 1, 4, 0, streams.a, y.data(), 1.0f);
  check_call(cudaEventRecord(written, streams.a), "cudaEventRecord");
  check_call(cudaStreamWaitEvent(streams.b, written, 0), "cudaStreamWaitEvent");
  float* pinned = nullptr;
  check_call(cudaMallocHost(&pinned, 16), "cudaMallocHost");
  check_call(cudaMemcpyAsync(pinned, y.data(), 16, cudaMemcpyDeviceToHost, streams.b), "copy");
  check_call(cudaEventRecord(end, streams.b), "cudaEventRecord");
  check_call(cudaEventSynchronize(end), "cudaEventSynchronize");
  EXPECT_EQ(pinned[3], 1.0f);
  EXPECT_EQ(cudaEventQuery(written), cudaSuccess);
  float milliseconds = -1;
  check_call(cudaEventElapsedTime(&milliseconds, written, end), "cudaEventElapsedTime");
  EXPECT_GE(milliseconds, 0.0f);
  check_call(cudaFreeHost(pinned), "cudaFreeHost");
  cudaEventDestroy(written);
  cudaEventDestroy(end);
}

TEST(Streams, ServeSeveralThreads) {
  Streams streams;
  const DeviceArray<float> y(Floats(64, 0.0f)), z(Floats(64, 0.0f));
  const auto work = [](cudaStream_t stream, float* place) {
    for (int i = 0; i < 50; ++i) {
      start(add_to, 1, 64, 0, stream, place, 1.0f);
      check_call(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    }
  };
  std::thread other(work, streams.b, z.data());
  work(streams.a, y.data());
  other.join();
  EXPECT_EQ(y.values(), Floats(64, 50.0f));
  EXPECT_EQ(z.values(), Floats(64, 50.0f));
}

// y += 1, then on another stream y += 2, joined.
cudaGraph_t capture(Streams& streams, float* y) {
  cudaEvent_t event = nullptr;
  check_call(cudaEventCreate(&event), "cudaEventCreate");
  check_call(cudaStreamBeginCapture(streams.a, cudaStreamCaptureModeThreadLocal), "begin");
  start(add_to, 1, 4, 0, streams.a, y, 1.0f);
  check_call(cudaEventRecord(event, streams.a), "cudaEventRecord");
  check_call(cudaStreamWaitEvent(streams.b, event, 0), "cudaStreamWaitEvent");
  start(add_to, 1, 4, 0, streams.b, y, 2.0f);
  EXPECT_EQ(cudaEventQuery(event), cudaErrorCapturedEvent);
  check_call(cudaEventRecord(event, streams.b), "cudaEventRecord");
  check_call(cudaStreamWaitEvent(streams.a, event, 0), "cudaStreamWaitEvent");
  check_call(cudaMemsetAsync(y, 0, 4, streams.a), "cudaMemsetAsync");
  cudaGraph_t graph = nullptr;
  check_call(cudaStreamEndCapture(streams.a, &graph), "cudaStreamEndCapture");
  cudaEventDestroy(event);
  return graph;
}

TEST(Graphs, ReplayWhatWasCaptured) {
  Streams streams;
  const DeviceArray<float> y(Floats(4, 0.0f));
  const cudaGraph_t graph = capture(streams, y.data());
  EXPECT_EQ(y.values(), Floats(4, 0.0f));  // captured, not run
  cudaGraphExec_t executable = nullptr;
  check_call(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  for (int i = 0; i < 2; ++i) check_call(cudaGraphLaunch(executable, streams.b), "launch");
  EXPECT_EQ(y.values(), (Floats{0, 6, 6, 6}));
  cudaGraphDestroy(graph);
  cudaGraphExecDestroy(executable);
}

TEST(Captures, GiveTheErrorsOfTheRuntime) {
  Streams streams;
  const DeviceArray<float> y(Floats(4, 0.0f));
  cudaGraph_t graph = nullptr;
  void* memory = nullptr;
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(streams.a, &graph), cudaErrorIllegalState);

  check_call(cudaStreamBeginCapture(streams.a, cudaStreamCaptureModeThreadLocal), "begin");
  EXPECT_EQ(cudaMalloc(&memory, 4), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaMemsetAsync(y.data(), 0, 4, streams.a), cudaErrorStreamCaptureInvalidated);
  cudaStreamCaptureStatus status{};
  check_call(cudaStreamIsCapturing(streams.a, &status), "cudaStreamIsCapturing");
  EXPECT_EQ(status, cudaStreamCaptureStatusInvalidated);
  EXPECT_EQ(cudaStreamEndCapture(streams.a, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);

  // The relaxed mode lets memory be allocated, but not the captured stream be waited for.
  check_call(cudaStreamBeginCapture(streams.a, cudaStreamCaptureModeRelaxed), "begin");
  check_call(cudaMalloc(&memory, 4), "cudaMalloc");
  check_call(cudaFree(memory), "cudaFree");
  EXPECT_EQ(cudaStreamSynchronize(streams.a), cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(streams.a, &graph), cudaErrorStreamCaptureInvalidated);

  // A branch that does not come back.
  cudaEvent_t event = nullptr;
  check_call(cudaEventCreate(&event), "cudaEventCreate");
  check_call(cudaStreamBeginCapture(streams.a, cudaStreamCaptureModeThreadLocal), "begin");
  check_call(cudaEventRecord(event, streams.a), "cudaEventRecord");
  check_call(cudaStreamWaitEvent(streams.b, event, 0), "cudaStreamWaitEvent");
  start(add_to, 1, 4, 0, streams.b, y.data(), 2.0f);
  EXPECT_EQ(cudaStreamEndCapture(streams.b, &graph), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(cudaStreamEndCapture(streams.a, &graph), cudaErrorStreamCaptureUnjoined);
  cudaEventDestroy(event);
}

TEST(Captures, ForbidOtherThreadsWhatTheirModesSay) {
  Streams streams;
  for (const auto& [mode, expected] :
       {std::pair{cudaStreamCaptureModeGlobal, cudaErrorStreamCaptureUnsupported},
        std::pair{cudaStreamCaptureModeThreadLocal, cudaSuccess}}) {
    check_call(cudaStreamBeginCapture(streams.a, mode), "begin");
    cudaError_t status = cudaSuccess;
    std::thread([&status = status] {
      void* memory = nullptr;
      status = cudaMalloc(&memory, 4);
      cudaFree(memory);
    }).join();
    EXPECT_EQ(status, expected);
    cudaGraph_t graph = nullptr;
    cudaStreamEndCapture(streams.a, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
  }
}

}  // namespace
}  // namespace gs::cuda_emulation
