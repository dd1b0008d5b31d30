#include "framework/text/byte_pairs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kMerges =
    "l o\nlo w\ne r</w>\nn e\nw e\nlow er</w>\nlow e\nlowe s\nä ß</w>\nlo w\na a\n- @</w>\n"
    "@ @</w>\nb @@</w>\na a</w>\nx y</w>\n";

BytePairs pairs() { return BytePairs::parse("#version: 0.2\n" + kMerges, "codes"); }

// All pieces below are those of subword-nmt's apply-bpe 0.3.8.
TEST(BytePairs, SplitsAsSubwordNmtDoes) {
  const BytePairs p = pairs();
  EXPECT_EQ(p.apply("low lower lowest newer wer"), "lo@@ w lower lowes@@ t ne@@ w@@ er w@@ er");
  EXPECT_EQ(p.apply("aaa aaaa aaaaa aaaaaa"), "aa@@ a aa@@ aa aa@@ aa@@ a aa@@ aa@@ aa");
  EXPECT_EQ(p.apply("xy xyz xxy </w> x</w>"),
            "xy x@@ y@@ z x@@ xy <@@ /@@ w@@ > x@@ <@@ /@@ w@@ >");
  EXPECT_EQ(p.apply("lo w l o"), "l@@ o w l o");
  EXPECT_EQ(p.apply("zzlow lowlow lowerlower"), "z@@ z@@ lo@@ w low@@ lo@@ w lowe@@ r@@ lower");
  EXPECT_EQ(p.apply(""), "");
  EXPECT_EQ(p.merges(), 15);  // one stands there twice
}

TEST(BytePairs, SplitsAtCodePoints) {
  EXPECT_EQ(pairs().apply("äß ßäß ä 狗 low狗"), "äß ß@@ äß ä 狗 low@@ 狗");
  EXPECT_EQ(pairs().apply("e\u0301r"), "e@@ \u0301@@ r");  // not composed
}

// Version 0.1, where "</w>" is a symbol of its own; its files may have no line that says so.
TEST(BytePairs, ReadsTheOlderVersion) {
  const std::string merges =
      "l o\nlo w\nr </w>\ne r</w>\nn e\nlow er</w>\na a\na </w>\nw </w>\n@ @\n@@ </w>\n";
  for (const char* version : {"", "#version: 0.1\n"}) {
    const BytePairs p = BytePairs::parse(version + merges, "codes");
    EXPECT_EQ(p.apply("low lower lowest newer wer"),
              "low lower low@@ e@@ s@@ t ne@@ w@@ er w@@ er");
    EXPECT_EQ(p.apply("aaa aaaa aaaaa aaaaaa"), "aa@@ a aa@@ aa aa@@ aa@@ a aa@@ aa@@ aa");
    EXPECT_EQ(p.apply("äß ä lo w l o"), "ä@@ ß ä lo w l o");
    EXPECT_EQ(p.apply("zzlow lowlow lowerlower"), "z@@ z@@ low low@@ low low@@ e@@ r@@ lower");
    EXPECT_EQ(p.apply("@@@ -@"), "@@@@ @ -@@ @");
    EXPECT_EQ(p, BytePairs::parse(p.codes(), "codes"));
  }
}

// Where "@ @</w>" is a merge, subword-nmt writes "@@", and the word is lost on the way back.
TEST(BytePairs, WordsThatEndInTheSeparatorSurvive) {
  const BytePairs p = pairs();
  EXPECT_EQ(p.apply("@@"), "@@@ @");
  EXPECT_EQ(p.apply("b@@ c"), "b@@@ @ c");
  EXPECT_EQ(p.apply("@ @@@ -@"), "@ @@@ @@@ @ -@");
  for (const char* line : {"@@", "a @@ b", "b@@ c", "@@@@ @@@ @ @@", "x@@y @@z", "@@ @@"})
    EXPECT_EQ(BytePairs::join(p.apply(line)), line);
}

