// tools/pytorch_checkpoint.py between checkpoints and state dicts of PyTorch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "framework/io/module_checkpoint.h"
#include "models/transformer.h"
#include "models/transformer_config.h"
#include "tests/examples/translation_programs.h"
#include "tests/support/fixture.h"
#include "tests/support/numbers.h"
#include "tests/support/paths.h"
#include "tests/support/python.h"

namespace gs {
namespace {

using test::CommandResult;
using test::Fixture;
using test::run_command;
using test::run_program;
using testing::HasSubstr;

const std::string kTools = test::source_directory() + "/tools";
const std::string kStateDicts = test::test_data("pytorch/");

class PytorchCheckpoint : public testing::Test {
 protected:
  static void SetUpTestSuite() { python_ = test::python_with("h5py, numpy"); }
  void SetUp() override {
    if (python_.empty()) GTEST_SKIP() << "h5py or NumPy is not installed";
  }

  static CommandResult convert(const std::string& arguments) {
    return run_command(python_ + " -B " + kTools + "/pytorch_checkpoint.py " + arguments);
  }
  void expect_converted(const std::string& arguments) const {
    const CommandResult result = convert(arguments);
    ASSERT_EQ(result.status, 0) << arguments << "\n" << result.output;
  }
  static void expect_refused(const std::string& arguments, const std::string& message) {
    const CommandResult result = convert(arguments);
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.output, "pytorch_checkpoint.py: " + message + "\n");
  }
  // Writes arrays of a state dict anew, after these lines of Python have changed them.
  std::string changed(const std::string& name, const std::string& lines) const {
    const std::string path = folder_.file("changed.safetensors");
    const std::string script =
        folder_.write("change.py", "import sys\nsys.path.insert(0, '" + kTools +
                                       "')\nimport numpy as np\nfrom exchange import safetensors\n"
                                       "arrays, _ = safetensors.read('" +
                                       kStateDicts + name + ".safetensors')\n" + lines +
                                       "\nsafetensors.write('" + path + "', arrays)\n");
    const CommandResult result = run_command(python_ + " -B " + script);
    EXPECT_EQ(result.status, 0) << result.output;
    return path;
  }

