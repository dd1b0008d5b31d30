#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "framework/backend/memory.h"
#include "framework/backend/memory_pool.h"
#include "framework/core/random.h"

namespace gs {

// Steps that repeat. What a step asks of a CUDA device is recorded when its key comes for the
// second time, and replayed with one launch from then on; on the CPU every step just runs.
//
// Steps of one key must ask the same of the device: what differs from step to step (a batch, a
// learning rate) stands in arrays made outside, to which the results go, too. Arrays made in a step
// come from a pool that all recorded steps share; nothing else gets its memory while this lives,
// but the next step may overwrite it. A step cannot read from the device. It may run once more on
// the host when it is recorded, and does not run there when it is replayed; the random numbers are
// those that it would have drawn. Where a step cannot be recorded, which shows in its runs before,
// a note says why, once, and all that are not recorded yet run as they are. Other threads must
// leave the device alone meanwhile, since their work would be recorded with a step's.
class CapturedSteps {
 public:
  // Keeps at most `most` keys, those used last.
  explicit CapturedSteps(Device device, int64_t most = 16,
                         Generator& generator = default_generator());

  // Does what `work` does, as a step of this key, such as the sizes of its arrays.
  void run(std::vector<int64_t> key, const std::function<void()>& work);

  int64_t recorded() const;  // steps that are kept as a recording now
  int64_t replays() const { return replays_; }

 private:
  struct Step {
    std::vector<int64_t> key;
    bool has_run = false, recordable = false;
    std::shared_ptr<void> recording = nullptr;
    uint64_t draws = 0;  // streams of the generator in one run
  };

  Step& step_of(std::vector<int64_t> key);
  void record(Step& step, const std::function<void()>& work);
  void replay(const Step& step);
  void record_no_more(const std::string& reason);

  Device device_;
  int64_t most_;
  Generator& generator_;
  std::shared_ptr<backend::MemoryPool> pool_;
  Memory first_stream_;    // its number, on the device
  std::list<Step> steps_;  // the one used last comes first
  bool refused_ = false;
  int64_t replays_ = 0;
};

namespace backend {

// Calls `work`; returns why it cannot be recorded, or nothing if it can.
std::string rehearse_work(Cpu, const std::function<void()>& work);
std::string rehearse_work(Cuda, const std::function<void()>& work);

// Calls `work` and records what it asks of the device, which does nothing yet; an error in `work`
// is passed on. Null on the CPU, which records nothing and does not call it.
std::shared_ptr<void> record_work(Cpu, const std::function<void()>& work);
std::shared_ptr<void> record_work(Cuda, const std::function<void()>& work);

// Has the device do it.
void replay_work(Cpu, const std::shared_ptr<void>& recording);
void replay_work(Cuda, const std::shared_ptr<void>& recording);

}  // namespace backend
}  // namespace gs
