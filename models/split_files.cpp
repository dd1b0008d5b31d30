#include "models/split_files.h"

#include "framework/core/error.h"
#include "framework/io/atomic_file.h"

namespace gs {
namespace {

void write_lines(const std::string& path, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    check(line.find('\n') == std::string::npos, "write lines: a line end inside a line of {}",
          path);
    text += line + "\n";
  }
  write_file_atomically(path, text);
}

}  // namespace

void write_split_files(const std::string& folder, const TranslationData& data) {
  const auto write = [&](const TranslationSplit& split) {
    write_lines(folder + "/" + split.name + ".source", split.source);
    write_lines(folder + "/" + split.name + ".reference", split.target);
  };
  write(data.valid);
  for (const TranslationSplit& test : data.tests) write(test);
}

void write_translation_file(const std::string& folder, const std::string& name,
                            const std::vector<std::string>& translations) {
  write_lines(folder + "/" + name + ".translation", translations);
}

}  // namespace gs
