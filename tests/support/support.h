#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace gs::test {

// The message of the Error that `body` throws; fails the test and gives "" when it throws none.
std::string error_of(const std::function<void()>& body);

// A fresh folder, removed with all that it holds at the end of the scope.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  // Writes `bytes` to a file of that name and returns its path.
  std::string write(const std::string& name, const std::string& bytes) const;

 private:
  std::filesystem::path path_;
};

std::string read_file(const std::string& path);

// What a shell command printed (both streams) and its exit status; 128 + n after signal n.
struct CommandResult {
  std::string output;
  int status = 0;
};
CommandResult run_command(const std::string& command);

}  // namespace gs::test
