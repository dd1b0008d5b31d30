#include "framework/backend/captured_steps.h"

#include <algorithm>
#include <cstdio>
#include <exception>

#include "framework/backend/store.h"

namespace gs {
namespace {

// Makes a pool the one that this thread allocates from.
class PoolInUse {
 public:
  PoolInUse(Device device, backend::MemoryPool* pool) : device_(device), before_(use(pool)) {}
  ~PoolInUse() { use(before_); }
  PoolInUse(const PoolInUse&) = delete;
  PoolInUse& operator=(const PoolInUse&) = delete;

 private:
  backend::MemoryPool* use(backend::MemoryPool* pool) const {
    return on_device(device_, [&](auto on) { return backend::use_memory_pool(on, pool); });
  }

  Device device_;
  backend::MemoryPool* before_;
};

}  // namespace

CapturedSteps::CapturedSteps(Device device, int64_t most, Generator& generator)
    : device_(device),
      most_(most),
      generator_(generator),
      pool_(on_device(device, [](auto on) { return backend::new_memory_pool(on); })),
      first_stream_(device, sizeof(uint64_t)) {
  check(most >= 1, "captured steps: must keep at least 1 key, got {}", most);
}

void CapturedSteps::run(std::vector<int64_t> key, const std::function<void()>& work) {
  if (pool_ == nullptr) return work();
  const PoolInUse in_use(device_, pool_.get());
  key.push_back(static_cast<int64_t>(generator_.state().seed));  // recordings hold it as it was
  Step& step = step_of(std::move(key));
  if (step.recording == nullptr && step.recordable && !refused_) record(step, work);
  if (step.recording != nullptr) return replay(step);
  const std::string obstacle =
      on_device(device_, [&](auto on) { return backend::rehearse_work(on, work); });
  // The first run may bring to the device what the others find there.
  if (!obstacle.empty() && step.has_run) record_no_more(obstacle);
  step.recordable = obstacle.empty();
  step.has_run = true;
}

int64_t CapturedSteps::recorded() const {
  return std::count_if(steps_.begin(), steps_.end(),
                       [](const Step& step) { return step.recording != nullptr; });
}

// The step of a key moves to the front; the one used the longest time ago makes room.
CapturedSteps::Step& CapturedSteps::step_of(std::vector<int64_t> key) {
  const auto found =
      std::find_if(steps_.begin(), steps_.end(), [&](const Step& step) { return step.key == key; });
  if (found != steps_.end()) {
    steps_.splice(steps_.begin(), steps_, found);
    return steps_.front();
  }
  if (static_cast<int64_t>(steps_.size()) == most_) steps_.pop_back();
  return steps_.emplace_front(Step{.key = std::move(key)});
}

void CapturedSteps::record(Step& step, const std::function<void()>& work) {
  bool has_ended = false;
  try {
    const RelativeStreams streams(generator_, static_cast<const uint64_t*>(first_stream_.data()));
    step.recording = on_device(device_, [&](auto on) {
      return backend::record_work(on, [&] {
        work();
        has_ended = true;
      });
    });
    step.draws = streams.drawn();
  } catch (const std::exception& error) {
    // Half of a step cannot be taken back: gradients, say, that no device will compute.
    if (!has_ended) throw;
    record_no_more(error.what());
  }
}

void CapturedSteps::record_no_more(const std::string& reason) {
  if (!refused_) {
    std::fprintf(stderr, "gradstone: steps on %s are not recorded, which makes them slower: %s\n",
                 device_.text().c_str(), reason.c_str());
  }
  refused_ = true;
}

void CapturedSteps::replay(const Step& step) {
  RandomState state = generator_.state();
  on_device(device_, [&](auto on) {
    backend::store(on, first_stream_.data(), &state.next_stream, sizeof(state.next_stream));
    backend::replay_work(on, step.recording);
  });
  state.next_stream += step.draws;
  generator_.restore(state);
  ++replays_;
}

}  // namespace gs
