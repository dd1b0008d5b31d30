#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace gs {

// A checkpoint file begins with a seal, in the user block that HDF5 leaves to applications, so that
// damage is found before HDF5 sees the file. It is text, filled up with NUL bytes to kSealBytes:
//   gradstone checkpoint <format version>
//   bytes <size of the file, 20 digits>
//   digest <CRC-32 and Adler-32 of all bytes after the seal, 8 hexadecimal digits each>
inline constexpr int64_t kSealBytes = 512;

struct Seal {
  int64_t version = 0;
  int64_t bytes = 0;
  uint64_t digest = 0;

  static Seal of(int64_t version, std::string_view contents);
  std::string text() const;
  bool operator==(const Seal&) const = default;
};

// The bytes of a file, with the seal.
struct FileBytes {
  std::unique_ptr<char[]> data;
  size_t size = 0;
};

// Reads a file and checks it against its seal. Every Error is one line: "load: <path> ...".
FileBytes read_sealed(const std::string& path, int64_t newest_version);

// Reads the file anew in pieces and throws unless it is what `seal` says.
void verify_sealed(const std::string& path, const Seal& seal);

}  // namespace gs
