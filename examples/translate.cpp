// Translates text with a trained model: one line in, one line out. See --help.
#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "framework/core/parallel.h"
#include "framework/text/utf8.h"
#include "framework/train/options.h"
#include "framework/train/program.h"
#include "models/translator.h"

namespace {

using namespace gs;

struct Call {
  std::string model = "runs/toy/best.h5";
  int64_t beam = 5, nbest = 1;
  double alpha = 1;
  bool scores = false, attention = false;
  int64_t batch_lines = 1024;
  int threads = gs::threads();
};

// Target words in rows, source words in columns, the weights in percent.
void print_attention(const Translator& translator, const std::string& source,
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
  fmt::print("{}\n", text);
}

void print_translations(const Translator& translator, const std::vector<std::string>& lines,
                        const Call& call) {
  const auto results =
      translator.translate(lines, {.beam = call.beam, .nbest = call.nbest, .alpha = call.alpha});
  for (size_t i = 0; i < lines.size(); ++i) {
    for (const Translation& translation : results[i]) {
      if (call.scores) fmt::print("{:.4f}\t", translation.score);
      fmt::print("{}\n", translation.text);
    }
    if (call.attention) print_attention(translator, lines[i], results[i].front().text);
  }
  std::fflush(stdout);
}

// Why a line cannot be translated, or nothing.
std::string problem_of(const std::string& line, const Translator& translator) {
  if (const auto invalid = first_invalid_utf8(line)) {
    return fmt::format("is not UTF-8 at byte {}; convert it first", *invalid);
  }
  const auto tokens = static_cast<int64_t>(translator.source_vocabulary().encode(line).size());
  if (tokens <= translator.longest_line()) return "";
  return fmt::format("has {} tokens, the model takes {}; split it", tokens,
                     translator.longest_line());
}

int run(int argc, char** argv) {
  Call call;
  Options options("translate", "Translates standard input, one line in, one line out.");
  options.bind("model", call.model, "checkpoint of a trained model");
  options.bind("beam", call.beam, "hypotheses that are followed; 1 is greedy", between(1, 1000));
  options.bind("nbest", call.nbest,
               "translations printed for each line, at most the beam; a line without words "
               "gives as many empty ones",
               between(1, 1000));
  options.bind("alpha", call.alpha, "length penalty: scores are log p / length^alpha", at_least(0));
  options.bind("scores", call.scores, "print the score and a tab before each translation");
  options.bind("attention", call.attention,
               "print a table of the attention below each translation, in percent");
  options.bind("batch-lines", call.batch_lines, "lines read before they are translated together",
               between(1, 1e6));
  options.bind("threads", call.threads, "threads", between(1, 1024));
  if (!options.parse(argc, argv)) return 0;
  check(call.nbest <= call.beam, "--nbest: must be at most the beam, got {} and {}", call.nbest,
        call.beam);
  set_threads(call.threads);
  const std::unique_ptr<Translator> translator = Translator::load(call.model);

  const bool interactive = isatty(STDIN_FILENO) != 0;
  if (interactive) fmt::print(stderr, "Type a line to translate; Ctrl-D ends.\n");
  const size_t batch = interactive ? 1 : static_cast<size_t>(call.batch_lines);
  std::vector<std::string> lines;
  const auto translate_pending = [&] {
    print_translations(*translator, lines, call);
    lines.clear();
  };
  // By the line, not by the block, so that what is typed is answered at once.
  int64_t number = 0;
  for (std::string line; std::getline(std::cin, line);) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    const std::string problem = problem_of(line, *translator);
    if (!problem.empty()) {
      translate_pending();  // what stands before it is not lost
      fail("standard input: line {} {}", number, problem);
    }
    lines.push_back(normalize_spaces(line));
    if (lines.size() >= batch) translate_pending();
  }
  translate_pending();
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return gs::run_program(argc, argv, run); }
