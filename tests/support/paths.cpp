#include "tests/support/paths.h"

#include <cstdlib>

namespace gs::test {
namespace {

std::string below_root(const char* inner, const char* otherwise) {
  const char* const root = std::getenv("GRADSTONE_TEST_ROOT");
  return root == nullptr ? std::string(otherwise) : std::string(root) + inner;
}

}  // namespace

std::string source_directory() { return below_root("", GS_SOURCE_DIRECTORY); }
std::string program_directory() { return below_root("/bin", GS_BINARY_DIRECTORY); }
std::string test_data(const std::string& name) {
  return source_directory() + "/tests/data/" + name;
}
std::string program(const std::string& name) { return program_directory() + "/" + name; }

}  // namespace gs::test
