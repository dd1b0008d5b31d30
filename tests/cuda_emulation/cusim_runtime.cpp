// The part of the CUDA runtime API that a training framework needs, over host memory.
#include "cusim_internal.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <set>
#include <vector>

#if defined(CUSIM_ASAN)
#include <sanitizer/asan_interface.h>
#endif

using Work = std::function<void()>;

struct CUevent_st {
  struct Mark* mark = nullptr;  // The recording that counts.
  std::chrono::steady_clock::time_point when{};
};
struct Mark {
  cudaStream_t stream = nullptr;
  bool done = false;
  std::chrono::steady_clock::time_point when{};
};
struct CUgraph_st {
  std::vector<Work> nodes;
};
struct CUgraphExec_st {
  std::vector<Work> nodes;
};
namespace {
struct Op {
  Work work;
  std::shared_ptr<Mark> wait;  // Another stream's recording that must be reached first.
  std::shared_ptr<Mark> record;
};
}  // namespace
struct CUstream_st {
  std::deque<Op> queue;
  std::shared_ptr<CUgraph_st> capture;
  bool blocking = true;
};

namespace cusim {
namespace {
struct Alloc {
  size_t size;
  bool pending_free = false;
};
std::map<uintptr_t, Alloc> device_allocs, pinned_allocs;
std::map<const void*, int> max_dynamic;
std::map<cudaEvent_t, std::shared_ptr<Mark>> marks;
std::set<cudaStream_t> streams;
CUstream_st null_stream;
cudaError_t last_error = cudaSuccess;
size_t live_bytes = 0;
bool capturing_any = false;

cudaError_t fail(cudaError_t e) { return last_error = e; }

std::map<uintptr_t, Alloc>::iterator find(std::map<uintptr_t, Alloc>& m, const void* p) {
  auto a = reinterpret_cast<uintptr_t>(p);
  auto it = m.upper_bound(a);
  if (it == m.begin()) return m.end();
  --it;
  return a < it->first + std::max<size_t>(it->second.size, 1) ? it : m.end();
}
bool is_device(const void* p, size_t n) {
  auto it = find(device_allocs, p);
  return it != device_allocs.end() &&
         reinterpret_cast<uintptr_t>(p) + n <= it->first + it->second.size;
}

// Under ASan, device memory is open only while the device works, so that the host's own accesses
// show.
void open_device([[maybe_unused]] bool open) {
#if defined(CUSIM_ASAN)
  static int depth = 0;
  if (open ? depth++ != 0 : --depth != 0) return;
  for (auto& [address, alloc] : device_allocs) {
    if (open)
      __asan_unpoison_memory_region(reinterpret_cast<void*>(address), alloc.size);
    else
      __asan_poison_memory_region(reinterpret_cast<void*>(address), alloc.size);
  }
#endif
}

void drain(CUstream_st* s);
void step(CUstream_st* s) {
  Op op = std::move(s->queue.front());
  s->queue.pop_front();
  if (op.wait && !op.wait->done) {
    CUstream_st* other = op.wait->stream ? op.wait->stream : &null_stream;
    while (!op.wait->done && !other->queue.empty()) step(other);
  }
  if (op.work) {
    open_device(true);
    op.work();
    open_device(false);
  }
  if (op.record) {
    op.record->done = true;
    op.record->when = std::chrono::steady_clock::now();
  }
}
void drain(CUstream_st* s) {
  while (!s->queue.empty()) step(s);
}
void drain_all() {
  for (cudaStream_t s : streams) drain(s);
  drain(&null_stream);
}
CUstream_st* of(cudaStream_t s) {
  return s == nullptr || s == cudaStreamLegacy || s == cudaStreamPerThread ? &null_stream : s;
}
cudaError_t put(cudaStream_t stream, Op op) {
  CUstream_st* s = of(stream);
  if (s->capture) {
    if (op.work) s->capture->nodes.push_back(std::move(op.work));
    return cudaSuccess;
  }
  if (s == &null_stream) {  // The legacy stream orders itself with every blocking stream.
    if (capturing_any) return fail(cudaErrorStreamCaptureImplicit);
    for (cudaStream_t o : streams)
      if (o->blocking) drain(o);
  } else if (s->blocking) {
    drain(&null_stream);
  }
  s->queue.push_back(std::move(op));
  if (options.streams == Streams::kEager) drain(s);
  return cudaSuccess;
}
cudaError_t sync_guard() {
  return capturing_any ? fail(cudaErrorStreamCaptureUnsupported) : cudaSuccess;
}
}  // namespace

cudaError_t enqueue(cudaStream_t stream, Work work) {
  return put(stream, {std::move(work), nullptr, nullptr});
}

void check_device_pointer(const void* p, const char* kernel, int arg) {
  if (p && find(device_allocs, p) == device_allocs.end())
    report("host pointer", "argument %d of %s isn't device memory", arg, kernel);
}

cudaError_t launch(const char* name, const void* func, dim3 g, dim3 b, size_t shared,
                   cudaStream_t stream, Work body) {
  size_t threads = size_t{b.x} * b.y * b.z;
  auto it = max_dynamic.find(func);
  size_t limit = it == max_dynamic.end() ? 48 * 1024 : static_cast<size_t>(it->second);
  bool ok = threads > 0 && threads <= 1024 && b.z <= 64 && g.x > 0 && g.y > 0 && g.z > 0 &&
            g.x <= 0x7fffffff && g.y <= 65535 && g.z <= 65535 && shared <= limit;
  if (!ok) {
    report("launch",
           "%s: grid (%u,%u,%u), block (%u,%u,%u), %zu bytes of shared memory (limit %zu)", name,
           g.x, g.y, g.z, b.x, b.y, b.z, shared, limit);
    return fail(cudaErrorInvalidConfiguration);
  }
  return enqueue(stream, [=, body = std::move(body)] { run_grid(name, g, b, shared, body); });
}

size_t allocated_bytes() { return live_bytes; }
}  // namespace cusim

