#include "framework/io/module_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/nn/linear.h"
#include "tests/support/devices.h"
#include "tests/support/numbers.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;
using test::random_tensor;
using testing::ElementsAre;
using testing::Key;
using testing::Pair;

struct Block : nn::Module {
  Block()
      : scale(*this, "scale", random_tensor<float>({4}, 1)),
        table(*this, "table", random_tensor<float>({3, 4}, 2)) {}
  nn::Parameter scale, table;
};

struct Model : nn::Module {
  nn::Child<nn::Linear> first{*this, "first", 2, 3};
  nn::Child<Block> block{*this, "block"};
};

std::map<std::string, std::vector<double>> values_of(const nn::Module& module) {
  std::map<std::string, std::vector<double>> values;
  for (const auto& named : module.named_parameters())
    values[named.path] = named.parameter->tensor().values<double>();
  return values;
}

Checkpoint stored(const nn::Module& module) {
  Checkpoint checkpoint;
  store_parameters(module, checkpoint);
  return checkpoint;
}

Array numbers(const Shape& shape) { return random_tensor<float>(shape, 9).value(); }

TEST(ModuleCheckpoint, GoesThroughAFileToTheLastBit) {
  const test::TemporaryDirectory folder;
  const Model before;
  const std::string path = folder.file("model.h5");
  save_checkpoint(path, stored(before));
  Model after;
  ASSERT_NE(values_of(after), values_of(before));  // random weights
  const Tensor weight = after.first->weight;
  load_parameters(after, load_checkpoint(path), path);
  EXPECT_EQ(values_of(after), values_of(before));
  // The parameters are the same ones, for optimizers that hold them.
  EXPECT_TRUE(weight.shares_storage(after.first->weight));
  EXPECT_TRUE(after.first->weight->needs_grad());
}

using ModuleCheckpointOnCuda = test::CudaTest;

TEST_F(ModuleCheckpointOnCuda, MovesBetweenDevicesToTheLastBit) {
  const test::TemporaryDirectory folder;
  for (const auto& [from, to] : {std::pair{Device::cpu(), Device::cuda()},
                                 {Device::cuda(), Device::cpu()},
                                 {Device::cuda(), Device::cuda()}}) {
    const std::string path = folder.file(from.text() + to.text());
    Model before, after;
    before.to(from);
    after.to(to);
    save_model(path, before);
    load_model(path, after);
    EXPECT_EQ(values_of(after), values_of(before));
    EXPECT_EQ(after.first->weight->device(), to);
    EXPECT_TRUE(after.first->weight->needs_grad());
    EXPECT_EQ(load_checkpoint(path).parameters.at("first/weight").device(), Device::cpu());
    EXPECT_EQ(load_matching_parameters(after, stored(before), path).matched, 4);
  }
}

TEST(ModuleCheckpoint, PathsAreTheNames) {
  const Model model;
  EXPECT_THAT(stored(model).parameters, ElementsAre(Key("block/scale"), Key("block/table"),
                                                    Key("first/bias"), Key("first/weight")));
}

// All that is wrong in one message, and nothing is changed.
// pytorch/pytorch#9530, keras-team/keras#9683
TEST(ModuleCheckpoint, ListsAllDifferencesAtOnce) {
  Model model;
  const auto before = values_of(model);
  Checkpoint checkpoint = stored(Model());
  checkpoint.parameters.erase("first/bias");
  checkpoint.parameters.erase("block/scale");
  checkpoint.parameters["block/gain"] = numbers({4});
  checkpoint.parameters["first/weight"] = numbers({2, 3});
  EXPECT_EQ(error_of([&] { load_parameters(model, checkpoint, "run.h5"); }),
            "load: 2 names missing (block/scale, first/bias), 1 unexpected (block/gain), "
            "1 misshapen (first/weight is [2, 3] float32, not [3, 2] float32) in run.h5");
  EXPECT_EQ(values_of(model), before);
}

// keras-team/keras#21404
TEST(ModuleCheckpoint, APrefixOnAllNamesMatchesNothing) {
  Model model;
  const auto before = values_of(model);
  Checkpoint checkpoint;
  for (const auto& [name, array] : stored(Model()).parameters)
    checkpoint.parameters["module." + name] = array;
  EXPECT_EQ(error_of([&] { load_parameters(model, checkpoint, "x.h5"); }),
            "load: 4 names missing (block/scale, block/table, first/bias, first/weight), "
            "4 unexpected (module.block/scale, module.block/table, module.first/bias, "
            "module.first/weight) in x.h5");
  EXPECT_EQ(error_of([&] { load_parameters(model, Checkpoint(), "x.h5"); }),
            "load: 4 names missing (block/scale, block/table, first/bias, first/weight) in x.h5");
  EXPECT_EQ(values_of(model), before);
}

