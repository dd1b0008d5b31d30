#pragma once

#include <array>
#include <memory>

#include "framework/backend/memory.h"
#include "framework/backend/transfer.h"

namespace gs {

// Brings the inputs of each step from the host to one place in a device's memory. The copy runs
// while the device still computes the step before, and nobody waits for it:
//   std::byte* place = upload.next();  // fill it
//   upload.send(bytes);                // later work of the device finds them at data()
class StagedUpload {
 public:
  StagedUpload(Device device, int64_t bytes);

  // Where the host writes what is sent next. Waits for the upload before the last one alone.
  std::byte* next();
  // Sends the first bytes of it; work that was asked for before still sees what was sent before.
  void send(int64_t bytes);

  void* data() const { return target_.data(); }
  int64_t bytes() const { return target_.bytes(); }

 private:
  // Pinned memory, and memory of the device where it waits until the step before is over.
  struct Stage {
    std::shared_ptr<void> host;
    std::unique_ptr<Memory> device;
    backend::Mark sent, taken;  // from the host, from the device's
  };
  Stage& stage() { return stages_[static_cast<size_t>(turn_)]; }

  Memory target_;
  std::array<Stage, 2> stages_;
  int turn_ = 0;
};

}  // namespace gs
