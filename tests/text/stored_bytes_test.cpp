#include "framework/text/stored_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using namespace std::string_literals;

std::string written() {
  StoredBytesWriter writer("GSMARK.\n", 7);
  writer.number(0x01020304);
  writer.block("ab");
  writer.block("");
  return writer.finish();
}

std::string error_of_reading(const std::string& bytes, std::string_view mark = "GSMARK.\n",
                             uint32_t version = 7) {
  return error_of([&] {
    StoredBytesReader reader(bytes, mark, version, "thing");
    reader.number();
    reader.block();
    reader.block();
    reader.finish();
  });
}

TEST(StoredBytes, AreLittleEndianAndSealed) {
  // The checksum is that of Python's zlib.crc32.
  EXPECT_EQ(written(), "GSMARK.\n\7\0\0\0\4\3\2\1\2\0\0\0ab\0\0\0\0"s + "\x1f\x80\xce\x32"s);
}

TEST(StoredBytes, ComeBack) {
  const std::string bytes = written();
  StoredBytesReader reader(bytes, "GSMARK.\n", 7, "thing");
  EXPECT_EQ(reader.number(), 0x01020304u);
  EXPECT_EQ(reader.block(), "ab");
  EXPECT_EQ(reader.block(), "");
  reader.finish();
}

TEST(StoredBytes, RefuseWhatIsNotTheirs) {
  EXPECT_EQ(error_of_reading("", "GSMARK.\n"),
            "thing: the stored bytes are no thing, got 0 bytes without its mark; check the file");
  EXPECT_EQ(error_of_reading(written(), "GSOTHER\n"),
            "thing: the stored bytes are no thing, got 30 bytes without its mark; check the file");
  EXPECT_EQ(error_of_reading(written(), "GSMARK.\n", 6),
            "thing: version 7 is stored, this program reads version 6; update it");
  EXPECT_EQ(error_of([] {
              const std::string bytes = written();
              StoredBytesReader(bytes, "GSMARK.\n", 7, "thing").finish();
            }),
            "thing: 14 bytes follow the last token; restore the file from a copy");
}

TEST(StoredBytes, RefuseDamage) {
  const std::string bytes = written();
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_NE(error_of_reading(bytes.substr(0, size)), "") << size;
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_NE(error_of_reading(flipped), "") << bit;
  }
}

}  // namespace
}  // namespace gs
