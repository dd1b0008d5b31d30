// Streams and events.
#include <set>

#include "tests/cuda_emulation/options.h"
#include "tests/cuda_emulation/runtime.h"

struct CUevent_st {
  std::shared_ptr<gs::cuda_emulation::Mark> mark;  // the recording that counts
};

namespace gs::cuda_emulation {
namespace {

struct Streams {
  std::set<CUstream_st*> all;
  CUstream_st legacy;  // the default stream
  size_t events = 0;
};
// Never destroyed: other static objects may use streams at the end.
Streams& streams() {
  static auto& streams = *new Streams;
  return streams;
}

void step(CUstream_st& stream) {
  Operation operation = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (operation.wait) {
    while (!operation.wait->done && !operation.wait->stream->queue.empty())
      step(*operation.wait->stream);
  }
  if (operation.work) {
    const DeviceWorks works;
    operation.work();
  }
  if (operation.record) {
    operation.record->done = true;
    operation.record->when = std::chrono::steady_clock::now();
  }
}

// The default stream and all blocking streams wait for each other.
void order_with_default(CUstream_st& stream) {
  if (&stream == &streams().legacy) {
    for (CUstream_st* each : streams().all) {
      if (each->blocking) drain(*each);
    }
  } else if (stream.blocking) {
    drain(streams().legacy);
  }
}

// What may not be asked of a stream that captures.
cudaError_t refuse_capturing(CUstream_st& stream) {
  if (stream.capture == nullptr) return cudaSuccess;
  stream.capture->valid = false;
  return error(cudaErrorStreamCaptureUnsupported);
}

std::shared_ptr<Mark> mark_of(cudaEvent_t event) { return event->mark; }

}  // namespace

CUstream_st* stream_or_default(cudaStream_t stream) {
  return stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread
             ? &streams().legacy
             : stream;
}

void drain(CUstream_st& stream) {
  while (!stream.queue.empty()) step(stream);
}
void drain_all() {
  for (CUstream_st* each : streams().all) drain(*each);
  drain(streams().legacy);
}
size_t live_streams() { return streams().all.size() + streams().events; }

bool blocking_stream_captures() {
  for (const CUstream_st* each : streams().all) {
    if (each->blocking && each->capture != nullptr) return true;
  }
  return false;
}

void end_capture(const std::shared_ptr<Capture>& capture) {
  for (CUstream_st* each : streams().all) {
    if (each->capture != capture) continue;
    each->capture = nullptr;
    each->after.clear();
  }
}

cudaError_t enqueue(cudaStream_t which, Operation operation) {
  CUstream_st& stream = *stream_or_default(which);
  if (&stream == &streams().legacy && blocking_stream_captures())
    return error(cudaErrorStreamCaptureImplicit);
  order_with_default(stream);
  stream.queue.push_back(std::move(operation));
  if (!options().deferred) drain(stream);
  return cudaSuccess;
}

cudaError_t enqueue(cudaStream_t which, Work work) {
  const Lock lock;
  CUstream_st& stream = *stream_or_default(which);
  if (stream.capture == nullptr)
    return enqueue(which, {.work = std::move(work), .wait = nullptr, .record = nullptr});
  if (!stream.capture->valid) return error(cudaErrorStreamCaptureInvalidated);
  std::vector<Node>& nodes = stream.capture->nodes;
  nodes.push_back({std::move(work), stream.after});
  stream.after = {nodes.size() - 1};
  return cudaSuccess;
}

}  // namespace gs::cuda_emulation

using namespace gs::cuda_emulation;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const Lock lock;
  *stream = new CUstream_st;
  (*stream)->blocking = flags != cudaStreamNonBlocking;
  streams().all.insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return cudaStreamCreateWithFlags(stream, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const Lock lock;
  if (streams().all.count(stream) == 0) return error(cudaErrorInvalidResourceHandle);
  drain(*stream);
  streams().all.erase(stream);
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t which) {
  const Lock lock;
  CUstream_st& stream = *stream_or_default(which);
  if (const cudaError_t status = refuse_capturing(stream)) return status;
  if (const cudaError_t status = refuse_in_capture()) return status;
  if (&stream == &streams().legacy) order_with_default(stream);
  drain(stream);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  const Lock lock;
  if (const cudaError_t status = refuse_in_capture()) return status;
  drain_all();
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  const Lock lock;
  *event = new CUevent_st;
  ++streams().events;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const Lock lock;
  delete event;
  --streams().events;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t which) {
  const Lock lock;
  CUstream_st& stream = *stream_or_default(which);
  const auto mark = std::make_shared<Mark>();
  mark->stream = &stream;
  event->mark = mark;
  if (stream.capture != nullptr) {
    if (!stream.capture->valid) return error(cudaErrorStreamCaptureInvalidated);
    mark->capture = stream.capture;
    mark->after = stream.after;
    return cudaSuccess;
  }
  return enqueue(which, {.work = nullptr, .wait = nullptr, .record = mark});
}
cudaError_t cudaStreamWaitEvent(cudaStream_t which, cudaEvent_t event, unsigned) {
  const Lock lock;
  CUstream_st& stream = *stream_or_default(which);
  const auto mark = mark_of(event);
  if (mark == nullptr) return cudaSuccess;
  if (mark->capture == nullptr) {
    if (stream.capture == nullptr)
      return enqueue(which, {.work = nullptr, .wait = mark, .record = nullptr});
    stream.capture->valid = false;
    return error(cudaErrorStreamCaptureIsolation);
  }
  if (!mark->capture->valid) return error(cudaErrorStreamCaptureInvalidated);
  if (&stream == &streams().legacy) return error(cudaErrorStreamCaptureImplicit);
  if (stream.capture == nullptr) stream.capture = mark->capture;
  if (stream.capture != mark->capture) {
    stream.capture->valid = mark->capture->valid = false;
    return error(cudaErrorStreamCaptureMerge);
  }
  stream.after.insert(stream.after.end(), mark->after.begin(), mark->after.end());
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const Lock lock;
  const auto mark = mark_of(event);
  if (mark == nullptr) return cudaSuccess;
  if (mark->capture != nullptr) return error(cudaErrorCapturedEvent);
  if (const cudaError_t status = refuse_in_capture()) return status;
  while (!mark->done && !mark->stream->queue.empty()) step(*mark->stream);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  const Lock lock;
  const auto mark = mark_of(event);
  if (mark == nullptr) return cudaSuccess;
  if (mark->capture != nullptr) return error(cudaErrorCapturedEvent);
  if (const cudaError_t status = refuse_in_capture()) return status;
  return mark->done ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  const Lock lock;
  const auto first = mark_of(start), last = mark_of(end);
  if (first == nullptr || last == nullptr) return error(cudaErrorInvalidResourceHandle);
  if (first->capture != nullptr || last->capture != nullptr) return error(cudaErrorCapturedEvent);
  if (!first->done || !last->done) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(last->when - first->when).count();
  return cudaSuccess;
}
}
