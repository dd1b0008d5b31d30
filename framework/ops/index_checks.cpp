#include "framework/ops/index_checks.h"

#include "framework/backend/indices.h"

namespace gs {
namespace {

thread_local bool trusts = false;

}  // namespace

TrustedIndices::TrustedIndices() : before_(trusts) { trusts = true; }
TrustedIndices::~TrustedIndices() { trusts = before_; }

bool trusts_indices() { return trusts; }

int64_t first_outside(const Tensor& indices, int64_t size, std::optional<int64_t> allowed) {
  if (trusts) return -1;
  return on_device(indices.device(), [&](auto on) {
    return backend::first_outside(on, indices.value(), size, allowed);
  });
}

}  // namespace gs
