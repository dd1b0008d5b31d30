#include "framework/text/stored_bytes.h"

#include <zlib.h>

#include <limits>

#include "framework/core/error.h"

namespace gs {
namespace {

uint32_t checksum(std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace

StoredBytesWriter::StoredBytesWriter(std::string_view mark, uint32_t version) : bytes_(mark) {
  number(version);
}

void StoredBytesWriter::number(uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(value >> shift & 0xFF);
}

void StoredBytesWriter::block(std::string_view bytes) {
  check(bytes.size() <= std::numeric_limits<uint32_t>::max(),
        "to_bytes: at most 2^32 - 1 bytes fit in a part, got {}", bytes.size());
  number(static_cast<uint32_t>(bytes.size()));
  bytes_ += bytes;
}

std::string StoredBytesWriter::finish() {
  number(checksum(bytes_));
  return std::move(bytes_);
}

StoredBytesReader::StoredBytesReader(std::string_view bytes, std::string_view mark,
                                     uint32_t version, std::string operation)
    : operation_(std::move(operation)) {
  check(bytes.starts_with(mark),
        "{0}: the stored bytes are no {0}, got {1} bytes without its mark; check the file",
        operation_, bytes.size());
  rest_ = bytes.substr(mark.size());
  const uint32_t stored_version = number();
  check(stored_version == version,
        "{}: version {} is stored, this program reads version {}; update it", operation_,
        stored_version, version);
  check(rest_.size() >= 4, "{}: the stored bytes end too early, got {}", operation_, bytes.size());
  const std::string_view contents = rest_.substr(0, rest_.size() - 4);
  rest_.remove_prefix(contents.size());
  const uint32_t expected = number(), computed = checksum(bytes.substr(0, bytes.size() - 4));
  check(expected == computed,
        "{}: the stored bytes are damaged, got checksum {:08x} for {:08x}; restore the file from a "
        "copy",
        operation_, computed, expected);
  rest_ = contents;
}

std::string_view StoredBytesReader::take(size_t size) {
  check(size <= rest_.size(),
        "{}: the stored bytes end too early, got {} of {}; restore the file from a copy",
        operation_, rest_.size(), size);
  const std::string_view front = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return front;
}

uint32_t StoredBytesReader::number() {
  uint32_t value = 0;
  const std::string_view front = take(4);
  for (size_t i = 0; i < 4; ++i)
    value |= static_cast<uint32_t>(static_cast<uint8_t>(front[i])) << (8 * i);
  return value;
}

std::string_view StoredBytesReader::block() { return take(number()); }

void StoredBytesReader::finish() const {
  check(rest_.empty(), "{}: {} bytes follow the last token; restore the file from a copy",
        operation_, rest_.size());
}

}  // namespace gs
