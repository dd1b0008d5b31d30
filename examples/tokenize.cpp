// Shows how text becomes tokens, and turns tokens into text: one line in, one line out. See --help.
#include <fmt/format.h>

#include <functional>
#include <iostream>

#include "framework/text/utf8.h"
#include "framework/train/options.h"
#include "framework/train/program.h"
#include "models/tokenizer_settings.h"
#include "models/translator.h"

namespace {

using namespace gs;

struct Call {
  std::string codes, model, side = "source";
  bool decode = false;
};

using Conversion = std::function<std::string(const std::string& line)>;

Conversion with_codes(const Call& call) {
  BytePairs pairs = load_byte_pairs(call.codes);
  if (call.decode) return BytePairs::join;
  return [pairs = std::move(pairs)](const std::string& line) { return pairs.apply(line); };
}

std::string tokens_of(const Tokenizer& tokenizer, const std::string& line) {
  std::string tokens;
  for (const int32_t id : tokenizer.encode(line)) {
    if (!tokens.empty()) tokens += ' ';
    tokens += tokenizer.token(id);
  }
  return tokens;
}

std::string text_of(const Tokenizer& tokenizer, std::string_view tokens) {
  std::vector<int32_t> ids;
  while (!tokens.empty()) {
    const std::string_view token = tokens.substr(0, tokens.find(' '));
    if (!token.empty()) ids.push_back(tokenizer.id(token));
    tokens.remove_prefix(std::min(tokens.size(), token.size() + 1));
  }
  return tokenizer.decode(ids);
}

Conversion with_model(const Call& call) {
  const std::unique_ptr<Translator> translator = Translator::load(call.model);
  const Tokenizer& tokenizer =
      call.side == "source" ? translator->source_tokenizer() : translator->target_tokenizer();
  check(!call.decode || tokenizer.unit() != "character",
        "--decode: the tokens of {} are single characters, spaces among them; leave --decode out",
        call.model);
  return [tokenizer, decode = call.decode](const std::string& line) {
    return decode ? text_of(tokenizer, line) : tokens_of(tokenizer, line);
  };
}

int run(int argc, char** argv) {
  Call call;
  Options options("tokenize",
                  "Splits standard input into tokens with spaces between, one line in, one line "
                  "out.");
  options.bind("codes", call.codes, "merges of byte pairs, a file of subword-nmt learn-bpe");
  options.bind("model", call.model, "checkpoint of a translation model, whose tokens are used");
  options.bind("side", call.side, "of the model", one_of({"source", "target"}));
  options.bind("decode", call.decode, "the way back: tokens with spaces between become text");
  if (!options.parse(argc, argv)) return 0;
  check(call.codes.empty() != call.model.empty(), "--codes and --model: give one of them");
  const Conversion convert = call.model.empty() ? with_codes(call) : with_model(call);
  int64_t number = 0;
  for (std::string line; std::getline(std::cin, line);) {
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    const auto invalid = first_invalid_utf8(line);
    check(!invalid, "standard input: line {} is not UTF-8 at byte {}; convert it first", number,
          invalid.value_or(0));
    fmt::print("{}\n", convert(normalize_spaces(line)));
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return gs::run_program(argc, argv, run); }
