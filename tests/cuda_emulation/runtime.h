// What the parts of the emulated runtime share: the lock, errors, streams, memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/cuda_emulation/emulation.h"

namespace gs::cuda_emulation {

// Held by every call of the runtime: several threads may make calls, one works at a time. What a
// stream has to do is done by the thread that waits for it.
class Lock {
 public:
  Lock();

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

// Keeps the error for cudaGetLastError and returns it; `explain` also prints why.
cudaError_t error(cudaError_t code);
[[gnu::format(printf, 2, 3)]] cudaError_t explain(cudaError_t code, const char* format, ...);

using Work = std::function<void()>;

// One node of a graph; what it waits for are earlier nodes.
struct Node {
  Work work;
  std::vector<size_t> after;
};

// A capture under way.
struct Capture {
  cudaStream_t origin;
  cudaStreamCaptureMode mode;
  uint64_t thread;  // that began it
  bool valid = true;
  std::vector<Node> nodes;
};

// One recording of an event.
struct Mark {
  CUstream_st* stream = nullptr;
  bool done = false;
  std::chrono::steady_clock::time_point when{};
  std::shared_ptr<Capture> capture;
  std::vector<size_t> after;  // in the capture
};

struct Operation {
  Work work;
  std::shared_ptr<Mark> wait;  // another stream's recording that must be reached first
  std::shared_ptr<Mark> record;
};

// Puts work on a stream, or into the graph that the stream captures.
cudaError_t enqueue(cudaStream_t stream, Work work);
cudaError_t enqueue(cudaStream_t stream, Operation operation);
CUstream_st* stream_or_default(cudaStream_t stream);
void drain(CUstream_st& stream);
void drain_all();
size_t live_streams();

// Captures (graphs.cpp). The error that a call gets which may not be made while this thread or, in
// the global mode, another one captures: it also spoils the captures.
cudaError_t refuse_in_capture();
size_t live_graphs();
// (streams.cpp)
bool blocking_stream_captures();
void end_capture(const std::shared_ptr<Capture>& capture);

// Device memory is closed to AddressSanitizer unless the device works, so that the host's own
// accesses show.
class DeviceWorks {
 public:
  DeviceWorks();
  ~DeviceWorks();
  DeviceWorks(const DeviceWorks&) = delete;
  DeviceWorks& operator=(const DeviceWorks&) = delete;
};

// Stops the program unless the bytes lie in one piece of device memory.
void check_device_range(const void* pointer, size_t bytes, const char* user);
size_t live_device_bytes();

}  // namespace gs::cuda_emulation

struct CUstream_st {
  std::deque<gs::cuda_emulation::Operation> queue;
  bool blocking = true;  // ordered with the default stream
  std::shared_ptr<gs::cuda_emulation::Capture> capture;
  std::vector<size_t> after;  // in the capture
};
