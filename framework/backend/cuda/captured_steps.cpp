#include "framework/backend/captured_steps.h"

#include <utility>

#include "framework/backend/cuda/recording.h"
#include "framework/backend/cuda/runtime.h"

namespace gs::backend {
namespace {

thread_local std::string* obstacle = nullptr;  // of the rehearsal that is on

class Rehearsal {
 public:
  explicit Rehearsal(std::string& found) : before_(std::exchange(obstacle, &found)) {}
  ~Rehearsal() { obstacle = before_; }
  Rehearsal(const Rehearsal&) = delete;
  Rehearsal& operator=(const Rehearsal&) = delete;

 private:
  std::string* before_;
};

// Ends the recording of the stream, too, if the work throws.
class Capture {
 public:
  explicit Capture(Cuda device) : stream_(stream_of(device)) {
    // Nothing that runs may still use memory that is given back to the system meanwhile.
    check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
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

void refuse_in_recording(const char* reason) {
  check(!capturing(), "{}", reason);
  if (obstacle != nullptr && obstacle->empty()) *obstacle = reason;
}

std::string rehearse_work(Cuda, const std::function<void()>& work) {
  std::string found;
  const Rehearsal rehearsal(found);
  work();
  return found;
}

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
