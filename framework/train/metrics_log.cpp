#include "framework/train/metrics_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "framework/core/error.h"

namespace gs {
namespace {

// Whether a line belongs to the resumed run; nothing where it is no JSON object.
std::optional<bool> is_kept(const std::string& line, const std::optional<int64_t>& last_step,
                            const std::vector<std::string>& redone) {
  const auto object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object()) return std::nullopt;
  const auto step = object.find("step"), event = object.find("event");
  if (!last_step || step == object.end() || !step->is_number_integer()) return true;
  const auto begins = [&](const std::string& text) {
    return event->get_ref<const std::string&>().starts_with(text);
  };
  const bool again = event != object.end() && event->is_string() &&
                     std::any_of(redone.begin(), redone.end(), begins);
  return step->get<int64_t>() < *last_step || (step->get<int64_t>() == *last_step && !again);
}

struct Contents {
  std::string kept;
  bool changed = false;
};

Contents read_contents(const std::string& path, const std::optional<int64_t>& last_step,
                       const std::vector<std::string>& redone) {
  std::ifstream stream(path, std::ios::binary);
  check(stream.is_open(), "metrics log: {} cannot be read; choose another file", path);
  Contents contents;
  int64_t number = 1;
  for (std::string line; std::getline(stream, line); ++number) {
    const bool cut = stream.eof();  // no line end
    const std::optional<bool> kept = cut ? false : is_kept(line, last_step, redone);
    check(kept.has_value() || stream.peek() == std::ifstream::traits_type::eof(),
          "metrics log: line {} of {} is no JSON object; choose another file", number, path);
    if (kept.value_or(false))
      contents.kept += line + "\n";
    else
      contents.changed = true;
  }
  check(!stream.bad(), "metrics log: {} cannot be read; choose another file", path);
  return contents;
}

// Through a second file, so that a kill leaves the one or the other.
void replace_file(const std::string& path, const std::string& contents) {
  const std::string temporary = path + ".tmp";
  std::ofstream stream(temporary, std::ios::binary);
  stream << contents;
  stream.close();
  std::error_code error;
  if (stream) std::filesystem::rename(temporary, path, error);
  if (stream && !error) return;
  std::error_code ignored;
  std::filesystem::remove(temporary, ignored);
  fail("metrics log: {} cannot be rewritten; is there space in its folder?", path);
}

}  // namespace

MetricsLog::MetricsLog(std::string path, int flags)
    : path_(std::move(path)),
      file_(open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0666)) {
  check(file_ >= 0, "metrics log: {} cannot be written, {}; choose another file", path_,
        std::strerror(errno));
}

MetricsLog MetricsLog::create(const std::string& path) { return {path, O_TRUNC}; }

MetricsLog MetricsLog::resume(const std::string& path, std::optional<int64_t> last_step,
                              const std::vector<std::string>& redone) {
  std::error_code error;
  if (std::filesystem::exists(path, error)) {
    const Contents contents = read_contents(path, last_step, redone);
    if (contents.changed) replace_file(path, contents.kept);
  }
  return {path, 0};
}

MetricsLog::MetricsLog(MetricsLog&& other) noexcept
    : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

MetricsLog::~MetricsLog() {
  if (file_ >= 0) close(file_);
}

void MetricsLog::write(const Fields& fields) {
  check(file_ >= 0, "metrics log: moved from; write to the log that took its place");
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const auto& [name, value] : fields)
    std::visit([&, &key = name](const auto& v) { object[key] = v; }, value);
  const std::string line =
      object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  struct stat status = {};
  const bool sized = fstat(file_, &status) == 0;
  // A short write is followed by one that tells the reason.
  for (size_t done = 0; done < line.size();) {
    const ssize_t written = ::write(file_, line.data() + done, line.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written > 0) {
      done += static_cast<size_t>(written);
      continue;
    }
    const int reason = errno;
    const bool restored = sized && ftruncate(file_, status.st_size) == 0;
    fail("metrics log: {} cannot be written, {}{}; make space and resume", path_,
         std::strerror(reason), restored ? "" : " (its last line may be cut)");
  }
}

}  // namespace gs
