#include "datasets/line_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>

#include "tests/support/support.h"

namespace gs {
namespace {

using namespace std::string_view_literals;
using testing::ElementsAre;
using testing::HasSubstr;

std::string gzip(const std::string& bytes) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

class LineReaderTest : public testing::Test {
 protected:
  std::vector<std::string> lines_of(std::string_view bytes) {
    LineReader reader(folder_.write("text", std::string(bytes)));
    std::vector<std::string> lines;
    while (reader.next()) {
      lines.emplace_back(reader.line());
      EXPECT_EQ(reader.number(), static_cast<int64_t>(lines.size()));
    }
    EXPECT_FALSE(reader.next());
    return lines;
  }

  std::string error_for(std::string_view bytes) {
    return test::error_of([&] { lines_of(bytes); });
  }

  test::TemporaryDirectory folder_;
};

// stanfordnlp/CoreNLP#619; rsennrich/subword-nmt#29; EdinburghNLP/code-docstring-corpus#12
TEST_F(LineReaderTest, OnlyLineFeedsEndLines) {
  for (const std::string separator :
       {"\xE2\x80\xA8", "\xE2\x80\xA9", "\xC2\x85", "\x0B", "\x0C", "\x1C", "\x1D", "\x1E"})
    EXPECT_THAT(lines_of("a" + separator + "b\nc\n"), ElementsAre("a" + separator + "b", "c"));
  EXPECT_THAT(lines_of("a\rb\nc\n"), ElementsAre("a\rb", "c"));
  EXPECT_THAT(lines_of("a\0b\n"sv), ElementsAre(std::string("a\0b", 3)));
}

// singnet/language-learning#231; TurkuNLP/Finnish-dep-parser#5
TEST_F(LineReaderTest, DropsByteOrderMarkAndCarriageReturns) {
  EXPECT_THAT(lines_of("\xEF\xBB\xBF"
                       "a\r\nb\r\n"),
              ElementsAre("a", "b"));
  EXPECT_THAT(lines_of("a\nb"), ElementsAre("a", "b"));
  EXPECT_THAT(lines_of("a\tb\n"), ElementsAre("a\tb"));
  EXPECT_THAT(lines_of("a\r"), ElementsAre("a"));
  EXPECT_THAT(lines_of(""), ElementsAre());
  EXPECT_THAT(lines_of("\xEF\xBB\xBF"), ElementsAre());
  EXPECT_THAT(lines_of("\n\n"), ElementsAre("", ""));
  EXPECT_THAT(lines_of("\n\r\nx"), ElementsAre("", "", "x"));
}

TEST_F(LineReaderTest, RefusesOtherEncodingsAndLineEnds) {
  EXPECT_THAT(error_for("\xFF\xFE"
                        "a\0\n\0"sv),
              HasSubstr("is UTF-16 (by its byte order mark), not UTF-8; convert it: iconv"));
  EXPECT_THAT(error_for("\xFE\xFF\0a"sv), HasSubstr("UTF-16"));
  EXPECT_THAT(error_for("\xFF\xFE\0\0a\0\0\0"sv), HasSubstr("UTF-32"));
  EXPECT_THAT(error_for("\0\0\xFE\xFF\0\0\0a"sv), HasSubstr("UTF-32"));
  EXPECT_THAT(error_for("a\rb\rc\r"), HasSubstr("end in CR alone, got 3 CR and no LF"));
  EXPECT_THAT(error_for("a\rb"), HasSubstr("got 1 CR and no LF"));
}

TEST_F(LineReaderTest, TellsOffsets) {
  LineReader reader(folder_.write("text",
                                  "\xEF\xBB\xBF"
                                  "ab\r\n\nc"));
  std::vector<int64_t> offsets;
  while (reader.next()) offsets.push_back(reader.offset());
  EXPECT_THAT(offsets, ElementsAre(3, 7, 8));
}

TEST_F(LineReaderTest, ReadsGzipOfOneOrMoreMembers) {
  EXPECT_THAT(lines_of(gzip("a\r\nb")), ElementsAre("a", "b"));
  EXPECT_THAT(lines_of(gzip("a\nb") + gzip("") + gzip("c\n")), ElementsAre("a", "bc"));
  EXPECT_THAT(lines_of(gzip("")), ElementsAre());
  EXPECT_THAT(error_for(gzip("\xFF\xFE"
                             "a")),
              HasSubstr("UTF-16"));
  EXPECT_THAT(lines_of("\x1f"), ElementsAre("\x1f"));  // one byte is no gzip mark
}

TEST_F(LineReaderTest, RefusesDamagedGzip) {
  const std::string packed = gzip("some text\nof two lines\n");
  for (size_t size = 2; size < packed.size(); ++size)
    EXPECT_THAT(error_for(packed.substr(0, size)), HasSubstr("end too early")) << size;
  std::string flipped = packed;
  flipped[packed.size() - 6] = static_cast<char>(flipped[packed.size() - 6] ^ 1);  // of the CRC-32
  EXPECT_THAT(error_for(flipped), HasSubstr("are damaged (incorrect data check)"));
  EXPECT_THAT(error_for(packed + "more\n"), HasSubstr("bytes follow the end of the gzip data"));
  EXPECT_THAT(error_for(packed + "m"), HasSubstr("bytes follow the end of the gzip data"));
}

TEST_F(LineReaderTest, RefusesWhatCannotBeRead) {
  EXPECT_THAT(test::error_of([&] { LineReader(folder_.file("missing")); }),
              HasSubstr("missing: No such file or directory"));
  EXPECT_THAT(test::error_of([&] { LineReader(folder_.path().string()); }),
              HasSubstr("Is a directory"));
}

// Lines around the sizes of the buffers, plain and packed.
TEST_F(LineReaderTest, KeepsLinesAcrossBuffers) {
  std::string text;
  std::vector<std::string> expected;
  for (const size_t size : {65535, 1, 65536, 0, 65537, 131072, 3, 200000, 65534}) {
    expected.emplace_back(size, static_cast<char>('a' + expected.size()));
    text += expected.back() + "\n";
  }
  EXPECT_EQ(lines_of(text), expected);
  EXPECT_EQ(lines_of(gzip(text)), expected);
}

// A packed 100 MB file of a million lines, and the same as one line. The time limit of the test run
// catches a reader that moves or scans the rest of its text for every line.
TEST_F(LineReaderTest, ReadsBigFilesInLinearTime) {
  constexpr size_t kSize = 100'000'000;
  std::string text;
  text.reserve(kSize);
  while (text.size() < kSize)
    text +=
        "a line of text with one hundred bytes, as there are many in a "
        "corpus for translation, long or short\n";
  const auto count = [&](const std::string& bytes) {
    LineReader reader(folder_.write("big.gz", gzip(bytes)));
    int64_t size = 0;
    while (reader.next()) size += static_cast<int64_t>(reader.line().size()) + 1;
    return std::pair(reader.number(), size);
  };
  const auto [lines, size] = count(text);
  EXPECT_EQ(size, static_cast<int64_t>(text.size()));
  EXPECT_EQ(lines, std::count(text.begin(), text.end(), '\n'));
  std::replace(text.begin(), text.end(), '\n', ' ');
  EXPECT_EQ(count(text), std::pair(int64_t{1}, static_cast<int64_t>(text.size()) + 1));
}

}  // namespace
}  // namespace gs
