#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gs {

// The stored form of vocabularies and tokenizers, all numbers little-endian: a mark of 8 bytes that
// names the kind, u32 version, the contents, u32 CRC-32 of all before it.
class StoredBytesWriter {
 public:
  StoredBytesWriter(std::string_view mark, uint32_t version);
  void number(uint32_t value);
  void block(std::string_view bytes);  // u32 size and the bytes
  std::string finish();

 private:
  std::string bytes_;
};

// Reads what the writer wrote. Damaged and foreign bytes, and those of another version, are
// refused; `operation` begins the errors.
class StoredBytesReader {
 public:
  StoredBytesReader(std::string_view bytes, std::string_view mark, uint32_t version,
                    std::string operation);
  uint32_t number();
  std::string_view block();
  void finish() const;  // nothing may follow

 private:
  std::string_view take(size_t size);

  std::string_view rest_;
  std::string operation_;
};

}  // namespace gs
