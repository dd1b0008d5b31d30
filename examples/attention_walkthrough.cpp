// Multi-head attention, one step after the other, with all numbers printed.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/ops/arithmetic.h"
#include "framework/ops/matmul.h"
#include "framework/ops/permute.h"
#include "framework/ops/reshape.h"
#include "framework/ops/softmax.h"
#include "framework/text/utf8.h"
#include "framework/train/device_option.h"
#include "framework/train/options.h"
#include "framework/train/program.h"
#include "models/attention_systems.h"

namespace {

using namespace gs;

constexpr int64_t kWidth = 6, kHeads = 2;
constexpr size_t kMostWords = 12;
constexpr size_t kLongestWord = 12;  // characters shown; the rest is cut off

struct WalkthroughOptions {
  uint64_t seed = 42;
  std::string sentence = "the cat saw the dog";
  bool causal = false;
  DeviceOption device;
};

void print_heading(const char* text) {
  fmt::print("\n{}\n{}\n", text, std::string(std::string_view(text).size(), '-'));
}

void print_matrix(const std::string& name, const Matrix& x, int decimals) {
  fmt::print("{} ({} x {})\n", name, x.rows, x.columns);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.columns; ++j)
      fmt::print(" {:{}.{}f}", x(i, j), decimals + 4, decimals);
    fmt::print("\n");
  }
}

Tensor batch_of_one(const Matrix& x, Device device) {
  return reshape(x.tensor().to(device), {1, x.rows, x.columns});
}

double largest_difference(const Matrix& a, const Tensor& b) {
  const std::vector<double> values = b.values<double>();
  double largest = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const double difference = std::abs(values[i] - a.values[i]);
    if (!(difference <= largest)) largest = difference;  // NaN is shown, too
  }
  return largest;
}

// Three tokens of width 6.
Matrix tokens() {
  return {3,
          kWidth,
          {0.1, 0.2, 0.3, 0.4, 0.5, 0.6,  //
           0.6, 0.5, 0.4, 0.3, 0.2, 0.1,  //
           0.2, 0.1, 0.4, 0.3, 0.6, 0.5}};
}

void show_steps(const Matrix& x, const NumpyFormAttention::Result& result, uint64_t seed) {
  print_heading("1. The input");
  fmt::print("A sentence of T = 3 tokens; each row is a token, a vector of C = 6 numbers.\n");
  print_matrix("x", x, 1);

  for (size_t h = 0; h < result.heads.size(); ++h) {
    const NumpyFormAttention::Head& head = result.heads[h];
    print_heading(fmt::format("{}. Head {} of {}", h + 2, h, result.heads.size()).c_str());
    if (h == 0) {
      fmt::print(
          "Each head has three matrices (6 x 3) of its own, here np.random.randn after\n"
          "np.random.seed({}). They make of every token a query (what do I look for?),\n"
          "a key (what am I found by?) and a value (what do I tell?), of width D = 3.\n",
          seed);
    }
    print_matrix("query = x W_q", head.query, 4);
    print_matrix("key = x W_k", head.key, 4);
    print_matrix("value = x W_v", head.value, 4);
    if (h == 0)
      fmt::print("How well each query (row) fits each key (column), a sum of 3 products:\n");
    print_matrix("scores = query key^T / sqrt(3)", head.scores, 4);
    if (h == 0) fmt::print("Each row of scores becomes shares that sum to 1:\n");
    print_matrix("weights = softmax(scores)", head.weights, 10);
    if (h == 0) fmt::print("Each token becomes a mean of all values, weighted by its row:\n");
    print_matrix("output = weights value", head.output, 10);
  }

  print_heading("4. The heads side by side");
  fmt::print("Each head fills its own columns: 0 to 2 and 3 to 5.\n");
  print_matrix("output", result.output, 6);
}

