#include "framework/io/checkpoint_average.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/io/example_checkpoint.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::bfloat16_of;
using test::error_of;
using test::expect_same_bits;

class CheckpointAverage : public testing::Test {
 protected:
  std::string save(const std::string& name, const Checkpoint& checkpoint) const {
    const std::string path = folder_.file(name);
    save_checkpoint(path, checkpoint);
    return path;
  }

  test::TemporaryDirectory folder_;
};

Checkpoint with_weight(const Array& weight) {
  Checkpoint checkpoint;
  checkpoint.parameters["w"] = weight;
  return checkpoint;
}

// OpenPipe/ART#117, huggingface/transformers#11748
TEST_F(CheckpointAverage, IsTheMean) {
  std::vector<std::string> paths;
  for (const std::vector<float>& values : {std::vector<float>{1, 2}, {3, 6}, {5, 1}})
    paths.push_back(save("step_" + std::to_string(paths.size() + 1) + ".h5",
                         with_weight(Array::of<float>({2}, values))));
  const Checkpoint average = average_checkpoints(paths);
  EXPECT_EQ(average.parameters.at("w").values<float>(), (std::vector<float>{3, 3}));
  EXPECT_EQ(average.parameters.at("w").dtype(), kFloat32);
  EXPECT_EQ(std::get<std::string>(average.training.at("averaged_files")),
            "step_1.h5\nstep_2.h5\nstep_3.h5");
}

// In float32 the small terms would vanish beside the large one.
TEST_F(CheckpointAverage, IsSummedInDoublePrecision) {
  std::vector<std::string> paths{save("0", with_weight(Array::of<float>({1}, {16777216})))};
  for (int i = 1; i < 8; ++i)
    paths.push_back(save(std::to_string(i), with_weight(Array::of<float>({1}, {1}))));
  const Checkpoint average = average_checkpoints(paths);
  EXPECT_EQ(average.parameters.at("w").values<float>()[0], (16777216.0F + 8) / 8);  // 2097152.875
}

TEST_F(CheckpointAverage, OfOneFileIsThatFile) {
  const Checkpoint one = test::example_checkpoint(3);
  const Checkpoint average = average_checkpoints({save("step_3.h5", one)});
  test::expect_same(average.parameters, one.parameters);
  EXPECT_EQ(average.ties, one.ties);
  EXPECT_EQ(average.config, one.config);
  EXPECT_EQ(average.tokenizer, one.tokenizer);
  EXPECT_TRUE(average.optimizer.empty());
  EXPECT_EQ(average.training,
            (std::map<std::string, TrainingValue>{{"averaged_files", std::string("step_3.h5")},
                                                  {"step", int64_t{3}}}));
}

// Tied parameters count once, and each keeps its type: what does not float must be equal.
TEST_F(CheckpointAverage, KeepsTiesTypesAndTheLastFilesOptions) {
  Checkpoint a = test::example_checkpoint(1), b = test::example_checkpoint(2);
  b.parameters["scalar"] = Array::of<double>({}, {0.3});
  a.config["options/steps"] = "10";
  b.config["model/newer"] = "1";  // the run went on with a newer version
  b.config["options/steps"] = "20";
  const std::string path = folder_.file("average.h5");
  save_checkpoint(path, average_checkpoints({save("a.h5", a), save("b.h5", b)}));
  const Checkpoint average = load_checkpoint(path);
  EXPECT_EQ(average.ties, a.ties);
  EXPECT_EQ(average.config, b.config);
  EXPECT_EQ(std::get<int64_t>(average.training.at("step")), 2);
  std::vector<float> weight = a.parameters.at("embedding/weight").values<float>();
  for (float& value : weight) value += 0.5F;
  EXPECT_EQ(average.parameters.at("embedding/weight").values<float>(), weight);
  EXPECT_EQ(average.parameters.at("scalar").values<double>()[0], (0.1 + 0.3) / 2);
  for (const char* name : {"half", "none", "table", "encoder/layers/10/mask"})
    expect_same_bits(average.parameters.at(name), a.parameters.at(name), name);
}

TEST_F(CheckpointAverage, ListsAllDifferencesAtOnce) {
  const Checkpoint first = test::example_checkpoint();
  Checkpoint b = first, c = first;
  b.parameters.erase("scalar");
  b.parameters["more"] = Array::of<float>({1}, {1});
  b.parameters["none"] = Array::empty({5, 0}, kFloat32);
  b.config["d_model"] = "256";
  b.config.erase("empty");
  b.tokenizer["subwords"] += "x";
  c.ties.clear();
  c.parameters["half"] = bfloat16_of({2, 2}, {0x3F80, 0xC020, 0x0001, 0x7F80});
  const std::string a_path = save("a.h5", first), b_path = save("b.h5", b),
                    c_path = save("c.h5", c);
  EXPECT_EQ(error_of([&] {
              average_checkpoints({a_path, b_path, c_path});
            }),
            "average: other models than in " + a_path + ": " + b_path +
                " (1 name missing (scalar), 1 unexpected (more), 1 misshapen (none is [5, 0] "
                "float32, not [0, 5] float32), config d_model is '256', not '512', the tokenizer's "
                "subwords is another one); " +
                c_path +
                " (tie output/weight is missing, not 'embedding/weight', half, which is bfloat16, "
                "has other values); average files of one run");
}

TEST_F(CheckpointAverage, RefusesWhatCannotBeMeant) {
  EXPECT_EQ(error_of([] { average_checkpoints({}); }),
            "average: no checkpoint is given; name one or more");
  const std::string a = save("a.h5", test::example_checkpoint()), link = folder_.file("best.h5");
  std::filesystem::create_hard_link(a, link);
  EXPECT_EQ(error_of([&] {
              average_checkpoints({a, link});
            }),
            "average: " + a + " and " + link + " are the same file; name it once");
  EXPECT_EQ(error_of([&] {
              average_checkpoints({a, a});
            }),
            "average: " + a + " and " + a + " are the same file; name it once");
  EXPECT_THAT(error_of([&] {
                average_checkpoints({a, folder_.file("none.h5")});
              }),
              testing::HasSubstr("none.h5"));
  EXPECT_THAT(error_of([&] {
                average_checkpoints({folder_.write("text", "x"), a});
              }),
              testing::HasSubstr("is not a checkpoint"));
}

}  // namespace
}  // namespace gs
