#include "framework/io/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "framework/core/error.h"
#include "tests/io/example_checkpoint.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::example_checkpoint;
using testing::HasSubstr;

TEST(Checkpoint, ComesBackBitForBit) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("step_900.h5");
  save_checkpoint(path, example_checkpoint());
  test::expect_same(example_checkpoint(), load_checkpoint(path));
  const auto training = load_training_values(path);
  EXPECT_EQ(std::get<int64_t>(training.at("step")), 900);
  EXPECT_EQ(std::get<double>(training.at("learning_rate")), 0.1 + 0.2);
  EXPECT_EQ(training.size(), 6U);
  Checkpoint of_model = example_checkpoint();
  of_model.optimizer.clear();
  of_model.training.clear();
  test::expect_same(of_model, load_model_checkpoint(path));
}

TEST(Checkpoint, OfNothingComesBack) {
  const test::TemporaryDirectory folder;
  save_checkpoint(folder.file("empty.h5"), Checkpoint());
  test::expect_same(Checkpoint(), load_checkpoint(folder.file("empty.h5")));
}

TEST(Checkpoint, SameContentsGiveTheSameBytes) {
  const test::TemporaryDirectory folder;
  save_checkpoint(folder.file("a.h5"), example_checkpoint());
  save_checkpoint(folder.file("b.h5"), load_checkpoint(folder.file("a.h5")));
  EXPECT_EQ(test::read_file(folder.file("a.h5")), test::read_file(folder.file("b.h5")));
}

TEST(Checkpoint, HoldsManyNamesAndMegabytes) {
  const test::TemporaryDirectory folder;
  Checkpoint checkpoint;
  // Attributes of HDF5 end at 64 KiB: keras-team/keras#6766
  for (int i = 0; i < 3000; ++i) {
    const std::string name = fmt::format("layers/{}/{}/weight", i, std::string(100, 'n'));
    checkpoint.parameters[name] = Array::full({2}, i, kFloat32);
    checkpoint.config[fmt::format("option_{}", i)] = std::to_string(i);
  }
  checkpoint.parameters["big"] = Array::full({3, 1 << 20}, 0.5, kFloat32);
  checkpoint.tokenizer["vocabulary"] = std::string(5 << 20, '\0') + "end";
  checkpoint.config["notes"] = std::string(200000, 'x');
  checkpoint.training["position"] = std::string("a\0b\0", 4);
  const std::string path = folder.file("big.h5");
  save_checkpoint(path, checkpoint);
  test::expect_same(checkpoint, load_checkpoint(path));
}

TEST(Checkpoint, RefusesWhatCannotBeSavedAndLeavesTheOldFile) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("a.h5");
  save_checkpoint(path, example_checkpoint());
  const std::string before = test::read_file(path);
  const auto error_with = [&](auto change) {
    Checkpoint checkpoint = example_checkpoint();
    change(checkpoint);
    return test::error_of([&] { save_checkpoint(path, checkpoint); });
  };
  const Array one = Array::of<float>({1}, {1});
  EXPECT_EQ(error_with([&](Checkpoint& c) { c.parameters["lost"] = Array(); }),
            "save: " + path + ": model/lost has no value; give it one first");
  EXPECT_EQ(error_with([&](Checkpoint& c) { c.ties["x"] = "y"; }),
            "save: " + path + ": x is tied to y, which is missing");
  EXPECT_EQ(error_with([&](Checkpoint& c) { c.ties["half"] = "scalar"; }),
            "save: " + path + ": half is both a parameter and a tie");
  EXPECT_THAT(error_with([&](Checkpoint& c) { c.parameters["half/inner"] = one; }),
              HasSubstr("model/half/inner cannot be written"));
  for (const std::string& bad :
       {std::string(), std::string("/a"), std::string("a//b"), std::string("a/"),
        std::string("a/./b"), std::string("."), std::string("a\0b", 3)}) {
    EXPECT_THAT(error_with([&](Checkpoint& c) { c.optimizer[bad] = one; }), HasSubstr("bad name"));
    EXPECT_THAT(error_with([&](Checkpoint& c) { c.config[bad] = "1"; }), HasSubstr("bad name"));
  }
  EXPECT_EQ(test::read_file(path), before);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(CompareNames, ListsAllDifferencesAtOnce) {
  // pytorch/pytorch#9530, keras-team/keras#21404
  const Array found = Array::of<float>({1, 4}, {1, 2, 3, 4});
  const ExpectedNames expected = {
      {"a", {{2}, kFloat32}}, {"b", {{2}, kFloat32}}, {"w", {{1, 4}, kFloat32}}};
  EXPECT_EQ(test::error_of([&] {
              check_names(expected, {{"c", found}, {"w", found}}, "run/step_900.h5");
            }),
            "load: 2 names missing (a, b), 1 unexpected (c) in run/step_900.h5");
  EXPECT_EQ(compare_names(expected, {{"c", found}, {"w", found}}).matched, 1);
  EXPECT_NO_THROW(check_names({{"w", {{1, 4}, kFloat32}}}, {{"w", found}}, "x.h5"));
  EXPECT_NO_THROW(check_names({}, {}, "x.h5"));
  EXPECT_EQ(test::error_of([&] {
              check_names({}, {{"w", found}}, "x.h5");
            }),
            "load: 1 name unexpected (w) in x.h5");
}

TEST(CompareNames, RefusesShapesThatBroadcast) {
  // pytorch/pytorch#8282
  const std::map<std::string, Array> found = {{"a", Array::of<float>({1, 4}, {1, 2, 3, 4})},
                                              {"b", Array::of<float>({}, {1})},
                                              {"c", Array::of<float>({4}, {1, 2, 3, 4})}};
  EXPECT_EQ(test::error_of([&] {
              check_names(
                  {{"a", {{3, 4}, kFloat32}}, {"b", {{4}, kFloat32}}, {"c", {{4}, kFloat64}}},
                  found, "x.h5");
            }),
            "load: 3 names misshapen (a is [1, 4] float32, not [3, 4] float32, b is [] float32, "
            "not [4] float32, c is [4] float32, not [4] float64) in x.h5");
}

TEST(CompareNames, CutsLongLists) {
  ExpectedNames expected;
  for (int i = 10; i < 40; ++i) expected[fmt::format("n{}", i)] = {{1}, kFloat32};
  EXPECT_EQ(test::error_of([&] { check_names(expected, {}, "x.h5"); }),
            "load: 30 names missing (n10, n11, n12, n13, n14, n15, n16, n17, n18, n19, and 20 "
            "more) in x.h5");
}

}  // namespace
}  // namespace gs
