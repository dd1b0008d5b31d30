// Each planted bug is found, in the build and the mode that the list names.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>

#include "tests/cuda_emulation/bugs/bench.h"
#include "tests/cuda_emulation/bugs/build.h"
#include "tests/cuda_emulation/bugs/outcome.h"

namespace gs::cuda_emulation {
namespace {

struct Find {
  const char* bug;
  Build build;
  const char* mode;
  const char* finder;
};
void PrintTo(const Find& find, std::ostream* out) {
  *out << find.bug << " in mode " << find.mode << " of " << preset_of(find.build);
}

constexpr Build kPlain = Build::kPlain, kAddress = Build::kAddress, kThread = Build::kThread;

// With the thread sanitizer, in those modes that its run of the suites has.
constexpr Find kFinds[] = {
    {"missing_barrier", kPlain, "ascending", "wrong values"},
    {"missing_barrier", kThread, "eager", "ThreadSanitizer"},
    {"missing_second_barrier", kPlain, "ascending", "wrong values"},
    {"missing_second_barrier", kThread, "eager", "ThreadSanitizer"},
    {"warp_without_barriers", kPlain, "ascending", "wrong values"},
    {"warp_without_barriers", kThread, "eager", "ThreadSanitizer"},
    {"beyond_static_shared", kAddress, "ascending", "UndefinedBehaviorSanitizer"},
    {"beyond_dynamic_shared", kPlain, "ascending", "emulation: shared memory"},
    {"beyond_dynamic_shared", kAddress, "ascending", "AddressSanitizer"},
    {"unwritten_static_shared", kThread, "ascending", "wrong values"},
    {"unwritten_dynamic_shared", kPlain, "ascending", "wrong values"},
    {"copy_not_awaited", kPlain, "ascending", "emulation: async copy"},
    {"pipeline_without_barrier", kPlain, "ascending", "wrong values"},
    {"pipeline_without_barrier", kThread, "eager", "ThreadSanitizer"},
    {"divergent_barrier", kPlain, "ascending", "emulation: divergence"},
    {"return_before_barrier", kPlain, "ascending", "emulation: divergence"},
    {"absent_lanes", kPlain, "ascending", "emulation: divergence"},
    {"lane_outside_mask", kPlain, "ascending", "emulation: mask"},
    {"deadlock", kPlain, "ascending", "emulation: deadlock"},
    {"beyond_global", kAddress, "ascending", "AddressSanitizer"},
    {"race_of_blocks", kThread, "between_blocks,deferred,random:3", "ThreadSanitizer"},
    {"misaligned", kAddress, "ascending", "UndefinedBehaviorSanitizer"},
    {"unwritten_global", kPlain, "ascending", "wrong values"},
    {"host_pointer", kPlain, "ascending", "emulation: pointer"},
    {"host_writes", kAddress, "ascending", "AddressSanitizer"},
    {"freed_argument", kPlain, "ascending", "emulation: pointer"},
    {"freed_twice", kPlain, "ascending", "error code"},
    {"leak", kPlain, "leaks", "emulation: leak"},
    {"pinned_changed", kPlain, "deferred", "wrong values"},
    {"pageable_changed", kPlain, "deferred", "wrong values"},
    {"pinned_read_early", kPlain, "deferred", "wrong values"},
    {"missing_wait", kPlain, "deferred", "wrong values"},
    {"freed_in_use", kPlain, "deferred", "wrong values"},
    {"freed_in_use", kAddress, "deferred", "AddressSanitizer"},
    {"missing_edge", kPlain, "deferred", "wrong values"},
    {"malloc_in_capture", kPlain, "ascending", "error code"},
    {"wait_in_capture", kPlain, "ascending", "error code"},
    {"empty_grid", kPlain, "ascending", "error code"},
    {"too_many_threads", kPlain, "ascending", "error code"},
    {"too_much_shared_memory", kPlain, "ascending", "error code"},
    {"beyond_launch_bounds", kPlain, "ascending", "error code"},
    {"wrong_copy_kind", kPlain, "ascending", "error code"},
    {"copy_too_long", kPlain, "ascending", "error code"},
    {"short_leading_dimension", kPlain, "ascending", "error code"},
    {"host_pointer_to_library", kPlain, "ascending", "emulation: pointer"},
    {"library_beyond_memory", kPlain, "ascending", "emulation: pointer"},
    {"library_misaligned", kPlain, "ascending", "emulation: alignment"},
};

class PlantedBug : public testing::TestWithParam<Find> {};

TEST_P(PlantedBug, IsFound) {
  const Find& find = GetParam();
  if (find.build != kBuild)
    GTEST_SKIP() << "the build " << preset_of(find.build) << " finds it, this is "
                 << preset_of(kBuild);
  EXPECT_EQ(finder_of(find.bug, find.mode), find.finder);
}

INSTANTIATE_TEST_SUITE_P(All, PlantedBug, testing::ValuesIn(kFinds), [](const auto& info) {
  return std::string(info.param.bug) + "_by_" + std::string(preset_of(info.param.build));
});

TEST(PlantedBugs, AreAllInTheList) {
  for (const Bug& bug : all_bugs()) {
    EXPECT_TRUE(std::any_of(std::begin(kFinds), std::end(kFinds), [&](const Find& find) {
      return find.bug == std::string(bug.name);
    })) << bug.name;
  }
}

TEST(PlantedBugs, NothingIsFoundInSoundPrograms) {
  for (const Bug& program : sound_programs()) {
    for (const char* mode : {"ascending", "descending", "random:3", "random:4", "deferred",
                             "random:5,deferred", "between_blocks", "leaks"})
      EXPECT_EQ(finder_of(program.name, mode), "") << program.name << " in mode " << mode;
  }
}

TEST(Modes, UnknownOnesAreRefused) {
  EXPECT_EQ(finder_of("sound", "eager,sideways"), "emulation: options");
}

}  // namespace
}  // namespace gs::cuda_emulation
