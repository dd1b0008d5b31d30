#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace gs {

// A file of JSON lines: one object a line, in the order given, on disk line by line. Numbers that
// are not finite become null, since JSON has none; invalid UTF-8 becomes U+FFFD.
class MetricsLog {
 public:
  using Value = std::variant<bool, int64_t, double, std::string>;
  using Fields = std::vector<std::pair<std::string, Value>>;

  // Starts an empty log, in place of any old one.
  static MetricsLog create(const std::string& path);
  // Continues a log, or starts one where there is none. A last line that a kill cut short is
  // dropped, and so are lines whose "step" is above `last_step`: a run resumed from an older
  // checkpoint writes them again. So are lines of `last_step` whose "event" starts with one of
  // `redone`. A file that is no such log is refused and stays as it is.
  static MetricsLog resume(const std::string& path, std::optional<int64_t> last_step = {},
                           const std::vector<std::string>& redone = {});

  MetricsLog(MetricsLog&& other) noexcept;
  MetricsLog& operator=(MetricsLog&&) = delete;
  ~MetricsLog();

  // Appends one line. Where the disk is full this throws an Error and leaves no part of the line.
  void write(const Fields& fields);

 private:
  MetricsLog(std::string path, int flags);

  std::string path_;
  int file_;  // descriptor; -1 where moved from
};

}  // namespace gs
