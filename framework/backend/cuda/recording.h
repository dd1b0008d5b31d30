#pragma once

namespace gs::backend {

// For work that a recording cannot hold, since the host waits for it or brings the numbers: an
// error while a step is recorded. In rehearse_work it is done, and the reason noted.
void refuse_in_recording(const char* reason);

}  // namespace gs::backend