void show_agreement(const Matrix& x, const NumpyFormAttention& numpy,
                    const NumpyFormAttention::Result& result, Device device) {
  PytorchFormAttention pytorch(kWidth, kHeads);
  KerasFormAttention keras(kWidth, kHeads);
  nn::MultiHeadAttention fused(kWidth, {.heads = kHeads});
  for (nn::Module* module : std::initializer_list<nn::Module*>{&pytorch, &keras, &fused}) {
    module->to(kFloat64);
    module->to(device);
  }
  import_weights(pytorch, numpy);
  import_weights(keras, numpy);
  import_weights(fused, numpy);
  const Tensor batch = batch_of_one(x, device);
  print_heading("5. The same in PyTorch's and in Keras's form");
  fmt::print(
      "They compute all heads at once: one matrix (6 x 6) for all queries, split into\n"
      "heads afterwards. Head h is the columns 3h to 3h + 2. PyTorch keeps matrices as\n"
      "(out, in), Keras as (in, out). The output's projection is the identity here.\n"
      "Largest difference from step 4:\n");
  fmt::print("  PyTorch's form          {:.1e}\n",
             largest_difference(result.output, pytorch(batch, batch, batch).output));
  fmt::print("  Keras's form            {:.1e}\n",
             largest_difference(result.output, keras(batch, batch, batch).output));
  fmt::print("  nn::MultiHeadAttention  {:.1e}   (the fast one, for models)\n",
             largest_difference(result.output, fused(batch, batch, batch, {})));
}

void print_rows(const char* name, const Tensor& first_head) {
  fmt::print("{}\n", name);
  const std::vector<double> values = first_head.values<double>();
  for (size_t i = 0; i < 9; i += 3)
    fmt::print("  {:02.0f} {:02.0f} {:02.0f}\n", values[i], values[i + 1], values[i + 2]);
}

void show_wrong_split(const Matrix& x, const NumpyFormAttention& numpy, const Matrix& right,
                      Device device) {
  print_heading("6. A common fault: reshape in the place of permute");
  fmt::print(
      "To split (3 tokens, 6) into (2 heads, 3 tokens, 3), a reshape alone gives the\n"
      "right shape and mixes tokens. Each element here is named by token and column:\n");
  Matrix named(3, kWidth);
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < kWidth; ++j) named(i, j) = static_cast<double>(10 * i + j);
  print_rows("head 0 of reshape to (3, 2, 3), then permute: right",
             split_heads(batch_of_one(named, device), kHeads));
  print_rows("head 0 of reshape to (2, 3, 3): token 0 twice, token 2 lost",
             reshape(named.tensor().to(device), {kHeads, 3, 3}));

  const NumpyFormAttention::Weights weights = numpy.packed_weights();
  const auto wrong_heads = [&](const Matrix& kernel) {
    return reshape(matmul(x.tensor().to(device), kernel.tensor().to(device)), {1, kHeads, 3, 3});
  };
  const Tensor scores =
      matmul(wrong_heads(weights.query), wrong_heads(weights.key), {.transpose_b = true});
  const Tensor mixed =
      merge_heads(matmul(softmax(scores / std::sqrt(3.0)), wrong_heads(weights.value)));
  const std::vector<double> wrong = mixed.values<double>();
  fmt::print("Nothing fails, the numbers are others. The first row of the output:\n  right");
  for (size_t j = 0; j < 3; ++j) fmt::print(" {:14.10f}", right.values[j]);
  fmt::print(" ...\n  wrong");
  for (size_t j = 0; j < 3; ++j) fmt::print(" {:14.10f}", wrong[j]);
  fmt::print(" ...\n");
}

// A word as a cell of the table: its characters, cut and padded.
struct Cell {
  std::string text;
  size_t width = 0;

  explicit Cell(std::string_view word) {
    const std::vector<std::string_view> characters = split_characters(word);
    for (; width < std::min(characters.size(), kLongestWord); ++width) text += characters[width];
    if (characters.size() > kLongestWord) ++width, text += "…";
  }
  std::string padded(size_t to) const { return text + std::string(to - width, ' '); }
};

std::vector<std::string> words_of(const std::string& sentence) {
  check(!first_invalid_utf8(sentence), "--sentence: must be UTF-8, got a bad byte at offset {}",
        first_invalid_utf8(sentence).value_or(0));
  const std::vector<std::string_view> words = split_words(sentence);
  check(!words.empty() && words.size() <= kMostWords, "--sentence: must have 1 to {} words, got {}",
        kMostWords, words.size());
  return {words.begin(), words.end()};
}

void print_row(const std::string& label, const std::vector<std::string>& cells) {
  std::string line = label;
  for (const std::string& cell : cells) line += "  " + cell;
  line.erase(line.find_last_not_of(' ') + 1);
  fmt::print("{}\n", line);
}

