#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>

#include "framework/core/error.h"
#include "framework/io/checkpoint.h"
#include "framework/io/hdf5_writer.h"
#include "framework/io/seal.h"
#include "tests/io/example_checkpoint.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::example_checkpoint;
using testing::HasSubstr;

class CheckpointDamage : public testing::Test {
 protected:
  // The error of loading these bytes: one line that names the file.
  std::string error_of(const std::string& bytes) const {
    folder_.write("bad.h5", bytes);
    const std::string error = test::error_of([&] { load_checkpoint(path_); });
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    EXPECT_THAT(error, testing::StartsWith("load: "));
    EXPECT_THAT(error, HasSubstr(path_));
    return error;
  }

  std::string saved(const Checkpoint& checkpoint) const {
    save_checkpoint(path_, checkpoint);
    return test::read_file(path_);
  }

  // A file with a right seal whose insides are written by `write`.
  std::string sealed(const std::function<void(Hdf5Writer&)>& write, int64_t version = 1) const {
    Hdf5Writer writer("test", kSealBytes);
    write(writer);
    return sealed(writer.finish(), version);
  }
  static std::string sealed(std::string_view contents, int64_t version = 1) {
    return Seal::of(version, contents).text() + std::string(contents);
  }

  test::TemporaryDirectory folder_;
  std::string path_ = folder_.file("bad.h5");
};

// h5py/h5py#1179, h5py/h5py#2250, keras-team/keras#6221
TEST_F(CheckpointDamage, EveryTruncationIsRefused) {
  const std::string whole = saved(example_checkpoint());
  const size_t size = whole.size();
  EXPECT_EQ(error_of(""), "load: " + path_ + " is empty, got 0 bytes; use another checkpoint");
  EXPECT_EQ(error_of(whole.substr(0, 96)),
            "load: " + path_ + " is truncated, got 96 bytes; use another checkpoint");
  EXPECT_EQ(error_of(whole.substr(0, size / 2)),
            fmt::format("load: {} is truncated, got {} of {} bytes; use another checkpoint", path_,
                        size / 2, size));
  std::vector<size_t> sizes = {1, 20, 21, 22, 511, 512, 513, 519, 520, 521, 608, size - 1};
  for (size_t length = 700; length < size; length += size / 60) sizes.push_back(length);
  for (const size_t length : sizes)
    EXPECT_THAT(error_of(whole.substr(0, length)), HasSubstr("is truncated")) << length;
  EXPECT_THAT(error_of(whole + "x"), HasSubstr("has bytes added"));
}

TEST_F(CheckpointDamage, EveryFlippedBitIsRefused) {
  const std::string whole = saved(example_checkpoint());
  std::vector<size_t> places;
  for (size_t i = 0; i < kSealBytes; ++i) places.push_back(i);
  for (size_t i = kSealBytes; i < whole.size(); i += whole.size() / 200) places.push_back(i);
  places.push_back(whole.size() - 1);
  for (const size_t place : places) {
    std::string flipped = whole;
    flipped[place] = static_cast<char>(flipped[place] ^ 1 << (place * 5 % 8));
    error_of(flipped);
  }
  folder_.write("bad.h5", whole);
  test::expect_same(example_checkpoint(), load_checkpoint(path_));
}

TEST_F(CheckpointDamage, SwappedAndZeroedPiecesAreRefused) {
  Checkpoint checkpoint;
  checkpoint.parameters["w"] = Array::of<float>({4}, {1, 2, 2, 1});
  const std::string whole = saved(checkpoint);
  const float values[] = {1, 2, 2, 1}, swapped[] = {2, 1, 1, 2};
  const size_t place =
      whole.find(std::string_view(reinterpret_cast<const char*>(values), sizeof values));
  ASSERT_NE(place, std::string::npos);
  std::string changed = whole;
  std::memcpy(changed.data() + place, swapped, sizeof swapped);
  EXPECT_EQ(error_of(changed), "load: " + path_ +
                                   " is damaged, its contents are not those that were saved; use "
                                   "another checkpoint");
  std::memset(changed.data() + place, 0, sizeof swapped);
  EXPECT_THAT(error_of(changed), HasSubstr("is damaged"));
}

