#include "framework/io/checkpoint.h"

#include <algorithm>
#include <string_view>

#include "framework/core/error.h"
#include "framework/core/profiler.h"
#include "framework/core/version.h"
#include "framework/io/atomic_file.h"
#include "framework/io/hdf5_reader.h"
#include "framework/io/hdf5_writer.h"
#include "framework/io/seal.h"

namespace gs {
namespace {

constexpr char kFormat[] = "gradstone checkpoint";
constexpr int64_t kVersion = 1;

void check_ties(const std::string& path, const Checkpoint& checkpoint) {
  for (const auto& [name, target] : checkpoint.ties) {
    check(!checkpoint.parameters.contains(name), "save: {}: {} is both a parameter and a tie", path,
          name);
    check(checkpoint.parameters.contains(target), "save: {}: {} is tied to {}, which is missing",
          path, name, target);
  }
}

void write(Hdf5Writer& file, const Checkpoint& checkpoint) {
  file.attribute("format", kFormat);
  file.attribute("format_version", kVersion);
  file.attribute("producer_version", std::string("gradstone ") + version);
  for (const char* group : {"model", "optimizer", "training", "config", "tokenizer"})
    file.group(group);
  for (const auto& [name, array] : checkpoint.parameters) file.array("model/" + name, array);
  for (const auto& [name, target] : checkpoint.ties) file.link("model/" + name, "model/" + target);
  for (const auto& [name, array] : checkpoint.optimizer) file.array("optimizer/" + name, array);
  for (const auto& [name, value] : checkpoint.training) {
    const std::string path = "training/" + name;
    if (const auto* integer = std::get_if<int64_t>(&value)) {
      file.integer(path, *integer);
    } else if (const auto* number = std::get_if<double>(&value)) {
      file.number(path, *number);
    } else {
      file.text(path, std::get<std::string>(value));
    }
  }
  for (const auto& [name, text] : checkpoint.config) file.text("config/" + name, text);
  for (const auto& [name, bytes] : checkpoint.tokenizer) file.bytes("tokenizer/" + name, bytes);
}

// The file in memory, found whole and of this format.
class OpenCheckpoint {
 public:
  explicit OpenCheckpoint(const std::string& path)
      : path_(path),
        bytes_(read_sealed(path, kVersion)),
        reader_(path, bytes_.data.get(), bytes_.size) {
    const std::string format = reader_.text_attribute("format");
    check(format == kFormat, "load: {} has the format \"{}\", not \"{}\"", path, format, kFormat);
    const int64_t number = reader_.integer_attribute("format_version");
    check(number == kVersion, "load: {} has format version {}, this program reads {}", path, number,
          kVersion + 0);
  }

  // Calls `read(name, path)` for all values of a group, in which nothing may be a link.
  template <typename Read>
  void each(const std::string& group, Read&& read) const {
    const Hdf5Reader::Names names = reader_.names(group);
    check(names.links.empty(), "load: {}: /{} holds links; only /model may", path_, group);
    for (const std::string& name : names.data) read(name, group + "/" + name);
  }

  // What a model needs: /model, /config and /tokenizer.
  void read_model(Checkpoint& checkpoint) const {
    const Hdf5Reader::Names names = reader_.names("model");
    for (const std::string& name : names.data)
      checkpoint.parameters.emplace(name, reader_.array("model/" + name));
    constexpr std::string_view prefix = "/model/";
    for (const auto& [name, target] : names.links) {
      const std::string parameter = target.starts_with(prefix) ? target.substr(prefix.size()) : "";
      check(checkpoint.parameters.contains(parameter),
            "load: {}: {} is tied to {}, which is no parameter", path_, name, target);
      checkpoint.ties.emplace(name, parameter);
    }
    each("config", [&](const std::string& name, const std::string& place) {
      checkpoint.config.emplace(name, reader_.text(place));
    });
    each("tokenizer", [&](const std::string& name, const std::string& place) {
      checkpoint.tokenizer.emplace(name, reader_.bytes(place));
    });
  }

  std::map<std::string, TrainingValue> training() const {
    std::map<std::string, TrainingValue> values;
    each("training", [&](const std::string& name, const std::string& path) {
      values.emplace(name, reader_.value(path));
    });
    return values;
  }

  const Hdf5Reader& reader() const { return reader_; }

 private:
  std::string path_;
  FileBytes bytes_;
  Hdf5Reader reader_;
};

void append(std::string& text, const std::vector<std::string>& names, std::string_view kind) {
  if (names.empty()) return;
  constexpr size_t limit = 10;
  const size_t shown = std::min(names.size(), limit);
  std::string list;
  for (size_t i = 0; i < shown; ++i) list += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > shown) list += fmt::format(", and {} more", names.size() - shown);
  const char* noun = !text.empty() ? "" : names.size() == 1 ? "name " : "names ";
  text += fmt::format("{}{} {}{} ({})", text.empty() ? "" : ", ", names.size(), noun, kind, list);
}

}  // namespace

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  const OperationTimer timer("save_checkpoint", Phase::kOther);
  check_ties(path, checkpoint);
  AtomicFile file(path);  // before the work, so that a bad path is known at once
  Hdf5Writer writer(path, kSealBytes);
  write(writer, checkpoint);
  const std::string_view contents = writer.finish();
  const Seal seal = Seal::of(kVersion, contents);
  file.write(seal.text());
  file.write(contents);
  file.flush();
  try {
    verify_sealed(file.temporary_path(), seal);
  } catch (const Error& error) {
    fail("save: {} was not written as it should be ({}); what stood there before is unchanged",
         path, error.what());
  }
  file.commit();
}

Checkpoint load_checkpoint(const std::string& path) {
  const OperationTimer timer("load_checkpoint", Phase::kOther);
  const OpenCheckpoint file(path);
  Checkpoint checkpoint;
  file.read_model(checkpoint);
  file.each("optimizer", [&](const std::string& name, const std::string& place) {
    checkpoint.optimizer.emplace(name, file.reader().array(place));
  });
  checkpoint.training = file.training();
  return checkpoint;
}

Checkpoint load_model_checkpoint(const std::string& path) {
  const OperationTimer timer("load_checkpoint", Phase::kOther);
  Checkpoint checkpoint;
  OpenCheckpoint(path).read_model(checkpoint);
  return checkpoint;
}

std::map<std::string, TrainingValue> load_training_values(const std::string& path) {
  return OpenCheckpoint(path).training();
}

NameComparison compare_names(const ExpectedNames& expected,
                             const std::map<std::string, Array>& found) {
  NameComparison comparison;
  for (const auto& [name, what] : expected) {
    const auto match = found.find(name);
    if (match == found.end()) {
      comparison.missing.push_back(name);
      continue;
    }
    const Array& array = match->second;
    if (array.shape() == what.first && array.dtype() == what.second) {
      ++comparison.matched;
    } else {
      comparison.misshapen.push_back(fmt::format("{} is {} {}, not {} {}", name, array.shape(),
                                                 array.dtype(), what.first, what.second));
    }
  }
  for (const auto& [name, array] : found)
    if (!expected.contains(name)) comparison.unexpected.push_back(name);
  return comparison;
}

std::string NameComparison::text() const {
  std::string text;
  append(text, missing, "missing");
  append(text, unexpected, "unexpected");
  append(text, misshapen, "misshapen");
  return text;
}

void check_names(const ExpectedNames& expected, const std::map<std::string, Array>& found,
                 const std::string& path) {
  const NameComparison comparison = compare_names(expected, found);
  check(comparison.complete(), "load: {} in {}", comparison.text(), path);
}

}  // namespace gs
