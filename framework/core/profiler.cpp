#include "framework/core/profiler.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "framework/core/error.h"

namespace gs {

std::atomic<uint32_t> OperationTimer::active_session{0};

namespace {

constexpr std::array kPhases{"forward", "backward", "other"};

thread_local OperationTimer* innermost = nullptr;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

uint32_t this_thread() {
  static std::atomic<uint32_t> count{0};
  thread_local const uint32_t number = ++count;
  return number;
}

struct NameHash {
  using is_transparent = void;
  size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
};

// Operations by self time, events by start; numbers follow.
void arrange(Profile& profile) {
  std::vector<uint32_t> order(profile.operations.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const Profile::Operation &x = profile.operations[a], &y = profile.operations[b];
    return x.self() != y.self() ? x.self() > y.self() : x.name < y.name;
  });
  std::vector<Profile::Operation> operations;
  std::vector<uint32_t> places(order.size());
  for (const uint32_t number : order) {
    places[number] = static_cast<uint32_t>(operations.size());
    operations.push_back(std::move(profile.operations[number]));
  }
  profile.operations = std::move(operations);
  // They stand in the order of their ends: an operation after those that it called.
  std::reverse(profile.events.begin(), profile.events.end());
  std::stable_sort(profile.events.begin(), profile.events.end(),
                   [](const Profile::Event& a, const Profile::Event& b) {
                     return a.start != b.start ? a.start < b.start : a.duration > b.duration;
                   });
  for (Profile::Event& event : profile.events) event.operation = places[event.operation];
}

}  // namespace

// The one that is running. Its lock is held for some 20 ns at each end of a scope.
class Profiler {
 public:
  static Profiler& instance() {
    static Profiler& profiler = *new Profiler;  // outlives every thread
    return profiler;
  }

  void start(const ProfilingConfig& config) {
    const std::lock_guard lock(mutex_);
    check(session_ == 0, "start_profiling: it is running already; stop it first");
    check(config.maximum_events >= 0, "start_profiling: maximum_events must be 0 or more, got {}",
          config.maximum_events);
    profile_ = {};
    numbers_.clear();
    maximum_events_ = config.maximum_events;
    profile_.events.reserve(static_cast<size_t>(maximum_events_));  // none is made in a destructor
    thread_ = this_thread();
    start_ = now();
    session_ = ++sessions_;
    OperationTimer::active_session = session_;
  }

  Profile stop() {
    const std::lock_guard lock(mutex_);
    check(session_ != 0, "stop_profiling: it is not running; call start_profiling first");
    OperationTimer::active_session = session_ = 0;
    profile_.wall = now() - start_;
    Profile result = std::exchange(profile_, {});
    arrange(result);
    return result;
  }

  // Takes the timer's place in the profile. False where it was stopped in the meantime.
  bool open(OperationTimer& timer, std::string_view name) {
    const std::lock_guard lock(mutex_);
    if (session_ == 0) return false;
    auto found = numbers_.find(name);
    if (found == numbers_.end()) {
      found = numbers_.emplace(name, static_cast<uint32_t>(profile_.operations.size())).first;
      profile_.operations.push_back({.name = found->first});
    }
    timer.operation_ = found->second;
    timer.session_ = session_;
    return true;
  }

  void close(const OperationTimer& timer, int64_t duration) noexcept {
    const std::lock_guard lock(mutex_);
    if (timer.session_ != session_) return;  // stopped in the meantime
    Profile::Cost& cost =
        profile_.operations[timer.operation_].costs[static_cast<size_t>(timer.phase_)];
    const int64_t self = duration - timer.inside_;
    ++cost.calls;
    cost.self += self;
    if (!is_inside_itself(timer)) cost.total += duration;
    if (this_thread() == thread_) profile_.covered += self;
    if (static_cast<int64_t>(profile_.events.size()) < maximum_events_) {
      profile_.events.push_back(
          {timer.start_ - start_, duration, timer.operation_, this_thread(), timer.phase_});
    } else if (maximum_events_ > 0) {
      ++profile_.events_left_out;
    }
  }

 private:
  static bool is_inside_itself(const OperationTimer& timer) {
    for (const OperationTimer* outer = timer.outer_; outer != nullptr; outer = outer->outer_) {
      if (outer->session_ == timer.session_ && outer->operation_ == timer.operation_ &&
          outer->phase_ == timer.phase_)
        return true;
    }
    return false;
  }