TEST_F(CheckpointDamage, ForeignFilesAreRefused) {
  EXPECT_EQ(error_of("loss 3.2\n"),
            "load: " + path_ + " is not a checkpoint of Gradstone, or its first bytes are damaged");
  error_of(std::string(100000, '\0'));
  Hdf5Writer plain("test", 0);
  plain.array("model/w", Array::of<float>({1}, {1}));
  EXPECT_EQ(error_of(std::string(plain.finish())),
            "load: " + path_ + " is an HDF5 file, but not a checkpoint of Gradstone");
  EXPECT_THAT(error_of(sealed("not HDF5 at all")), HasSubstr("is not an HDF5 file"));
  const std::string inner = folder_.file("inner");
  std::filesystem::create_directory(inner);
  EXPECT_EQ(test::error_of([&] { load_checkpoint(inner); }),
            "load: " + inner + " is a folder; give the path of a checkpoint");
  EXPECT_EQ(test::error_of([&] { load_checkpoint(folder_.file("none.h5")); }),
            "load: cannot read " + folder_.file("none.h5") + ", No such file or directory");
  EXPECT_EQ(test::error_of([&] { load_checkpoint("/dev/zero"); }),
            "load: /dev/zero is not a regular file");
}

TEST_F(CheckpointDamage, MissingPartsAndOtherVersionsAreNamed) {
  const auto start = [](Hdf5Writer& file) {
    file.attribute("format", "gradstone checkpoint");
    file.attribute("format_version", 1);
    for (const char* group : {"model", "optimizer", "training", "config"}) file.group(group);
  };
  EXPECT_EQ(error_of(sealed(start)),
            "load: " + path_ + " has no group /tokenizer; is it a checkpoint?");
  EXPECT_EQ(error_of(sealed([](Hdf5Writer& file) { file.group("model"); })),
            "load: " + path_ + " has no attribute format");
  EXPECT_EQ(error_of(sealed([](Hdf5Writer& file) { file.attribute("format", "keras"); })),
            "load: " + path_ + " has the format \"keras\", not \"gradstone checkpoint\"");
  EXPECT_EQ(error_of(sealed(start, 2)),
            "load: " + path_ + " has format version 2, this program reads up to 1");
  EXPECT_THAT(error_of(sealed([&](Hdf5Writer& file) {
                start(file);
                file.group("tokenizer");
                file.link("model/a", "model/b");
              })),
              HasSubstr("a is tied to /model/b, which is no parameter"));
  EXPECT_THAT(error_of(sealed([&](Hdf5Writer& file) {
                start(file);
                file.group("tokenizer");
                file.integer("config/d_model", 512);
              })),
              HasSubstr("config/d_model is a number, not text"));
  EXPECT_THAT(error_of(sealed([&](Hdf5Writer& file) {
                start(file);
                file.group("tokenizer");
                file.bytes("model/w", "abc");
              })),
              HasSubstr("model/w has an element type that no array has"));
}

// Sizes that lie, in a file whose digest is right.
TEST_F(CheckpointDamage, ClaimedSizesAskForNoMemory) {
  constexpr uint64_t size = 7919;
  Checkpoint checkpoint;
  checkpoint.parameters["w"] = Array::zeros({static_cast<int64_t>(size)}, kFloat32);
  std::string contents = saved(checkpoint).substr(kSealBytes);
  const std::string_view written(reinterpret_cast<const char*>(&size), sizeof size);
  for (const uint64_t claimed : {uint64_t{1} << 40, uint64_t{1} << 62, ~uint64_t{0}, size + 1}) {
    std::string changed = contents;
    int changes = 0;
    for (size_t at = 0; (at = changed.find(written, at)) != std::string::npos; ++changes)
      std::memcpy(changed.data() + at, &claimed, sizeof claimed);
    ASSERT_GE(changes, 1);
    EXPECT_THAT(error_of(sealed(changed)), HasSubstr("model/w"));
  }
}

TEST_F(CheckpointDamage, BoolsAreZeroOrOne) {
  Checkpoint checkpoint;
  checkpoint.parameters["mask"] = Array::of<bool>({8}, {1, 0, 1, 1, 1, 0, 0, 1});
  std::string contents = saved(checkpoint).substr(kSealBytes);
  const size_t place = contents.find(std::string("\1\0\1\1\1\0\0\1", 8));
  ASSERT_NE(place, std::string::npos);
  contents[place] = 7;
  EXPECT_THAT(error_of(sealed(contents)), HasSubstr("model/mask holds 7, not a bool"));
}

}  // namespace
}  // namespace gs
