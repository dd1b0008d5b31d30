#include "framework/train/options.h"

#include <gtest/gtest.h>

#include "framework/core/version.h"
#include "framework/train/program.h"
#include "tests/support/support.h"

namespace gs {
namespace {

using test::error_of;

struct Settings {
  double learning_rate = 1e-3;
  double dropout = 0.1;
  int64_t epochs = 20;
  uint64_t seed = 1;
  int layers = 2;
  float smoothing = 0.25F;
  bool tied = true;
  bool verbose = false;
  std::string device = "cpu";
  std::string output;
  std::vector<double> betas = {0.9, 0.999};
  std::vector<int64_t> sizes = {};
  std::vector<std::string> files = {"a.txt"};
};

// A program's settings and its options, parsed from words.
struct Program {
  Settings settings;
  Options options{"train", "Trains."};

  Program() {
    Settings& s = settings;
    options.bind("learning-rate", s.learning_rate, "peak learning rate", above(0));
    options.bind("dropout", s.dropout, "share of dropped units", at_least_and_below(0, 1));
    options.bind("epochs", s.epochs, "passes over the data", at_least(1));
    options.bind("seed", s.seed, "seed");
    options.group("Model");
    options.bind("layers", s.layers, "layers of each stack", between(1, 64));
    options.bind("smoothing", s.smoothing, "label smoothing");
    options.bind("tied", s.tied, "share the output's weights");
    options.bind("verbose", s.verbose, "say more");
    options.bind("device", s.device, "where to compute", one_of({"cpu", "cuda"}));
    options.bind("output", s.output, "folder to write");
    options.bind("betas", s.betas, "decay of both moments", at_least_and_below(0, 1));
    options.bind("sizes", s.sizes, "sizes");
    options.bind("files", s.files, "files to read");
    options.add("shift", int64_t{0}, "offset");
    options.leave_out({"output"});
  }
  bool parse(std::vector<const char*> words) {
    words.insert(words.begin(), "train");
    return options.parse(static_cast<int>(words.size()), words.data());
  }
};

std::string error_for(std::vector<const char*> words) {
  Program program;
  const auto before = program.options.values();
  const std::string message = error_of([&] { (void)program.parse(words); });
  EXPECT_EQ(program.options.values(), before) << "a refused command line changed something";
  EXPECT_EQ(message.find('\n'), std::string::npos);
  return message;
}

TEST(Options, DefaultsStand) {
  Program program;
  EXPECT_TRUE(program.parse({}));
  EXPECT_EQ(program.settings.epochs, 20);
  EXPECT_EQ(program.settings.betas, (std::vector<double>{0.9, 0.999}));
  EXPECT_EQ(program.options.value<int64_t>("shift"), 0);
  EXPECT_FALSE(program.options.is_set("epochs"));
}

TEST(Options, ReadsEveryType) {
  Program program;
  EXPECT_TRUE(program.parse(
      {"--learning-rate", "2.5e-4", "--epochs=7", "--seed", "18446744073709551615", "--layers",
       "64", "--smoothing", "0.5", "--tied=false", "--verbose", "--device", "cuda",
       "--output=", "--sizes", "-1,0,9223372036854775807", "--files", "b.txt,c d.txt"}));
  const Settings& s = program.settings;
  EXPECT_EQ(s.learning_rate, 2.5e-4);
  EXPECT_EQ(s.epochs, 7);
  EXPECT_EQ(s.seed, 18446744073709551615U);
  EXPECT_EQ(s.layers, 64);
  EXPECT_EQ(s.smoothing, 0.5F);
  EXPECT_FALSE(s.tied);
  EXPECT_TRUE(s.verbose);
  EXPECT_EQ(s.device, "cuda");
  EXPECT_EQ(s.output, "");
  EXPECT_EQ(s.sizes, (std::vector<int64_t>{-1, 0, INT64_MAX}));
  EXPECT_EQ(s.files, (std::vector<std::string>{"b.txt", "c d.txt"}));
  EXPECT_TRUE(program.options.is_set("output"));
  EXPECT_FALSE(program.options.is_set("dropout"));
}

// jarro2783/cxxopts#127: the next option was taken as the value.
TEST(Options, AnOptionIsNoValue) {
  EXPECT_EQ(error_for({"--learning-rate", "--epochs", "3"}),
            "--learning-rate: value missing before --epochs; use --learning-rate X");
  EXPECT_EQ(error_for({"--output", "--epochs", "3"}),
            "--output: value missing before --epochs; use --output TEXT");
  EXPECT_EQ(error_for({"--epochs", "3", "--betas"}),
            "--betas: value missing at the end; use --betas X,X,...");
  EXPECT_EQ(error_for({"--device"}), "--device: value missing at the end; use --device WORD");
  Program program;
  EXPECT_TRUE(program.parse({"--output=--odd", "--files", "-"}));
  EXPECT_EQ(program.settings.output, "--odd");
  EXPECT_EQ(program.settings.files, (std::vector<std::string>{"-"}));
}

// jarro2783/cxxopts#254: a negative number was read as an option.
TEST(Options, NegativeNumbersAreValues) {
  Program program;
  EXPECT_TRUE(program.parse({"--shift", "-1"}));
  EXPECT_EQ(program.options.value<int64_t>("shift"), -1);
  EXPECT_TRUE(program.parse({"--shift=-12", "--smoothing", "-.5"}));
  EXPECT_EQ(program.options.value<int64_t>("shift"), -12);
  EXPECT_EQ(program.settings.smoothing, -0.5F);
  EXPECT_EQ(error_for({"--seed", "-1"}), "--seed: out of range, got -1; use 0 or more");
  EXPECT_EQ(error_for({"--seed=-1"}), "--seed: out of range, got -1; use 0 or more");
}

// jarro2783/cxxopts#372: `-e=5` gave the value "=5".
TEST(Options, OneDashIsRefused) {
  EXPECT_EQ(error_for({"-e=5"}), "-e: unknown option; see --help");
  EXPECT_EQ(error_for({"-epochs", "5"}), "-epochs: unknown option; did you mean --epochs?");
  EXPECT_EQ(error_for({"---epochs", "5"}), "---epochs: unknown option; did you mean --epochs?");
  EXPECT_EQ(error_for({"-5"}), "-5: unknown option; see --help");
  EXPECT_EQ(error_for({"-"}), "-: stray word; write options as --name value");
}

// jarro2783/cxxopts#326: given values were appended to the default ones.
TEST(Options, AGivenListReplacesTheDefault) {
  Program program;
  EXPECT_TRUE(program.parse({"--betas", "0.9,0.98"}));
  EXPECT_EQ(program.settings.betas, (std::vector<double>{0.9, 0.98}));
  EXPECT_TRUE(program.parse({"--betas", "0.5,0.6", "--betas", "0.9,0.98", "--files="}));
  EXPECT_EQ(program.settings.betas, (std::vector<double>{0.9, 0.98}));
  EXPECT_TRUE(program.settings.files.empty());
}

// A file that is named must not be passed over; numbers given anew are meant instead of the others.
TEST(Options, ListsOfWordsAddUp) {
  Program program;
  EXPECT_TRUE(program.parse({"--files", "b.txt", "--sizes", "1,2", "--files=c.txt,d.txt", "--sizes",
                             "3", "--files", "e.txt"}));
  EXPECT_EQ(program.settings.files, (std::vector<std::string>{"b.txt", "c.txt", "d.txt", "e.txt"}));
  EXPECT_EQ(program.settings.sizes, (std::vector<int64_t>{3}));
}

TEST(Options, FixedOnesMustBeWhatTheyWere) {
  Program stored, same, other;
  ASSERT_TRUE(stored.parse({"--seed", "7", "--epochs", "3"}));
  ASSERT_TRUE(same.parse({"--seed", "7", "--epochs", "4"}));
  EXPECT_EQ(same.options.restore(stored.options.values(), {"seed", "layers"}).size(), 1u);
  EXPECT_EQ(same.settings.epochs, 4);
  ASSERT_TRUE(other.parse({"--seed", "8", "--epochs", "4"}));
  EXPECT_EQ(error_of([&] {
              other.options.restore(stored.options.values(), {"layers", "seed"});
            }),
            "--seed: 8 from the command line, but it was 7 from the start and cannot change; leave "
            "it out");
  EXPECT_EQ(other.settings.seed, 8u);
}

TEST(Options, TakesWordsWhereTheProgramWantsThem) {
  std::vector<std::string> files;
  bool flag = false;
  int64_t number = 0;
  Options options("join", "Joins.");
  options.bind("flag", flag, "a flag");
  options.bind("number", number, "a number");
  options.bind_words("FILE", files);
  const char* words[] = {"join", "a.txt", "--flag", "b", "--number", "3", "c=d", "--number=4"};
  ASSERT_TRUE(options.parse(8, words));
  EXPECT_EQ(files, (std::vector<std::string>{"a.txt", "b", "c=d"}));
  EXPECT_TRUE(flag);
  EXPECT_EQ(number, 4);
  EXPECT_NE(options.help().find("[--name value]... FILE..."), std::string::npos);
  const char* bad[] = {"join", "x", "--flg"};
  EXPECT_EQ(error_of([&] { (void)options.parse(3, bad); }),
            "--flg: unknown option; did you mean --flag?");
  EXPECT_EQ(files.size(), 3u) << "nothing has changed";
}

// hyrise/hyrise#1172: stray words were ignored.
TEST(Options, StrayWordsAreRefused) {
  EXPECT_EQ(error_for({"corpus.txt"}), "corpus.txt: stray word; write options as --name value");
  EXPECT_EQ(error_for({"--epochs", "3", "4"}), "4: stray word; write options as --name value");
  EXPECT_EQ(error_for({"--verbose", "true"}), "true: stray word; write options as --name value");
  EXPECT_EQ(error_for({""}), ": stray word; write options as --name value");
  EXPECT_EQ(error_for({"--", "x"}), "--: unknown option; see --help");
}

TEST(Options, UnknownOptionsSuggestTheNearest) {
  EXPECT_EQ(error_for({"--learnig-rate", "1"}),
            "--learnig-rate: unknown option; did you mean --learning-rate?");
  EXPECT_EQ(error_for({"--learn=1"}), "--learn: unknown option; did you mean --learning-rate?");
  EXPECT_EQ(error_for({"--Epochs", "1"}), "--Epochs: unknown option; did you mean --epochs?");
  EXPECT_EQ(error_for({"--unknwon", "1"}), "--unknwon: unknown option; see --help");
  EXPECT_EQ(error_for({"--\xff"}).substr(0, 3), "--\xff");
}

TEST(Options, NumbersMustBeWhole) {
  EXPECT_EQ(error_for({"--learning-rate", "1e-4x"}),
            "--learning-rate: not a number, got '1e-4x'; use a form like 0.001 or 1e-3");
  EXPECT_EQ(error_for({"--learning-rate="}),
            "--learning-rate: not a number, got ''; use a form like 0.001 or 1e-3");
  EXPECT_EQ(error_for({"--epochs", "3.5"}),
            "--epochs: not a whole number, got '3.5'; use a form like 20");
  EXPECT_EQ(error_for({"--epochs", " 3"}),
            "--epochs: not a whole number, got ' 3'; use a form like 20");
  EXPECT_EQ(error_for({"--seed", "-x"}), "--seed: value missing before -x; use --seed N");
  EXPECT_EQ(error_for({"--betas", "0.9,,0.98"}),
            "--betas: an empty place in a list, got '0.9,,0.98'; use a form like a,b,c");
  EXPECT_EQ(error_for({"--betas", "0.9,"}),
            "--betas: an empty place in a list, got '0.9,'; use a form like a,b,c");
  EXPECT_EQ(error_for({"--tied=yes"}),
            "--tied: neither true nor false, got 'yes'; use --tied=false");
}

TEST(Options, RangesHold) {
  EXPECT_EQ(error_for({"--learning-rate", "0"}),
            "--learning-rate: out of range, got 0; use above 0");
  EXPECT_EQ(error_for({"--dropout", "1"}),
            "--dropout: out of range, got 1; use 0 or more and below 1");
  EXPECT_EQ(error_for({"--dropout", "-0.1"}),
            "--dropout: out of range, got -0.1; use 0 or more and below 1");
  EXPECT_EQ(error_for({"--epochs", "0"}), "--epochs: out of range, got 0; use 1 or more");
  EXPECT_EQ(error_for({"--layers", "65"}), "--layers: out of range, got 65; use 1 to 64");
  EXPECT_EQ(error_for({"--betas", "0.9,1"}),
            "--betas: out of range, got 1; use 0 or more and below 1");
  EXPECT_EQ(error_for({"--epochs", "9223372036854775808"}),
            "--epochs: out of range, got 9223372036854775808; use a less extreme number");
  EXPECT_EQ(error_for({"--layers", "4294967297"}),
            "--layers: out of range, got 4294967297; use a less extreme number");
  EXPECT_EQ(error_for({"--learning-rate", "1e999"}),
            "--learning-rate: out of range, got 1e999; use a less extreme number");
  EXPECT_EQ(error_for({"--learning-rate", "nan"}),
            "--learning-rate: not finite, got nan; use a finite number");
  EXPECT_EQ(error_for({"--device", "tpu"}),
            "--device: unknown choice, got 'tpu'; use one of cpu, cuda");
}

TEST(Options, TheFirstFaultChangesNothing) {
  EXPECT_EQ(error_for({"--epochs", "7", "--layers", "0"}),
            "--layers: out of range, got 0; use 1 to 64");
}

TEST(Options, ValuesComeBackFromText) {
  Program first;
  EXPECT_TRUE(first.parse({"--learning-rate", "0.1", "--betas", "0.30000000000000004,0.98",
                           "--tied=false", "--smoothing", "0.1", "--output", "x"}));
  const Options::Values stored = first.options.values();
  for (const auto& [name, text] : stored) EXPECT_NE(name, "output");
  Program second;
  EXPECT_TRUE(second.parse({"--output", "y"}));
  EXPECT_TRUE(second.options.restore(stored).empty());
  EXPECT_EQ(second.options.values(), stored);
  EXPECT_EQ(second.settings.betas[0], 0.1 + 0.2);
  EXPECT_EQ(second.settings.smoothing, 0.1F);
  EXPECT_EQ(second.settings.output, "y");
  EXPECT_FALSE(second.options.is_set("tied"));
}

// ultralytics/yolov3#902, OpenNMT/OpenNMT-py#1393: a new value at resume was ignored in silence.
TEST(Options, RestoringNamesWhatDiffers) {
  Program program;
  EXPECT_TRUE(program.parse({"--learning-rate", "0.002", "--epochs", "20"}));
  const auto differences =
      program.options.restore({{"learning-rate", "0.001"}, {"epochs", "20"}, {"layers", "3"}});
  EXPECT_EQ(differences,
            (std::vector<std::string>{"--learning-rate: 0.002 from the command line is used, not "
                                      "the stored 0.001; leave it out to keep that"}));
  EXPECT_EQ(program.settings.learning_rate, 0.002);
  EXPECT_EQ(program.settings.layers, 3);
}

TEST(Options, RestoringRefusesWhatItDoesNotKnow) {
  Program program;
  const auto before = program.options.values();
  EXPECT_EQ(error_of([&] {
              program.options.restore({{"layers", "3"}, {"layer", "4"}});
            }),
            "--layer: stored with the value '4', but unknown to train; did you mean --layers?");
  EXPECT_EQ(error_of([&] {
              program.options.restore({{"epochs", "3"}, {"layers", "0"}});
            }),
            "--layers: out of range, got 0; use 1 to 64");
  EXPECT_EQ(program.options.values(), before);
}

TEST(Options, HelpShowsDefaultsLimitsAndHeadings) {
  const std::string help = Program().options.help();
  std::string words;  // with the line breaks of wrapped descriptions taken out
  for (const char c : help)
    if (c != '\n' && c != ' ')
      words += c;
    else if (!words.empty() && words.back() != ' ')
      words += ' ';
  for (const char* part :
       {"Trains.", "--learning-rate X peak learning rate (above 0; default: 0.001)",
        "--epochs N passes over the data (1 or more; default: 20)",
        "General options:", "Model options:",
        "--tied share the output's weights (default: true; --tied=false turns it off)",
        "--verbose say more", "--device WORD where to compute (one of cpu, cuda; default: cpu)",
        "--betas X,X,... decay of both moments (0 or more and below 1; default: 0.9,0.999)",
        "--output TEXT folder to write", "-h, --help print this text"})
    EXPECT_NE(words.find(part), std::string::npos) << part << "\nis missing in\n" << help;
}

TEST(Options, HelpAndVersionEndTheProgram) {
  for (const char* word : {"--help", "-h", "--version"}) {
    Program program;
    testing::internal::CaptureStdout();
    EXPECT_FALSE(program.parse({"--epochs", "3", word}));
    const std::string shown = testing::internal::GetCapturedStdout();
    EXPECT_EQ(shown, std::string(word) == "--version"
                         ? "train " + std::string(version) + "\n" + compute_title() + "\n"
                         : program.options.help());
  }
}

// A profile belongs to one call: nothing of it goes into a checkpoint.
TEST(Options, EveryProgramHasAProfile) {
  Program program;
  EXPECT_TRUE(program.parse({"--epochs", "3"}));
  EXPECT_FALSE(program.options.value<bool>("profile"));
  for (const auto& [name, value] : program.options.values())
    EXPECT_EQ(name.find("profile"), std::string::npos) << name;
  EXPECT_EQ(error_of([&] { program.options.add("profile", 3, ""); }),
            "options: --profile is too short or added twice; choose another name");
  const std::string help = program.options.help();
  EXPECT_LT(help.find("Model options:"), help.find("Common options:"));
  EXPECT_LT(help.find("Common options:"), help.find("--profile-trace TEXT"));
}

TEST(Options, AddingTwiceIsRefused) {
  Program program;
  EXPECT_EQ(error_of([&] { program.options.add("epochs", 3, ""); }),
            "options: --epochs is too short or added twice; choose another name");
  EXPECT_EQ(error_of([&] { (void)program.options.is_set("x"); }), "options: there is no --x");
}

}  // namespace
}  // namespace gs
