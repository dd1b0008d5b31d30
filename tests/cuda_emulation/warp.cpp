// Collectives of the lanes of a warp.
#include "tests/cuda_emulation/executor.h"
#include "tests/cuda_emulation/options.h"

namespace gs::cuda_emulation {
namespace {

// Words that ThreadSanitizer does not see: no call of memcpy, which it would.
void copy_unseen(void* to, const void* from, size_t bytes) {
  for (size_t i = 0; i < bytes / 4; ++i)
    static_cast<volatile uint32_t*>(to)[i] = static_cast<const uint32_t*>(from)[i];
}

void check_mask(const Warp& warp, uint32_t mask, const char* what, Place place) {
  const char* const kernel = execution.kernel;
  const unsigned lane = execution.current->lane;
  if ((mask >> lane & 1u) == 0)
    stop("mask", "%s: %s at %s:%d: lane %u is not in its own mask %08x", kernel, what, place.file,
         place.line, lane, mask);
  if ((mask & ~warp.lanes) != 0)
    stop("mask", "%s: %s at %s:%d: mask %08x names lanes that do not exist", kernel, what,
         place.file, place.line, mask);
  if ((mask & warp.exited) != 0)
    stop("divergence", "%s: %s at %s:%d: mask %08x names lanes that have ended (%08x)", kernel,
         what, place.file, place.line, mask, warp.exited);
}

// The group of lanes that meet with this mask.
LaneGroup& join(uint32_t mask, const char* what, Place place) {
  Warp& warp = execution.block.warps[execution.current->warp];
  check_mask(warp, mask, what, place);
  LaneGroup* found = nullptr;
  LaneGroup* free = nullptr;
  for (LaneGroup* each = warp.groups; each != warp.groups + warp.used; ++each) {
    if (each->arrived == 0 && each->reading == 0) {
      free = each;
    } else if (each->arrived != 0 && each->mask == mask) {
      found = each;
    } else if (each->arrived != 0 && (each->mask & mask) != 0) {
      stop("mask", "%s: %s at %s:%d with mask %08x overlaps %s at %s:%d with mask %08x",
           execution.kernel, what, place.file, place.line, mask, each->what, each->place.file,
           each->place.line, each->mask);
    }
  }
  if (found == nullptr) {
    found = free != nullptr ? free : &warp.groups[warp.used++];
    found->mask = mask;
    found->what = what;
    found->place = place;
  } else if (!(found->place == place)) {
    stop("divergence", "%s: lanes of mask %08x meet in %s at %s:%d and %s at %s:%d",
         execution.kernel, mask, what, place.file, place.line, found->what, found->place.file,
         found->place.line);
  }
  return *found;
}

// The last lane to arrive goes on at once; it reads, and the table stays until all have read.
void meet(LaneGroup& group, const char* what, Place place) {
  Thread* const self = execution.current;
  std::vector<Thread*>& ready = execution.block.ready;
  group.arrived |= 1u << self->lane;
  if (group.arrived == group.mask) {
    ready.insert(ready.end(), group.waiting, group.waiting + group.waiters);
    group.waiters = 0;
    group.arrived = 0;
    group.reading = group.mask;
  } else {
    group.waiting[group.waiters++] = self;
    wait_here(what, place);
  }
  group.reading &= ~(1u << self->lane);
}

// The lane that `lane` reads from; its own where the CUDA C++ Programming Guide says so.
int source_lane(int lane, Shuffle kind, int argument, int width) {
  const int first = lane & ~(width - 1);
  switch (kind) {
    case Shuffle::kIndex:
      return first + (argument & (width - 1));
    case Shuffle::kUp:
      return lane - argument < first ? lane : lane - argument;
    case Shuffle::kDown:
      return lane + argument >= first + width ? lane : lane + argument;
    case Shuffle::kXor:
      return (lane ^ argument) >= first + width ? lane : lane ^ argument;
  }
  return lane;
}

}  // namespace

uint32_t lane() { return execution.current->lane; }

void warp_barrier(uint32_t mask, Place place) {
  LaneGroup* group = nullptr;
  {
    const AsScheduler scheduler;
    group = &join(mask, "__syncwarp", place);
  }
  order_before(&group->order);
  {
    const AsScheduler scheduler;
    meet(*group, "__syncwarp", place);
  }
  order_after(&group->order);
}

void warp_gather(uint32_t mask, const void* value, size_t bytes, void* all, Place place) {
  const AsScheduler scheduler;
  LaneGroup& group = join(mask, "a warp collective", place);
  copy_unseen(group.table + execution.current->lane * bytes, value, bytes);
  meet(group, "a warp collective", place);
  copy_unseen(all, group.table, 32 * bytes);
}

uint64_t warp_shuffle(uint32_t mask, uint64_t bits, Shuffle kind, int argument, int width,
                      Place place) {
  const AsScheduler scheduler;
  LaneGroup& group = join(mask, "a shuffle", place);
  const int lane = static_cast<int>(execution.current->lane);
  uint64_t* const table = reinterpret_cast<uint64_t*>(group.table);
  table[lane] = bits;
  const int source = source_lane(lane, kind, argument, width);
  if ((mask >> source & 1u) == 0)
    stop("mask", "%s: shuffle at %s:%d: lane %d reads lane %d, which is not in mask %08x",
         execution.kernel, place.file, place.line, lane, source, mask);
  meet(group, "a shuffle", place);
  return table[source];
}

uint32_t warp_ballot(uint32_t mask, bool predicate, Place place) {
  const AsScheduler scheduler;
  LaneGroup& group = join(mask, "a vote", place);
  group.table[execution.current->lane] = predicate;
  meet(group, "a vote", place);
  uint32_t result = 0;
  for (unsigned i = 0; i < 32; ++i)
    result |= (mask >> i & 1u) != 0 ? uint32_t{group.table[i]} << i : 0u;
  return result;
}

}  // namespace gs::cuda_emulation
