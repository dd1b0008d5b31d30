// Translates text with a trained model: one line in, one line out. See --help.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "framework/core/parallel.h"
#include "framework/io/atomic_file.h"
#include "framework/text/utf8.h"
#include "framework/train/device_option.h"
#include "framework/train/options.h"
#include "framework/train/program.h"
#include "models/precision.h"
#include "models/translator.h"

namespace {

using namespace gs;

struct Call {
  std::string model = "runs/toy/best.h5", input, output;
  SearchConfig search{.beam = 5};
  std::string length_penalty = "power", too_long = "stop";
  std::string precision = "float32";
  bool no_unknown = false;
  bool scores = false, attention = false;
  int64_t batch_lines = 1024;
  int threads = gs::threads();
  DeviceOption device;

  std::string input_title() const { return input.empty() ? "standard input" : input; }
};

// Lines go to standard output at once, or to a file that appears when all are there.
class Output {
 public:
  explicit Output(const std::string& path) {
    if (!path.empty()) file_ = std::make_unique<AtomicFile>(path);
  }
  void write(const std::string& text) {
    if (file_) return file_->write(text);
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
  }
  void commit() {
    if (file_) file_->commit();
  }

 private:
  std::unique_ptr<AtomicFile> file_;
};

// Target words in rows, source words in columns, the weights in percent.
std::string attention_table(const Translator& translator, const std::string& source,
                            const std::string& target) {
  const Translator::Alignment alignment = translator.attention(source, target);
  const auto columns = [](const std::string& word) { return split_characters(word).size(); };
  size_t width = 4;
  for (const std::string& word : alignment.target) width = std::max(width, columns(word));
  std::string text(width, ' ');
  for (const std::string& word : alignment.source)
    text += "  " + std::string(columns(word) < 4 ? 4 - columns(word) : 0, ' ') + word;
  for (size_t t = 0; t < alignment.target.size(); ++t) {
    text += "\n" + std::string(width - columns(alignment.target[t]), ' ') + alignment.target[t];
    for (size_t s = 0; s < alignment.source.size(); ++s) {
      const double percent = 100 * alignment.weights[t][s];
      const size_t cell = std::max<size_t>(4, columns(alignment.source[s]));
      text += "  " + (percent < 0.5 ? std::string(cell - 1, ' ') + "."
                                    : fmt::format("{:>{}.0f}", percent, cell));
    }
  }
  return text + "\n";
}

std::string translations_of(const Translator& translator, const std::vector<std::string>& lines,
                            const Call& call) {
  const auto results = translator.translate(lines, call.search);
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) {
    for (size_t n = 0; n < static_cast<size_t>(call.search.nbest); ++n) {
      const Translation& translation = results[i][std::min(n, results[i].size() - 1)];
      if (call.scores) text += fmt::format("{:.4f}\t", translation.score);
      text += translation.text + "\n";
    }
    if (call.attention) text += attention_table(translator, lines[i], results[i].front().text);
  }
  return text;
}

// A line as it is translated: without what ends it, and with single spaces. Empty where it is too
// long and such lines are to stay empty, which `warn` is told.
std::string prepared(std::string line, int64_t number, const Translator& translator,
                     const Call& call, bool warn) {
  if (line.ends_with('\r')) line.pop_back();
  if (const auto invalid = first_invalid_utf8(line)) {
    fail("{}: line {} is not UTF-8 at byte {}; convert it first", call.input_title(), number,
         *invalid);
  }
  const auto tokens = static_cast<int64_t>(translator.source_tokenizer().encode(line).size());
  if (tokens <= translator.longest_line()) return normalize_spaces(line);
  check(call.too_long == "empty", "{}: line {} has {} tokens, the model takes {}; split it",
        call.input_title(), number, tokens, translator.longest_line());
  if (warn) {
    fmt::print(stderr,
               "translate: {}: line {} has {} tokens, the model takes {}; it gives an empty line\n",
               call.input_title(), number, tokens, translator.longest_line());
  }
  return "";
}

void translate_all(std::istream& input, size_t batch, const Translator& translator,
                   const Call& call, Output& output) {
  std::vector<std::string> lines;
  const auto translate_pending = [&] {
    output.write(translations_of(translator, lines, call));
    lines.clear();
  };
  // By the line, not by the block, so that what is typed is answered at once.
  int64_t number = 0;
  for (std::string line; std::getline(input, line);) {
    try {
      lines.push_back(prepared(std::move(line), ++number, translator, call, true));
    } catch (const Error&) {
      translate_pending();  // what stands before it is not lost
      throw;
    }
    if (lines.size() >= batch) translate_pending();
  }
  translate_pending();
  check(!input.bad(), "{}: cannot be read after line {}", call.input_title(), number);
}

