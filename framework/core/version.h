#pragma once

namespace gs {

// The one place of the version: the build reads it from here.
inline constexpr char version[] = "0.1.0";

}  // namespace gs
