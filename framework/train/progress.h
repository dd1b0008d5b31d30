#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace gs {

// "4:05", "1:02:03", "2d 01:02:03"; "?" for what is unknown (NaN, infinite, negative).
std::string duration_text(double seconds);

// Shows where a training run stands: one live line on a terminal, cut to its width and drawn at
// most ten times a second; plain lines at an interval where the stream is a file or a pipe.
class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  struct Status {
    int64_t epoch = 0;   // counted from 1
    int64_t epochs = 0;  // 0: not known
    int64_t step = 0;    // steps done
    int64_t steps = 0;   // 0: not known
    double loss = 0;     // per token
    double tokens_per_second = 0;
  };

  // `interval`: seconds between plain lines.
  explicit Progress(FILE* stream = stdout, double interval = 10);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Shows the status where it is time to, and always at the last step. The time left comes from
  // the steps done since the first update.
  void update(const Status& status, Clock::time_point now = Clock::now());
  // Prints a line of its own, above the live line.
  void print(const std::string& line);
  // Ends the live line, so that whatever comes next stands below it.
  void finish();

  bool live() const { return live_; }

 private:
  std::string text(const Status& status, Clock::time_point now) const;

  FILE* stream_;
  std::chrono::duration<double> interval_;
  bool live_;
  bool drawn_ = false;    // a live line stands on the terminal
  bool started_ = false;  // first_step_ and first_time_ are known
  int64_t first_step_ = 0;
  Clock::time_point first_time_, shown_time_;
};

}  // namespace gs
