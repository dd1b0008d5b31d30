#include "framework/backend/staged_upload.h"

namespace gs {

StagedUpload::StagedUpload(Device device, int64_t bytes) : target_(device, bytes) {
  for (Stage& stage : stages_) {
    stage.host = on_device(device, [&](auto on) { return backend::new_pinned_memory(on, bytes); });
    stage.device = std::make_unique<Memory>(device, bytes);
    // The memory may still be in use by who had it before.
    stage.taken = on_device(device, [](auto on) { return backend::mark(on); });
  }
}

std::byte* StagedUpload::next() {
  on_device(target_.device(), [&](auto on) { backend::wait_for(on, stage().sent); });
  return static_cast<std::byte*>(stage().host.get());
}

void StagedUpload::send(int64_t bytes) {
  check(bytes >= 0 && bytes <= this->bytes(),
        "staged upload: holds {} bytes, got {}; make a larger one", this->bytes(), bytes);
  on_device(target_.device(), [&](auto on) {
    void* const waiting = stage().device->data();
    stage().sent = backend::copy_beside(on, waiting, stage().host.get(), bytes, stage().taken);
    backend::follow(on, stage().sent);
    backend::copy_in_order(on, target_.data(), waiting, bytes);
    stage().taken = backend::mark(on);
  });
  turn_ = 1 - turn_;
}

}  // namespace gs
