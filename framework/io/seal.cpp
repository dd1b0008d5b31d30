#include "framework/io/seal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <new>
#include <system_error>
#include <vector>

#include "framework/core/error.h"

namespace gs {
namespace {

constexpr std::string_view kFirstWords = "gradstone checkpoint ";
constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";

class Digest {
 public:
  void add(std::string_view bytes) {
    const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
    crc_ = crc32_z(crc_, data, bytes.size());
    adler_ = adler32_z(adler_, data, bytes.size());
  }
  uint64_t value() const { return uint64_t{crc_} << 32 | uint64_t{adler_}; }

 private:
  uLong crc_ = crc32_z(0, nullptr, 0), adler_ = adler32_z(0, nullptr, 0);
};

// A regular file, open for reading.
class File {
 public:
  explicit File(const std::string& path) : path_(path) {
    file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file_ < 0) fail_read(errno);
    struct stat status;
    const int error = fstat(file_, &status) == 0 ? 0 : errno;
    if (error != 0 || !S_ISREG(status.st_mode)) close(file_);
    if (error != 0) fail_read(error);
    check(!S_ISDIR(status.st_mode), "load: {} is a folder; give the path of a checkpoint", path);
    check(S_ISREG(status.st_mode), "load: {} is not a regular file", path);
    size_ = status.st_size;
  }
  ~File() { close(file_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int64_t size() const { return size_; }
  // As many bytes as there are, up to `size`.
  size_t read(char* bytes, size_t size) {
    size_t done = 0;
    while (done < size) {
      const ssize_t count = ::read(file_, bytes + done, size - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail_read(errno);
      if (count == 0) break;
      done += static_cast<size_t>(count);
    }
    return done;
  }

 private:
  [[noreturn]] void fail_read(int error) const {
    fail("load: cannot read {}, {}", path_, std::generic_category().message(error));
  }

  std::string path_;
  int file_ = -1;
  int64_t size_ = 0;
};

[[noreturn]] void fail_damaged(const std::string& path) {
  fail("load: {} is damaged, its contents are not those that were saved; use another checkpoint",
       path);
}

// Words what a file is that has no seal.
[[noreturn]] void fail_foreign(const std::string& path, std::string_view first, int64_t size) {
  check(size > 0, "load: {} is empty, got 0 bytes; use another checkpoint", path);
  const std::string_view words = first.substr(0, kFirstWords.size());
  if (size < kSealBytes && kFirstWords.starts_with(words))
    fail("load: {} is truncated, got {} bytes; use another checkpoint", path, size);
  check(!first.starts_with(kSignature),
        "load: {} is an HDF5 file, but not a checkpoint of Gradstone", path);
  fail("load: {} is not a checkpoint of Gradstone, or its first bytes are damaged", path);
}

template <typename T>
bool parse(std::string_view& text, T& value, int base, char end) {
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || rest == text.data() + text.size() || *rest != end) return false;
  text.remove_prefix(static_cast<size_t>(rest + 1 - text.data()));
  return true;
}

bool skip(std::string_view& text, std::string_view words) {
  const bool found = text.starts_with(words);
  if (found) text.remove_prefix(words.size());
  return found;
}

Seal parse_seal(const std::string& path, std::string_view block, int64_t size, int64_t newest) {
  std::string_view text = block;
  Seal seal;
  if (!skip(text, kFirstWords)) fail_foreign(path, block, size);
  check(size >= kSealBytes, "load: {} is truncated, got {} bytes; use another checkpoint", path,
        size);
  if (!parse(text, seal.version, 10, '\n') || seal.version < 1) fail_damaged(path);
  check(seal.version <= newest, "load: {} has format version {}, this program reads up to {}", path,
        seal.version, newest);
  const bool whole = skip(text, "bytes ") && parse(text, seal.bytes, 10, '\n') &&
                     skip(text, "digest ") && parse(text, seal.digest, 16, '\n');
  // One text for one seal, so that no changed byte goes unseen.
  if (!whole || seal.text() != block || seal.bytes < kSealBytes) fail_damaged(path);
  check(size >= seal.bytes, "load: {} is truncated, got {} of {} bytes; use another checkpoint",
        path, size, seal.bytes);
  check(size == seal.bytes, "load: {} has bytes added, got {}, expected {}; use another checkpoint",
        path, size, seal.bytes);
  return seal;
}

Seal read_seal(File& file, const std::string& path, int64_t newest_version) {
  std::string block(kSealBytes, '\0');
  block.resize(file.read(block.data(), block.size()));
  return parse_seal(path, block, std::max(file.size(), static_cast<int64_t>(block.size())),
                    newest_version);
}

}  // namespace

Seal Seal::of(int64_t version, std::string_view contents) {
  Digest digest;
  digest.add(contents);
  return {version, kSealBytes + static_cast<int64_t>(contents.size()), digest.value()};
}

std::string Seal::text() const {
  std::string text =
      fmt::format("{}{}\nbytes {:020}\ndigest {:016x}\n", kFirstWords, version, bytes, digest);
  text.resize(kSealBytes, '\0');
  return text;
}

FileBytes read_sealed(const std::string& path, int64_t newest_version) {
  File file(path);
  const Seal seal = read_seal(file, path, newest_version);
  FileBytes bytes{nullptr, static_cast<size_t>(seal.bytes)};
  bytes.data.reset(new (std::nothrow) char[bytes.size]);
  check(bytes.data != nullptr, "load: {} needs {} bytes of memory; free some", path, seal.bytes);
  const std::string text = seal.text();
  std::copy(text.begin(), text.end(), bytes.data.get());
  const size_t rest = bytes.size - text.size();
  if (file.read(bytes.data.get() + text.size(), rest) != rest) fail_damaged(path);
  const std::string_view contents(bytes.data.get() + text.size(), rest);
  if (Seal::of(seal.version, contents) != seal) fail_damaged(path);
  return bytes;
}

void verify_sealed(const std::string& path, const Seal& seal) {
  File file(path);
  if (read_seal(file, path, seal.version) != seal) fail_damaged(path);
  std::vector<char> buffer(1 << 20);
  Digest digest;
  int64_t bytes = kSealBytes;
  while (const size_t size = file.read(buffer.data(), buffer.size())) {
    digest.add({buffer.data(), size});
    bytes += static_cast<int64_t>(size);
  }
  if (bytes != seal.bytes || digest.value() != seal.digest) fail_damaged(path);
}

}  // namespace gs