// One head's weights (T, T), each as a number and a shade.
void print_table(size_t head, const std::vector<Cell>& words, const Matrix& weights,
                 const Matrix& allowed) {
  constexpr size_t kNarrowest = 6;
  size_t widest = kNarrowest;
  std::vector<std::string> cells;
  for (const Cell& word : words) {
    widest = std::max(widest, word.width);
    cells.push_back(word.padded(std::max(word.width, kNarrowest)));
  }
  fmt::print("\n");
  print_row(Cell(fmt::format("head {}", head)).padded(widest), cells);
  for (int64_t i = 0; i < weights.rows; ++i) {
    for (int64_t j = 0; j < weights.columns; ++j) {
      constexpr const char* kShades[] = {"  ", "░░", "▒▒", "▓▓", "██"};
      const auto fifth = std::min<size_t>(static_cast<size_t>(weights(i, j) * 5), 4);
      const auto column = static_cast<size_t>(j);
      const size_t rest = std::max(words[column].width, kNarrowest) - kNarrowest;
      cells[column] = (allowed(i, j) != 0 ? fmt::format("{:.2f}", weights(i, j)) : "   -") +
                      kShades[fifth] + std::string(rest, ' ');
    }
    print_row(words[static_cast<size_t>(i)].padded(widest), cells);
  }
}

void show_sentence(const std::vector<std::string>& words, const NumpyFormAttention& numpy,
                   MersenneTwister& numbers, bool causal, Device device) {
  const auto count = static_cast<int64_t>(words.size());
  std::map<std::string, std::vector<double>> vectors;
  Matrix x(count, kWidth), allowed(count, count);
  for (int64_t i = 0; i < count; ++i) {
    std::vector<double>& vector = vectors[words[static_cast<size_t>(i)]];
    while (static_cast<int64_t>(vector.size()) < kWidth) vector.push_back(0.4 * numbers.normal());
    for (int64_t j = 0; j < kWidth; ++j) x(i, j) = vector[static_cast<size_t>(j)];
    for (int64_t j = 0; j < count; ++j) allowed(i, j) = causal && j > i ? 0 : 1;
  }
  PytorchFormAttention attention(kWidth, kHeads);
  attention.to(kFloat64);
  attention.to(device);
  import_weights(attention, numpy);
  const Tensor batch = batch_of_one(x, device);
  const Tensor mask = allowed.tensor().to(device);
  const std::vector<double> weights = attention(batch, batch, batch, mask).weights.values<double>();
  print_heading("7. A sentence");
  fmt::print(
      "Who (row) attends to whom (column). Each word has a random vector, nothing is\n"
      "trained: the pattern means nothing yet. {}\n",
      causal ? "The mask hides the words to come (-)."
             : "Equal words have equal rows;\nthis is why models add positions.");
  const std::vector<Cell> cells(words.begin(), words.end());
  auto from = weights.begin();
  for (size_t head = 0; head < static_cast<size_t>(kHeads); ++head, from += count * count)
    print_table(head, cells, {count, count, {from, from + count * count}}, allowed);
}

int attention_walkthrough(int argc, char** argv) {
  WalkthroughOptions settings;
  Options options("attention_walkthrough",
                  "Multi-head attention, one step after the other, with all numbers printed: as "
                  "NumPy code has it, then compared with the forms of PyTorch and Keras code, in "
                  "double precision.");
  options.bind("seed", settings.seed, "The weights, as np.random.seed draws them",
               between(0, 4294967295.0));
  options.bind("sentence", settings.sentence, "Its attention is printed as a table at the end");
  options.bind("causal", settings.causal, "Hide from each word of the sentence those to come");
  settings.device.bind(options);
  if (!options.parse(argc, argv)) return 0;
  const Device device = settings.device.device();
  const std::vector<std::string> words = words_of(settings.sentence);

  MersenneTwister numbers(static_cast<uint32_t>(settings.seed));
  const NumpyFormAttention numpy(kWidth, kHeads, numbers);
  const Matrix x = tokens();
  const NumpyFormAttention::Result result = numpy(x);
  fmt::print("Multi-head attention, step by step\n");
  if (device != Device::cpu())
    fmt::print("Steps 5 to 7 are computed on {}\n", device_title(device));
  show_steps(x, result, settings.seed);
  show_agreement(x, numpy, result, device);
  show_wrong_split(x, numpy, result.output, device);
  show_sentence(words, numpy, numbers, settings.causal, device);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return gs::run_program(argc, argv, attention_walkthrough); }