  static std::string python_;
  test::TemporaryDirectory folder_;
};
std::string PytorchCheckpoint::python_;

TransformerConfig config_of(const Fixture& fixture) {
  std::map<std::string, std::string> text = config_to_text({});
  for (auto& [name, value] : text) {
    if (name == "activation") {
      value = fixture.text("options/" + name);
    } else {
      const double number = fixture.number("options/" + name);
      const bool is_flag = value == "true" || value == "false";
      value = is_flag ? (number != 0 ? "true" : "false") : fmt::format("{}", number);
    }
  }
  return config_from_text(text);
}

// As tools take it: every field, as text.
std::string json_of(const TransformerConfig& config) {
  std::string json;
  for (const auto& [name, value] : config_to_text(config))
    json += fmt::format("{}\"{}\": \"{}\"", json.empty() ? "{" : ", ", name, value);
  return json + "}";
}

Sequences sentence(const Fixture& fixture, const std::string& path) {
  const std::vector<int64_t> tokens = fixture.integers(path);
  Sequences result;
  result.append(std::vector<int32_t>(tokens.begin(), tokens.end()));
  return result;
}

// PyTorch's own module and the model that is made of its state dict compute the same.
TEST_F(PytorchCheckpoint, LogitsOfAStateDictAreThoseOfPyTorch) {
  for (const Fixture& fixture : Fixture::load_all("state_dicts")) {
    SCOPED_TRACE(fixture.name());
    const TransformerConfig config = config_of(fixture);
    const std::string config_path = folder_.write("config.json", json_of(config));
    const std::string path = folder_.file("model.h5");
    expect_converted("import --state-dict " + kStateDicts + fixture.name() +
                     ".safetensors --config " + config_path + " --output " + path);
    Transformer model(config);
    load_model(path, model);
    model.evaluate();
    const NoGrad no_grad;
    for (const std::string number : {"/0", "/1", "/2"}) {
      const Tensor logits = model(sentence(fixture, "inputs/source" + number),
                                  sentence(fixture, "inputs/target" + number));
      test::expect_near(logits, fixture.array("logits" + number).values, 1e-5);
    }
    // And back: the same file, byte for byte, but for the configuration in its metadata.
    const std::string back = folder_.file("back.safetensors");
    expect_converted("export --layout torch --checkpoint " + path + " --output " + back);
    const std::string script = "import sys; sys.path.insert(0, \"" + kTools +
                               "\"); from exchange import safetensors as s; a, b = (s.read(p)[0] "
                               "for p in sys.argv[1:]); print(len(a), sorted(a) == sorted(b) and "
                               "all((a[n] == b[n]).all() for n in a))";
    EXPECT_THAT(run_command(python_ + " -B -c '" + script + "' " + back + " " + kStateDicts +
                            fixture.name() + ".safetensors")
                    .output,
                HasSubstr(" True\n"));
  }
}

void expect_equal(const Checkpoint& found, const Checkpoint& expected) {
  ASSERT_EQ(found.parameters.size(), expected.parameters.size());
  for (const auto& [name, values] : expected.parameters) {
    ASSERT_TRUE(found.parameters.contains(name)) << name;
    const Array& own = found.parameters.at(name);
    ASSERT_EQ(own.shape(), values.shape()) << name;
    EXPECT_EQ(own.values<float>(), values.values<float>()) << name;
  }
  EXPECT_EQ(found.ties, expected.ties);
  EXPECT_EQ(found.config, expected.config);
  EXPECT_EQ(found.tokenizer, expected.tokenizer);
}

TEST_F(PytorchCheckpoint, ThereAndBackIsTheSameModel) {
  const std::string input = folder_.write("in.txt", "the dog sleeps .\n\nthe cat sees the man .\n");
  for (const std::string options :
       {"", " --share-embeddings --output-bias --learned-positions --post-norm --activation gelu",
        " --untied-output --unscaled-embeddings --encoder-layers 2"}) {
    SCOPED_TRACE(options);
    const CommandResult trained =
        run_program("train_translation", "--output " + folder_.file("run") + test::kSmall +
                                             "--steps 30 --maximum-length 40" + options);
    ASSERT_EQ(trained.status, 0) << trained.output;
    const std::string model = folder_.file("run/best.h5");
    for (const std::string layout : {"gradstone", "torch"}) {
      const std::string state_dict = folder_.file("model.safetensors");
      const std::string back = folder_.file("back.h5");
      expect_converted("export --checkpoint " + model + " --layout " + layout + " --output " +
                       state_dict);
      expect_converted("import --state-dict " + state_dict + " --like " + model + " --output " +
                       back);
      expect_equal(load_checkpoint(back), load_model_checkpoint(model));
      const auto translated = [&](const std::string& path) {
        return run_program("translate", "--scores --model " + path + " --input " + input).output;
      };
      EXPECT_EQ(translated(back), translated(model));
      // The file tells its own configuration, too.
      expect_converted("import --state-dict " + state_dict + " --output " + back);
      EXPECT_EQ(load_checkpoint(back).ties, load_model_checkpoint(model).ties);
    }
    std::filesystem::remove_all(folder_.file("run"));
  }
}

TEST_F(PytorchCheckpoint, PickledStateDictsNeedPyTorch) {
  Transformer model({.source_vocabulary = 5, .target_vocabulary = 5, .width = 4, .heads = 2});
  Checkpoint checkpoint;
  store_parameters(model, checkpoint);
  for (const auto& [name, value] : config_to_text(model.config))
    checkpoint.config["model/" + name] = value;
  const std::string path = folder_.file("small.h5"), state_dict = folder_.file("small.pt");
  const std::string config = folder_.file("config.json"), back = folder_.file("back.h5");
  save_checkpoint(path, checkpoint);
  const std::string arguments =
      "export --checkpoint " + path + " --config " + config + " --output " + state_dict;
  if (run_command(python_ + " -c 'import torch'").status == 0) {
    expect_converted(arguments);
    expect_converted("import --config " + config + " --state-dict " + state_dict + " --output " +
                     back);
    expect_equal(load_checkpoint(back), checkpoint);
  } else {
    expect_refused(arguments,
                   state_dict + ": needs PyTorch; install it, or use a .safetensors file");
    EXPECT_FALSE(std::filesystem::exists(config));
  }
}

TEST_F(PytorchCheckpoint, ListsAllNamesThatDiffer) {
  const Fixture fixture = Fixture::load("state_dicts", "norm_first");
  const std::string config = folder_.write("config.json", json_of(config_of(fixture)));
  const std::string output = folder_.write("model.h5", "old");
  const std::string path =
      changed("norm_first",
              "del arrays['transformer.encoder.norm.bias']\n"
              "del arrays['transformer.decoder.layers.0.norm3.weight']\n"
              "arrays['head.bias'] = np.zeros(3, np.float32)\n"
              "name = 'transformer.encoder.layers.1.self_attn.in_proj_weight'\n"
              "arrays[name] = arrays[name][:24]");
  const std::string arguments =
      "import --state-dict " + path + " --config " + config + " --output " + output;
  expect_refused(
      arguments,
      "load: names differ: 2 missing (transformer.encoder.norm.bias, "
      "transformer.decoder.layers.0.norm3.weight), 1 unexpected (head.bias), 1 misshapen "
      "(transformer.encoder.layers.1.self_attn.in_proj_weight is [24, 12], not [36, 12]) in " +
          path);
  EXPECT_EQ(test::read_file(output), "old");
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    ++files;
  EXPECT_EQ(files, 4u) << "nothing is left behind";
}

TEST_F(PytorchCheckpoint, TakesOtherNamesAndLeavesSomeOut) {
  const Fixture fixture = Fixture::load("state_dicts", "norm_last");
  const std::string config = folder_.write("config.json", json_of(config_of(fixture)));
  const std::string path = changed(
      "norm_last",
      "arrays = {'module.' + n.replace('output', 'generator'): v for n, v in arrays.items()}\n"
      "arrays['module.positional.table'] = np.zeros((5, 8), np.float32)");
  const std::string output = folder_.file("model.h5"), plain = folder_.file("plain.h5");
  expect_converted("import --state-dict " + path + " --config " + config +
                   " --rename module.generator=output --rename module= --ignore module.positional"
                   " --output " +
                   output);
  expect_converted("import --state-dict " + kStateDicts + "norm_last.safetensors --config " +
                   config + " --output " + plain);
  expect_equal(load_checkpoint(output), load_checkpoint(plain));
  const std::string both = changed("norm_last", "arrays['table.weight'] = arrays['output.weight']");
  expect_refused("import --state-dict " + both + " --config " + config +
                     " --rename table=output --output " + output,
                 "load: " + both + ": two arrays are named output.weight once they are renamed");
}

TEST_F(PytorchCheckpoint, TiedNamesMayBeMissingButNotDiffer) {
  const Fixture fixture = Fixture::load("state_dicts", "norm_last");
  const std::string config = folder_.write("config.json", json_of(config_of(fixture)));
  const std::string output = folder_.file("model.h5"), plain = folder_.file("plain.h5");
  const std::string arguments = " --config " + config + " --output ";
  expect_converted("import --state-dict " + kStateDicts + "norm_last.safetensors" + arguments +
                   plain);
  expect_converted("import --state-dict " +
                   changed("norm_last",
                           "del arrays['output.weight'], "
                           "arrays['target_embedding.weight']") +
                   arguments + output);
  expect_equal(load_checkpoint(output), load_checkpoint(plain));
  const std::string path =
      changed("norm_last", "arrays['output.weight'] = arrays['output.weight'] * 2");
  expect_refused("import --state-dict " + path + arguments + output,
                 "load: " + path +
                     ": output.weight is tied to source_embedding/weight, but its values differ; "
                     "untie them in the configuration (share_embeddings, tie_output)");
}

TEST_F(PytorchCheckpoint, OtherElementTypesBecomeFloat32) {
  const Fixture fixture = Fixture::load("state_dicts", "norm_last");
  const std::string config = folder_.write("config.json", json_of(config_of(fixture)));
  const std::string output = folder_.file("model.h5"), plain = folder_.file("plain.h5");
  const std::string arguments = " --config " + config + " --output ";
  expect_converted("import --state-dict " + kStateDicts + "norm_last.safetensors" + arguments +
                   plain);
  expect_converted(
      "import --state-dict " +
      changed("norm_last", "arrays = {n: v.astype(np.float64) for n, v in arrays.items()}") +
      arguments + output);
  expect_equal(load_checkpoint(output), load_checkpoint(plain));
  const std::string name = "transformer.decoder.layers.0.linear1.bias";
  const std::string large = changed("norm_last", "arrays['" + name + "'] = np.full(20, 1e39)");
  expect_refused("import --state-dict " + large + arguments + output,
                 "load: " + large + ": " + name + " has numbers too large for float32");
  const std::string whole = changed("norm_last", "arrays['" + name + "'] = np.zeros(20, np.int64)");
  expect_refused("import --state-dict " + whole + arguments + output,
                 "load: " + whole + ": " + name + " holds int64, not floating-point numbers");
}

TEST_F(PytorchCheckpoint, RefusesWrongFilesAndConfigurations) {
  const std::string good = kStateDicts + "norm_first.safetensors";
  const std::string output = folder_.file("model.h5");
  const auto import = [&](const std::string& state_dict, const std::string& more = "") {
    return "import --state-dict " + state_dict + " --output " + output + more;
  };
  expect_refused(import("nowhere.safetensors"),
                 "load: cannot read nowhere.safetensors, No such file or directory");
  expect_refused(import("model.bin"), "model.bin: must end with one of .safetensors, .pt, .pth");
  const std::string bytes = test::read_file(good);
  const std::string text = folder_.write("text.safetensors", "hello");
  expect_refused(import(text), "load: " + text + " is not a safetensors file, or it is truncated");
  const std::string half = folder_.write("half.safetensors", bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(convert(import(half)).output, HasSubstr("the file is damaged or truncated\n"));
  expect_refused(import(good),
                 "config: " + good +
                     " says nothing about source_vocabulary, target_vocabulary, width, heads, "
                     "feed_forward_width, encoder_layers, decoder_layers");
  const auto with_config = [&](const std::string& json) {
    return import(good, " --config " + folder_.write("config.json", json));
  };
  EXPECT_THAT(convert(with_config("{\"depth\": 3}")).output, HasSubstr("unknown names (depth)"));
  EXPECT_THAT(convert(with_config("{\"width\": \"wide\"}")).output,
              HasSubstr("config: width must be like 1, got 'wide'\n"));
  const std::string sizes =
      "{\"source_vocabulary\": 17, \"target_vocabulary\": 19, \"width\": 12, \"heads\": 3, "
      "\"feed_forward_width\": 20, \"encoder_layers\": 2, \"decoder_layers\": 1, ";
  expect_refused(with_config(sizes + "\"activation\": \"silu\"}"),
                 "config: activation must be relu or gelu, got silu");
  expect_refused(with_config(sizes + "\"heads\": 5}"),
                 "config: heads must divide the width, got 5 and 12");
  EXPECT_THAT(convert(with_config("[1]")).output, HasSubstr("is not a JSON object"));
  const std::string foreign = folder_.write("foreign.h5", "\x89HDF\r\n");
  expect_refused(import(good, " --like " + foreign),
                 "load: " + foreign + " is not a checkpoint of Gradstone");
  Transformer model({.source_vocabulary = 5, .target_vocabulary = 5, .width = 4, .heads = 2});
  save_model(folder_.file("small.h5"), model);
  std::string damaged = test::read_file(folder_.file("small.h5"));
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  const std::string path = folder_.write("damaged.h5", damaged);
  expect_refused("export --checkpoint " + path + " --output " + folder_.file("a.safetensors"),
                 "load: " + path + " is damaged, its contents are not those that were saved");
  EXPECT_FALSE(std::filesystem::exists(folder_.file("a.safetensors")));
  const std::string config =
      folder_.write("config.json", json_of(config_of(Fixture::load("state_dicts", "norm_first"))));
  expect_refused("import --state-dict " + good + " --config " + config + " --output /tmp",
                 "save: /tmp is not a regular file; give the path of a file");
}

}  // namespace
}  // namespace gs
