#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gs {

// Why a pair was left out. The first reason found counts, the source before the target.
enum class Defect { kMissingColumn, kInvalidUtf8, kNulByte, kBlank, kTooManyWords, kLongWord };

struct LeftOutPair {
  std::string file;
  int64_t line = 0;    // from 1
  int64_t offset = 0;  // bytes from the start of the (unpacked) file: of the invalid sequence or
                       // the NUL, else of the line or column
  Defect defect{};

  std::string text() const;  // "train.de:4: not UTF-8 (byte 88)"
};

// What the reader met, to be shown to the user.
struct CorpusReport {
  std::vector<std::string> files;
  int64_t lines = 0;
  int64_t pairs = 0;
  int64_t copies = 0;  // kept pairs whose target equals the source: they teach a model to copy
  std::vector<LeftOutPair> left_out;

  // "train.en, train.de: 20 lines, 19 pairs, 1 left out (1 not UTF-8)", then up to `examples`
  // lines on pairs left out.
  std::string summary(int64_t examples = 5) const;
};

// Sentence pairs; source[i] belongs to target[i].
struct ParallelCorpus {
  std::vector<std::string> source, target;
  std::vector<int64_t> lines;  // of each pair in its files, from 1
  CorpusReport report;

  int64_t count() const { return static_cast<int64_t>(source.size()); }
};

struct ParallelCorpusConfig {
  int64_t maximum_words = 256;        // a line
  int64_t maximum_word_bytes = 4096;  // a word; scripts without spaces have long ones
  int64_t source_column = 1;          // of a TSV file, from 1
  int64_t target_column = 2;
};

// Reads one sentence a line from two files, plain or gzip, lines as LineReader tells them.
// Policies, always the same: UTF-8 only; spaces as normalize_spaces (a tab, U+00A0, U+2028, VT, FF
// and U+0085 are spaces and end no line; U+200B is dropped); quotes and control-token spellings
// are text; letters are not composed (NFC and NFD differ).
// A pair with a side that is blank, not UTF-8, has a NUL byte or is over a limit is left out and
// reported; the others keep their alignment. Refused: differing line counts, files that cannot be
// read, are binary (NUL and invalid UTF-8 in one line) or UTF-16, and corpora without a usable
// pair.
ParallelCorpus read_parallel_corpus(const std::string& source_file, const std::string& target_file,
                                    ParallelCorpusConfig config = {});

// The same from one file with a tab between the columns. There is no header and no quoting;
// further columns are ignored; a line without the two columns is left out and reported.
ParallelCorpus read_parallel_tsv(const std::string& file, ParallelCorpusConfig config = {});

}  // namespace gs