// pytorch/pytorch#40859, keras-team/keras#21404: what was not loaded was not told.
TEST(ModuleCheckpoint, LoadsWhatMatchesAndTellsTheRest) {
  Model model;
  const auto before = values_of(model);
  Checkpoint checkpoint = stored(Model());
  const auto weight = checkpoint.parameters.at("first/weight").values<double>();
  const auto table = checkpoint.parameters.at("block/table").values<double>();
  checkpoint.parameters.erase("first/bias");
  checkpoint.parameters["block/scale"] = numbers({1, 4});
  checkpoint.parameters["extra"] = numbers({2});
  const NameComparison comparison = load_matching_parameters(model, checkpoint, "x.h5");
  EXPECT_EQ(comparison.matched, 2);
  EXPECT_THAT(comparison.missing, ElementsAre("first/bias"));
  EXPECT_THAT(comparison.unexpected, ElementsAre("extra"));
  EXPECT_THAT(comparison.misshapen, ElementsAre("block/scale is [1, 4] float32, not [4] float32"));
  const auto after = values_of(model);
  EXPECT_EQ(after.at("first/weight"), weight);
  EXPECT_EQ(after.at("block/table"), table);
  EXPECT_EQ(after.at("first/bias"), before.at("first/bias"));
  EXPECT_EQ(after.at("block/scale"), before.at("block/scale"));
}

TEST(ModuleCheckpoint, LoadingNothingIsAnError) {
  Model model;
  const auto before = values_of(model);
  Checkpoint checkpoint;
  for (const auto& [name, array] : stored(Block()).parameters)
    checkpoint.parameters["module." + name] = array;
  EXPECT_EQ(error_of([&] { load_matching_parameters(model, checkpoint, "x.h5"); }),
            "load: nothing in x.h5 matches the model: 4 names missing (block/scale, block/table, "
            "first/bias, first/weight), 2 unexpected (module.scale, module.table)");
  EXPECT_THAT(error_of([&] { load_matching_parameters(model, Checkpoint(), "x.h5"); }),
              testing::HasSubstr("nothing in x.h5 matches"));
  EXPECT_EQ(values_of(model), before);
}

// Shapes that would broadcast, or have as many elements, are others all the same.
// pytorch/pytorch#8282
TEST(ModuleCheckpoint, NeverBroadcasts) {
  Block block;
  const auto before = values_of(block);
  Checkpoint checkpoint;
  checkpoint.parameters["table"] = numbers({1, 4});
  checkpoint.parameters["scale"] = numbers({});
  EXPECT_EQ(error_of([&] { load_parameters(block, checkpoint, "x.h5"); }),
            "load: 2 names misshapen (scale is [] float32, not [4] float32, "
            "table is [1, 4] float32, not [3, 4] float32) in x.h5");
  checkpoint.parameters["table"] = numbers({4, 3});
  checkpoint.parameters["scale"] = numbers({4}).to(kFloat64);
  EXPECT_EQ(error_of([&] { load_parameters(block, checkpoint, "x.h5"); }),
            "load: 2 names misshapen (scale is [4] float64, not [4] float32, "
            "table is [4, 3] float32, not [3, 4] float32) in x.h5");
  EXPECT_EQ(values_of(block), before);
}

struct Tied : nn::Module {
  explicit Tied(bool tie) {
    if (tie) second->weight.tie(first->weight);
  }
  nn::Child<nn::Linear> first{*this, "first", 3, 3, nn::Linear::Config{false}};
  nn::Child<nn::Linear> second{*this, "second", 3, 3, nn::Linear::Config{false}};
};

TEST(ModuleCheckpoint, RecordsTiedParametersOnce) {
  const test::TemporaryDirectory folder;
  const Tied before(true);
  const Checkpoint checkpoint = stored(before);
  EXPECT_THAT(checkpoint.parameters, ElementsAre(Key("first/weight")));
  EXPECT_THAT(checkpoint.ties, ElementsAre(Pair("second/weight", "first/weight")));
  const std::string path = folder.file("tied.h5");
  save_checkpoint(path, checkpoint);
  const Checkpoint loaded = load_checkpoint(path);
  EXPECT_THAT(loaded.parameters, ElementsAre(Key("first/weight")));
  EXPECT_EQ(loaded.ties, checkpoint.ties);
  Tied after(true);
  load_parameters(after, loaded, path);
  EXPECT_EQ(values_of(after), values_of(before));
  EXPECT_TRUE(after.second->weight->shares_storage(after.first->weight));

  Tied apart(false);
  EXPECT_EQ(error_of([&] { load_parameters(apart, loaded, "t.h5"); }),
            "load: 1 name missing (second/weight) in t.h5");
  EXPECT_EQ(error_of([&] { load_parameters(after, stored(Tied(false)), "t.h5"); }),
            "load: 1 name unexpected (second/weight) in t.h5");
}

}  // namespace
}  // namespace gs