TEST(BytePairs, JoinIsTheWayBack) {
  const BytePairs p = pairs();
  for (const char* line : {"low lower lowest newer wer", "äß ßäß ä 狗 low狗", "", "a",
                           "</w> <unk> <s> #version: 0.2", "e\u0301r \u200d \u0301"}) {
    EXPECT_EQ(BytePairs::join(p.apply(line)), line);
  }
  EXPECT_EQ(BytePairs::join("lo@@ w  a@@"), "low a");  // a translation that was cut
  EXPECT_EQ(BytePairs::join(""), "");
  EXPECT_EQ(BytePairs::join("@@ a @@ b"), "a b");
}

// rsennrich/subword-nmt#41
TEST(BytePairs, SpacesAreThoseOfAllLines) {
  const BytePairs p = pairs();
  EXPECT_EQ(p.apply("  low  .\t\u00a0x \r\n"), "lo@@ w . x");
  EXPECT_EQ(p.apply(" \n"), "");
  EXPECT_EQ(p.apply("lo\u200bw"), "lo@@ w");
}

TEST(BytePairs, SplitsManyLinesAsEachAlone) {
  const BytePairs p = pairs();
  const std::vector<std::string> lines{"low low", "", "lower low", "low"};
  EXPECT_THAT(p.apply_lines(lines), ElementsAre("lo@@ w lo@@ w", "", "lower lo@@ w", "lo@@ w"));
}

// rsennrich/subword-nmt#42
TEST(BytePairs, RefusesLinesThatAreNotUtf8) {
  EXPECT_EQ(error_of([] {
              pairs().apply(
                  "a\xff"
                  "b");
            }),
            "byte_pairs: the line is not UTF-8, got byte 0xff at offset 1; convert it to UTF-8");
  EXPECT_THAT(error_of([] { pairs().apply("ab\xe2\x82"); }), HasSubstr("offset 2"));
}

TEST(BytePairs, ReadsFilesAsTheyCome) {
  const std::string version = "#version: 0.2\n";
  const BytePairs expected = BytePairs::parse(version + "a b\nab c</w>\n", "codes");
  for (const char* merges : {"a b\nab c</w>", "a b\r\nab c</w>\r\n", "a b \n ab c</w>\n\n\n"})
    EXPECT_EQ(BytePairs::parse(version + merges, "codes"), expected) << merges;
  EXPECT_EQ(BytePairs::parse("\xEF\xBB\xBF" + version + "a b\nab c</w>", "codes"), expected);
  EXPECT_EQ(expected.codes(), version + "a b\nab c</w>\n");
  EXPECT_EQ(expected.apply("abc"), "abc");
}

TEST(BytePairs, RefusesWhatIsNoListOfMerges) {
  const auto error = [](const std::string& codes) {
    return error_of([&] { BytePairs::parse(codes, "my.codes"); });
  };
  EXPECT_EQ(
      error("#version: 0.2\na b\na b c\n"),
      "byte_pairs: my.codes:3 must hold two symbols with a space between, got 3; give a codes "
      "file of subword-nmt learn-bpe");
  EXPECT_THAT(error("a b\nab\n"), HasSubstr("my.codes:2 must hold two symbols"));
  EXPECT_THAT(error("a b\n\nc d\n"), HasSubstr("my.codes:2 must hold two symbols with a space "
                                               "between, got 0"));
  EXPECT_THAT(error("a\tb\n"), HasSubstr("got 1"));
  EXPECT_THAT(error("a  b\n"), HasSubstr("got 3"));
  EXPECT_EQ(error("#version: 0.3\na b\n"),
            "byte_pairs: my.codes:1 names no known version, got '#version: 0.3'; #version: 0.1 and "
            "0.2 are read");
  EXPECT_THAT(error("#version 0.2\na b\n"), HasSubstr("names no known version"));
  EXPECT_EQ(error(""),
            "byte_pairs: my.codes holds no merge; give a codes file of subword-nmt learn-bpe");
  EXPECT_THAT(error("#version: 0.2\n\n"), HasSubstr("holds no merge"));
  EXPECT_EQ(error("a b\nc \xc3\n"),
            "byte_pairs: my.codes:2 is not UTF-8, got a wrong byte at offset 2; convert it");
}

}  // namespace
}  // namespace gs
