#include "framework/backend/transfer.h"

#include <map>
#include <mutex>

#include "framework/backend/cuda/recording.h"
#include "framework/backend/cuda/runtime.h"

namespace gs::backend {
namespace {

// A second stream of the device, for copies; never destroyed, as the first.
cudaStream_t copy_stream_of(Cuda device) {
  static std::mutex mutex;
  static auto& streams = *new std::map<int, cudaStream_t>;
  stream_of(device);
  const std::lock_guard lock(mutex);
  cudaStream_t& stream = streams[device.index];
  if (stream == nullptr)
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  return stream;
}

// A replay would neither wait for the host's marks nor reach them.
void refuse_marks() {
  refuse_in_recording(
      "transfer: a step that is recorded makes marks or waits; do so outside of it");
}

cudaEvent_t event_of(const Mark& mark) { return static_cast<cudaEvent_t>(mark.get()); }

Mark mark_on(cudaStream_t stream) {
  refuse_marks();
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  Mark mark(event, [](cudaEvent_t made) { cudaEventDestroy(made); });
  check_cuda(cudaEventRecord(event, stream), "cudaEventRecord");
  return mark;
}

void follow_on(cudaStream_t stream, const Mark& mark) {
  if (mark == nullptr) return;
  refuse_marks();
  check_cuda(cudaStreamWaitEvent(stream, event_of(mark), 0), "cudaStreamWaitEvent");
}

void copy_on(cudaStream_t stream, void* to, const void* from, int64_t bytes) {
  if (bytes == 0) return;
  check_cuda(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDefault, stream),
             "cudaMemcpyAsync");
}

}  // namespace

std::shared_ptr<void> new_pinned_memory(Cuda device, int64_t bytes) {
  const cudaStream_t work = stream_of(device), copies = copy_stream_of(device);
  void* data = nullptr;
  check_cuda(cudaMallocHost(&data, static_cast<size_t>(bytes)), "cudaMallocHost");
  return {data, [work, copies](void* pinned) {
            cudaStreamSynchronize(work);  // copies may be under way
            cudaStreamSynchronize(copies);
            cudaFreeHost(pinned);
          }};
}

Mark mark(Cuda device) { return mark_on(stream_of(device)); }

bool reached(Cuda device, const Mark& mark) {
  if (mark == nullptr) return true;
  refuse_marks();
  stream_of(device);
  const cudaError_t status = cudaEventQuery(event_of(mark));
  if (status == cudaErrorNotReady) return false;
  check_cuda(status, "cudaEventQuery");
  return true;
}

void wait_for(Cuda device, const Mark& mark) {
  if (mark == nullptr) return;
  refuse_marks();
  stream_of(device);
  check_cuda(cudaEventSynchronize(event_of(mark)), "cudaEventSynchronize");
}

Mark copy_beside(Cuda device, void* data, const void* pinned, int64_t bytes, const Mark& after) {
  const cudaStream_t stream = copy_stream_of(device);
  follow_on(stream, after);
  copy_on(stream, data, pinned, bytes);
  return mark_on(stream);
}

void follow(Cuda device, const Mark& mark) { follow_on(stream_of(device), mark); }

void copy_in_order(Cuda device, void* to, const void* from, int64_t bytes) {
  copy_on(stream_of(device), to, from, bytes);
}

}  // namespace gs::backend
