// Bugs in the order of streams and in captures.
#include <algorithm>

#include "tests/cuda_emulation/bugs/bench.h"

namespace gs::cuda_emulation {
namespace {

constexpr int kWidth = Bench::kWidth;
constexpr size_t kBytes = kWidth * sizeof(float);

__global__ void fill_row(float* y, float value) { y[threadIdx.x] = value; }
__global__ void copy_row(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }

// Two branches of a graph; the second reads what the first writes, and says so only if `ordered`.
void capture_branches(Bench& b, bool ordered, cudaGraph_t* graph) {
  cudaEvent_t begin = nullptr, written = nullptr, end = nullptr;
  for (cudaEvent_t* event : {&begin, &written, &end}) cudaEventCreate(event);
  check_call(cudaStreamBeginCapture(b.first, cudaStreamCaptureModeThreadLocal), "begin");
  cudaEventRecord(begin, b.first);
  cudaStreamWaitEvent(b.second, begin, 0);
  start(fill_row, 1, kWidth, 0, b.first, b.x, 9.0f);
  cudaEventRecord(written, b.first);
  if (ordered) cudaStreamWaitEvent(b.second, written, 0);
  start(copy_row, 1, kWidth, 0, b.second, b.x, b.y);
  cudaEventRecord(end, b.second);
  cudaStreamWaitEvent(b.first, end, 0);
  check_call(cudaStreamEndCapture(b.first, graph), "cudaStreamEndCapture");
  for (cudaEvent_t event : {begin, written, end}) cudaEventDestroy(event);
}

std::vector<float> run_branches(Bench& b) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  capture_branches(b, false, &graph);
  check_call(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  check_call(cudaGraphLaunch(executable, b.first), "cudaGraphLaunch");
  check_call(cudaStreamSynchronize(b.first), "cudaStreamSynchronize");
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  return std::vector<float>(kWidth, 9.0f);
}

}  // namespace

std::vector<Bug> stream_bugs() {
  return {
      {"pinned_changed", "a pinned buffer is changed before the copy from it has run",
       [](Bench& b) {
         float* pinned = nullptr;
         check_call(cudaMallocHost(&pinned, kBytes), "cudaMallocHost");
         std::fill(pinned, pinned + kWidth, 5.0f);
         check_call(cudaMemcpyAsync(b.y, pinned, kBytes, cudaMemcpyHostToDevice, b.first), "copy");
         std::fill(pinned, pinned + kWidth, 6.0f);
         check_call(cudaFreeHost(pinned), "cudaFreeHost");
         return std::vector<float>(kWidth, 5.0f);
       }},
      {"pageable_changed", "memory that is not pinned is changed before the copy from it has run",
       [](Bench& b) {
         std::vector<float> row(kWidth, 5.0f);
         check_call(cudaMemcpyAsync(b.y, row.data(), kBytes, cudaMemcpyHostToDevice, b.first),
                    "copy");
         std::fill(row.begin(), row.end(), 6.0f);
         check_call(cudaStreamSynchronize(b.first), "cudaStreamSynchronize");
         return std::vector<float>(kWidth, 5.0f);
       }},
      {"pinned_read_early", "a pinned buffer is read before the copy to it has run",
       [](Bench& b) {
         float* pinned = nullptr;
         check_call(cudaMallocHost(&pinned, kBytes), "cudaMallocHost");
         check_call(cudaMemcpyAsync(pinned, b.x, kBytes, cudaMemcpyDeviceToHost, b.first), "copy");
         start(fill_row, 1, kWidth, 0, b.second, b.y, pinned[1]);
         check_call(cudaFreeHost(pinned), "cudaFreeHost");
         return std::vector<float>(kWidth, 1.0f);
       }},
      {"missing_wait", "a stream reads what another writes, without waiting for it",
       [](Bench& b) {
         start(fill_row, 1, kWidth, 0, b.first, b.x, 9.0f);
         start(copy_row, 1, kWidth, 0, b.second, b.x, b.y);
         check_call(cudaStreamSynchronize(b.second), "cudaStreamSynchronize");
         return std::vector<float>(kWidth, 9.0f);
       }},
      {"freed_in_use", "memory is freed on one stream while another has yet to use it",
       [](Bench& b) {
         float* row = nullptr;
         check_call(cudaMalloc(&row, kBytes), "cudaMalloc");
         start(fill_row, 1, kWidth, 0, b.second, row, 9.0f);
         start(copy_row, 1, kWidth, 0, b.second, row, b.y);
         check_call(cudaFreeAsync(row, b.first), "cudaFreeAsync");
         check_call(cudaStreamSynchronize(b.first), "cudaStreamSynchronize");
         return std::vector<float>(kWidth, 9.0f);
       }},
      {"missing_edge", "branches of a graph that depend on each other without an edge",
       [](Bench& b) { return run_branches(b); }},
      {"malloc_in_capture", "memory is allocated while a stream captures",
       [](Bench& b) {
         check_call(cudaStreamBeginCapture(b.first, cudaStreamCaptureModeThreadLocal), "begin");
         float* row = nullptr;
         const cudaError_t status = cudaMalloc(&row, kBytes);
         cudaGraph_t graph = nullptr;
         cudaStreamEndCapture(b.first, &graph);
         check_call(status, "cudaMalloc");
         return std::vector<float>{};
       }},
      {"wait_in_capture", "the host waits for a stream that captures",
       [](Bench& b) {
         check_call(cudaStreamBeginCapture(b.first, cudaStreamCaptureModeRelaxed), "begin");
         const cudaError_t status = cudaStreamSynchronize(b.first);
         cudaGraph_t graph = nullptr;
         cudaStreamEndCapture(b.first, &graph);
         check_call(status, "cudaStreamSynchronize");
         return std::vector<float>{};
       }},
  };
}

}  // namespace gs::cuda_emulation