using namespace cusim;

extern "C" {

cudaError_t cudaMalloc(void** p, size_t n) {
  if (cudaError_t e = sync_guard()) return e;
  *p = nullptr;
  if (n == 0) return cudaSuccess;
  void* m = std::aligned_alloc(256, n + 256 - (n % 256 ? n % 256 : 256));
#if defined(CUSIM_ASAN)
  std::free(m);
  if (posix_memalign(&m, 256, n)) m = nullptr;  // Exactly n bytes, so that ASan guards the end.
#endif
  if (!m) return fail(cudaErrorMemoryAllocation);
  std::memset(m, 0xff, n);  // NaN in every floating-point format.
  device_allocs[reinterpret_cast<uintptr_t>(m)] = {n};
  live_bytes += n;
#if defined(CUSIM_ASAN)
  __asan_poison_memory_region(m, n);
#endif
  *p = m;
  return cudaSuccess;
}
static cudaError_t free_now(void* p) {
  auto it = device_allocs.find(reinterpret_cast<uintptr_t>(p));
  if (it == device_allocs.end()) {
    report("free", "%p wasn't allocated or was freed before", p);
    return fail(cudaErrorInvalidValue);
  }
  live_bytes -= it->second.size;
  device_allocs.erase(it);
  std::free(p);
  return cudaSuccess;
}
cudaError_t cudaFree(void* p) {
  if (!p) return cudaSuccess;
  if (cudaError_t e = sync_guard()) return e;
  drain_all();
  return free_now(p);
}
cudaError_t cudaMallocAsync(void** p, size_t n, cudaStream_t) { return cudaMalloc(p, n); }
cudaError_t cudaFreeAsync(void* p, cudaStream_t s) {
  if (!p) return cudaSuccess;
  auto it = device_allocs.find(reinterpret_cast<uintptr_t>(p));
  if (it == device_allocs.end() || it->second.pending_free) {
    report("free", "%p wasn't allocated or was freed before", p);
    return fail(cudaErrorInvalidValue);
  }
  it->second.pending_free = true;
  return enqueue(s, [p] { free_now(p); });
}
cudaError_t cudaMallocHost(void** p, size_t n) {
  *p = std::malloc(n);
  std::memset(*p, 0xff, n);
  pinned_allocs[reinterpret_cast<uintptr_t>(*p)] = {n};
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** p, size_t n, unsigned) { return cudaMallocHost(p, n); }
cudaError_t cudaFreeHost(void* p) {
  if (!p) return cudaSuccess;
  drain_all();
  pinned_allocs.erase(reinterpret_cast<uintptr_t>(p));
  std::free(p);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* d, const void* s, size_t n, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (n == 0) return cudaSuccess;
  bool dd = is_device(d, n), ds = is_device(s, n);
  if (kind == cudaMemcpyDefault) kind = static_cast<cudaMemcpyKind>((ds ? 2 : 0) + (dd ? 1 : 0));
  bool want_d = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  bool want_s = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (dd != want_d || ds != want_s) {
    report("memcpy",
           "kind %d, but the destination is%s and the source is%s device memory of that size",
           int(kind), dd ? "" : " not", ds ? "" : " not");
    return fail(cudaErrorInvalidValue);
  }
  if (!ds &&
      find(pinned_allocs, s) == pinned_allocs.end()) {  // Pageable: staged before the call returns.
    auto copy = std::make_shared<std::vector<char>>(static_cast<const char*>(s),
                                                    static_cast<const char*>(s) + n);
    return enqueue(stream, [=] { std::memcpy(d, copy->data(), n); });
  }
  cudaError_t e = enqueue(stream, [=] { std::memmove(d, s, n); });
  if (!dd && find(pinned_allocs, d) == pinned_allocs.end() && !of(stream)->capture)
    drain(of(stream));
  return e;
}
cudaError_t cudaMemcpy(void* d, const void* s, size_t n, cudaMemcpyKind kind) {
  if (cudaError_t e = sync_guard()) return e;
  cudaError_t e = cudaMemcpyAsync(d, s, n, kind, nullptr);
  drain(&null_stream);
  return e;
}
cudaError_t cudaMemsetAsync(void* p, int v, size_t n, cudaStream_t s) {
  if (n && !is_device(p, n)) {
    report("memset", "not device memory of %zu bytes", n);
    return fail(cudaErrorInvalidValue);
  }
  return enqueue(s, [=] { std::memset(p, v, n); });
}
cudaError_t cudaMemset(void* p, int v, size_t n) {
  cudaError_t e = cudaMemsetAsync(p, v, n, nullptr);
  drain(&null_stream);
  return e;
}
cudaError_t cudaMemGetInfo(size_t* f, size_t* t) {
  *t = size_t{8} << 30;
  *f = *t - live_bytes;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned flags) {
  *s = new CUstream_st;
  (*s)->blocking = flags != cudaStreamNonBlocking;
  streams.insert(*s);
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* s) { return cudaStreamCreateWithFlags(s, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  drain(s);
  streams.erase(s);
  delete s;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  if (cudaError_t e = sync_guard()) return e;
  if (of(s) == &null_stream)
    for (cudaStream_t o : streams)
      if (o->blocking) drain(o);
  drain(of(s));
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t s) {
  return of(s)->queue.empty() ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaDeviceSynchronize() {
  if (cudaError_t e = sync_guard()) return e;
  drain_all();
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) {
  *e = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* e) { return cudaEventCreateWithFlags(e, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t e) {
  marks.erase(e);
  delete e;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  auto m = std::make_shared<Mark>();
  m->stream = of(s);
  marks[e] = m;
  if (of(s)->capture) {
    m->done = true;
    return cudaSuccess;
  }
  return put(s, {nullptr, nullptr, m});
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  auto it = marks.find(e);
  if (it == marks.end()) return cudaSuccess;
  if (it->second->stream->capture && !of(s)->capture) {
    of(s)->capture = it->second->stream->capture;
    return cudaSuccess;
  }
  return put(s, {nullptr, it->second, nullptr});
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  auto it = marks.find(e);
  if (it != marks.end())
    while (!it->second->done && !it->second->stream->queue.empty()) step(it->second->stream);
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t e) {
  auto it = marks.find(e);
  return it == marks.end() || it->second->done ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) {
  if (!marks.count(a) || !marks.count(b)) return fail(cudaErrorInvalidResourceHandle);
  *ms = std::chrono::duration<float, std::milli>(marks[b]->when - marks[a]->when).count();
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t f, void* u) {
  return enqueue(s, [=] { f(u); });
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode) {
  if (of(s) == &null_stream) return fail(cudaErrorStreamCaptureUnsupported);
  s->capture = std::make_shared<CUgraph_st>();
  capturing_any = true;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* g) {
  if (!s->capture) return fail(cudaErrorIllegalState);
  *g = new CUgraph_st(*s->capture);
  auto capture = s->capture;
  for (cudaStream_t o : streams)
    if (o->capture == capture) o->capture = nullptr;
  capturing_any = false;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus* c) {
  *c = of(s)->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* e, cudaGraph_t g, unsigned long long) {
  *e = new CUgraphExec_st{g->nodes};
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t e, cudaStream_t s) {
  for (const Work& w : e->nodes)
    if (cudaError_t r = enqueue(s, w)) return r;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) {
  delete g;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t e) {
  delete e;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void* f, cudaFuncAttribute a, int v) {
  if (a == cudaFuncAttributeMaxDynamicSharedMemorySize) {
    if (v > 227 * 1024) return fail(cudaErrorInvalidValue);
    max_dynamic[f] = v;
  }
  return cudaSuccess;
}
cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorString(cudaError_t e) {
  return e == cudaSuccess ? "no error" : "an error (cusim)";
}
const char* cudaGetErrorName(cudaError_t e) { return cudaGetErrorString(e); }
cudaError_t cudaGetDeviceCount(int* n) {
  *n = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* d) {
  *d = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int d) { return d == 0 ? cudaSuccess : fail(cudaErrorInvalidDevice); }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  std::memset(p, 0, sizeof *p);
  std::snprintf(p->name, sizeof p->name, "cusim");
  p->major = 9;
  p->multiProcessorCount = 4;
  p->sharedMemPerBlock = 48 * 1024;
  p->sharedMemPerBlockOptin = 227 * 1024;
  p->maxThreadsPerBlock = 1024;
  p->warpSize = 32;
  p->totalGlobalMem = size_t{8} << 30;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* v, cudaDeviceAttr a, int) {
  *v = a == cudaDevAttrMultiProcessorCount ? 4 : a == cudaDevAttrComputeCapabilityMajor ? 9 : 0;
  return cudaSuccess;
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* n, const void*, int, size_t) {
  *n = 2;
  return cudaSuccess;
}
}
