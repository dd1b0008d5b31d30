// Barriers of a block, and how threads leave it.
#include <cstring>

#include "tests/cuda_emulation/executor.h"
#include "tests/cuda_emulation/options.h"

namespace gs::cuda_emulation {

bool operator==(Place a, Place b) {
  return a.line == b.line && (a.file == b.file || (a.file != nullptr && b.file != nullptr &&
                                                   std::strcmp(a.file, b.file) == 0));
}

void release_barrier() {
  Block& block = execution.block;
  ++block.barriers;
  block.ready.insert(block.ready.end(), block.at_barrier.begin(), block.at_barrier.end());
  block.at_barrier.clear();
  block.any_passed = block.any;
  block.any = false;
  block.barrier_place = {};
}

void leave_block(Thread& thread) {
  Block& block = execution.block;
  thread.done = true;
  if (!thread.copies.empty())
    stop("async copy", "%s: a thread ended with copies that it did not wait for", execution.kernel);
  --block.live;
  Warp& warp = block.warps[thread.warp];
  warp.exited |= 1u << thread.lane;
  for (unsigned i = 0; i < warp.used; ++i) {
    const LaneGroup& group = warp.groups[i];
    if (group.arrived != 0 && ((group.mask & ~group.arrived) >> thread.lane & 1u) != 0) {
      stop("divergence", "%s: lane %u ended while %s at %s:%d waits for it", execution.kernel,
           thread.lane, group.what, group.place.file, group.place.line);
    }
  }
  if (!block.at_barrier.empty()) {
    stop("divergence", "%s: thread %u ended while others wait in __syncthreads at %s:%d",
         execution.kernel, thread.linear, block.barrier_place.file, block.barrier_place.line);
  }
}

namespace {

void check_barrier(const Block& block, Place place) {
  if (block.barrier_place.file != nullptr && !(block.barrier_place == place)) {
    stop("divergence", "%s: threads of one block meet in __syncthreads at %s:%d and at %s:%d",
         execution.kernel, place.file, place.line, block.barrier_place.file,
         block.barrier_place.line);
  }
  if (block.live != block.threads.size()) {
    stop("divergence", "%s: __syncthreads at %s:%d after %zu threads of the block have ended",
         execution.kernel, place.file, place.line, block.threads.size() - block.live);
  }
}

}  // namespace

bool block_any(bool value, Place place) {
  Block& block = execution.block;
  Thread* const self = execution.current;
  // Two addresses by turns: who goes on to the next barrier must not seem ordered before who has
  // yet to leave this one.
  char* const order = &execution.barrier_orders[block.barriers % 2];
  order_before(order);
  {
    const AsScheduler scheduler;
    check_barrier(block, place);
    block.barrier_place = place;
    block.any |= value;
    if (block.at_barrier.size() + 1 == block.live) {
      release_barrier();
    } else {
      block.at_barrier.push_back(self);
      wait_here("__syncthreads", place);
    }
  }
  order_after(order);
  return block.any_passed;
}

void block_barrier(Place place) { block_any(false, place); }

}  // namespace gs::cuda_emulation
