// Captures of streams into graphs, and their replay.
#include <algorithm>
#include <set>

#include "tests/cuda_emulation/options.h"
#include "tests/cuda_emulation/runtime.h"

struct CUgraph_st {
  std::vector<gs::cuda_emulation::Node> nodes;
};
struct CUgraphExec_st {
  std::vector<gs::cuda_emulation::Node> nodes;
};

namespace gs::cuda_emulation {
namespace {

struct Captures {
  std::set<std::shared_ptr<Capture>> all;
  size_t graphs = 0;
};
Captures& captures() {
  static auto& captures = *new Captures;
  return captures;
}

// A number of this thread's own: identities of threads are used again.
uint64_t this_thread() {
  static uint64_t count = 0;
  thread_local const uint64_t number = ++count;
  return number;
}

// All streams must have come together in the origin again.
bool joined(const Capture& capture) {
  std::vector<bool> reached(capture.nodes.size(), false);
  for (size_t last : capture.origin->after) reached[last] = true;
  for (size_t i = capture.nodes.size(); i-- > 0;) {
    if (!reached[i]) return false;
    for (size_t earlier : capture.nodes[i].after) reached[earlier] = true;
  }
  return true;
}

// Nodes in an order that their edges allow: that of the capture, or as far from it as they allow.
std::vector<size_t> replay_order(const std::vector<Node>& nodes) {
  std::vector<size_t> order;
  std::vector<bool> done(nodes.size(), false);
  const auto may_run = [&](size_t i) {
    return !done[i] && std::all_of(nodes[i].after.begin(), nodes[i].after.end(),
                                   [&](size_t earlier) { return done[earlier]; });
  };
  while (order.size() < nodes.size()) {
    size_t pick = 0;
    for (size_t i = 0; i < nodes.size(); ++i) {
      const size_t candidate = options().deferred ? nodes.size() - 1 - i : i;
      if (!may_run(candidate)) continue;
      pick = candidate;
      break;
    }
    done[pick] = true;
    order.push_back(pick);
  }
  return order;
}

}  // namespace

// As cudaThreadExchangeStreamCaptureMode describes the modes; that of every thread is the global
// one.
cudaError_t refuse_in_capture() {
  bool refused = false;
  for (const auto& each : captures().all) {
    const bool own = each->thread == this_thread() && each->mode != cudaStreamCaptureModeRelaxed;
    if (!own && each->mode != cudaStreamCaptureModeGlobal) continue;
    each->valid = false;
    refused = true;
  }
  return refused ? error(cudaErrorStreamCaptureUnsupported) : cudaSuccess;
}

size_t live_graphs() { return captures().graphs; }

}  // namespace gs::cuda_emulation

using namespace gs::cuda_emulation;

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t which, cudaStreamCaptureMode mode) {
  const Lock lock;
  if (stream_or_default(which) == stream_or_default(nullptr))
    return error(cudaErrorStreamCaptureUnsupported);
  if (which->capture != nullptr) return error(cudaErrorIllegalState);
  which->capture = std::make_shared<Capture>();
  which->capture->origin = which;
  which->capture->mode = mode;
  which->capture->thread = this_thread();
  which->after.clear();
  captures().all.insert(which->capture);
  return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  const Lock lock;
  *graph = nullptr;
  const auto capture = stream_or_default(stream)->capture;
  if (capture == nullptr) return error(cudaErrorIllegalState);
  if (capture->origin != stream) return error(cudaErrorStreamCaptureUnmatched);
  if (capture->thread != this_thread() && capture->mode != cudaStreamCaptureModeRelaxed)
    return error(cudaErrorStreamCaptureWrongThread);
  const bool complete = joined(*capture);
  captures().all.erase(capture);
  end_capture(capture);
  if (!capture->valid) return error(cudaErrorStreamCaptureInvalidated);
  if (!complete) return error(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st{capture->nodes};
  ++captures().graphs;
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t which, cudaStreamCaptureStatus* status) {
  const Lock lock;
  const CUstream_st& stream = *stream_or_default(which);
  if (&stream == stream_or_default(nullptr) && blocking_stream_captures())
    return error(cudaErrorStreamCaptureImplicit);
  *status = stream.capture == nullptr ? cudaStreamCaptureStatusNone
            : stream.capture->valid   ? cudaStreamCaptureStatusActive
                                      : cudaStreamCaptureStatusInvalidated;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  const Lock lock;
  *executable = new CUgraphExec_st{graph->nodes};
  ++captures().graphs;
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const Lock lock;
  for (size_t node : replay_order(executable->nodes)) {
    const Node& each = executable->nodes[node];
    if (const cudaError_t status = enqueue(stream, each.work)) return status;
  }
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const Lock lock;
  delete graph;
  --captures().graphs;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  const Lock lock;
  delete executable;
  --captures().graphs;
  return cudaSuccess;
}
}