  std::mutex mutex_;
  uint32_t session_ = 0, sessions_ = 0;
  uint32_t thread_ = 0;
  int64_t start_ = 0, maximum_events_ = 0;
  Profile profile_;
  std::unordered_map<std::string, uint32_t, NameHash, std::equal_to<>> numbers_;
};

void OperationTimer::begin(const char* name, Phase phase) {
  if (!Profiler::instance().open(*this, name)) return;
  outer_ = innermost;
  const bool backward = outer_ != nullptr && outer_->phase_ == Phase::kBackward;
  phase_ = phase == Phase::kForward && backward ? Phase::kBackward : phase;
  inside_ = 0;
  innermost = this;
  start_ = now();
}

void OperationTimer::end() noexcept {
  const int64_t duration = now() - start_;
  innermost = outer_;
  if (outer_ != nullptr) outer_->inside_ += duration;
  Profiler::instance().close(*this, duration);
}

void start_profiling(const ProfilingConfig& config) { Profiler::instance().start(config); }

Profile stop_profiling() { return Profiler::instance().stop(); }

Profile::Cost Profile::cost(const std::string& name, Phase phase) const {
  for (const Operation& operation : operations)
    if (operation.name == name) return operation[phase];
  return {};
}

namespace {

double share(int64_t part, int64_t whole) {
  return whole <= 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

double milliseconds(int64_t nanoseconds) { return static_cast<double>(nanoseconds) / 1e6; }

// Calls, milliseconds, percent; blanks where it was never called.
std::string cells(const Profile::Cost& cost, int64_t wall) {
  if (cost.calls == 0) return std::string(28, ' ');
  return fmt::format("{:>9} {:>11.2f} {:>6.2f}", cost.calls, milliseconds(cost.self),
                     share(cost.self, wall));
}

}  // namespace

std::string Profile::text() const {
  size_t width = 20;
  for (const Operation& operation : operations) width = std::max(width, operation.name.size());
  std::string table, rest;
  for (const Operation& operation : operations) {
    const Cost &forward = operation[Phase::kForward], &backward = operation[Phase::kBackward];
    const Cost& other = operation[Phase::kOther];
    if (forward.calls + backward.calls > 0) {
      const int64_t both = forward.self + backward.self;
      table += fmt::format("{:<{}} {} {} {:>11.2f} {:>6.2f}\n", operation.name, width,
                           cells(forward, wall), cells(backward, wall), milliseconds(both),
                           share(both, wall));
    }
    if (other.calls > 0) {
      rest += fmt::format("{:<{}} {} {:>20.2f}\n", operation.name, width, cells(other, wall),
                          milliseconds(other.total));
    }
  }
  std::string text = fmt::format("Profile: {:.3f} s, {:.2f} % of it outside of what is listed\n",
                                 milliseconds(wall) / 1000, share(wall - covered, wall));
  constexpr const char* kColumns = "    calls          ms      %";
  if (!table.empty()) {
    text += fmt::format("{:<{}} {:>28} {:>28} {:>18}\n", "", width, "forward", "backward", "both");
    text += fmt::format("{:<{}} {} {} {:>11} {:>6}\n{}", "operation", width, kColumns, kColumns,
                        "ms", "%", table);
  }
  if (!rest.empty()) {
    text += fmt::format("{:<{}} {} {:>20}\n{}", "rest of the program", width, kColumns,
                        "ms with all inside", rest);
  }
  return text;
}

std::string Profile::trace() const {
  std::vector<std::string> names;  // quoted
  for (const Operation& operation : operations) {
    names.push_back(nlohmann::json(operation.name)
                        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  std::string text = fmt::format(
      "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"events_left_out\":{}}},\"traceEvents\":[",
      events_left_out);
  const char* separator = "\n";
  for (const Event& event : events) {
    fmt::format_to(std::back_inserter(text),
                   "{}{{\"name\":{},\"cat\":\"{}\",\"ph\":\"X\",\"pid\":1,\"tid\":{},"
                   "\"ts\":{}.{:03},\"dur\":{}.{:03}}}",
                   separator, names[event.operation], kPhases[static_cast<size_t>(event.phase)],
                   event.thread, event.start / 1000, event.start % 1000, event.duration / 1000,
                   event.duration % 1000);
    separator = ",\n";
  }
  return text + "\n]}\n";
}

}  // namespace gs
