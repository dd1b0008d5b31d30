#include "framework/backend/captured_steps.h"

namespace gs::backend {

std::string rehearse_work(Cpu, const std::function<void()>& work) {
  work();
  return "";
}
std::shared_ptr<void> record_work(Cpu, const std::function<void()>&) { return nullptr; }
void replay_work(Cpu, const std::shared_ptr<void>&) {}

}  // namespace gs::backend
