#include "framework/train/progress.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "tests/support/support.h"

namespace gs {
namespace {

Progress::Clock::time_point at(double seconds) {
  return Progress::Clock::time_point(std::chrono::milliseconds(std::llround(seconds * 1000)));
}

Progress::Status status_at(int64_t step) {
  return {.epoch = 2,
          .epochs = 3,
          .step = step,
          .steps = 100,
          .loss = 1.25,
          .tokens_per_second = 12345.6};
}

TEST(Duration, IsShortAndReadable) {
  EXPECT_EQ(duration_text(0), "0:00");
  EXPECT_EQ(duration_text(59.6), "1:00");
  EXPECT_EQ(duration_text(3599), "59:59");
  EXPECT_EQ(duration_text(3723), "1:02:03");
  EXPECT_EQ(duration_text(2 * 86400 + 3723), "2d 01:02:03");
  EXPECT_EQ(duration_text(-1), "?");
  EXPECT_EQ(duration_text(std::numeric_limits<double>::infinity()), "?");
  EXPECT_EQ(duration_text(std::nan("")), "?");
}

TEST(Progress, PlainLinesAtAnInterval) {
  const test::TemporaryDirectory folder;
  FILE* file = std::fopen(folder.file("out").c_str(), "w");
  {
    Progress progress(file, 10);
    EXPECT_FALSE(progress.live());
    progress.update(status_at(40), at(0));
    progress.update(status_at(41), at(9.9));
    progress.update(status_at(50), at(10));
    progress.print("validation");
    progress.update(status_at(99), at(11));
    progress.update(status_at(100), at(12));
    Progress::Status open = status_at(7);
    open.epochs = open.steps = 0;
    open.loss = std::nan("");
    progress.update(open, at(100));
  }
  std::fclose(file);
  EXPECT_EQ(test::read_file(folder.file("out")),
            "epoch 2/3  step 40/100  loss 1.2500  12346 tokens/s  ? left\n"
            "epoch 2/3  step 50/100  loss 1.2500  12346 tokens/s  0:50 left\n"
            "validation\n"
            "epoch 2/3  step 100/100  loss 1.2500  12346 tokens/s  0:00 left\n"
            "epoch 2  step 7  loss nan  12346 tokens/s\n");
}

// A terminal of the given width: what is written to `stream` comes back from shown().
class Terminal {
 public:
  explicit Terminal(uint16_t columns) {
    setenv("TERM", "xterm", 1);
    winsize size = {.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(openpty(&screen_, &program_, nullptr, nullptr, &size), 0);
    stream = fdopen(program_, "w");
  }
  ~Terminal() {
    std::fclose(stream);
    close(screen_);
  }
  // What was written may arrive in pieces: all until nothing follows for a while.
  std::string shown() const {
    std::string text;
    pollfd screen = {.fd = screen_, .events = POLLIN, .revents = 0};
    while (poll(&screen, 1, text.empty() ? 2000 : 100) > 0) {
      char buffer[4096];
      const ssize_t size = read(screen_, buffer, sizeof buffer);
      if (size <= 0) break;
      text.append(buffer, static_cast<size_t>(size));
    }
    return text;
  }
  FILE* stream = nullptr;

 private:
  int screen_ = -1, program_ = -1;
};

TEST(Progress, ALiveLineOnATerminal) {
  const Terminal terminal(30);
  Progress progress(terminal.stream);
  EXPECT_TRUE(progress.live());
  progress.update(status_at(1), at(0));
  progress.update(status_at(2), at(0.09));  // too soon
  progress.update(status_at(3), at(0.1));
  EXPECT_EQ(terminal.shown(),
            "\repoch 2/3  step 1/100  loss 1\x1b[K\repoch 2/3  step 3/100  loss 1\x1b[K");
  progress.print("saved");
  EXPECT_EQ(terminal.shown(), "\r\x1b[Ksaved\r\n");
  progress.update(status_at(100), at(0.11));  // the last step shows at once
  progress.finish();
  progress.finish();
  EXPECT_EQ(terminal.shown(), "\repoch 2/3  step 100/100  loss\x1b[K\r\n");
}

TEST(Progress, ADumbTerminalGetsPlainLines) {
  const Terminal terminal(80);
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(Progress(terminal.stream).live());
}

}  // namespace
}  // namespace gs
