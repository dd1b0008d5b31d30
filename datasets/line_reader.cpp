#include "datasets/line_reader.h"

#include <algorithm>
#include <cstring>

#include "framework/core/error.h"

namespace gs {
namespace {

constexpr size_t kBufferSize = 1 << 16;
constexpr size_t kLongestMark = 4;

}  // namespace

LineReader::LineReader(std::string path) : file_(std::move(path)), buffer_(kBufferSize) {
  while (end_ < kLongestMark) {
    const size_t count = file_.read(buffer_.data() + end_, buffer_.size() - end_);
    if (count == 0) break;
    end_ += count;
  }
  skip_byte_order_mark();
}

void LineReader::skip_byte_order_mark() {
  const std::string_view start(buffer_.data(), end_);
  const auto refuse = [&](std::string_view mark, const char* encoding) {
    check(!start.starts_with(mark),
          "read: {} is {} (by its byte order mark), not UTF-8; convert it: iconv -f {} -t UTF-8",
          path(), encoding, encoding);
  };
  using namespace std::string_view_literals;
  refuse("\xFF\xFE\0\0"sv, "UTF-32");  // before the UTF-16 mark that it begins with
  refuse("\0\0\xFE\xFF"sv, "UTF-32");
  refuse("\xFF\xFE"sv, "UTF-16");
  refuse("\xFE\xFF"sv, "UTF-16");
  if (start.starts_with("\xEF\xBB\xBF"sv)) begin_ = 3;
  next_offset_ = static_cast<int64_t>(begin_);
}

bool LineReader::fill() {
  begin_ = 0;
  end_ = file_.read(buffer_.data(), buffer_.size());
  return end_ > 0;
}

bool LineReader::next() {
  line_.clear();
  offset_ = next_offset_;
  if (begin_ == end_ && !fill()) return false;
  ++number_;
  const char* line_end = nullptr;
  do {
    const char* begin = buffer_.data() + begin_;
    line_end = static_cast<const char*>(std::memchr(begin, '\n', end_ - begin_));
    const size_t size = line_end ? static_cast<size_t>(line_end - begin) : end_ - begin_;
    line_.append(begin, size);
    begin_ += size + (line_end ? 1 : 0);
  } while (!line_end && fill());
  next_offset_ += static_cast<int64_t>(line_.size()) + (line_end ? 1 : 0);
  if (number_ == 1 && !line_end) check_line_ends();
  if (line_.ends_with('\r')) line_.pop_back();
  return true;
}

void LineReader::check_line_ends() const {
  const int64_t returns = std::count(line_.begin(), line_.end(), '\r');
  check(returns == 0 || (returns == 1 && line_.ends_with('\r')),
        "read: the lines of {} end in CR alone, got {} CR and no LF; convert it: tr '\\r' '\\n'",
        path(), returns);
}

}  // namespace gs