// A file is looked through first: what is wrong in its last line is better known before the work.
void translate_file(const Translator& translator, const Call& call, Output& output) {
  std::ifstream file(call.input);
  check(file.good() && !std::filesystem::is_directory(call.input), "--input: {} cannot be read, {}",
        call.input, file.good() ? "it is a folder" : std::strerror(errno));
  if (std::filesystem::is_regular_file(call.input)) {
    int64_t number = 0;
    for (std::string line; std::getline(file, line);)
      prepared(std::move(line), ++number, translator, call, false);
    file.clear();
    file.seekg(0);
  }
  translate_all(file, static_cast<size_t>(call.batch_lines), translator, call, output);
}

void bind(Options& options, Call& call) {
  options.bind("model", call.model, "checkpoint of a trained model");
  options.bind("input", call.input, "file of lines to translate; none: standard input");
  options.bind("output", call.output,
               "file for the translations, which appears when all are made; none: standard output");
  options.bind("too-long", call.too_long,
               "what a line of more tokens than the model takes does: stop with an error, or give "
               "an empty line and a warning",
               one_of({"stop", "empty"}));
  options.bind("scores", call.scores, "print the score and a tab before each translation");
  options.bind("attention", call.attention,
               "print a table of the attention below the translations of a line, in percent");
  options.bind("batch-lines", call.batch_lines, "lines read before they are translated together",
               between(1, 1e6));
  options.bind("threads", call.threads, "threads of the CPU", between(1, 1024));
  call.device.bind(options);
  options.bind("precision", call.precision,
               "of the computation on CUDA devices, whatever the model was trained in",
               precisions());

  SearchConfig& search = call.search;
  options.group("Search");
  options.bind("beam", search.beam, "hypotheses that are followed; 1 is greedy", between(1, 1000));
  options.bind("nbest", search.nbest,
               "translations printed for each line, best first, each on a line of its own; at most "
               "the beam. Every line gives as many: one without words empty ones, one with fewer "
               "translations repeats the last",
               between(1, 1000));
  options.bind("length-penalty", call.length_penalty,
               "how translations of l tokens, the end mark included, are scored: power is "
               "log p / l^alpha, gnmt is log p / ((5 + l) / 6)^alpha",
               one_of({"power", "gnmt"}));
  options.bind("alpha", search.alpha, "strength of the length penalty; 0: scores are log p",
               at_least(0));
  options.bind("length-factor", search.length_factor,
               "a translation has at most length-factor * s + length-extra tokens, s being those "
               "of the source and its end mark",
               between(0, 1e6));
  options.bind("length-extra", search.length_extra, "see length-factor", between(0, 1e6));
  options.bind("maximum-length", search.maximum_length,
               "most tokens of a translation; 0 is no limit beside the others", at_least(0));
  options.bind("minimum-length", search.minimum_length,
               "fewest tokens of a translation, where the limits above allow them", at_least(0));
  options.bind("no-repeat", search.no_repeat,
               "no N tokens in a row come twice in a translation; 0 lets them", at_least(0));
  options.bind("no-unknown", call.no_unknown, "never produce <unk>");
}

int run(int argc, char** argv) {
  Call call;
  Options options("translate", "Translates text, one line in, one line out.");
  bind(options, call);
  if (!options.parse(argc, argv)) return 0;
  check(call.search.nbest <= call.search.beam, "--nbest: must be at most the beam, got {} and {}",
        call.search.nbest, call.search.beam);
  call.search.length_penalty =
      call.length_penalty == "power" ? LengthPenalty::kPower : LengthPenalty::kGnmt;
  call.search.unknown = !call.no_unknown;
  check_config(call.search);
  set_threads(call.threads);
  const Device device = call.device.device();
  if (device != Device::cpu())
    fmt::print(stderr, "translate: computes on {}, {}\n", device_title(device), call.precision);
  const std::unique_ptr<Translator> translator = Translator::load(call.model, device);
  set_precision(translator->transformer(), call.precision);

  Output output(call.output);
  if (!call.input.empty()) {
    translate_file(*translator, call, output);
  } else {
    const bool interactive = isatty(STDIN_FILENO) != 0;
    if (interactive) fmt::print(stderr, "Type a line to translate; Ctrl-D ends.\n");
    const size_t batch = interactive ? 1 : static_cast<size_t>(call.batch_lines);
    translate_all(std::cin, batch, *translator, call, output);
  }
  output.commit();
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return gs::run_program(argc, argv, run); }
