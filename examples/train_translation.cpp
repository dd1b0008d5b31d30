// Trains a Transformer to translate: on the toy corpus, or on your own files. See --help.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>

#include "framework/core/parallel.h"
#include "framework/io/checkpoint_average.h"
#include "framework/io/checkpoint_rotation.h"
#include "framework/train/device_option.h"
#include "framework/train/interrupt.h"
#include "framework/train/meter.h"
#include "framework/train/metrics_log.h"
#include "framework/train/options.h"
#include "framework/train/program.h"
#include "framework/train/progress.h"
#include "framework/train/report.h"
#include "models/data_check.h"
#include "models/split_files.h"
#include "models/summary_of_runs.h"
#include "models/translation_report.h"
#include "models/translation_settings.h"
#include "models/translation_training.h"

namespace {

using namespace gs;

constexpr int kInterruptedStatus = 130;  // as a shell reports Ctrl-C

// What belongs to this call alone and is not kept in checkpoints.
struct Call {
  std::string output = "runs/toy";
  bool resume = false;
  bool verify_resume = false;
  bool check_data = false;
  bool report_only = false;
  int64_t seeds = 1;
  int threads = gs::threads();
  DeviceOption device;
};

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void report(const Validation& validation, int64_t step, Progress& progress, MetricsLog& log) {
  progress.print(fmt::format("step {}: {}", step, validation.text()));
  log.write(validation.fields("validation", step));
}

void log_training(const TranslationTraining& training, const MeanMeter& loss, const RateMeter& rate,
                  MetricsLog& log) {
  log.write({{"event", std::string("training")},
             {"step", training.steps()},
             {"epoch", training.epoch() + 1},
             {"loss", loss.mean()},
             {"tokens_per_second", rate.per_second()},
             {"seconds", training.seconds},
             {"skipped_steps", training.skipped_steps()}});
}

// The training loop. False when it was interrupted.
bool train(TranslationTraining& training, const TranslationSettings& settings, Validator& validate,
           const Options::Values& options, CheckpointRotation& checkpoints, MetricsLog& log) {
  Progress progress(stdout, settings.progress_seconds);
  MeanMeter loss;
  RateMeter rate;
  int64_t logged = training.steps();
  const double seconds_before = training.seconds;
  const auto start = std::chrono::steady_clock::now();
  const auto count = [&](const std::vector<TranslationTraining::StepResult>& results) {
    for (const TranslationTraining::StepResult& result : results) {
      if (!result.skipped) loss.add(result.loss, result.tokens);
      rate.add(result.tokens);
    }
  };
  while (training.stop_reason().empty() && !interrupted()) {
    count(training.advance());
    const int64_t step = training.steps();
    const int64_t epochs = training.epochs();
    // The last step leaves the place at the begin of an epoch that does not come.
    progress.update({.epoch = std::min(training.epoch() + 1, epochs),
                     .epochs = epochs,
                     .step = step,
                     .steps = settings.steps,
                     .loss = loss.mean(),
                     .tokens_per_second = rate.per_second()});
    training.seconds = seconds_before + seconds_since(start);
    if (step % settings.validate_every != 0 && training.stop_reason().empty()) continue;
    count(training.settle());
    log_training(training, loss, rate, log);
    logged = step;
    loss.reset();
    const Validation validation = validate(*AveragedTranslator(training));
    report(validation, step, progress, log);
    const double metric = validation.metric(settings.metric);
    training.stopping.add(metric);
    training.seconds = seconds_before + seconds_since(start);
    checkpoints.save(step, training.checkpoint(options), metric);
    rate.restart();
  }
  count(training.settle());
  progress.finish();
  if (!training.stop_reason().empty()) return true;
  if (training.steps() > logged) log_training(training, loss, rate, log);
  // What was saved after its validation stays as it is, with its metric.
  if (training.steps() > logged || training.steps() == 0)
    checkpoints.save(training.steps(), training.checkpoint(options));
  return false;
}

// Writes average.h5, the mean of the last or best validated checkpoints, and validates it.
void average(const TranslationSettings& settings, const CheckpointRotation& checkpoints,
             const std::string& path, Device device, Validator& validate, MetricsLog& log) {
  const std::vector<int64_t> steps = settings.average_of == "best"
                                         ? checkpoints.best(settings.average)
                                         : checkpoints.newest(settings.average);
  std::vector<std::string> files;
  for (const int64_t step : steps) files.push_back(checkpoints.path_of(step));
  Checkpoint mean = average_checkpoints(files);
  const Validation validation = validate(*Translator::from_checkpoint(mean, path, device));
  mean.training["metric"] = validation.metric(settings.metric);
  mean.training["metric_name"] = settings.metric;
  save_checkpoint(path, mean);
  fmt::print("{}, the average of the {} {} validated checkpoints (steps {}): {}\n", path,
             settings.average_of, steps.size(), fmt::join(steps, ", "), validation.text());
  log.write(validation.fields("average", std::get<int64_t>(mean.training.at("step"))));
}

// The weights to test, by the name that --test-weights gives them.
std::string tested_weights(const TranslationSettings& settings,
                           const CheckpointRotation& checkpoints) {
  std::string weights = settings.test_weights;
  if (weights == "auto")
    weights = settings.average > 0 ? "average" : settings.patience > 0 ? "best" : "last";
  // No validation of a run has been a number, as after NaN.
  if (weights != "last" && !checkpoints.best_step()) weights = "last";
  return weights;
}

// What follows the training: the average, the tests, summary.json.
void conclude(const TranslationTraining& training, const TranslationSettings& settings,
              const TranslationData& data, const std::string& output,
              const CheckpointRotation& checkpoints, Validator& validate, MetricsLog& log) {
  const std::string weights = tested_weights(settings, checkpoints);
  const std::string path = output + "/" + weights + ".h5";
  if (settings.average > 0 && checkpoints.best_step())
    average(settings, checkpoints, output + "/average.h5", training.device(), validate, log);
  report_tests({.train_seconds = training.seconds,
                .parameters = training.parameter_count(),
                .steps = training.steps(),
                .stopped = training.stop_reason(),
                .weights = weights,
                .checkpoint = path,
                .device = training.device(),
                .precision = settings.precision},
               data.tests, settings.search_config(), settings.scoring(), output, log);
}

// Trains `steps` steps in one go, and again with a save and a load in the middle, and compares all
// bits of model, optimizer, random state and place in the data.
int verify_resume(const TranslationSettings& settings, const TranslationData& data, Device device) {
  const int64_t half = std::max<int64_t>(1, std::min<int64_t>(settings.steps / 2, 20));
  const std::string path =
      std::filesystem::temp_directory_path() / fmt::format("verify_resume_{}.h5", getpid());
  const auto advance = [half](TranslationTraining& training) {
    for (int64_t i = 0; i < half; ++i) training.step();
  };
  const auto fingerprint = [](const TranslationTraining& training) {
    Checkpoint checkpoint = training.checkpoint({});
    std::vector<std::string> bits;
    for (const auto* arrays : {&checkpoint.parameters, &checkpoint.optimizer}) {
      for (const auto& [name, array] : *arrays) {
        const Array values = array.to(Device::cpu());
        bits.emplace_back(static_cast<const char*>(values.raw()),
                          static_cast<size_t>(values.bytes()));
      }
    }
    for (const char* name : {"step", "epoch", "batch", "random_next_stream"}) {
      bits.push_back(std::to_string(std::get<int64_t>(checkpoint.training.at(name))));
    }
    return bits;
  };
  TranslationTraining whole(settings, data.train, device);
  advance(whole);
  save_checkpoint(path, whole.checkpoint({}));
  advance(whole);
  const std::vector<std::string> expected = fingerprint(whole);
  TranslationTraining resumed(settings, data.train, load_checkpoint(path), path, device);
  std::filesystem::remove(path);
  advance(resumed);
  const bool equal = fingerprint(resumed) == expected;
  fmt::print("{} steps, and {} steps, a save, a load and {} steps: {}\n", 2 * half, half, half,
             equal ? "equal to the last bit" : "DIFFERENT");
  return equal ? 0 : 1;
}

void print_start(TranslationTraining& training, const TranslationSettings& settings,
                 const TranslationData& data) {
  for (const std::string& note : data.notes) fmt::print("{}\n", note);
  const Translator& translator = training.translator();
  fmt::print("{} training pairs, vocabularies of {} and {}, {} parameters, {}, {}\n",
             training.pairs(), translator.source_tokenizer().size(),
             translator.target_tokenizer().size(), translator.transformer().parameter_count(),
             device_title(training.device()), settings.precision);
  fmt::print("{}", training.optimizer_summary());
  std::fflush(stdout);
}

// Trains, averages and tests, from where the training stands. The exit status.
int train_and_test(TranslationTraining& training, const TranslationSettings& settings,
                   const TranslationData& data, const Call& call, const Options::Values& options) {
  CheckpointRotation checkpoints(settings.rotation_config(call.output));
  const bool has_finished = !training.stop_reason().empty();  // then it is only tested again
  write_split_files(call.output, data);
  const std::string metrics = call.output + "/metrics.jsonl";
  using Events = std::vector<std::string>;
  MetricsLog log =
      call.resume
          ? MetricsLog::resume(metrics, training.steps(),
                               has_finished ? Events{"stopped", "average", "test "} : Events{})
          : MetricsLog::create(metrics);
  Validator validate(training.translator(), data.valid, settings.search_config(),
                     settings.scoring());
  if (!train(training, settings, validate, options, checkpoints, log)) {
    fmt::print(
        "Interrupted at step {}; saved {}. Go on with: train_translation --output {} --resume\n",
        training.steps(), checkpoints.path_of(training.steps()), call.output);
    return kInterruptedStatus;
  }
  const std::string reason = training.stop_reason();
  log.write({{"event", std::string("stopped")}, {"step", training.steps()}, {"reason", reason}});
  fmt::print("Trained {} steps in {}: {}; the last checkpoint is {}, the best {}\n",
             training.steps(), duration_text(training.seconds), reason, checkpoints.last_path(),
             checkpoints.best_path());
  release_interrupts();  // all is saved
  if (interrupted()) {
    fmt::print("Interrupted. For the tests: train_translation --output {} --resume\n", call.output);
    return kInterruptedStatus;
  }
  conclude(training, settings, data, call.output, checkpoints, validate, log);
  return 0;
}

void report_run(const std::string& output, const Options::Values& options) {
  const std::filesystem::path folder = std::filesystem::absolute(output + "/").lexically_normal();
  const std::string name = folder.parent_path().filename();
  write_report({.folder = output, .title = "Translation model: " + name, .options = options});
  fmt::print("The report is {}/report.html\n", output);
}

// The command line.
struct Program {
  TranslationSettings settings;
  Call call;
  Options options{"train_translation",
                  "Trains a Transformer to translate: on a generated English-German corpus, or on "
                  "your own files."};

