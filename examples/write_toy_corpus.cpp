#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>

#include "datasets/toy_corpus.h"
#include "framework/core/error.h"
#include "framework/train/options.h"
#include "framework/train/program.h"

namespace {

using namespace gs;
namespace fs = std::filesystem;

// A file that takes its name when it is complete, and leaves nothing behind when it never is.
class PendingFile {
 public:
  explicit PendingFile(fs::path path)
      : path_(std::move(path)), pending_(path_.string() + ".partial"), stream_(pending_) {
    check_stream();
  }
  ~PendingFile() {
    std::error_code ignored;
    if (!kept_) fs::remove(pending_, ignored);
  }
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  std::ostream& stream() { return stream_; }
  void close() {
    stream_.close();
    check_stream();
  }
  void keep() {
    fs::rename(pending_, path_);
    kept_ = true;
  }

 private:
  void check_stream() {
    if (!stream_)
      fail("write: cannot write {}, got \"{}\"; is the folder writable, the disk full?",
           pending_.string(), std::strerror(errno));
  }

  fs::path path_, pending_;
  std::ofstream stream_;
  bool kept_ = false;
};

using PendingFiles = std::vector<std::unique_ptr<PendingFile>>;

void write_split(PendingFiles& files, const fs::path& folder, const std::string& split,
                 ToyCorpus corpus, int64_t count) {
  const auto open = [&](const char* extension) -> PendingFile& {
    return *files.emplace_back(std::make_unique<PendingFile>(folder / (split + extension)));
  };
  PendingFile& source = open(".en");
  PendingFile& target = open(".de");
  PendingFile& alignment = open(".align");
  PendingFile& tags = open(".tags");
  for (int64_t i = 0; i < count; ++i) {
    const ToyPair pair = corpus.next();
    source.stream() << pair.source << '\n';
    target.stream() << pair.target << '\n';
    const char* separator = "";
    for (const auto& [from, to] : pair.alignment) {
      alignment.stream() << separator << from << '-' << to;
      separator = " ";
    }
    alignment.stream() << '\n';
    separator = "";
    for (const std::string& tag : pair.tags) {
      tags.stream() << separator << tag;
      separator = " ";
    }
    tags.stream() << '\n';
  }
  for (PendingFile* file : {&source, &target, &alignment, &tags}) file->close();
}

// The splits asked for, or all that the level has.
std::vector<std::string> chosen_splits(const Options& options, int64_t level) {
  const auto& named = options.value<std::vector<std::string>>("split");
  check(!named.empty(), "--split: names no split, got an empty list; leave it out for all of them");
  std::vector<std::string> chosen;
  for (const std::string& split : named) {
    if (!options.is_set("split") && !ToyCorpus::has(level, split)) continue;
    for (const std::string& earlier : chosen)
      check(earlier != split, "--split: the same split is named twice, got {}; name it once",
            split);
    chosen.push_back(split);
  }
  return chosen;
}

int write_toy_corpus(int argc, char** argv) {
  const std::vector<std::string> all(ToyCorpus::splits().begin(), ToyCorpus::splits().end());
  int64_t level = 2, count = 1000;
  uint64_t seed = 1;
  std::string output = "toy_corpus";
  Options options("write_toy_corpus",
                  "Writes the toy English-German corpus: for each split the files SPLIT.en, "
                  "SPLIT.de, SPLIT.align (word alignment, source-target, from 0) and SPLIT.tags, "
                  "one line a sentence pair.");
  options.bind("level", level,
               "1: main clauses and questions; 2: also two objects, subordinate clauses; 3: also "
               "relative clauses",
               between(1, 3));
  options.bind("seed", seed, "Another seed gives other sentences");
  options.add("split", all,
              "Which splits, with commas between them; all by default (level 1 has neither nested "
              "nor long)",
              one_of(all));
  options.bind("count", count, "Sentence pairs of each split", at_least(0));
  options.bind("output", output, "The folder for the files; made where it is missing");
  if (!options.parse(argc, argv)) return 0;

  PendingFiles files;
  const std::vector<std::string> splits = chosen_splits(options, level);
  std::vector<ToyCorpus> corpora;  // refused before anything is written
  for (const std::string& split : splits) corpora.emplace_back(seed, level, split);
  fs::create_directories(output);
  for (size_t i = 0; i < splits.size(); ++i)
    write_split(files, output, splits[i], std::move(corpora[i]), count);
  for (const auto& file : files) file->keep();
  std::printf("wrote %zu files with %lld lines each to %s\n", files.size(),
              static_cast<long long>(count), output.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return gs::run_program(argc, argv, write_toy_corpus); }
