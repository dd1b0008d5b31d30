#include <gtest/gtest.h>

#include "framework/io/checkpoint.h"
#include "tests/io/example_checkpoint.h"
#include "tests/support/paths.h"
#include "tests/support/python.h"

namespace gs {
namespace {

// An independent reader sees the names and values that were saved.
TEST(Checkpoint, IsReadableWithH5py) {
  const std::string python = test::python_with("h5py");
  if (python.empty()) GTEST_SKIP() << "h5py is not installed";
  const test::TemporaryDirectory folder;
  save_checkpoint(folder.file("a.h5"), test::example_checkpoint(900));
  const test::CommandResult result = test::run_command(
      python + " " + test::source_directory() + "/tests/io/h5py_check.py " + folder.file("a.h5"));
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(result.output, "all values are as saved\n");
}

}  // namespace
}  // namespace gs