  Program() {
    options.bind("output", call.output, "folder of checkpoints, metrics and summary");
    options.bind("resume", call.resume, "go on from the last checkpoint in the output folder");
    options.bind("verify-resume", call.verify_resume,
                 "show that resuming changes no bit, and stop");
    options.bind("threads", call.threads, "threads of the CPU", between(1, 1024));
    call.device.bind(options);
    options.bind("check-data", call.check_data,
                 "read the data, show what is left out and how long the sentences are, and stop");
    options.bind("report-only", call.report_only,
                 "write report.html of the run in the output folder, of a running one too, and "
                 "stop");
    options.bind("seeds", call.seeds,
                 "models to train one after another with the seeds --seed, --seed + 1, ..., each "
                 "in a folder seed_N of the output folder, which gets the mean of their scores",
                 at_least(1));
    options.leave_out(
        {"output", "resume", "verify-resume", "threads", "check-data", "report-only", "seeds"});
    settings.bind(options);
  }
  [[nodiscard]] bool parse(const std::vector<std::string>& words) {
    std::vector<const char*> pointers;
    for (const std::string& word : words) pointers.push_back(word.c_str());
    return options.parse(static_cast<int>(pointers.size()), pointers.data());
  }
};

// The checkpoint to go on from, whose options count where the command line has none.
Checkpoint checkpoint_to_resume(Program& program, const std::string& last) {
  // Completes what a kill in the middle of a save has left.
  if (std::filesystem::is_directory(program.call.output)) {
    CheckpointRotation({.folder = program.call.output, .keep = program.settings.keep});
  }
  check(std::filesystem::exists(last), "--resume: there is no {}; start without --resume", last);
  Checkpoint saved = load_checkpoint(last);
  for (const std::string& note :
       program.options.restore(stored_options(saved), TranslationSettings::fixed_options())) {
    fmt::print("{}\n", note);
  }
  return saved;
}

// One model, and the exit status.
int run_once(Program& program) {
  const TranslationSettings& settings = program.settings;
  const Call& call = program.call;
  set_threads(call.threads);
  const std::string last = call.output + "/last.h5";
  if (call.report_only) {
    const bool has_options = std::filesystem::exists(last);
    if (has_options) program.options.restore(stored_options(load_model_checkpoint(last)));
    report_run(call.output, has_options ? program.options.values() : Options::Values());
    return 0;
  }
  const Device device = call.device.device();
  Checkpoint saved;
  if (call.resume) {
    saved = checkpoint_to_resume(program, last);
  } else if (!call.verify_resume && !call.check_data) {
    check(!std::filesystem::exists(last),
          "--output: {} holds a run already; go on with --resume, or choose another folder",
          call.output);
  }
  const CheckpointRotation::Config rotation = settings.rotation_config(call.output);
  if (rotation.keep > settings.keep)
    fmt::print("--keep {} is raised to {}, which --average needs\n", settings.keep, rotation.keep);
  TranslationData data = settings.data();
  if (call.verify_resume) return verify_resume(settings, data, device);

  catch_interrupts();
  std::unique_ptr<TranslationTraining> training =
      call.resume ? std::make_unique<TranslationTraining>(settings, data.train, saved, last, device)
                  : std::make_unique<TranslationTraining>(settings, data.train, device);
  data.notes.insert(data.notes.end(), training->notes().begin(), training->notes().end());
  fit_to_model(data, training->translator());
  print_start(*training, settings, data);
  if (call.check_data) {
    fmt::print("\n{}\n{} steps take {} epochs\n", data_statistics(data, training->translator()),
               settings.steps, training->epochs());
    return 0;
  }
  const int status = train_and_test(*training, settings, data, call, program.options.values());
  report_run(call.output, program.options.values());
  return status;
}

// Several models, each as if its command line had been given, and the mean of their scores.
int run_seeds(const Program& program, const std::vector<std::string>& words) {
  const Call& call = program.call;
  check(!call.verify_resume && !call.check_data && !call.report_only,
        "--seeds: trains; leave out --verify-resume, --check-data and --report-only");
  const std::optional<uint64_t> begun = first_seed_in(call.output);
  const bool goes_on = call.resume && begun && !program.options.is_set("seed");
  const uint64_t first = goes_on ? *begun : program.settings.seed;
  std::vector<std::string> folders;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(call.seeds); ++seed) {
    const std::string folder = fmt::format("{}/seed_{}", call.output, seed);
    folders.push_back(folder);
    std::vector<std::string> own = words;
    const bool resumes = call.resume && std::filesystem::exists(folder + "/last.h5");
    // The last of several counts; the profile is that of all.
    for (const std::string& word :
         {"--output=" + folder, fmt::format("--seed={}", seed), std::string("--seeds=1"),
          fmt::format("--resume={}", resumes), std::string("--profile=false"),
          std::string("--profile-trace=")}) {
      own.push_back(word);
    }
    Program one;
    if (!one.parse(own)) return 0;
    if (call.resume && begun && !resumes) {
      // Not begun yet: the options are those of the first one.
      const std::string path = fmt::format("{}/seed_{}/last.h5", call.output, *begun);
      one.options.restore(stored_options(load_model_checkpoint(path)));
    }
    fmt::print("\nSeed {}, in {}\n", seed, folder);
    if (const int status = run_once(one); status != 0) {
      fmt::print("All seeds go on with: train_translation --output {} --seeds {} --resume\n",
                 call.output, call.seeds);
      return status;
    }
  }
  summarise_runs(folders, call.output);
  return 0;
}

int run(int argc, char** argv) {
  const std::vector<std::string> words(argv, argv + argc);
  Program program;
  if (!program.parse(words)) return 0;
  return program.call.seeds > 1 ? run_seeds(program, words) : run_once(program);
}

}  // namespace

int main(int argc, char** argv) { return gs::run_program(argc, argv, run); }
