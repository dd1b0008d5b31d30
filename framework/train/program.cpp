#include "framework/train/program.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <new>
#include <string>
#include <system_error>

#include "framework/backend/device_title.h"
#include "framework/backend/instruction_set.h"
#include "framework/core/error.h"
#include "framework/train/program_profile.h"

namespace gs {
namespace {

// The profile of what came before, then the message.
int report(const std::string& program, std::string message, int status) {
  try {
    finish_program_profile();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", program.c_str(), error.what());
  }
  for (char& c : message)
    if (c == '\n' || c == '\r') c = ' ';
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", program.c_str(), message.c_str());
  return status;
}

}  // namespace

int run_program(int argc, char** argv, const std::function<int(int argc, char** argv)>& body) {
  const std::string program =
      argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "gradstone";
  std::signal(SIGPIPE, SIG_DFL);  // some parents leave it ignored
  std::signal(SIGXFSZ, SIG_IGN);  // beyond a file-size limit writes fail, and say why
  try {
    backend::instruction_set(Cpu{});  // a wrong GRADSTONE_SIMD is refused before anything happens
    const int status = body(argc, argv);
    errno = 0;
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0 || !std::cout.flush())
      return report(program,
                    std::string("standard output: cannot be written, ") +
                        (errno != 0 ? std::strerror(errno) : "an earlier write failed"),
                    2);
    finish_program_profile();
    return status;
  } catch (const Error& error) {
    return report(program, error.what(), 2);
  } catch (const std::system_error& error) {  // includes filesystem_error
    return report(program, error.what(), 2);
  } catch (const std::bad_alloc&) {
    return report(program, "out of memory; use smaller batches or a smaller model", 1);
  } catch (const std::exception& error) {
    return report(program, error.what(), 1);
  }
}

std::string compute_title() { return backend::device_title(Cpu{}); }

}  // namespace gs
