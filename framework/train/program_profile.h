#pragma once

#include <string>

namespace gs {

// What --profile and --profile-trace FILE of every program do. From here on operations are timed;
// the end of run_program, an error, or an interrupt that ends the process shows the times on stderr
// and writes the trace, if a path is given. Refuses a path that cannot be written. To be called
// from the main thread.
void start_program_profile(const std::string& trace_path);

// Shows and writes what start_program_profile began, once; does nothing where it did not begin.
void finish_program_profile();

}  // namespace gs
