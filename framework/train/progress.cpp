#include "framework/train/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string_view>

namespace gs {
namespace {

constexpr std::string_view erase_to_end_of_line = "\x1b[K";

bool is_terminal(FILE* stream) {
  const char* const kind = std::getenv("TERM");
  return isatty(fileno(stream)) != 0 && kind != nullptr && std::string_view(kind) != "dumb";
}

size_t width_of(FILE* stream) {
  winsize size{};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string share_text(const char* name, int64_t done, int64_t all) {
  return all > 0 ? fmt::format("{} {}/{}", name, done, all) : fmt::format("{} {}", name, done);
}

}  // namespace

std::string duration_text(double seconds) {
  if (!(seconds >= 0 && seconds < 1e15)) return "?";
  const int64_t whole = std::llround(seconds);
  const int64_t days = whole / 86400, hours = whole / 3600 % 24, minutes = whole / 60 % 60;
  if (days > 0) return fmt::format("{}d {:02}:{:02}:{:02}", days, hours, minutes, whole % 60);
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
  return fmt::format("{}:{:02}", minutes, whole % 60);
}

Progress::Progress(FILE* stream, double interval)
    : stream_(stream),
      interval_(is_terminal(stream) ? 0.1 : interval),
      live_(is_terminal(stream)) {}

std::string Progress::text(const Status& status, Clock::time_point now) const {
  double left = std::numeric_limits<double>::quiet_NaN();
  if (status.step > first_step_ && status.steps > 0) {
    const std::chrono::duration<double> elapsed = now - first_time_;
    left = elapsed.count() * static_cast<double>(status.steps - status.step) /
           static_cast<double>(status.step - first_step_);
  }
  std::string text = fmt::format(
      "{}  {}  loss {:.4f}  {:.0f} tokens/s", share_text("epoch", status.epoch, status.epochs),
      share_text("step", status.step, status.steps), status.loss, status.tokens_per_second);
  if (status.steps > 0) text += fmt::format("  {} left", duration_text(left));
  return text;
}

void Progress::update(const Status& status, Clock::time_point now) {
  const bool first = !started_;
  if (first) {
    started_ = true;
    first_step_ = status.step;
    first_time_ = now;
  }
  const bool last = status.steps > 0 && status.step >= status.steps;
  if (!first && !last && now - shown_time_ < interval_) return;
  shown_time_ = now;
  std::string line = text(status, now);
  if (live_) {
    // The last column stays free: some terminals wrap as soon as it is written.
    line = "\r" + line.substr(0, width_of(stream_) - 1);
    line += erase_to_end_of_line;
    drawn_ = true;
  } else {
    line += '\n';
  }
  std::fputs(line.c_str(), stream_);
  std::fflush(stream_);
}

void Progress::print(const std::string& line) {
  const std::string text =
      (drawn_ ? "\r" + std::string(erase_to_end_of_line) : std::string()) + line + "\n";
  drawn_ = false;
  std::fputs(text.c_str(), stream_);
  std::fflush(stream_);
}

void Progress::finish() {
  if (!drawn_) return;
  drawn_ = false;
  std::fputs("\n", stream_);
  std::fflush(stream_);
}

}  // namespace gs
