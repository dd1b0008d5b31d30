// Scores translations: BLEU, chrF and chrF++ as sacreBLEU computes them. See --help.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "datasets/line_reader.h"
#include "framework/core/error.h"
#include "framework/text/bleu.h"
#include "framework/text/bootstrap.h"
#include "framework/text/chrf.h"
#include "framework/text/utf8.h"
#include "framework/train/options.h"
#include "framework/train/program.h"

namespace {

using namespace gs;
using Json = nlohmann::ordered_json;

constexpr int64_t kTokenizedLines = 100;  // so many say that a text has been tokenized

struct Call {
  std::vector<std::string> references = {}, hypotheses = {}, words = {}, metrics = {"bleu"};
  std::string tokenize = "13a", smoothing = "exp";
  double smoothing_value = 0;
  bool lowercase = false, effective_order = false, whitespace = false, epsilon = false;
  int order = kMaxBleuOrder, digits = 2;
  int64_t confidence = 0;
  uint64_t seed = BootstrapConfig().seed;
  bool sentence = false, multi_bleu = false, json = false;
};

// What one metric says of one system.
struct Result {
  std::string name, signature = {}, details = {};
  double score = 0;
  Json numbers = Json::object();
  std::vector<double> sentences = {}, samples = {};  // where asked for
};

struct System {
  std::string file;
  std::vector<std::string> lines;
  std::vector<Result> results = {};
};

// The lines of a file without spaces at their ends; "-" is standard input.
std::vector<std::string> read_lines(const std::string& file) {
  const std::string name = file == "-" ? "standard input" : file;
  LineReader reader(file == "-" ? "/dev/stdin" : file);
  std::vector<std::string> lines;
  while (reader.next()) {
    const std::string_view line = reader.line();
    const std::optional<int64_t> invalid = first_invalid_utf8(line);
    if (invalid)
      fail("{} is not UTF-8, got byte {:#04x} at offset {} of line {}; convert it first", name,
           static_cast<uint8_t>(line[static_cast<size_t>(*invalid)]), *invalid, reader.number());
    const std::vector<std::string_view> words = split_words(line);
    const char* const end = words.empty() ? line.data() : words.back().data() + words.back().size();
    lines.emplace_back(line.data(), end);
  }
  check(!lines.empty(), "{} is empty; give one line for each sentence", name);
  return lines;
}

void check_lines(const std::string& file, size_t lines, const Call& call, size_t expected) {
  check(lines == expected,
        "line counts differ, got {} in {} and {} in {}; every hypothesis needs its "
        "reference in the line of the same number",
        lines, file, expected, call.references[0]);
}

void warn_of_tokenized(const System& system, const Call& call) {
  if (call.multi_bleu || call.tokenize != "13a") return;
  const auto count = std::count_if(system.lines.begin(), system.lines.end(),
                                   [](const std::string& line) { return line.ends_with(" ."); });
  if (count < kTokenizedLines) return;
  fmt::print(stderr,
             "score: {} lines of {} end in a period of its own: the text looks tokenized, which "
             "changes the score; undo that, or use --tokenize none\n",
             count, system.file);
}

BootstrapConfig bootstrap_config(const Call& call) {
  return {.samples = call.confidence, .seed = call.seed};
}

std::string sampling(const Call& call) {
  return call.confidence > 0 ? bootstrap_config(call).signature() : "";
}

BleuConfig bleu_config(const Call& call, const Options& options) {
  BleuConfig config{.tokenizer = parse_bleu_tokenizer(call.tokenize),
                    .lowercase = call.lowercase,
                    .smoothing = parse_bleu_smoothing(call.smoothing),
                    .order = call.order,
                    .effective_order = call.effective_order || call.sentence};
  if (options.is_set("smoothing-value")) config.smoothing_value = call.smoothing_value;
  if (!call.multi_bleu) return config;
  config.tokenizer = BleuTokenizer::kNone;
  config.smoothing = BleuSmoothing::kNone;
  return config;
}

// The score of the sum of all counts, and those of sentences and samples.
template <typename Counts, typename Score>
Counts add_up(const std::vector<Counts>& sentences, Score score, const Call& call, Result& result) {
  Counts sum;
  for (const Counts& counts : sentences) sum += counts;
  result.score = score(sum);
  if (call.sentence)
    for (const Counts& counts : sentences) result.sentences.push_back(score(counts));
  if (call.confidence > 0)
    result.samples = bootstrap_scores(sentences, score, bootstrap_config(call));
  return sum;
}

Result score_bleu(const System& system, const References& references, const BleuConfig& config,
                  const Call& call) {
  Result result{.name = "BLEU"};
  result.signature = config.signature(static_cast<int64_t>(references.size()), sampling(call));
  const auto score = [&](const BleuCounts& counts) { return bleu(counts, config).score; };
  const BleuScore total =
      bleu(add_up(count_bleu(system.lines, references, config), score, call, result), config);
  result.details = call.multi_bleu ? total.multi_bleu_text() : total.details();
  const auto orders = static_cast<size_t>(config.order);
  result.numbers = {{"precisions", std::vector(total.precisions.begin(),
                                               total.precisions.begin() + config.order)},
                    {"brevity_penalty", total.brevity_penalty},
                    {"length_ratio", total.length_ratio()},
                    {"hypothesis_length", total.counts.hypothesis_length},
                    {"reference_length", total.counts.reference_length}};
  for (size_t n = 0; n < orders; ++n) {
    result.numbers["matches"].push_back(total.counts.matches[n]);
    result.numbers["totals"].push_back(total.counts.totals[n]);
  }
  return result;
}

Result score_chrf(const System& system, const References& references, int64_t word_order,
                  const Call& call) {
  const ChrfConfig config{.word_order = word_order,
                          .lowercase = call.lowercase,
                          .whitespace = call.whitespace,
                          .epsilon_smoothing = call.epsilon};
  Result result{.name = config.name()};
  result.signature = config.signature(static_cast<int64_t>(references.size()), sampling(call));
  const auto score = [&](const ChrfCounts& counts) { return chrf(counts, config); };
  add_up(count_chrf(system.lines, references, config), score, call, result);
  return result;
}

PairedBootstrap compare(const Result& baseline, const Result& result) {
  return paired_bootstrap(baseline.score, baseline.samples, result.score, result.samples);
}

void print_plain(const std::vector<System>& systems, const Call& call) {
  for (const System& system : systems) {
    if (systems.size() > 1) fmt::print("{}\n", system.file);
    for (size_t i = 0; i < system.results.size(); ++i) {
      const Result& result = system.results[i];
      if (call.multi_bleu) {
        fmt::print("{}\n", result.details);
        continue;
      }
      std::string text =
          fmt::format("{}|{} = {:.{}f}", result.name, result.signature, result.score, call.digits);
      if (!result.samples.empty()) {
        const ConfidenceInterval interval = confidence_interval(result.samples);
        text += fmt::format(" (μ = {:.{}f} ± {:.{}f})", interval.mean, call.digits,
                            interval.half_width(), call.digits);
      }
      fmt::print("{}{}{}\n", text, result.details.empty() ? "" : " ", result.details);
      if (result.samples.empty() || &system == &systems[0]) continue;
      const PairedBootstrap paired = compare(systems[0].results[i], result);
      fmt::print("  {:+.{}f} against {}, p = {:.4f}, better in {:.1f} % of the samples\n",
                 paired.difference, call.digits, systems[0].file, paired.p_value,
                 100 * paired.wins);
    }
  }
}

// A table: one line a sentence, one column a metric, with its signature above.
void print_sentences(const System& system, const Call& call) {
  std::string head = "sentence";
  for (const Result& result : system.results)
    head += fmt::format("\t{}|{}", result.name, result.signature);
  fmt::print("{}\n", head);
  for (size_t i = 0; i < system.lines.size(); ++i) {
    fmt::print("{}", i + 1);
    for (const Result& result : system.results)
      fmt::print("\t{:.{}f}", result.sentences[i], call.digits);
    fmt::print("\n");
  }
}

void print_json(const std::vector<System>& systems, const Call& call) {
  Json json{{"references", call.references}, {"sentences", systems[0].lines.size()}};
  for (const System& system : systems) {
    Json& entry = json["systems"].emplace_back(Json{{"hypotheses", system.file}});
    for (size_t i = 0; i < system.results.size(); ++i) {
      const Result& result = system.results[i];
      Json metric{{"name", result.name}, {"score", result.score}, {"signature", result.signature}};
      metric.update(result.numbers);
      if (call.sentence) metric["sentence_scores"] = result.sentences;
      if (!result.samples.empty()) {
        const ConfidenceInterval interval = confidence_interval(result.samples);
        metric["confidence"] = {{"mean", interval.mean},
                                {"half_width", interval.half_width()},
                                {"low", interval.low},
                                {"high", interval.high}};
      }
      if (!result.samples.empty() && &system != &systems[0]) {
        const PairedBootstrap paired = compare(systems[0].results[i], result);
        metric["against_first"] = {
            {"difference", paired.difference}, {"p_value", paired.p_value}, {"wins", paired.wins}};
      }
      entry["metrics"].push_back(std::move(metric));
    }
  }
  fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

void add_options(Options& options, Call& call) {
  options.bind("reference", call.references,
               "file of right translations, one a line, plain or gzip; several by commas or by "
               "repeating the option");
  options.bind("hypothesis", call.hypotheses,
               "file of translations to score, also without the option's name; none or -: standard "
               "input; of several the first is the baseline");
  options.bind_words("[HYPOTHESIS]", call.words);
  options.bind("metric", call.metrics, "what to compute", one_of({"bleu", "chrf", "chrf++"}));
  options.bind("tokenize", call.tokenize,
               "how BLEU splits lines: 13a for plain text, intl for "
               "Unicode punctuation, char for characters, none for text split already",
               one_of({"13a", "intl", "char", "none"}));
  options.bind("lowercase", call.lowercase, "take upper and lower case alike");
  options.bind("smoothing", call.smoothing, "what orders without a match count as in BLEU",
               one_of({"exp", "floor", "add-k", "none"}));
  options.bind("smoothing-value", call.smoothing_value,
               "of floor (0.1 where not given) or add-k (1 where not given)", at_least(0));
  options.bind("effective-order", call.effective_order,
               "leave out orders that are longer than the text; always so with --sentence");
  options.bind("order", call.order, "longest n-grams of BLEU", between(1, kMaxBleuOrder));
  options.bind("chrf-whitespace", call.whitespace, "count spaces as characters in chrF");
  options.bind("chrf-epsilon", call.epsilon, "count orders without n-grams in chrF as 1e-16");
  options.bind("confidence", call.confidence,
               "bootstrap samples for intervals of 95 % and comparisons, such as 1000; 0: none",
               between(0, 1e6));
  options.bind("seed", call.seed, "of the bootstrap samples");
  options.bind("sentence", call.sentence, "print scores of sentences");
  options.bind("multi-bleu", call.multi_bleu,
               "tokenized BLEU as multi-bleu.perl prints it: --tokenize none --smoothing none");
  options.bind("digits", call.digits, "after the decimal point", between(0, 17));
  options.bind("json", call.json, "print all numbers as JSON");
}

void check_call(const Call& call, const Options& options) {
  check(!call.references.empty(), "--reference: missing; give a file of right translations");
  check(!call.metrics.empty(), "--metric: empty; use bleu, chrf or chrf++");
  for (const char* other : {"metric", "tokenize", "smoothing", "sentence", "json", "confidence"})
    check(!call.multi_bleu || !options.is_set(other), "--multi-bleu: does not go with --{}", other);
  check(!call.sentence || call.confidence == 0,
        "--sentence: does not go with --confidence; a sentence is no sample");
  check(!call.sentence || call.json || call.hypotheses.size() <= 1,
        "--sentence: takes one hypothesis file, got {}; add --json for several",
        call.hypotheses.size());
  check(std::count(call.hypotheses.begin(), call.hypotheses.end(), "-") <= 1,
        "--hypothesis: standard input can be read once; name files");
}

int run(int argc, char** argv) {
  Call call;
  Options options("score",
                  "Scores translations against references: BLEU, chrF and chrF++ as sacreBLEU "
                  "computes them.");
  add_options(options, call);
  if (!options.parse(argc, argv)) return 0;
  call.hypotheses.insert(call.hypotheses.end(), call.words.begin(), call.words.end());
  check_call(call, options);
  const BleuConfig bleu = bleu_config(call, options);
  if (call.hypotheses.empty()) call.hypotheses = {"-"};

  References references;
  for (const std::string& file : call.references) {
    references.push_back(read_lines(file));
    check_lines(file, references.back().size(), call, references[0].size());
  }
  std::vector<System> systems;
  for (const std::string& file : call.hypotheses) {
    System system{file == "-" ? "standard input" : file, read_lines(file)};
    check_lines(system.file, system.lines.size(), call, references[0].size());
    warn_of_tokenized(system, call);
    for (const std::string& metric : call.metrics) {
      system.results.push_back(
          metric == "bleu" ? score_bleu(system, references, bleu, call)
                           : score_chrf(system, references, metric == "chrf" ? 0 : 2, call));
    }
    systems.push_back(std::move(system));
  }
  if (call.json)
    print_json(systems, call);
  else if (call.sentence)
    print_sentences(systems[0], call);
  else
    print_plain(systems, call);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return gs::run_program(argc, argv, run); }
