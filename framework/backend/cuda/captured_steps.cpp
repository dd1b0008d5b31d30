#include "framework/backend/captured_steps.h"

#include <exception>

#include "framework/backend/cuda/runtime.h"

namespace gs::backend {
namespace {

// Records the stream in the end, too, if the work throws.
class Capture {
 public:
  explicit Capture(Cuda device) : stream_(stream_of(device)) {
    // Relaxed, so that this thread may allocate memory where the pool has too little.
    check_cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed),
               "cudaStreamBeginCapture");
    set_capturing(true);
  }
  ~Capture() {
    set_capturing(false);
    if (!ended_) cudaStreamEndCapture(stream_, &graph_);
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
    cudaGetLastError();  // what was wrong has been said
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  cudaGraphExec_t instantiate() {
    ended_ = true;
    check_cuda(cudaStreamEndCapture(stream_, &graph_), "cudaStreamEndCapture");
    cudaGraphExec_t executable = nullptr;
    check_cuda(cudaGraphInstantiate(&executable, graph_, 0), "cudaGraphInstantiate");
    return executable;
  }

 private:
  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  bool ended_ = false;
};

}  // namespace

std::shared_ptr<void> record_work(Cuda device, const std::function<void()>& work) {
  Capture capture(device);
  work();
  return {capture.instantiate(), [stream = stream_of(device)](cudaGraphExec_t executable) {
            cudaStreamSynchronize(stream);  // it may be running
            cudaGraphExecDestroy(executable);
          }};
}

void replay_work(Cuda device, const std::shared_ptr<void>& recording) {
  check_cuda(cudaGraphLaunch(static_cast<cudaGraphExec_t>(recording.get()), stream_of(device)),
             "cudaGraphLaunch");
}

}  // namespace gs::backend
