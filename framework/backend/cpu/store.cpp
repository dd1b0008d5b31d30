#include "framework/backend/store.h"

#include <cstring>

namespace gs::backend {

void store(Cpu, void* data, const void* host, int64_t bytes) {
  if (bytes > 0) std::memcpy(data, host, static_cast<size_t>(bytes));
}

}  // namespace gs::backend
