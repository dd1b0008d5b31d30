// Averages the models of several checkpoints into one. See --help.
#include <fmt/format.h>

#include "framework/core/error.h"
#include "framework/io/checkpoint_average.h"
#include "framework/io/checkpoint_rotation.h"
#include "framework/train/options.h"
#include "framework/train/program.h"

namespace {

using namespace gs;

// The files of a run's folder: its newest or its best.
std::vector<std::string> chosen_files(const std::string& folder, int64_t last, int64_t best) {
  const int64_t wanted = last + best;
  const std::vector<SavedStep> saved = saved_steps(folder);
  const std::vector<int64_t> steps = last > 0 ? newest_steps(saved, last) : best_steps(saved, best);
  check(static_cast<int64_t>(steps.size()) == wanted,
        "--{}: {} has {} validated checkpoints, not {}; take fewer, or train with a higher --keep",
        last > 0 ? "last" : "best", folder, steps.size(), wanted);
  std::vector<std::string> files;
  for (const int64_t step : steps) files.push_back(path_of_step(folder, step));
  return files;
}

int run(int argc, char** argv) {
  std::string output = "average.h5", folder;
  int64_t last = 0, best = 0;
  std::vector<std::string> files;
  Options options("average_checkpoints",
                  "Averages the models of several checkpoints of one run, given by name or chosen "
                  "from its folder, into one that computes and translates.");
  options.bind("output", output, "the file to write");
  options.bind("folder", folder, "folder of a run, with --last or --best");
  options.bind("last", last, "average the last so many validated checkpoints", at_least(0));
  options.bind("best", best, "average the so many best of them by the run's metric", at_least(0));
  options.bind_words("FILE", files);
  if (!options.parse(argc, argv)) return 0;
  check(files.empty() != folder.empty(),
        "average: needs either files or --folder, got {}; see --help",
        files.empty() ? "neither" : "both");
  check(folder.empty() ? last + best == 0 : (last > 0) != (best > 0),
        "--last and --best: {}, got {} and {}",
        folder.empty() ? "they choose from a --folder" : "one of the two must be above 0", last,
        best);
  if (!folder.empty()) files = chosen_files(folder, last, best);
  save_checkpoint(output, average_checkpoints(files));
  fmt::print("{}: the average of {} checkpoints\n", output, files.size());
  for (const std::string& file : files) fmt::print("  {}\n", file);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return gs::run_program(argc, argv, run); }
