#include "datasets/input_file.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "framework/core/error.h"

namespace gs {
namespace {

constexpr size_t kInputSize = 1 << 16;
constexpr int kGzipWindow = 15 + 16;  // 16 asks zlib for gzip's header and checksum

bool is_gzip(const char* bytes) { return bytes[0] == '\x1f' && bytes[1] == '\x8b'; }

}  // namespace

InputFile::InputFile(std::string path) : path_(std::move(path)), input_(kInputSize) {
  file_ = std::fopen(path_.c_str(), "rb");
  check(file_ != nullptr, "read: cannot open {}: {}", path_, std::strerror(errno));
  try {
    if (fill() && end_ - begin_ >= 2 && is_gzip(input_.data())) {
      gzip_ = std::make_unique<z_stream>();
      check(inflateInit2(gzip_.get(), kGzipWindow) == Z_OK, "read: zlib cannot start for {}",
            path_);
    }
  } catch (...) {
    std::fclose(file_);
    throw;
  }
}

InputFile::~InputFile() {
  if (gzip_) inflateEnd(gzip_.get());
  std::fclose(file_);
}

// Keeps an unread byte, so that two bytes of a magic number can be asked for.
bool InputFile::fill() {
  std::copy(input_.data() + begin_, input_.data() + end_, input_.data());
  end_ -= begin_;
  begin_ = 0;
  const size_t got = std::fread(input_.data() + end_, 1, input_.size() - end_, file_);
  check(std::ferror(file_) == 0, "read: cannot read {}: {}", path_, std::strerror(errno));
  end_ += got;
  return got > 0;
}

size_t InputFile::read(char* bytes, size_t size) {
  return gzip_ ? read_gzip(bytes, size) : read_plain(bytes, size);
}

size_t InputFile::read_plain(char* bytes, size_t size) {
  if (begin_ == end_ && !fill()) return 0;
  const size_t count = std::min(size, end_ - begin_);
  std::copy_n(input_.data() + begin_, count, bytes);
  begin_ += count;
  return count;
}

bool InputFile::begin_member() {
  while (end_ - begin_ < 2 && fill()) continue;
  if (begin_ == end_) return false;
  check(end_ - begin_ >= 2 && is_gzip(input_.data() + begin_),
        "read: bytes follow the end of the gzip data in {}; pack it anew", path_);
  check(inflateReset2(gzip_.get(), kGzipWindow) == Z_OK, "read: zlib cannot restart for {}", path_);
  return inside_member_ = true;
}

size_t InputFile::read_gzip(char* bytes, size_t size) {
  const auto asked = static_cast<uInt>(std::min<size_t>(size, std::numeric_limits<uInt>::max()));
  z_stream& stream = *gzip_;
  stream.next_out = reinterpret_cast<Bytef*>(bytes);
  stream.avail_out = asked;
  while (stream.avail_out == asked) {
    if (!inside_member_ && !begin_member()) return 0;
    check(begin_ < end_ || fill(), "read: the gzip data in {} end too early; fetch the file again",
          path_);
    stream.next_in = reinterpret_cast<Bytef*>(input_.data() + begin_);
    stream.avail_in = static_cast<uInt>(end_ - begin_);
    const int status = inflate(&stream, Z_NO_FLUSH);
    begin_ = end_ - stream.avail_in;
    check(status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR,
          "read: the gzip data in {} are damaged ({}); fetch the file again", path_,
          stream.msg ? stream.msg : "no reason given");
    if (status == Z_STREAM_END) inside_member_ = false;
  }
  return asked - stream.avail_out;
}

}  // namespace gs
